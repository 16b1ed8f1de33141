//! Every limit of the SQLite driver, in one place. Reads no configuration itself.

use crate::model::decide::Limits;

/// How safely a commit is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// Each commit waits for the disk: it survives a loss of power.
    #[default]
    Full,
    /// Nothing waits for the disk. For tests only.
    Off,
}

impl Synchronous {
    pub(super) fn pragma(self) -> &'static str {
        match self {
            Synchronous::Full => "FULL",
            Synchronous::Off => "OFF",
        }
    }
}

/// The limits of the SQLite driver. Durations in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteSettings {
    /// How safely a commit is written.
    pub synchronous: Synchronous,
    /// Writes that may wait; one more is refused as an overload.
    pub queue_max: usize,
    /// Writes that share a commit, at most.
    pub batch_max: usize,
    /// How long a write waits for another process's write before it fails as unavailable.
    pub busy_timeout_ms: u64,
    /// How long opening waits for another process that opens or migrates.
    pub open_timeout_ms: u64,
    /// Connections for single rows by key.
    pub point_readers: usize,
    /// Connections for lists.
    pub list_readers: usize,
    /// How often another process's changes are looked for while someone waits for them.
    pub poll_interval_ms: u64,
    /// How long a delivery mark may wait for company.
    pub mark_flush_ms: u64,
    /// Delivery marks that may wait; one more causes a commit.
    pub marks_max: usize,
    /// A payload is stored in pieces of at most so many bytes.
    pub payload_chunk_bytes: usize,
    /// The writer's page cache, in KiB.
    pub writer_cache_kib: u32,
    /// Each reader's page cache, in KiB.
    pub reader_cache_kib: u32,
    /// Pages in the write-ahead log after which they are copied into the database.
    pub checkpoint_pages: u32,
    /// The size to which the write-ahead log is cut back after it grew beyond, in bytes.
    pub wal_bytes_kept: u64,
    /// The largest database in pages of 4 KiB; absent: as large as SQLite permits.
    pub pages_max: Option<u32>,
    /// A database up to this size is checked page by page when it is opened, in bytes.
    pub check_bytes_max: u64,
    /// Live executions of which the writer remembers the row.
    pub heads_cached: usize,
    /// Unkeyed equal executions looked at per call.
    pub twins_max: usize,
    /// Opening brings an older or new file to the present schema; else it only checks that it is there.
    pub migrates: bool,
    /// Bounds on what is recorded about one execution.
    pub limits: Limits,
}

impl Default for SqliteSettings {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::Full,
            queue_max: 10_000,
            batch_max: 256,
            busy_timeout_ms: 5_000,
            open_timeout_ms: 10_000,
            point_readers: 2,
            list_readers: 2,
            poll_interval_ms: 10,
            mark_flush_ms: 1_000,
            marks_max: 4_096,
            payload_chunk_bytes: 1 << 20,
            writer_cache_kib: 8 << 10,
            reader_cache_kib: 8 << 10,
            checkpoint_pages: 4_000,
            wal_bytes_kept: 64 << 20,
            pages_max: None,
            check_bytes_max: 256 << 20,
            heads_cached: 4_096,
            twins_max: 256,
            migrates: true,
            limits: Limits::default(),
        }
    }
}

impl SqliteSettings {
    /// Settings for tests: nothing waits for the disk.
    pub fn for_tests() -> Self {
        Self { synchronous: Synchronous::Off, ..Self::default() }
    }
}

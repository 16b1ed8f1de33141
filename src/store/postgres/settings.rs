//! Every limit of the PostgreSQL driver, in one place. Reads no configuration itself.

use std::path::PathBuf;

use crate::model::decide::Limits;

/// How far the database keeps transactions apart. Nothing is right or wrong by it: versions and unique keys decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// As if one ran after the other: the belt beside the braces.
    #[default]
    Serializable,
    /// Each statement sees what was committed before it.
    ReadCommitted,
}

impl Isolation {
    /// As SQL writes it.
    pub(super) fn sql(self) -> &'static str {
        match self {
            Isolation::Serializable => "SERIALIZABLE",
            Isolation::ReadCommitted => "READ COMMITTED",
        }
    }

    /// As the database names it when it is asked.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::Serializable => "serializable",
            Isolation::ReadCommitted => "read committed",
        }
    }
}

/// The limits of the PostgreSQL driver. Durations in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresSettings {
    /// The schema the tables are in; absent: the first one of the role's `search_path`.
    pub schema: Option<String>,
    /// How far transactions are kept apart.
    pub isolation: Isolation,
    /// Connections for reads and rare writes. The writer, wake-ups and the set-up have their own.
    pub pool_max: usize,
    /// A connection nobody used for so long is closed.
    pub idle_timeout_ms: u64,
    /// A connection this old is closed once it is free: a fail-over or a new password reaches all of them in time.
    pub lifetime_max_ms: u64,
    /// How long opening a connection may take, TLS and password included.
    pub connect_timeout_ms: u64,
    /// How long a statement may run, by the database's own count.
    pub statement_timeout_ms: u64,
    /// How long nothing may be heard of a commit before its connection is closed and the same write runs again.
    pub commit_deadline_ms: u64,
    /// How long a call may wait for the database, repeats included, before it fails as unavailable.
    pub answer_deadline_ms: u64,
    /// Connections that write executions, each with one batch under way: while one waits for its commit the next one writes.
    pub writers: usize,
    /// Rows of live executions that are remembered, so that the next write to one needs no read.
    pub heads_cached: usize,
    /// Writes that may wait; one more is refused as an overload.
    pub queue_max: usize,
    /// Writes that share a commit, at most.
    pub batch_max: usize,
    /// Rows that share a commit, at most, events included.
    pub batch_rows_max: usize,
    /// Bytes of payload that share a commit, at most; a single larger write goes alone.
    pub batch_bytes_max: usize,
    /// Unkeyed equal executions looked at per call.
    pub twins_max: usize,
    /// How long a delivery mark may wait for company.
    pub mark_flush_ms: u64,
    /// Delivery marks that may wait; one more causes a commit.
    pub marks_max: usize,
    /// A payload is stored in pieces of at most so many bytes.
    pub payload_chunk_bytes: usize,
    /// How often another process's changes are looked for where nothing wakes us.
    pub poll_interval_ms: u64,
    /// How long a process counts as alive without a sign of life.
    pub process_ttl_ms: u64,
    /// Where to listen for wake-ups, past a pooler; absent: at the store's own URL, unless that is a pooler.
    pub listen_url: Option<String>,
    /// Opening brings an older or new schema to the present one; else it only checks that it is there.
    pub migrates: bool,
    /// The URL leads to a pooler in transaction mode: nothing may outlive a transaction, named statements least of all.
    pub pooled: bool,
    /// Certificates to trust, as a PEM file; absent: those of the system. `sslrootcert` in the URL goes before it.
    pub root_certificates: Option<PathBuf>,
    /// Bounds on what is recorded about one execution.
    pub limits: Limits,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        Self {
            schema: None,
            isolation: Isolation::default(),
            pool_max: 8,
            idle_timeout_ms: 60_000,
            lifetime_max_ms: 1_800_000,
            connect_timeout_ms: 10_000,
            statement_timeout_ms: 30_000,
            commit_deadline_ms: 3_000,
            answer_deadline_ms: 4_000,
            writers: 4,
            heads_cached: 4_096,
            queue_max: 10_000,
            batch_max: 256,
            batch_rows_max: 500,
            batch_bytes_max: 4 << 20,
            twins_max: 256,
            mark_flush_ms: 1_000,
            marks_max: 4_096,
            payload_chunk_bytes: 1 << 20,
            poll_interval_ms: 50,
            process_ttl_ms: 5_000,
            listen_url: None,
            migrates: true,
            pooled: false,
            root_certificates: None,
            limits: Limits::default(),
        }
    }
}

impl PostgresSettings {
    /// Settings for tests: what waits for a clock waits shortly, what a busy machine delays has time.
    pub fn for_tests() -> Self {
        Self { pool_max: 4, answer_deadline_ms: 20_000, commit_deadline_ms: 10_000, ..Self::default() }
    }
}

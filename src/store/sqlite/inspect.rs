//! Looking at a database file without becoming a store: no migration, no lock file, no writer. For a person's questions
//! about a file, which may be another process's, a copy, of an older version, or damaged.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::busy;
use super::fault::{Fault, Sql};
use super::lists::Read;
use super::liveness::Liveness;
use super::migrate::{self, with_suffix};
use super::open::{name_file, refuse_obstacles};
use super::policies::Policies;
use super::settings::SqliteSettings;
use super::workers;
use crate::model::execution::State;
use crate::store::series::Whose;
use crate::store::{Error, Result};

/// What a database file is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// The schema it has.
    pub schema_version: i64,
    /// The newest schema that this program knows.
    pub schema_known: i64,
    /// The database file, in bytes.
    pub file_bytes: u64,
    /// Of these, what is free for new rows.
    pub free_bytes: u64,
    /// The write-ahead log beside it, in bytes.
    pub wal_bytes: u64,
    /// Pages in the log that are not yet copied into the database; absent when another process is copying.
    pub wal_pages_waiting: Option<u64>,
    /// Executions per state.
    pub states: BTreeMap<State, u64>,
    /// All payloads together, in bytes.
    pub payload_bytes: u64,
    /// When the oldest execution was submitted, in milliseconds since the epoch.
    pub oldest_created_at_ms: Option<i64>,
    /// When something happened last to one of the newest executions, in milliseconds since the epoch.
    pub newest_event_at_ms: Option<i64>,
    /// Announced processes that live.
    pub processes_alive: u64,
    /// Announced processes that are dead: the next start settles what they held.
    pub processes_dead: u64,
    /// Remote workers that live.
    pub remote_workers: u64,
}

/// Looks at the file at `path`; `now_ms` (since the epoch) tells which remote workers live. Blocks; changes nothing.
///
/// # Errors
///
/// One sentence: not there, no database, of another program, locked for too long.
pub fn status(path: &Path, now_ms: i64) -> Result<FileStatus> {
    let connection = connect(path)?;
    let version = version(&connection, path)?;
    let read = || -> Sql<FileStatus> {
        let liveness = Liveness::of(path);
        // The first schema has no table of workers.
        let remote = if version >= 2 { workers::remote(&connection, now_ms)? } else { Vec::new() };
        let mut processes = Read { connection: &connection, policies: &Policies::default() }.processes()?;
        processes.retain(|process| remote.iter().all(|worker| worker.id != *process));
        let (mut alive, mut dead) = (0, 0);
        for process in processes {
            *if liveness.is_alive(process) { &mut alive } else { &mut dead } += 1;
        }
        let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let free_bytes = pragma("freelist_count")? * pragma("page_size")?;
        let bytes = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
        Ok(FileStatus {
            schema_version: version,
            schema_known: migrate::known(),
            file_bytes: bytes(path),
            free_bytes: free_bytes.unsigned_abs(),
            wal_bytes: bytes(&with_suffix(path, "-wal")),
            wal_pages_waiting: waiting(&connection)?,
            states: Read { connection: &connection, policies: &Policies::default() }.totals(&Whose::default())?,
            payload_bytes: connection.query_row(PAYLOAD_BYTES, [], |row| row.get::<_, i64>(0))?.unsigned_abs(),
            oldest_created_at_ms: connection.query_row(OLDEST, [], |row| row.get(0)).optional()?,
            newest_event_at_ms: connection.query_row(NEWEST, [], |row| row.get(0))?,
            processes_alive: alive,
            processes_dead: dead,
            remote_workers: remote.iter().filter(|worker| worker.present && worker.lives).count() as u64,
        })
    };
    read().map_err(|fault| name_file(path, fault.error))
}

/// Takes the lock of a write and gives it back: whether the file can be written now. Blocks; changes nothing.
///
/// # Errors
///
/// [`Error::CannotWrite`] or [`Error::Unavailable`], with the reason.
pub fn writable(path: &Path) -> Result<()> {
    let connection = connect(path)?;
    let tried = connection
        .pragma_update(None, "query_only", false)
        .and_then(|()| connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK"));
    tried.map_err(|error| name_file(path, Fault::from(error).error))
}

/// Looks at the pages of a file of at most `bytes_max`; false when it is larger. Blocks.
///
/// # Errors
///
/// [`Error::Damaged`] with the first thing that does not hold together.
pub fn quick_check(path: &Path, bytes_max: u64) -> Result<bool> {
    if path.metadata().map_or(0, |metadata| metadata.len()) > bytes_max {
        return Ok(false);
    }
    let connection = connect(path)?;
    let settings = SqliteSettings { check_bytes_max: bytes_max, ..SqliteSettings::default() };
    super::open::check_pages(&connection, path, &settings).map(|()| true)
}

/// Bytes of text without reading it: SQLite knows the length from the head of the row.
const PAYLOAD_BYTES: &str = "SELECT (SELECT coalesce(sum(octet_length(body)), 0) FROM payload_pieces) \
    + (SELECT coalesce(sum(octet_length(body)), 0) FROM short_payloads)";

const OLDEST: &str = "SELECT created_at_ms FROM executions ORDER BY id LIMIT 1";

const NEWEST: &str =
    "SELECT max(updated_at_ms) FROM (SELECT updated_at_ms FROM executions ORDER BY id DESC LIMIT 1000)";

/// A connection that reads. The file must be there.
pub(super) fn connect(path: &Path) -> Result<Connection> {
    refuse_obstacles(path)?;
    if !path.exists() {
        return Err(Error::Unavailable(format!("{} does not exist", path.display())));
    }
    busy::set_limit(Duration::from_millis(SqliteSettings::default().busy_timeout_ms));
    let open = |flags: OpenFlags| -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_handler(Some(busy::wait))?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    // A reader of a write-ahead log keeps its place in a file; on a medium that can not be written a plain copy still opens.
    let opened = open(OpenFlags::SQLITE_OPEN_READ_WRITE).or_else(|_| open(OpenFlags::SQLITE_OPEN_READ_ONLY));
    opened.map_err(|error| name_file(path, Fault::from(error).error))
}

/// The schema version of a file of ours.
pub(super) fn version(connection: &Connection, path: &Path) -> Result<i64> {
    match migrate::version(connection).map_err(|error| name_file(path, error))? {
        Some(version) if version > migrate::known() => Err(Error::TooNew { found: version, known: migrate::known() }),
        Some(version) => Ok(version),
        None => Err(Error::Damaged(format!("{} is not a store of durable-mcp", path.display()))),
    }
}

/// A checkpoint that copies nothing, and says what one would.
fn waiting(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let (busy, pages, copied): (i64, i64, i64) =
        connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok((busy == 0).then(|| (pages - copied).max(0) as u64))
}

//! Opening a database file: clear words for everything that can be in the way, private files, one process at a time,
//! migration, connections. Starts no thread.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use super::busy;
use super::checkpoint;
use super::fault::Fault;
use super::migrate::{self, with_suffix};
use super::settings::SqliteSettings;
use crate::store::{Error, Result};

/// The connections of a store.
pub(super) struct Connections {
    pub(super) writer: Connection,
    pub(super) checkpointer: Connection,
    pub(super) point_readers: Vec<Connection>,
    pub(super) list_readers: Vec<Connection>,
}

/// Opens the database at `path`, creating or migrating it. Blocks.
pub(super) fn open(path: &Path, settings: &SqliteSettings) -> Result<Connections> {
    busy::set_limit(Duration::from_millis(settings.open_timeout_ms));
    refuse_obstacles(path)?;
    let _alone = OpenLock::take(path, settings)?;
    create_private(path).map_err(|error| in_the_way(path, &error))?;
    refuse_other_files(path)?;
    let named = |error: Error| name_file(path, error);
    let mut writer = connect(path, settings.writer_cache_kib).map_err(named)?;
    prepare_writer(&writer, settings).map_err(|error| named(Fault::from(error).error))?;
    check_pages(&writer, path, settings)?;
    if settings.migrates {
        migrate::run(&mut writer, path, &migrate::migrations()).map_err(named)?;
    } else {
        migrate::check(&writer, path, &migrate::migrations()).map_err(named)?;
    }
    let checkpointer = connect(path, CHECKPOINTER_CACHE_KIB).map_err(named)?;
    let synchronous = settings.synchronous.pragma();
    checkpointer.pragma_update(None, "synchronous", synchronous).map_err(|error| named(Fault::from(error).error))?;
    let readers = |count: usize| -> Result<Vec<Connection>> {
        (0..count.max(1)).map(|_| reader(path, settings).map_err(named)).collect()
    };
    let point_readers = readers(settings.point_readers)?;
    let list_readers = readers(settings.list_readers)?;
    Ok(Connections { writer, checkpointer, point_readers, list_readers })
}

/// Creates an empty file that only its owner may read, unless one is there.
pub(in crate::store) fn create_private(path: &Path) -> io::Result<()> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path).map(drop)
}

pub(super) fn refuse_obstacles(path: &Path) -> Result<()> {
    let shown = path.display();
    if path.as_os_str().is_empty() {
        return Err(Error::Unavailable("the store's URL names no file; write sqlite:PATH".into()));
    }
    if path.is_dir() {
        return Err(Error::Unavailable(format!("{shown} is a folder, not a database file")));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Error::Unavailable(format!("the folder {} does not exist; create it first", folder.display())));
    }
    Ok(())
}

/// SQLite would take a file without its header for damaged, or fill an empty-looking one with a database.
fn refuse_other_files(path: &Path) -> Result<()> {
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let mut header = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut header));
    read.map_err(|error| in_the_way(path, &error))?;
    if !header.is_empty() && header != MAGIC {
        return Err(Error::Damaged(format!(
            "{} is not an SQLite database; move it away or name another file",
            path.display()
        )));
    }
    Ok(())
}

fn connect(path: &Path, cache_kib: u32) -> Result<Connection> {
    // The name is a path, never a URI: a question mark in it is a character.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_handler(Some(busy::wait))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
        connection.pragma_update(None, "trusted_schema", false)?;
        Ok(connection)
    };
    open().map_err(|error| Fault::from(error).error)
}

/// It copies pages and keeps none.
const CHECKPOINTER_CACHE_KIB: u32 = 64;
const STATEMENTS_CACHED: usize = 128;

fn prepare_writer(connection: &Connection, settings: &SqliteSettings) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", settings.synchronous.pragma())?;
    connection.pragma_update(None, "journal_size_limit", settings.wal_bytes_kept as i64)?;
    checkpoint::watch(connection);
    if let Some(pages) = settings.pages_max {
        connection.pragma_update(None, "max_page_count", pages)?;
    }
    Ok(())
}

fn reader(path: &Path, settings: &SqliteSettings) -> Result<Connection> {
    let connection = connect(path, settings.reader_cache_kib)?;
    connection.pragma_update(None, "query_only", true).map_err(|error| Fault::from(error).error)?;
    Ok(connection)
}

/// Looks at every page of a database that is not too large for it.
pub(super) fn check_pages(connection: &Connection, path: &Path, settings: &SqliteSettings) -> Result<()> {
    let bytes = path.metadata().map_or(0, |metadata| metadata.len());
    if bytes > settings.check_bytes_max {
        return Ok(());
    }
    let verdict: std::result::Result<String, _> = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(verdict) => Err(damaged(path, &verdict)),
        Err(error) => Err(name_file(path, Fault::from(error).error)),
    }
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::Damaged(format!("{}: {}; restore a copy", path.display(), what.replace('\n', " ")))
}

pub(super) fn name_file(path: &Path, error: Error) -> Error {
    let named = |text: String| match text.contains(&*path.to_string_lossy()) {
        true => text,
        false => format!("{}: {text}", path.display()),
    };
    match error {
        Error::Unavailable(text) => Error::Unavailable(named(text)),
        Error::CannotWrite(text) => Error::CannotWrite(named(text)),
        Error::Damaged(text) => Error::Damaged(named(text)),
        error => error,
    }
}

pub(super) fn in_the_way(path: &Path, error: &io::Error) -> Error {
    let text = match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{}: permission denied", path.display()),
        _ => format!("{}: {error}", path.display()),
    };
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::ReadOnlyFilesystem => Error::CannotWrite(text),
        _ => Error::Unavailable(text),
    }
}

/// Held while a process opens or migrates. The operating system gives it back when the process dies.
pub(super) struct OpenLock {
    _file: File,
}

impl OpenLock {
    pub(super) fn take(path: &Path, settings: &SqliteSettings) -> Result<OpenLock> {
        let lock_path = with_suffix(path, ".lock");
        create_private(&lock_path).map_err(|error| in_the_way(&lock_path, &error))?;
        let file = File::open(&lock_path).map_err(|error| in_the_way(&lock_path, &error))?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(OpenLock { _file: file }),
                Err(TryLockError::Error(error)) => return Err(in_the_way(&lock_path, &error)),
                Err(TryLockError::WouldBlock) => {}
            }
            if started.elapsed() >= Duration::from_millis(settings.open_timeout_ms) {
                return Err(Error::Unavailable(format!(
                    "another process has been opening {} for {} s",
                    path.display(),
                    started.elapsed().as_secs()
                )));
            }
            std::thread::sleep(POLL);
        }
    }
}

const POLL: Duration = Duration::from_millis(5);

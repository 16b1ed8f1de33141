//! Brings a database to the schema this program knows: embedded files in order, checksummed, never an edited one twice.
//! Keeps a copy of an older database first. Opens nothing itself.

use std::path::{Path, PathBuf};

use refinery::{Migration, Runner};
use rusqlite::{Connection, OptionalExtension};

use super::fault::Fault;
use crate::store::{Error, Result};

const FILES: &[(&str, &str)] = &[
    ("V1__executions", include_str!("../../../migrations/sqlite/V1__executions.sql")),
    ("V2__workers", include_str!("../../../migrations/sqlite/V2__workers.sql")),
    ("V3__noted_executions", include_str!("../../../migrations/sqlite/V3__noted_executions.sql")),
    ("V4__sessions", include_str!("../../../migrations/sqlite/V4__sessions.sql")),
    ("V5__input_requests", include_str!("../../../migrations/sqlite/V5__input_requests.sql")),
    ("V6__tasks", include_str!("../../../migrations/sqlite/V6__tasks.sql")),
    ("V7__series", include_str!("../../../migrations/sqlite/V7__series.sql")),
    ("V8__found", include_str!("../../../migrations/sqlite/V8__found.sql")),
    ("V9__short_payloads", include_str!("../../../migrations/sqlite/V9__short_payloads.sql")),
    ("V10__rare_whose", include_str!("../../../migrations/sqlite/V10__rare_whose.sql")),
];

/// The migrations of this program.
pub(super) fn migrations() -> Vec<Migration> {
    let read = |(name, sql): &(&str, &str)| {
        Migration::unapplied(name, sql).expect("the names of the embedded files have the form refinery asks for")
    };
    FILES.iter().map(read).collect()
}

/// The newest version that this program knows.
pub(super) fn known() -> i64 {
    migrations().iter().map(|migration| i64::from(migration.version())).max().unwrap_or(0)
}

/// Migrates the database at `path`. Holds no lock: the caller does.
pub(super) fn run(connection: &mut Connection, path: &Path, migrations: &[Migration]) -> Result<()> {
    let known = migrations.iter().map(|migration| i64::from(migration.version())).max().unwrap_or(0);
    let found = version(connection)?;
    match found {
        Some(found) if found > known => return Err(Error::TooNew { found, known }),
        Some(found) if found < known => keep_copy(connection, path, found)?,
        Some(_) => {}
        None if is_foreign(connection)? => {
            return Err(Error::Damaged(format!(
                "{} is an SQLite database of another program; name a file of its own",
                path.display()
            )));
        }
        None => {}
    }
    Runner::new(migrations).run(connection).map_err(|error| refused(path, &error))?;
    Ok(())
}

/// Changes nothing; says whether the database at `path` has the schema that this program works with.
pub(super) fn check(connection: &Connection, path: &Path, migrations: &[Migration]) -> Result<()> {
    let known = migrations.iter().map(|migration| i64::from(migration.version())).max().unwrap_or(0);
    match version(connection)? {
        Some(found) if found == known => Ok(()),
        Some(found) if found > known => Err(Error::TooNew { found, known }),
        found => Err(Error::Unavailable(format!(
            "{} has schema version {}, this program works with {known}, and store.migrate is `check`; \
             start once with `auto`",
            path.display(),
            found.unwrap_or(0)
        ))),
    }
}

/// The newest version in the database; `None` when it has none.
pub(super) fn version(connection: &Connection) -> Result<Option<i64>> {
    const EXISTS: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'refinery_schema_history'";
    const NEWEST: &str = "SELECT max(version) FROM refinery_schema_history";
    let read = || {
        if connection.query_row(EXISTS, [], |_| Ok(())).optional()?.is_none() {
            return Ok(None);
        }
        connection.query_row(NEWEST, [], |row| row.get(0))
    };
    read().map_err(|error| Fault::from(error).error)
}

fn is_foreign(connection: &Connection) -> Result<bool> {
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|error| Fault::from(error).error)?;
    Ok(tables > 0)
}

/// The copy is complete or absent: SQLite writes it under a name of its own, which is then changed.
fn keep_copy(connection: &Connection, path: &Path, version: i64) -> Result<()> {
    let copy = with_suffix(path, &format!(".before-upgrade-from-v{version}"));
    if copy.exists() {
        return Ok(());
    }
    let unfinished = with_suffix(&copy, ".part");
    let failed = |error: &dyn std::fmt::Display| {
        Error::CannotWrite(format!("the copy {} that is kept before an upgrade: {error}", copy.display()))
    };
    if let Err(error) = std::fs::remove_file(&unfinished)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(failed(&error));
    }
    super::open::create_private(&unfinished).map_err(|error| failed(&error))?;
    let target = unfinished.to_str().ok_or_else(|| failed(&"the name is no Unicode text"))?;
    connection.execute("VACUUM INTO ?1", [target]).map_err(|error| failed(&error))?;
    std::fs::rename(&unfinished, &copy).map_err(|error| failed(&error))
}

/// `path` with `suffix` behind its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn refused(path: &Path, error: &refinery::Error) -> Error {
    use refinery::error::Kind;
    match error.kind() {
        Kind::DivergentVersion(..) | Kind::MissingVersion(..) | Kind::RepeatedVersion(..) => {
            Error::Damaged(format!("{} has a schema history this program does not know: {error}", path.display()))
        }
        _ => Error::CannotWrite(format!("{} could not be brought to the present schema: {error}", path.display())),
    }
}

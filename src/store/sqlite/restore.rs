//! A copy becomes a store: beside the present one first, then in its place by one change of name, so that there is a whole
//! store at every moment. Nobody may have the store open; the old one is kept when it held anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::backup::{cannot_write, copy, remove, sync_folder};
use super::fault::Fault;
use super::liveness::Liveness;
use super::migrate::with_suffix;
use super::open::{OpenLock, name_file, refuse_obstacles};
use super::settings::SqliteSettings;
use crate::store::{Error, Result};

/// What to restore where.
#[derive(Clone, Copy, Debug)]
pub struct Restore<'a> {
    /// The copy. It should have been verified.
    pub from: &'a Path,
    /// The store's file; its folder must be there.
    pub to: &'a Path,
    /// A store that holds executions is put aside instead of being refused.
    pub put_aside: bool,
    /// Milliseconds since the epoch; part of the name of what is put aside.
    pub now_ms: i64,
}

/// What a restore did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Where the old store is now, if there was one.
    pub old: Option<PathBuf>,
}

/// Puts the copy in the place of the store. Blocks; holds off processes that want to open the store meanwhile.
///
/// # Errors
///
/// [`Error::Unavailable`] when a process uses the store, or when it holds executions and may not be put aside.
pub fn restore(what: Restore<'_>, progress: &mut dyn FnMut(u64, u64)) -> Result<Restored> {
    let Restore { from, to, put_aside, now_ms } = what;
    replace(Replace { to, put_aside, now_ms }, &mut |fresh| copy(from, fresh, progress))
}

/// What to replace.
#[derive(Clone, Copy, Debug)]
pub struct Replace<'a> {
    /// The store's file; its folder must be there.
    pub to: &'a Path,
    /// A store that holds executions is put aside instead of being refused.
    pub put_aside: bool,
    /// Milliseconds since the epoch; part of the name of what is put aside.
    pub now_ms: i64,
}

/// Puts the file that `make` makes in the place of the store. When `make` fails, all is as it was. Blocks as [`restore`]
/// does.
///
/// # Errors
///
/// As of [`restore`], and what `make` says.
pub fn replace(what: Replace<'_>, make: &mut dyn FnMut(&Path) -> Result<()>) -> Result<Restored> {
    let Replace { to, put_aside, now_ms } = what;
    refuse_obstacles(to)?;
    // Whoever opens the store takes this lock first.
    let _alone = OpenLock::take(to, &SqliteSettings::default())?;
    refuse_living(to)?;
    let old = match to.exists() {
        true => look_alone(to)?,
        false => Old::Empty,
    };
    if old != Old::Empty && !put_aside {
        let what = if old == Old::Full { "holds executions" } else { "is damaged" };
        return Err(Error::Unavailable(format!("the store {} {what}", to.display())));
    }
    let fresh = with_suffix(to, ".restoring");
    if let Err(error) = make(&fresh) {
        // A part of a store is of no use; its being there says nothing new.
        let _ = remove(&fresh);
        return Err(error);
    }
    let aside = (old != Old::Empty).then(|| with_suffix(to, &format!(".before-restore-{now_ms}")));
    let swapped = swap(&fresh, to, aside.as_deref());
    if swapped.is_err() {
        let _ = remove(&fresh);
    }
    swapped?;
    Ok(Restored { old: aside })
}

/// A look at the store, as another command line takes, is over sooner.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is in the place of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Old {
    Empty,
    Full,
    Damaged,
}

fn refuse_living(path: &Path) -> Result<()> {
    match Liveness::of(path).living() {
        0 => Ok(()),
        count => {
            let processes =
                if count == 1 { "a process that runs".to_owned() } else { format!("{count} processes that run") };
            Err(Error::Unavailable(format!("the store {} is in use by {processes}", path.display())))
        }
    }
}

/// Looks into the store with nobody else there, and leaves no log beside it.
fn look_alone(path: &Path) -> Result<Old> {
    let look = || -> rusqlite::Result<Old> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        // In this mode a log is read without the memory that connections share, which only one may do at a time.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.execute_batch("BEGIN EXCLUSIVE; ROLLBACK")?;
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let executions: i64 = match tables {
            0 => 0,
            _ => {
                connection.query_row("SELECT count(*) FROM (SELECT 1 FROM executions LIMIT 1)", [], |row| row.get(0))?
            }
        };
        // With the log copied, the file alone is the whole store.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(if executions == 0 { Old::Empty } else { Old::Full })
    };
    look().or_else(|error| match Fault::from(error).error {
        Error::Unavailable(_) => Err(Error::Unavailable(format!("the store {} is in use", path.display()))),
        Error::CannotWrite(text) => Err(name_file(path, Error::CannotWrite(text))),
        _ => Ok(Old::Damaged),
    })
}

/// The old store gets a second name, then the new one takes its first.
fn swap(fresh: &Path, to: &Path, aside: Option<&Path>) -> Result<()> {
    let failed = |error: std::io::Error| cannot_write(to, &error);
    if let Some(aside) = aside {
        // Where there are no second names the old one is copied: a rename would leave a moment without a store, in which
        // a start would make an empty one.
        fs::hard_link(to, aside).or_else(|_| fs::copy(to, aside).map(drop)).map_err(failed)?;
        for suffix in ["-wal", "-shm", "-journal"] {
            let (from, beside) = (with_suffix(to, suffix), with_suffix(aside, suffix));
            if from.exists() {
                fs::rename(from, beside).map_err(failed)?;
            }
        }
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        let stale = with_suffix(to, suffix);
        if stale.exists() {
            fs::remove_file(stale).map_err(failed)?;
        }
    }
    fs::rename(fresh, to).and_then(|()| sync_folder(to)).map_err(failed)
}

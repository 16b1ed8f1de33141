//! A copy of a database as it was at one moment, made while others write. One read transaction pins the moment, pages are
//! copied in steps, and the copy gets its name when it is whole and on the disk. No writer waits for it: in a write-ahead
//! log a reader blocks nobody.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::fault::Fault;
use super::inspect;
use super::migrate::with_suffix;
use super::open::{create_private, in_the_way, name_file};
use crate::store::{Error, Result};

/// Pages copied between two looks at who else wants the disk.
const STEP_PAGES: i32 = 512;

/// What to copy where.
#[derive(Clone, Copy, Debug)]
pub struct BackUp<'a> {
    /// The database.
    pub from: &'a Path,
    /// The copy; its folder must be there.
    pub to: &'a Path,
    /// A file of that name is replaced.
    pub replace: bool,
}

/// Copies, and tells the pages done and all of them after each step. `accept` looks at the finished copy before it gets its
/// name; what it refuses is removed. Blocks.
///
/// # Errors
///
/// [`Error::CannotWrite`] when the copy is there already or can not be written, what `accept` says, and what
/// [`inspect::status`] says of the database.
pub fn backup(
    what: BackUp<'_>,
    progress: &mut dyn FnMut(u64, u64),
    accept: &mut dyn FnMut(&Path) -> Result<()>,
) -> Result<()> {
    let BackUp { from, to, replace } = what;
    if to.is_dir() {
        return Err(Error::CannotWrite(format!("{} is a folder", to.display())));
    }
    if to.exists() && !replace {
        return Err(Error::CannotWrite(format!("{} exists already", to.display())));
    }
    if same_file(from, to) {
        return Err(Error::CannotWrite(format!("{} is the store itself", to.display())));
    }
    let part = with_suffix(to, ".part");
    let made = copy(from, &part, progress).and_then(|()| accept(&part)).and_then(|()| name(&part, to, replace));
    if made.is_err() {
        // What is left of a copy is of no use; its being there says nothing new.
        let _ = remove(&part);
    }
    made
}

/// Copies the database at `from` into a fresh private file at `to`, which is one file, whole and on the disk in the end.
pub(super) fn copy(from: &Path, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let source = inspect::connect(from)?;
    inspect::version(&source, from)?;
    remove(to).map_err(|error| cannot_write(to, &error))?;
    create_private(to).map_err(|error| in_the_way(to, &error))?;
    let in_source = |error: rusqlite::Error| name_file(from, Fault::from(error).error);
    let in_copy = |error: rusqlite::Error| name_file(to, Fault::from(error).error);
    // The transaction stays open: without it each change of another connection would begin the copy anew.
    let moment = source.unchecked_transaction().map_err(in_source)?;
    moment.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(in_source)?;
    let mut target = Connection::open(to).map_err(in_copy)?;
    target.pragma_update(None, "synchronous", "OFF").map_err(in_copy)?;
    {
        let backup = Backup::new(&source, &mut target).map_err(in_copy)?;
        loop {
            let step = backup.step(STEP_PAGES).map_err(in_copy)?;
            let pages = backup.progress();
            let all = u64::from(pages.pagecount.unsigned_abs());
            progress(all - u64::from(pages.remaining.unsigned_abs()).min(all), all);
            match step {
                StepResult::Done => break,
                StepResult::More => std::thread::yield_now(),
                // Nobody else knows the copy, and a reader of the log waits for nobody: this is a moment's matter.
                _ => std::thread::sleep(std::time::Duration::from_millis(1)),
            }
        }
    }
    drop(moment);
    // The source says in its first page that it has a log beside it; the copy has none.
    target.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).map_err(in_copy)?;
    target.close().map_err(|(_, error)| in_copy(error))?;
    File::open(to).and_then(|file| file.sync_all()).map_err(|error| cannot_write(to, &error))
}

/// Gives a finished file its name, for good.
pub(in crate::store) fn name(part: &Path, to: &Path, replace: bool) -> Result<()> {
    let named = match replace {
        true => fs::rename(part, to),
        // A link refuses where a name would replace what came meanwhile.
        false => fs::hard_link(part, to).and_then(|()| fs::remove_file(part)).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Err(error),
            _ => fs::rename(part, to),
        }),
    };
    named.and_then(|()| sync_folder(to)).map_err(|error| cannot_write(to, &error))
}

/// Removes a database and what SQLite keeps beside it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        match fs::remove_file(with_suffix(path, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Makes the names in the folder of `path` survive a loss of power.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Error {
    Error::CannotWrite(format!("{}: {error}", path.display()))
}

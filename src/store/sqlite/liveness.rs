//! Which processes live: each holds a lock on a file of its own, which the operating system releases when it dies.
//! Asks no clock.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::model::id::ProcessId;
use crate::store::{Error, Result};

/// The folder of lock files beside a database.
pub(super) struct Liveness {
    folder: PathBuf,
    own: Mutex<Vec<(ProcessId, File)>>,
}

impl Liveness {
    /// Of the database at `path`.
    pub(super) fn of(path: &Path) -> Liveness {
        let mut folder = path.as_os_str().to_owned();
        folder.push(".processes");
        Liveness { folder: folder.into(), own: Mutex::new(Vec::new()) }
    }

    /// Takes the lock of `process`; it lives until [`Liveness::release`] or the end of this operating-system process.
    pub(super) fn announce(&self, process: ProcessId) -> Result<()> {
        if self.is_own(process) {
            return Ok(());
        }
        let file = self
            .lock(process)
            .map_err(|error| Error::CannotWrite(format!("the file that says that process {process} lives: {error}")))?;
        self.own().push((process, file));
        Ok(())
    }

    /// True for a process announced here.
    pub(super) fn is_own(&self, process: ProcessId) -> bool {
        self.own().iter().any(|(own, _)| *own == process)
    }

    /// True while `process` holds its lock. A process that never announced itself does not live; when the operating
    /// system can not say, it does: a call that waits too long is mended later, one that runs twice is not.
    pub(super) fn is_alive(&self, process: ProcessId) -> bool {
        if self.is_own(process) {
            return true;
        }
        match File::open(self.path(process)) {
            // Dropping the file gives a lock back that was ours to take.
            Ok(file) => !matches!(file.try_lock(), Ok(())),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// How many processes live, announced in the database or not.
    pub(super) fn living(&self) -> usize {
        let Ok(entries) = fs::read_dir(&self.folder) else { return 0 };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.parse().ok());
        names.filter(|process| self.is_alive(*process)).count()
    }

    /// Removes the file of a dead process.
    pub(super) fn bury(&self, process: ProcessId) {
        if !self.is_alive(process) {
            // A file that stays says nothing: nobody holds its lock.
            let _ = fs::remove_file(self.path(process));
        }
    }

    /// Gives up every lock held here: to all others these processes are dead.
    pub(super) fn release(&self) {
        self.own().clear();
    }

    fn lock(&self, process: ProcessId) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.path(process);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(io::Error::other("another process has the same id")),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn path(&self, process: ProcessId) -> PathBuf {
        self.folder.join(process.to_string())
    }

    fn own(&self) -> std::sync::MutexGuard<'_, Vec<(ProcessId, File)>> {
        self.own.lock().expect("no thread panics with this lock")
    }
}

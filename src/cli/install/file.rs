//! A configuration file on disk: read whole, copied before it is changed, replaced in one step, never by halves. Knows nothing
//! of what is in it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::cli::failure::{Exit, Failure};

/// The largest file that is taken for a configuration.
const BYTES_MAX: u64 = 64 << 20;

/// A file as it was read.
#[derive(Clone, Debug)]
pub struct Original {
    /// Where it really is, links followed.
    pub path: PathBuf,
    /// What was in it; `None`: it is not there yet.
    pub bytes: Option<Vec<u8>>,
}

impl Original {
    /// Reads a file. Errors: it is there and can not be read.
    pub fn read(path: &Path) -> Result<Original, Failure> {
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Original { path: path.to_path_buf(), bytes: None });
            }
            Err(error) => return Err(unreadable(path, &error)),
        };
        let metadata = fs::metadata(&real).map_err(|error| unreadable(path, &error))?;
        if !metadata.is_file() {
            return Err(Failure::usage(format!("{} is no file", path.display())));
        }
        if metadata.len() > BYTES_MAX {
            return Err(Failure::usage(format!("{} is too large for a configuration", path.display())));
        }
        let bytes = fs::read(&real).map_err(|error| unreadable(path, &error))?;
        Ok(Original { path: real, bytes: Some(bytes) })
    }

    /// Copies what was read beside the file, for its owner's eyes only. Gives the copy's path.
    pub fn back_up(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(bytes) = &self.bytes else { return Ok(None) };
        for n in 1u32.. {
            let copy = beside(&self.path, &format!("durable-mcp-backup-{n}"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy) {
                Ok(mut file) => {
                    let written = file.write_all(bytes).and_then(|()| file.sync_all());
                    written.map_err(|error| unwritable(&copy, &error))?;
                    keep_owner(&self.path, &copy);
                    return Ok(Some(copy));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unwritable(&copy, &error)),
            }
        }
        Ok(None)
    }

    /// Puts these bytes in the file's place, unless somebody has changed it since it was read. Errors: it changed, or it can
    /// not be written.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), Failure> {
        if self.bytes.is_some() {
            // A file that its owner made read-only is not to be replaced behind its owner's back.
            OpenOptions::new().write(true).open(&self.path).map_err(|error| unwritable(&self.path, &error))?;
        } else if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|error| unwritable(&self.path, &error))?;
        }
        let draft = beside(&self.path, &format!("durable-mcp-{}.new", std::process::id()));
        let _ = fs::remove_file(&draft);
        let written = self
            .write_draft(&draft, bytes)
            .and_then(|()| if self.is_unchanged() { fs::rename(&draft, &self.path).map(|()| true) } else { Ok(false) });
        if !matches!(written, Ok(true)) {
            let _ = fs::remove_file(&draft);
        }
        match written {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.changed()),
            Err(error) => Err(unwritable(&self.path, &error)),
        }
    }

    /// Takes the file away, unless somebody has changed it since it was read. Errors: it changed, or it can not be removed.
    pub fn remove(&self) -> Result<(), Failure> {
        if !self.is_unchanged() {
            return Err(self.changed());
        }
        fs::remove_file(&self.path).map_err(|error| unwritable(&self.path, &error))
    }

    fn changed(&self) -> Failure {
        let words = format!("{} was changed by somebody else just now", self.path.display());
        Failure::new(Exit::Conflict, words).next("nothing was written; run the command again")
    }

    fn write_draft(&self, draft: &Path, bytes: &[u8]) -> io::Result<()> {
        let mode = fs::metadata(&self.path).map_or(0o600, |metadata| metadata.permissions().mode() & 0o7777);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
        file.write_all(bytes)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        keep_owner(&self.path, draft);
        Ok(())
    }

    fn is_unchanged(&self) -> bool {
        match (&self.bytes, fs::read(&self.path)) {
            (Some(bytes), Ok(now)) => *bytes == now,
            (None, Err(error)) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }
}

/// Gives a copy to the owner of the original, where we may.
fn keep_owner(original: &Path, copy: &Path) {
    let owner = |path: &Path| fs::metadata(path).map(|metadata| (metadata.uid(), metadata.gid()));
    if let (Ok(wanted), Ok(is)) = (owner(original), owner(copy))
        && wanted != is
    {
        // Only root may; for everybody else the two are the same already, or the file could not be replaced.
        let _ = std::os::unix::fs::chown(copy, Some(wanted.0), Some(wanted.1));
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failure, format!("{} can not be read: {error}", path.display()))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failure, format!("{} can not be written: {error}", path.display()))
        .next("check its permissions and those of its folder")
}

//! A temporary folder that only its user can enter, removed when it is dropped unless it was to be kept. Nothing in it
//! belongs to anybody else.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::failure::{Exit, Failure};

/// How often a folder in which a dying process still writes is removed again.
const REMOVE_TRIES: u32 = 40;
const REMOVE_PAUSE: Duration = Duration::from_millis(50);

/// See the module.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    /// Makes a folder for this purpose in the system's folder for temporary files. Errors: it can not be made.
    pub fn make(purpose: &str, keep: bool) -> Result<Folder, Failure> {
        Folder::make_in(&std::env::temp_dir(), purpose, keep)
    }

    /// Makes a folder below `parent`. Errors: it can not be made.
    pub fn make_in(parent: &Path, purpose: &str, keep: bool) -> Result<Folder, Failure> {
        let random = hex::encode(&crate::engine::entropy()[..4]);
        let path = parent.join(format!("durable-mcp-{purpose}-{random}"));
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            Failure::new(Exit::Failure, format!("{}: the folder can not be made: {error}", path.display()))
                .next("set TMPDIR to a folder that can be written")
        })?;
        Ok(Folder { path, keep })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True when it stays.
    pub fn is_kept(&self) -> bool {
        self.keep
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        for _ in 0..REMOVE_TRIES {
            match std::fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(REMOVE_PAUSE),
                _ => return,
            }
        }
        eprintln!("warning: {} can not be removed", self.path.display());
    }
}

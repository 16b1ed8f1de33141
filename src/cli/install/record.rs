//! What `install` did to a file, kept in the data folder so that `uninstall` can take back exactly that. The record holds the
//! original text of entries, secrets included: only its user can read it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cli::stores::make_private_folder;

/// Everything that was done to one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The file.
    pub file: PathBuf,
    /// The client.
    pub client: String,
    /// The file was not there before.
    pub created: bool,
    /// The digest of what was written last.
    pub written: String,
    /// One for each entry.
    pub changes: Vec<Change>,
    /// Copies that were made of the file.
    pub backups: Vec<PathBuf>,
}

/// What was done to one entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The names that lead to it.
    pub at: Vec<String>,
    /// The name of its store.
    #[serde(default)]
    pub store: Option<String>,
    /// Its text before; empty for an entry that was added.
    #[serde(default)]
    pub original: String,
    /// Its text behind `wrap`.
    pub installed: String,
    /// The server's program as `wrap` is told it.
    #[serde(default)]
    pub command: Option<String>,
    /// The variables that were added to it.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
    /// For an added entry: everything that was put into the file, up to the end of the value that `inserted_at` leads to.
    #[serde(default)]
    pub inserted: Option<String>,
    /// Where that ends.
    #[serde(default)]
    pub inserted_at: Vec<String>,
}

impl Record {
    /// The change of an entry.
    pub fn change(&self, at: &[String]) -> Option<&Change> {
        self.changes.iter().find(|change| change.at == at)
    }

    /// Notes a change, in the place of an earlier one of the same entry.
    pub fn note(&mut self, change: Change) {
        self.changes.retain(|earlier| earlier.at != change.at);
        self.changes.push(change);
    }
}

/// The digest of a file's bytes.
pub fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The records of this user.
pub struct Records {
    folder: PathBuf,
    private: PathBuf,
}

impl Records {
    /// Those in this data folder.
    pub fn of(data_dir: &Path) -> Records {
        Records { folder: data_dir.join("clients"), private: data_dir.to_path_buf() }
    }

    /// What is known of a file. A record that can not be read is none.
    pub fn read(&self, file: &Path) -> Option<Record> {
        let text = fs::read(self.path(file)).ok()?;
        serde_json::from_slice::<Record>(&text).ok().filter(|record| record.file == file)
    }

    /// All of them.
    pub fn all(&self) -> Vec<Record> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        entries.filter_map(|entry| serde_json::from_slice(&fs::read(entry.ok()?.path()).ok()?).ok()).collect()
    }

    /// Writes what is known of a file; forgets it when nothing of ours is left in it.
    pub fn write(&self, record: &Record) -> io::Result<()> {
        let path = self.path(&record.file);
        if record.changes.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        make_private_folder(&self.private)?;
        make_private_folder(&self.folder)?;
        let draft = path.with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&draft);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(&serde_json::to_vec_pretty(record).map_err(io::Error::other)?)?;
        file.sync_all()?;
        fs::rename(&draft, &path)
    }

    fn path(&self, file: &Path) -> PathBuf {
        self.folder.join(format!("{}.json", &digest(file.as_os_str().as_encoded_bytes())[..16]))
    }
}

//! The ledger: one synced line for each start and end of a run, the counter of side effects. Never rewrites a line and
//! never judges: how many starts are right is the test's business.

use std::fs::{File, OpenOptions};
use std::io::{Result, Write};
use std::path::PathBuf;

pub struct Ledger {
    path: PathBuf,
}

/// What the caller of a run told about itself in `_meta`; `-` where it told nothing.
pub struct Origin {
    pub key: String,
    pub token: String,
}

impl Ledger {
    pub fn new(path: PathBuf) -> Ledger {
        Ledger { path }
    }

    /// Writes the start of a run, on disk before this returns.
    pub fn start(&self, text: &str, origin: &Origin) -> Result<()> {
        let Origin { key, token } = origin;
        self.line(&format!("start {} key={key} token={token} pid={}", one_line(text), std::process::id()))
    }

    /// Writes how a run ended: `done`, `failed` or `cancelled`.
    pub fn end(&self, how: &str, text: &str) -> Result<()> {
        self.line(&format!("{how} {}", one_line(text)))
    }

    pub fn starts(&self, text: &str) -> usize {
        let head = format!("start {} key=", one_line(text));
        self.lines().iter().filter(|line| line.starts_with(&head)).count()
    }

    pub fn dones(&self, text: &str) -> usize {
        let wanted = format!("done {}", one_line(text));
        self.lines().iter().filter(|line| **line == wanted).count()
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.path).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn line(&self, line: &str) -> Result<()> {
        // One write to a file opened for appending: lines of several processes do not mix.
        let mut file: File = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_all()
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

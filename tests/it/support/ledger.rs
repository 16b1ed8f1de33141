//! Reads the fixture's ledger: which runs started, with which key and token, and how they ended. Never writes it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::eventually;

pub struct Ledger {
    path: PathBuf,
}

/// The start of one run as the fixture wrote it; `None` where `_meta` said nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    pub text: String,
    pub key: Option<String>,
    pub token: Option<String>,
    pub pid: u32,
}

impl Ledger {
    /// The ledger in a folder; the fixture gets its path by `--ledger` or `KIT_LEDGER`.
    pub fn in_folder(folder: &Path) -> Ledger {
        Ledger { path: folder.join("ledger.txt") }
    }

    pub fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// All lines in their order.
    pub fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.path).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub fn all_starts(&self) -> Vec<Start> {
        self.lines().iter().filter_map(|line| Start::parse(line)).collect()
    }

    /// The starts of one text: the count of its side effects.
    pub fn starts(&self, text: &str) -> Vec<Start> {
        self.all_starts().into_iter().filter(|start| start.text == text).collect()
    }

    pub fn dones(&self, text: &str) -> usize {
        self.ends("done", text)
    }

    pub fn cancels(&self, text: &str) -> usize {
        self.ends("cancelled", text)
    }

    fn ends(&self, how: &str, text: &str) -> usize {
        let wanted = format!("{how} {text}");
        self.lines().iter().filter(|line| **line == wanted).count()
    }

    pub async fn wait_for_start(&self, text: &str, deadline: Duration) {
        eventually(&format!("a start of {text}"), deadline, || !self.starts(text).is_empty()).await;
    }

    pub async fn wait_for_done(&self, text: &str, deadline: Duration) {
        eventually(&format!("an end of {text}"), deadline, || self.dones(text) > 0).await;
    }
}

impl Start {
    fn parse(line: &str) -> Option<Start> {
        let rest = line.strip_prefix("start ")?;
        let (text, rest) = rest.rsplit_once(" key=")?;
        let (key, rest) = rest.split_once(" token=")?;
        let (token, pid) = rest.split_once(" pid=")?;
        let told = |value: &str| (value != "-").then(|| value.to_owned());
        Some(Start { text: text.to_owned(), key: told(key), token: told(token), pid: pid.parse().ok()? })
    }
}

//! This program as `serve` in a folder: started on a free or a given port, ready, killed and started again. Each start has
//! a log of its own. Writes no configuration but the one it is given.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::address::Address;
use super::super::failure::{Exit, Failure};
use super::process::{Process, Program, own_program};
use crate::store::{self, Store, StoreSettings};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// How long a start may take.
const START_DEADLINE: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LISTENS: &str = " listens on ";

/// How a `serve` is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What people call it, and its log.
    pub name: String,
    /// `mcp`, `worker`, `scheduler`, separated by commas.
    pub roles: &'static str,
    /// Where it listens.
    pub listen: String,
}

impl Launch {
    /// On a free port of the loopback.
    pub fn new(name: &str, roles: &'static str) -> Launch {
        Launch { name: name.to_owned(), roles, listen: "127.0.0.1:0".to_owned() }
    }
}

/// A running `serve`. Dropped: killed.
#[derive(Debug)]
pub struct Running {
    /// How it was started.
    pub launch: Launch,
    /// The process.
    pub process: Process,
    /// Its MCP endpoint.
    pub url: String,
}

impl Running {
    /// The host and port of its listener.
    pub fn authority(&self) -> &str {
        let rest = self.url.strip_prefix("http://").unwrap_or(&self.url);
        rest.split('/').next().unwrap_or(rest)
    }

    /// Its address.
    pub fn address(&self) -> Result<Address, Failure> {
        Address::parse(&self.url)
    }
}

/// One store, and the processes on it.
#[derive(Debug)]
pub struct Site {
    folder: PathBuf,
    starts: std::sync::atomic::AtomicUsize,
}

impl Site {
    /// A site with this configuration (TOML) in `folder`.
    pub fn new(folder: &Path, config: &str) -> Result<Site, Failure> {
        std::fs::write(folder.join("durable-mcp.toml"), config)
            .map_err(|error| Failure::new(Exit::Failure, format!("{}: {error}", folder.display())))?;
        Ok(Site { folder: folder.to_path_buf(), starts: std::sync::atomic::AtomicUsize::new(0) })
    }

    /// Where everything is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The data folder of its processes.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The ledger of `demo_append`, and that of `demo_flaky`.
    pub fn demo_ledger(&self, name: &str) -> PathBuf {
        self.data_dir().join("demo").join(name)
    }

    /// The lines of a ledger; none when nothing was written yet.
    pub fn ledger_lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.demo_ledger(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// What every process of this site is told by its environment.
    pub fn env(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("DURABLE_MCP_CONFIG", self.folder.join("durable-mcp.toml").into_os_string()),
            ("DURABLE_MCP_DATA_DIR", self.data_dir().into_os_string()),
        ]
    }

    /// Starts a `serve` with the demo tools and waits until it listens; a listener that is open serves.
    /// Errors: it ended, with its last words, or took too long.
    pub async fn start(&self, launch: Launch) -> Result<Running, Failure> {
        let number = self.starts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let argv = vec![
            own_program()?.into_os_string(),
            "serve".into(),
            "--demo".into(),
            "--roles".into(),
            launch.roles.into(),
            "--listen".into(),
            launch.listen.clone().into(),
        ];
        let log = format!("{number:02}-{}", launch.name.replace(' ', "-"));
        let mut process =
            Process::start(Program { log, folder: &self.folder, cwd: None, argv, env: self.env(), piped: false })?;
        let end = Instant::now() + START_DEADLINE;
        loop {
            let said = process.log();
            if let Some(url) = address_in(&said) {
                let url = url.to_owned();
                return Ok(Running { launch, process, url });
            }
            if !process.is_running() || Instant::now() >= end {
                let words = process.last_words();
                return Err(Failure::new(Exit::Failure, format!("{} did not come up: {words}", launch.name)));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Opens the store that the processes share, for reading what they did.
    pub async fn open_store(&self) -> Result<Arc<dyn Store>, Failure> {
        let url = format!("sqlite:{}", self.data_dir().join("durable-mcp.db").display());
        Ok(store::open(&url, &StoreSettings::default()).await?)
    }
}

/// The address in the log of a `serve`, once its line is whole.
fn address_in(log: &str) -> Option<&str> {
    let whole = &log[..=log.rfind('\n')?];
    whole.lines().find_map(|line| Some(line.split_once(LISTENS)?.1.trim()))
}

//! The processes of a demo: who is who, by role and process id. Starts, kills and counts them; tells nothing.

use std::path::Path;
use std::sync::Arc;

use super::super::failure::Failure;
use super::super::stage::caller::{Caller, Place};
use super::super::stage::program::{Launch, Running, Site};
use super::log::{Log, pid_of};
use crate::model::revision::Era;

/// See the module.
pub struct Cast {
    /// The folder and configuration they share.
    pub site: Site,
    names: Vec<(u32, String)>,
}

impl Cast {
    /// Nobody yet.
    pub fn new(folder: &Path, config: &str) -> Result<Cast, Failure> {
        Ok(Cast { site: Site::new(folder, config)?, names: Vec::new() })
    }

    /// Starts a process and remembers who it is.
    pub async fn start(&mut self, launch: Launch) -> Result<Running, Failure> {
        let running = self.site.start(launch).await?;
        self.names.push((running.process.pid(), running.launch.name.clone()));
        Ok(running)
    }

    /// Kills a process, if it still runs, and starts it again on the same address.
    pub async fn restart(&mut self, mut running: Running) -> Result<Running, Failure> {
        running.process.kill();
        let launch = Launch { listen: running.authority().to_owned(), ..running.launch.clone() };
        drop(running);
        self.start(launch).await
    }

    /// Who stands behind a worker's name in the log, with process id.
    pub fn name(&self, worker: &str) -> String {
        let known = self.names.iter().rev().find(|(pid, _)| pid_of(worker) == Some(*pid));
        known.map_or_else(|| worker.to_owned(), |(pid, name)| format!("{name} (pid {pid})"))
    }

    /// Opens the store that they share.
    pub async fn open_log(&self) -> Result<Log, Failure> {
        Log::open(&self.site).await
    }
}

/// Who someone is, with process id.
pub fn with_pid(running: &Running) -> String {
    format!("{} (pid {})", running.launch.name, running.process.pid())
}

/// Where a server's callers call.
pub fn place(server: &Running) -> Result<Arc<Place>, Failure> {
    Ok(Arc::new(Place::new(&server.address()?, None)?))
}

/// A caller of a server.
pub fn caller(server: &Running, era: Era, name: &str) -> Result<Caller, Failure> {
    Ok(Caller::new(place(server)?, era, name))
}

//! `db migrate|status|backup|restore|prune|verify|conformance`: the files and databases behind executions, of this
//! configuration or of every store of this user. Knows no SQL: the store's driver does the work.

mod backup;
mod conformance;
mod database;
mod migrate;
mod place;
mod progress;
mod prune;
mod restore;
pub mod status;
pub mod verify;

pub use conformance::ConformanceView;
pub use prune::PruneView;
pub use status::disk_free;

use super::args::{DbArgs, DbCommand};
use super::failure::{Exit, Failure};
use super::output::Output;
use super::stage::folder::Folder;
use crate::store;

/// Runs the command.
pub async fn run(args: DbArgs, out: Output) -> Result<Exit, Failure> {
    match args.command {
        DbCommand::Migrate(args) => migrate::run(args).await,
        DbCommand::Status(args) => status::run(args, out).await,
        DbCommand::Backup(args) => backup::run(args).await,
        DbCommand::Restore(args) => restore::run(args).await,
        DbCommand::Prune(args) => prune::run(args, out).await,
        DbCommand::Verify(args) => verify::run(args, out).await,
        DbCommand::Conformance(args) => conformance::run(args, out).await,
    }
}

/// Runs what blocks on a thread that may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> store::Result<T> + Send + 'static) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|error| Failure::new(Exit::Failure, format!("the work was lost: {error}")))??)
}

/// A private folder for rows of a database that are checked here, gone when it is dropped.
fn scratch() -> Result<Folder, Failure> {
    Folder::make("checked", false)
}

fn json(view: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(view).map_err(|error| Failure::new(Exit::Failure, error.to_string()))
}

/// A count of bytes for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut amount = bytes as f64;
    let mut unit = "";
    for next in UNITS {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = next;
    }
    format!("{amount:.1} {unit}")
}

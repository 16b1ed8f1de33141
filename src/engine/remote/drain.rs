//! Asking a worker to finish what it has and to take nothing more, through its row: a remote worker learns it with its next
//! request, at whatever process; the worker of a process of ours when that reads the rows, within a second.

use thiserror::Error;

use super::listing::{self, WorkerView};
use crate::model::id::ProcessId;
use crate::store::{self, Store, WorkerChange};

/// Why a worker is not asked to end.
#[derive(Debug, Error)]
pub enum DrainRefused {
    /// There is none with this id that the caller may see.
    #[error("there is no such worker")]
    Missing,
    /// It is that of a `wrap`: nobody else may run what came to it.
    #[error("this worker is that of a `wrap` and ends with it")]
    Bound,
    /// It has ended.
    #[error("this worker is gone already")]
    Gone,
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Asks the worker of this id, a remote one only in `namespace` (absent: whichever), to finish what it has and to take
/// nothing more.
pub async fn drain(
    store: &dyn Store,
    (id, namespace): (ProcessId, Option<&str>),
    now_ms: i64,
) -> std::result::Result<WorkerView, DrainRefused> {
    let workers = listing::workers(store, namespace).await?;
    let wanted = id.to_string();
    let view = workers.into_iter().find(|worker| worker.id == wanted).ok_or(DrainRefused::Missing)?;
    if view.bound {
        return Err(DrainRefused::Bound);
    }
    match store.change_workers(vec![id], WorkerChange::Draining, now_ms).await? {
        0 => Err(DrainRefused::Gone),
        _ => Ok(WorkerView { state: "draining", ..view }),
    }
}

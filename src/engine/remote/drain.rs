//! Asking a worker to finish what it has and to end; and the worker of this process among the workers. Tells a remote
//! worker through its row: it learns it with its next request, at whatever process.

use std::sync::Arc;

use thiserror::Error;

use super::listing::{self, WorkerView};
use crate::engine::Engine;
use crate::model::id::ProcessId;
use crate::model::principal::DEFAULT_NAMESPACE;
use crate::store::{self, LeaseKey, Store, WorkerChange, WorkerKind, WorkerRow};

/// Why a worker is not asked to end.
#[derive(Debug, Error)]
pub enum DrainRefused {
    /// There is none with this id that the caller may see.
    #[error("there is no such worker")]
    Missing,
    /// It lives inside a process of ours and ends with it.
    #[error("this worker lives inside a server process and ends with it")]
    Local,
    /// It has ended.
    #[error("this worker is gone already")]
    Gone,
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Asks the remote worker of this id, if it is in `namespace` (absent: whichever), to finish what it has and to end.
pub async fn drain(
    store: &dyn Store,
    (id, namespace): (ProcessId, Option<&str>),
    now_ms: i64,
) -> std::result::Result<WorkerView, DrainRefused> {
    let workers = listing::workers(store, namespace).await?;
    let wanted = id.to_string();
    let view = workers.into_iter().find(|worker| worker.id == wanted).ok_or(DrainRefused::Missing)?;
    if view.kind == WorkerKind::Local.as_str() {
        return Err(DrainRefused::Local);
    }
    match store.change_workers(vec![id], WorkerChange::Draining, now_ms).await? {
        0 => Err(DrainRefused::Gone),
        _ => Ok(WorkerView { state: "draining", ..view }),
    }
}

impl Engine {
    /// Lists the worker of this process among the workers, until the process ends.
    pub async fn announce_worker(self: Arc<Self>) {
        let now_ms = self.now_ms();
        let row = WorkerRow {
            id: self.process,
            name: self.worker_name.clone(),
            namespace: DEFAULT_NAMESPACE.to_owned(),
            principal: String::new(),
            kind: WorkerKind::Local,
            slots: u32::try_from(self.settings.slots).unwrap_or(u32::MAX),
            sdk: Some(concat!("durable-mcp/", env!("CARGO_PKG_VERSION")).to_owned()),
            tools: "[]".into(),
            // Its leases have no tokens that leave the process.
            lease_key: LeaseKey([0; 32]),
            registered_at_ms: now_ms,
            last_seen_at_ms: now_ms,
            silent_at_ms: 0,
            draining: false,
            gone_at_ms: None,
        };
        if let Err(error) = self.store.put_worker(row).await {
            tracing::warn!(code = error.code(), "the worker of this process could not be listed: {error}");
        }
    }
}

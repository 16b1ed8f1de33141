//! Who follows changes of executions in this process without waiting for them as a caller: streams that tell of tasks.
//! Leaves no mark. What other processes change is seen by looking.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::Engine;
use crate::model::id::ExecutionId;

/// What runs elsewhere is looked at so often at least, in milliseconds.
const POLL_MS: u64 = 1_000;
/// Changes in so short a time are one change.
const PAUSE: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<HashMap<ExecutionId, Vec<Arc<Notify>>>>);

impl Watchers {
    /// Tells everybody who follows this execution that something of it changed.
    pub(super) fn tell(&self, id: ExecutionId) {
        if let Some(followers) = self.entries().get(&id) {
            followers.iter().for_each(|follower| follower.notify_one());
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ExecutionId, Vec<Arc<Notify>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A follower of some executions; leaves when dropped.
pub struct Following {
    engine: Arc<Engine>,
    ids: Vec<ExecutionId>,
    changed: Arc<Notify>,
}

impl Following {
    /// Waits until something may have changed, here or in another process. What changed since the last time is not
    /// missed, unless this was left in the middle: then it is seen with the next change, or by looking.
    pub async fn change(&self) {
        tokio::select! {
            () = self.changed.notified() => {}
            () = self.engine.store.changed(POLL_MS) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }

    /// Follows this one no longer.
    pub fn leave(&mut self, id: ExecutionId) {
        self.ids.retain(|known| *known != id);
        self.out(id);
    }

    fn out(&self, id: ExecutionId) {
        let mut entries = self.engine.watchers.entries();
        if let Some(followers) = entries.get_mut(&id) {
            followers.retain(|follower| !Arc::ptr_eq(follower, &self.changed));
            if followers.is_empty() {
                entries.remove(&id);
            }
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        for id in std::mem::take(&mut self.ids) {
            self.out(id);
        }
    }
}

impl Engine {
    /// Follows executions from now on.
    pub fn follow(self: &Arc<Self>, ids: Vec<ExecutionId>) -> Following {
        let changed = Arc::new(Notify::new());
        let mut entries = self.watchers.entries();
        for id in &ids {
            entries.entry(*id).or_default().push(changed.clone());
        }
        drop(entries);
        Following { engine: self.clone(), ids, changed }
    }
}

//! Who follows changes of executions in this process without waiting for them as a caller: streams that tell of tasks.
//! Leaves no mark. What other processes change is told by the one look of `foreign.rs`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::Engine;
use crate::model::execution::Head;
use crate::model::id::ExecutionId;

/// A follower that was told nothing looks so often all the same.
const POLL: Duration = Duration::from_secs(5);
/// Changes in so short a time are one change.
const PAUSE: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<HashMap<ExecutionId, Followed>>);

/// An execution that is followed.
#[derive(Debug, Default)]
struct Followed {
    /// The number of the next event when it was looked at last.
    next_seq: Option<i64>,
    followers: Vec<Arc<Notify>>,
}

impl Watchers {
    /// Tells everybody who follows this execution that something of it changed.
    pub(super) fn tell(&self, id: ExecutionId) {
        if let Some(followed) = self.entries().get(&id) {
            followed.followers.iter().for_each(|follower| follower.notify_one());
        }
    }

    /// What is followed.
    pub(super) fn ids(&self) -> Vec<ExecutionId> {
        self.entries().keys().copied().collect()
    }

    /// Tells the followers of this execution when its row has moved on since the last look.
    pub(super) fn look(&self, head: &Head) {
        if let Some(followed) = self.entries().get_mut(&head.id())
            && followed.next_seq.replace(head.next_seq) != Some(head.next_seq)
        {
            followed.followers.iter().for_each(|follower| follower.notify_one());
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ExecutionId, Followed>> {
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
        // Both ends mean: look.
        let _ = tokio::time::timeout(POLL, self.changed.notified()).await;
        tokio::time::sleep(PAUSE).await;
    }

    /// Follows this one no longer.
    pub fn leave(&mut self, id: ExecutionId) {
        self.ids.retain(|known| *known != id);
        self.out(id);
    }

    fn out(&self, id: ExecutionId) {
        let mut entries = self.engine.watchers.entries();
        if let Some(followed) = entries.get_mut(&id) {
            followed.followers.retain(|follower| !Arc::ptr_eq(follower, &self.changed));
            if followed.followers.is_empty() {
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
            entries.entry(*id).or_default().followers.push(changed.clone());
        }
        drop(entries);
        // What runs elsewhere is looked at for everybody here at once.
        self.look_elsewhere();
        Following { engine: self.clone(), ids, changed }
    }
}

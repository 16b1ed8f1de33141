//! Who looks at an execution until it settles without being its caller: operators and scripts. Unlike a caller, an observer
//! leaves no mark: who waits decides whether a repeated call is taken, and somebody who only looks must not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::{Engine, Result};
use crate::model::execution::Head;
use crate::model::id::ExecutionId;

/// Whoever looks reads the row itself so often at least, although one look for all of this process tells it sooner.
const POLL: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug, Default)]
pub struct Observers(Mutex<HashMap<ExecutionId, Entry>>);

#[derive(Debug)]
struct Entry {
    observers: usize,
    settled: Arc<Notify>,
}

impl Observers {
    /// Tells everybody who looks at this execution that it has settled.
    pub(super) fn tell(&self, id: ExecutionId) {
        if let Some(entry) = self.entries().get(&id) {
            entry.settled.notify_waiters();
        }
    }

    /// What is looked at.
    pub(super) fn ids(&self) -> Vec<ExecutionId> {
        self.entries().keys().copied().collect()
    }

    fn enter(&self, id: ExecutionId) -> Seat<'_> {
        let mut entries = self.entries();
        let entry = entries.entry(id).or_insert_with(|| Entry { observers: 0, settled: Arc::default() });
        entry.observers += 1;
        Seat { all: self, id, settled: entry.settled.clone() }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ExecutionId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Seat<'a> {
    all: &'a Observers,
    id: ExecutionId,
    settled: Arc<Notify>,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut entries = self.all.entries();
        if let Some(entry) = entries.get_mut(&self.id) {
            entry.observers -= 1;
            if entry.observers == 0 {
                entries.remove(&self.id);
            }
        }
    }
}

impl Engine {
    /// The row once it has ended or is `unknown`, or as it stands after `wait`; `None` when there is no such execution.
    pub async fn observe(&self, id: ExecutionId, wait: Duration) -> Result<Option<Head>> {
        let end = Instant::now() + wait;
        let seat = self.observers.enter(id);
        // What runs elsewhere is looked at for everybody here at once.
        self.look_elsewhere();
        loop {
            let told = seat.settled.notified();
            tokio::pin!(told);
            // From here on nothing is missed, so the look comes after it.
            told.as_mut().enable();
            let head = self.store.heads(&[id]).await?.pop();
            if Instant::now() >= end || head.as_ref().is_none_or(|head| head.state.is_settled()) {
                return Ok(head);
            }
            tokio::select! {
                // Both ends mean: look again.
                _ = timeout_at(end.min(Instant::now() + POLL), told) => {}
                () = self.draining.cancelled() => return Ok(head),
            }
        }
    }
}

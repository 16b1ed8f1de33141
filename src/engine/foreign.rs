//! What other processes change, brought to whoever waits here: callers, observers and followers of executions that run
//! elsewhere, work that was cancelled elsewhere, workers and processes that came and went. One look at the store for all of
//! them, however many wait. Polling is the truth; a wake-up only makes it sooner.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Engine, Result};
use crate::model::execution::State;
use crate::model::id::ExecutionId;

/// How often callers of executions that run elsewhere look at the store at least, in milliseconds.
const FOREIGN_POLL_MS: u64 = 1_000;
/// How often a process looks whether what it runs was cancelled or taken over elsewhere, in milliseconds.
const OWN_LEASES_POLL_MS: u64 = 500;
/// How often a process looks for executions that others found `unknown`.
const UNKNOWN_POLL: Duration = Duration::from_secs(5);
/// The shortest pause between two looks for work in the store, so that a busy neighbour does not keep us busy.
const WORK_PAUSE: Duration = Duration::from_millis(5);

impl Engine {
    /// Callers whose execution does not run here learn its end from the store; so does work that was cancelled
    /// elsewhere.
    pub(super) async fn foreign_loop(self: Arc<Self>) {
        let mut own_looked_at: Option<Instant> = None;
        loop {
            let wait = async {
                let runs = !self.running.leases().is_empty();
                let idle = self.foreign().is_empty();
                if idle && !runs {
                    self.waiters.arrival().await;
                }
                self.store.changed(if runs { OWN_LEASES_POLL_MS } else { FOREIGN_POLL_MS }).await;
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = wait => {}
            }
            let own = own_looked_at.is_none_or(|at| at.elapsed() >= Duration::from_millis(OWN_LEASES_POLL_MS));
            if own {
                own_looked_at = Some(Instant::now());
            }
            if let Err(error) = self.look_at_foreign(own).await {
                tracing::warn!(code = error.code(), "the store could not be read for waiting callers: {error}");
                tokio::select! {
                    () = self.stop.cancelled() => return,
                    () = tokio::time::sleep(Duration::from_millis(FOREIGN_POLL_MS)) => {}
                }
            }
        }
    }

    /// Workers that registered and processes that came elsewhere, and calls for remote workers that wait here.
    pub(super) async fn remote_loop(self: Arc<Self>) {
        let mut unknown_looked_at: Option<Instant> = None;
        loop {
            if let Err(error) = self.look_for_remote().await {
                tracing::warn!(code = error.code(), "the store could not be read for remote workers: {error}");
            }
            if unknown_looked_at.is_none_or(|at| at.elapsed() >= UNKNOWN_POLL) {
                unknown_looked_at = Some(Instant::now());
                if let Err(error) = self.look_for_unknown().await {
                    tracing::warn!(code = error.code(), "unknown executions could not be listed: {error}");
                }
            }
            let pause = async {
                match self.slots.claimed_lanes().is_empty() {
                    true => tokio::time::sleep(Duration::from_millis(FOREIGN_POLL_MS)).await,
                    false => self.store.changed(FOREIGN_POLL_MS).await,
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = pause => {}
            }
        }
    }

    async fn look_at_foreign(&self, own_leases: bool) -> Result<()> {
        if own_leases {
            self.stop_in_vain(&self.running.leases()).await?;
        }
        // Any process may have taken the answer.
        self.asking.look_again();
        for head in self.store.heads(&self.foreign()).await? {
            let id = head.id();
            if !matches!(head.state, State::Ready | State::Scheduled) {
                self.slots.dequeue(&head.ident.upstream, id);
            }
            self.watchers.look(&head);
            if head.state.is_settled() {
                self.observers.tell(id);
                self.settle(head, None).await?;
            } else if head.state == State::Waiting || self.waiters.knows_questions(id) {
                self.told_questions(id).await;
            }
        }
        Ok(())
    }

    /// What this process waits for or looks at, or holds a place in a queue for, and does not run itself.
    fn foreign(&self) -> Vec<ExecutionId> {
        let mut ids = self.waiters.unsettled();
        ids.extend(self.slots.waiting_ids());
        ids.extend(self.observers.ids());
        ids.extend(self.watchers.ids());
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| !self.running.contains(*id));
        ids
    }

    /// Resolves when there may be work for a worker of this process: announced here, or, where other processes live,
    /// stored by them.
    pub async fn work_available(&self) {
        // A `wrap` takes nothing of others while they live, and is alone with its file.
        if self.settings.bound || !self.has_peers() {
            return self.slots.work_available().await;
        }
        tokio::select! {
            () = self.slots.work_available() => {}
            () = async {
                tokio::time::sleep(WORK_PAUSE).await;
                // Without a free slot there is nothing to look for; a freed one announces itself.
                while !self.slots.has_room() {
                    tokio::time::sleep(Duration::from_millis(FOREIGN_POLL_MS)).await;
                }
                self.store.changed(self.settings.worker_poll_ms).await;
            } => {}
        }
    }
}

//! The loops that make time pass: expired leases, due retries, deadlines, dead processes, retention, heartbeats, and
//! the wake-up of callers whose execution runs elsewhere. Several processes may run them at once; every change is a
//! compare-and-set.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;

use super::{Engine, Result};
use crate::model::decide::Command;
use crate::model::event::ExpiryCause;
use crate::model::execution::Head;
use crate::model::id::ProcessId;
use crate::store::crash;

/// How often callers of executions that run elsewhere look at the store at least, in milliseconds.
const FOREIGN_POLL_MS: u64 = 1_000;

/// How often a process looks whether what it runs was cancelled or taken over elsewhere, in milliseconds.
const OWN_LEASES_POLL_MS: i64 = 500;

impl Engine {
    /// Settles everything that is due, once; returns when to look again (milliseconds since the epoch).
    pub async fn settle_due(&self) -> Result<i64> {
        loop {
            let now_ms = self.now_ms();
            let dead = self.store.dead_processes(now_ms).await?;
            let batch = self.settings.scheduler_batch;
            let due = self.store.due(&dead, now_ms, batch).await?;
            let full = [due.expired.len(), due.promotable.len(), due.timed_out.len()].into_iter().any(|n| n >= batch);
            let expired = due.expired.iter().map(|head| (head.id(), expiry(head, &dead)));
            let promotable = due.promotable.iter().map(|id| (*id, Command::Promote));
            let timed_out = due.timed_out.iter().map(|id| (*id, Command::TimeOut));
            let writes =
                expired.chain(promotable).chain(timed_out).map(|(id, command)| self.apply(id, command, None, None));
            if !dead.is_empty() {
                crash::point("before_settle");
            }
            for applied in join_all(writes).await {
                applied?;
            }
            if !dead.is_empty() {
                crash::point("settled");
            }
            if full {
                continue;
            }
            for process in dead {
                self.store.bury_process(process).await?;
                crash::point("buried");
            }
            let latest_ms = now_ms + self.settings.scheduler_interval_ms;
            return Ok(due.next_at_ms.map_or(latest_ms, |at_ms| at_ms.clamp(now_ms + 1, latest_ms)));
        }
    }

    /// Starts the loops of this process: heartbeats and wake-ups always, the scheduler where the role asks for it.
    pub fn start_loops(self: &Arc<Self>, scheduler: bool) {
        self.spawn(self.clone().heartbeat_loop());
        self.spawn(self.clone().foreign_loop());
        if scheduler {
            self.spawn(self.clone().scheduler_loop());
            self.spawn(self.clone().retention_loop());
        }
    }

    async fn scheduler_loop(self: Arc<Self>) {
        loop {
            let next_at_ms = match self.settle_due().await {
                Ok(at_ms) => at_ms,
                Err(error) => {
                    tracing::warn!(code = error.code(), "the scheduler could not settle what is due: {error}");
                    self.now_ms() + self.settings.scheduler_interval_ms
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.clock.sleep_until(next_at_ms) => {}
                () = self.scheduler_due.notified() => {}
            }
        }
    }

    async fn retention_loop(self: Arc<Self>) {
        loop {
            let next_at_ms = self.now_ms() + self.settings.retention_interval_ms;
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.clock.sleep_until(next_at_ms) => {}
            }
            loop {
                match self.store.prune(self.settings.retention, self.now_ms()).await {
                    Ok(pruned) if pruned.payloads + pruned.executions + pruned.keys > 0 => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::warn!(code = error.code(), "retention could not be applied: {error}");
                        break;
                    }
                }
            }
        }
    }

    async fn heartbeat_loop(self: Arc<Self>) {
        loop {
            let next_at_ms = self.now_ms() + self.settings.heartbeat_ms.max(1);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.clock.sleep_until(next_at_ms) => {}
            }
            if let Err(error) = self.heartbeat().await {
                tracing::warn!(code = error.code(), "leases could not be extended: {error}");
            }
        }
    }

    /// Callers whose execution does not run here learn its end from the store; so does work that was cancelled
    /// elsewhere. Polling is the truth.
    async fn foreign_loop(self: Arc<Self>) {
        let mut look_at_own_ms = 0;
        loop {
            let wait = async {
                let idle = self.waiters.unsettled().iter().all(|id| self.running.contains(*id));
                if idle && self.running.leases().is_empty() {
                    self.waiters.arrival().await;
                }
                self.store.changed(FOREIGN_POLL_MS).await;
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = wait => {}
            }
            let now_ms = self.now_ms();
            let own = now_ms >= look_at_own_ms;
            if own {
                look_at_own_ms = now_ms + OWN_LEASES_POLL_MS;
            }
            if let Err(error) = self.look_at_foreign(own).await {
                tracing::warn!(code = error.code(), "the store could not be read for waiting callers: {error}");
                self.clock.sleep_until(self.now_ms() + self.settings.scheduler_interval_ms).await;
            }
        }
    }

    async fn look_at_foreign(&self, own_leases: bool) -> Result<()> {
        if own_leases {
            self.stop_in_vain(&self.running.leases()).await?;
        }
        let mut ids = self.waiters.unsettled();
        ids.retain(|id| !self.running.contains(*id));
        for head in self.store.heads(&ids).await? {
            if head.state.is_settled() {
                self.slots.dequeue(&head.ident.upstream, head.id());
                self.settle(head, None).await?;
            }
        }
        Ok(())
    }

    /// Whether the store may hold work for a lane that was full at the last look: calls that another process queued.
    pub fn expect_backlog(&self, expected: bool) {
        self.backlog.store(expected, Ordering::Relaxed);
    }

    /// A worker of this process has room again.
    pub fn slot_freed(&self) {
        if self.slots.waiting() > 0 || self.backlog.swap(false, Ordering::Relaxed) {
            self.work_available.notify_one();
        }
    }

    /// Resolves when there may be work for a worker of this process.
    pub async fn work_available(&self) {
        self.work_available.notified().await;
    }
}

fn expiry(head: &Head, dead: &[ProcessId]) -> Command {
    let died = head.lease.as_ref().is_some_and(|lease| dead.contains(&lease.process));
    let cause = if died { ExpiryCause::ProcessDied } else { ExpiryCause::LeaseExpired };
    Command::Expire { fencing_token: head.fencing_token, cause }
}

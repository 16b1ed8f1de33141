//! The loops that make time pass: expired leases, due retries, deadlines, dead processes, retention, heartbeats, and
//! the wake-up of callers whose execution runs elsewhere. Several processes may run them at once; every change is a
//! compare-and-set.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::{Engine, Result};
use crate::model::decide::Command;
use crate::model::event::ExpiryCause;
use crate::model::execution::{Head, State};
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::{LeaseRef, crash};

/// How often callers of executions that run elsewhere look at the store at least, in milliseconds.
const FOREIGN_POLL_MS: u64 = 1_000;

/// How often a process looks whether what it runs was cancelled or taken over elsewhere, in milliseconds.
const OWN_LEASES_POLL_MS: u64 = 500;

impl Engine {
    /// Settles everything that is due, once; returns when to look again (milliseconds since the epoch).
    pub async fn settle_due(&self) -> Result<i64> {
        loop {
            let now_ms = self.now_ms();
            let dead = self.store.dead_processes(now_ms).await?;
            let batch = self.settings.scheduler_batch;
            let due = self.store.due(&dead, now_ms, batch).await?;
            // The machine slept, or this process was late: it lives and works, so it keeps what it holds.
            let (own, expired): (Vec<_>, Vec<_>) = due.expired.iter().partition(|head| self.runs(head));
            if !own.is_empty() {
                self.heartbeat().await?;
            }
            let full = [due.expired.len(), due.promotable.len(), due.timed_out.len()].into_iter().any(|n| n >= batch);
            let expired = expired.into_iter().map(|head| (head.id(), expiry(head, &dead)));
            let promotable = due.promotable.iter().map(|id| (*id, Command::Promote));
            let timed_out = due.timed_out.iter().map(|id| (*id, Command::TimeOut));
            let writes =
                expired.chain(promotable).chain(timed_out).map(|(id, command)| self.apply(self.write(id, command)));
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
            self.expire_questions().await?;
            let any_died = !dead.is_empty();
            for process in dead {
                self.store.bury_process(process).await?;
                crash::point("buried");
            }
            if any_died && !self.settings.bound {
                // It may have been a remote worker.
                self.refresh_workers().await?;
            }
            self.end_expired_tasks().await?;
            let latest_ms = now_ms + self.settings.scheduler_interval_ms;
            return Ok(due.next_at_ms.map_or(latest_ms, |at_ms| at_ms.clamp(now_ms + 1, latest_ms)));
        }
    }

    /// Starts the loops of this process: heartbeats and wake-ups always, the scheduler where the role asks for it.
    pub fn start_loops(self: &Arc<Self>, scheduler: bool) {
        self.spawn(self.clone().heartbeat_loop());
        self.spawn(self.clone().foreign_loop());
        if !self.settings.bound {
            self.spawn(self.clone().remote_loop());
        }
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
            if let Err(error) = self.expire_sessions().await {
                tracing::warn!(code = error.code(), "expired sessions could not be deleted: {error}");
            }
            loop {
                match self.store.prune(self.settings.retention, self.now_ms()).await {
                    Ok(_) if self.stop.is_cancelled() => return,
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

    /// Remote workers that registered elsewhere, and calls for those that wait here that came from elsewhere.
    async fn remote_loop(self: Arc<Self>) {
        loop {
            if let Err(error) = self.look_for_remote().await {
                tracing::warn!(code = error.code(), "the store could not be read for remote workers: {error}");
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
            if !matches!(head.state, State::Ready | State::Scheduled) {
                self.slots.dequeue(&head.ident.upstream, head.id());
            }
            if head.state.is_settled() {
                self.settle(head, None).await?;
            } else if head.state == State::Waiting || self.waiters.knows_questions(head.id()) {
                self.told_questions(head.id()).await;
            }
        }
        Ok(())
    }

    /// What this process waits for, or holds a place in a queue for, and does not run itself.
    fn foreign(&self) -> Vec<ExecutionId> {
        let mut ids = self.waiters.unsettled();
        ids.extend(self.slots.waiting_ids());
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| !self.running.contains(*id));
        ids
    }

    fn runs(&self, head: &Head) -> bool {
        let own = head.lease.as_ref().is_some_and(|lease| lease.process == self.process);
        own && self.running.holds(LeaseRef { id: head.id(), fencing_token: head.fencing_token })
    }

    /// Resolves when there may be work for a worker of this process.
    pub async fn work_available(&self) {
        self.slots.work_available().await;
    }
}

fn expiry(head: &Head, dead: &[ProcessId]) -> Command {
    let died = head.lease.as_ref().is_some_and(|lease| dead.contains(&lease.process));
    let cause = if died { ExpiryCause::ProcessDied } else { ExpiryCause::LeaseExpired };
    Command::Expire { fencing_token: head.fencing_token, cause }
}

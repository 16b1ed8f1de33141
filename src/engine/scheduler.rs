//! The loops that make time pass: expired leases, due retries, deadlines, dead processes, retention, heartbeats. Several
//! processes may run them at once; every change is a compare-and-set, and whoever comes second finds nothing to do.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use super::clock::{ALIGN_EVERY, Clock, asks, wall};
use super::rests::Rests;
use super::{Engine, Result};
use crate::model::decide::{Answer, Command};
use crate::model::event::ExpiryCause;
use crate::model::execution::Head;
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::counting::Pace;
use crate::store::{Applied, LeaseRef, Pruned, crash};
use crate::telemetry::Made;

/// How much of what this scheduler set out to settle was its own to settle.
#[derive(Debug, Default)]
pub struct Settling {
    settled: AtomicU64,
    found_settled: AtomicU64,
    /// Until then nobody else's lease is taken away (milliseconds since the epoch).
    patient_until_ms: AtomicI64,
}

/// A look at a database that takes so long was kept from it, as others may have been.
const LATE: Duration = Duration::from_secs(1);
/// By then everybody has said that it lives who could not before.
const PATIENCE: Duration = Duration::from_secs(3);
/// A heartbeat that failed is repeated no later, and leases in doubt are looked for again.
const HEARTBEAT_AGAIN_MS: i64 = 1_000;

impl Settling {
    /// Leaves what others hold alone until then.
    pub(super) fn be_patient(&self, until_ms: i64) {
        self.patient_until_ms.fetch_max(until_ms, Ordering::Relaxed);
    }

    pub(super) fn is_patient(&self, now_ms: i64) -> bool {
        now_ms < self.patient_until_ms.load(Ordering::Relaxed)
    }

    /// True when it was ours.
    fn count(&self, applied: Option<&Applied>) -> bool {
        let was_ours = applied.is_some_and(|applied| applied.answer == Answer::Accepted);
        let counter = if was_ours { &self.settled } else { &self.found_settled };
        counter.fetch_add(1, Ordering::Relaxed);
        was_ours
    }

    /// What was settled here, and what another scheduler had settled between the look and the write.
    pub fn counts(&self) -> (u64, u64) {
        (self.settled.load(Ordering::Relaxed), self.found_settled.load(Ordering::Relaxed))
    }
}

impl Engine {
    /// Settles everything that is due, once; returns when to look again (milliseconds since the epoch).
    pub async fn settle_due(&self) -> Result<i64> {
        self.settle_due_by(None).await
    }

    /// The same; a look at a database that has no answer by then leaves alone what others hold.
    pub(super) async fn settle_due_by(&self, mut by: Option<Instant>) -> Result<i64> {
        let begun = wall();
        let mut settled = 0;
        loop {
            let now_ms = self.now_ms();
            let mut dead = self.store.dead_processes(now_ms).await?;
            let batch = self.settings.scheduler_batch;
            let due = self.store.due(&dead, now_ms, batch).await?;
            if by.take().is_some_and(|by| Instant::now() > by) {
                self.be_patient();
            }
            // The store was away, or took no writes: whoever could not say that it lives gets the time to say so.
            let was_silent = self.store.since_silence().is_some_and(|ago| ago < PATIENCE);
            let is_patient = was_silent || self.settling.is_patient(now_ms);
            if is_patient {
                dead.clear();
            }
            // The machine slept, or this process was late: it lives and works, so it keeps what it holds.
            let (own, expired): (Vec<_>, Vec<_>) = due.expired.iter().partition(|head| self.runs(head));
            if !own.is_empty() {
                self.heartbeat().await?;
            }
            let expired = if is_patient { Vec::new() } else { expired };
            let full = [expired.len(), due.promotable.len(), due.timed_out.len()].into_iter().any(|n| n >= batch);
            let expired = expired.into_iter().map(|head| (head.id(), expiry(head, &dead)));
            let promotable = due.promotable.iter().map(|id| (*id, Command::Promote));
            let abandoned = self.run_by_nobody(&due.timed_out).await?;
            let time_out = |id: &ExecutionId| (*id, Command::TimeOut { nobody_runs: abandoned.contains(id) });
            let timed_out = due.timed_out.iter().map(time_out);
            let writes =
                expired.chain(promotable).chain(timed_out).map(|(id, command)| self.apply(self.write(id, command)));
            if !dead.is_empty() {
                crash::point("before_settle");
            }
            for applied in join_all(writes).await {
                settled += i64::from(self.settling.count(applied?.as_ref()));
            }
            if !dead.is_empty() {
                crash::point("settled");
            }
            if full {
                continue;
            }
            self.expire_questions().await?;
            let (any_died, died) = (!dead.is_empty(), dead.len() as i64);
            for process in dead {
                self.store.bury_process(process).await?;
                crash::point("buried");
            }
            if any_died && !self.settings.bound {
                // It may have been a remote worker.
                self.refresh_workers().await?;
            }
            self.end_expired_tasks().await?;
            if settled + died > 0 {
                let attributes = [("durable_mcp.settled", settled), ("durable_mcp.dead_processes", died)];
                self.did("scheduler tick", begun, &attributes);
            }
            let latest_ms = now_ms + self.settings.scheduler_interval_ms;
            if is_patient {
                return Ok(latest_ms);
            }
            return Ok(due.next_at_ms.map_or(latest_ms, |at_ms| at_ms.clamp(now_ms + 1, latest_ms)));
        }
    }

    /// Starts the loops of this process: heartbeats and wake-ups always, the scheduler where the role asks for it.
    pub fn start_loops(self: &Arc<Self>, scheduler: bool) {
        self.make_spans();
        self.spawn(self.clone().heartbeat_loop());
        self.spawn(self.clone().foreign_loop());
        self.spawn(self.clone().series_loop(scheduler));
        if matches!(self.clock, Clock::Aligned(_)) {
            self.spawn_until_stopped(self.clone().align_loop());
        }
        if !self.settings.bound {
            self.spawn(self.clone().remote_loop());
        }
        if scheduler {
            self.spawn(self.clone().scheduler_loop());
            self.spawn(self.clone().retention_loop());
        }
    }

    /// Keeps the clock with the store's.
    async fn align_loop(self: Arc<Self>) {
        loop {
            tokio::time::sleep(ALIGN_EVERY).await;
            if let Err(error) = self.clock.align(&asks(self.store.clone())).await {
                tracing::warn!(code = error.code(), "the store's clock could not be asked for: {error}");
            }
        }
    }

    /// Leaves alone what others hold, until they had the time to say that they live. A file tells who lives by itself.
    fn be_patient(&self) {
        if matches!(self.clock, Clock::Aligned(_)) {
            self.settling.be_patient(self.now_ms() + PATIENCE.as_millis() as i64 + self.settings.scheduler_interval_ms);
        }
    }

    async fn scheduler_loop(self: Arc<Self>) {
        // Nor does who has just begun know how long the store was away.
        let mut was_away = true;
        loop {
            let by = Instant::now() + if was_away { Duration::ZERO } else { LATE };
            let settled = self.settle_due_by(Some(by)).await;
            was_away = settled.is_err();
            let next_at_ms = match settled {
                Ok(at_ms) => at_ms,
                Err(error) => {
                    tracing::warn!(code = error.code(), "the scheduler could not settle what is due: {error}");
                    self.now_ms() + self.settings.scheduler_interval_ms
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.clock.sleep_until(next_at_ms + self.spread_ms()) => {}
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
            let begun = wall();
            let sessions = self.expire_sessions().await.unwrap_or_else(|error| {
                tracing::warn!(code = error.code(), "expired sessions could not be deleted: {error}");
                0
            });
            let gone = self.apply_retention().await.unwrap_or_else(|error| {
                tracing::warn!(code = error.code(), "retention could not be applied: {error}");
                Pruned::default()
            });
            if sessions + gone.payloads + gone.executions + gone.keys > 0 {
                let Pruned { payloads, executions, keys } = gone;
                tracing::info!(executions, payloads, keys, sessions, "retention deleted what is no longer kept");
                let attributes = [
                    ("durable_mcp.sessions", sessions as i64),
                    ("durable_mcp.payloads", gone.payloads as i64),
                    ("durable_mcp.executions", gone.executions as i64),
                    ("durable_mcp.keys", gone.keys as i64),
                ];
                self.did("cleanup", begun, &attributes);
            }
        }
    }

    /// Deletes what is no longer kept, batch by batch, with pauses that leave the store to calls; what was deleted. Ends
    /// early when the engine stops.
    ///
    /// # Errors
    ///
    /// The store; what was deleted until then is.
    pub async fn apply_retention(&self) -> Result<Pruned> {
        let mut gone = Pruned::default();
        let mut rests = Rests::begin(&self.clock, &self.stop, self.settings.retention_share);
        for (slice, retention) in self.settings.retention_rules() {
            loop {
                let pruned = self.store.prune_slice(slice.clone(), retention, self.now_ms()).await?;
                if pruned == Pruned::default() {
                    break;
                }
                gone += pruned;
                rests.rest().await;
                if self.stop.is_cancelled() {
                    return Ok(gone);
                }
            }
        }
        Ok(gone)
    }

    /// Tells of work that nobody asked for, and that did something.
    fn did(&self, name: &'static str, start: Duration, counts: &[(&'static str, i64)]) {
        self.settings.traces.made(Made {
            name: name.into(),
            kind: SpanKind::Internal,
            place: self.settings.traces.own(),
            parent: None,
            start,
            end: wall(),
            attributes: counts.iter().map(|(name, count)| KeyValue::new(*name, *count)).collect(),
            links: Vec::new(),
            failure: None,
        });
    }

    async fn heartbeat_loop(self: Arc<Self>) {
        let mut pause_ms = self.settings.heartbeat_ms.max(1);
        loop {
            let next_at_ms = self.now_ms() + pause_ms;
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.clock.sleep_until(next_at_ms) => {}
                () = self.doubts.raised.notified() => {}
            }
            pause_ms = self.settings.heartbeat_ms.max(1);
            if let Err(error) = self.settle_doubts().await {
                tracing::debug!(code = error.code(), "leases in doubt could not be looked for: {error}");
            }
            if !self.doubts.are_settled() {
                pause_ms = pause_ms.min(HEARTBEAT_AGAIN_MS);
            }
            if let Err(error) = self.heartbeat().await {
                pause_ms = pause_ms.min(HEARTBEAT_AGAIN_MS);
                tracing::warn!(code = error.code(), "leases could not be extended: {error}");
            }
            if let Err(error) = self.note_own_life().await {
                tracing::warn!(code = error.code(), "a sign of life could not be stored: {error}");
            }
        }
    }

    /// Which of these executions no living worker could have run.
    async fn run_by_nobody(&self, ids: &[ExecutionId]) -> Result<HashSet<ExecutionId>> {
        if ids.is_empty() || self.settings.bound {
            return Ok(HashSet::new());
        }
        self.refresh_workers().await?;
        let heads = self.store.heads(ids).await?;
        let abandoned = heads.iter().filter(|head| !self.is_run_anywhere(&head.ident.upstream));
        Ok(abandoned.map(Head::id).collect())
    }

    fn runs(&self, head: &Head) -> bool {
        let own = head.lease.as_ref().is_some_and(|lease| lease.process == self.process);
        own && self.running.holds(LeaseRef { id: head.id(), fencing_token: head.fencing_token })
    }
}

fn expiry(head: &Head, dead: &[ProcessId]) -> Command {
    let died = head.lease.as_ref().is_some_and(|lease| dead.contains(&lease.process));
    let cause = if died { ExpiryCause::ProcessDied } else { ExpiryCause::LeaseExpired };
    Command::Expire { fencing_token: head.fencing_token, cause }
}

//! What is counted in this process since its start. What happens to executions is counted from the events that the store
//! has committed, and nowhere else, so that the counters and the log say the same; a process that is killed takes its
//! counters with it. Names no tool beyond a limit: those that come later share the name `other`.

mod families;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::{mpsc, watch};

use super::spans::Settled;
use crate::model::event::{Event, LOSS_CODES};
use crate::model::execution::{ErrorInfo, State};
use crate::model::id::ExecutionId;
use crate::store::{Committed, Connections, Observer};
use crate::telemetry::Counts;
use families::{By, Cause, Code, Families, Reason, Type, Upstream};
use tools::{Outcome, ToolMeter, Tools};

/// Leases whose begin is remembered. They leave with their end; those that another process ended are forgotten with time.
const BEGUN_MAX: usize = 65_536;
/// A lease that began so long ago is forgotten when there is no room, in milliseconds.
const BEGUN_MS: i64 = 3_600_000;

/// How the names of commits that are no text of ours are bounded.
const OTHER: &str = "other";

/// What stands still only for the moment in which it is asked for.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Executions per state.
    pub executions: BTreeMap<State, u64>,
    /// Executions that wait for a worker.
    pub queue_depth: usize,
    /// How long the first of them has waited.
    pub queue_oldest_ms: i64,
    /// Of the store.
    pub connections: Connections,
    /// Slots taken and free.
    pub slots: (usize, usize),
    /// Leases that this process works on.
    pub running: usize,
    /// Callers that wait here.
    pub waiters: usize,
    /// Sessions in memory.
    pub sessions: usize,
    /// What can be used.
    pub upstreams: Vec<(String, bool)>,
    /// What became of spans.
    pub spans: Counts,
}

/// The counters of a process.
#[derive(Debug)]
pub struct Meter {
    families: Families,
    events: HashMap<&'static str, Counter>,
    tools: Tools,
    /// When leases began whose end has not been seen, in milliseconds since the epoch.
    begun_ms: Mutex<HashMap<ExecutionId, i64>>,
    /// Who makes spans of what has settled.
    settled: OnceLock<mpsc::Sender<Settled>>,
    /// How many it was told of and has not dealt with.
    unmade: watch::Sender<usize>,
}

impl Meter {
    /// Names at most `tools_max` tools.
    pub fn new(tools_max: usize) -> Meter {
        let families = Families::new();
        // What never happened is zero, and no gap: alerts compare with what was before.
        let events = Event::NAMES.map(|name| (name, families.events.get_or_create_owned(&Type { r#type: name })));
        for cause in LOSS_CODES {
            drop(families.attempts_lost.get_or_create(&Cause { cause }));
        }
        for cause in LEASE_CODES {
            drop(families.leases_lost.get_or_create(&Cause { cause }));
        }
        for reason in REASONS {
            drop(families.stale.get_or_create(&Reason { reason }));
        }
        for by in ["policy", "person"] {
            drop(families.retries.get_or_create(&By { by }));
        }
        for by in ["key", "same_call"] {
            drop(families.duplicates.get_or_create(&By { by }));
        }
        Meter {
            families,
            events: events.into(),
            tools: Tools::new(tools_max),
            begun_ms: Mutex::default(),
            settled: OnceLock::new(),
            unmade: watch::Sender::new(0),
        }
    }

    /// Counts a call that an earlier execution took.
    pub(super) fn duplicate(&self, keyed: bool) {
        self.families.duplicates.get_or_create(&By { by: if keyed { "key" } else { "same_call" } }).inc();
    }

    /// Counts a call that was not stored.
    pub(super) fn refused(&self, code: &'static str) {
        self.families.refused.get_or_create(&Code { code }).inc();
    }

    /// Counts how often a server was started again: whoever starts it has this.
    pub fn restarts(&self, upstream: &str) -> Counter {
        self.families.restarts.get_or_create_owned(&Upstream { upstream: upstream.to_owned() })
    }

    /// Everything as text (OpenMetrics 1.0).
    pub fn encode(&self, figures: &Figures) -> String {
        self.families.encode(figures)
    }

    /// Names who is told of executions that settle.
    pub(super) fn tell_settled(&self, settled: mpsc::Sender<Settled>) {
        let _ = self.settled.set(settled);
    }

    /// One of them was dealt with.
    pub(super) fn made_spans(&self) {
        self.unmade.send_modify(|unmade| *unmade = unmade.saturating_sub(1));
    }

    /// Waits until all of them were.
    pub(super) async fn all_spans_made(&self) {
        let _ = self.unmade.subscribe().wait_for(|unmade| *unmade == 0).await;
    }

    fn settles(&self, committed: &Committed) {
        let Some(settled) = self.settled.get() else { return };
        let is_settled = |event: &Event| event.is_final() || matches!(event, Event::Lost { .. });
        if committed.events.iter().any(is_settled) {
            let again = committed.was == Some(State::Unknown);
            // Counted first: it may be dealt with at once.
            self.unmade.send_modify(|unmade| *unmade += 1);
            if settled.try_send(Settled { id: committed.id, again }).is_err() {
                self.made_spans();
            }
        }
    }

    fn count(&self, committed: &Committed) {
        self.settles(committed);
        let tool = self.tools.of(&self.families, &committed.upstream, &committed.tool);
        for event in &committed.events {
            if let Some(counter) = self.events.get(event.name()) {
                counter.inc();
            }
            self.count_event(committed, event, &tool);
        }
    }

    fn count_event(&self, committed: &Committed, event: &Event, tool: &ToolMeter) {
        let families = &self.families;
        if event.is_loss() {
            families.attempts_lost.get_or_create(&Cause { cause: code_of(event, &LOSS_CODES) }).inc();
        }
        if error_of(event).is_some_and(|error| LEASE_CODES.contains(&error.code.as_str())) {
            families.leases_lost.get_or_create(&Cause { cause: code_of(event, &LEASE_CODES) }).inc();
        }
        let (id, at_ms) = (committed.id, committed.at_ms);
        match event {
            Event::Submitted { .. } => drop(tool.submitted.inc()),
            Event::Leased { .. } => {
                if !committed.continues {
                    tool.attempts.inc();
                    tool.queued.observe(seconds(at_ms - committed.run_at_ms));
                }
                self.begin(id, at_ms);
            }
            Event::Retried { by, .. } => {
                let by = if by.is_some() { "person" } else { "policy" };
                families.retries.get_or_create(&By { by }).inc();
                self.end(committed, tool);
            }
            Event::Lost { .. } => {
                families.unknown.inc();
                tool.ended(Outcome::Unknown);
                self.end(committed, tool);
            }
            Event::Completed { is_error, .. } => {
                tool.ended(if *is_error { Outcome::ToolError } else { Outcome::Completed });
                self.end_all(committed, tool);
            }
            Event::Failed { .. } => {
                tool.ended(Outcome::Failed);
                self.end_all(committed, tool);
            }
            Event::Cancelled { .. } => {
                tool.ended(Outcome::Cancelled);
                self.end_all(committed, tool);
            }
            Event::Rejected { reason, .. } => {
                let reason = REASONS.into_iter().find(|known| known == reason).unwrap_or(OTHER);
                families.stale.get_or_create(&Reason { reason }).inc();
            }
            Event::Conflicted { .. } => drop(families.conflicts.inc()),
            Event::Released { .. } | Event::Parked => drop(self.begun_ms().remove(&id)),
            Event::Promoted | Event::Held | Event::Resumed => {}
        }
    }

    fn begin(&self, id: ExecutionId, at_ms: i64) {
        let mut begun = self.begun_ms();
        if begun.len() >= BEGUN_MAX {
            begun.retain(|_, since_ms| at_ms - *since_ms < BEGUN_MS);
        }
        if begun.len() < BEGUN_MAX {
            begun.insert(id, at_ms);
        }
    }

    /// The end of what ran, where it was seen to begin.
    fn end(&self, committed: &Committed, tool: &ToolMeter) {
        if let Some(since_ms) = self.begun_ms().remove(&committed.id) {
            tool.run.observe(seconds(committed.at_ms - since_ms));
        }
    }

    fn end_all(&self, committed: &Committed, tool: &ToolMeter) {
        self.end(committed, tool);
        tool.total.observe(seconds(committed.at_ms - committed.created_at_ms));
    }

    fn begun_ms(&self) -> std::sync::MutexGuard<'_, HashMap<ExecutionId, i64>> {
        self.begun_ms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Meter {
    fn committed(&self, all: &[Committed]) {
        all.iter().for_each(|committed| self.count(committed));
    }

    fn transaction(&self, writes: usize, took: Duration) {
        // Marks alone are no commit that somebody waits for.
        if writes > 0 {
            self.families.commit_seconds.observe(took.as_secs_f64());
            self.families.commit_writes.observe(writes as f64);
        }
    }
}

/// Codes of leases that ended without a word of their holder.
const LEASE_CODES: [&str; 2] = ["lease_expired", "process_died"];
/// Why a result was not taken.
const REASONS: [&str; 2] = ["stale_token", "ended"];

fn error_of(event: &Event) -> Option<&ErrorInfo> {
    match event {
        Event::Retried { error, .. } | Event::Lost { error, .. } | Event::Failed { error, .. } => Some(error),
        _ => None,
    }
}

/// The error code of an event as one of `known`, so that it can be a label.
fn code_of(event: &Event, known: &[&'static str]) -> &'static str {
    let code = error_of(event).map_or("", |error| error.code.as_str());
    known.iter().find(|one| **one == code).copied().unwrap_or(OTHER)
}

fn seconds(ms: i64) -> f64 {
    ms.max(0) as f64 / 1_000.0
}

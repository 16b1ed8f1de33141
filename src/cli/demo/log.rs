//! Reading the store that a demo's processes share: executions, their events, and waiting for one. Everything a demo tells
//! about a call comes from here. Writes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::failure::{Exit, Failure};
use super::super::stage::program::Site;
use crate::model::event::{Event, EventRecord};
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::{ListQuery, Store};

const PAGE: usize = 500;
/// The store is looked at again after so long, at the latest.
const LOOK_EVERY_MS: u64 = 20;

/// See the module.
#[derive(Clone)]
pub struct Log {
    store: Arc<dyn Store>,
}

impl Log {
    /// Opens the store of a site.
    pub async fn open(site: &Site) -> Result<Log, Failure> {
        Ok(Log { store: site.open_store().await? })
    }

    /// Every execution in one of these states (none: in any), oldest first.
    pub async fn executions(&self, states: &[State]) -> Result<Vec<Head>, Failure> {
        let mut all: Vec<Head> = Vec::new();
        loop {
            let before = all.last().map(Head::id);
            let query = ListQuery { states: states.to_vec(), before, limit: PAGE, ..ListQuery::default() };
            let page = self.store.list(query).await?;
            let full = page.len() == PAGE;
            all.extend(page);
            if !full {
                all.reverse();
                return Ok(all);
            }
        }
    }

    /// The executions that this process holds leases on.
    pub async fn held_by(&self, pid: u32) -> Result<Vec<Head>, Failure> {
        let mut held = self.executions(&[State::Leased]).await?;
        held.retain(|head| head.lease.as_ref().is_some_and(|lease| pid_of(&lease.worker) == Some(pid)));
        Ok(held)
    }

    /// The execution of this key; `None` while it is not there.
    pub async fn by_key(&self, key: &str) -> Result<Option<Head>, Failure> {
        Ok(self.executions(&[]).await?.into_iter().find(|head| head.ident.key.as_deref() == Some(key)))
    }

    /// The events of an execution, in order.
    pub async fn events(&self, id: ExecutionId) -> Result<Vec<EventRecord>, Failure> {
        let mut events: Vec<EventRecord> = Vec::new();
        loop {
            let after = events.last().map_or(0, |last| last.seq);
            let page = self.store.events(id, after, PAGE).await?;
            let full = page.len() == PAGE;
            events.extend(page);
            if !full {
                return Ok(events);
            }
        }
    }

    /// How many executions are in each state.
    pub async fn totals(&self) -> Result<BTreeMap<State, u64>, Failure> {
        Ok(self.store.totals().await?)
    }

    /// Waits for the execution of this key. Errors: it does not come in time.
    pub async fn submitted(&self, key: &str, within: Duration) -> Result<Head, Failure> {
        self.until(within, "a call was not stored", async || self.by_key(key).await).await
    }

    /// Waits for an event. Errors: it does not come in time; `what` says what was waited for.
    pub async fn event(
        &self,
        id: ExecutionId,
        (what, within): (&str, Duration),
        is: impl Fn(&Event) -> bool,
    ) -> Result<EventRecord, Failure> {
        self.until(within, what, async || Ok(self.events(id).await?.into_iter().find(|record| is(&record.event)))).await
    }

    /// Looks at the store until there is something. Errors: there is nothing in time.
    pub async fn until<T>(
        &self,
        within: Duration,
        what: &str,
        mut look: impl AsyncFnMut() -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        let end = Instant::now() + within;
        loop {
            if let Some(found) = look().await? {
                return Ok(found);
            }
            if Instant::now() >= end {
                return Err(Failure::new(Exit::Failure, format!("{what} within {} s", within.as_secs_f64())));
            }
            self.store.changed(LOOK_EVERY_MS).await;
        }
    }

    /// Closes the store.
    pub async fn close(&self) {
        self.store.close().await;
    }
}

/// The process behind a worker's name.
pub fn pid_of(worker: &str) -> Option<u32> {
    worker.rsplit('.').next()?.parse().ok()
}

/// An event in a few words, with the members that matter.
pub fn words(event: &Event, name_of: impl Fn(&str) -> String) -> String {
    match event {
        Event::Leased { worker, fencing_token, attempt, .. } => {
            format!("leased to {}, attempt {attempt}, fencing token {fencing_token}", name_of(worker))
        }
        Event::Retried { attempt, error, .. } => format!("retried: attempt {attempt} was lost ({})", error.code),
        Event::Lost { attempt, error } => format!("lost: attempt {attempt}, not run again ({})", error.code),
        Event::Completed { fencing_token: Some(token), source, .. } => {
            let source = serde_json::to_value(source).ok();
            let source = source.as_ref().and_then(|source| source.as_str()).unwrap_or("result");
            format!("completed under fencing token {token} (source: {source})")
        }
        Event::Failed { attempt, error, .. } => format!("failed after attempt {attempt} ({})", error.code),
        Event::Rejected { fencing_token, reason, .. } => {
            format!("rejected: a result under fencing token {fencing_token} ({reason})")
        }
        other => other.name().to_owned(),
    }
}

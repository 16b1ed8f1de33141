//! Counts a span of time with what a store tells: most executions by their rows, in groups, the others by their logs.
//! What an event counts as is the model's; when and how fast one counts is said by whoever asks. Keeps nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;

use super::Result;
use super::series::{EndedQuery, OpenQuery, SeriesStore, ToRead};
use crate::model::id::ExecutionId;
use crate::model::tally::{Tally, count};

/// Rows that one read should look at.
const ROWS: u64 = 4_000;
/// Ids of executions that have not ended, read at once.
const OPEN: usize = 4_000;
/// Executions whose logs are read at once.
const LOGS: usize = 250;
/// The time that the first read looks at; the next ones look at more or less, as many rows as there were.
const WIDTH_MS: i64 = 250;

/// How fast one counts: asked after every read.
#[async_trait]
pub trait Pace: Send {
    /// Returns when the next read may begin.
    async fn rest(&mut self);
}

/// One read after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unpaced;

#[async_trait]
impl Pace for Unpaced {
    async fn rest(&mut self) {}
}

/// Numbers by namespace and principal, and by the minute.
pub type Tallies = HashMap<(String, String), BTreeMap<i64, Tally>>;

/// What happened from `since_ms` on and before `until_ms`; `now_ms` is not before any end that is stored already.
///
/// # Errors
///
/// The store's.
pub async fn count_span(
    store: &dyn SeriesStore,
    (since_ms, until_ms): (i64, i64),
    now_ms: i64,
    pace: &mut dyn Pace,
) -> Result<Tallies> {
    let mut span = Span { store, since_ms, until_ms, read: HashSet::new(), tallies: Tallies::new() };
    // What has not ended comes first: if it ends meanwhile it is found among the ended ones again, and known.
    let mut after = None;
    loop {
        let open = store.open_in(OpenQuery { since_ms, until_ms, after, limit: OPEN }).await?;
        pace.rest().await;
        after = open.last().map(|last| last.id);
        let whole = open.len() < OPEN;
        span.read(open, pace).await?;
        if whole {
            break;
        }
    }
    let (mut from_ms, mut width_ms) = (since_ms, WIDTH_MS);
    loop {
        // The last part has no end: what ends while one counts has events from before.
        let border_ms = if from_ms < until_ms { until_ms } else { now_ms };
        let last = from_ms >= until_ms && from_ms >= now_ms;
        let to_ms = if last { i64::MAX } else { border_ms.min(from_ms.saturating_add(width_ms)) };
        let ended = store.ended_in(EndedQuery { since_ms, until_ms, from_ms, to_ms }).await?;
        for plain in ended.plain {
            let minutes = span.tallies.entry((plain.namespace, plain.principal)).or_default();
            let tally = minutes.entry(plain.minute_ms).or_default();
            tally.add_plain(plain.is_error, plain.latency_ms, plain.executions);
        }
        pace.rest().await;
        span.read(ended.to_read, pace).await?;
        if last {
            return Ok(span.tallies);
        }
        from_ms = to_ms;
        width_ms = match ended.looked_at {
            // Times in which nothing ended are passed quickly.
            0 => width_ms.saturating_mul(8),
            few if few < ROWS / 2 => width_ms.saturating_mul(2),
            many if many > ROWS => (width_ms / 2).max(1),
            _ => width_ms,
        };
    }
}

struct Span<'a> {
    store: &'a dyn SeriesStore,
    since_ms: i64,
    until_ms: i64,
    read: HashSet<ExecutionId>,
    tallies: Tallies,
}

impl Span<'_> {
    /// Counts executions by their logs, each once.
    async fn read(&mut self, executions: Vec<ToRead>, pace: &mut dyn Pace) -> Result<()> {
        let new: Vec<ToRead> = executions.into_iter().filter(|one| self.read.insert(one.id)).collect();
        for part in new.chunks(LOGS) {
            let logs = self.store.logs(part.iter().map(|one| one.id).collect()).await?;
            for (one, (_, log)) in part.iter().zip(&logs) {
                let place = (one.namespace.clone(), one.principal.clone());
                count(log, self.since_ms, self.until_ms, self.tallies.entry(place).or_default());
            }
            pace.rest().await;
        }
        Ok(())
    }
}

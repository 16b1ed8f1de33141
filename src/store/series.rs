//! What the store keeps and tells of numbers over time. Counts nothing: what an event means as a number is the model's,
//! and when a minute is over is the engine's.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::Result;
use crate::model::event::EventRecord;
use crate::model::execution::State;
use crate::model::id::{ExecutionId, ProcessId};
use crate::model::tally::Tally;

/// Whose numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whose {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only this principal.
    pub principal: Option<String>,
}

/// What a row was counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// The log, for one principal.
    Log,
    /// The log, for everybody in the namespace together; the principal is empty.
    LogOfAll,
    /// What leaves no event: a process counted it and wrote it down.
    Process(ProcessId),
}

const LOG: &str = "log";
const LOG_OF_ALL: &str = "log_of_all";

impl Counted {
    /// The stored text.
    pub fn text(self) -> String {
        match self {
            Counted::Log => LOG.into(),
            Counted::LogOfAll => LOG_OF_ALL.into(),
            Counted::Process(process) => process.to_string(),
        }
    }

    /// The value with this text.
    pub fn parse(text: &str) -> Option<Counted> {
        match text {
            LOG => Some(Counted::Log),
            LOG_OF_ALL => Some(Counted::LogOfAll),
            other => other.parse().ok().map(Counted::Process),
        }
    }
}

/// The numbers of a minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesRow {
    /// The minute's beginning, in milliseconds since the epoch.
    pub minute_ms: i64,
    /// The tenant border.
    pub namespace: String,
    /// Who called.
    pub principal: String,
    /// From what.
    pub counted: Counted,
    /// How much.
    pub tally: Tally,
}

/// Rows to keep, and what is known with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutSeries {
    /// Rows; one that is there is replaced.
    pub rows: Vec<SeriesRow>,
    /// From now on every minute before this moment is counted.
    pub closed_until_ms: Option<i64>,
    /// Rows of minutes before this moment go, some at each call.
    pub keep_since_ms: i64,
}

/// Which rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesQuery {
    /// Whose.
    pub whose: Whose,
    /// Minutes that begin then or later.
    pub since_ms: i64,
    /// Minutes that begin before.
    pub until_ms: i64,
}

/// What stands in the store at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Executions by state.
    pub states: BTreeMap<State, u64>,
    /// Executions that could run now, and wait for a worker.
    pub queued: u64,
    /// Since when the one waits that has waited longest.
    pub oldest_ms: Option<i64>,
}

/// An execution and its whole log.
pub type Log = (ExecutionId, Vec<EventRecord>);

/// The part of a driver that is about numbers.
#[async_trait]
pub trait SeriesStore: Send + Sync {
    /// What stands in the store at `now_ms`.
    async fn standing(&self, whose: Whose, now_ms: i64) -> Result<Standing>;

    /// The whole logs of executions, in the order of `ids`; a missing one has no events.
    async fn logs(&self, ids: Vec<ExecutionId>) -> Result<Vec<Log>>;

    /// Every minute before this moment is counted, in milliseconds since the epoch; 0 when none is.
    async fn series_closed_until(&self) -> Result<i64>;

    /// Keeps rows, and moves the moment up to which every minute is counted, never back.
    async fn put_series(&self, put: PutSeries) -> Result<()>;

    /// The rows of a span, in the order of their minutes. Of one principal: its own; else those of the namespaces.
    async fn series(&self, query: SeriesQuery) -> Result<Vec<SeriesRow>>;
}

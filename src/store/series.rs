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

/// Executions that may have events in a span and have not ended, and those that were noted later; in the order of ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenQuery {
    /// The span begins then.
    pub since_ms: i64,
    /// And is over before.
    pub until_ms: i64,
    /// Only ids after this one.
    pub after: Option<ExecutionId>,
    /// At most so many.
    pub limit: usize,
}

/// Executions that may have events in a span and ended in some part of the time from its beginning on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedQuery {
    /// The span begins then.
    pub since_ms: i64,
    /// And is over before.
    pub until_ms: i64,
    /// Those that ended then or later.
    pub from_ms: i64,
    /// And before.
    pub to_ms: i64,
}

/// An execution of which the row does not say how it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToRead {
    /// Its id.
    pub id: ExecutionId,
    /// The tenant border.
    pub namespace: String,
    /// Who called.
    pub principal: String,
}

/// Executions that were submitted, leased once and completed with their tool's result within one minute of the span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    /// The minute's beginning, in milliseconds since the epoch.
    pub minute_ms: i64,
    /// The tenant border.
    pub namespace: String,
    /// Who called.
    pub principal: String,
    /// Their results say `isError`.
    pub is_error: bool,
    /// From submission, or the time they were delayed to, to the result.
    pub latency_ms: u64,
    /// How many.
    pub executions: u64,
}

/// What ended in a part of the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Those whose rows say everything; several entries may be alike but for their number.
    pub plain: Vec<Plain>,
    /// The others.
    pub to_read: Vec<ToRead>,
    /// Rows that were looked at, with those that were made after the span.
    pub looked_at: u64,
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

    /// A page of executions that have not ended, or were noted later, and may have events in a span: as they stand at one
    /// moment.
    async fn open_in(&self, query: OpenQuery) -> Result<Vec<ToRead>>;

    /// Executions that ended in a part of the time, and may have events in a span: as they stand at one moment.
    async fn ended_in(&self, query: EndedQuery) -> Result<Ended>;

    /// Every minute before this moment is counted, in milliseconds since the epoch; 0 when none is.
    async fn series_closed_until(&self) -> Result<i64>;

    /// Keeps rows, and moves the moment up to which every minute is counted, never back.
    async fn put_series(&self, put: PutSeries) -> Result<()>;

    /// The rows of a span, in the order of their minutes. Of one principal: its own; else those of the namespaces.
    async fn series(&self, query: SeriesQuery) -> Result<Vec<SeriesRow>>;
}

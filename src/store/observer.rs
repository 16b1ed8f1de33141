//! Who is told of what a driver committed: the one place where events are counted, whatever made them. Told after the
//! commit, in the order of the log of each execution, by the process whose commit it was; what another process commits,
//! that one hears of. Must return at once: the writer waits for it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::model::event::Event;
use crate::model::execution::{Head, State};
use crate::model::id::{ExecutionId, OperationId};
use crate::store::deciding::Write;

/// The events of one write to one execution, committed.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The execution.
    pub id: ExecutionId,
    /// Whose tool.
    pub upstream: String,
    /// The tool.
    pub tool: String,
    /// Where it stood before; a new one stood nowhere.
    pub was: Option<State>,
    /// When the execution was submitted, in milliseconds since the epoch.
    pub created_at_ms: i64,
    /// When it was to run, in milliseconds since the epoch.
    pub run_at_ms: i64,
    /// Its newest lease goes on with an attempt that went through an input round, and begins none.
    pub continues: bool,
    /// The write that made the events.
    pub operation: OperationId,
    /// When the events happened, in milliseconds since the epoch.
    pub at_ms: i64,
    /// The events, in order.
    pub events: Vec<Event>,
}

impl Committed {
    /// What is told of events that were folded into `head`.
    pub(super) fn of(head: &Head, was: Option<State>, write: Write, events: Vec<Event>) -> Committed {
        Committed {
            id: head.id(),
            upstream: head.ident.upstream.clone(),
            tool: head.ident.tool.clone(),
            was,
            created_at_ms: head.created_at_ms,
            run_at_ms: head.run_at_ms,
            continues: head.continues,
            operation: write.operation,
            at_ms: write.now_ms,
            events,
        }
    }
}

/// Is told of commits.
pub trait Observer: Send + Sync {
    /// Events are committed.
    fn committed(&self, all: &[Committed]);
    /// A transaction with so many writes of callers is committed; it took so long, the wait for its turn included.
    fn transaction(&self, writes: usize, took: Duration);
}

/// Where a driver keeps its observer. Before there is one nobody is told.
#[derive(Clone, Default)]
pub(super) struct Observed(Arc<OnceLock<Arc<dyn Observer>>>);

impl Observed {
    /// Names who is told. Once: the first one stays.
    pub(super) fn set(&self, observer: Arc<dyn Observer>) {
        let _ = self.0.set(observer);
    }

    pub(super) fn get(&self) -> Option<&dyn Observer> {
        self.0.get().map(Arc::as_ref)
    }
}

/// The connections of a store, as they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// At work.
    pub busy: usize,
    /// Open and free.
    pub idle: usize,
    /// Who waits for one, or for the writer.
    pub waiting: usize,
}

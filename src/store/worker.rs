//! What the store keeps of workers: who they are, and what their tools keep between attempts; and what a registration
//! means for a row that is there. Decides nothing about executions.

use std::fmt;

use super::{LeaseRef, Payload};
use crate::model::decide::Answer;
use crate::model::id::ProcessId;

/// Where a worker lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerKind {
    /// Inside a process of ours; its id is that of the process.
    Local,
    /// Anywhere; it speaks the worker protocol.
    Remote,
}

impl WorkerKind {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            WorkerKind::Local => "local",
            WorkerKind::Remote => "remote",
        }
    }

    /// Reads a wire name.
    pub fn parse(text: &str) -> Option<WorkerKind> {
        [WorkerKind::Local, WorkerKind::Remote].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The secret that the lease tokens of one worker are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct LeaseKey(pub [u8; 32]);

impl fmt::Debug for LeaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseKey(..)")
    }
}

/// A worker. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRow {
    /// Its id; the leases it holds carry it as their process.
    pub id: ProcessId,
    /// Its name, for people.
    pub name: String,
    /// The tenant border it serves.
    pub namespace: String,
    /// Who registered it.
    pub principal: String,
    /// Where it lives.
    pub kind: WorkerKind,
    /// Calls it runs at once.
    pub slots: u32,
    /// What it is made with.
    pub sdk: Option<String>,
    /// What it registered, as one JSON text.
    pub tools: Payload,
    /// What its lease tokens are signed with.
    pub lease_key: LeaseKey,
    /// When it registered last.
    pub registered_at_ms: i64,
    /// When something was heard of it; up to a part of the lease's time behind.
    pub last_seen_at_ms: i64,
    /// A remote worker of which nothing more is heard counts as dead from then on.
    pub silent_at_ms: i64,
    /// It was asked to finish what it has and to end.
    pub draining: bool,
    /// When it ended, or was found dead.
    pub gone_at_ms: Option<i64>,
}

/// How long a worker that is gone is remembered: so long a late result of it can be taken.
pub(super) const GONE_WORKERS_MS: i64 = 86_400_000;

impl WorkerRow {
    /// What is stored when `row` registers; `None` when the id is somebody else's. The key of the first registration
    /// stays: leases may have been granted under it.
    pub(super) fn registered(stored: Option<&WorkerRow>, row: &WorkerRow) -> Option<WorkerRow> {
        let Some(stored) = stored else { return Some(WorkerRow { gone_at_ms: None, ..row.clone() }) };
        let owner = |row: &WorkerRow| (row.namespace.clone(), row.principal.clone(), row.kind);
        let own = owner(stored) == owner(row);
        own.then(|| WorkerRow { lease_key: stored.lease_key.clone(), gone_at_ms: None, ..row.clone() })
    }

    /// When a worker that was found dead went.
    pub(super) fn died_at_ms(&self) -> i64 {
        match self.kind {
            WorkerKind::Remote => self.silent_at_ms,
            WorkerKind::Local => self.last_seen_at_ms,
        }
    }
}

/// Every worker, with the number of the change it was read at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkersSeen {
    /// Grows with each registration, drain and departure.
    pub change: i64,
    /// Living and gone ones, by id.
    pub rows: Vec<WorkerRow>,
}

/// What happened to workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerChange {
    /// Something was heard of them.
    Seen {
        /// They count as dead from then on unless something more is heard.
        silent_at_ms: i64,
    },
    /// They were asked to finish what they have and to end.
    Draining,
    /// They ended: their tools go with them, at once.
    Gone,
}

/// Something a tool keeps for later attempts of its execution.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The lease; it has to be held.
    pub lease: LeaseRef,
    /// What.
    pub what: Kept,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
}

/// What a tool keeps.
#[derive(Clone, Debug)]
pub enum Kept {
    /// The result of a named step, once.
    Step {
        /// Its name.
        name: String,
        /// Its result, one JSON text.
        result: Payload,
        /// Steps that an execution may have.
        steps_max: usize,
    },
    /// How far it is, in place of what was kept before.
    Checkpoint(Payload),
}

/// What became of a [`Keep`].
#[derive(Clone, Debug, PartialEq)]
pub enum KeepOutcome {
    /// Stored.
    Stored,
    /// An earlier result of this step is stored, and stays.
    Earlier(Payload),
    /// The lease is not held: [`Answer::Stale`] or [`Answer::Ended`].
    Refused(Answer),
    /// The execution has as many steps as it may have.
    Full,
}

/// What the attempts of an execution have kept so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progressed {
    /// Steps with their results, in the order they were stored.
    pub steps: Vec<(String, Payload)>,
    /// The newest checkpoint.
    pub checkpoint: Option<Payload>,
}

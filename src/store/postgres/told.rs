//! What is to be told of commits (`store::observer`): what a run of a transaction wrote, and what earlier runs wrote of
//! which it is not known whether they took effect. Each write is told once, when it is known to be stored. Tells nobody
//! itself, and reads nothing.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::model::id::{ExecutionId, OperationId};
use crate::store::observer::Committed;

/// What one run wrote, and what it found among the events of others.
#[derive(Default)]
pub(super) struct Told(Mutex<Run>);

#[derive(Default)]
struct Run {
    wrote: Vec<Committed>,
    found: Vec<OperationId>,
}

impl Told {
    /// Something is written to an execution.
    pub(super) fn wrote(&self, written: Committed) {
        self.run().wrote.push(written);
    }

    /// An operation is among the events already.
    pub(super) fn found(&self, operation: OperationId) {
        self.run().found.push(operation);
    }

    /// Remembers what the run wrote, before its commit; what is to be told once that is heard of.
    pub(super) fn remember(&self, uncertain: &mut Uncertain) -> Stored {
        let Run { wrote, found } = std::mem::take(&mut *self.run());
        let ids = wrote.iter().map(|written| (written.id, written.operation)).collect();
        uncertain.remember(wrote);
        Stored { ids, found }
    }

    fn run(&self) -> std::sync::MutexGuard<'_, Run> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is stored once a commit is heard of.
pub(super) struct Stored {
    ids: HashSet<(ExecutionId, OperationId)>,
    found: Vec<OperationId>,
}

/// What was written by runs of which nothing was heard. Only the newest run of a write can have taken effect: an earlier
/// one that had would have been found by it.
#[derive(Default)]
pub(super) struct Uncertain(Vec<Committed>);

impl Uncertain {
    /// What is about to be committed.
    pub(super) fn remember(&mut self, written: Vec<Committed>) {
        if !self.0.is_empty() {
            let again: HashSet<_> = written.iter().map(|written| (written.id, written.operation)).collect();
            self.0.retain(|earlier| !again.contains(&(earlier.id, earlier.operation)));
        }
        self.0.extend(written);
    }

    /// What a commit that was heard of has stored, now or before.
    pub(super) fn stored(&mut self, stored: &Stored) -> Vec<Committed> {
        self.take(|written| {
            stored.ids.contains(&(written.id, written.operation)) || stored.found.contains(&written.operation)
        })
    }

    /// What was written to rows that are known to be stored, when it is known of all of them: the rest was not written.
    pub(super) fn struck(&mut self, ids: &HashSet<ExecutionId>) -> Vec<Committed> {
        let struck = self.take(|written| ids.contains(&written.id));
        self.0.clear();
        struck
    }

    /// A run is known to have stored nothing.
    pub(super) fn forget(&mut self, run: &Stored) {
        self.0.retain(|written| !run.ids.contains(&(written.id, written.operation)));
    }

    fn take(&mut self, is_stored: impl Fn(&Committed) -> bool) -> Vec<Committed> {
        let (stored, rest) = std::mem::take(&mut self.0).into_iter().partition(is_stored);
        self.0 = rest;
        stored
    }
}

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
        let ids = wrote.iter().map(key_of).collect();
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

/// What was written by runs of which nothing was heard, oldest first. Several may have written the same: a run that does
/// not find what an earlier one wrote proves nothing yet, for the commit of that may still be waiting for its standby.
#[derive(Default)]
pub(super) struct Uncertain(Vec<Committed>);

impl Uncertain {
    /// What is about to be committed.
    pub(super) fn remember(&mut self, written: Vec<Committed>) {
        self.0.extend(written);
    }

    /// What a commit that was heard of has stored, now or before.
    pub(super) fn stored(&mut self, stored: &Stored) -> Vec<Committed> {
        self.take(|written| stored.ids.contains(&key_of(written)) || stored.found.contains(&written.operation))
    }

    /// What was written to rows that are known to be stored, when it is known of all of them: the rest was not written.
    pub(super) fn struck(&mut self, ids: &HashSet<ExecutionId>) -> Vec<Committed> {
        let struck = self.take(|written| ids.contains(&written.id));
        self.0.clear();
        struck
    }

    /// The newest run is known to have stored nothing; one before it may have stored the same.
    pub(super) fn forget(&mut self, run: &Stored) {
        for key in &run.ids {
            if let Some(at) = self.0.iter().rposition(|written| key_of(written) == *key) {
                self.0.remove(at);
            }
        }
    }

    /// Each write once, as the newest run that wrote it put it.
    fn take(&mut self, is_stored: impl Fn(&Committed) -> bool) -> Vec<Committed> {
        let (mut stored, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.0).into_iter().partition(is_stored);
        self.0 = rest;
        let mut told = HashSet::with_capacity(stored.len());
        stored.reverse();
        stored.retain(|written| told.insert(key_of(written)));
        stored.reverse();
        stored
    }
}

fn key_of(written: &Committed) -> (ExecutionId, OperationId) {
    (written.id, written.operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE_MS: i64 = 1_800_000_000_000;

    fn execution(number: u8) -> ExecutionId {
        ExecutionId::new(MADE_MS, &[number; 10])
    }

    fn operation(number: u8) -> OperationId {
        OperationId::new(MADE_MS, &[number; 10])
    }

    /// A write of the execution and by the operation of this number; the run that wrote it shows in its time.
    fn write(number: u8, run: i64) -> Committed {
        Committed {
            id: execution(number),
            upstream: "files".into(),
            tool: "echo".into(),
            was: None,
            created_at_ms: MADE_MS,
            run_at_ms: MADE_MS,
            continues: false,
            operation: operation(number),
            at_ms: run,
            events: Vec::new(),
        }
    }

    /// A run that writes these and finds those; what its commit would store.
    fn run(uncertain: &mut Uncertain, run: i64, wrote: &[u8], found: &[u8]) -> Stored {
        let told = Told::default();
        wrote.iter().for_each(|number| told.wrote(write(*number, run)));
        found.iter().for_each(|number| told.found(operation(*number)));
        told.remember(uncertain)
    }

    /// The executions that are told of, each with the run whose words are told.
    fn words(told: &[Committed]) -> Vec<(ExecutionId, i64)> {
        told.iter().map(|written| (written.id, written.at_ms)).collect()
    }

    fn expected<const N: usize>(all: [(u8, i64); N]) -> Vec<(ExecutionId, i64)> {
        all.into_iter().map(|(number, run)| (execution(number), run)).collect()
    }

    #[test]
    fn what_a_commit_stored_is_told_once_in_its_order() {
        let mut uncertain = Uncertain::default();
        let first = run(&mut uncertain, 1, &[3, 1, 2], &[]);
        assert_eq!(words(&uncertain.stored(&first)), expected([(3, 1), (1, 1), (2, 1)]));
        assert!(uncertain.stored(&first).is_empty());
        let second = run(&mut uncertain, 2, &[], &[1, 2, 3]);
        assert!(uncertain.stored(&second).is_empty(), "what is found was told by whoever wrote it");
    }

    #[test]
    fn what_an_unheard_run_stored_is_told_by_the_run_that_finds_it() {
        let mut uncertain = Uncertain::default();
        run(&mut uncertain, 1, &[1, 2], &[]);
        let second = run(&mut uncertain, 2, &[3], &[2]);
        assert_eq!(words(&uncertain.stored(&second)), expected([(2, 1), (3, 2)]));
        assert!(uncertain.stored(&second).is_empty());
    }

    #[test]
    fn what_an_unheard_run_did_not_store_is_told_by_the_run_that_does() {
        let mut uncertain = Uncertain::default();
        run(&mut uncertain, 1, &[1], &[]);
        let second = run(&mut uncertain, 2, &[1], &[]);
        assert_eq!(words(&uncertain.stored(&second)), expected([(1, 2)]), "once, and as it was written at last");
    }

    #[test]
    fn what_nobody_found_is_not_told_and_may_be_found_later() {
        let mut uncertain = Uncertain::default();
        run(&mut uncertain, 1, &[1], &[]);
        // Part of the batch runs alone, as after a fault of one write.
        let part = run(&mut uncertain, 2, &[2], &[]);
        assert_eq!(words(&uncertain.stored(&part)), expected([(2, 2)]));
        let rest = run(&mut uncertain, 3, &[], &[1]);
        assert_eq!(words(&uncertain.stored(&rest)), expected([(1, 1)]));
    }

    #[test]
    fn a_run_that_failed_for_certain_tells_nothing_of_its_own() {
        let mut uncertain = Uncertain::default();
        let failed = run(&mut uncertain, 1, &[1, 2], &[]);
        uncertain.forget(&failed);
        let second = run(&mut uncertain, 2, &[], &[1, 2]);
        assert!(uncertain.stored(&second).is_empty());
    }

    #[test]
    fn an_unheard_run_is_remembered_although_the_next_one_failed_for_certain() {
        let mut uncertain = Uncertain::default();
        run(&mut uncertain, 1, &[1], &[]);
        // It did not see what was committed only then, and failed on it.
        let failed = run(&mut uncertain, 2, &[1], &[]);
        uncertain.forget(&failed);
        let third = run(&mut uncertain, 3, &[], &[1]);
        assert_eq!(words(&uncertain.stored(&third)), expected([(1, 1)]));
    }

    #[test]
    fn rows_that_were_struck_are_told_and_the_rest_is_known_not_to_be_stored() {
        let mut uncertain = Uncertain::default();
        uncertain.remember(vec![write(1, 1), write(2, 1), write(3, 1)]);
        let struck = HashSet::from([execution(3), execution(1)]);
        assert_eq!(words(&uncertain.struck(&struck)), expected([(1, 1), (3, 1)]));
        let second = run(&mut uncertain, 2, &[], &[1, 2, 3]);
        assert!(uncertain.stored(&second).is_empty());
    }

    #[test]
    fn one_operation_on_several_executions_is_told_of_each() {
        let mut uncertain = Uncertain::default();
        let shared = |number: u8| Committed { operation: operation(9), ..write(number, 1) };
        uncertain.remember(vec![shared(1), shared(2)]);
        let second = run(&mut uncertain, 2, &[], &[9]);
        assert_eq!(words(&uncertain.stored(&second)), expected([(1, 1), (2, 1)]));
    }
}

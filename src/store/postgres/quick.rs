//! The common write without a read: a new call whose key is taken for free, a command on a row that this process wrote last.
//! What is sent says by itself where that was wrong, since each row carries its version and each key is unique; what was
//! wrong, or could not be decided like this, is left for a batch that reads (`batch.rs`). Sends nothing itself.

use std::collections::HashSet;
use std::sync::Arc;

use super::batch::{Outcome, Write};
use super::draft::{Columns, Draft, Scope, Step, scope};
use super::fault::Sql;
use super::liveness::Liveness;
use super::memory::Memory;
use super::settings::PostgresSettings;
use super::twins::asks_for_twins;
use crate::model::decide::Answer;
use crate::model::id::ExecutionId;
use crate::store::observer::Committed;
use crate::store::{Apply, LeaseRef, Mark, Submit, asking};

/// Writes decided on what is remembered.
pub(super) struct Quick<'a> {
    draft: Draft<'a>,
    memory: &'a Memory,
    settings: &'a PostgresSettings,
    /// In the order of the writes; absent: it has to be read for.
    outcomes: Vec<Option<Outcome>>,
    /// Executions with a write that has to be read for: later ones to the same wait for it.
    later: HashSet<ExecutionId>,
    later_keys: HashSet<Scope>,
}

impl<'a> Quick<'a> {
    /// Decides what can be decided without reading.
    pub(super) fn decide(
        writes: &[&Write],
        policy_ids: &[Option<Arc<str>>],
        (settings, liveness, memory): (&'a PostgresSettings, &'a Liveness, &'a Memory),
    ) -> Quick<'a> {
        let draft = Draft::new(settings, liveness);
        let (later, later_keys) = (HashSet::new(), HashSet::new());
        let mut quick = Quick { draft, memory, settings, outcomes: Vec::new(), later, later_keys };
        for (write, policy_id) in writes.iter().zip(policy_ids) {
            let waits = write.ids().any(|id| quick.later.contains(&id));
            let outcome = if waits { None } else { quick.run(write, policy_id.as_ref()) };
            if outcome.is_none() {
                quick.later.extend(write.ids());
                quick.later_keys.extend(write.submit().and_then(|submit| scope(&submit.submission.ident)));
            }
            quick.outcomes.push(outcome);
        }
        quick
    }

    /// What there is to send.
    pub(super) fn columns(&self) -> Sql<Columns<'_>> {
        self.draft.columns()
    }

    /// What is to be told of it once it is stored.
    pub(super) fn committed(&self) -> Vec<Committed> {
        self.draft.committed().collect()
    }

    /// Remembers what is stored; the outcomes of the writes that are.
    pub(super) fn stored(
        mut self,
        writes: &[&Write],
        expected: &HashSet<ExecutionId>,
        struck: &HashSet<ExecutionId>,
    ) -> Vec<Option<Outcome>> {
        let holds = |id: &ExecutionId| !expected.contains(id) || struck.contains(id);
        for (write, outcome) in writes.iter().zip(&mut self.outcomes) {
            if !write.ids().all(|id| holds(&id)) {
                *outcome = None;
            }
        }
        // A row that was no reason to write anything may have changed since it was remembered.
        let known = |id: &ExecutionId| struck.contains(id) || !(expected.contains(id) || self.later.contains(id));
        self.memory.put(self.draft.into_entries().filter(|entry| known(&entry.head.id())));
        self.outcomes
    }

    fn run(&mut self, write: &Write, policy_id: Option<&Arc<str>>) -> Option<Outcome> {
        if write.is_long(self.settings.payload_chunk_bytes) {
            return None;
        }
        match write {
            Write::Submit(submit) => self.submit(submit, policy_id),
            Write::Apply(apply) => self.apply(apply),
            Write::Heartbeat { leases, ttl_ms, now_ms } => self.heartbeat(leases, *ttl_ms, *now_ms),
            Write::Mark { id, mark, now_ms } => self.mark(*id, *mark, *now_ms),
            Write::Check => None,
        }
    }

    /// A call that is new unless somebody holds its key.
    fn submit(&mut self, submit: &Submit, policy_id: Option<&Arc<str>>) -> Option<Outcome> {
        let ident = &submit.submission.ident;
        let key_is_known =
            scope(ident).is_some_and(|scope| self.draft.has_holder(&scope) || self.later_keys.contains(&scope));
        if asks_for_twins(submit) || key_is_known || policy_id.is_none() {
            return None;
        }
        // A repeat by its operation: what is stored was told, and must not be told once more when nothing is heard of this.
        // It is not taken for that: another repeat finds it, too.
        if self.draft.has(ident.id) || self.memory.has(ident.id) {
            return None;
        }
        // What can not be decided here is told by the batch that reads.
        self.draft.submit(submit, policy_id).ok().map(Outcome::Submitted)
    }

    /// The row as it is remembered, in the draft.
    fn recall(&mut self, id: ExecutionId) -> bool {
        if !self.draft.has(id) {
            let Some(entry) = self.memory.take(id) else { return false };
            self.draft.put(entry);
        }
        true
    }

    /// A command that changes the row. One that does not must not be answered by what is only remembered, unless the row
    /// is written anyway.
    fn apply(&mut self, apply: &Apply) -> Option<Outcome> {
        if !self.recall(apply.id) {
            return None;
        }
        let applied = match self.draft.apply(apply) {
            Step::Changed(applied) => applied,
            Step::Same(applied) if self.draft.is_changed(apply.id) => applied,
            Step::Same(_) | Step::Before(..) | Step::Missing => return None,
        };
        Some(Outcome::Applied(Some(Box::new(applied))))
    }

    /// Leases that are all held, as far as is remembered.
    fn heartbeat(&mut self, leases: &[LeaseRef], ttl_ms: i64, now_ms: i64) -> Option<Outcome> {
        for lease in leases {
            if !self.recall(lease.id) {
                return None;
            }
            let head = self.draft.head(lease.id)?;
            if !matches!(asking::held(head, *lease, now_ms, &self.settings.limits), Answer::Extended) {
                return None;
            }
        }
        Some(Outcome::Beaten(leases.iter().map(|lease| self.draft.heartbeat(lease, ttl_ms, now_ms).1).collect()))
    }

    fn mark(&mut self, id: ExecutionId, mark: Mark, now_ms: i64) -> Option<Outcome> {
        if !self.recall(id) {
            return None;
        }
        // Whether a call has a key never changes, and a keyed one has no marks.
        let keyed = self.draft.head(id)?.ident.key.is_some();
        let done = keyed || self.draft.mark(id, mark, now_ms) || self.draft.is_changed(id);
        done.then_some(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::execution::Identification;
    use crate::model::id::OperationId;
    use crate::model::policy::Identity;
    use crate::model::submit::{IfWaited, Submission};
    use crate::store::postgres::db::Db;

    #[tokio::test]
    async fn a_submission_that_is_remembered_is_neither_sent_nor_told_once_more() {
        let settings = Arc::new(PostgresSettings::for_tests());
        // Nobody connects to it.
        let db = Arc::new(Db::new("postgres://nobody@127.0.0.1:9/none", settings).unwrap());
        let (liveness, memory) = (Liveness::new(&db), Memory::new(10));
        let id = ExecutionId::from_uuid(Uuid::from_u128(1));
        let ident = Identification { key: Some("k".into()), ..Identification::sample(id) };
        let (identity, operation) = (Identity::default(), OperationId::from_uuid(Uuid::from_u128(2)));
        let submission = Submission {
            ident,
            identity,
            run_at_ms: None,
            by: None,
            lease: None,
            waiter: None,
            if_waited: IfWaited::New,
        };
        let submit = Submit { submission, arguments: "{}".into(), meta: None, operation, now_ms: 1 };
        let write = Write::Submit(Box::new(submit));
        let decide = || Quick::decide(&[&write], &[Some("policy".into())], (db.settings(), &liveness, &memory));

        let first = decide();
        assert_eq!(first.committed().len(), 1);
        let struck = HashSet::from([id]);
        assert!(first.stored(&[&write], &struck, &struck)[0].is_some());
        for _ in 0..2 {
            let repeat = decide();
            assert!(repeat.committed().is_empty(), "what is stored was told");
            assert!(repeat.stored(&[&write], &HashSet::new(), &HashSet::new())[0].is_none(), "it is read for");
        }
    }
}

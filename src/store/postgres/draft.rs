//! Rows as the writes of a batch leave them, one after the other, and what of them is to be written. Pure: the rows come
//! from whoever has read or remembered them, and the rules are `store::deciding`'s.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::attached::Attached;
use super::columns::Written;
use super::fault::{Fault, Sql};
use super::liveness::Liveness;
use super::settings::PostgresSettings;
use super::twins::{asks_for_twins, is_twin, since_ms};
use super::write::{Changed, NewRow, Stored};
use crate::model::decide::Answer;
use crate::model::event::EventRecord;
use crate::model::execution::{Head, Identification};
use crate::model::id::{ExecutionId, OperationId, ProcessId};
use crate::model::submit::{Found, Twin};
use crate::store::deciding::{self, Applying, Change, Entry, Settled};
use crate::store::observer::Committed;
use crate::store::{Applied, Apply, LeaseRef, Mark, PayloadKind, Submit, SubmitOutcome};

/// A row as the batch has left it so far.
struct Row {
    entry: Entry,
    /// The version it was read at; absent: it is new.
    was: Option<i64>,
    changed: bool,
    written: Written,
    policy_id: Arc<str>,
    key_ttl_ms: i64,
    /// Whose key it takes over.
    taken_from: Option<ExecutionId>,
}

impl Row {
    fn read(entry: Entry) -> Row {
        let was = Some(entry.head.version);
        let policy_id = Arc::from("");
        Row { entry, was, changed: false, written: Written::default(), policy_id, key_ttl_ms: 0, taken_from: None }
    }

    /// Counts the version up for a change that the rules folded in.
    fn touch(&mut self) {
        self.entry.head.version += 1;
        self.changed = true;
    }

    fn record(&mut self, change: Change, write: deciding::Write) {
        self.touch();
        if self.written.records.is_empty() {
            self.written.was = Some(change.was);
        }
        self.written.records.extend(write.records(change.first_seq, change.events));
    }
}

/// What a key is unique in.
pub(super) type Scope = (String, String, String, String);

/// The scope of a call's key, if it has one.
pub(super) fn scope(ident: &Identification) -> Option<Scope> {
    let key = ident.key.clone()?;
    Some((ident.namespace.clone(), ident.upstream.clone(), ident.tool.clone(), key))
}

/// What a command did to a draft.
pub(super) enum Step {
    /// There is no such row.
    Missing,
    /// The row changed.
    Changed(Applied),
    /// The row is as it was.
    Same(Applied),
    /// The command's operation is among the events: the row as it is, and its answer where this batch ran it.
    Before(Head, Option<Answer>),
}

/// What is to be written, as columns.
pub(super) struct Columns<'a> {
    pub(super) changed: Changed<'a>,
    pub(super) stored: Stored<'a>,
    /// New rows whose keys are taken over.
    pub(super) in_place: Stored<'a>,
    /// Every row that has to be struck.
    pub(super) expected: HashSet<ExecutionId>,
}

/// The rows a batch works on.
pub(super) struct Draft<'a> {
    settings: &'a PostgresSettings,
    liveness: &'a Liveness,
    rows: HashMap<ExecutionId, Row>,
    /// New rows in the order they came.
    new: Vec<ExecutionId>,
    holders: HashMap<Scope, ExecutionId>,
    living: HashSet<ProcessId>,
    /// Operations that are among the events already.
    found: Vec<OperationId>,
    /// What earlier runs attached to which twin.
    attached: Option<&'a Attached>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(settings: &'a PostgresSettings, liveness: &'a Liveness) -> Draft<'a> {
        Draft {
            settings,
            liveness,
            rows: HashMap::new(),
            new: Vec::new(),
            holders: HashMap::new(),
            living: HashSet::new(),
            found: Vec::new(),
            attached: None,
        }
    }

    /// The batch may run several times, and remembers there which twins took its calls.
    pub(super) fn remember_attached(&mut self, attached: &'a Attached) {
        self.attached = Some(attached);
    }

    /// A row as it is stored, or was when this process wrote it last.
    pub(super) fn put(&mut self, entry: Entry) {
        self.rows.insert(entry.head.id(), Row::read(entry));
    }

    pub(super) fn has(&self, id: ExecutionId) -> bool {
        self.rows.contains_key(&id)
    }

    /// The row is to be written.
    pub(super) fn is_changed(&self, id: ExecutionId) -> bool {
        self.rows.get(&id).is_some_and(|row| row.changed)
    }

    /// The row as it is now.
    pub(super) fn head(&self, id: ExecutionId) -> Option<&Head> {
        self.rows.get(&id).map(|row| &row.entry.head)
    }

    /// Who holds a key.
    pub(super) fn put_holder(&mut self, scope: Scope, id: ExecutionId) {
        self.holders.insert(scope, id);
    }

    pub(super) fn has_holder(&self, scope: &Scope) -> bool {
        self.holders.contains_key(scope)
    }

    /// A process that lives, besides our own.
    pub(super) fn put_living(&mut self, process: ProcessId) {
        self.living.insert(process);
    }

    /// Runs a call, whose policy is stored under `policy_id`.
    pub(super) fn submit(&mut self, submit: &Submit, policy_id: Option<&Arc<str>>) -> Sql<SubmitOutcome> {
        let (id, limits) = (submit.submission.ident.id, self.settings.limits);
        if let Some(row) = self.rows.get(&id) {
            return match row.entry.operations.contains(&submit.operation) {
                true => {
                    self.found.push(submit.operation);
                    Ok(SubmitOutcome::New(Box::new(row.entry.head.clone())))
                }
                false => Err(Fault::internal(format!("execution {id} exists already"))),
            };
        }
        let before = self.attached.and_then(|attached| attached.twin_of(submit));
        if let Some(head) = before.and_then(|twin| self.head(twin)).filter(|head| Attached::shows(head, submit)) {
            return Ok(SubmitOutcome::Existing(Box::new(head.clone())));
        }
        let scope = scope(&submit.submission.ident);
        let holder_id = scope.as_ref().and_then(|scope| self.holders.get(scope)).copied();
        let holder = holder_id.map(|id| self.rows.get(&id).ok_or_else(|| missing(id))).transpose()?;
        let twins = self.twins_of(submit);
        let refs: Vec<Twin<'_>> = twins.iter().map(|(head, waited)| Twin { head, waited: *waited }).collect();
        let found = Found { holder: holder.map(|row| &row.entry.head), twins: &refs };
        match deciding::submission(submit, found, &limits) {
            Settled::Repeated(head) => Ok(SubmitOutcome::New(head)),
            Settled::Start(entry, events) => {
                let mut payloads = vec![(PayloadKind::Arguments, submit.arguments.clone())];
                payloads.extend(submit.meta.clone().map(|meta| (PayloadKind::Meta, meta)));
                let records = deciding::Write::from(submit).records(1, events).collect();
                let head = entry.head.clone();
                let row = Row {
                    entry,
                    was: None,
                    changed: true,
                    written: Written { was: None, records, payloads },
                    policy_id: policy_id.cloned().ok_or_else(|| Fault::internal("a call without a policy"))?,
                    key_ttl_ms: submit.submission.identity.key_ttl_ms,
                    // A key that this very batch gave out is written by whoever has it last.
                    taken_from: holder_id,
                };
                self.rows.insert(id, row);
                self.new.push(id);
                if let Some(scope) = scope {
                    self.holders.insert(scope, id);
                }
                Ok(SubmitOutcome::New(Box::new(head)))
            }
            Settled::Joined => self.head_of(holder_id).map(SubmitOutcome::Existing),
            Settled::Conflict { foreign, note } => {
                let holder_id = holder_id.ok_or_else(|| Fault::internal("a conflict with nobody"))?;
                let row = self.rows.get_mut(&holder_id).ok_or_else(|| missing(holder_id))?;
                match deciding::note(&mut row.entry, note, submit) {
                    Some(change) => row.record(change, submit.into()),
                    // A run of which nothing was heard wrote it, and could not tell.
                    None if row.entry.operations.contains(&submit.operation) => self.found.push(submit.operation),
                    None => {}
                }
                Ok(SubmitOutcome::Conflict((!foreign).then_some(holder_id)))
            }
            Settled::Attached(index) => {
                let twin = twins[index].0.id();
                let row = self.rows.get_mut(&twin).ok_or_else(|| missing(twin))?;
                if deciding::attach(&mut row.entry.head, submit) {
                    row.touch();
                    if let Some(attached) = self.attached {
                        attached.note(submit, twin);
                    }
                }
                self.head_of(Some(twin)).map(SubmitOutcome::Existing)
            }
            Settled::Waited(index) => Ok(SubmitOutcome::Waited(twins[index].0.id())),
        }
    }

    fn head_of(&self, id: Option<ExecutionId>) -> Sql<Box<Head>> {
        let head = id.and_then(|id| self.head(id));
        head.map(|head| Box::new(head.clone())).ok_or_else(|| Fault::internal("an execution that is not there"))
    }

    /// The twins of a call as they stand now: those that were read, and those that this batch has stored, or has let
    /// somebody leave.
    fn twins_of(&self, submit: &Submit) -> Vec<(Head, bool)> {
        if !asks_for_twins(submit) {
            return Vec::new();
        }
        let ident = &submit.submission.ident;
        let mut heads: Vec<&Head> = self.rows.values().map(|row| &row.entry.head).collect();
        heads.sort_unstable_by_key(|head| head.id());
        let alike = heads.into_iter().filter(|head| is_twin(head, ident, since_ms(submit)));
        let lives = |process: ProcessId| self.liveness.is_own(process) || self.living.contains(&process);
        alike.map(|head| (head.clone(), head.waiter.is_some_and(lives))).collect()
    }

    /// Runs a command.
    pub(super) fn apply(&mut self, apply: &Apply) -> Step {
        let Some(row) = self.rows.get_mut(&apply.id) else { return Step::Missing };
        match deciding::apply(&mut row.entry, apply, &self.settings.limits) {
            Applying::Repeated => {
                let newest = |it: &&EventRecord| it.operation == apply.operation;
                let record = row.written.records.iter().rfind(newest);
                let answer = record.map(|record| deciding::answer_of(&record.event));
                if answer.is_none() {
                    self.found.push(apply.operation);
                }
                Step::Before(row.entry.head.clone(), answer)
            }
            Applying::Decided(None, answer) => Step::Same(Applied { head: row.entry.head.clone(), answer }),
            Applying::Decided(Some(change), answer) => {
                if change.records_payload {
                    row.written.payloads.extend(apply.payload.clone());
                }
                row.record(change, apply.into());
                Step::Changed(Applied { head: row.entry.head.clone(), answer })
            }
        }
    }

    /// Extends a lease; true when the row changed.
    pub(super) fn heartbeat(&mut self, lease: &LeaseRef, ttl_ms: i64, now_ms: i64) -> (bool, Answer) {
        let Some(row) = self.rows.get_mut(&lease.id) else { return (false, Answer::Stale) };
        let beat = (lease.fencing_token, ttl_ms);
        let (changed, answer) = deciding::heartbeat(&mut row.entry.head, beat, now_ms, &self.settings.limits);
        if changed {
            row.touch();
        }
        (changed, answer)
    }

    /// Sets a delivery mark; true when the row changed.
    pub(super) fn mark(&mut self, id: ExecutionId, mark: Mark, now_ms: i64) -> bool {
        let Some(row) = self.rows.get_mut(&id) else { return false };
        let changed = deciding::mark(&mut row.entry.head, mark, now_ms);
        if changed {
            row.touch();
        }
        changed
    }

    /// Every row that changed, as columns.
    pub(super) fn columns(&self) -> Sql<Columns<'_>> {
        let chunk_bytes = self.settings.payload_chunk_bytes;
        let (mut changed, mut stored, mut in_place) = (Changed::default(), Stored::default(), Stored::default());
        let mut expected = HashSet::new();
        for (id, row) in self.rows.iter().filter(|(_, row)| row.changed) {
            expected.insert(*id);
            let Some(was) = row.was else { continue };
            changed.push(&row.entry.head, was, &row.written, chunk_bytes)?;
        }
        let mut keys_given: HashSet<Scope> = HashSet::new();
        for row in self.new.iter().filter_map(|id| self.rows.get(id)) {
            let scope = scope(&row.entry.head.ident);
            let taken_from = row.taken_from;
            if scope.is_some_and(|scope| !keys_given.insert(scope)) {
                // Two rows of one batch with the same key: the statement can not change the key's row twice.
                return Err(Fault::internal("two new executions of one batch have the same key"));
            }
            let new = NewRow {
                head: &row.entry.head,
                written: &row.written,
                policy_id: &row.policy_id,
                key_ttl_ms: row.key_ttl_ms,
                taken_from,
            };
            match taken_from {
                Some(_) => in_place.push(new, chunk_bytes)?,
                None => stored.push(new, chunk_bytes)?,
            }
        }
        Ok(Columns { changed, stored, in_place, expected })
    }

    /// What is written with each row that changed.
    pub(super) fn written(&self) -> impl Iterator<Item = (ExecutionId, &Written)> {
        self.rows.iter().filter(|(_, row)| row.changed).map(|(id, row)| (*id, &row.written))
    }

    /// What is to be told of the rows that changed.
    pub(super) fn committed(&self) -> impl Iterator<Item = Committed> {
        self.rows.values().filter(|row| row.changed).flat_map(|row| row.written.committed(&row.entry.head))
    }

    /// Operations that were found among the events.
    pub(super) fn found(&self) -> &[OperationId] {
        &self.found
    }

    /// The rows as they are after the batch.
    pub(super) fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.rows.into_values().map(|row| row.entry)
    }
}

fn missing(id: ExecutionId) -> Fault {
    Fault::damaged(format!("a key stands for execution {id}, which is missing"))
}

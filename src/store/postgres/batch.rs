//! One batch of writes in one transaction: everything it needs is read, every write is decided on what the writes before
//! it left, and the outcome is written at once. A row that another process changed meanwhile makes all of it run again.
//! Decides nothing: the rules are `store::deciding`'s.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::bind::{int, ints, texts, uuids};
use super::db::{Db, Tx};
use super::events;
use super::fault::{Fault, Sql};
use super::heads;
use super::liveness::Liveness;
use super::registry::clock;
use super::twins::{TWINS, asks_for_twins, is_twin, since_ms};
use super::write::{Changed, NewRow, Stored, Written};
use crate::model::decide::Answer;
use crate::model::execution::{Head, Identification};
use crate::model::id::{ExecutionId, ProcessId};
use crate::model::policy::Policy;
use crate::model::submit::{Found, Twin};
use crate::store::deciding::{self, Applying, Change, Entry, Settled};
use crate::store::{Applied, Apply, Error, LeaseRef, Mark, PayloadKind, Result, Submit, SubmitOutcome};

/// A write to executions.
pub(super) enum Write {
    /// A call.
    Submit(Box<Submit>),
    /// A command.
    Apply(Box<Apply>),
    /// Leases that go on.
    Heartbeat { leases: Vec<LeaseRef>, ttl_ms: i64, now_ms: i64 },
    /// Nothing of value, to learn whether the store works, and with it what is queued before it.
    Check,
    /// A delivery mark.
    Mark { id: ExecutionId, mark: Mark, now_ms: i64 },
}

/// What became of a write.
pub(super) enum Outcome {
    /// Of a call.
    Submitted(SubmitOutcome),
    /// Of a command.
    Applied(Option<Box<Applied>>),
    /// Of leases.
    Beaten(Vec<Answer>),
    /// Of what has no answer.
    Done,
}

impl Write {
    /// Bytes of payload.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Write::Submit(submit) => submit.arguments.len() + submit.meta.as_ref().map_or(0, |meta| meta.len()),
            Write::Apply(apply) => apply.payload.as_ref().map_or(0, |(_, text)| text.len()),
            Write::Heartbeat { .. } | Write::Mark { .. } | Write::Check => 0,
        }
    }
}

impl Outcome {
    /// An answer to another kind of write than was asked for.
    pub(super) fn strange(&self) -> Error {
        Error::Internal("a write was answered as another kind of write".into())
    }
}

/// The ids of the policies of all calls of a batch: stored before it, so that a batch that runs again finds them.
pub(super) async fn store_policies(db: &Db, writes: &[&Write]) -> Result<Vec<Option<Arc<str>>>> {
    let mut ids = Vec::with_capacity(writes.len());
    for write in writes {
        let Write::Submit(submit) = write else {
            ids.push(None);
            continue;
        };
        let policy = &submit.submission.ident.policy;
        ids.push(Some(match db.policies().stored_id(policy) {
            Some(id) => id,
            None => store_policy(db, policy).await?,
        }));
    }
    Ok(ids)
}

async fn store_policy(db: &Db, policy: &Policy) -> Result<Arc<str>> {
    let id = db.transaction(move |tx| Box::pin(tx.policies().insert(policy))).await?;
    db.policies().note_stored(policy, &id);
    Ok(id)
}

/// What a batch works on.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) writes: &'a [&'a Write],
    pub(super) policy_ids: &'a [Option<Arc<str>>],
    pub(super) liveness: &'a Liveness,
    /// It may have been committed before.
    pub(super) again: bool,
}

/// Runs all writes in order; their outcomes in the same order.
pub(super) async fn run(tx: &Tx<'_>, given: Given<'_>) -> Sql<Vec<Outcome>> {
    let mut batch = Batch::read(tx, given).await?;
    let mut outcomes = Vec::with_capacity(given.writes.len());
    for (place, write) in given.writes.iter().enumerate() {
        outcomes.push(match write {
            Write::Submit(submit) => Outcome::Submitted(batch.submit(place, submit)?),
            Write::Apply(apply) => Outcome::Applied(batch.apply(apply).await?.map(Box::new)),
            Write::Heartbeat { leases, ttl_ms, now_ms } => Outcome::Beaten(batch.heartbeat(leases, *ttl_ms, *now_ms)),
            Write::Mark { id, mark, now_ms } => {
                batch.mark(*id, *mark, *now_ms);
                Outcome::Done
            }
            Write::Check => {
                tx.execute(CHECK, &[]).await?;
                Outcome::Done
            }
        });
    }
    batch.write().await?;
    Ok(outcomes)
}

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
        self.written.records.extend(write.records(change.first_seq, change.events));
    }
}

type Scope = (String, String, String, String);

fn scope(ident: &Identification) -> Option<Scope> {
    let key = ident.key.clone()?;
    Some((ident.namespace.clone(), ident.upstream.clone(), ident.tool.clone(), key))
}

struct Batch<'a> {
    tx: &'a Tx<'a>,
    given: Given<'a>,
    rows: HashMap<ExecutionId, Row>,
    /// New rows in the order they came.
    new: Vec<ExecutionId>,
    holders: HashMap<Scope, ExecutionId>,
    living: HashSet<ProcessId>,
}

const HOLDERS: &str = "SELECT g.place, k.execution_id FROM \
    unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[]) AS g(place, namespace, upstream, tool, key) \
    JOIN idempotency_keys k ON k.namespace = g.namespace AND k.upstream = g.upstream AND k.tool = g.tool \
    AND k.key = g.key";

const LIVING: &str = concat!("SELECT id FROM processes WHERE expires_at_ms > ", clock!());

impl<'a> Batch<'a> {
    /// Reads what the writes are decided on.
    async fn read(tx: &'a Tx<'a>, given: Given<'a>) -> Sql<Batch<'a>> {
        let mut batch =
            Batch { tx, given, rows: HashMap::new(), new: Vec::new(), holders: HashMap::new(), living: HashSet::new() };
        let mut ids: Vec<ExecutionId> = Vec::new();
        batch.find_holders(&mut ids).await?;
        batch.find_twins(&mut ids).await?;
        for write in given.writes {
            match write {
                Write::Submit(submit) if given.again => ids.push(submit.submission.ident.id),
                Write::Submit(_) | Write::Check => {}
                Write::Apply(apply) => ids.push(apply.id),
                Write::Heartbeat { leases, .. } => ids.extend(leases.iter().map(|lease| lease.id)),
                Write::Mark { id, .. } => ids.push(*id),
            }
        }
        ids.sort_unstable();
        ids.dedup();
        if !ids.is_empty() {
            for entry in heads::entries(tx, &ids).await? {
                batch.rows.insert(entry.head.id(), Row::read(entry));
            }
        }
        Ok(batch)
    }

    async fn find_holders(&mut self, ids: &mut Vec<ExecutionId>) -> Sql<()> {
        let (mut places, mut scopes) = (Vec::new(), Vec::new());
        for (place, write) in self.given.writes.iter().enumerate() {
            if let Write::Submit(submit) = write
                && let Some(scope) = scope(&submit.submission.ident)
            {
                places.push(place as i64);
                scopes.push(scope);
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        let column = |part: fn(&Scope) -> &String| scopes.iter().map(|scope| part(scope).as_str()).collect::<Vec<_>>();
        let (namespaces, upstreams) = (column(|scope| &scope.0), column(|scope| &scope.1));
        let (tools, keys) = (column(|scope| &scope.2), column(|scope| &scope.3));
        let values = [ints(&places), texts(&namespaces), texts(&upstreams), texts(&tools), texts(&keys)];
        let found = self.tx.query(HOLDERS, &values).await?;
        let by_place: HashMap<i64, Scope> = places.iter().copied().zip(scopes.iter().cloned()).collect();
        for row in &found {
            let (place, id) = (row.try_get::<_, i64>(0)?, ExecutionId::from_uuid(row.try_get(1)?));
            if let Some(scope) = by_place.get(&place) {
                self.holders.insert(scope.clone(), id);
                ids.push(id);
            }
        }
        Ok(())
    }

    async fn find_twins(&mut self, ids: &mut Vec<ExecutionId>) -> Sql<()> {
        let asking: Vec<(usize, &Submit)> = self.given.writes.iter().enumerate().filter_map(asks_for_twins).collect();
        if asking.is_empty() {
            return Ok(());
        }
        let column = |part: fn(&Identification) -> &String| -> Vec<&str> {
            asking.iter().map(|(_, submit)| part(&submit.submission.ident).as_str()).collect()
        };
        let since: Vec<i64> = asking.iter().map(|(_, submit)| since_ms(submit)).collect();
        let own: Vec<Uuid> = self.given.liveness.own().iter().map(|process| *process.as_uuid()).collect();
        let limit = super::bind::count(self.tx.settings().twins_max);
        let (hashes, namespaces) = (column(|ident| &ident.arguments_hash), column(|ident| &ident.namespace));
        let (upstreams, tools) = (column(|ident| &ident.upstream), column(|ident| &ident.tool));
        let (principals, callers) = (column(|ident| &ident.principal), column(|ident| &ident.caller));
        let values = [
            texts(&hashes),
            texts(&namespaces),
            texts(&upstreams),
            texts(&tools),
            texts(&principals),
            texts(&callers),
            ints(&since),
            int(&limit),
            uuids(&own),
        ];
        let found = self.tx.query(TWINS, &values).await?;
        for row in &found {
            ids.push(ExecutionId::from_uuid(row.try_get(0)?));
        }
        if !found.is_empty() {
            for row in self.tx.query(LIVING, &[]).await? {
                self.living.insert(ProcessId::from_uuid(row.try_get(0)?));
            }
        }
        Ok(())
    }

    fn submit(&mut self, place: usize, submit: &Submit) -> Sql<SubmitOutcome> {
        let (id, limits) = (submit.submission.ident.id, self.tx.settings().limits);
        if let Some(row) = self.rows.get(&id) {
            return match row.entry.operations.contains(&submit.operation) {
                true => Ok(SubmitOutcome::New(Box::new(row.entry.head.clone()))),
                false => Err(Fault::internal(format!("execution {id} exists already"))),
            };
        }
        let scope = scope(&submit.submission.ident);
        let holder_id = scope.as_ref().and_then(|scope| self.holders.get(scope)).copied();
        let holder = holder_id.map(|id| self.rows.get(&id).ok_or_else(|| missing(id))).transpose()?;
        let twins = self.twins_of(place, submit);
        let refs: Vec<Twin<'_>> = twins.iter().map(|(head, waited)| Twin { head, waited: *waited }).collect();
        let found = Found { holder: holder.map(|row| &row.entry.head), twins: &refs };
        match deciding::submission(submit, found, &limits) {
            Settled::Repeated(head) => Ok(SubmitOutcome::New(head)),
            Settled::Start(entry, events) => {
                let policy_id = self.given.policy_ids[place].clone();
                let mut payloads = vec![(PayloadKind::Arguments, submit.arguments.clone())];
                payloads.extend(submit.meta.clone().map(|meta| (PayloadKind::Meta, meta)));
                let records = deciding::Write::from(submit).records(1, events).collect();
                let head = entry.head.clone();
                let row = Row {
                    entry,
                    was: None,
                    changed: true,
                    written: Written { records, payloads },
                    policy_id: policy_id.ok_or_else(|| Fault::internal("a call without a policy"))?,
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
                if let Some(change) = deciding::note(&mut row.entry, note, submit) {
                    row.record(change, submit.into());
                }
                Ok(SubmitOutcome::Conflict((!foreign).then_some(holder_id)))
            }
            Settled::Attached(index) => {
                let twin = twins[index].0.id();
                let row = self.rows.get_mut(&twin).ok_or_else(|| missing(twin))?;
                if deciding::attach(&mut row.entry.head, submit) {
                    row.touch();
                }
                self.head_of(Some(twin)).map(SubmitOutcome::Existing)
            }
            Settled::Waited(index) => Ok(SubmitOutcome::Waited(twins[index].0.id())),
        }
    }

    fn head_of(&self, id: Option<ExecutionId>) -> Sql<Box<Head>> {
        let row = id.and_then(|id| self.rows.get(&id));
        row.map(|row| Box::new(row.entry.head.clone())).ok_or_else(|| Fault::internal("an execution that is not there"))
    }

    /// The twins of a call as they stand now: those of the database, and those that this batch has stored, or has let
    /// somebody leave.
    fn twins_of(&self, place: usize, submit: &Submit) -> Vec<(Head, bool)> {
        if asks_for_twins((place, &self.given.writes[place])).is_none() {
            return Vec::new();
        }
        let ident = &submit.submission.ident;
        let mut heads: Vec<&Head> = self.rows.values().map(|row| &row.entry.head).collect();
        heads.sort_unstable_by_key(|head| head.id());
        let alike = heads.into_iter().filter(|head| is_twin(head, ident, since_ms(submit)));
        let lives = |process: ProcessId| self.given.liveness.is_own(process) || self.living.contains(&process);
        alike.map(|head| (head.clone(), head.waiter.is_some_and(lives))).collect()
    }

    async fn apply(&mut self, apply: &Apply) -> Sql<Option<Applied>> {
        let limits = self.tx.settings().limits;
        let Some(row) = self.rows.get_mut(&apply.id) else { return Ok(None) };
        let answer = match deciding::apply(&mut row.entry, apply, &limits) {
            Applying::Repeated => match row.written.records.iter().rfind(|it| it.operation == apply.operation) {
                Some(record) => deciding::answer_of(&record.event),
                None => events::answer_of(self.tx, apply.id, apply.operation).await?,
            },
            Applying::Decided(None, answer) => answer,
            Applying::Decided(Some(change), answer) => {
                if change.records_payload {
                    row.written.payloads.extend(apply.payload.clone());
                }
                row.record(change, apply.into());
                answer
            }
        };
        Ok(Some(Applied { head: row.entry.head.clone(), answer }))
    }

    fn heartbeat(&mut self, leases: &[LeaseRef], ttl_ms: i64, now_ms: i64) -> Vec<Answer> {
        let limits = self.tx.settings().limits;
        let extend = |lease: &LeaseRef| {
            let Some(row) = self.rows.get_mut(&lease.id) else { return Answer::Stale };
            let beat = (lease.fencing_token, ttl_ms);
            let (changed, answer) = deciding::heartbeat(&mut row.entry.head, beat, now_ms, &limits);
            if changed {
                row.touch();
            }
            answer
        };
        leases.iter().map(extend).collect()
    }

    fn mark(&mut self, id: ExecutionId, mark: Mark, now_ms: i64) {
        if let Some(row) = self.rows.get_mut(&id)
            && deciding::mark(&mut row.entry.head, mark, now_ms)
        {
            row.touch();
        }
    }

    /// Writes every row that changed; one that another process changed meanwhile makes everything run again.
    async fn write(&self) -> Sql<()> {
        let chunk_bytes = self.tx.settings().payload_chunk_bytes;
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
        let mut struck: Vec<ExecutionId> = Vec::new();
        if !changed.is_empty() {
            struck.extend(changed.write(self.tx).await?);
        }
        if !stored.is_empty() {
            struck.extend(stored.write(self.tx).await?);
        }
        if !in_place.is_empty() {
            struck.extend(in_place.write_in_place(self.tx).await?);
        }
        for id in struck {
            expected.remove(&id);
        }
        match expected.iter().next() {
            None => Ok(()),
            Some(id) => Err(Fault::again(format!("execution {id} was changed by another process; try again"))),
        }
    }
}

fn missing(id: ExecutionId) -> Fault {
    Fault::damaged(format!("a key stands for execution {id}, which is missing"))
}

const CHECK: &str = "UPDATE store_checks SET count = count + 1 WHERE id = 1";

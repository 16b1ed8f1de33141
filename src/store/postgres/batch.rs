//! One batch of writes in one transaction: everything it needs is read, every write is decided on what the writes before
//! it left, and the outcome is written at once. A row that another process changed meanwhile makes all of it run again.
//! What needs no reading comes by in `quick.rs` first. Decides nothing: the rules are `store::deciding`'s.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future;
use uuid::Uuid;

use super::attached::Attached;
use super::bind::{int, ints, texts, uuids};
use super::db::Tx;
use super::draft::{Columns, Draft, Scope, Step, scope};
use super::events;
use super::fault::{Fault, Sql};
use super::heads;
use super::liveness::Liveness;
use super::payloads;
use super::policies::Policies;
use super::registry::clock;
use super::twins::{TWINS, asks_for_twins, since_ms};
use crate::model::command::{Command, Failure};
use crate::model::decide::Answer;
use crate::model::execution::Identification;
use crate::model::id::{ExecutionId, ProcessId};
use crate::model::policy::Policy;
use crate::store::deciding::Entry;
use crate::store::{Applied, Apply, Error, LeaseRef, Mark, Result, Submit, SubmitOutcome};

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

    /// A payload of it has more than one piece: the others need statements of their own, in one transaction with it.
    pub(super) fn is_long(&self, chunk_bytes: usize) -> bool {
        let long = |text: &str| text.len() > chunk_bytes;
        match self {
            Write::Submit(submit) => long(&submit.arguments) || submit.meta.as_deref().is_some_and(long),
            Write::Apply(apply) => apply.payload.as_ref().is_some_and(|(_, text)| long(text)),
            Write::Heartbeat { .. } | Write::Mark { .. } | Write::Check => false,
        }
    }

    /// Rows that it writes as a rule; the pieces of a payload have at most `chunk_bytes`.
    pub(super) fn rows(&self, chunk_bytes: usize) -> usize {
        let pieces = |text: &str| text.len() / chunk_bytes.max(1) + 1;
        match self {
            // Itself, that it was submitted and leased, its key, and what it was called with.
            Write::Submit(submit) => {
                let key = usize::from(submit.submission.ident.key.is_some());
                3 + key + pieces(&submit.arguments) + submit.meta.as_deref().map_or(0, pieces)
            }
            Write::Apply(apply) => 3 + apply.payload.as_ref().map_or(0, |(_, text)| pieces(text)),
            Write::Heartbeat { leases, .. } => leases.len(),
            Write::Mark { .. } | Write::Check => 1,
        }
    }

    /// The call, if it is one.
    pub(super) fn submit(&self) -> Option<&Submit> {
        match self {
            Write::Submit(submit) => Some(submit),
            _ => None,
        }
    }

    /// Executions that it names: no two batches that name the same one are under way at once.
    pub(super) fn ids(&self) -> impl Iterator<Item = ExecutionId> {
        let (one, leases) = match self {
            Write::Submit(submit) => (Some(submit.submission.ident.id), &[][..]),
            Write::Apply(apply) => (Some(apply.id), &[][..]),
            Write::Mark { id, .. } => (Some(*id), &[][..]),
            Write::Heartbeat { leases, .. } => (None, &leases[..]),
            Write::Check => (None, &[][..]),
        };
        one.into_iter().chain(leases.iter().map(|lease| lease.id))
    }

    /// It depends on delivery marks, or is one: such writes keep their order, whatever they name.
    pub(super) fn is_about_marks(&self) -> bool {
        match self {
            Write::Submit(submit) => asks_for_twins(submit),
            Write::Mark { .. } | Write::Check => true,
            Write::Apply(_) | Write::Heartbeat { .. } => false,
        }
    }

    /// Refuses what PostgreSQL has no text for, and writes it otherwise in what is only there for people: a tool whose
    /// error could not be stored would never end. Texts that are stored as JSON write U+0000 as an escape anyway.
    ///
    /// # Errors
    ///
    /// Names the member.
    pub(super) fn without_nul(mut self) -> Result<Write> {
        if let Write::Apply(apply) = &mut self
            && let Command::Fail { failure: Failure { error, .. }, .. } = &mut apply.command
        {
            for text in [&mut error.code, &mut error.message] {
                if text.contains('\0') {
                    *text = text.replace('\0', "\u{fffd}");
                }
            }
        }
        self.check_texts()?;
        Ok(self)
    }

    fn check_texts(&self) -> Result<()> {
        let texts: Vec<(&str, &str)> = match self {
            Write::Submit(submit) => {
                let ident = &submit.submission.ident;
                let lease = submit.submission.lease.as_ref();
                vec![
                    ("the namespace", &ident.namespace),
                    ("the name of the upstream", &ident.upstream),
                    ("the name of the tool", &ident.tool),
                    ("the idempotency key", ident.key.as_deref().unwrap_or_default()),
                    ("the principal", &ident.principal),
                    ("the name of the client", &ident.caller),
                    ("the text of the arguments", &submit.arguments),
                    ("the text of _meta", submit.meta.as_deref().unwrap_or_default()),
                    ("the name of the worker", lease.map_or("", |lease| &lease.worker)),
                ]
            }
            Write::Apply(apply) => {
                let worker = match &apply.command {
                    Command::Lease(request) => &*request.worker,
                    _ => "",
                };
                let payload = apply.payload.as_ref().map_or("", |(_, text)| text);
                vec![("the text of the result", payload), ("the name of the worker", worker)]
            }
            Write::Heartbeat { .. } | Write::Mark { .. } | Write::Check => return Ok(()),
        };
        match texts.iter().find(|(_, text)| text.contains('\0')) {
            Some((member, _)) => Err(Error::Unstorable(format!(
                "PostgreSQL has no text with U+0000, and {member} holds it; send it without that character"
            ))),
            None => Ok(()),
        }
    }
}

impl Outcome {
    /// An answer to another kind of write than was asked for.
    pub(super) fn strange(&self) -> Error {
        Error::Internal("a write was answered as another kind of write".into())
    }
}

/// What a batch works on.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) writes: &'a [&'a Write],
    pub(super) policy_ids: &'a [Option<Arc<str>>],
    pub(super) liveness: &'a Liveness,
    /// It may have been committed before.
    pub(super) again: bool,
    /// What the runs before attached to which twin.
    pub(super) attached: &'a Attached,
}

/// The ids of the policies of all calls, where they are known to be stored.
pub(super) fn policy_ids(policies: &Policies, writes: &[&Write]) -> Vec<Option<Arc<str>>> {
    let known = |write: &&Write| match write {
        Write::Submit(submit) => policies.stored_id(&submit.submission.ident.policy),
        _ => None,
    };
    writes.iter().map(known).collect()
}

/// A policy of `writes` that is not known to be stored.
pub(super) fn new_policy<'a>(policies: &Policies, writes: &[&'a Write]) -> Option<&'a Policy> {
    writes.iter().find_map(|write| match write {
        Write::Submit(submit) => {
            let policy = &submit.submission.ident.policy;
            policies.stored_id(policy).is_none().then_some(policy)
        }
        _ => None,
    })
}

/// Runs all writes in order; their outcomes in the same order, and the rows as they are stored once it is committed.
pub(super) async fn run(tx: &Tx<'_>, given: Given<'_>) -> Sql<(Vec<Outcome>, Vec<Entry>)> {
    let mut draft = read(tx, given).await?;
    let mut outcomes = Vec::with_capacity(given.writes.len());
    for (write, policy_id) in given.writes.iter().zip(given.policy_ids) {
        outcomes.push(match write {
            Write::Submit(submit) => Outcome::Submitted(draft.submit(submit, policy_id.as_ref())?),
            Write::Apply(apply) => Outcome::Applied(applied(tx, apply, draft.apply(apply)).await?.map(Box::new)),
            Write::Heartbeat { leases, ttl_ms, now_ms } => {
                Outcome::Beaten(leases.iter().map(|lease| draft.heartbeat(lease, *ttl_ms, *now_ms).1).collect())
            }
            Write::Mark { id, mark, now_ms } => {
                draft.mark(*id, *mark, *now_ms);
                Outcome::Done
            }
            Write::Check => {
                tx.execute(CHECK, &[]).await?;
                Outcome::Done
            }
        });
    }
    write(tx, &draft).await?;
    draft.committed().for_each(|written| tx.told().wrote(written));
    draft.found().iter().for_each(|operation| tx.told().found(*operation));
    Ok((outcomes, draft.into_entries().collect()))
}

async fn applied(tx: &Tx<'_>, apply: &Apply, step: Step) -> Sql<Option<Applied>> {
    Ok(match step {
        Step::Missing => None,
        Step::Changed(applied) | Step::Same(applied) => Some(applied),
        Step::Before(head, Some(answer)) => Some(Applied { head, answer }),
        Step::Before(head, None) => {
            let answer = events::answer_of(tx, apply.id, apply.operation).await?;
            Some(Applied { head, answer })
        }
    })
}

/// Reads what the writes are decided on. What does not depend on another answer is asked at once.
async fn read<'a>(tx: &'a Tx<'_>, given: Given<'a>) -> Sql<Draft<'a>> {
    let mut draft = Draft::new(tx.settings(), given.liveness);
    draft.remember_attached(given.attached);
    let submits: Vec<&Submit> = given.writes.iter().filter_map(|write| write.submit()).collect();
    let (holders, twins) = future::try_join(holders(tx, &submits), twins(tx, given.liveness, &submits)).await?;
    let mut ids: Vec<ExecutionId> = twins;
    if !ids.is_empty() {
        for row in tx.query(LIVING, &[]).await? {
            draft.put_living(ProcessId::from_uuid(row.try_get(0)?));
        }
    }
    for (scope, id) in holders {
        draft.put_holder(scope, id);
        ids.push(id);
    }
    for write in given.writes {
        match write {
            Write::Submit(submit) if given.again => {
                ids.push(submit.submission.ident.id);
                ids.extend(given.attached.twin_of(submit));
            }
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
            draft.put(entry);
        }
    }
    Ok(draft)
}

const HOLDERS: &str = "SELECT g.place, k.execution_id FROM \
    unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[]) AS g(place, namespace, upstream, tool, key) \
    JOIN idempotency_keys k ON k.namespace = g.namespace AND k.upstream = g.upstream AND k.tool = g.tool \
    AND k.key = g.key";

/// Who holds the keys of `submits`.
async fn holders(tx: &Tx<'_>, submits: &[&Submit]) -> Sql<Vec<(Scope, ExecutionId)>> {
    let scopes: Vec<Scope> = submits.iter().filter_map(|submit| scope(&submit.submission.ident)).collect();
    if scopes.is_empty() {
        return Ok(Vec::new());
    }
    let places: Vec<i64> = (0..scopes.len() as i64).collect();
    let column = |part: fn(&Scope) -> &String| scopes.iter().map(|scope| part(scope).as_str()).collect::<Vec<_>>();
    let (namespaces, upstreams) = (column(|scope| &scope.0), column(|scope| &scope.1));
    let (tools, keys) = (column(|scope| &scope.2), column(|scope| &scope.3));
    let values = [ints(&places), texts(&namespaces), texts(&upstreams), texts(&tools), texts(&keys)];
    let found = tx.query(HOLDERS, &values).await?;
    let by_place: HashMap<i64, &Scope> = places.iter().copied().zip(&scopes).collect();
    let mut holders = Vec::with_capacity(found.len());
    for row in &found {
        let scope = by_place.get(&row.try_get::<_, i64>(0)?);
        let scope = scope.ok_or_else(|| Fault::internal("a key that nobody asked for"))?;
        holders.push(((*scope).clone(), ExecutionId::from_uuid(row.try_get(1)?)));
    }
    Ok(holders)
}

/// The twins of `submits`.
async fn twins(tx: &Tx<'_>, liveness: &Liveness, submits: &[&Submit]) -> Sql<Vec<ExecutionId>> {
    let asking: Vec<&Submit> = submits.iter().copied().filter(|submit| asks_for_twins(submit)).collect();
    if asking.is_empty() {
        return Ok(Vec::new());
    }
    let column = |part: fn(&Identification) -> &String| -> Vec<&str> {
        asking.iter().map(|submit| part(&submit.submission.ident).as_str()).collect()
    };
    let since: Vec<i64> = asking.iter().map(|submit| since_ms(submit)).collect();
    let own: Vec<Uuid> = liveness.own().iter().map(|process| *process.as_uuid()).collect();
    let limit = super::bind::count(tx.settings().twins_max);
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
    let found = tx.query(TWINS, &values).await?;
    found.iter().map(|row| Ok(ExecutionId::from_uuid(row.try_get(0)?))).collect()
}

const LIVING: &str = concat!("SELECT id FROM processes WHERE expires_at_ms > ", clock!());

/// Writes every row that changed; one that another process changed meanwhile makes everything run again.
async fn write(tx: &Tx<'_>, draft: &Draft<'_>) -> Sql<()> {
    let Columns { changed, stored, in_place, mut expected } = draft.columns()?;
    let mut struck: Vec<ExecutionId> = Vec::new();
    if !changed.is_empty() {
        struck.extend(changed.write(tx).await?);
    }
    if !stored.is_empty() {
        struck.extend(stored.write(tx).await?);
    }
    if !in_place.is_empty() {
        struck.extend(in_place.write_in_place(tx).await?);
    }
    for id in struck {
        expected.remove(&id);
    }
    if let Some(id) = expected.iter().next() {
        return Err(Fault::again(format!("execution {id} was changed by another process; try again")));
    }
    for (id, written) in draft.written() {
        payloads::insert_further(tx, id, written).await?;
    }
    Ok(())
}

const CHECK: &str = "UPDATE store_checks SET count = count + 1 WHERE id = 1";

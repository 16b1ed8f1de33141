//! A submission: who holds the key, which unkeyed twins exist, and what the rules make of it. Decides nothing.

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::{Fault, Sql};
use super::payloads;
use super::policies::Policies;
use super::rows::{self, Id, IdText, head_columns};
use super::tx::Tx;
use crate::model::event::Event;
use crate::model::execution::{Head, Identification};
use crate::model::id::{ExecutionId, ProcessId};
use crate::model::submit::{Found, Twin};
use crate::store::deciding::{self, Entry, Settled};
use crate::store::{PayloadKind, Submit, SubmitOutcome};

/// Stores the call, or finds the execution that takes it.
pub(super) fn run(tx: &mut Tx<'_>, submit: &Submit) -> Sql<SubmitOutcome> {
    match &submit.submission.ident.key {
        Some(key) => keyed(tx, submit, key),
        None => unkeyed(tx, submit),
    }
}

const TAKE_KEY: &str = "INSERT INTO idempotency_keys (namespace, upstream, tool, key, execution_id, ttl_ms) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (namespace, upstream, tool, key) DO NOTHING";

const HOLDER: &str = "SELECT execution_id FROM idempotency_keys \
    WHERE namespace = ?1 AND upstream = ?2 AND tool = ?3 AND key = ?4";

const TAKE_OVER_KEY: &str = "UPDATE idempotency_keys SET execution_id = ?5, ttl_ms = ?6 \
    WHERE namespace = ?1 AND upstream = ?2 AND tool = ?3 AND key = ?4";

/// The unique key comes first: a call that is new costs no look-up.
fn keyed(tx: &mut Tx<'_>, submit: &Submit, key: &str) -> Sql<SubmitOutcome> {
    let ident = &submit.submission.ident;
    let ttl_ms = submit.submission.identity.key_ttl_ms;
    let id = IdText::execution(ident.id);
    let values = params![ident.namespace, ident.upstream, ident.tool, key, id, ttl_ms];
    if tx.connection.prepare_cached(TAKE_KEY)?.execute(values)? == 1 {
        return settle(tx, submit, None, &[]);
    }
    let scope = params![ident.namespace, ident.upstream, ident.tool, key];
    let holder: Id<ExecutionId> = tx.connection.prepare_cached(HOLDER)?.query_row(scope, |row| row.get(0))?;
    let Some(holder) = tx.entry(holder.0)? else {
        return Err(Fault::damaged(format!("a key stands for execution {}, which is missing", holder.0)));
    };
    let outcome = settle(tx, submit, Some(holder), &[])?;
    if matches!(outcome, SubmitOutcome::New(_)) {
        tx.connection.prepare_cached(TAKE_OVER_KEY)?.execute(values)?;
    }
    Ok(outcome)
}

fn unkeyed(tx: &mut Tx<'_>, submit: &Submit) -> Sql<SubmitOutcome> {
    let ident = &submit.submission.ident;
    let twins = match deciding::asks_for_twins(submit) && twin_exists(tx.connection, &ident.arguments_hash)? {
        true => twins(tx, submit)?,
        false => Vec::new(),
    };
    settle(tx, submit, None, &twins)
}

fn settle(tx: &mut Tx<'_>, submit: &Submit, holder: Option<Entry>, twins: &[(Head, bool)]) -> Sql<SubmitOutcome> {
    let id = submit.submission.ident.id;
    let twin_refs: Vec<Twin<'_>> = twins.iter().map(|(head, waited)| Twin { head, waited: *waited }).collect();
    let found = Found { holder: holder.as_ref().map(|entry| &entry.head), twins: &twin_refs };
    match (deciding::submission(submit, found, &tx.settings.limits), holder) {
        (Settled::Repeated(head), _) => Ok(SubmitOutcome::New(head)),
        (Settled::Start(entry, events), holder) => {
            if let Some(holder) = holder {
                tx.keep(holder);
            }
            start(tx, submit, entry, events)
        }
        (Settled::Joined, Some(holder)) => {
            let head = holder.head.clone();
            tx.keep(holder);
            Ok(SubmitOutcome::Existing(Box::new(head)))
        }
        (Settled::Conflict { foreign, note }, Some(holder)) => conflict(tx, submit, holder, (foreign, note)),
        (Settled::Attached(index), _) => attach(tx, submit, twins[index].0.clone()),
        (Settled::Waited(index), _) => Ok(SubmitOutcome::Waited(twins[index].0.id())),
        (Settled::Joined | Settled::Conflict { .. }, None) => {
            Err(Fault::internal(format!("submission {id} met a holder of its key that is not there")))
        }
    }
}

/// Stores a new row.
fn start(tx: &mut Tx<'_>, submit: &Submit, entry: Entry, events: Vec<Event>) -> Sql<SubmitOutcome> {
    let id = entry.head.id();
    let policy_id = tx.stored_policies.id(tx.connection, &entry.head.ident.policy)?;
    if !rows::insert(tx.connection, &entry.head, &policy_id)? {
        return repeated(tx, submit);
    }
    tx.begin(&entry.head, events, submit.into())?;
    let chunk_bytes = tx.settings.payload_chunk_bytes;
    payloads::insert(tx.connection, id, (PayloadKind::Arguments, &submit.arguments), chunk_bytes)?;
    if let Some(meta) = &submit.meta {
        payloads::insert(tx.connection, id, (PayloadKind::Meta, meta), chunk_bytes)?;
    }
    let head = entry.head.clone();
    tx.keep(entry);
    Ok(SubmitOutcome::New(Box::new(head)))
}

/// The id exists already: by this very operation, or by a fault.
fn repeated(tx: &mut Tx<'_>, submit: &Submit) -> Sql<SubmitOutcome> {
    let id = submit.submission.ident.id;
    match tx.entry(id)? {
        Some(entry) if entry.operations.contains(&submit.operation) => {
            let head = entry.head.clone();
            tx.keep(entry);
            Ok(SubmitOutcome::New(Box::new(head)))
        }
        _ => Err(Fault::internal(format!("execution {id} exists already"))),
    }
}

fn conflict(
    tx: &mut Tx<'_>,
    submit: &Submit,
    mut holder: Entry,
    (foreign, note): (bool, Option<Event>),
) -> Sql<SubmitOutcome> {
    let id = holder.head.id();
    if let Some(change) = deciding::note(&mut holder, note, submit) {
        tx.write(&mut holder, change, submit.into())?;
    }
    tx.keep(holder);
    Ok(SubmitOutcome::Conflict((!foreign).then_some(id)))
}

fn attach(tx: &mut Tx<'_>, submit: &Submit, head: Head) -> Sql<SubmitOutcome> {
    if !deciding::attach(&mut head.clone(), submit) {
        return Ok(SubmitOutcome::Existing(Box::new(head)));
    }
    let id = head.id();
    let Some(mut entry) = tx.entry(id)? else {
        return Err(Fault::internal(format!("execution {id} vanished inside a transaction")));
    };
    if deciding::attach(&mut entry.head, submit) {
        rows::update_marks(tx.connection, &mut entry.head)?;
    }
    let head = entry.head.clone();
    tx.keep(entry);
    Ok(SubmitOutcome::Existing(Box::new(head)))
}

const TWIN_EXISTS: &str = "SELECT 1 FROM executions INDEXED BY executions_twin \
    WHERE arguments_hash = ?1 AND key IS NULL AND delivered_at_ms IS NULL LIMIT 1";

fn twin_exists(connection: &Connection, arguments_hash: &str) -> Sql<bool> {
    Ok(connection.prepare_cached(TWIN_EXISTS)?.query_row([arguments_hash], |_| Ok(())).optional()?.is_some())
}

macro_rules! twins_where {
    ($waiter:literal) => {
        concat!(
            "SELECT ",
            head_columns!(),
            " FROM executions e INDEXED BY executions_twin WHERE e.arguments_hash = ?1 AND e.key IS NULL \
             AND e.delivered_at_ms IS NULL AND e.namespace = ?2 AND e.upstream = ?3 AND e.tool = ?4 \
             AND e.principal = ?5 AND e.caller = ?6 AND (e.ended_at_ms IS NULL OR e.ended_at_ms > ?7) AND ",
            $waiter,
            " ORDER BY e.id LIMIT ?8"
        )
    };
}

const TWINS_UNWAITED: &str = twins_where!("e.waiter IS NULL");
const TWINS_OF_OTHERS: &str = twins_where!("e.waiter IS NOT NULL AND e.waiter <> ?9");
const TWINS_OWN: &str = twins_where!("e.waiter = ?9");

/// Every twin that may take the call, oldest first. Of those waited for in the submitting process one is enough: they
/// are alike to the rules, and a client that sends the same call a hundred times has a hundred of them.
fn twins(tx: &Tx<'_>, submit: &Submit) -> Sql<Vec<(Head, bool)>> {
    let submission = &submit.submission;
    let since_ms = submit.now_ms.saturating_sub(submission.identity.reattach_window_ms);
    let query = TwinQuery { ident: &submission.ident, since_ms, connection: tx.connection, policies: tx.policies };
    let mut twins: Vec<(Head, bool)> = Vec::new();
    let limit = tx.settings.twins_max;
    twins.extend(query.run(TWINS_UNWAITED, None, limit)?.into_iter().map(|head| (head, false)));
    let own = submission.waiter.filter(|process| tx.liveness.is_own(*process));
    for head in query.run(TWINS_OF_OTHERS, Some(own), limit)? {
        let waited = head.waiter.is_some_and(|process| tx.liveness.is_alive(process));
        twins.push((head, waited));
    }
    if own.is_some() {
        twins.extend(query.run(TWINS_OWN, Some(own), 1)?.into_iter().map(|head| (head, true)));
    }
    twins.sort_by_key(|(head, _)| head.id());
    Ok(twins)
}

struct TwinQuery<'a> {
    ident: &'a Identification,
    since_ms: i64,
    connection: &'a Connection,
    policies: &'a Policies,
}

impl TwinQuery<'_> {
    /// `process` is the ninth parameter of the statements that have one.
    fn run(&self, sql: &str, process: Option<Option<ProcessId>>, limit: usize) -> Sql<Vec<Head>> {
        let ident = self.ident;
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.raw_bind_parameter(1, &ident.arguments_hash)?;
        statement.raw_bind_parameter(2, &ident.namespace)?;
        statement.raw_bind_parameter(3, &ident.upstream)?;
        statement.raw_bind_parameter(4, &ident.tool)?;
        statement.raw_bind_parameter(5, &ident.principal)?;
        statement.raw_bind_parameter(6, &ident.caller)?;
        statement.raw_bind_parameter(7, self.since_ms)?;
        statement.raw_bind_parameter(8, limit as i64)?;
        if let Some(process) = process {
            // No process has the empty name: without one of our own every waiter is another's.
            match process {
                Some(process) => statement.raw_bind_parameter(9, IdText::process(process))?,
                None => statement.raw_bind_parameter(9, "")?,
            }
        }
        let mut rows = statement.raw_query();
        let mut heads = Vec::new();
        while let Some(row) = rows.next()? {
            heads.push(rows::head(self.connection, self.policies, row)?);
        }
        Ok(heads)
    }
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[HOLDER, TAKE_OVER_KEY, TWIN_EXISTS, TWINS_UNWAITED, TWINS_OF_OTHERS, TWINS_OWN];

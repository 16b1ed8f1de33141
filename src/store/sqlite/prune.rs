//! Retention: deletes payloads, then whole ended executions, in small batches. `unknown` is never among them (the
//! indexes leave it out and the database refuses), nor is an execution whose key still lives.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{Connection, params};

use super::fault::{Fault, Sql};
use super::inputs;
use super::inspect;
use super::open::name_file;
use super::rows::{Id, IdText};
use super::tx::Tx;
use super::{tasks, workers};
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::store::worker::GONE_WORKERS_MS;
use crate::store::{Pruned, Result, Retention, Slice};

/// What goes in one batch.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Executions whose payloads go.
    payloads: Vec<ExecutionId>,
    /// Executions that go.
    executions: Vec<ExecutionId>,
    workers_until_ms: i64,
}

/// What the next batch is: whole executions first, with what is kept of them, so that nothing is written to a row that goes.
pub(super) fn find(connection: &Connection, slice: &Slice, retention: Retention, now_ms: i64) -> Sql<Found> {
    let batch = retention.batch;
    let executions_until = now_ms.saturating_sub(retention.executions_ms);
    let mut executions = ids(connection, BARE_UNHELD, slice, (executions_until, now_ms, batch))?;
    if executions.len() < batch {
        let left = batch - executions.len();
        executions.extend(ids(connection, KEPT_UNHELD, slice, (executions_until, now_ms, left))?);
    }
    let mut payloads = Vec::new();
    if executions.len() < batch {
        let payloads_until = now_ms.saturating_sub(retention.payloads_ms);
        // Some of them go as a whole.
        payloads = ids(connection, WITH_PAYLOADS, slice, (payloads_until, now_ms, batch))?;
        let whole: HashSet<&ExecutionId> = executions.iter().collect();
        payloads.retain(|id| !whole.contains(id));
        payloads.truncate(batch - executions.len());
    }
    Ok(Found { payloads, executions, workers_until_ms: now_ms.saturating_sub(GONE_WORKERS_MS) })
}

/// One batch. What another process deleted meanwhile is not counted again.
pub(super) fn run(tx: &mut Tx<'_>, found: &Found, now_ms: i64) -> Sql<Pruned> {
    let connection = tx.connection;
    let mut pruned = Pruned::default();
    for id in found.executions.iter().copied() {
        delete_payloads(connection, id)?;
        pruned.keys += connection.prepare_cached(DELETE_KEY)?.execute(params![IdText::execution(id), now_ms])?;
        pruned.executions += connection.prepare_cached(DELETE_EXECUTION)?.execute([IdText::execution(id)])?;
        connection.prepare_cached(DELETE_EVENTS)?.execute([IdText::execution(id)])?;
        tasks::forget(connection, id)?;
        tx.heads.take(id);
    }
    for id in found.payloads.iter().copied() {
        pruned.payloads += connection.prepare_cached(MARK_BARE)?.execute([IdText::execution(id)])?;
        delete_payloads(connection, id)?;
        pruned.keys += connection.prepare_cached(DELETE_KEY)?.execute(params![IdText::execution(id), now_ms])?;
    }
    workers::prune(connection, found.workers_until_ms)?;
    Ok(pruned)
}

/// What pruning the file at `path` would delete, executions first: those that go, those that stay without payloads, and
/// the keys of both whose time is over. Blocks; changes nothing.
///
/// # Errors
///
/// As of [`super::status`].
pub fn preview(path: &Path, slice: &Slice, retention: Retention, now_ms: i64) -> Result<Pruned> {
    let connection = inspect::connect(path)?;
    inspect::version(&connection, path)?;
    let payloads_until = now_ms.saturating_sub(retention.payloads_ms);
    let executions_until = now_ms.saturating_sub(retention.executions_ms);
    let count = |sql: &str, until: i64| -> rusqlite::Result<usize> {
        let sql = format!("SELECT count(*) FROM ({sql})");
        let all = -1;
        let (state, namespace, but) = values(slice);
        let values = params![until, now_ms, all, state, namespace, but];
        connection.query_row(&sql, values, |row| row.get::<_, i64>(0)).map(|count| count as usize)
    };
    let counted = || -> rusqlite::Result<Pruned> {
        let whole = connection.unchecked_transaction()?;
        let kept = count(WITH_PAYLOADS, payloads_until)?;
        let kept_but_gone = count(KEPT_UNHELD, executions_until.min(payloads_until))?;
        let executions = count(BARE_UNHELD, executions_until)? + count(KEPT_UNHELD, executions_until)?;
        let (state, namespace, but) = values(slice);
        let expired_keys = params![executions_until, payloads_until, now_ms, state, namespace, but];
        let keys: i64 = connection.query_row(EXPIRED_KEYS, expired_keys, |row| row.get(0))?;
        whole.finish()?;
        Ok(Pruned { payloads: kept - kept_but_gone, executions, keys: keys as usize })
    };
    counted().map_err(|error| name_file(path, Fault::from(error).error))
}

/// A state, a namespace, and a list of namespaces that are left out, as JSON.
fn values(slice: &Slice) -> (Option<&'static str>, Option<&str>, String) {
    let but = serde_json::Value::from(slice.but.clone()).to_string();
    (slice.state.map(State::as_str), slice.namespace.as_deref(), but)
}

macro_rules! of_slice {
    () => {
        " AND (?4 IS NULL OR e.state = ?4) AND (?5 IS NULL OR e.namespace = ?5) \
         AND e.namespace NOT IN (SELECT value FROM json_each(?6))"
    };
}

/// Keys whose time is over, of executions that go or lose their payloads.
const EXPIRED_KEYS: &str = concat!(
    "SELECT count(*) FROM idempotency_keys k JOIN executions e ON e.id = k.execution_id \
     WHERE e.namespace = k.namespace AND e.upstream = k.upstream AND e.tool = k.tool AND e.key = k.key \
     AND e.ended_at_ms IS NOT NULL AND e.state <> 'unknown' AND e.ended_at_ms + k.ttl_ms <= ?3 \
     AND (e.ended_at_ms <= ?1 OR (e.ended_at_ms <= ?2 AND e.payloads_kept = 1))",
    of_slice!()
);

const WITH_PAYLOADS: &str = concat!(
    "SELECT e.id FROM executions e INDEXED BY executions_kept \
     WHERE e.ended_at_ms <= ?1 AND e.state <> 'unknown' AND e.payloads_kept = 1 AND ?2 IS NOT NULL",
    of_slice!(),
    " ORDER BY e.ended_at_ms LIMIT ?3"
);

/// Ended executions that hold no key, or one whose time is over.
macro_rules! unheld {
    ($index:literal, $kept:literal) => {
        concat!(
            "SELECT e.id FROM executions e INDEXED BY ",
            $index,
            " WHERE e.ended_at_ms <= ?1 AND e.state <> 'unknown' AND e.payloads_kept = ",
            $kept,
            " AND (e.key IS NULL OR NOT EXISTS (SELECT 1 FROM idempotency_keys k WHERE k.namespace = e.namespace \
             AND k.upstream = e.upstream AND k.tool = e.tool AND k.key = e.key AND k.execution_id = e.id \
             AND e.ended_at_ms + k.ttl_ms > ?2))",
            of_slice!(),
            " ORDER BY e.ended_at_ms LIMIT ?3"
        )
    };
}

const BARE_UNHELD: &str = unheld!("executions_bare", "0");
const KEPT_UNHELD: &str = unheld!("executions_kept", "1");

const MARK_BARE: &str = "UPDATE executions SET payloads_kept = 0, version = version + 1 \
    WHERE id = ?1 AND payloads_kept = 1";

const DELETE_PAYLOADS: [&str; 2] =
    ["DELETE FROM short_payloads WHERE execution_id = ?1", "DELETE FROM payload_pieces WHERE execution_id = ?1"];

/// The key of an execution, once its time is over.
const DELETE_KEY: &str = "DELETE FROM idempotency_keys WHERE (namespace, upstream, tool, key, execution_id) = \
    (SELECT namespace, upstream, tool, key, id FROM executions WHERE id = ?1) \
    AND (SELECT ended_at_ms FROM executions WHERE id = ?1) + ttl_ms <= ?2";

const DELETE_EXECUTION: &str = "DELETE FROM executions WHERE id = ?1";

const DELETE_EVENTS: &str = "DELETE FROM execution_events WHERE execution_id = ?1";

fn delete_payloads(connection: &Connection, id: ExecutionId) -> Sql<()> {
    for delete in DELETE_PAYLOADS {
        connection.prepare_cached(delete)?.execute([IdText::execution(id)])?;
    }
    inputs::forget(connection, id)?;
    workers::forget_progress(connection, id)
}

fn ids(
    connection: &Connection,
    sql: &str,
    slice: &Slice,
    (until, now_ms, limit): (i64, i64, usize),
) -> Sql<Vec<ExecutionId>> {
    let mut statement = connection.prepare_cached(sql)?;
    let (state, namespace, but) = values(slice);
    let values = params![until, now_ms, limit as i64, state, namespace, but];
    let ids = statement.query_map(values, |row| Ok(row.get::<_, Id<ExecutionId>>(0)?.0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    WITH_PAYLOADS,
    BARE_UNHELD,
    KEPT_UNHELD,
    MARK_BARE,
    DELETE_PAYLOADS[0],
    DELETE_PAYLOADS[1],
    DELETE_KEY,
    DELETE_EXECUTION,
    DELETE_EVENTS,
];

//! Retention: deletes payloads, then whole ended executions, in small batches. `unknown` is never among them (the
//! indexes leave it out and the database refuses), nor is an execution whose key still lives.

use std::path::Path;

use rusqlite::{Connection, params};

use super::fault::{Fault, Sql};
use super::inputs;
use super::inspect;
use super::open::name_file;
use super::rows::{Id, IdText};
use super::tx::Tx;
use super::{tasks, workers};
use crate::model::id::ExecutionId;
use crate::store::worker::GONE_WORKERS_MS;
use crate::store::{Pruned, Result, Retention};

/// One batch.
pub(super) fn run(tx: &mut Tx<'_>, retention: Retention, now_ms: i64) -> Sql<Pruned> {
    let connection = tx.connection;
    let mut pruned = Pruned::default();
    let payloads_until = now_ms.saturating_sub(retention.payloads_ms);
    for id in ids(connection, WITH_PAYLOADS, (payloads_until, now_ms, retention.batch))? {
        delete_payloads(connection, id)?;
        connection.prepare_cached(MARK_BARE)?.execute([IdText::execution(id)])?;
        pruned.keys += connection.prepare_cached(DELETE_KEY)?.execute(params![IdText::execution(id), now_ms])?;
        pruned.payloads += 1;
    }
    workers::prune(connection, now_ms.saturating_sub(GONE_WORKERS_MS))?;
    let executions_until = now_ms.saturating_sub(retention.executions_ms);
    for sql in [BARE_UNHELD, KEPT_UNHELD] {
        for id in ids(connection, sql, (executions_until, now_ms, retention.batch - pruned.executions))? {
            delete_payloads(connection, id)?;
            pruned.keys += connection.prepare_cached(DELETE_KEY)?.execute(params![IdText::execution(id), now_ms])?;
            connection.prepare_cached(DELETE_EXECUTION)?.execute([IdText::execution(id)])?;
            connection.prepare_cached(DELETE_EVENTS)?.execute([IdText::execution(id)])?;
            tasks::forget(connection, id)?;
            tx.heads.take(id);
            pruned.executions += 1;
        }
    }
    Ok(pruned)
}

/// What pruning the file at `path` would delete, executions first: those that go, those that stay without payloads, and
/// the keys of both whose time is over. Blocks; changes nothing.
///
/// # Errors
///
/// As of [`super::status`].
pub fn preview(path: &Path, retention: Retention, now_ms: i64) -> Result<Pruned> {
    let connection = inspect::connect(path)?;
    inspect::version(&connection, path)?;
    let payloads_until = now_ms.saturating_sub(retention.payloads_ms);
    let executions_until = now_ms.saturating_sub(retention.executions_ms);
    let count = |sql: &str, until: i64| -> rusqlite::Result<usize> {
        let sql = format!("SELECT count(*) FROM ({sql})");
        let all = -1;
        connection.query_row(&sql, params![until, now_ms, all], |row| row.get::<_, i64>(0)).map(|count| count as usize)
    };
    let counted = || -> rusqlite::Result<Pruned> {
        let whole = connection.unchecked_transaction()?;
        let kept = count(WITH_PAYLOADS, payloads_until)?;
        let kept_but_gone = count(KEPT_UNHELD, executions_until.min(payloads_until))?;
        let executions = count(BARE_UNHELD, executions_until)? + count(KEPT_UNHELD, executions_until)?;
        let keys: i64 =
            connection.query_row(EXPIRED_KEYS, params![executions_until, payloads_until, now_ms], |row| row.get(0))?;
        whole.finish()?;
        Ok(Pruned { payloads: kept - kept_but_gone, executions, keys: keys as usize })
    };
    counted().map_err(|error| name_file(path, Fault::from(error).error))
}

/// Keys whose time is over, of executions that go or lose their payloads.
const EXPIRED_KEYS: &str = "SELECT count(*) FROM idempotency_keys k JOIN executions e ON e.id = k.execution_id \
    WHERE e.namespace = k.namespace AND e.upstream = k.upstream AND e.tool = k.tool AND e.key = k.key \
    AND e.ended_at_ms IS NOT NULL AND e.state <> 'unknown' AND e.ended_at_ms + k.ttl_ms <= ?3 \
    AND (e.ended_at_ms <= ?1 OR (e.ended_at_ms <= ?2 AND e.payloads_kept = 1))";

const WITH_PAYLOADS: &str = "SELECT id FROM executions INDEXED BY executions_kept \
    WHERE ended_at_ms <= ?1 AND state <> 'unknown' AND payloads_kept = 1 AND ?2 IS NOT NULL \
    ORDER BY ended_at_ms LIMIT ?3";

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
             AND e.ended_at_ms + k.ttl_ms > ?2)) ORDER BY e.ended_at_ms LIMIT ?3"
        )
    };
}

const BARE_UNHELD: &str = unheld!("executions_bare", "0");
const KEPT_UNHELD: &str = unheld!("executions_kept", "1");

const MARK_BARE: &str = "UPDATE executions SET payloads_kept = 0, version = version + 1 WHERE id = ?1";

const DELETE_PAYLOADS: &str = "DELETE FROM payloads WHERE execution_id = ?1";

/// The key of an execution, once its time is over.
const DELETE_KEY: &str = "DELETE FROM idempotency_keys WHERE (namespace, upstream, tool, key, execution_id) = \
    (SELECT namespace, upstream, tool, key, id FROM executions WHERE id = ?1) \
    AND (SELECT ended_at_ms FROM executions WHERE id = ?1) + ttl_ms <= ?2";

const DELETE_EXECUTION: &str = "DELETE FROM executions WHERE id = ?1";

const DELETE_EVENTS: &str = "DELETE FROM execution_events WHERE execution_id = ?1";

fn delete_payloads(connection: &Connection, id: ExecutionId) -> Sql<()> {
    connection.prepare_cached(DELETE_PAYLOADS)?.execute([IdText::execution(id)])?;
    inputs::forget(connection, id)?;
    workers::forget_progress(connection, id)
}

fn ids(connection: &Connection, sql: &str, (until, now_ms, limit): (i64, i64, usize)) -> Sql<Vec<ExecutionId>> {
    let mut statement = connection.prepare_cached(sql)?;
    let ids =
        statement.query_map(params![until, now_ms, limit as i64], |row| Ok(row.get::<_, Id<ExecutionId>>(0)?.0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[WITH_PAYLOADS, BARE_UNHELD, KEPT_UNHELD, MARK_BARE, DELETE_PAYLOADS, DELETE_KEY, DELETE_EXECUTION, DELETE_EVENTS];

//! Executions that clients see as tasks. What a task shows is decided above.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::{Fault, Sql};
use super::rows::{self, Id, IdText};
use super::tx::Tx;
use crate::model::id::ExecutionId;
use crate::model::policy::OnTaskExpiry;
use crate::store::{TaskQuery, TaskRow, TaskVariant};

macro_rules! task_columns {
    () => {
        "SELECT execution_id, namespace, principal, variant, ttl_ms, created_at_ms, on_expiry, shown_seq, \
         progress_token FROM tasks"
    };
}

const PUT: &str = "INSERT INTO tasks (execution_id, namespace, principal, variant, ttl_ms, created_at_ms, \
    expires_at_ms, on_expiry, shown_seq, progress_token) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
    ON CONFLICT (execution_id) DO UPDATE SET variant = excluded.variant, ttl_ms = excluded.ttl_ms, \
    created_at_ms = excluded.created_at_ms, expires_at_ms = excluded.expires_at_ms, on_expiry = excluded.on_expiry, \
    shown_seq = excluded.shown_seq, progress_token = excluded.progress_token";

/// Notes that an execution is seen as a task; the row as it is stored.
pub(super) fn open(tx: &Tx<'_>, wish: &TaskRow) -> Sql<TaskRow> {
    let row = TaskRow::opened(one(tx.connection, wish.id)?, wish);
    tx.connection.prepare_cached(PUT)?.execute(params![
        IdText::execution(row.id),
        row.namespace,
        row.principal,
        row.variant.as_str(),
        row.ttl_ms,
        row.created_at_ms,
        row.expires_at_ms(),
        row.on_expiry.as_str(),
        row.shown_seq,
        row.progress_token,
    ])?;
    Ok(row)
}

const ONE: &str = concat!(task_columns!(), " WHERE execution_id = ?1");

/// A task, also one whose time is over.
pub(super) fn one(connection: &Connection, id: ExecutionId) -> Sql<Option<TaskRow>> {
    let mut statement = connection.prepare_cached(ONE)?;
    statement.query_row([IdText::execution(id)], |row| Ok(read(row))).optional()?.transpose()
}

const SHOW: &str = "UPDATE tasks SET shown_seq = ?2 WHERE execution_id = ?1";

/// Keeps an end that may change as the one that was shown first; the row after that.
pub(super) fn show(tx: &Tx<'_>, id: ExecutionId, seq: i64) -> Sql<Option<TaskRow>> {
    let Some(row) = one(tx.connection, id)? else { return Ok(None) };
    if !row.is_first_shown(rows::by_id(tx.connection, tx.policies, id)?.as_ref(), seq) {
        return Ok(Some(row));
    }
    tx.connection.prepare_cached(SHOW)?.execute(params![IdText::execution(id), seq])?;
    Ok(Some(TaskRow { shown_seq: Some(seq), ..row }))
}

const PAGE: &str = concat!(
    task_columns!(),
    " INDEXED BY tasks_owner WHERE namespace = ?1 AND principal = ?2 AND execution_id < ?3 AND expires_at_ms > ?4 \
     ORDER BY execution_id DESC LIMIT ?5"
);

/// A page of somebody's own tasks, newest first.
pub(super) fn page(connection: &Connection, query: &TaskQuery) -> Sql<Vec<TaskRow>> {
    // Every id sorts before a letter that no id begins with.
    let before = query.before.map_or_else(|| "g".to_owned(), |id| id.to_string());
    let mut statement = connection.prepare_cached(PAGE)?;
    let rows = statement
        .query_map(params![query.namespace, query.principal, before, query.now_ms, query.limit as i64], |row| {
            Ok(read(row))
        })?;
    rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().collect()
}

const EXPIRED: &str =
    concat!(task_columns!(), " INDEXED BY tasks_expiry WHERE expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2");

/// Tasks whose time is over, the longest first.
pub(super) fn expired(connection: &Connection, now_ms: i64, limit: usize) -> Sql<Vec<TaskRow>> {
    let mut statement = connection.prepare_cached(EXPIRED)?;
    let rows = statement.query_map(params![now_ms, limit as i64], |row| Ok(read(row)))?;
    rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().collect()
}

const CLOSE: &str = "DELETE FROM tasks WHERE execution_id = ?1 AND expires_at_ms <= ?2";

/// Forgets a task whose time is over; false when there is none, or it was given more time.
pub(super) fn close(tx: &Tx<'_>, id: ExecutionId, now_ms: i64) -> Sql<bool> {
    Ok(tx.connection.prepare_cached(CLOSE)?.execute(params![IdText::execution(id), now_ms])? > 0)
}

const FORGET: &str = "DELETE FROM tasks WHERE execution_id = ?1";

/// Forgets what an execution was seen as: the execution goes.
pub(super) fn forget(connection: &Connection, id: ExecutionId) -> Sql<()> {
    connection.prepare_cached(FORGET)?.execute([IdText::execution(id)])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Sql<TaskRow> {
    let id = row.get::<_, Id<ExecutionId>>(0)?.0;
    let (variant, on_expiry): (String, String) = (row.get(3)?, row.get(6)?);
    let damaged = |what: &str| Fault::damaged(format!("the task {id} has an unknown {what}"));
    Ok(TaskRow {
        id,
        namespace: row.get(1)?,
        principal: row.get(2)?,
        variant: TaskVariant::parse(&variant).ok_or_else(|| damaged("variant"))?,
        ttl_ms: row.get(4)?,
        created_at_ms: row.get(5)?,
        on_expiry: OnTaskExpiry::parse(&on_expiry).ok_or_else(|| damaged("on_expiry"))?,
        shown_seq: row.get(7)?,
        progress_token: row.get(8)?,
    })
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[PUT, ONE, SHOW, PAGE, EXPIRED, CLOSE, FORGET];

//! Executions that clients see as tasks. What asking again means is `store::task`'s; what a task shows is decided above.

use tokio_postgres::Row;
use uuid::Uuid;

use super::bind::{count, int, text, uuid};
use super::db::{Db, Reading, Tx};
use super::fault::{Fault, Sql};
use super::heads;
use super::held::hold;
use super::lists::shards;
use super::rows::{self, shard};
use crate::model::id::ExecutionId;
use crate::model::policy::OnTaskExpiry;
use crate::store::{Result, TaskQuery, TaskRow, TaskVariant};

macro_rules! task_columns {
    () => {
        "t.execution_id, t.namespace, t.principal, t.variant, t.ttl_ms, t.created_at_ms, t.on_expiry, t.shown_seq, \
         t.progress_token"
    };
}

const PUT: &str = "INSERT INTO tasks (shard, execution_id, namespace, principal, variant, ttl_ms, created_at_ms, \
    expires_at_ms, on_expiry, shown_seq, progress_token) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
    ON CONFLICT (shard, execution_id) DO NOTHING";

/// Over the row that was read: whoever changed it meanwhile made this one run again.
const CHANGE: &str = "UPDATE tasks SET variant = $3, ttl_ms = $4, created_at_ms = $5, expires_at_ms = $6, \
    on_expiry = $7, shown_seq = $8, progress_token = $9 \
    WHERE shard = $1 AND execution_id = $2 AND created_at_ms = $10 AND expires_at_ms = $11 \
    AND shown_seq IS NOT DISTINCT FROM $12";

/// Notes that an execution is seen as a task; the row as it is stored.
pub(super) async fn open_task(db: &Db, wish: TaskRow) -> Result<TaskRow> {
    let wish = &wish;
    db.transaction(move |tx| Box::pin(open(tx, wish))).await
}

async fn open(tx: &Tx<'_>, wish: &TaskRow) -> Sql<TaskRow> {
    let stored = one(tx, wish.id).await?;
    let row = TaskRow::opened(stored.clone(), wish);
    let shard = shard(row.id);
    let (variant, on_expiry, expires_at_ms) = (row.variant.as_str(), row.on_expiry.as_str(), row.expires_at_ms());
    let written = match &stored {
        None => {
            let values = [
                int(&shard),
                uuid(row.id.as_uuid()),
                text(&row.namespace),
                text(&row.principal),
                text(&variant),
                int(&row.ttl_ms),
                int(&row.created_at_ms),
                int(&expires_at_ms),
                text(&on_expiry),
                int(&row.shown_seq),
                text(&row.progress_token),
            ];
            tx.execute(PUT, &values).await?
        }
        Some(before) => {
            let before_ms = before.expires_at_ms();
            let values = [
                int(&shard),
                uuid(row.id.as_uuid()),
                text(&variant),
                int(&row.ttl_ms),
                int(&row.created_at_ms),
                int(&expires_at_ms),
                text(&on_expiry),
                int(&row.shown_seq),
                text(&row.progress_token),
                int(&before.created_at_ms),
                int(&before_ms),
                int(&before.shown_seq),
            ];
            tx.execute(CHANGE, &values).await?
        }
    };
    match written {
        1 => Ok(row),
        _ => Err(Fault::again(format!("the task {} was changed by another process; try again", row.id))),
    }
}

const ONE: &str = concat!("SELECT ", task_columns!(), " FROM tasks t WHERE t.shard = $1 AND t.execution_id = $2");

/// A task, also one whose time is over.
pub(super) async fn task(db: &Db, id: ExecutionId) -> Result<Option<TaskRow>> {
    db.read(move |reading| Box::pin(one(reading, id))).await
}

async fn one(reading: &Reading<'_>, id: ExecutionId) -> Sql<Option<TaskRow>> {
    let row = reading.query_opt(ONE, &[int(&shard(id)), uuid(id.as_uuid())]).await?;
    row.as_ref().map(read).transpose()
}

const SHOW: &str = "UPDATE tasks SET shown_seq = $3 WHERE shard = $1 AND execution_id = $2 AND shown_seq IS NULL";

/// Keeps an end that may change as the one that was shown first; the row after that.
pub(super) async fn show_task(db: &Db, id: ExecutionId, seq: i64) -> Result<Option<TaskRow>> {
    db.transaction(move |tx| Box::pin(show(tx, id, seq))).await
}

async fn show(tx: &Tx<'_>, id: ExecutionId, seq: i64) -> Sql<Option<TaskRow>> {
    let Some(row) = one(tx, id).await? else { return Ok(None) };
    let entry = heads::entry(tx, id).await?;
    if !row.is_first_shown(entry.as_ref().map(|entry| &entry.head), seq) {
        return Ok(Some(row));
    }
    // What was read stands until the commit, or all of this runs again.
    if let Some(mut entry) = entry {
        hold(tx, &mut entry.head).await?;
    }
    match tx.execute(SHOW, &[int(&shard(id)), uuid(id.as_uuid()), int(&seq)]).await? {
        1 => Ok(Some(TaskRow { shown_seq: Some(seq), ..row })),
        _ => Err(Fault::again(format!("the task {id} was changed by another process; try again"))),
    }
}

const PAGE: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks t WHERE t.namespace = $1 AND t.principal = $2 AND t.execution_id < $3 AND t.expires_at_ms > $4 \
     ORDER BY t.execution_id DESC LIMIT $5"
);

/// A page of somebody's own tasks, newest first.
pub(super) async fn tasks(db: &Db, query: TaskQuery) -> Result<Vec<TaskRow>> {
    let before = query.before.map_or(Uuid::max(), |id| *id.as_uuid());
    let limit = count(query.limit);
    let (query, before, limit) = (&query, &before, &limit);
    db.read(move |reading| {
        Box::pin(async move {
            let values = [text(&query.namespace), text(&query.principal), uuid(before), int(&query.now_ms), int(limit)];
            reading.query(PAGE, &values).await?.iter().map(read).collect()
        })
    })
    .await
}

const EXPIRED: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM ",
    shards!(),
    " CROSS JOIN LATERAL (SELECT x.* FROM tasks x WHERE x.shard = s.shard AND x.expires_at_ms <= $1 \
     ORDER BY x.expires_at_ms LIMIT $2) t ORDER BY t.expires_at_ms LIMIT $2"
);

/// Tasks whose time is over, the longest first.
pub(super) async fn expired_tasks(db: &Db, now_ms: i64, limit: usize) -> Result<Vec<TaskRow>> {
    db.read(move |reading| {
        Box::pin(async move {
            let rows = reading.query(EXPIRED, &[int(&now_ms), int(&count(limit))]).await?;
            rows.iter().map(read).collect()
        })
    })
    .await
}

const CLOSE: &str = "DELETE FROM tasks WHERE shard = $1 AND execution_id = $2 AND expires_at_ms <= $3";

/// Forgets a task whose time is over; false when there is none, or it was given more time.
pub(super) async fn close_task(db: &Db, id: ExecutionId, now_ms: i64) -> Result<bool> {
    db.transaction(move |tx| {
        Box::pin(async move { Ok(tx.execute(CLOSE, &[int(&shard(id)), uuid(id.as_uuid()), int(&now_ms)]).await? > 0) })
    })
    .await
}

fn read(row: &Row) -> Sql<TaskRow> {
    let id = rows::execution(row, 0)?;
    let (variant, on_expiry): (&str, &str) = (row.try_get(3)?, row.try_get(6)?);
    let damaged = |what: &str| Fault::damaged(format!("the task {id} has an unknown {what}"));
    Ok(TaskRow {
        id,
        namespace: row.try_get(1)?,
        principal: row.try_get(2)?,
        variant: TaskVariant::parse(variant).ok_or_else(|| damaged("variant"))?,
        ttl_ms: row.try_get(4)?,
        created_at_ms: row.try_get(5)?,
        on_expiry: OnTaskExpiry::parse(on_expiry).ok_or_else(|| damaged("on_expiry"))?,
        shown_seq: row.try_get(7)?,
        progress_token: row.try_get(8)?,
    })
}

/// What the tests of query plans read, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[
    (ONE, "bigint, uuid"),
    (SHOW, "bigint, uuid, bigint"),
    (PAGE, "text, text, uuid, bigint, bigint"),
    (EXPIRED, "bigint, bigint"),
    (CLOSE, "bigint, uuid, bigint"),
];

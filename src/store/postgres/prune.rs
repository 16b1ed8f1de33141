//! Retention: deletes payloads, then whole ended executions, in small transactions. `unknown` is never among them (the
//! indexes leave it out and the database refuses), nor is an execution whose key still lives.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_postgres::Row;
use uuid::Uuid;

use super::bind::{count, int, ints, text, texts, uuids};
use super::db::{Db, Reading, Tx};
use super::fault::Sql;
use super::lists::shards;
use super::workers;
use crate::model::execution::State;
use crate::store::worker::GONE_WORKERS_MS;
use crate::store::{Pruned, Result, Retention, Slice};

macro_rules! of_slice {
    () => {
        " AND ($4::TEXT IS NULL OR e.state = $4) AND ($5::TEXT IS NULL OR e.namespace = $5) AND e.namespace <> ALL($6::TEXT[])"
    };
}

macro_rules! of_each_shard {
    ($where:expr) => {
        concat!(
            "SELECT t.shard, t.id FROM ",
            shards!(),
            " CROSS JOIN LATERAL (SELECT e.shard, e.id, e.ended_at_ms FROM executions e WHERE e.shard = s.shard \
             AND e.ended_at_ms <= $1 AND e.state <> 'unknown' AND ",
            $where,
            of_slice!(),
            " ORDER BY e.ended_at_ms LIMIT $2) t ORDER BY t.ended_at_ms LIMIT $2"
        )
    };
}

/// Ended executions that hold no key, or one whose time is over.
macro_rules! unheld {
    ($kept:literal) => {
        of_each_shard!(concat!(
            $kept,
            " AND (e.key IS NULL OR NOT EXISTS (SELECT 1 FROM idempotency_keys k WHERE k.namespace = e.namespace \
             AND k.upstream = e.upstream AND k.tool = e.tool AND k.key = e.key AND k.execution_id = e.id \
             AND e.ended_at_ms + k.ttl_ms > $3))"
        ))
    };
}

/// How many ended executions would go, how many stay without payloads, and how many keys go with either: the same
/// conditions as of the deleting statements, counted at one moment.
const PREVIEW: &str = concat!(
    "SELECT count(*) FILTER (WHERE c.gone), count(*) FILTER (WHERE c.bare AND NOT c.gone), \
     count(*) FILTER (WHERE c.over AND (c.bare OR c.aged)) FROM (SELECT \
     e.ended_at_ms <= $1 AND (k.key IS NULL OR e.ended_at_ms + k.ttl_ms <= $3) AS gone, e.ended_at_ms <= $1 AS aged, \
     e.ended_at_ms <= $2 AND e.payloads_kept AS bare, k.key IS NOT NULL AND e.ended_at_ms + k.ttl_ms <= $3 AS over FROM ",
    shards!(),
    " JOIN executions e ON e.shard = s.shard LEFT JOIN idempotency_keys k ON k.namespace = e.namespace \
     AND k.upstream = e.upstream AND k.tool = e.tool AND k.key = e.key AND k.execution_id = e.id \
     WHERE e.ended_at_ms IS NOT NULL AND e.state <> 'unknown' AND (e.ended_at_ms <= $1 OR e.ended_at_ms <= $2)",
    of_slice!(),
    ") c"
);

/// What pruning would delete; changes nothing.
pub(super) async fn preview(db: &Db, slice: &Slice, retention: Retention, now_ms: i64) -> Result<Pruned> {
    let executions_until = now_ms.saturating_sub(retention.executions_ms);
    let payloads_until = now_ms.saturating_sub(retention.payloads_ms);
    let state = slice.state.map(State::as_str);
    db.read(move |reading| {
        Box::pin(async move {
            let spans = [int(&executions_until), int(&payloads_until), int(&now_ms)];
            let slice = [text(&state), text(&slice.namespace), texts(&slice.but)];
            let row = reading.query_opt(PREVIEW, &[&spans[..], &slice].concat()).await?;
            let Some(row) = row else { return Ok(Pruned::default()) };
            let number = |column: usize| -> Sql<usize> { Ok(row.try_get::<_, i64>(column)?.unsigned_abs() as usize) };
            Ok(Pruned { executions: number(0)?, payloads: number(1)?, keys: number(2)? })
        })
    })
    .await
}

const WITH_PAYLOADS: &str = of_each_shard!("e.payloads_kept AND $3::BIGINT IS NOT NULL");
const BARE_UNHELD: &str = unheld!("NOT e.payloads_kept");
const KEPT_UNHELD: &str = unheld!("e.payloads_kept");

/// Executions of one transaction at most: each has a few events and pieces of payload.
const TOGETHER: usize = 20;

/// Which executions go together.
struct Rows {
    shards: Vec<i64>,
    ids: Vec<Uuid>,
}

/// What the runs of one transaction struck, executions and keys: after a commit of which nothing was heard the next run
/// finds gone what the one before deleted.
#[derive(Default)]
struct Struck {
    executions: AtomicUsize,
    keys: AtomicUsize,
}

impl Struck {
    fn note(&self, (executions, keys): (usize, usize)) -> Sql<()> {
        self.executions.fetch_max(executions, Ordering::Relaxed);
        self.keys.fetch_max(keys, Ordering::Relaxed);
        Ok(())
    }

    fn most(&self) -> (usize, usize) {
        (self.executions.load(Ordering::Relaxed), self.keys.load(Ordering::Relaxed))
    }
}

/// One batch.
pub(super) async fn prune(db: &Db, slice: &Slice, retention: Retention, now_ms: i64) -> Result<Pruned> {
    let mut pruned = Pruned::default();
    let payloads_until = now_ms.saturating_sub(retention.payloads_ms);
    for rows in find(db, WITH_PAYLOADS, slice, (payloads_until, now_ms, retention.batch)).await? {
        let rows = &rows;
        let struck = &Struck::default();
        db.transaction(move |tx| Box::pin(async move { struck.note(bare(tx, rows, now_ms).await?) })).await?;
        let (payloads, keys) = struck.most();
        pruned.payloads += payloads;
        pruned.keys += keys;
    }
    let gone_until = now_ms.saturating_sub(GONE_WORKERS_MS);
    db.transaction(move |tx| Box::pin(workers::prune(tx, gone_until))).await?;
    let events = db.read(|reading| Box::pin(async move { way_to_events(reading).await })).await?;
    let executions_until = now_ms.saturating_sub(retention.executions_ms);
    for sql in [BARE_UNHELD, KEPT_UNHELD] {
        let limit = retention.batch.saturating_sub(pruned.executions);
        for rows in find(db, sql, slice, (executions_until, now_ms, limit)).await? {
            let rows = &rows;
            let struck = &Struck::default();
            db.transaction(move |tx| Box::pin(async move { struck.note(delete(tx, rows, events, now_ms).await?) }))
                .await?;
            let (executions, keys) = struck.most();
            pruned.executions += executions;
            pruned.keys += keys;
        }
    }
    Ok(pruned)
}

async fn find(
    db: &Db,
    sql: &'static str,
    slice: &Slice,
    (until, now_ms, limit): (i64, i64, usize),
) -> Result<Vec<Rows>> {
    let limit = count(limit);
    let state = slice.state.map(State::as_str);
    let found = db
        .read(move |reading| {
            Box::pin(async move {
                let spans = [int(&until), int(&limit), int(&now_ms)];
                let slice = [text(&state), text(&slice.namespace), texts(&slice.but)];
                let values = [&spans[..], &slice].concat();
                let read = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
                reading.query(sql, &values).await?.iter().map(read).collect::<Sql<Vec<(i64, Uuid)>>>()
            })
        })
        .await?;
    let together = |rows: &[(i64, Uuid)]| {
        let (shards, ids) = rows.iter().copied().unzip();
        Rows { shards, ids }
    };
    Ok(found.chunks(TOGETHER).map(together).collect())
}

macro_rules! gone {
    () => {
        "unnest($1::BIGINT[], $2::UUID[]) AS g(shard, id)"
    };
}

macro_rules! delete_of {
    ($table:literal) => {
        concat!("DELETE FROM ", $table, " t USING ", gone!(), " WHERE t.shard = g.shard AND t.execution_id = g.id")
    };
}

const MARK_BARE: &str = concat!(
    "UPDATE executions SET payloads_kept = false, version = version + 1 FROM ",
    gone!(),
    " WHERE executions.shard = g.shard AND executions.id = g.id AND executions.payloads_kept"
);

const DELETE_EXECUTIONS: &str = concat!(
    "DELETE FROM executions e USING ",
    gone!(),
    " WHERE e.shard = g.shard AND e.id = g.id AND e.ended_at_ms IS NOT NULL AND e.state <> 'unknown'"
);

/// The keys of executions, once their time is over.
const DELETE_KEYS: &str = concat!(
    "DELETE FROM idempotency_keys k USING executions e, ",
    gone!(),
    " WHERE e.shard = g.shard AND e.id = g.id AND k.namespace = e.namespace AND k.upstream = e.upstream \
     AND k.tool = e.tool AND k.key = e.key AND k.execution_id = e.id AND e.ended_at_ms + k.ttl_ms <= $3"
);

const OF_PAYLOADS: [&str; 4] =
    [delete_of!("payloads"), delete_of!("input_requests"), delete_of!("steps"), delete_of!("checkpoints")];

const DELETE_TASKS: &str = delete_of!("tasks");

/// After their execution: the database lets events go with it only.
const DELETE_EVENTS: &str = delete_of!("execution_events");

/// The same for a role that can not delete an event itself (`roles.rs`).
const DELETE_EVENTS_AS_OWNER: &str = "SELECT delete_events_of_deleted($1::BIGINT[], $2::UUID[])";

const MAY_DELETE_EVENTS: &str = "SELECT has_table_privilege('execution_events', 'DELETE')";

/// How this role deletes the events of executions that are gone.
async fn way_to_events(reading: &Reading<'_>) -> Sql<&'static str> {
    let row = reading.query_opt(MAY_DELETE_EVENTS, &[]).await?;
    Ok(match row.map_or(Ok(true), |row| row.try_get(0))? {
        true => DELETE_EVENTS,
        false => DELETE_EVENTS_AS_OWNER,
    })
}

async fn bare(tx: &Tx<'_>, rows: &Rows, now_ms: i64) -> Sql<(usize, usize)> {
    let values = [ints(&rows.shards), uuids(&rows.ids)];
    let marked = tx.execute(MARK_BARE, &values).await?;
    for sql in OF_PAYLOADS {
        tx.execute(sql, &values).await?;
    }
    Ok((marked as usize, delete_keys(tx, rows, now_ms).await?))
}

async fn delete(tx: &Tx<'_>, rows: &Rows, events: &str, now_ms: i64) -> Sql<(usize, usize)> {
    let keys = delete_keys(tx, rows, now_ms).await?;
    let values = [ints(&rows.shards), uuids(&rows.ids)];
    let deleted = tx.execute(DELETE_EXECUTIONS, &values).await?;
    for sql in OF_PAYLOADS.into_iter().chain([events, DELETE_TASKS]) {
        tx.execute(sql, &values).await?;
    }
    Ok((deleted as usize, keys))
}

async fn delete_keys(tx: &Tx<'_>, rows: &Rows, now_ms: i64) -> Sql<usize> {
    let values = [ints(&rows.shards), uuids(&rows.ids), int(&now_ms)];
    Ok(tx.execute(DELETE_KEYS, &values).await? as usize)
}

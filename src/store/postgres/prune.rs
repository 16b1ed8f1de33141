//! Retention: deletes payloads, then whole ended executions, in small transactions. `unknown` is never among them (the
//! indexes leave it out and the database refuses), nor is an execution whose key still lives.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{try_join_all, try_join3};
use uuid::Uuid;

use super::bind::{count, int, ints, text, texts, uuids};
use super::db::{Db, Tx};
use super::fault::Sql;
use super::lists::shards;
use super::rows::SHARDS;
use super::workers;
use crate::model::execution::State;
use crate::store::worker::GONE_WORKERS_MS;
use crate::store::{Pruned, Result, Retention, Slice};

macro_rules! of_slice {
    () => {
        " AND ($4::TEXT IS NULL OR e.state = $4) AND ($5::TEXT IS NULL OR e.namespace = $5) AND e.namespace <> ALL($6::TEXT[])"
    };
}

/// Of each shard its part of the batch, the oldest first: whoever is left out has its turn in the next one.
macro_rules! of_each_shard {
    ($where:expr) => {
        concat!(
            "SELECT t.shard, t.id, has_table_privilege('execution_events', 'DELETE') FROM ",
            shards!(),
            " CROSS JOIN LATERAL (SELECT e.shard, e.id FROM executions e WHERE e.shard = s.shard \
             AND e.ended_at_ms <= $1 AND e.state <> 'unknown' AND ",
            $where,
            of_slice!(),
            " ORDER BY e.ended_at_ms LIMIT $7) t LIMIT $2"
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
const TOGETHER: usize = 100;
/// So many times a batch go together: nobody waits here for a commit that deletes, as all do where one writes at a time.
const MORE: usize = 5;

/// Which executions go together.
#[derive(Default)]
struct Rows {
    shards: Vec<i64>,
    ids: Vec<Uuid>,
}

impl Rows {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn extend(&mut self, more: Rows) {
        self.shards.extend(more.shards);
        self.ids.extend(more.ids);
    }

    /// Those that share a transaction.
    fn together(&self) -> Vec<Rows> {
        let parts = self.shards.chunks(TOGETHER).zip(self.ids.chunks(TOGETHER));
        parts.map(|(shards, ids)| Rows { shards: shards.to_vec(), ids: ids.to_vec() }).collect()
    }

    /// The first `limit` of those that are not among `others`.
    fn but(self, others: &Rows, limit: usize) -> Rows {
        let others: HashSet<&Uuid> = others.ids.iter().collect();
        let rows = self.shards.into_iter().zip(self.ids).filter(|(_, id)| !others.contains(id)).take(limit);
        let (shards, ids) = rows.unzip();
        Rows { shards, ids }
    }
}

/// What the runs of one transaction struck: after a commit of which nothing was heard the next run finds gone what the one
/// before deleted.
#[derive(Default)]
struct Struck {
    executions: AtomicUsize,
    payloads: AtomicUsize,
    keys: AtomicUsize,
}

impl Struck {
    fn note(&self, pruned: Pruned) -> Sql<()> {
        self.executions.fetch_max(pruned.executions, Ordering::Relaxed);
        self.payloads.fetch_max(pruned.payloads, Ordering::Relaxed);
        self.keys.fetch_max(pruned.keys, Ordering::Relaxed);
        Ok(())
    }

    fn most(&self) -> Pruned {
        let most = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        Pruned { executions: most(&self.executions), payloads: most(&self.payloads), keys: most(&self.keys) }
    }
}

/// One batch: whole executions first, with what is kept of them, so that nothing is written to a row that goes. Forgets
/// workers that are long gone when there is nothing else to do.
pub(super) async fn prune(db: &Db, slice: &Slice, retention: Retention, now_ms: i64) -> Result<Pruned> {
    let batch = retention.batch.saturating_mul(MORE);
    let executions_until = now_ms.saturating_sub(retention.executions_ms);
    let (mut executions, mut owner) = find(db, BARE_UNHELD, slice, (executions_until, now_ms, batch)).await?;
    if executions.len() < batch {
        let left = batch - executions.len();
        let (more, owns) = find(db, KEPT_UNHELD, slice, (executions_until, now_ms, left)).await?;
        executions.extend(more);
        owner |= owns;
    }
    let mut payloads = Rows::default();
    if executions.len() < batch {
        let payloads_until = now_ms.saturating_sub(retention.payloads_ms);
        let (found, _) = find(db, WITH_PAYLOADS, slice, (payloads_until, now_ms, batch)).await?;
        // Some of them go as a whole.
        payloads = found.but(&executions, batch - executions.len());
    }
    let mut pruned = Pruned::default();
    let events = if owner { DELETE_EVENTS } else { DELETE_EVENTS_AS_OWNER };
    for rows in &executions.together() {
        let struck = &Struck::default();
        db.transaction(move |tx| Box::pin(async move { struck.note(delete(tx, rows, events, now_ms).await?) })).await?;
        pruned += struck.most();
    }
    for rows in &payloads.together() {
        let struck = &Struck::default();
        db.transaction(move |tx| Box::pin(async move { struck.note(bare(tx, rows, now_ms).await?) })).await?;
        pruned += struck.most();
    }
    if executions.len() + payloads.len() == 0 {
        let gone_until = now_ms.saturating_sub(GONE_WORKERS_MS);
        db.transaction(move |tx| Box::pin(workers::prune(tx, gone_until))).await?;
    }
    Ok(pruned)
}

/// What one statement finds, and whether this role may delete events itself.
async fn find(
    db: &Db,
    sql: &'static str,
    slice: &Slice,
    (until, now_ms, limit): (i64, i64, usize),
) -> Result<(Rows, bool)> {
    let limit = count(limit);
    let of_each_shard = limit / SHARDS + 1;
    let state = slice.state.map(State::as_str);
    db.read(move |reading| {
        Box::pin(async move {
            let spans = [int(&until), int(&limit), int(&now_ms)];
            let slice = [text(&state), text(&slice.namespace), texts(&slice.but)];
            let (mut rows, mut owner) = (Rows::default(), false);
            for row in reading.query(sql, &[&spans[..], &slice, &[int(&of_each_shard)]].concat()).await? {
                rows.shards.push(row.try_get(0)?);
                rows.ids.push(row.try_get(1)?);
                owner = row.try_get(2)?;
            }
            Ok((rows, owner))
        })
    })
    .await
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

async fn bare(tx: &Tx<'_>, rows: &Rows, now_ms: i64) -> Sql<Pruned> {
    let values = [ints(&rows.shards), uuids(&rows.ids)];
    let others = try_join_all(OF_PAYLOADS.map(|sql| tx.execute(sql, &values)));
    let (payloads, _, keys) = try_join3(tx.execute(MARK_BARE, &values), others, delete_keys(tx, rows, now_ms)).await?;
    Ok(Pruned { executions: 0, payloads: payloads as usize, keys })
}

/// All is sent at once, in this order: each statement is begun when it is first polled.
async fn delete(tx: &Tx<'_>, rows: &Rows, events: &str, now_ms: i64) -> Sql<Pruned> {
    let values = [ints(&rows.shards), uuids(&rows.ids)];
    let others = OF_PAYLOADS.into_iter().chain([events, DELETE_TASKS]);
    let others = try_join_all(others.map(|sql| tx.execute(sql, &values)));
    let (keys, deleted, _) =
        try_join3(delete_keys(tx, rows, now_ms), tx.execute(DELETE_EXECUTIONS, &values), others).await?;
    Ok(Pruned { executions: deleted as usize, payloads: 0, keys })
}

async fn delete_keys(tx: &Tx<'_>, rows: &Rows, now_ms: i64) -> Sql<usize> {
    let values = [ints(&rows.shards), uuids(&rows.ids), int(&now_ms)];
    Ok(tx.execute(DELETE_KEYS, &values).await? as usize)
}

//! Workers, and what their tools keep between attempts. Whether a lease is held is decided by the model, what a
//! registration means by `store::worker`.

use tokio_postgres::Row;

use super::bind::{flag, int, text, uuid, uuids};
use super::db::{Db, Reading, Tx};
use super::fault::{Fault, Sql};
use super::heads;
use super::held::hold;
use super::rows::shard;
use crate::model::decide::Answer;
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::asking;
use crate::store::{
    Keep, KeepOutcome, Kept, LeaseKey, LeaseRef, Payload, Progressed, Result, WorkerChange, WorkerKind, WorkerRow,
    WorkersSeen,
};

const PUT: &str = "INSERT INTO workers (id, name, namespace, principal, kind, slots, sdk, tools, lease_key, \
    registered_at_ms, last_seen_at_ms, silent_at_ms, draining) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (id) DO NOTHING";

/// Of the same owner; its key stays.
const PUT_AGAIN: &str = "UPDATE workers SET name = $2, slots = $6, sdk = $7, tools = $8, lease_key = $9, \
    registered_at_ms = $10, last_seen_at_ms = $11, silent_at_ms = $12, draining = $13, gone_at_ms = NULL \
    WHERE id = $1 AND namespace = $3 AND principal = $4 AND kind = $5";

/// Registers a worker, again or for the first time; `None` when the id is somebody else's.
pub(super) async fn put_worker(db: &Db, row: WorkerRow) -> Result<Option<WorkerRow>> {
    let row = &row;
    db.transaction(move |tx| Box::pin(put(tx, row))).await
}

async fn put(tx: &Tx<'_>, row: &WorkerRow) -> Sql<Option<WorkerRow>> {
    let stored = one(tx, row.id).await?;
    let Some(row) = WorkerRow::registered(stored.as_ref(), row) else { return Ok(None) };
    let (kind, tools, lease_key) = (row.kind.as_str(), &*row.tools, hex::encode(row.lease_key.0));
    let slots = i64::from(row.slots);
    let values = [
        uuid(row.id.as_uuid()),
        text(&row.name),
        text(&row.namespace),
        text(&row.principal),
        text(&kind),
        int(&slots),
        text(&row.sdk),
        text(&tools),
        text(&lease_key),
        int(&row.registered_at_ms),
        int(&row.last_seen_at_ms),
        int(&row.silent_at_ms),
        flag(&row.draining),
    ];
    let sql = if stored.is_some() { PUT_AGAIN } else { PUT };
    if tx.execute(sql, &values).await? != 1 {
        return Err(Fault::again(format!("the worker {} registered at another process; try again", row.id)));
    }
    count_change(tx).await?;
    Ok(Some(row))
}

const SEEN: &str = "UPDATE workers SET last_seen_at_ms = greatest(last_seen_at_ms, $2), \
    silent_at_ms = greatest(silent_at_ms, $3) WHERE id = ANY($1::UUID[]) AND gone_at_ms IS NULL";

const DRAIN: &str = "UPDATE workers SET draining = true WHERE id = ANY($1::UUID[]) AND gone_at_ms IS NULL";

const END: &str = "UPDATE workers SET gone_at_ms = $2, tools = '[]' WHERE id = ANY($1::UUID[]) AND gone_at_ms IS NULL";

/// Writes what happened to workers; returns how many of them it concerned.
pub(super) async fn change_workers(db: &Db, ids: Vec<ProcessId>, change: WorkerChange, now_ms: i64) -> Result<usize> {
    let ids = &ids.iter().map(|id| *id.as_uuid()).collect::<Vec<_>>();
    db.transaction(move |tx| {
        Box::pin(async move {
            let changed = match change {
                WorkerChange::Seen { silent_at_ms } => {
                    tx.execute(SEEN, &[uuids(ids), int(&now_ms), int(&silent_at_ms)]).await?
                }
                WorkerChange::Draining => tx.execute(DRAIN, &[uuids(ids)]).await?,
                WorkerChange::Gone => tx.execute(END, &[uuids(ids), int(&now_ms)]).await?,
            };
            if changed > 0 && !matches!(change, WorkerChange::Seen { .. }) {
                count_change(tx).await?;
            }
            Ok(changed as usize)
        })
    })
    .await
}

const BURY: &str = "UPDATE workers SET gone_at_ms = $2 WHERE id = $1 AND gone_at_ms IS NULL";

/// Notes that a worker died. It keeps its tools in the row: they are offered for a while, since it may come back.
pub(super) async fn bury(tx: &Tx<'_>, process: ProcessId) -> Sql<()> {
    let Some(row) = one(tx, process).await? else { return Ok(()) };
    if tx.execute(BURY, &[uuid(process.as_uuid()), int(&row.died_at_ms())]).await? > 0 {
        count_change(tx).await?;
    }
    Ok(())
}

const COUNT_CHANGE: &str = "UPDATE worker_changes SET count = count + 1 WHERE id = 1";

async fn count_change(tx: &Tx<'_>) -> Sql<()> {
    tx.execute(COUNT_CHANGE, &[]).await?;
    Ok(())
}

macro_rules! worker_columns {
    () => {
        "SELECT id, name, namespace, principal, kind, slots, sdk, tools, lease_key, registered_at_ms, \
         last_seen_at_ms, silent_at_ms, draining, gone_at_ms FROM workers"
    };
}

const ONE: &str = concat!(worker_columns!(), " WHERE id = $1");
const ALL: &str = concat!(worker_columns!(), " ORDER BY id");
const CHANGES: &str = "SELECT count FROM worker_changes WHERE id = 1";

async fn one(reading: &Reading<'_>, id: ProcessId) -> Sql<Option<WorkerRow>> {
    let row = reading.query_opt(ONE, &[uuid(id.as_uuid())]).await?;
    row.as_ref().map(read).transpose()
}

/// Every worker, by id; `None` when nothing but signs of life changed since change number `known`.
pub(super) async fn workers(db: &Db, known: Option<i64>) -> Result<Option<WorkersSeen>> {
    db.read(move |reading| {
        Box::pin(async move {
            // The number first: what changes in between is read again next time, and missed never.
            let change = reading.query_opt(CHANGES, &[]).await?.map_or(Ok(0), |row| row.try_get(0))?;
            if known == Some(change) {
                return Ok(None);
            }
            let rows = reading.query(ALL, &[]).await?.iter().map(read).collect::<Sql<_>>()?;
            Ok(Some(WorkersSeen { change, rows }))
        })
    })
    .await
}

fn read(row: &Row) -> Sql<WorkerRow> {
    let id = ProcessId::from_uuid(row.try_get(0)?);
    let mut lease_key = [0; 32];
    hex::decode_to_slice(row.try_get::<_, &str>(8)?, &mut lease_key)
        .map_err(|_| Fault::damaged(format!("worker {id} has no readable key")))?;
    let kind: &str = row.try_get(4)?;
    let slots: i64 = row.try_get(5)?;
    Ok(WorkerRow {
        id,
        name: row.try_get(1)?,
        namespace: row.try_get(2)?,
        principal: row.try_get(3)?,
        kind: WorkerKind::parse(kind).ok_or_else(|| Fault::damaged(format!("worker {id} is of no known kind")))?,
        slots: u32::try_from(slots).map_err(|_| Fault::damaged(format!("worker {id} has {slots} slots")))?,
        sdk: row.try_get(6)?,
        tools: row.try_get::<_, String>(7)?.into(),
        lease_key: LeaseKey(lease_key),
        registered_at_ms: row.try_get(9)?,
        last_seen_at_ms: row.try_get(10)?,
        silent_at_ms: row.try_get(11)?,
        draining: row.try_get(12)?,
        gone_at_ms: row.try_get(13)?,
    })
}

const STEP: &str = "SELECT result FROM steps WHERE shard = $1 AND execution_id = $2 AND name = $3";

const COUNT_STEPS: &str = "SELECT count(*) FROM steps WHERE shard = $1 AND execution_id = $2";

const PUT_STEP: &str = "INSERT INTO steps (shard, execution_id, name, result, fencing_token, at_ms) \
    VALUES ($1, $2, $3, $4, $5, $6)";

const CHANGE_CHECKPOINT: &str = "UPDATE checkpoints SET body = $3, fencing_token = $4, at_ms = $5 \
    WHERE shard = $1 AND execution_id = $2";

const PUT_CHECKPOINT: &str = "INSERT INTO checkpoints (shard, execution_id, body, fencing_token, at_ms) \
    VALUES ($1, $2, $3, $4, $5)";

/// Keeps something for later attempts, when the lease is held.
pub(super) async fn keep(db: &Db, keep: Keep) -> Result<KeepOutcome> {
    let keep = &keep;
    db.transaction(move |tx| Box::pin(keep_in(tx, keep))).await
}

async fn keep_in(tx: &Tx<'_>, keep: &Keep) -> Sql<KeepOutcome> {
    let LeaseRef { id, fencing_token } = keep.lease;
    let Some(mut entry) = heads::entry(tx, id).await? else { return Ok(KeepOutcome::Refused(Answer::Stale)) };
    let held = asking::held(&entry.head, keep.lease, keep.now_ms, &tx.settings().limits);
    if held != Answer::Extended {
        return Ok(KeepOutcome::Refused(held));
    }
    let (shard, execution) = (shard(id), id.as_uuid());
    match &keep.what {
        Kept::Step { name, result, steps_max } => {
            let earlier = tx.query_opt(STEP, &[int(&shard), uuid(execution), text(name)]).await?;
            if let Some(row) = earlier {
                let earlier = row.try_get::<_, String>(0)?;
                // Its own, after a commit of which nothing was heard.
                return Ok(match tx.may_be_there && earlier == **result {
                    true => KeepOutcome::Stored,
                    false => KeepOutcome::Earlier(earlier.into()),
                });
            }
            let row = tx.query_opt(COUNT_STEPS, &[int(&shard), uuid(execution)]).await?;
            let count: i64 = row.map_or(Ok(0), |row| row.try_get(0))?;
            if usize::try_from(count).unwrap_or(usize::MAX) >= *steps_max {
                return Ok(KeepOutcome::Full);
            }
            // The row of the execution makes two that keep at once take turns: the step can not be there by now.
            hold(tx, &mut entry.head).await?;
            let result = &**result;
            let values =
                [int(&shard), uuid(execution), text(name), text(&result), int(&fencing_token), int(&keep.now_ms)];
            tx.execute(PUT_STEP, &values).await?;
        }
        Kept::Checkpoint(body) => {
            hold(tx, &mut entry.head).await?;
            let body = &**body;
            let values = [int(&shard), uuid(execution), text(&body), int(&fencing_token), int(&keep.now_ms)];
            if tx.execute(CHANGE_CHECKPOINT, &values).await? == 0 {
                tx.execute(PUT_CHECKPOINT, &values).await?;
            }
        }
    }
    Ok(KeepOutcome::Stored)
}

const STEPS: &str = "SELECT name, result FROM steps WHERE shard = $1 AND execution_id = $2 ORDER BY at_ms, name";

const CHECKPOINT: &str = "SELECT body FROM checkpoints WHERE shard = $1 AND execution_id = $2";

/// What the attempts of an execution have kept.
pub(super) async fn progressed(db: &Db, id: ExecutionId) -> Result<Progressed> {
    db.read(move |reading| {
        Box::pin(async move {
            let shard = shard(id);
            let values = [int(&shard), uuid(id.as_uuid())];
            let step =
                |row: &Row| -> Sql<(String, Payload)> { Ok((row.try_get(0)?, row.try_get::<_, String>(1)?.into())) };
            let steps = reading.query(STEPS, &values).await?.iter().map(step).collect::<Sql<_>>()?;
            let checkpoint = reading.query_opt(CHECKPOINT, &values).await?;
            let checkpoint = checkpoint.map(|row| row.try_get::<_, String>(0)).transpose()?.map(Into::into);
            Ok(Progressed { steps, checkpoint })
        })
    })
    .await
}

const DELETE_GONE: &str = "DELETE FROM workers WHERE gone_at_ms <= $1";

/// Forgets workers that were gone by `until_ms`.
pub(super) async fn prune(tx: &Tx<'_>, until_ms: i64) -> Sql<()> {
    if tx.execute(DELETE_GONE, &[int(&until_ms)]).await? > 0 {
        count_change(tx).await?;
    }
    Ok(())
}

/// What the tests of query plans read, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[
    (BURY, "uuid, bigint"),
    (ONE, "uuid"),
    (STEP, "bigint, uuid, text"),
    (COUNT_STEPS, "bigint, uuid"),
    (CHANGE_CHECKPOINT, "bigint, uuid, text, bigint, bigint"),
    (STEPS, "bigint, uuid"),
    (CHECKPOINT, "bigint, uuid"),
];

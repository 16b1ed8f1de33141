//! Workers, and what their tools keep between attempts. Whether a lease is held is decided by the model.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::{Fault, Sql};
use super::rows::{Id, IdText};
use super::tx::Tx;
use crate::model::decide::Answer;
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::asking;
use crate::store::{
    Keep, KeepOutcome, Kept, LeaseKey, LeaseRef, Payload, Progressed, WorkerChange, WorkerKind, WorkerRow,
};

const PUT: &str = "INSERT INTO workers (id, name, namespace, principal, kind, slots, sdk, tools, lease_key, \
    registered_at_ms, last_seen_at_ms, silent_at_ms, draining, gone_at_ms) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, NULL) \
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, slots = excluded.slots, sdk = excluded.sdk, \
    tools = excluded.tools, registered_at_ms = excluded.registered_at_ms, \
    last_seen_at_ms = excluded.last_seen_at_ms, silent_at_ms = excluded.silent_at_ms, \
    draining = excluded.draining, gone_at_ms = NULL";

/// Registers a worker, again or for the first time; `None` when the id is somebody else's.
pub(super) fn put(tx: &Tx<'_>, row: &WorkerRow) -> Sql<Option<WorkerRow>> {
    let Some(row) = WorkerRow::registered(one(tx.connection, row.id)?.as_ref(), row) else { return Ok(None) };
    tx.connection.prepare_cached(PUT)?.execute(params![
        IdText::process(row.id),
        row.name,
        row.namespace,
        row.principal,
        row.kind.as_str(),
        row.slots,
        row.sdk,
        &*row.tools,
        hex::encode(row.lease_key.0),
        row.registered_at_ms,
        row.last_seen_at_ms,
        row.silent_at_ms,
        row.draining,
    ])?;
    count_change(tx.connection)?;
    Ok(Some(row))
}

fn one(connection: &Connection, id: ProcessId) -> Sql<Option<WorkerRow>> {
    let mut statement = connection.prepare_cached(ONE)?;
    statement.query_row([IdText::process(id)], |row| Ok(read(row))).optional()?.transpose()
}

const SEEN: &str = "UPDATE workers SET last_seen_at_ms = max(last_seen_at_ms, ?2), \
    silent_at_ms = max(silent_at_ms, ?3) WHERE id = ?1 AND gone_at_ms IS NULL";

const DRAIN: &str = "UPDATE workers SET draining = 1 WHERE id = ?1 AND gone_at_ms IS NULL";

const END: &str = "UPDATE workers SET gone_at_ms = ?2, tools = '[]' WHERE id = ?1 AND gone_at_ms IS NULL";

/// Writes what happened to workers; returns how many of them it concerned.
pub(super) fn change(tx: &Tx<'_>, ids: &[ProcessId], change: WorkerChange, now_ms: i64) -> Sql<usize> {
    let mut changed = 0;
    for id in ids {
        let id = IdText::process(*id);
        changed += match change {
            WorkerChange::Seen { silent_at_ms } => {
                tx.connection.prepare_cached(SEEN)?.execute(params![id, now_ms, silent_at_ms])?
            }
            WorkerChange::Draining => tx.connection.prepare_cached(DRAIN)?.execute(params![id])?,
            WorkerChange::Gone => tx.connection.prepare_cached(END)?.execute(params![id, now_ms])?,
        };
    }
    if changed > 0 && !matches!(change, WorkerChange::Seen { .. }) {
        count_change(tx.connection)?;
    }
    Ok(changed)
}

const BURY: &str = "UPDATE workers SET gone_at_ms = ?2 WHERE id = ?1 AND gone_at_ms IS NULL";

/// Notes that a worker died. It keeps its tools in the row: they are offered for a while, since it may come back.
pub(super) fn bury(tx: &Tx<'_>, process: ProcessId) -> Sql<()> {
    let Some(row) = one(tx.connection, process)? else { return Ok(()) };
    if tx.connection.prepare_cached(BURY)?.execute(params![IdText::process(process), row.died_at_ms()])? > 0 {
        count_change(tx.connection)?;
    }
    Ok(())
}

const COUNT_CHANGE: &str = "UPDATE worker_changes SET count = count + 1 WHERE id = 1";

fn count_change(connection: &Connection) -> Sql<()> {
    connection.prepare_cached(COUNT_CHANGE)?.execute([])?;
    Ok(())
}

macro_rules! worker_columns {
    () => {
        "SELECT id, name, namespace, principal, kind, slots, sdk, tools, lease_key, registered_at_ms, last_seen_at_ms, \
         silent_at_ms, draining, gone_at_ms FROM workers"
    };
}

const ONE: &str = concat!(worker_columns!(), " WHERE id = ?1");
const ALL: &str = concat!(worker_columns!(), " ORDER BY id");
const CHANGES: &str = "SELECT count FROM worker_changes WHERE id = 1";

/// The number of the newest change.
pub(super) fn changes(connection: &Connection) -> Sql<i64> {
    Ok(connection.prepare_cached(CHANGES)?.query_row([], |row| row.get(0))?)
}

/// Every worker, by id.
pub(super) fn all(connection: &Connection) -> Sql<Vec<WorkerRow>> {
    let mut statement = connection.prepare_cached(ALL)?;
    let rows = statement.query_map([], |row| Ok(read(row)))?.collect::<rusqlite::Result<Vec<_>>>()?;
    rows.into_iter().collect()
}

fn read(row: &Row<'_>) -> Sql<WorkerRow> {
    let id: ProcessId = row.get::<_, Id<_>>(0)?.0;
    let mut lease_key = [0; 32];
    hex::decode_to_slice(row.get::<_, String>(8)?, &mut lease_key)
        .map_err(|_| Fault::damaged(format!("worker {id} has no readable key")))?;
    let kind: String = row.get(4)?;
    Ok(WorkerRow {
        id,
        name: row.get(1)?,
        namespace: row.get(2)?,
        principal: row.get(3)?,
        kind: WorkerKind::parse(&kind).ok_or_else(|| Fault::damaged(format!("worker {id} is of no known kind")))?,
        slots: row.get(5)?,
        sdk: row.get(6)?,
        tools: row.get::<_, String>(7)?.into(),
        lease_key: LeaseKey(lease_key),
        registered_at_ms: row.get(9)?,
        last_seen_at_ms: row.get(10)?,
        silent_at_ms: row.get(11)?,
        draining: row.get(12)?,
        gone_at_ms: row.get(13)?,
    })
}

const REMOTE: &str = "SELECT id, gone_at_ms IS NULL AND silent_at_ms > ?1, gone_at_ms IS NULL FROM workers \
    WHERE kind = 'remote'";

/// Remote workers as far as leases are concerned.
pub(super) struct Remote {
    pub(super) id: ProcessId,
    /// Something was heard of it lately.
    pub(super) lives: bool,
    /// Nobody has noted that it is gone.
    pub(super) present: bool,
}

/// Every remote worker with whether it lives.
pub(super) fn remote(connection: &Connection, now_ms: i64) -> Sql<Vec<Remote>> {
    let mut statement = connection.prepare_cached(REMOTE)?;
    let rows = statement.query_map([now_ms], |row| {
        Ok(Remote { id: row.get::<_, Id<ProcessId>>(0)?.0, lives: row.get(1)?, present: row.get(2)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

const STEP: &str = "SELECT result FROM steps WHERE execution_id = ?1 AND name = ?2";

const COUNT_STEPS: &str = "SELECT count(*) FROM steps WHERE execution_id = ?1";

const PUT_STEP: &str = "INSERT INTO steps (execution_id, name, result, fencing_token, at_ms) \
    VALUES (?1, ?2, ?3, ?4, ?5)";

const PUT_CHECKPOINT: &str = "INSERT INTO checkpoints (execution_id, body, fencing_token, at_ms) \
    VALUES (?1, ?2, ?3, ?4) ON CONFLICT (execution_id) DO UPDATE SET body = excluded.body, \
    fencing_token = excluded.fencing_token, at_ms = excluded.at_ms";

/// Keeps something for later attempts, when the lease is held.
pub(super) fn keep(tx: &mut Tx<'_>, keep: &Keep) -> Sql<KeepOutcome> {
    let LeaseRef { id, fencing_token } = keep.lease;
    let Some(entry) = tx.entry(id)? else { return Ok(KeepOutcome::Refused(Answer::Stale)) };
    let held = asking::held(&entry.head, keep.lease, keep.now_ms, &tx.settings.limits);
    tx.keep(entry);
    if held != Answer::Extended {
        return Ok(KeepOutcome::Refused(held));
    }
    let (connection, execution) = (tx.connection, IdText::execution(id));
    match &keep.what {
        Kept::Step { name, result, steps_max } => {
            let earlier = connection.prepare_cached(STEP)?.query_row(params![execution, name], |row| row.get(0));
            if let Some(earlier) = earlier.optional()? {
                let earlier: String = earlier;
                return Ok(KeepOutcome::Earlier(earlier.into()));
            }
            let count: i64 = connection.prepare_cached(COUNT_STEPS)?.query_row([&execution], |row| row.get(0))?;
            if count >= *steps_max as i64 {
                return Ok(KeepOutcome::Full);
            }
            let values = params![execution, name, &**result, fencing_token, keep.now_ms];
            connection.prepare_cached(PUT_STEP)?.execute(values)?;
        }
        Kept::Checkpoint(body) => {
            let values = params![execution, &**body, fencing_token, keep.now_ms];
            connection.prepare_cached(PUT_CHECKPOINT)?.execute(values)?;
        }
    }
    Ok(KeepOutcome::Stored)
}

const STEPS: &str = "SELECT name, result FROM steps WHERE execution_id = ?1 ORDER BY at_ms, name";

const CHECKPOINT: &str = "SELECT body FROM checkpoints WHERE execution_id = ?1";

/// What the attempts of an execution have kept.
pub(super) fn progressed(connection: &Connection, id: ExecutionId) -> Sql<Progressed> {
    let id = IdText::execution(id);
    let mut statement = connection.prepare_cached(STEPS)?;
    let steps = statement.query_map([&id], |row| Ok((row.get(0)?, row.get::<_, String>(1)?.into())))?;
    let steps: Vec<(String, Payload)> = steps.collect::<rusqlite::Result<_>>()?;
    let checkpoint = connection.prepare_cached(CHECKPOINT)?.query_row([&id], |row| row.get::<_, String>(0));
    Ok(Progressed { steps, checkpoint: checkpoint.optional()?.map(Into::into) })
}

const DELETE_STEPS: &str = "DELETE FROM steps WHERE execution_id = ?1";

const DELETE_CHECKPOINT: &str = "DELETE FROM checkpoints WHERE execution_id = ?1";

/// Forgets what the attempts of an execution have kept.
pub(super) fn forget_progress(connection: &Connection, id: ExecutionId) -> Sql<()> {
    for sql in [DELETE_STEPS, DELETE_CHECKPOINT] {
        connection.prepare_cached(sql)?.execute([IdText::execution(id)])?;
    }
    Ok(())
}

const DELETE_GONE: &str = "DELETE FROM workers WHERE gone_at_ms <= ?1";

/// Forgets workers that were gone by `until_ms`.
pub(super) fn prune(connection: &Connection, until_ms: i64) -> Sql<()> {
    if connection.prepare_cached(DELETE_GONE)?.execute([until_ms])? > 0 {
        count_change(connection)?;
    }
    Ok(())
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    SEEN,
    DRAIN,
    END,
    BURY,
    ONE,
    STEP,
    COUNT_STEPS,
    PUT_CHECKPOINT,
    STEPS,
    CHECKPOINT,
    DELETE_STEPS,
    DELETE_CHECKPOINT,
];

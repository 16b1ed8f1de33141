//! The execution as a row: its shard, its columns, and reading it. Writing rows is in `write.rs`.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use super::db::Reading;
use super::fault::{Fault, Sql};
use super::policies::PolicyReader;
use crate::model::execution::{ErrorInfo, Head, Identification, Lease, State};
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::encoding::{effect_of, source_of};

/// Into so many parts the tables of executions are cut: a primary key that begins with the time would make one place
/// hot where rows are spread by key.
pub(super) const SHARDS: i64 = 16;

/// The part that an execution is in.
pub(super) fn shard(id: ExecutionId) -> i64 {
    i64::from(id.as_uuid().as_bytes()[15]) % SHARDS
}

/// The same in SQL, of an expression that gives an id: its last hexadecimal digit.
macro_rules! shard_of {
    ($id:literal) => {
        concat!("(strpos('0123456789abcdef', right(", $id, "::text, 1)) - 1)::bigint")
    };
}
pub(super) use shard_of;

/// The columns [`head`] reads, of a table called `e`.
macro_rules! head_columns {
    () => {
        "e.id, e.namespace, e.upstream, e.tool, e.key, e.principal, e.caller, e.arguments_hash, e.policy_id, \
         e.effect_key, e.retry_of, e.bound_to, e.start_by_ms, e.state, e.attempt, e.attempts_allowed, \
         e.fencing_token, e.lease_worker, e.lease_process, e.lease_expires_at_ms, e.effect_possible, e.continues, \
         e.run_at_ms, e.created_at_ms, e.updated_at_ms, e.ended_at_ms, e.next_seq, e.is_error, e.source, \
         e.error_code, e.error_message, e.effect, e.notes, e.version, e.waiter, e.delivered_at_ms, e.handle_given, \
         e.waited_ms, e.waiting_since_ms"
    };
}
pub(super) use head_columns;

/// The number of columns in [`head_columns`]: what a statement selects behind them starts here.
pub(super) const HEAD_COLUMNS: usize = 39;

/// Reads a row selected by [`head_columns`].
pub(super) async fn head(policies: PolicyReader<'_>, row: &Row) -> Sql<Head> {
    let policy = policies.read(row.try_get(8)?).await?;
    let id = execution(row, 0)?;
    let ident = Identification {
        id,
        namespace: row.try_get(1)?,
        upstream: row.try_get(2)?,
        tool: row.try_get(3)?,
        key: row.try_get(4)?,
        principal: row.try_get(5)?,
        caller: row.try_get(6)?,
        arguments_hash: row.try_get(7)?,
        policy,
        effect_key: optional(row, 9)?.map_or(id, ExecutionId::from_uuid),
        retry_of: optional(row, 10)?.map(ExecutionId::from_uuid),
        bound_to: optional(row, 11)?.map(ProcessId::from_uuid),
        start_by_ms: row.try_get(12)?,
    };
    let lease = match optional(row, 17)? {
        Some(worker) => {
            Some(Lease { worker, process: ProcessId::from_uuid(row.try_get(18)?), expires_at_ms: row.try_get(19)? })
        }
        None => None,
    };
    let error = match optional(row, 29)? {
        Some(code) => Some(ErrorInfo { code, message: row.try_get(30)? }),
        None => None,
    };
    Ok(Head {
        ident,
        state: named(row, 13, id, State::parse)?
            .ok_or_else(|| Fault::damaged(format!("execution {id} has no state")))?,
        attempt: count(row, 14)?,
        attempts_allowed: count(row, 15)?,
        fencing_token: row.try_get(16)?,
        lease,
        effect_possible: row.try_get(20)?,
        continues: row.try_get(21)?,
        run_at_ms: row.try_get(22)?,
        created_at_ms: row.try_get(23)?,
        updated_at_ms: row.try_get(24)?,
        ended_at_ms: row.try_get(25)?,
        next_seq: row.try_get(26)?,
        is_error: row.try_get(27)?,
        source: named(row, 28, id, source_of)?,
        error,
        effect: named(row, 31, id, effect_of)?,
        notes: count(row, 32)?,
        version: row.try_get(33)?,
        waiter: optional(row, 34)?.map(ProcessId::from_uuid),
        delivered_at_ms: row.try_get(35)?,
        handle_given: row.try_get(36)?,
        waited_ms: row.try_get(37)?,
        waiting_since_ms: row.try_get(38)?,
    })
}

/// Reads rows selected by [`head_columns`].
pub(super) async fn heads(reading: &Reading<'_>, rows: &[Row]) -> Sql<Vec<Head>> {
    let mut heads = Vec::with_capacity(rows.len());
    for row in rows {
        heads.push(head(reading.policies(), row).await?);
    }
    Ok(heads)
}

/// The execution's id in a column.
pub(super) fn execution(row: &Row, column: usize) -> Sql<ExecutionId> {
    Ok(ExecutionId::from_uuid(row.try_get::<_, Uuid>(column)?))
}

/// A number that is never negative, from a column.
pub(super) fn count(row: &Row, column: usize) -> Sql<u32> {
    let number: i64 = row.try_get(column)?;
    u32::try_from(number).map_err(|_| Fault::damaged(format!("column {column} holds {number}")))
}

fn optional<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Sql<Option<T>> {
    Ok(row.try_get(column)?)
}

fn named<T>(row: &Row, column: usize, id: ExecutionId, parse: fn(&str) -> Option<T>) -> Sql<Option<T>> {
    let Some(name) = optional::<&str>(row, column)? else { return Ok(None) };
    let unknown = || Fault::damaged(format!("execution {id} holds an unknown name in column {column}"));
    parse(name).map(Some).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_in_one_of_sixteen_parts_by_its_last_byte() {
        let mut seen = std::collections::BTreeSet::new();
        for low in 0..64 {
            let id = ExecutionId::from_u64_pair(7, low);
            assert_eq!(shard(id), (low % 16) as i64);
            seen.insert(shard(id));
        }
        assert_eq!(seen.len() as i64, SHARDS);
    }

    #[test]
    fn the_columns_are_counted() {
        assert_eq!(head_columns!().split(", ").count(), HEAD_COLUMNS);
    }
}

//! Rows of executions: as they are decided on, with the operations that made their events, and as they are shown.

use std::collections::HashMap;

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::db::{Db, Reading, Tx};
use super::fault::Sql;
use super::rows::{self, HEAD_COLUMNS, head_columns, shard, shard_of};
use crate::model::execution::Head;
use crate::model::id::{ExecutionId, OperationId};
use crate::store::deciding::Entry;
use crate::store::{KeyScope, Result};

/// One snapshot for the row and its operations: a row older than an operation known would be answered as if the
/// operation had changed nothing.
macro_rules! entry_columns {
    () => {
        concat!(
            rows::head_columns!(),
            ", ARRAY(SELECT DISTINCT v.operation FROM execution_events v \
             WHERE v.shard = e.shard AND v.execution_id = e.id)"
        )
    };
}

/// Reads a row selected by [`entry_columns`].
pub(super) async fn entry_of(reading: &Reading<'_>, row: &Row) -> Sql<Entry> {
    let operations: Vec<Uuid> = row.try_get(HEAD_COLUMNS)?;
    let head = rows::head(reading.policies(), row).await?;
    Ok(Entry { head, operations: operations.into_iter().map(OperationId::from_uuid).collect() })
}

const ENTRIES: &str = concat!(
    "SELECT ",
    entry_columns!(),
    " FROM executions e JOIN unnest($1::bigint[], $2::uuid[]) AS g (shard, id) ON e.shard = g.shard AND e.id = g.id"
);

/// The rows of `ids` as they stand, with their operations; missing ones are left out.
pub(super) async fn entries(reading: &Reading<'_>, ids: &[ExecutionId]) -> Sql<Vec<Entry>> {
    let (shards, ids) = keys(ids);
    let found = reading.query(ENTRIES, &[(&shards, Type::INT8_ARRAY), (&ids, Type::UUID_ARRAY)]).await?;
    let mut entries = Vec::with_capacity(found.len());
    for row in &found {
        entries.push(entry_of(reading, row).await?);
    }
    Ok(entries)
}

const ENTRY: &str = concat!("SELECT ", entry_columns!(), " FROM executions e WHERE e.shard = $1 AND e.id = $2");

/// The row of `id` as it stands, with its operations.
pub(super) async fn entry(tx: &Tx<'_>, id: ExecutionId) -> Sql<Option<Entry>> {
    let found = tx.query_opt(ENTRY, &[(&shard(id), Type::INT8), (id.as_uuid(), Type::UUID)]).await?;
    match found {
        Some(row) => entry_of(tx, &row).await.map(Some),
        None => Ok(None),
    }
}

const HEADS: &str = concat!(
    "SELECT ",
    head_columns!(),
    " FROM executions e JOIN unnest($1::bigint[], $2::uuid[]) AS g (shard, id) ON e.shard = g.shard AND e.id = g.id"
);

/// Rows by id, in the order of `ids`; missing ones are left out.
pub(super) async fn heads(db: &Db, ids: &[ExecutionId]) -> Result<Vec<Head>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (shards, uuids) = keys(ids);
    let (shards, uuids) = (&shards, &uuids);
    let mut heads = db
        .read(move |reading| {
            Box::pin(async move {
                let found = reading.query(HEADS, &[(shards, Type::INT8_ARRAY), (uuids, Type::UUID_ARRAY)]).await?;
                rows::heads(reading, &found).await
            })
        })
        .await?;
    let places: HashMap<ExecutionId, usize> = ids.iter().enumerate().map(|(place, id)| (*id, place)).collect();
    heads.sort_by_key(|head| places.get(&head.id()).copied());
    Ok(heads)
}

const BY_KEY: &str = concat!(
    "SELECT ",
    head_columns!(),
    " FROM idempotency_keys k JOIN executions e ON e.shard = ",
    shard_of!("k.execution_id"),
    " AND e.id = k.execution_id \
     WHERE k.namespace = $1 AND k.upstream = $2 AND k.tool = $3 AND k.key = $4"
);

/// The execution that holds a key.
pub(super) async fn by_key(db: &Db, scope: &KeyScope) -> Result<Option<Head>> {
    db.read(move |reading| {
        Box::pin(async move {
            let params: &[super::db::Param<'_>] = &[
                (&scope.namespace, Type::TEXT),
                (&scope.upstream, Type::TEXT),
                (&scope.tool, Type::TEXT),
                (&scope.key, Type::TEXT),
            ];
            match reading.query_opt(BY_KEY, params).await? {
                Some(row) => rows::head(reading.policies(), &row).await.map(Some),
                None => Ok(None),
            }
        })
    })
    .await
}

/// Shards and ids, as columns.
pub(super) fn keys(ids: &[ExecutionId]) -> (Vec<i64>, Vec<Uuid>) {
    ids.iter().map(|id| (shard(*id), *id.as_uuid())).unzip()
}

/// What the test of statements reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[ENTRIES, ENTRY, HEADS, BY_KEY];

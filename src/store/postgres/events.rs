//! The append-only log: reading it. Events are written with the rows they belong to, in `write.rs`.

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::db::{Db, Reading};
use super::fault::{Fault, Sql};
use super::rows::shard;
use crate::model::decide::Answer;
use crate::model::event::{Event, EventRecord};
use crate::model::id::{ExecutionId, OperationId};
use crate::store::{Result, deciding, encoding};

const AFTER: &str = "SELECT seq, at_ms, type, body, operation FROM execution_events \
    WHERE shard = $1 AND execution_id = $2 AND seq > $3 ORDER BY seq LIMIT $4";

/// Events with `seq > after`, in order, at most `limit`.
pub(super) async fn events(db: &Db, id: ExecutionId, after: i64, limit: usize) -> Result<Vec<EventRecord>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.read(move |reading| {
        Box::pin(async move {
            let params: &[super::db::Param<'_>] =
                &[(&shard(id), Type::INT8), (id.as_uuid(), Type::UUID), (&after, Type::INT8), (&limit, Type::INT8)];
            reading.query(AFTER, params).await?.iter().map(|row| record(id, row, 0)).collect()
        })
    })
    .await
}

/// An event whose columns begin at `first`.
pub(super) fn record(id: ExecutionId, row: &Row, first: usize) -> Sql<EventRecord> {
    let seq: i64 = row.try_get(first)?;
    Ok(EventRecord {
        seq,
        at_ms: row.try_get(first + 1)?,
        operation: OperationId::from_uuid(row.try_get::<_, Uuid>(first + 4)?),
        event: event(id, seq, row.try_get(first + 2)?, row.try_get(first + 3)?)?,
    })
}

fn event(id: ExecutionId, seq: i64, name: &str, body: &str) -> Sql<Event> {
    encoding::event(name, body).map_err(|error| Fault::damaged(format!("event {seq} of execution {id}: {error}")))
}

const LAST_OF: &str = "SELECT seq, type, body FROM execution_events \
    WHERE shard = $1 AND execution_id = $2 AND operation = $3 ORDER BY seq DESC LIMIT 1";

/// What was answered to an operation that is among the events already.
pub(super) async fn answer_of(reading: &Reading<'_>, id: ExecutionId, operation: OperationId) -> Sql<Answer> {
    let params: &[super::db::Param<'_>] =
        &[(&shard(id), Type::INT8), (id.as_uuid(), Type::UUID), (operation.as_uuid(), Type::UUID)];
    match reading.query_opt(LAST_OF, params).await? {
        Some(row) => Ok(deciding::answer_of(&event(id, row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)?)),
        None => Err(Fault::internal(format!("operation {operation} left no event in execution {id}"))),
    }
}

/// What the test of statements reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[AFTER, LAST_OF];

//! The append-only log: writing and reading events. The type is a column of its own; the body holds the other members.

use rusqlite::{Connection, params};
use uuid::Uuid;

use super::fault::{Fault, Sql};
use super::rows::IdText;
use crate::model::event::EventRecord;
use crate::model::id::{ExecutionId, OperationId};
use crate::store::encoding;

const INSERT: &str = "INSERT INTO execution_events (execution_id, seq, at_ms, type, body, operation) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Appends one event.
pub(super) fn insert(connection: &Connection, id: ExecutionId, record: &EventRecord) -> Sql<()> {
    connection.prepare_cached(INSERT)?.execute(params![
        IdText::execution(id),
        record.seq,
        record.at_ms,
        record.event.name(),
        encoding::event_body(&record.event).map_err(Fault::internal)?,
        record.operation.as_uuid().as_bytes(),
    ])?;
    Ok(())
}

const SELECT: &str = "SELECT seq, at_ms, type, body, operation FROM execution_events \
    WHERE execution_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";

/// Events with `seq > after`, in order, at most `limit`.
pub(super) fn after(connection: &Connection, id: ExecutionId, after: i64, limit: usize) -> Sql<Vec<EventRecord>> {
    let mut statement = connection.prepare_cached(SELECT)?;
    let mut rows = statement.query(params![IdText::execution(id), after, limit as i64])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, body): (String, String) = (row.get(2)?, row.get(3)?);
        let seq: i64 = row.get(0)?;
        let broken = |error: &dyn std::fmt::Display| Fault::damaged(format!("event {seq} of execution {id}: {error}"));
        records.push(EventRecord {
            seq,
            at_ms: row.get(1)?,
            operation: operation(&row.get::<_, [u8; 16]>(4)?)?,
            event: encoding::event(&name, &body).map_err(|error| broken(&error))?,
        });
    }
    Ok(records)
}

const OPERATIONS: &str = "SELECT DISTINCT operation FROM execution_events WHERE execution_id = ?1";

/// The operations that made the events of `id`.
pub(super) fn operations(connection: &Connection, id: ExecutionId) -> Sql<Vec<OperationId>> {
    let mut statement = connection.prepare_cached(OPERATIONS)?;
    let mut rows = statement.query([IdText::execution(id)])?;
    let mut operations = Vec::new();
    while let Some(row) = rows.next()? {
        operations.push(operation(&row.get::<_, [u8; 16]>(0)?)?);
    }
    Ok(operations)
}

fn operation(bytes: &[u8; 16]) -> Sql<OperationId> {
    Ok(OperationId::from_uuid(Uuid::from_bytes(*bytes)))
}

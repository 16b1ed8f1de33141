//! The append-only log: writing and reading events. The type is a column of its own; the body holds the other members.

use rusqlite::{Connection, params};
use uuid::Uuid;

use super::fault::{Fault, Sql};
use super::rows::IdText;
use crate::model::event::{Event, EventRecord};
use crate::model::id::{ExecutionId, OperationId};

const INSERT: &str = "INSERT INTO execution_events (execution_id, seq, at_ms, type, body, operation) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Appends one event.
pub(super) fn insert(connection: &Connection, id: ExecutionId, record: &EventRecord) -> Sql<()> {
    connection.prepare_cached(INSERT)?.execute(params![
        IdText::execution(id),
        record.seq,
        record.at_ms,
        record.event.name(),
        body(&record.event)?,
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
            event: event(&name, &body).map_err(|error| broken(&error))?,
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
    Uuid::from_bytes(*bytes).to_string().parse().map_err(|_| Fault::damaged("an operation is no UUID"))
}

/// The event without its type, as JSON. The type is serde's tag, which is always written first.
pub(super) fn body(event: &Event) -> Sql<String> {
    let text = serde_json::to_string(event).map_err(|error| Fault::internal(format!("event: {error}")))?;
    let tag = TAG.len() + event.name().len();
    match text.as_bytes().get(tag + 1) {
        Some(b',') => Ok(format!("{{{}", &text[tag + 2..])),
        Some(b'}') => Ok("{}".into()),
        _ => Err(Fault::internal(format!("event {} does not begin with its type", event.name()))),
    }
}

const TAG: &str = "{\"type\":\"";

/// The event of a type and a body.
pub(super) fn event(name: &str, body: &str) -> serde_json::Result<Event> {
    let members = body.strip_prefix('{').unwrap_or(body);
    let comma = if members == "}" { "" } else { "," };
    serde_json::from_str(&format!("{TAG}{name}\"{comma}{members}"))
}

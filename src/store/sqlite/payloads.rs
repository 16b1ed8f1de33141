//! Payloads: exact JSON texts, stored in pieces, so that no row is larger than its limit. Looks into none of them.

use rusqlite::{Connection, params};

use super::fault::{Fault, Sql};
use super::rows::IdText;
use crate::model::id::ExecutionId;
use crate::store::encoding::pieces;
use crate::store::{Payload, PayloadKind};

const INSERT: &str = "INSERT INTO payloads (execution_id, kind, chunk, body) VALUES (?1, ?2, ?3, ?4)";

/// Stores a payload of `id` in pieces of at most `chunk_bytes`.
pub(super) fn insert(
    connection: &Connection,
    id: ExecutionId,
    (kind, text): (PayloadKind, &str),
    chunk_bytes: usize,
) -> Sql<()> {
    let mut statement = connection.prepare_cached(INSERT)?;
    let id = IdText::execution(id);
    for (chunk, piece) in pieces(text, chunk_bytes).enumerate() {
        statement.execute(params![id, kind.as_str(), chunk as i64, piece])?;
    }
    Ok(())
}

const SELECT: &str = "SELECT chunk, body FROM payloads WHERE execution_id = ?1 AND kind = ?2 ORDER BY chunk";

const LAST: &str = "SELECT max(chunk) FROM payloads WHERE execution_id = ?1 AND kind = ?2";

/// A payload of `id`.
pub(super) fn read(connection: &Connection, id: ExecutionId, kind: PayloadKind) -> Sql<Option<Payload>> {
    let mut statement = connection.prepare_cached(SELECT)?;
    let mut rows = statement.query(params![IdText::execution(id), kind.as_str()])?;
    let mut text: Option<String> = None;
    let mut expected = 0;
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(0)? != expected {
            return Err(Fault::damaged(format!(
                "piece {expected} of the {} of execution {id} is missing",
                kind.as_str()
            )));
        }
        expected += 1;
        match &mut text {
            None => text = Some(row.get(1)?),
            Some(text) => {
                if expected == 2 {
                    // What is put together is there once: a text that grows would be moved, and there twice meanwhile. No
                    // piece is longer than the first but for a character.
                    let values = params![IdText::execution(id), kind.as_str()];
                    let last: i64 = connection.prepare_cached(LAST)?.query_row(values, |row| row.get(0))?;
                    let _ = text.try_reserve_exact(last.max(0) as usize * (text.len() + 4));
                }
                let value = row.get_ref(1)?;
                text.push_str(value.as_str().map_err(|_| Fault::damaged(format!("a payload of execution {id}")))?);
            }
        }
    }
    Ok(text.map(Payload::from))
}

//! Payloads: exact JSON texts, a short one under its key, others in pieces, so that no row is larger than its limit. Looks
//! into none of them.

use rusqlite::{Connection, Row, ToSql, params};

use super::fault::{Fault, Sql};
use super::rows::IdText;
use crate::model::id::ExecutionId;
use crate::store::encoding::pieces;
use crate::store::{Payload, PayloadKind};

/// What is longer would not fit into the page of its key with three others, and SQLite would copy it to compare its key.
const SHORT_BYTES: usize = 900;

const INSERT_SHORT: &str = "INSERT INTO short_payloads (execution_id, kind, body) VALUES (?1, ?2, ?3)";

const INSERT: &str = "INSERT INTO payload_pieces (execution_id, kind, chunk, body) VALUES (?1, ?2, ?3, ?4)";

/// Stores a payload of `id` in pieces of at most `chunk_bytes`.
pub(super) fn insert(
    connection: &Connection,
    id: ExecutionId,
    (kind, text): (PayloadKind, &str),
    chunk_bytes: usize,
) -> Sql<()> {
    let id = IdText::execution(id);
    for (chunk, piece) in pieces(text, chunk_bytes).enumerate() {
        insert_piece(connection, (&id, kind.as_str()), chunk as i64, piece)?;
    }
    Ok(())
}

/// Stores a piece of the payload of that id and kind where it belongs.
pub(super) fn insert_piece(
    connection: &Connection,
    (id, kind): (&dyn ToSql, &str),
    chunk: i64,
    piece: &str,
) -> rusqlite::Result<usize> {
    match chunk == 0 && piece.len() <= SHORT_BYTES {
        true => connection.prepare_cached(INSERT_SHORT)?.execute(params![id, kind, piece]),
        false => connection.prepare_cached(INSERT)?.execute(params![id, kind, chunk, piece]),
    }
}

const SHORT: &str = "SELECT 0, body FROM short_payloads WHERE execution_id = ?1 AND kind = ?2";

const PIECES: &str = "SELECT chunk, body FROM payload_pieces WHERE execution_id = ?1 AND kind = ?2 ORDER BY chunk";

const LAST: &str = "SELECT max(chunk) FROM payload_pieces WHERE execution_id = ?1 AND kind = ?2";

/// A payload of `id`.
pub(super) fn read(connection: &Connection, id: ExecutionId, kind: PayloadKind) -> Sql<Option<Payload>> {
    let mut text: Option<String> = None;
    each_piece(connection, id, kind, |number, piece| {
        let Some(text) = &mut text else {
            text = Some(piece.to_owned());
            return Ok(());
        };
        if number == 1 {
            // What is put together is there once: a text that grows would be moved, and there twice meanwhile. No piece is
            // longer than the first but for a character.
            let values = params![IdText::execution(id), kind.as_str()];
            let last: i64 = connection.prepare_cached(LAST)?.query_row(values, |row| row.get(0))?;
            let _ = text.try_reserve_exact(last.max(0) as usize * (text.len() + 4));
        }
        text.push_str(piece);
        Ok(())
    })?;
    Ok(text.map(Payload::from))
}

/// Goes through the pieces of a payload of `id` in their order; none where there is no such payload.
pub(super) fn each_piece(
    connection: &Connection,
    id: ExecutionId,
    kind: PayloadKind,
    mut with: impl FnMut(i64, &str) -> Sql<()>,
) -> Sql<()> {
    let no_text = || Fault::damaged(format!("the {} of execution {id} is no text", kind.as_str()));
    let mut number = 0;
    let mut take = |row: &Row<'_>| -> Sql<()> {
        if row.get::<_, i64>(0)? != number {
            return Err(Fault::damaged(format!(
                "piece {number} of the {} of execution {id} is missing",
                kind.as_str()
            )));
        }
        with(number, row.get_ref(1)?.as_str().map_err(|_| no_text())?)?;
        number += 1;
        Ok(())
    };
    for sql in [SHORT, PIECES] {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![IdText::execution(id), kind.as_str()])?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
    }
    Ok(())
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[SHORT, PIECES, LAST];

//! Pieces of payloads, one by one.

use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};

use super::SqliteStore;
use super::rows::IdText;
use crate::model::id::ExecutionId;
use crate::store::piece::{Piece, PieceStore};
use crate::store::{PayloadKind, Result};

const PIECE: &str = "SELECT body, coalesce(\
        (SELECT max(chunk) + 1 FROM payload_pieces WHERE execution_id = ?1 AND kind = ?2), 1) \
    FROM (SELECT body FROM short_payloads WHERE execution_id = ?1 AND kind = ?2 AND ?3 = 0 UNION ALL \
        SELECT body FROM payload_pieces WHERE execution_id = ?1 AND kind = ?2 AND chunk = ?3)";

#[async_trait]
impl PieceStore for SqliteStore {
    async fn payload_piece(&self, id: ExecutionId, kind: PayloadKind, number: u32) -> Result<Option<Piece>> {
        self.list(move |read| {
            let mut statement = read.connection.prepare_cached(PIECE)?;
            let values = params![IdText::execution(id), kind.as_str(), number];
            let piece = statement.query_row(values, |row| Ok(Piece { text: row.get(0)?, pieces: row.get(1)? }));
            Ok(piece.optional()?)
        })
        .await
    }
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[PIECE];

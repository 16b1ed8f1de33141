//! Pieces of payloads, one by one.

use async_trait::async_trait;

use super::PostgresStore;
use super::bind::{int, text, uuid};
use super::db::Reading;
use super::fault::Sql;
use super::rows::{self, shard};
use crate::model::id::ExecutionId;
use crate::store::piece::{Piece, PieceStore};
use crate::store::{PayloadKind, Result};

const PIECE: &str = "SELECT body, \
    (SELECT max(chunk) + 1 FROM payloads WHERE shard = $1 AND execution_id = $2 AND kind = $3) \
    FROM payloads WHERE shard = $1 AND execution_id = $2 AND kind = $3 AND chunk = $4";

#[async_trait]
impl PieceStore for PostgresStore {
    async fn payload_piece(&self, id: ExecutionId, kind: PayloadKind, number: u32) -> Result<Option<Piece>> {
        self.db.read(move |reading| Box::pin(piece(reading, id, kind, number))).await
    }
}

/// One piece of a payload of `id`; `None` where there is none of that number.
pub(super) async fn piece(
    reading: &Reading<'_>,
    id: ExecutionId,
    kind: PayloadKind,
    number: u32,
) -> Sql<Option<Piece>> {
    let (shard, kind, number) = (shard(id), kind.as_str(), i64::from(number));
    let values = [int(&shard), uuid(id.as_uuid()), text(&kind), int(&number)];
    let Some(row) = reading.query_opt(PIECE, &values).await? else { return Ok(None) };
    Ok(Some(Piece { text: row.try_get(0)?, pieces: rows::count(&row, 1)? }))
}

/// What the tests of query plans read, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[(PIECE, "bigint, uuid, text, bigint")];

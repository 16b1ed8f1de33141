//! Payloads: exact JSON texts in pieces, put together again. The first piece of each is written with the row it belongs to,
//! in `write.rs`; the others after it, in the same transaction.

use tokio_postgres::types::Type;

use super::bind::{int, text, uuid};
use super::columns::Written;
use super::db::{Db, Tx};
use super::fault::{Fault, Sql};
use super::rows::shard;
use crate::model::id::ExecutionId;
use crate::store::{Payload, PayloadKind, Result};

const PIECES: &str =
    "SELECT chunk, body FROM payloads WHERE shard = $1 AND execution_id = $2 AND kind = $3 ORDER BY chunk";

const INSERT: &str = "INSERT INTO payloads (shard, execution_id, kind, chunk, body) VALUES ($1, $2, $3, $4, $5)";

/// Stores what of the payloads of `id` did not go with its row, which this transaction has struck.
pub(super) async fn insert_further(tx: &Tx<'_>, id: ExecutionId, written: &Written) -> Sql<()> {
    let shard = shard(id);
    for (kind, chunk, piece) in written.further_pieces(tx.settings().payload_chunk_bytes) {
        let kind = kind.as_str();
        tx.execute(INSERT, &[int(&shard), uuid(id.as_uuid()), text(&kind), int(&chunk), text(&piece)]).await?;
    }
    Ok(())
}

/// A payload of `id`.
pub(super) async fn payload(db: &Db, id: ExecutionId, kind: PayloadKind) -> Result<Option<Payload>> {
    db.read(move |reading| {
        Box::pin(async move {
            let params: &[super::db::Param<'_>] =
                &[(&shard(id), Type::INT8), (id.as_uuid(), Type::UUID), (&kind.as_str(), Type::TEXT)];
            let found = reading.query(PIECES, params).await?;
            let mut text: Option<String> = None;
            for (expected, row) in (0_i64..).zip(&found) {
                if row.try_get::<_, i64>(0)? != expected {
                    let kind = kind.as_str();
                    return Err(Fault::damaged(format!("piece {expected} of the {kind} of execution {id} is missing")));
                }
                let piece: &str = row.try_get(1)?;
                text.get_or_insert_default().push_str(piece);
            }
            Ok(text.map(Payload::from))
        })
    })
    .await
}

/// What the test of statements reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[PIECES, INSERT];

//! Payloads: exact JSON texts in pieces, put together again. The first piece of each is written with the row it belongs to,
//! in `write.rs`; the others after it, in the same transaction.

use super::bind::{int, text, uuid};
use super::columns::Written;
use super::db::{Db, Tx};
use super::fault::{Fault, Sql};
use super::pieces;
use super::rows::shard;
use crate::model::id::ExecutionId;
use crate::store::piece::Piece;
use crate::store::{Payload, PayloadKind, Result};

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

/// A payload of `id`. It is read piece by piece, into a text of the right length: what is put together is in memory once,
/// with no more than a piece beside it.
pub(super) async fn payload(db: &Db, id: ExecutionId, kind: PayloadKind) -> Result<Option<Payload>> {
    db.read(move |reading| {
        Box::pin(async move {
            let piece = |number| pieces::piece(reading, id, kind, number);
            let missing = |number| {
                Fault::damaged(format!("piece {number} of the {} of execution {id} is missing", kind.as_str()))
            };
            let Some(Piece { mut text, pieces }) = piece(0).await? else {
                return if piece(1).await?.is_some() { Err(missing(0)) } else { Ok(None) };
            };
            // No piece is longer than the first but for a character.
            let _ = text.try_reserve_exact(pieces.saturating_sub(1) as usize * (text.len() + 4));
            for number in 1..pieces {
                match piece(number).await? {
                    Some(next) => text.push_str(&next.text),
                    // Retention took it meanwhile, and all of it.
                    None if piece(0).await?.is_none() => return Ok(None),
                    None => return Err(missing(number)),
                }
            }
            Ok(Some(Payload::from(text)))
        })
    })
    .await
}

/// What the test of statements reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT];

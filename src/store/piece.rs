//! Reading a payload piece by piece: what is too long to be looked at whole. Cuts nothing: pieces are as they were stored,
//! and put together they are the exact text.

use async_trait::async_trait;

use super::{PayloadKind, Result};
use crate::model::id::ExecutionId;

/// A piece of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its text, never cut inside a character.
    pub text: String,
    /// How many there are.
    pub pieces: u32,
}

/// The part of a driver that reads pieces.
#[async_trait]
pub trait PieceStore: Send + Sync {
    /// The piece of this number, from 0; `None` when there is none, or retention took it.
    async fn payload_piece(&self, id: ExecutionId, kind: PayloadKind, number: u32) -> Result<Option<Piece>>;
}

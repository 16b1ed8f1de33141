//! `requestState` of a call's `input_required` answer: what a client brings back, sealed, so that no other call can use it
//! (2026-07-28, basic/patterns/mrtr). Knows no store; the keys come from outside.

pub use super::sealing::{BadState, Bound, Sealer};
use crate::model::id::ExecutionId;
use crate::store::SealingKey;

#[cfg(test)]
mod tests;

const FIXED_BYTES: usize = 16 + 4;
/// Longer texts are none of ours.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// What a state says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestState {
    /// The execution that goes on.
    pub execution: ExecutionId,
    /// The round that was asked last.
    pub round: u32,
    /// When it is good no more, in milliseconds since the epoch.
    pub expires_at_ms: i64,
    /// The questions that were shown with it.
    pub numbers: Vec<u32>,
}

impl Sealer {
    /// The store's keys, the newest first.
    pub fn new(keys: &[SealingKey]) -> Sealer {
        Sealer::of(keys.iter().map(|key| (key.generation, &key.key)))
    }

    /// Seals a state. `None` without keys.
    pub fn seal(&self, state: &RequestState, bound: &Bound) -> Option<String> {
        let mut plain = Vec::with_capacity(FIXED_BYTES + 4 * state.numbers.len());
        plain.extend_from_slice(state.execution.as_uuid().as_bytes());
        plain.extend_from_slice(&state.round.to_be_bytes());
        for number in &state.numbers {
            plain.extend_from_slice(&number.to_be_bytes());
        }
        self.seal_bytes(bound, (&plain, state.expires_at_ms))
    }

    /// Opens what [`Sealer::seal`] wrote for the same principal and request.
    pub fn open(&self, text: &str, bound: &Bound, now_ms: i64) -> Result<RequestState, BadState> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(BadState::Invalid);
        }
        let (plain, expires_at_ms) = self.open_bytes(bound, text, now_ms)?;
        read(&plain, expires_at_ms).ok_or(BadState::Invalid)
    }
}

fn read(plain: &[u8], expires_at_ms: i64) -> Option<RequestState> {
    let (fixed, numbers) = plain.split_at_checked(FIXED_BYTES)?;
    if numbers.len() % 4 != 0 {
        return None;
    }
    let uuid = uuid::Uuid::from_slice(&fixed[..16]).ok()?;
    Some(RequestState {
        execution: uuid.to_string().parse().ok()?,
        round: u32::from_be_bytes(fixed[16..].try_into().ok()?),
        expires_at_ms,
        numbers: numbers.as_chunks::<4>().0.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect(),
    })
}

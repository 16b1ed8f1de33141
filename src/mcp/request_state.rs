//! `requestState` of an `input_required` answer: what a client brings back, sealed, so that nobody else can have written
//! it and no other call can use it (2026-07-28, basic/patterns/mrtr). Knows no store; the keys come from outside.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use crate::model::id::ExecutionId;
use crate::model::principal::Principal;
use crate::store::SealingKey;

#[cfg(test)]
mod tests;

const FORM: u8 = 1;
const HEAD_BYTES: usize = 1 + 8 + NONCE_LEN;
const FIXED_BYTES: usize = 16 + 4 + 8;
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

/// What a state is good for: one principal's repetition of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound([u8; 32]);

impl Bound {
    /// The request by its method, the name it calls, and the hash of its arguments.
    pub fn to(principal: &Principal, method: &str, (name, arguments_hash): (&str, &str)) -> Bound {
        let mut digest = Sha256::new();
        for part in [&principal.namespace, &principal.subject, method, name, arguments_hash] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        Bound(digest.finalize().into())
    }
}

/// Why a state is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadState {
    /// Not written here, or for another principal or request.
    #[error("requestState is not valid for this request")]
    Invalid,
    /// Sealed with a key that this process has not seen.
    #[error("requestState is not valid for this request")]
    UnknownKey,
    /// Its time is over.
    #[error("requestState has expired; call again without it")]
    Expired,
}

/// Seals with the newest key and opens with any.
pub struct Sealer(Vec<(i64, LessSafeKey)>);

impl Sealer {
    /// Keys, the newest first.
    pub fn new(keys: &[SealingKey]) -> Sealer {
        let key = |key: &SealingKey| {
            let unbound = UnboundKey::new(&CHACHA20_POLY1305, &key.key).expect("a key of 32 bytes fits");
            (key.generation, LessSafeKey::new(unbound))
        };
        Sealer(keys.iter().map(key).collect())
    }

    /// Seals a state. `None` without keys.
    pub fn seal(&self, state: &RequestState, bound: &Bound) -> Option<String> {
        let (generation, key) = self.0.first()?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).expect("the system's random generator works");
        let mut bytes = Vec::with_capacity(HEAD_BYTES + FIXED_BYTES + 4 * state.numbers.len() + 16);
        bytes.push(FORM);
        bytes.extend_from_slice(&generation.to_be_bytes());
        bytes.extend_from_slice(&nonce);
        let mut sealed = Vec::with_capacity(FIXED_BYTES + 4 * state.numbers.len() + 16);
        sealed.extend_from_slice(state.execution.as_uuid().as_bytes());
        sealed.extend_from_slice(&state.round.to_be_bytes());
        sealed.extend_from_slice(&state.expires_at_ms.to_be_bytes());
        for number in &state.numbers {
            sealed.extend_from_slice(&number.to_be_bytes());
        }
        let aad = Aad::from(bound.0);
        // Fails only for texts of gigabytes.
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed).ok()?;
        bytes.extend_from_slice(&sealed);
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Opens what [`Sealer::seal`] wrote for the same principal and request.
    pub fn open(&self, text: &str, bound: &Bound, now_ms: i64) -> Result<RequestState, BadState> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(BadState::Invalid);
        }
        // Strict: no padding, no loose bits, nothing behind.
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| BadState::Invalid)?;
        if bytes.len() <= HEAD_BYTES || bytes[0] != FORM {
            return Err(BadState::Invalid);
        }
        let (head, sealed) = bytes.split_at(HEAD_BYTES);
        let generation = i64::from_be_bytes(head[1..9].try_into().map_err(|_| BadState::Invalid)?);
        let nonce: [u8; NONCE_LEN] = head[9..].try_into().map_err(|_| BadState::Invalid)?;
        let (_, key) = self.0.iter().find(|(known, _)| *known == generation).ok_or(BadState::UnknownKey)?;
        let mut sealed = sealed.to_vec();
        let plain = key
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(bound.0), &mut sealed)
            .map_err(|_| BadState::Invalid)?;
        let state = read(plain).ok_or(BadState::Invalid)?;
        if state.expires_at_ms <= now_ms { Err(BadState::Expired) } else { Ok(state) }
    }
}

fn read(plain: &[u8]) -> Option<RequestState> {
    let (fixed, numbers) = plain.split_at_checked(FIXED_BYTES)?;
    if numbers.len() % 4 != 0 {
        return None;
    }
    let uuid = uuid::Uuid::from_slice(&fixed[..16]).ok()?;
    Some(RequestState {
        execution: uuid.to_string().parse().ok()?,
        round: u32::from_be_bytes(fixed[16..20].try_into().ok()?),
        expires_at_ms: i64::from_be_bytes(fixed[20..].try_into().ok()?),
        numbers: numbers.as_chunks::<4>().0.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect(),
    })
}

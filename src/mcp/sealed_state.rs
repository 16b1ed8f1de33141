//! The `requestState` of prompts and resources, which no execution stands behind (2026-07-28, multi round-trip requests):
//! what an upstream gave is sealed, bound to who was asked, for which request, and until when. Stores nothing, and does
//! not know what is inside. The states of calls are in `request_state`.

use std::sync::{PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use super::meta::Params;
use super::reject::{RpcError, code};

#[cfg(test)]
mod tests;

const FORM: u8 = 1;
const KEY_ID_BYTES: usize = 8;
const EXPIRY_BYTES: usize = 8;
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES + NONCE_LEN;
/// Longer texts are refused before they are decoded.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The bytes of a key.
pub const KEY_BYTES: usize = 32;

/// A state that was not sealed here, or for somebody or something else, or long ago; always -32602.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the requestState is not one that this server gave for this request, or it has expired")]
pub struct BadState;

impl BadState {
    pub fn rpc_error(&self) -> RpcError {
        RpcError::new(code::INVALID_PARAMS, self.to_string())
    }
}

/// What a state is bound to. Whoever hands it back has to be and to ask the same.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'b> {
    /// The namespace of the caller.
    pub namespace: &'b str,
    /// The subject of the caller.
    pub principal: &'b str,
    /// The method of the request.
    pub method: &'b str,
    /// What else must be the same, such as [`digest`] of the parameters.
    pub digest: &'b [u8],
}

impl Bound<'_> {
    /// Each part with its length, so that nothing moves from one to the next.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in [self.namespace.as_bytes(), self.principal.as_bytes(), self.method.as_bytes(), self.digest] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }
}

/// What makes a request the same in each of its rounds: its parameters but for those that a round adds, and for `_meta`.
pub fn digest(params: &Params<'_>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (name, value) in &params.members {
        if matches!(&**name, "_meta" | "inputResponses" | "requestState") {
            continue;
        }
        for part in [name.as_bytes(), value.get().as_bytes()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    hash.finalize().into()
}

struct Key {
    id: i64,
    key: LessSafeKey,
}

/// The keys that seal and open states. The first one seals, all of them open.
pub struct Keys(RwLock<Vec<Key>>);

impl Keys {
    /// One random key, until others are given: states are then good in this process only.
    pub fn random() -> Keys {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).expect("the system's random generator works");
        let keys = Keys(RwLock::default());
        keys.replace(&[(0, bytes)]);
        keys
    }

    /// Takes other keys, the sealing one first; no keys change nothing. Ids tell keys apart and are no secret.
    pub fn replace(&self, keys: &[(i64, [u8; KEY_BYTES])]) {
        if keys.is_empty() {
            return;
        }
        let keys = keys.iter().map(|(id, bytes)| {
            let key = UnboundKey::new(&CHACHA20_POLY1305, bytes).expect("the key has the algorithm's length");
            Key { id: *id, key: LessSafeKey::new(key) }
        });
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys.collect();
    }

    /// Seals `state` until `expires_at_ms`.
    pub fn seal(&self, bound: &Bound<'_>, state: &[u8], expires_at_ms: i64) -> String {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.first().expect("there is always a key that seals");
        // Random nonces of 96 bits collide after 2^48 states of one key; keys rotate long before.
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).expect("the system's random generator works");
        let mut sealed = Vec::with_capacity(EXPIRY_BYTES + state.len() + CHACHA20_POLY1305.tag_len());
        sealed.extend_from_slice(&expires_at_ms.to_be_bytes());
        sealed.extend_from_slice(state);
        key.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(bound.bytes()), &mut sealed)
            .expect("a state is shorter than the cipher's limit of 256 GiB");
        let mut bytes = Vec::with_capacity(HEAD_BYTES + sealed.len());
        bytes.push(FORM);
        bytes.extend_from_slice(&key.id.to_be_bytes());
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&sealed);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// What was sealed. Errors: [`BadState`].
    pub fn open(&self, bound: &Bound<'_>, text: &str, now_ms: i64) -> Result<Vec<u8>, BadState> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(BadState);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| BadState)?;
        if bytes.len() < HEAD_BYTES || bytes[0] != FORM {
            return Err(BadState);
        }
        let (head, sealed) = bytes.split_at(HEAD_BYTES);
        let id = head[1..1 + KEY_ID_BYTES].try_into().map(i64::from_be_bytes).map_err(|_| BadState)?;
        let nonce = Nonce::try_assume_unique_for_key(&head[1 + KEY_ID_BYTES..]).map_err(|_| BadState)?;
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.iter().find(|key| key.id == id).ok_or(BadState)?;
        let mut sealed = sealed.to_vec();
        let plain = key.key.open_in_place(nonce, Aad::from(bound.bytes()), &mut sealed).map_err(|_| BadState)?;
        let (expiry, state) = plain.split_first_chunk::<EXPIRY_BYTES>().ok_or(BadState)?;
        if i64::from_be_bytes(*expiry) <= now_ms {
            return Err(BadState);
        }
        Ok(state.to_vec())
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

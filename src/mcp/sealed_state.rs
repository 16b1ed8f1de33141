//! The `requestState` of prompts and resources, which no execution stands behind (2026-07-28, multi round-trip requests):
//! what an upstream gave is sealed, bound to who was asked, for which request, and until when. Stores nothing, and does
//! not know what is inside. The states of calls are in `request_state`.

use std::sync::{PoisonError, RwLock};

use super::meta::Params;
use super::reject::{RpcError, code};
use super::sealing::{self, Bound, KEY_BYTES, Sealer};

#[cfg(test)]
mod tests;

/// A state that was not sealed here, or for somebody or something else, or long ago; always -32602.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the requestState is not one that this server gave for this request, or it has expired")]
pub struct BadState;

impl BadState {
    pub fn rpc_error(&self) -> RpcError {
        RpcError::new(code::INVALID_PARAMS, self.to_string())
    }
}

/// What makes a request the same in each of its rounds: its parameters but for those that a round adds, and for `_meta`.
pub fn digest(params: &Params<'_>) -> [u8; 32] {
    let same =
        params.members.iter().filter(|(name, _)| !matches!(&**name, "_meta" | "inputResponses" | "requestState"));
    sealing::digest(same.flat_map(|(name, value)| [name.as_bytes(), value.get().as_bytes()]))
}

/// The keys that seal and open states.
pub struct Keys(RwLock<Sealer>);

impl Keys {
    /// One random key, until others are given: states are then good in this process only.
    pub fn random() -> Keys {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).expect("the system's random generator works");
        Keys(RwLock::new(Sealer::of([(0, &bytes)])))
    }

    /// Takes other keys, the sealing one first; no keys change nothing.
    pub fn replace(&self, keys: &[(i64, [u8; KEY_BYTES])]) {
        if !keys.is_empty() {
            let sealer = Sealer::of(keys.iter().map(|(id, bytes)| (*id, bytes)));
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = sealer;
        }
    }

    /// Seals `state` until `expires_at_ms`.
    pub fn seal(&self, bound: &Bound, state: &[u8], expires_at_ms: i64) -> String {
        let sealer = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sealer.seal_bytes(bound, (state, expires_at_ms)).expect("there is always a key that seals")
    }

    /// What was sealed. Errors: [`BadState`].
    pub fn open(&self, bound: &Bound, text: &str, now_ms: i64) -> Result<Vec<u8>, BadState> {
        let sealer = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sealer.open_bytes(bound, text, now_ms).map(|(state, _)| state).map_err(|_| BadState)
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

//! Sealed text: what a client carries and brings back, so that nobody else can have written it, for another purpose or
//! at another time. Knows neither what is inside nor where the keys come from.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use crate::model::principal::Principal;

const FORM: u8 = 1;
const GENERATION_BYTES: usize = 8;
const HEAD_BYTES: usize = 1 + GENERATION_BYTES + NONCE_LEN;
const EXPIRY_BYTES: usize = 8;
/// Longer texts are refused before they are decoded.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The bytes of a key.
pub const KEY_BYTES: usize = 32;

/// Why a text is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadState {
    /// Not written here, or bound to something else.
    #[error("requestState is not valid for this request")]
    Invalid,
    /// Sealed with a key that this process has not seen.
    #[error("requestState is not valid for this request")]
    UnknownKey,
    /// Its time is over.
    #[error("requestState has expired; call again without it")]
    Expired,
}

/// What a text is good for: one principal's repetition of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound([u8; 32]);

impl Bound {
    /// The request by its method, and by what else tells it from others.
    pub fn to(principal: &Principal, method: &str, what: &[&[u8]]) -> Bound {
        let whose = [principal.namespace.as_bytes(), principal.subject.as_bytes(), method.as_bytes()];
        Bound(digest(whose.into_iter().chain(what.iter().copied())))
    }
}

/// The hash of each part with its length, so that nothing moves from one to the next.
pub fn digest<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// Seals with the newest key and opens with any.
pub struct Sealer(Vec<(i64, LessSafeKey)>);

impl Sealer {
    /// Keys by generation, the one that seals first. Generations tell keys apart and are no secret.
    pub fn of<'k>(keys: impl IntoIterator<Item = (i64, &'k [u8; KEY_BYTES])>) -> Sealer {
        let key = |(generation, bytes): (i64, &[u8; KEY_BYTES])| {
            let unbound = UnboundKey::new(&CHACHA20_POLY1305, bytes).expect("the key has the algorithm's length");
            (generation, LessSafeKey::new(unbound))
        };
        Sealer(keys.into_iter().map(key).collect())
    }

    /// Seals `plain` until `expires_at_ms`; only who names the same `bound` can open it. `None` without keys.
    pub(super) fn seal_bytes(&self, bound: &Bound, (plain, expires_at_ms): (&[u8], i64)) -> Option<String> {
        let (generation, key) = self.0.first()?;
        // Random nonces of 96 bits collide after 2^48 texts of one key; keys rotate long before.
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).expect("the system's random generator works");
        let mut sealed = Vec::with_capacity(EXPIRY_BYTES + plain.len() + CHACHA20_POLY1305.tag_len());
        sealed.extend_from_slice(&expires_at_ms.to_be_bytes());
        sealed.extend_from_slice(plain);
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(bound.0), &mut sealed)
            .expect("a text is shorter than the cipher's limit of 256 GiB");
        let mut bytes = Vec::with_capacity(HEAD_BYTES + sealed.len());
        bytes.push(FORM);
        bytes.extend_from_slice(&generation.to_be_bytes());
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&sealed);
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// What was sealed, and until when.
    pub(super) fn open_bytes(&self, bound: &Bound, text: &str, now_ms: i64) -> Result<(Vec<u8>, i64), BadState> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(BadState::Invalid);
        }
        // Strict: no padding, no loose bits, nothing behind.
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| BadState::Invalid)?;
        if bytes.len() < HEAD_BYTES || bytes[0] != FORM {
            return Err(BadState::Invalid);
        }
        let (head, sealed) = bytes.split_at(HEAD_BYTES);
        let (generation, nonce) = head[1..].split_at(GENERATION_BYTES);
        let generation = generation.try_into().map(i64::from_be_bytes).map_err(|_| BadState::Invalid)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| BadState::Invalid)?;
        let (_, key) = self.0.iter().find(|(known, _)| *known == generation).ok_or(BadState::UnknownKey)?;
        let mut sealed = sealed.to_vec();
        let plain = key.open_in_place(nonce, Aad::from(bound.0), &mut sealed).map_err(|_| BadState::Invalid)?;
        let (expiry, plain) = plain.split_first_chunk::<EXPIRY_BYTES>().ok_or(BadState::Invalid)?;
        let expires_at_ms = i64::from_be_bytes(*expiry);
        if expires_at_ms <= now_ms { Err(BadState::Expired) } else { Ok((plain.to_vec(), expires_at_ms)) }
    }
}

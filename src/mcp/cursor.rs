//! Cursors of paged lists: a position that only this server can have written, for one list and one reader. Does not
//! know what is listed, and holds nothing secret.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::reject::{RpcError, code};

#[cfg(test)]
mod tests;

const FORM: u8 = 1;
const POSITION_BYTES: usize = 1 + 8 + 8;
const TAG_BYTES: usize = 16;

/// Where a list goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The version of the list that the first page was cut from.
    pub snapshot: u64,
    /// How many entries were given out.
    pub offset: u64,
}

/// A cursor that was not written here, or for another list or reader; always -32602.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is invalid")]
pub struct BadCursor;

impl BadCursor {
    pub fn code(&self) -> i64 {
        code::INVALID_PARAMS
    }

    pub fn rpc_error(&self) -> RpcError {
        RpcError::new(self.code(), self.to_string())
    }
}

/// Writes a cursor. `scope` names the list and whose it is; a cursor is good for its scope only. `key` should have 32
/// random bytes and be the same in all processes of one store.
pub fn encode(key: &[u8], scope: &str, position: Position) -> String {
    let mut bytes = Vec::with_capacity(POSITION_BYTES + TAG_BYTES);
    bytes.push(FORM);
    bytes.extend_from_slice(&position.snapshot.to_be_bytes());
    bytes.extend_from_slice(&position.offset.to_be_bytes());
    let tag = mac(key, scope, &bytes).finalize().into_bytes();
    bytes.extend_from_slice(&tag[..TAG_BYTES]);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a cursor. Errors: [`BadCursor`], in constant time over the tag.
pub fn decode(key: &[u8], scope: &str, cursor: &str) -> Result<Position, BadCursor> {
    // Longer texts are refused before they are decoded.
    if cursor.len() > 2 * (POSITION_BYTES + TAG_BYTES) {
        return Err(BadCursor);
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| BadCursor)?;
    if bytes.len() != POSITION_BYTES + TAG_BYTES || bytes[0] != FORM {
        return Err(BadCursor);
    }
    let (position, tag) = bytes.split_at(POSITION_BYTES);
    mac(key, scope, position).verify_truncated_left(tag).map_err(|_| BadCursor)?;
    let number = |from: usize| position[from..from + 8].try_into().map(u64::from_be_bytes).map_err(|_| BadCursor);
    Ok(Position { snapshot: number(1)?, offset: number(9)? })
}

fn mac(key: &[u8], scope: &str, position: &[u8]) -> Hmac<Sha256> {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("HMAC takes keys of any length");
    // The position has a fixed length, so nothing can move from one part to the other.
    mac.update(position);
    mac.update(scope.as_bytes());
    mac
}

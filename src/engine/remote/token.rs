//! The lease token: `<execution id>.<fencing token>.<mac>`, opaque to the worker. It names one lease and proves that
//! the lease was granted to this worker; any process of the store can check it, and none has to remember it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::store::{LeaseKey, LeaseRef};

/// Longer than any token of ours.
const TOKEN_BYTES_MAX: usize = 128;

/// The token of a lease granted to the worker with this key.
pub fn mint(key: &LeaseKey, lease: LeaseRef) -> String {
    let mut token = format!("{}.{}", lease.id, lease.fencing_token);
    let mac = signed(key, &token).finalize().into_bytes();
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(mac, &mut token);
    token
}

/// The lease of a token; `None` when it was not granted to the worker with this key. Takes the same time whatever
/// the signature is.
pub fn verify(key: &LeaseKey, token: &str) -> Option<LeaseRef> {
    if token.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let (named, mac) = token.rsplit_once('.')?;
    let (id, fencing_token) = named.split_once('.')?;
    let lease = LeaseRef { id: id.parse().ok()?, fencing_token: fencing_token.parse().ok()? };
    let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
    signed(key, named).verify_slice(&mac).ok()?;
    Some(lease)
}

fn signed(key: &LeaseKey, text: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac
}

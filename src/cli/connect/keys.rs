//! The keys that the bridge gives to calls without one. A call that its client never got the end of keeps its key for the
//! same call asked again, so that `repeat the same call` means here what it means to the server: come back to the
//! execution. Knows this connection's calls only, and forgets with the process.

use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;

/// Calls without an end that are remembered.
const OPEN_MAX: usize = 1_000;

/// The keys of calls that have no end yet and that nobody waits for.
#[derive(Default)]
pub struct Keys {
    open: Mutex<IndexMap<String, String>>,
}

impl Keys {
    /// The key for a call: that of the same call whose end is still owed, else a new one.
    pub fn take(&self, call: &str) -> String {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.shift_remove(call).unwrap_or_else(|| format!("connect-{}", hex::encode(crate::engine::entropy())))
    }

    /// The client was not told how the call ended: whoever asks the same again means this one.
    pub fn keep(&self, call: String, key: String) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(call, key);
        if open.len() > OPEN_MAX {
            open.shift_remove_index(0);
        }
    }
}

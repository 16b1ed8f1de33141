//! Keys this process has seen, and how their executions ended. Only a likely repeat pays for a look before the write,
//! and a repeat of what was answered lately costs no read at all. Ended is ended, so nothing here can be wrong; a
//! forgotten key costs nothing but that look: the write finds it anyway.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::waiters::Settled;
use crate::model::execution::State;
use crate::store::KeyScope;

/// Results longer than this are read again, in bytes.
const END_BYTES_MAX: usize = 16 << 10;
/// What all remembered results may hold, in bytes.
const ENDS_BYTES_MAX: usize = 16 << 20;

/// See the module.
#[derive(Debug)]
pub struct KnownKeys {
    memory: Mutex<Memory>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Memory {
    ends: HashMap<KeyScope, Option<Settled>>,
    order: VecDeque<KeyScope>,
    bytes: usize,
}

/// What is known of a key.
#[derive(Debug)]
pub enum Known {
    /// It was not seen before; from now on it was.
    New,
    /// It was seen.
    Seen,
    /// Its execution completed.
    Ended(Settled),
}

impl KnownKeys {
    /// Remembers at most `limit` keys.
    pub fn new(limit: usize) -> KnownKeys {
        KnownKeys { memory: Mutex::default(), limit }
    }

    /// Looks a key up, and remembers it.
    pub fn look(&self, scope: &KeyScope) -> Known {
        let mut memory = self.memory();
        match memory.ends.get(scope) {
            Some(Some(end)) => return Known::Ended(end.clone()),
            Some(None) => return Known::Seen,
            None => {}
        }
        memory.ends.insert(scope.clone(), None);
        memory.order.push_back(scope.clone());
        if memory.order.len() > self.limit
            && let Some(oldest) = memory.order.pop_front()
            && let Some(Some(end)) = memory.ends.remove(&oldest)
        {
            memory.bytes -= bytes(&end);
        }
        Known::New
    }

    /// Remembers how the execution of a known key ended. Only a completed one: of a failed or cancelled one another may
    /// be ordered, which takes the key over.
    pub fn keep(&self, scope: &KeyScope, end: &Settled) {
        let bytes = bytes(end);
        if end.head.state != State::Completed || end.payload.is_none() || bytes > END_BYTES_MAX {
            return;
        }
        let mut memory = self.memory();
        if memory.bytes + bytes > ENDS_BYTES_MAX {
            memory.ends.values_mut().for_each(|end| *end = None);
            memory.bytes = 0;
        }
        if let Some(known @ None) = memory.ends.get_mut(scope) {
            *known = Some(end.clone());
            memory.bytes += bytes;
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes(end: &Settled) -> usize {
    end.payload.as_ref().map_or(0, |payload| payload.len())
}

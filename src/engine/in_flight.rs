//! The writes of this process that are on their way into the store, by the time they carry. Whoever follows events by time
//! must not look past the oldest of them: its events are not there yet. Knows nothing of other processes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clock::Clock;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Mutex<BTreeMap<i64, usize>>>);

/// A write on its way. Dropped when it is committed, or failed.
#[derive(Debug)]
pub struct Flight {
    all: InFlight,
    /// The time that its events get, in milliseconds since the epoch.
    pub now_ms: i64,
}

impl InFlight {
    /// Counts a write in. The clock is read under the same lock that [`InFlight::settled_before`] takes, so that no write
    /// begins in the past of somebody who has looked.
    pub fn begin(&self, clock: &Clock) -> Flight {
        let mut times = self.times();
        let now_ms = clock.now_ms();
        *times.entry(now_ms).or_default() += 1;
        Flight { all: self.clone(), now_ms }
    }

    /// The first moment of which this process may still write events, in milliseconds since the epoch.
    pub fn settled_before(&self, clock: &Clock) -> i64 {
        let times = self.times();
        let now_ms = clock.now_ms();
        times.keys().next().map_or(now_ms, |oldest| now_ms.min(*oldest))
    }

    fn times(&self) -> MutexGuard<'_, BTreeMap<i64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut times = self.all.times();
        if let Some(count) = times.get_mut(&self.now_ms) {
            *count -= 1;
            if *count == 0 {
                times.remove(&self.now_ms);
            }
        }
    }
}

#[cfg(test)]
mod tests;

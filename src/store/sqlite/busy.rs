//! How a connection waits while another process writes: it tries again every few hundred microseconds, and more often
//! the longer it has waited, so that the oldest is likely to be next. SQLite's own back-off starves a writer for seconds.

use std::cell::Cell;
use std::thread::sleep;
use std::time::{Duration, Instant};

const FRESH: Duration = Duration::from_millis(10);
const PAUSE_FRESH: Duration = Duration::from_micros(500);
const PAUSE: Duration = Duration::from_micros(100);

thread_local! {
    static LIMIT: Cell<Duration> = const { Cell::new(Duration::from_secs(5)) };
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Bounds the waiting of connections used by this thread.
pub(super) fn set_limit(limit: Duration) {
    LIMIT.set(limit);
}

/// The busy handler: false gives up. `tries` counts from 0 for each wait.
pub(super) fn wait(tries: i32) -> bool {
    if tries == 0 {
        SINCE.set(Some(Instant::now()));
    }
    let waited = SINCE.get().map_or(Duration::ZERO, |since| since.elapsed());
    if waited >= LIMIT.get() {
        return false;
    }
    sleep(if waited < FRESH { PAUSE_FRESH } else { PAUSE });
    true
}

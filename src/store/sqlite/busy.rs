//! How a connection waits while another process writes: it tries again every few hundred microseconds, since SQLite's own
//! back-off starves a writer for seconds. The writer of each process also takes turns (`turns.rs`); whoever else waits
//! tries more often the longer it has waited.

use std::cell::{Cell, RefCell};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::turns::Turns;

const FRESH: Duration = Duration::from_millis(10);
const PAUSE_FRESH: Duration = Duration::from_micros(500);
const PAUSE: Duration = Duration::from_micros(100);

thread_local! {
    static LIMIT: Cell<Duration> = const { Cell::new(Duration::from_secs(5)) };
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
    static TURNS: RefCell<Option<Turns>> = const { RefCell::new(None) };
}

/// Bounds the waiting of connections used by this thread.
pub(super) fn set_limit(limit: Duration) {
    LIMIT.set(limit);
}

/// Lets the connections of this thread take turns with other writers.
pub(super) fn take_turns(turns: Option<Turns>) {
    TURNS.set(turns);
}

/// Waits until nobody is left who waits longer already; to be called before the lock is asked for.
pub(super) fn let_others_first() {
    let since = Instant::now();
    while preceded() && since.elapsed() < LIMIT.get() {
        with(Turns::arrive);
        sleep(PAUSE_FRESH);
    }
}

/// The turn has come, or is given up: others may go.
pub(super) fn had_turn() {
    with(Turns::leave);
}

/// True when this thread has a place in the queue of writers.
pub(super) fn takes_turns() -> bool {
    TURNS.with_borrow(Option::is_some)
}

/// The busy handler: false gives up. `tries` counts from 0 for each wait.
pub(super) fn wait(tries: i32) -> bool {
    if tries == 0 {
        SINCE.set(Some(Instant::now()));
        with(Turns::arrive);
    }
    loop {
        let waited = SINCE.get().map_or(Duration::ZERO, |since| since.elapsed());
        if waited >= LIMIT.get() {
            return false;
        }
        // Whoever is next tries often, so that the lock is not free for long.
        let fresh = waited < FRESH && !takes_turns();
        sleep(if fresh { PAUSE_FRESH } else { PAUSE });
        if !preceded() {
            return true;
        }
        sleep(PAUSE_FRESH - PAUSE);
    }
}

fn preceded() -> bool {
    TURNS.with_borrow_mut(|turns| turns.as_mut().is_some_and(|turns| turns.is_preceded(Instant::now())))
}

fn with(act: impl FnOnce(&mut Turns)) {
    TURNS.with_borrow_mut(|turns| {
        if let Some(turns) = turns {
            act(turns);
        }
    });
}

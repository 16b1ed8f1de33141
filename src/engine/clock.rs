//! The one clock. Every time below and above this file is a parameter. Tests move a manual clock instead of sleeping.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

/// Where `now` comes from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The operating system's wall clock.
    #[default]
    System,
    /// Stands still until it is moved.
    Manual(Arc<Manual>),
}

/// A clock that a test moves.
#[derive(Debug)]
pub struct Manual {
    now_ms: AtomicI64,
    moved: Notify,
}

impl Clock {
    /// A clock that stands at `now_ms`.
    pub fn manual(now_ms: i64) -> (Clock, Arc<Manual>) {
        let manual = Arc::new(Manual { now_ms: AtomicI64::new(now_ms), moved: Notify::new() });
        (Clock::Manual(manual.clone()), manual)
    }

    /// Milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        match self {
            Clock::System => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as i64)
            }
            Clock::Manual(manual) => manual.now_ms.load(Ordering::SeqCst),
        }
    }

    /// Waits until the clock shows `at_ms`.
    pub async fn sleep_until(&self, at_ms: i64) {
        match self {
            Clock::System => {
                let left_ms = at_ms.saturating_sub(self.now_ms()).max(0) as u64;
                tokio::time::sleep(Duration::from_millis(left_ms)).await;
            }
            Clock::Manual(manual) => loop {
                let moved = manual.moved.notified();
                tokio::pin!(moved);
                moved.as_mut().enable();
                if manual.now_ms.load(Ordering::SeqCst) >= at_ms {
                    return;
                }
                moved.await;
            },
        }
    }
}

impl Manual {
    /// Moves the clock forward and wakes whoever waits for it.
    pub fn advance(&self, by_ms: i64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
        self.moved.notify_waiters();
    }
}

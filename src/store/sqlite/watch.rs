//! Waking those who wait for other processes' changes. The writer looks, since its connection sees every change but its
//! own; this tells it whether anybody cares. Polling is the truth: a lost wake-up costs one interval.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Who watches, and when something was seen last.
#[derive(Default)]
pub(super) struct Watch {
    watchers: AtomicUsize,
    changed: Notify,
    last: Mutex<Option<Instant>>,
}

impl Watch {
    /// True while somebody waits.
    pub(super) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// Another process changed something.
    pub(super) fn tell(&self) {
        *self.last.lock().expect("no thread panics with this lock") = Some(Instant::now());
        self.changed.notify_waiters();
    }

    /// Waits until something changes or `timeout` passes; whether something may have changed. `begin` runs once this counts
    /// as waiting.
    pub(super) async fn wait(&self, timeout: Duration, interval: Duration, begin: impl FnOnce()) -> bool {
        let notified = self.changed.notified();
        let _watching = Watching::new(&self.watchers);
        begin();
        // What changed just before may be what the caller has not seen yet.
        let last = *self.last.lock().expect("no thread panics with this lock");
        let lately = last.is_some_and(|last| last.elapsed() < interval * 10);
        let timeout = if lately { interval.min(timeout) } else { timeout };
        tokio::time::timeout(timeout, notified).await.is_ok() || lately
    }
}

/// Counts one watcher, also when its future is dropped.
struct Watching<'a>(&'a AtomicUsize);

impl<'a> Watching<'a> {
    fn new(watchers: &'a AtomicUsize) -> Self {
        watchers.fetch_add(1, Ordering::Relaxed);
        Watching(watchers)
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

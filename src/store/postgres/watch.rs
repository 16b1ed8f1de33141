//! Waking those who wait for other processes' changes: by polling, which is the truth. A look at the database costs what
//! its caller reads next, so there is nothing to ask here in between.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::db::Db;

/// Wake-ups across processes.
pub(super) struct Watch {
    interval: Duration,
    closed: Notify,
}

impl Watch {
    pub(super) fn new(db: &Arc<Db>) -> Watch {
        Watch { interval: Duration::from_millis(db.settings().poll_interval_ms), closed: Notify::new() }
    }

    /// Waits until another process may have changed something, at most `timeout_ms`.
    pub(super) async fn changed(&self, timeout_ms: u64) {
        let interval = self.interval.min(Duration::from_millis(timeout_ms));
        // Both ends are the same to the caller: it looks again.
        let _ = tokio::time::timeout(interval, self.closed.notified()).await;
    }

    /// Nobody waits any longer.
    pub(super) fn close(&self) {
        self.closed.notify_waiters();
    }
}

//! Waking those who wait for other processes' changes: by polling, which is the truth, and sooner where the database passes
//! notifications on (`listen.rs`). A look at the database costs what its caller reads next, so there is nothing to ask here
//! in between. A lost notification costs one interval.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::listen::Listener;

/// What changed a moment ago may be what the caller of [`Watch::changed`] has not seen yet: so long it looks again soon.
const LATELY: Duration = Duration::from_millis(25);

/// Wake-ups across processes.
pub(super) struct Watch {
    interval: Duration,
    bell: Arc<Bell>,
    listener: Option<Listener>,
    listening: OnceLock<JoinHandle<()>>,
}

/// What the waiting and the listening side share.
#[derive(Default)]
pub(super) struct Bell {
    /// Another process changed something.
    changed: Notify,
    last: Mutex<Option<Instant>>,
    /// Another process said so.
    pub(super) heard: Notify,
    /// This process changed something, and somebody may want to know.
    pub(super) written: Notify,
    /// There are other processes that may listen.
    company: AtomicBool,
    closed: AtomicBool,
}

impl Bell {
    /// Whoever waits here looks.
    pub(super) fn ring(&self) {
        *self.last.lock().expect("no thread panics with this lock") = Some(Instant::now());
        self.changed.notify_waiters();
    }

    /// Whether other processes may listen.
    pub(super) fn set_company(&self, company: bool) {
        self.company.store(company, Ordering::Relaxed);
    }

    fn rang_lately(&self) -> bool {
        self.last.lock().expect("no thread panics with this lock").is_some_and(|last| last.elapsed() < LATELY)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.close();
    }
}

impl Watch {
    /// Polls every so often; hears of changes sooner through `listener`, once somebody waits or counts as alive.
    pub(super) fn new(interval: Duration, listener: Option<Listener>) -> Watch {
        Watch { interval, bell: Arc::default(), listener, listening: OnceLock::new() }
    }

    /// Begins to listen. A process that only looks once pays for no connection.
    pub(super) fn listen(&self) {
        if let Some(listener) = &self.listener
            && !self.bell.closed.load(Ordering::Relaxed)
        {
            self.listening.get_or_init(|| tokio::spawn(listener.clone().run(Arc::clone(&self.bell))));
        }
    }

    /// Something was committed that others may wait for. Costs nothing while nobody else lives.
    pub(super) fn wrote(&self) {
        if self.bell.company.load(Ordering::Relaxed) {
            self.bell.written.notify_one();
        }
    }

    /// Waits until another process may have changed something, at most `timeout_ms`.
    pub(super) async fn changed(&self, timeout_ms: u64) {
        self.listen();
        let notified = self.bell.changed.notified();
        let interval = if self.bell.rang_lately() { self.interval.min(LATELY) } else { self.interval };
        // Both ends are the same to the caller: it looks again.
        let _ = tokio::time::timeout(interval.min(Duration::from_millis(timeout_ms)), notified).await;
    }

    /// Nobody waits any longer, and nothing is listened to.
    pub(super) fn close(&self) {
        self.bell.closed.store(true, Ordering::Relaxed);
        self.bell.set_company(false);
        if let Some(listening) = self.listening.get() {
            listening.abort();
        }
        self.bell.changed.notify_waiters();
    }
}

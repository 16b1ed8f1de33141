//! Waking those who wait for other processes' changes: by polling, which is the truth, and sooner where the database passes
//! notifications on (`listen.rs`). A look at the database costs what its caller reads next, so there is nothing to ask here
//! in between. A lost notification costs one interval.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::listen::Listener;
use super::said::Said;
use crate::store::News;

/// So long others say how executions end after somebody said that it waits.
const ATTENTION: Duration = Duration::from_secs(30);
/// Whoever goes on waiting says so again after this time.
const ATTENTION_AGAIN: Duration = Duration::from_secs(10);

/// Wake-ups across processes.
pub(super) struct Watch {
    interval: Duration,
    /// When whoever waits was told last that it is time to look.
    due: Mutex<Option<Instant>>,
    bell: Arc<Bell>,
    listener: Option<Listener>,
    listening: OnceLock<JoinHandle<()>>,
}

/// What the waiting and the listening side share.
#[derive(Default)]
pub(super) struct Bell {
    /// Something was heard.
    changed: Notify,
    heard: Mutex<News>,
    /// There is something to say.
    pub(super) written: Notify,
    unsaid: Mutex<Said>,
    /// Others are heard.
    hears: AtomicBool,
    /// There are other processes that may listen.
    company: AtomicBool,
    attention: Mutex<Attention>,
    closed: AtomicBool,
}

/// Who waits for what runs elsewhere.
#[derive(Default)]
struct Attention {
    /// When this process said that it does.
    said: Option<Instant>,
    /// Until when another one does.
    others_until: Option<Instant>,
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().expect("no thread panics with this lock")
}

impl Bell {
    /// Another process said something.
    pub(super) fn hear(&self, said: Said) {
        self.set_company(true);
        let was_attended = self.is_attended();
        let mut attention = lock(&self.attention);
        if said.attends {
            attention.others_until = Some(Instant::now() + ATTENTION);
        }
        let waits = attention.said.is_some();
        drop(attention);
        if said.begins && waits {
            // Who has just begun did not hear it, and those who wait here do not look before they are told.
            self.say(|unsaid| unsaid.attends = true);
        }
        if said.attends && !was_attended {
            // Of what happened before this was heard nobody told.
            self.say(|unsaid| unsaid.news.add(News::anything()));
        }
        self.ring(said.news);
    }

    /// Whoever waits here learns of it.
    pub(super) fn ring(&self, news: News) {
        if !news.is_empty() {
            lock(&self.heard).add(news);
            self.changed.notify_one();
        }
    }

    /// Others are heard from now on, or not any more: either way some of what was said was not heard.
    pub(super) fn set_hears(&self, hears: bool) {
        self.hears.store(hears, Ordering::Relaxed);
        self.set_company(false);
        lock(&self.attention).said = None;
        self.ring(News::anything());
    }

    /// Whether other processes may listen.
    pub(super) fn set_company(&self, company: bool) {
        self.company.store(company, Ordering::Relaxed);
    }

    /// Takes what is to be said.
    pub(super) fn unsaid(&self) -> Said {
        std::mem::take(&mut *lock(&self.unsaid))
    }

    fn say(&self, add: impl FnOnce(&mut Said)) {
        add(&mut lock(&self.unsaid));
        self.written.notify_one();
    }

    fn is_attended(&self) -> bool {
        lock(&self.attention).others_until.is_some_and(|until| Instant::now() < until)
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
        Watch { interval, due: Mutex::default(), bell: Arc::default(), listener, listening: OnceLock::new() }
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
    pub(super) fn wrote(&self, news: News) {
        let bell = &self.bell;
        let is_heard = bell.company.load(Ordering::Relaxed) || bell.is_attended();
        // What can not be said is made up for when it can.
        if !news.is_empty() && is_heard && bell.hears.load(Ordering::Relaxed) {
            bell.say(|unsaid| unsaid.news.add(news));
        }
    }

    /// True while somebody elsewhere waits for what runs here.
    pub(super) fn is_attended(&self) -> bool {
        self.bell.is_attended()
    }

    /// Somebody here waits for what runs elsewhere.
    pub(super) fn attend(&self) {
        let mut attention = lock(&self.bell.attention);
        if attention.said.is_some_and(|said| said.elapsed() < ATTENTION_AGAIN) {
            return;
        }
        attention.said = Some(Instant::now());
        drop(attention);
        self.listen();
        self.bell.say(|unsaid| unsaid.attends = true);
    }

    /// Waits until something is heard, it is time to look, or `timeout_ms` passed.
    pub(super) async fn news(&self, timeout_ms: u64) -> News {
        self.listen();
        let due_at = *lock(&self.due).get_or_insert_with(Instant::now) + self.interval;
        let end = due_at.min(Instant::now() + Duration::from_millis(timeout_ms));
        // Both ends are the same: what is there is taken.
        let _ = tokio::time::timeout_at(end.into(), self.bell.changed.notified()).await;
        let mut news = std::mem::take(&mut *lock(&self.bell.heard));
        if Instant::now() >= due_at {
            *lock(&self.due) = Some(Instant::now());
            news.due = true;
            // Who hears nothing has to look for everything.
            news.anything |= !self.bell.hears.load(Ordering::Relaxed);
        }
        news
    }

    /// Nobody waits any longer, and nothing is listened to.
    pub(super) fn close(&self) {
        self.bell.closed.store(true, Ordering::Relaxed);
        self.bell.set_company(false);
        if let Some(listening) = self.listening.get() {
            listening.abort();
        }
        self.bell.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_somebody_waits_is_said_again_to_whoever_begins_to_listen() {
        let watch = Watch::new(Duration::from_secs(3_600), None);
        let begins = || Said { begins: true, ..Said::default() };
        watch.bell.hear(begins());
        assert_eq!(watch.bell.unsaid(), Said::default(), "nobody waits here");
        watch.attend();
        assert!(watch.bell.unsaid().attends);
        watch.attend();
        assert!(!watch.bell.unsaid().attends, "it was said a moment ago");
        watch.bell.hear(begins());
        assert!(watch.bell.unsaid().attends);
    }
}

//! What other processes change, brought to whoever waits here: callers, observers and followers of executions that run
//! elsewhere, work that was cancelled elsewhere, workers and processes that came and went. One place hears what the others
//! say, and looks at the store for whom it concerns, once for all of them. Polling is the truth; a wake-up only makes it
//! sooner.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Engine, Result};
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::News;

/// How often callers of executions that run elsewhere look at the store at least, in milliseconds.
const FOREIGN_POLL_MS: u64 = 1_000;
/// How often a process looks whether what it runs was cancelled or taken over elsewhere, in milliseconds.
const OWN_LEASES_POLL_MS: u64 = 500;
/// How often a process looks for executions that others found `unknown`.
const UNKNOWN_POLL: Duration = Duration::from_secs(5);
/// The shortest pause between two looks for work of others, so that a busy neighbour does not keep us busy.
const WORK_PAUSE: Duration = Duration::from_millis(20);

/// Work of others that was heard of and not yet looked for.
#[derive(Default)]
struct Unsought {
    news: News,
    looked_at: Option<Instant>,
}

impl Unsought {
    /// How long it still has to wait; nothing when there is none.
    fn pause(&self) -> Option<Duration> {
        let since = self.looked_at.map_or(WORK_PAUSE, |at| at.elapsed());
        (!self.news.is_empty()).then(|| WORK_PAUSE.saturating_sub(since))
    }

    /// Takes it once its pause is over.
    fn take(&mut self) -> Option<News> {
        self.pause().filter(Duration::is_zero)?;
        self.looked_at = Some(Instant::now());
        Some(std::mem::take(&mut self.news))
    }
}

impl Engine {
    /// Hears what others say, and tells whom it concerns.
    pub(super) async fn foreign_loop(self: Arc<Self>) {
        let mut own_looked_at: Option<Instant> = None;
        let mut unsought = Unsought::default();
        loop {
            let news = tokio::select! {
                () = self.stop.cancelled() => return,
                news = self.news(unsought.pause()) => news,
            };
            if !self.settings.bound {
                // A `wrap` takes nothing of others.
                let News { ref work, workers, anything, .. } = news;
                unsought.news.add(News { work: work.clone(), workers, anything, ..News::default() });
            }
            if let Some(news) = unsought.take() {
                self.seek(&news);
            }
            let own = own_looked_at.is_none_or(|at| at.elapsed() >= Duration::from_millis(OWN_LEASES_POLL_MS));
            if own {
                own_looked_at = Some(Instant::now());
            }
            if let Err(error) = self.look_at_foreign(&news, own).await {
                tracing::warn!(code = error.code(), "the store could not be read for waiting callers: {error}");
                tokio::select! {
                    () = self.stop.cancelled() => return,
                    () = tokio::time::sleep(Duration::from_millis(FOREIGN_POLL_MS)) => {}
                }
            }
        }
    }

    /// The next news, once anybody here may be concerned.
    async fn news(&self, pause: Option<Duration>) -> News {
        let runs = !self.running.leases().is_empty();
        let takes_work = !self.settings.bound && (self.has_peers() || !self.slots.claimed_lanes().is_empty());
        if !runs && !takes_work && self.foreign().is_empty() {
            self.waiters.arrival().await;
        }
        let most = if runs { OWN_LEASES_POLL_MS } else { FOREIGN_POLL_MS };
        let pause_ms = pause.map_or(most, |pause| pause.as_millis() as u64 + 1);
        self.store.news(most.min(pause_ms)).await
    }

    /// Sets out to take work of others, and to learn of workers that came.
    fn seek(&self, news: &News) {
        if news.anything && self.has_peers() {
            self.slots.announce_all();
        }
        news.work.iter().for_each(|upstream| self.slots.announce(upstream));
        if news.workers || news.anything && !self.slots.claimed_lanes().is_empty() {
            self.remote.heard.notify_one();
        }
    }

    /// Somebody here waits for what other processes do, or may do from now on.
    pub(super) fn look_elsewhere(&self) {
        self.store.attend();
        self.waiters.look_again();
    }

    /// Other processes may take this execution from now on; whoever waits for it here looks at the store.
    pub(super) fn released(&self, head: &Head) {
        match self.waiters.are_there(head.id()) {
            true => self.look_elsewhere(),
            false => self.waiters.look_again(),
        }
    }

    /// Workers that registered and processes that came elsewhere, and calls for remote workers that wait here.
    pub(super) async fn remote_loop(self: Arc<Self>) {
        let mut unknown_looked_at: Option<Instant> = None;
        loop {
            if let Err(error) = self.look_for_remote().await {
                tracing::warn!(code = error.code(), "the store could not be read for remote workers: {error}");
            }
            if unknown_looked_at.is_none_or(|at| at.elapsed() >= UNKNOWN_POLL) {
                unknown_looked_at = Some(Instant::now());
                if let Err(error) = self.look_for_unknown().await {
                    tracing::warn!(code = error.code(), "unknown executions could not be listed: {error}");
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.remote.heard.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(FOREIGN_POLL_MS)) => {}
            }
        }
    }

    async fn look_at_foreign(&self, news: &News, own_leases: bool) -> Result<()> {
        let all = news.anything || news.due;
        let is_told = |id: &ExecutionId| all || news.executions.contains(id);
        let mut own = self.running.leases();
        own.retain(|lease| own_leases || news.executions.contains(&lease.id));
        self.stop_in_vain(&own).await?;
        // Any process may have taken the answer.
        self.asking.look_again(is_told);
        let mut foreign = self.foreign();
        foreign.retain(is_told);
        if foreign.is_empty() {
            return Ok(());
        }
        for head in self.store.heads(&foreign).await? {
            let id = head.id();
            if !matches!(head.state, State::Ready | State::Scheduled) {
                self.slots.dequeue(&head.ident.upstream, id);
            }
            self.watchers.look(&head);
            if head.state.is_settled() {
                self.observers.tell(id);
                self.settle(head, None).await?;
                continue;
            }
            if head.lease.as_ref().is_none_or(|lease| lease.process != self.process) {
                self.store.attend();
            }
            if head.state == State::Waiting || self.waiters.knows_questions(id) {
                self.told_questions(id).await;
            }
        }
        Ok(())
    }

    /// What this process waits for or looks at, or holds a place in a queue for, and does not run itself.
    fn foreign(&self) -> Vec<ExecutionId> {
        let mut ids = self.waiters.unsettled();
        ids.extend(self.slots.waiting_ids());
        ids.extend(self.observers.ids());
        ids.extend(self.watchers.ids());
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| !self.running.contains(*id));
        ids
    }
}

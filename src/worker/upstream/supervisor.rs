//! Keeps one leg to a server open: opens it, publishes how it stands and what it lists, opens it again with
//! back-off when it is lost. Runs no call; it only says which leg to use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::asides::{Changes, Correlation, Lists};
use super::call::until;
use super::leg::{Leg, LegContext, StartError};
use super::lists;
use super::overheard::Overheard;
use super::settings::UpstreamSettings;
use super::snapshot::{Snapshot, Status};
use super::subscriptions;
use crate::engine::notices::{PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED};

/// How long the lists beside that of the tools may take.
const OTHER_LISTS: Duration = Duration::from_secs(10);

/// What the supervisor publishes; held by it alone, so that its end is seen.
pub(super) struct Supervisor {
    pub settings: Arc<UpstreamSettings>,
    pub status: watch::Sender<Status>,
    pub tools: watch::Sender<Arc<Snapshot>>,
    pub leg: watch::Sender<Option<Arc<Leg>>>,
    /// A call waits for the server.
    pub wanted: Arc<Notify>,
    /// The leg has answered a call.
    pub served: Arc<AtomicBool>,
    pub stop: CancellationToken,
    pub overheard: Arc<Overheard>,
    /// Resources that somebody wants to be told of.
    pub uris: watch::Receiver<Vec<String>>,
}

/// How an open leg came to its end.
enum End {
    Stopped,
    Lost(String),
    /// The client that it belongs to has come, and nothing has run on it yet: it is opened anew, with what that one can.
    Outdated,
}

impl Supervisor {
    /// Runs until stopped.
    pub async fn run(self) {
        let name = self.settings.name.clone();
        let restart = self.settings.restart;
        let mut delay = restart.initial_delay;
        let stop = self.stop.clone();
        loop {
            self.served.store(false, Ordering::Relaxed);
            let changes = Arc::new(Changes::default());
            let opened = tokio::select! {
                () = stop.cancelled() => break,
                opened = self.open(changes.clone()) => opened,
            };
            let mut max_delay_wanted = restart.max_delay_wanted_failing;
            let reason = match opened {
                Ok(leg) => {
                    max_delay_wanted = restart.max_delay_wanted;
                    info!(upstream = name, revision = leg.facts().revision.name(), "the server is up");
                    let since = Instant::now();
                    let end = self.stay(&leg, &changes).await;
                    self.leg.send_replace(None);
                    match end {
                        End::Stopped => {
                            leg.close().await;
                            break;
                        }
                        End::Outdated => {
                            leg.close().await;
                            continue;
                        }
                        End::Lost(reason) => {
                            // A server that has shown that it works is not what back-off is for.
                            if self.served.load(Ordering::Relaxed) {
                                delay = Duration::ZERO;
                            } else if since.elapsed() >= restart.healthy_after {
                                delay = restart.initial_delay;
                            }
                            reason
                        }
                    }
                }
                Err(StartError { reason, permanent: true }) => {
                    warn!(upstream = name, reason, "the server cannot be used");
                    self.status.send_replace(Status::Failed { reason });
                    stop.cancelled().await;
                    break;
                }
                Err(StartError { reason, .. }) => reason,
            };
            warn!(upstream = name, reason, retry_in_ms = delay.as_millis(), "the server is down");
            self.status.send_replace(Status::Down { reason, retry_in: delay });
            let wanted = async {
                let since = Instant::now();
                self.wanted.notified().await;
                until(Some(since + max_delay_wanted)).await;
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(delay) => {}
                () = wanted => {}
            }
            self.settings.restarts.inc();
            delay = (delay * 2).clamp(restart.initial_delay.min(restart.max_delay), restart.max_delay);
        }
        self.status.send_replace(Status::Stopped);
    }

    /// Opens a leg and reads its lists, both within the handshake deadline.
    async fn open(&self, changes: Arc<Changes>) -> Result<Arc<Leg>, StartError> {
        let limits = self.settings.limits;
        let context = LegContext {
            name: self.settings.name.clone(),
            era: self.settings.era,
            limits,
            correlation: Correlation::new(self.settings.scope, self.settings.tell.clone(), changes),
            overheard: self.overheard.clone(),
            declared: self.settings.declared.get().await,
        };
        let deadline = Instant::now() + limits.handshake_timeout;
        let too_late =
            || StartError::passing(format!("it was not up after {} ms", limits.handshake_timeout.as_millis()));
        let leg = match timeout(limits.handshake_timeout, Leg::open(&self.settings, context)).await {
            Ok(leg) => Arc::new(leg?),
            Err(_) => return Err(too_late()),
        };
        let listed = tokio::select! {
            listed = self.refresh(&leg, Lists::ALL) => listed.map_err(StartError::passing),
            () = until(Some(deadline)) => Err(too_late()),
        };
        match listed {
            Ok(snapshot) => {
                self.publish(snapshot);
                self.status.send_replace(Status::Ready(leg.facts()));
                self.leg.send_replace(Some(leg.clone()));
                Ok(leg)
            }
            Err(error) => {
                leg.close().await;
                Err(error)
            }
        }
    }

    /// Stays with an open leg until it is lost or stopped; reads its lists again when they change.
    async fn stay(&self, leg: &Arc<Leg>, changes: &Changes) -> End {
        let lost = leg.lost();
        tokio::select! {
            () = self.stop.cancelled() => End::Stopped,
            () = lost.cancelled() => {
                // Calls must not choose this leg while its remains are cleared away.
                self.leg.send_replace(None);
                End::Lost(leg.loss().await)
            }
            () = self.refreshing(leg, changes) => End::Stopped,
            () = subscriptions::keep(leg, self.uris.clone()) => End::Stopped,
            () = self.outdated(leg) => End::Outdated,
        }
    }

    /// Resolves when the client has come after its leg was opened, to a server that had to be told what the client can. A
    /// leg on which something has run or runs, such as a call of an earlier life of this process, stays as it is.
    async fn outdated(&self, leg: &Arc<Leg>) {
        if !leg.declared_any && !leg.facts().revision.is_modern() {
            self.settings.declared.arrival().await;
            // A call that comes now waits for the new leg; one that came before holds this one.
            self.leg.send_replace(None);
            let is_used = Arc::strong_count(leg) > 1;
            fence(Ordering::Acquire);
            if !is_used && !self.served.load(Ordering::Relaxed) {
                return;
            }
            self.leg.send_replace(Some(leg.clone()));
        }
        std::future::pending().await
    }

    async fn refreshing(&self, leg: &Leg, changes: &Changes) {
        let limits = self.settings.limits;
        let mut again_in = Duration::ZERO;
        let mut failures = 0;
        let mut left = Lists::default();
        loop {
            if failures == 0 {
                changes.changed().await;
                again_in = limits.list_changed_debounce;
            }
            sleep(again_in).await;
            // Everything told until now is in the lists that are read next.
            left = left.and(changes.take());
            if !self.settings.reads_lists {
                self.tell_changes(std::mem::take(&mut left));
                continue;
            }
            match self.refresh(leg, left).await {
                Ok(mut snapshot) => {
                    for (told, changed) in snapshot.told.iter_mut().zip([left.tools, left.resources, left.prompts]) {
                        *told += u64::from(changed);
                    }
                    self.publish(snapshot);
                    self.status.send_replace(Status::Ready(leg.facts()));
                    failures = 0;
                    left = Lists::default();
                }
                Err(reason) => {
                    failures += 1;
                    again_in = Duration::from_secs(1 << failures.min(5));
                    warn!(upstream = self.settings.name, reason, "a changed list was not read");
                }
            }
        }
    }

    /// A leg whose lists nobody reads tells its party only that they have changed.
    fn tell_changes(&self, lists: Lists) {
        for (method, changed) in
            [(TOOLS_CHANGED, lists.tools), (RESOURCES_CHANGED, lists.resources), (PROMPTS_CHANGED, lists.prompts)]
        {
            if changed {
                self.settings.tell.tell(method, None);
            }
        }
    }

    /// Reads `which` lists; the others stay as they are known.
    ///
    /// # Errors
    /// Says why the tools were not read. The other lists are no reason to do without a server: what cannot be read stays
    /// as it was.
    async fn refresh(&self, leg: &Leg, which: Lists) -> Result<Snapshot, String> {
        let limits = &self.settings.limits;
        let mut snapshot = Snapshot::clone(&self.tools.borrow());
        snapshot.facts = Some(leg.facts());
        if !self.settings.reads_lists {
            leg.learn(&mut snapshot.tools);
            return Ok(snapshot);
        }
        let wanted = |kind, wanted: bool| async move {
            match wanted {
                true => Some(lists::read(leg, kind, limits).await),
                false => None,
            }
        };
        let others = async {
            futures_util::join!(
                wanted(&lists::RESOURCES, which.resources),
                wanted(&lists::TEMPLATES, which.resources),
                wanted(&lists::PROMPTS, which.prompts),
            )
        };
        let others = async { timeout(OTHER_LISTS, others).await };
        let (tools, others) = futures_util::join!(wanted(&lists::TOOLS, which.tools), others);
        if let Some(tools) = tools {
            let read = tools?;
            snapshot.tools = lists::tools(read.items);
            snapshot.tools_keeping = read.keeping;
            leg.learn(&mut snapshot.tools);
        }
        let Ok((resources, templates, prompts)) = others else {
            warn!(upstream = self.settings.name, "its lists of resources and prompts were not read in time");
            return Ok(snapshot);
        };
        let lists = [
            (&mut snapshot.resources, resources),
            (&mut snapshot.templates, templates),
            (&mut snapshot.prompts, prompts),
        ];
        for (list, read) in lists {
            match read {
                Some(Ok(read)) => *list = read.into(),
                Some(Err(reason)) => warn!(upstream = self.settings.name, reason, "a list stays as it was"),
                None => {}
            }
        }
        Ok(snapshot)
    }

    fn publish(&self, mut snapshot: Snapshot) {
        self.tools.send_modify(|known| {
            snapshot.generation = known.generation + 1;
            *known = Arc::new(snapshot);
        });
    }
}

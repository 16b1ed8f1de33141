//! Keeps one leg to a server open: opens it, publishes how it stands and what tools it has, opens it again with
//! back-off when it is lost. Runs no call; it only says which leg to use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::call::until;
use super::leg::{Leg, LegContext, StartError};
use super::overheard::Overheard;
use super::peer::Notice;
use super::settings::UpstreamSettings;
use super::snapshot::{Snapshot, Status};

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
}

/// How an open leg came to its end.
enum End {
    Stopped,
    Lost(String),
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
            let (notices, mut noticed) = mpsc::channel(1);
            let opened = tokio::select! {
                () = stop.cancelled() => break,
                opened = self.open(notices) => opened,
            };
            let mut max_delay_wanted = restart.max_delay_wanted_failing;
            let reason = match opened {
                Ok(leg) => {
                    max_delay_wanted = restart.max_delay_wanted;
                    info!(upstream = name, revision = leg.facts().revision.name(), "the server is up");
                    let since = Instant::now();
                    let end = self.stay(&leg, &mut noticed).await;
                    self.leg.send_replace(None);
                    match end {
                        End::Stopped => {
                            leg.close().await;
                            break;
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
            delay = (delay * 2).clamp(restart.initial_delay.min(restart.max_delay), restart.max_delay);
        }
        self.status.send_replace(Status::Stopped);
    }

    /// Opens a leg and reads its tools, both within the handshake deadline.
    async fn open(&self, notices: mpsc::Sender<Notice>) -> Result<Arc<Leg>, StartError> {
        let limits = self.settings.limits;
        let context = LegContext {
            name: self.settings.name.clone(),
            era: self.settings.era,
            limits,
            notices,
            overheard: self.overheard.clone(),
        };
        let deadline = Instant::now() + limits.handshake_timeout;
        let too_late =
            || StartError::passing(format!("it was not up after {} ms", limits.handshake_timeout.as_millis()));
        let leg = match timeout(limits.handshake_timeout, Leg::open(&self.settings, context)).await {
            Ok(leg) => Arc::new(leg?),
            Err(_) => return Err(too_late()),
        };
        let listed = tokio::select! {
            listed = leg.list_tools(&limits) => listed.map_err(StartError::passing),
            () = until(Some(deadline)) => Err(too_late()),
        };
        match listed {
            Ok(tools) => {
                self.publish(&leg, tools);
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

    /// Stays with an open leg until it is lost or stopped; reads its tools again when they change.
    async fn stay(&self, leg: &Leg, noticed: &mut mpsc::Receiver<Notice>) -> End {
        let lost = leg.lost();
        let limits = self.settings.limits;
        let refreshing = async {
            let mut again_in = Duration::ZERO;
            let mut failures = 0;
            loop {
                if failures == 0 {
                    match noticed.recv().await {
                        Some(Notice::ToolsChanged) => again_in = limits.list_changed_debounce,
                        None => std::future::pending().await,
                    }
                }
                sleep(again_in).await;
                // Everything told until now is in the list that is read next.
                while noticed.try_recv().is_ok() {}
                match leg.list_tools(&limits).await {
                    Ok(tools) => {
                        self.publish(leg, tools);
                        self.status.send_replace(Status::Ready(leg.facts()));
                        failures = 0;
                    }
                    Err(reason) => {
                        failures += 1;
                        again_in = Duration::from_secs(1 << failures.min(5));
                        warn!(upstream = self.settings.name, reason, "the changed list of tools was not read");
                    }
                }
            }
        };
        tokio::select! {
            () = self.stop.cancelled() => End::Stopped,
            () = lost.cancelled() => {
                // Calls must not choose this leg while its remains are cleared away.
                self.leg.send_replace(None);
                End::Lost(leg.loss().await)
            }
            () = refreshing => End::Stopped,
        }
    }

    fn publish(&self, leg: &Leg, tools: Vec<super::snapshot::Tool>) {
        self.tools.send_modify(|snapshot| {
            let generation = snapshot.generation + 1;
            *snapshot = Arc::new(Snapshot { generation, facts: Some(leg.facts()), tools });
        });
    }
}

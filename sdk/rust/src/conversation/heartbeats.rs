//! Heartbeats: leases are extended, news goes along, and who is not wanted any more is told.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};

use super::{Conversation, lease};
use crate::context::lock;
use crate::held::{Held, News};
use crate::link::LinkError;

/// Progress and checkpoints that come fast are sent together.
const HEARTBEAT_GAP: Duration = Duration::from_millis(50);

#[derive(Deserialize)]
struct Beaten {
    leases: Vec<Lease>,
    #[serde(default)]
    draining: bool,
}

#[derive(Deserialize)]
struct Lease {
    lease_token: String,
    status: String,
}

impl Conversation {
    pub(super) async fn heartbeat_loop(&self) {
        let mut pause = Duration::from_millis(self.settings.get().heartbeat_ms);
        loop {
            let started = Instant::now();
            if timeout(pause, self.news.notified()).await.is_ok() {
                // The first news goes at once; what follows closely goes together.
                sleep(HEARTBEAT_GAP.saturating_sub(started.elapsed())).await;
            }
            let settings = self.settings.get();
            let calls: Vec<_> = self.held.borrow().values().cloned().collect();
            let limit = Duration::from_millis((settings.lease_ttl_ms / 2).max(1_000));
            pause = Duration::from_millis(settings.heartbeat_ms);
            if let Err(error) = self.heartbeat(&calls, limit).await {
                self.is_not_here(&error);
                pause = (pause / 2).min(Duration::from_secs(1));
            }
        }
    }

    pub(super) async fn heartbeat(&self, calls: &[Arc<Held>], limit: Duration) -> Result<(), LinkError> {
        match self.beat(calls, limit, true).await {
            Err(LinkError::Refused { status: 400 | 413, .. }) => {}
            other => return other,
        }
        // One piece of news, such as a checkpoint that is too large, must not cost the other leases.
        self.beat(calls, limit, false).await?;
        for call in calls.iter().filter(|call| !lock(&call.news).is_empty()) {
            match self.beat(std::slice::from_ref(call), limit, true).await {
                Err(error @ LinkError::Refused { status: 400 | 413, .. }) => {
                    tracing::warn!(
                        "execution {}: its progress or checkpoint is refused: {error}",
                        call.job.execution_id
                    );
                    *lock(&call.news) = News::default();
                }
                other => other?,
            }
        }
        Ok(())
    }

    async fn beat(&self, calls: &[Arc<Held>], limit: Duration, with_news: bool) -> Result<(), LinkError> {
        let generation = self.generation.get();
        // They stay until they have arrived: a failure that is reported meanwhile waits for its checkpoint.
        let news = |call: &Arc<Held>| if with_news { lock(&call.news).clone() } else { News::default() };
        let sent: Vec<News> = calls.iter().map(news).collect();
        let leases: Vec<String> = calls.iter().zip(&sent).map(|(call, news)| lease_of(call, news)).collect();
        let body = format!("{{{},\"leases\":[{}]}}", self.who(), leases.join(","));
        let beaten: Beaten = match self.link.post("heartbeat", body, limit).await {
            Ok(beaten) => beaten,
            Err(error) => {
                match &error {
                    LinkError::Refused { code, .. } if code == "worker_unknown" => {
                        let _ = self.register(generation, false).await;
                    }
                    LinkError::Refused { status: 401, .. } if self.link.read_token() => {}
                    _ => return Err(error),
                }
                self.news.notify_one();
                return Ok(());
            }
        };
        self.is_here();
        for (call, news) in calls.iter().zip(&sent) {
            lock(&call.news).forget(news);
        }
        for lease in beaten.leases.iter().filter(|lease| lease.status != "ok") {
            self.lose(&lease.lease_token, &lease.status);
        }
        if beaten.draining {
            self.drain.cancel();
        }
        Ok(())
    }

    pub(super) fn lose(&self, lease_token: &str, why: &str) {
        let Some(call) = self.held.borrow().get(lease_token).cloned() else { return };
        let what = if why == "cancel" { "cancelled" } else { "the lease is lost" };
        tracing::info!("execution {}: {what}", call.job.execution_id);
        self.let_go(&call);
        call.dropped.cancel();
    }
}

fn lease_of(call: &Held, news: &News) -> String {
    let mut members = lease(call);
    for (name, text) in [("progress", &news.progress), ("checkpoint", &news.checkpoint)] {
        if let Some(text) = text {
            members.push_str(&format!(",\"{name}\":{text}"));
        }
    }
    format!("{{{members}}}")
}

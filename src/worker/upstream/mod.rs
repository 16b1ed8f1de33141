//! MCP servers that we run or reach, and one conversation ("leg") with each: over stdio (`stdio`, `peer`, `child`,
//! `guard`) and over Streamable HTTP (`http`), in all revisions. Says of each call what is known of its outcome;
//! decides nothing about retries, and knows nothing of executions and leases.

mod asides;
mod call;
mod child;
mod frames;
pub mod guard;
mod handshake;
mod http;
mod keeper;
mod leg;
mod levels;
mod lists;
mod log_budget;
pub(super) mod message;
mod overheard;
mod peer;
mod request;
mod settings;
mod snapshot;
mod stdio;
mod subscriptions;
mod supervisor;
#[cfg(test)]
pub(super) mod tests;

pub use self::asides::{Caller, Scope, ServerRequest, Tell};
pub use self::call::{Answer, Call, CallError, Progress, Reply, TimeoutKind};
pub use self::child::{Control, command};
pub use self::frames::TopLevelId;
pub use self::handshake::ASKING;
pub use self::keeper::Keeper;
pub use self::levels::rank;
pub use self::message::{Wire, wires};
pub use self::overheard::Heard;
pub use self::request::Request;
pub use self::settings::{
    Declared, EraChoice, HttpSettings, INHERITED_VARIABLES, LegLimits, RestartSettings, Secret, StdioSettings,
    Transport, UpstreamSettings,
};
pub use self::snapshot::{Items, Keeping, ServerFacts, Snapshot, Status, Tool};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::asides::Watcher;
use self::call::{Bounds, until};
use self::leg::Leg;
use self::overheard::Overheard;
use self::subscriptions::Subscriptions;
use self::supervisor::Supervisor;

/// One upstream MCP server: its leg, its restarts, and the last list of its tools. Cheap to clone; the server ends with
/// the last clone, or with [`Upstream::shutdown`].
#[derive(Clone)]
pub struct Upstream {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Arc<UpstreamSettings>,
    status: watch::Receiver<Status>,
    tools: watch::Receiver<Arc<Snapshot>>,
    leg: watch::Receiver<Option<Arc<Leg>>>,
    wanted: Arc<Notify>,
    served: Arc<AtomicBool>,
    stop: CancellationToken,
    overheard: Arc<Overheard>,
    subscriptions: Subscriptions,
    _stop_on_drop: DropGuard,
}

impl Upstream {
    /// Starts the upstream in the background and returns at once. Must be called inside a tokio runtime.
    pub fn start(settings: UpstreamSettings) -> Self {
        let settings = Arc::new(settings);
        let stop = CancellationToken::new();
        let last_known = Arc::new(settings.last_known.clone().unwrap_or_default());
        let subscriptions = Subscriptions::default();
        let supervisor = Supervisor {
            settings: settings.clone(),
            status: watch::Sender::new(Status::Starting),
            tools: watch::Sender::new(last_known),
            leg: watch::Sender::new(None),
            wanted: Arc::default(),
            served: Arc::default(),
            stop: stop.clone(),
            overheard: Arc::default(),
            uris: subscriptions.follow(),
        };
        let inner = Inner {
            settings,
            status: supervisor.status.subscribe(),
            tools: supervisor.tools.subscribe(),
            leg: supervisor.leg.subscribe(),
            wanted: supervisor.wanted.clone(),
            served: supervisor.served.clone(),
            stop: stop.clone(),
            overheard: supervisor.overheard.clone(),
            subscriptions,
            _stop_on_drop: stop.drop_guard(),
        };
        tokio::spawn(supervisor.run());
        Self { inner: Arc::new(inner) }
    }

    /// Returns the name in the configuration.
    pub fn name(&self) -> &str {
        &self.inner.settings.name
    }

    /// Returns how the server stands, and each change of it.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.inner.status.clone()
    }

    /// Returns how it was set up.
    pub fn settings(&self) -> &UpstreamSettings {
        &self.inner.settings
    }

    /// Returns the last known lists, and each change of them; kept while the server is down.
    pub fn tools(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.inner.tools.clone()
    }

    /// Returns what a stdio server printed outside of the protocol so far.
    pub fn heard(&self) -> Heard {
        self.inner.overheard.heard()
    }

    /// Waits until the first start has succeeded, failed, or taken longer than `start_timeout`.
    pub async fn first_start(&self) -> Status {
        let mut status = self.inner.status.clone();
        let decided = status.wait_for(|status| !matches!(status, Status::Starting));
        let _ = timeout(self.inner.settings.limits.start_timeout, decided).await;
        self.inner.status.borrow().clone()
    }

    /// Runs one tool call. While the server is down it waits for it, up to `start_timeout`. Dropping the future cancels
    /// the call.
    ///
    /// # Errors
    /// See [`CallError`]: each says whether the tool may have run.
    pub async fn call(
        &self,
        call: Call,
        cancel: CancellationToken,
        on_progress: impl Fn(Progress) + Send + Sync,
    ) -> Result<Answer, CallError> {
        self.request(&call.into(), cancel, &Watcher(on_progress)).await.map(|reply| reply.answer)
    }

    /// Passes any request on; the same as [`Upstream::call`] in all else.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn request(
        &self,
        request: &Request,
        cancel: CancellationToken,
        caller: &dyn Caller,
    ) -> Result<Reply, CallError> {
        let deadline = request.attempt_timeout.map(|limit| Instant::now() + limit);
        let leg = self.ready_leg(&cancel, deadline).await?;
        if request.kept_by.is_some_and(|keeper| keeper != leg.keeper) {
            return Err(CallError::lost("the process of the server that this is about is gone"));
        }
        let bounds = Bounds { cancel, deadline, idle_timeout: request.idle_timeout };
        let answer = leg.call(request, bounds, caller).await?;
        self.inner.served.store(true, Ordering::Relaxed);
        Ok(Reply { answer, revision: leg.revision_for(request).await, keeper: leg.keeper })
    }

    /// True while what `keeper` keeps can be asked for here.
    pub fn reaches(&self, keeper: Keeper) -> bool {
        match self.inner.settings.transport {
            Transport::Http(_) => !keeper.is_child(),
            Transport::Stdio(_) => {
                let leg = self.inner.leg.borrow();
                leg.as_ref().is_some_and(|leg| leg.keeper == keeper && !leg.lost().is_cancelled())
            }
        }
    }

    /// Tells a legacy server, if it is up, which log messages somebody wants.
    pub async fn set_level(&self, level: &str) {
        let leg = self.inner.leg.borrow().clone();
        if let Some(leg) = leg {
            leg.set_level(&Request { log_level: Some(level.to_owned()), ..Request::default() }).await;
        }
    }

    /// Whether the server speaks 2026-07-28, alone or beside an earlier revision. Waits for it as a call does.
    pub async fn speaks_modern(&self) -> bool {
        let request = Request { prefers_modern: true, ..Request::default() };
        match self.ready_leg(&CancellationToken::new(), None).await {
            Ok(leg) => leg.revision_for(&request).await.is_modern(),
            Err(_) => false,
        }
    }

    /// Passes a notification of the client on, if the server is up; it may be lost.
    pub async fn notify(&self, request: &Request) {
        let leg = self.inner.leg.borrow().clone();
        if let Some(leg) = leg {
            leg.notify(request).await;
        }
    }

    /// Asks the server to tell of a resource, from the first subscriber on; see [`Upstream::unsubscribe`]. Lasts over
    /// restarts of the server.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn subscribe(&self, request: &Request, uri: &str) -> Result<Answer, CallError> {
        let cancel = CancellationToken::new();
        let leg = self.ready_leg(&cancel, request.attempt_timeout.map(|limit| Instant::now() + limit)).await?;
        // A leg that was opened for this may log before anything is called on it.
        leg.set_level(request).await;
        self.inner.subscriptions.add(&leg, request, uri).await
    }

    /// Counts a subscriber out; with the last one the server need not tell any more.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn unsubscribe(&self, uri: &str) -> Result<Answer, CallError> {
        let leg = self.inner.leg.borrow().clone();
        self.inner.subscriptions.remove(leg.as_deref(), uri).await
    }

    /// Whether anybody is subscribed to a resource.
    pub fn has_subscribers(&self) -> bool {
        self.inner.subscriptions.are_any()
    }

    async fn ready_leg(&self, cancel: &CancellationToken, deadline: Option<Instant>) -> Result<Arc<Leg>, CallError> {
        // A leg that was just lost is still there until the supervisor has noticed.
        let usable = |leg: &Option<Arc<Leg>>| leg.as_ref().is_some_and(|leg| !leg.lost().is_cancelled());
        let mut legs = self.inner.leg.clone();
        if let Some(leg) = legs.borrow_and_update().clone().filter(|leg| !leg.lost().is_cancelled()) {
            return Ok(leg);
        }
        self.inner.wanted.notify_one();
        let mut status = self.inner.status.clone();
        let over = status.wait_for(|status| matches!(status, Status::Failed { .. } | Status::Stopped));
        let waiting = async {
            let leg = legs.wait_for(usable).await.ok()?;
            leg.clone()
        };
        let found = tokio::select! {
            biased;
            leg = waiting => leg,
            _ = over => None,
            () = cancel.cancelled() => return Err(CallError::Cancelled { dispatched: false }),
            () = until(deadline) => None,
            () = tokio::time::sleep(self.inner.settings.limits.start_timeout) => None,
        };
        found.ok_or_else(|| CallError::not_started(self.why_not_ready()))
    }

    fn why_not_ready(&self) -> String {
        let name = &self.inner.settings.name;
        match &*self.inner.status.borrow() {
            Status::Starting | Status::Ready(_) => format!("server {name} is still starting"),
            Status::Down { reason, .. } => format!("server {name} is down: {reason}"),
            Status::Failed { reason } => format!("server {name} cannot be used: {reason}"),
            Status::Stopped => format!("server {name} is stopped"),
        }
    }

    /// Ends the process tree or the session and waits until that is done; bounded by the graces of the settings.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        let mut status = self.inner.status.clone();
        // An error means that the supervisor is gone, which is as good.
        let _ = status.wait_for(|status| matches!(status, Status::Stopped)).await;
    }
}

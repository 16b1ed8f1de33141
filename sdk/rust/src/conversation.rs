//! The side of a worker that speaks to the server, on a thread and runtime of its own, so that a handler that blocks
//! everything neither loses its lease nor takes calls that nobody knows of. Runs no handlers.
//!
//! It registers, keeps a claim parked while there are free slots, sends heartbeats, and offers each outcome until the
//! server takes or refuses it. What may be repeated is repeated with back-off.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::context::lock;
use crate::failure::{Cancelled, Failure};
use crate::held::{Held, Job, News, Report};
use crate::link::{Link, LinkError};
use crate::results::quoted;

const CLAIM_WAIT_MS: u64 = 20_000;
/// A batch of results: so many, or so many bytes, whichever is first.
const BATCH_RESULTS: usize = 64;
const BATCH_BYTES: usize = 1 << 20;
/// Progress and checkpoints that come fast are sent together.
const HEARTBEAT_GAP: Duration = Duration::from_millis(50);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(3);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What handlers tell the conversation.
pub(crate) enum ToWire {
    /// The handler ended; what is to be reported is in `held.report`, or nothing is.
    Finished(Arc<Held>),
    /// There is progress or a checkpoint.
    News,
    Step { held: Arc<Held>, name: String, result: Box<RawValue>, reply: oneshot::Sender<Result<Box<RawValue>, Failure>> },
}

/// What a conversation is about.
pub(crate) struct Terms {
    pub worker_id: String,
    /// The body of `register`.
    pub registration: String,
    pub slots: usize,
    pub grace: Duration,
    /// Runs what was claimed.
    pub deliver: Box<dyn Fn(Arc<Held>)>,
}

#[derive(Clone, Copy, Deserialize)]
struct Registered {
    lease_ttl_ms: u64,
    heartbeat_ms: u64,
    claim_wait_max_ms: u64,
    claim_max: usize,
}

#[derive(Deserialize)]
struct Claimed {
    jobs: Vec<Job>,
    #[serde(default)]
    draining: bool,
}

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

#[derive(Deserialize)]
struct Completed {
    results: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    detail: String,
}

#[derive(Deserialize)]
struct Step {
    result: Box<RawValue>,
}

pub(crate) struct Conversation {
    terms: Terms,
    link: Link,
    settings: Cell<Registered>,
    /// Counts registrations.
    generation: Cell<u64>,
    registering: Mutex<()>,
    /// By lease token, until the server has taken what came of them.
    held: RefCell<HashMap<String, Arc<Held>>>,
    outbox: RefCell<VecDeque<Arc<Held>>>,
    /// Handlers that have not ended.
    running: Cell<usize>,
    sending: Cell<usize>,
    is_away: Cell<bool>,
    /// Somebody else asked for the drain: the route need not be told.
    is_told_to_drain: Cell<bool>,
    drain: CancellationToken,
    room: Notify,
    news: Notify,
    mail: Notify,
    fewer: Notify,
}

impl Conversation {
    pub fn new(terms: Terms, link: Link, drain: CancellationToken) -> Rc<Conversation> {
        let settings =
            Registered { lease_ttl_ms: 30_000, heartbeat_ms: 10_000, claim_wait_max_ms: CLAIM_WAIT_MS, claim_max: 64 };
        Rc::new(Conversation {
            terms,
            link,
            settings: Cell::new(settings),
            generation: Cell::new(0),
            registering: Mutex::new(()),
            held: RefCell::default(),
            outbox: RefCell::default(),
            running: Cell::new(0),
            sending: Cell::new(0),
            is_away: Cell::new(false),
            is_told_to_drain: Cell::new(false),
            drain,
            room: Notify::new(),
            news: Notify::new(),
            mail: Notify::new(),
            fewer: Notify::new(),
        })
    }

    /// From registration to the end of the drain; inside a `LocalSet`. Errors: the server refuses this worker for good.
    pub async fn run(self: Rc<Self>, mut inbox: mpsc::UnboundedReceiver<ToWire>) -> Result<(), String> {
        tokio::select! {
            registered = self.register(0, true) => registered?,
            () = self.drain.cancelled() => return Ok(()),
        }
        let claims = tokio::task::spawn_local({
            let this = self.clone();
            async move { this.claim_loop().await }
        });
        let listening = async {
            while let Some(message) = inbox.recv().await {
                self.hear(message);
            }
        };
        let ending = async {
            self.drain.cancelled().await;
            self.say_goodbye(claims).await;
        };
        tokio::select! {
            () = listening => {}
            () = self.heartbeat_loop() => {}
            () = self.outbox_loop() => {}
            () = ending => {}
        }
        Ok(())
    }

    fn hear(self: &Rc<Self>, message: ToWire) {
        match message {
            ToWire::Finished(call) => {
                self.running.set(self.running.get() - 1);
                match lock(&call.report).is_some() {
                    true => self.outbox.borrow_mut().push_back(call.clone()),
                    false => self.let_go(&call),
                }
                self.room.notify_one();
                self.mail.notify_one();
            }
            ToWire::News => self.news.notify_one(),
            ToWire::Step { held, name, result, reply } => {
                let this = self.clone();
                tokio::task::spawn_local(async move {
                    // A handler that is gone needs no answer.
                    let _ = reply.send(this.store_step(&held, &name, &result).await);
                });
            }
        }
    }

    // Requests that are repeated until there is an answer.

    /// Sends until the server takes or refuses it.
    async fn ask<T: serde::de::DeserializeOwned>(&self, route: &str, body: String, limit: Duration) -> Result<T, LinkError> {
        let mut pause = PAUSE_MIN;
        loop {
            let generation = self.generation.get();
            match self.link.post(route, body.clone(), limit).await {
                Ok(answer) => {
                    self.is_here();
                    return Ok(answer);
                }
                Err(LinkError::Refused { code, .. }) if code == "worker_unknown" => {
                    tracing::info!("the server does not know this worker any more; registering again");
                    let _ = self.register(generation, false).await;
                    continue;
                }
                // A restarted server has a new local token; a revoked one is the operator's to mend.
                Err(LinkError::Refused { status: 401, .. }) if self.link.read_token() => continue,
                Err(error @ LinkError::Refused { status, .. }) if status != 401 => return Err(error),
                Err(error) => self.is_not_here(&error),
            }
            back_off(&mut pause).await;
        }
    }

    /// Registers, unless somebody did since `generation` was read.
    async fn register(&self, generation: u64, is_first: bool) -> Result<(), String> {
        let _one_at_a_time = self.registering.lock().await;
        let mut pause = PAUSE_MIN;
        while generation == self.generation.get() {
            match self.link.post::<Registered>("register", self.terms.registration.clone(), REQUEST_TIMEOUT).await {
                Ok(settings) => {
                    self.settings.set(settings);
                    self.generation.set(generation + 1);
                    self.is_here();
                    tracing::info!("registered at {} as {}", self.link.base(), self.terms.worker_id);
                    return Ok(());
                }
                Err(LinkError::Refused { status: 401, .. }) if self.link.read_token() => continue,
                Err(error @ LinkError::Refused { .. }) if is_first => return Err(error.to_string()),
                Err(error) => self.is_not_here(&error),
            }
            back_off(&mut pause).await;
        }
        Ok(())
    }

    fn is_here(&self) {
        if self.is_away.replace(false) {
            tracing::info!("the server answers again");
        }
    }

    fn is_not_here(&self, why: &LinkError) {
        if !self.is_away.replace(true) {
            tracing::warn!("no use of the server for now, trying again: {why}");
        }
    }

    // Claims.

    async fn claim_loop(&self) {
        while !self.drain.is_cancelled() {
            let free = self.terms.slots.saturating_sub(self.running.get());
            // While the server takes no results it shall give no work either.
            if free == 0 || self.outbox.borrow().len() > 4 * self.terms.slots {
                self.room.notified().await;
                continue;
            }
            let settings = self.settings.get();
            let wait_ms = CLAIM_WAIT_MS.min(settings.claim_wait_max_ms);
            let max = free.min(settings.claim_max);
            let body = json!({"worker_id": self.terms.worker_id, "max": max, "wait_ms": wait_ms}).to_string();
            let claimed: Claimed = match self.ask("claim", body, Duration::from_millis(wait_ms + 10_000)).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    tracing::error!("a claim was refused: {error}");
                    sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            self.running.set(self.running.get() + claimed.jobs.len());
            for job in claimed.jobs {
                let call = Arc::new(Held::new(job));
                self.held.borrow_mut().insert(call.token().to_owned(), call.clone());
                (self.terms.deliver)(call);
            }
            if claimed.draining {
                self.is_told_to_drain.set(true);
                self.drain.cancel();
            }
        }
    }

    // Heartbeats.

    async fn heartbeat_loop(&self) {
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

    async fn heartbeat(&self, calls: &[Arc<Held>], limit: Duration) -> Result<(), LinkError> {
        let generation = self.generation.get();
        let sent: Vec<News> = calls.iter().map(|call| std::mem::take(&mut *lock(&call.news))).collect();
        let leases: Vec<String> = calls.iter().zip(&sent).map(|(call, news)| lease_of(call, news)).collect();
        let body = format!("{{{},\"leases\":[{}]}}", self.who(), leases.join(","));
        let beaten: Beaten = match self.link.post("heartbeat", body, limit).await {
            Ok(beaten) => beaten,
            Err(error) => {
                for (call, news) in calls.iter().zip(sent) {
                    let mut newer = lock(&call.news);
                    newer.progress = newer.progress.take().or(news.progress);
                    newer.checkpoint = newer.checkpoint.take().or(news.checkpoint);
                }
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
        for lease in beaten.leases.iter().filter(|lease| lease.status != "ok") {
            self.lose(&lease.lease_token, &lease.status);
        }
        if beaten.draining {
            self.is_told_to_drain.set(true);
            self.drain.cancel();
        }
        Ok(())
    }

    fn lose(&self, lease_token: &str, why: &str) {
        let Some(call) = self.held.borrow().get(lease_token).cloned() else { return };
        let what = if why == "cancel" { "cancelled" } else { "the lease is lost" };
        tracing::info!("execution {}: {what}", call.job.execution_id);
        self.let_go(&call);
        call.dropped.cancel();
    }

    fn let_go(&self, call: &Held) {
        self.held.borrow_mut().remove(call.token());
        self.fewer.notify_one();
    }

    // Outcomes.

    async fn outbox_loop(&self) {
        loop {
            let (batch, others) = self.next_batch();
            if batch.is_empty() && others.is_empty() {
                self.mail.notified().await;
                continue;
            }
            self.sending.set(batch.len() + others.len());
            let others = async {
                for call in &others {
                    self.send_other(call).await;
                }
            };
            tokio::join!(self.complete(&batch), others);
            self.sending.set(0);
            self.fewer.notify_one();
            self.room.notify_one();
        }
    }

    /// Results that go together, and what else is to be told on the way.
    fn next_batch(&self) -> (Vec<Arc<Held>>, Vec<Arc<Held>>) {
        let (mut batch, mut others, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut outbox = self.outbox.borrow_mut();
        while let Some(call) = outbox.front().filter(|_| batch.len() < BATCH_RESULTS) {
            let length = match &*lock(&call.report) {
                Some(Report::Complete(text)) => Some(text.len()),
                _ => None,
            };
            if length.is_some_and(|length| !batch.is_empty() && bytes + length > BATCH_BYTES) {
                break;
            }
            bytes += length.unwrap_or_default();
            let Some(call) = outbox.pop_front() else { break };
            if length.is_some() { &mut batch } else { &mut others }.push(call);
        }
        (batch, others)
    }

    async fn complete(&self, batch: &[Arc<Held>]) {
        if batch.is_empty() {
            return;
        }
        match self.ask::<Completed>("complete", self.completion(batch), REQUEST_TIMEOUT).await {
            Ok(completed) => {
                for (call, answer) in batch.iter().zip(completed.results) {
                    match answer.status.as_str() {
                        "refused" => self.refused(call, &format!("{}: {}", answer.code, answer.detail)),
                        _ => self.let_go(call),
                    }
                }
            }
            // One of them spoils it for the others.
            Err(_) if batch.len() > 1 => {
                for call in batch {
                    Box::pin(self.complete(std::slice::from_ref(call))).await;
                }
            }
            Err(LinkError::Refused { status: 400 | 413, detail, .. }) => {
                *lock(&batch[0].report) = Some(Report::Fail(failure("result_refused", &detail, false)));
                self.send_other(&batch[0]).await;
            }
            Err(error) => self.refused(&batch[0], &error.to_string()),
        }
    }

    fn completion(&self, batch: &[Arc<Held>]) -> String {
        let results: Vec<String> = batch
            .iter()
            .filter_map(|call| match &*lock(&call.report) {
                Some(Report::Complete(text)) => Some(format!("{{{},\"result\":{text}}}", lease(call))),
                _ => None,
            })
            .collect();
        format!("{{{},\"results\":[{}]}}", self.who(), results.join(","))
    }

    async fn send_other(&self, call: &Arc<Held>) {
        let (route, members) = match lock(&call.report).clone() {
            Some(Report::Fail(members)) => ("fail", format!(",{members}")),
            _ => ("release", String::new()),
        };
        // The next attempt shall find it.
        if route == "fail"
            && lock(&call.news).checkpoint.is_some()
            && let Err(error) = self.heartbeat(std::slice::from_ref(call), REQUEST_TIMEOUT).await
        {
            tracing::warn!("execution {}: the last checkpoint was not stored: {error}", call.job.execution_id);
        }
        let body = format!("{{{},{}{members}}}", self.who(), lease(call));
        match self.ask::<IgnoredAny>(route, body, REQUEST_TIMEOUT).await {
            Ok(_) => self.let_go(call),
            Err(error) => self.refused(call, &error.to_string()),
        }
    }

    fn refused(&self, call: &Held, why: &str) {
        let Job { execution_id, attempt, .. } = &call.job;
        tracing::warn!("execution {execution_id}: the server refuses what came of attempt {attempt}: {why}");
        self.let_go(call);
    }

    async fn store_step(&self, call: &Held, name: &str, result: &RawValue) -> Result<Box<RawValue>, Failure> {
        let body = format!("{{{},{},\"name\":{},\"result\":{result}}}", self.who(), lease(call), quoted(name));
        match self.ask::<Step>("step", body, REQUEST_TIMEOUT).await {
            Ok(step) => Ok(step.result),
            Err(LinkError::Refused { status: 400, detail, .. }) => {
                Err(Failure::new("invalid_step", format!("step {name:?}: {detail}")))
            }
            Err(_) => {
                self.lose(call.token(), "lost");
                Err(Cancelled.into())
            }
        }
    }

    fn who(&self) -> String {
        format!("\"worker_id\":{}", quoted(&self.terms.worker_id))
    }

    // The end.

    async fn say_goodbye(&self, claims: tokio::task::JoinHandle<()>) {
        let deadline = Instant::now() + self.terms.grace;
        tracing::info!("draining: {} calls are held", self.held.borrow().len());
        self.room.notify_one();
        self.end_claims(claims).await;
        let unbegun: Vec<_> = self.held.borrow().values().filter(|call| call.begin()).cloned().collect();
        for call in unbegun {
            *lock(&call.report) = Some(Report::Release);
            self.outbox.borrow_mut().push_back(call);
            self.mail.notify_one();
        }
        while !self.is_idle() {
            if timeout_at(deadline, self.fewer.notified()).await.is_err() {
                break;
            }
        }
        let left: Vec<_> = self.held.borrow().values().cloned().collect();
        if !left.is_empty() {
            tracing::warn!("the grace time is over: {} calls are given up", left.len());
            left.iter().for_each(|call| call.dropped.cancel());
            let _ = self.heartbeat(&left, GOODBYE_TIMEOUT).await;
        }
        match self.link.post::<IgnoredAny>("deregister", format!("{{{}}}", self.who()), GOODBYE_TIMEOUT).await {
            Ok(_) => tracing::info!("deregistered"),
            Err(error) => tracing::warn!("not deregistered, the server will notice: {error}"),
        }
    }

    /// Ends the parked claim without losing what it may be bringing: the server is asked to answer it now.
    async fn end_claims(&self, claims: tokio::task::JoinHandle<()>) {
        let stop = claims.abort_handle();
        if !self.is_told_to_drain.get() {
            let asked = self.link.post::<IgnoredAny>("drain", format!("{{{}}}", self.who()), GOODBYE_TIMEOUT).await;
            if let Err(error) = asked {
                tracing::debug!("the server was not told of the drain: {error}");
                stop.abort();
            }
        }
        if timeout(GOODBYE_TIMEOUT, claims).await.is_err() {
            stop.abort();
        }
    }

    fn is_idle(&self) -> bool {
        self.held.borrow().is_empty() && self.outbox.borrow().is_empty() && self.sending.get() == 0
    }
}

/// The members of a `fail` beside worker and lease, as JSON without the braces.
pub(crate) fn failure(code: &str, message: &str, retryable: bool) -> String {
    let error = json!({"code": code, "message": message});
    format!("\"error\":{error},\"retryable\":{retryable}")
}

fn lease(call: &Held) -> String {
    format!("\"lease_token\":{}", quoted(call.token()))
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

async fn back_off(pause: &mut Duration) {
    // Workers that lost the same server do not come back at the same moment.
    let jitter = uuid::Uuid::new_v4().as_bytes()[0];
    sleep(pause.mul_f64(0.8 + 0.4 * f64::from(jitter) / 255.0)).await;
    *pause = (*pause * 2).min(PAUSE_MAX);
}

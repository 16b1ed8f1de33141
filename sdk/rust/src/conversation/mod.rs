//! The side of a worker that speaks to the server, on a thread and runtime of its own, so that a handler that blocks
//! everything neither loses its lease nor takes calls that nobody knows of. Runs no handlers.
//!
//! It registers, keeps a claim parked while there are free slots, sends heartbeats, and offers each outcome until the
//! server takes or refuses it. What may be repeated is repeated with back-off.

mod heartbeats;
mod outcomes;

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
use crate::failure::Failure;
use crate::held::{Held, Job, Report};
use crate::link::{Link, LinkError};
use crate::results::quoted;

const CLAIM_WAIT_MS: u64 = 20_000;
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
    Step {
        held: Arc<Held>,
        name: String,
        result: Box<RawValue>,
        reply: oneshot::Sender<Result<Box<RawValue>, Failure>>,
    },
}

/// What a conversation is about.
pub(crate) struct Terms {
    pub worker_id: String,
    /// The body of `register`.
    pub registration: String,
    /// The same without tools, for the end.
    pub leaving: String,
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
    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        route: &str,
        body: String,
        limit: Duration,
    ) -> Result<T, LinkError> {
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
                self.drain.cancel();
            }
        }
    }

    fn who(&self) -> String {
        format!("\"worker_id\":{}", quoted(&self.terms.worker_id))
    }

    fn let_go(&self, call: &Held) {
        self.held.borrow_mut().remove(call.token());
        self.fewer.notify_one();
    }

    // The end.

    async fn say_goodbye(&self, claims: tokio::task::JoinHandle<()>) {
        let deadline = Instant::now() + self.terms.grace;
        self.room.notify_one();
        self.end_claims(claims).await;
        tracing::info!("draining: nothing more is claimed, {} calls are held", self.held.borrow().len());
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

    /// Ends the parked claim without losing what it may be bringing: who offers no tools any more is answered now.
    async fn end_claims(&self, mut claims: tokio::task::JoinHandle<()>) {
        match self.link.post::<Registered>("register", self.terms.leaving.clone(), GOODBYE_TIMEOUT).await {
            Ok(_) => drop(timeout(GOODBYE_TIMEOUT, &mut claims).await),
            Err(error) => tracing::debug!("the server was not told of the drain: {error}"),
        }
        claims.abort();
    }

    fn is_idle(&self) -> bool {
        self.held.borrow().is_empty() && self.outbox.borrow().is_empty() && self.sending.get() == 0
    }
}

fn lease(call: &Held) -> String {
    format!("\"lease_token\":{}", quoted(call.token()))
}

async fn back_off(pause: &mut Duration) {
    // Workers that lost the same server do not come back at the same moment.
    let jitter = uuid::Uuid::new_v4().as_bytes()[0];
    sleep(pause.mul_f64(0.8 + 0.4 * f64::from(jitter) / 255.0)).await;
    *pause = (*pause * 2).min(PAUSE_MAX);
}

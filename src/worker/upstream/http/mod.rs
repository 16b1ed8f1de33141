//! A leg to a server over Streamable HTTP: which era it speaks, its session, calls and lists.
//! A session that the server forgot is opened anew; a call that may have run is never sent again.

mod exchange;
mod headers;
mod listen;
mod param_headers;
pub(super) mod sse;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url};
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, warn};

use self::exchange::{Outcome, Outgoing};
use self::headers::Given;
use self::param_headers::ToolHeaders;
use super::asides::{self, Caller, Correlation, Lists, Sink};
use super::call::{Answer, Bounds, CallError, Ends, TimeoutKind, Watched};
use super::handshake;
use super::leg::{LegContext, StartError};
use super::message::{self, Meta};
use super::request::Request;
use super::settings::{EraChoice, HttpSettings, LegLimits};
use super::snapshot::{ServerFacts, Tool};
use crate::model::revision::Revision;
use crate::worker::http_client::{self, describe};

/// The last request of a leg is not waited for longer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// An open leg over HTTP.
pub(super) struct HttpLeg {
    shared: Arc<Shared>,
    /// Ends the listening to notifications with the leg.
    _stop: DropGuard,
}

struct Shared {
    name: String,
    era: EraChoice,
    settings: HttpSettings,
    limits: LegLimits,
    correlation: Arc<Correlation>,
    /// What is declared to a server of revisions up to 2025-11-25.
    declared: Option<Box<RawValue>>,
    /// Resources that a server of 2026-07-28 is asked to tell of.
    uris: watch::Sender<Vec<String>>,
    client: reqwest::Client,
    url: Url,
    configured: HeaderMap,
    next_id: AtomicU64,
    slots: Semaphore,
    session: watch::Sender<Arc<Session>>,
    /// The newest session whose server has said whether it tells anything unasked.
    listening: watch::Sender<u64>,
    tool_headers: Mutex<ToolHeaders>,
    /// Held while a session is opened anew, so that many calls that miss it open one.
    reopening: tokio::sync::Mutex<()>,
    stop: CancellationToken,
    lost: CancellationToken,
    loss: Mutex<String>,
}

/// What was agreed with the server.
struct Session {
    generation: u64,
    given: Given,
    /// `None` while nothing is agreed yet.
    revision: Option<Revision>,
    facts: Option<ServerFacts>,
}

impl Session {
    fn before(revision: Option<Revision>) -> Self {
        Self { generation: 0, given: Given::default(), revision, facts: None }
    }
}

impl HttpLeg {
    /// Finds out what the server speaks and opens the conversation.
    ///
    /// # Errors
    /// Says why the server cannot be talked to.
    pub async fn open(settings: &HttpSettings, context: LegContext) -> Result<Self, StartError> {
        let url = Url::parse(&settings.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| StartError::permanent("its url is no http or https address"))?;
        let configured = headers::configured(&settings.headers).map_err(StartError::permanent)?;
        let client = client(settings, &url).map_err(|error| StartError::permanent(describe(error)))?;
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            name: context.name,
            era: context.era,
            settings: settings.clone(),
            limits: context.limits,
            correlation: context.correlation,
            declared: context.declared,
            uris: watch::Sender::new(Vec::new()),
            client,
            url,
            configured,
            next_id: AtomicU64::new(1),
            slots: Semaphore::new(context.limits.max_in_flight),
            session: watch::Sender::new(Arc::new(Session::before(None))),
            listening: watch::Sender::new(0),
            tool_headers: Mutex::default(),
            reopening: tokio::sync::Mutex::new(()),
            stop: stop.clone(),
            lost: CancellationToken::new(),
            loss: Mutex::default(),
        });
        let leg = Self { shared: shared.clone(), _stop: stop.drop_guard() };
        let session = shared.negotiate(1).await.map_err(StartError::passing)?;
        let generation = session.generation;
        shared.session.send_replace(Arc::new(session));
        tokio::spawn(listen::listen(shared.clone()));
        shared.listens_in(generation).await;
        Ok(leg)
    }

    pub fn facts(&self) -> ServerFacts {
        let session = self.shared.session();
        session.facts.clone().unwrap_or(ServerFacts {
            revision: session.revision.unwrap_or(Revision::LATEST_LEGACY),
            server_info: None,
            capabilities: None,
            instructions: None,
        })
    }

    /// The number of the session.
    pub fn generation(&self) -> u64 {
        self.shared.session().generation
    }

    /// Resolves when there is another session than that of this number.
    pub async fn renewed(&self, generation: u64) {
        let mut sessions = self.shared.session.subscribe();
        // Its sender is the leg's own.
        let _ = sessions.wait_for(|session| session.generation != generation).await;
    }

    pub async fn call(&self, request: &Request, bounds: Bounds, caller: &dyn Caller) -> Result<Answer, CallError> {
        let shared = &self.shared;
        let Ok(_slot) = shared.slots.try_acquire() else {
            return Err(CallError::not_started("too many calls are in flight"));
        };
        let (sink, asides) = mpsc::channel(asides::QUEUE);
        let mut flight = Flight::new(shared.clone());
        let _entered = shared.correlation.enter(flight.id, sink.clone());
        let reply = |frame| shared.reply(frame);
        let exchange = shared.call(request, &flight, sink);
        let watched = super::call::watch(exchange, asides, bounds, Ends { caller, reply: &reply }).await;
        match watched {
            Watched::Answered(answer) => {
                flight.landed = true;
                answer.map(|answer| message::admit(answer, shared.limits.max_result_bytes))
            }
            Watched::Cancelled => Err(CallError::Cancelled { dispatched: flight.abandon("the caller cancelled") }),
            Watched::TimedOut(kind) => match flight.abandon("the attempt took too long") {
                true => Err(CallError::TimedOut { kind }),
                false => Err(CallError::not_started("no new session was opened in time")),
            },
        }
    }

    /// Sends a harmless request of our own, in a new session if the server forgot the old one.
    pub async fn ask(&self, request: &Request) -> Result<Answer, CallError> {
        let members: Vec<_> = request.members.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        let ask = self.shared.with_session(request, |revision| message::params(revision, &members, Meta::default()));
        match timeout(self.shared.limits.request_timeout, ask).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::TimedOut { kind: TimeoutKind::Attempt }),
        }
    }

    pub async fn notify(&self, request: &Request) {
        let session = self.shared.session();
        let members: Vec<_> = request.members.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        let meta = Meta { passed: &request.meta, ..Meta::default() };
        let params = message::params(session.revision.unwrap_or(Revision::LATEST_LEGACY), &members, meta);
        let body = message::notification(&request.method, &params);
        if let Err(error) = self.shared.post_only(&session, &request.method, body).await {
            debug!(upstream = self.shared.name, error, "a notification did not reach the server");
        }
    }

    /// Listens for what a server of 2026-07-28 tells of these resources too.
    pub fn listen(&self, uris: &[String]) {
        self.shared.uris.send_replace(uris.to_vec());
    }

    /// Takes note of what the listed tools want in headers; takes tools out that a client must not offer.
    pub fn learn(&self, tools: &mut Vec<Tool>) {
        let shared = &self.shared;
        if !shared.session().revision.is_some_and(Revision::is_modern) {
            return;
        }
        let (headers, invalid) = param_headers::learn(tools);
        for tool in invalid {
            warn!(upstream = shared.name, tool, "the tool is left out: its x-mcp-header annotations are invalid");
        }
        *shared.tool_headers.lock().unwrap_or_else(PoisonError::into_inner) = headers;
    }

    pub fn lost(&self) -> CancellationToken {
        self.shared.lost.clone()
    }

    pub fn loss(&self) -> String {
        self.shared.loss.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the session, if there is one, and the listening.
    pub async fn close(&self) {
        let shared = &self.shared;
        shared.stop.cancel();
        let session = shared.session();
        if session.given.id.is_some() {
            let labels =
                headers::Labels { method: "", name: None, revision: session.revision, session: Some(&session.given) };
            let headers = headers::for_stream(&shared.configured, labels);
            let request = shared.client.delete(shared.url.clone()).headers(headers).timeout(CLOSE_TIMEOUT);
            if let Err(error) = request.send().await {
                debug!(upstream = shared.name, error = describe(error), "the session was not ended");
            }
        }
    }
}

/// A call under way; dropping it before it has landed tells the server to stop.
struct Flight {
    shared: Arc<Shared>,
    id: u64,
    /// Its request may have left.
    sent: AtomicBool,
    landed: bool,
    reason: &'static str,
}

impl Flight {
    fn new(shared: Arc<Shared>) -> Self {
        let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
        Self { shared, id, sent: AtomicBool::new(false), landed: false, reason: "the caller left" }
    }

    /// Gives the call up; returns whether it may have reached the server.
    fn abandon(mut self, reason: &'static str) -> bool {
        self.reason = reason;
        self.sent.load(Ordering::Acquire)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.landed || !self.sent.load(Ordering::Acquire) {
            return;
        }
        let session = self.shared.session();
        // In 2026-07-28 the closing of the stream is the cancellation.
        if !session.revision.is_some_and(Revision::is_modern) {
            self.shared.reply(message::cancelled(self.id, self.reason));
        }
    }
}

impl Shared {
    fn session(&self) -> Arc<Session> {
        self.session.borrow().clone()
    }

    fn mark_lost(&self, reason: &str) {
        reason.clone_into(&mut self.loss.lock().unwrap_or_else(PoisonError::into_inner));
        self.lost.cancel();
    }

    /// Sends a notification or an answer in the background.
    fn reply(&self, body: String) {
        let session = self.session();
        let labels = headers::Labels {
            method: "notifications/cancelled",
            name: None,
            revision: session.revision,
            session: Some(&session.given),
        };
        let request = self
            .client
            .post(self.url.clone())
            .headers(headers::for_post(&self.configured, labels))
            .timeout(self.limits.request_timeout)
            .body(body);
        let name = self.name.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = request.send().await {
                    debug!(upstream = name, error = describe(error), "a message did not reach the server");
                }
            });
        }
    }

    async fn call(&self, request: &Request, flight: &Flight, sink: Sink) -> Result<Answer, CallError> {
        let Flight { id, sent, .. } = flight;
        let id = *id;
        let mut session = self.session();
        let mut reopened = false;
        loop {
            let revision = session.revision.unwrap_or(Revision::LATEST_LEGACY);
            let outgoing = Outgoing {
                id,
                method: &request.method,
                name: request.header_name(),
                headers: [self.param_headers(request, revision), headers::of_trace(request, &self.configured)].concat(),
                params: message::request_params(revision, request, id),
                asides: Some(&sink),
            };
            sent.store(true, Ordering::Release);
            match self.exchange(&session, outgoing).await {
                Outcome::Answered { answer, .. } => return Ok(answer),
                Outcome::Failed(error) => return Err(error),
                Outcome::Refused(status) => return Err(refused(status)),
                Outcome::SessionGone if reopened => {
                    return Err(CallError::not_started("the server does not know the session that it just opened"));
                }
                // The server did not look at the call: it may be sent in a new session, once.
                Outcome::SessionGone => {
                    sent.store(false, Ordering::Release);
                    reopened = true;
                    session = self.reopen(session.generation).await.map_err(CallError::not_started)?;
                    self.listens_in(session.generation).await;
                }
            }
        }
    }

    async fn with_session(&self, request: &Request, params: impl Fn(Revision) -> String) -> Result<Answer, CallError> {
        let mut session = self.session();
        for _ in 0..2 {
            let params = params(session.revision.unwrap_or(Revision::LATEST_LEGACY));
            let outgoing = Outgoing { name: request.header_name(), ..self.own(&request.method, params) };
            match self.exchange(&session, outgoing).await {
                Outcome::Answered { answer, .. } => return Ok(answer),
                Outcome::Failed(error) => return Err(error),
                Outcome::Refused(status) => return Err(refused(status)),
                Outcome::SessionGone => {
                    session = self.reopen(session.generation).await.map_err(CallError::not_started)?;
                    self.listens_in(session.generation).await;
                }
            }
        }
        Err(CallError::not_started("the server does not know the session that it just opened"))
    }

    fn param_headers(&self, request: &Request, revision: Revision) -> Vec<(HeaderName, HeaderValue)> {
        if !revision.is_modern() || request.method != "tools/call" {
            return Vec::new();
        }
        let Some(tool) = request.header_name() else { return Vec::new() };
        let known = self.tool_headers.lock().unwrap_or_else(PoisonError::into_inner);
        let arguments = request.member("arguments");
        known.get(tool.as_ref()).map_or_else(Vec::new, |headers| param_headers::build(headers, arguments))
    }

    fn own<'a>(&self, method: &'a str, params: String) -> Outgoing<'a> {
        Outgoing {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            method,
            name: None,
            headers: Vec::new(),
            params,
            asides: None,
        }
    }

    /// Opens a session anew, unless somebody else has done so since `generation`.
    async fn reopen(&self, generation: u64) -> Result<Arc<Session>, String> {
        let _alone = self.reopening.lock().await;
        let current = self.session();
        if current.generation > generation {
            return Ok(current);
        }
        let session = match timeout(self.limits.request_timeout, self.negotiate(generation + 1)).await {
            Ok(Ok(session)) => Arc::new(session),
            Ok(Err(reason)) => {
                self.mark_lost(&reason);
                return Err(reason);
            }
            Err(_) => {
                self.mark_lost("it did not open a new session in time");
                return Err("the server did not open a new session in time".to_owned());
            }
        };
        self.session.send_replace(session.clone());
        // A server that was started anew may list other things.
        self.correlation.changes.add(Lists::ALL);
        Ok(session)
    }

    /// Finds the era: a modern answer to `server/discover` decides; anything else leads to `initialize`.
    async fn negotiate(&self, generation: u64) -> Result<Session, String> {
        match self.era {
            EraChoice::Legacy => self.initialize(generation).await,
            EraChoice::Modern => {
                let found = self.discover(generation).await?;
                found.ok_or_else(|| format!("it does not speak protocol revision {}", Revision::MODERN.name()))
            }
            EraChoice::Auto => match self.discover(generation).await? {
                Some(session) => Ok(session),
                None => self.initialize(generation).await,
            },
            EraChoice::LegacyFirst => match self.initialize(generation).await {
                Ok(session) => Ok(session),
                Err(reason) => self.discover(generation).await?.ok_or(reason),
            },
        }
    }

    /// Asks a server whether it speaks 2026-07-28; `None` if it does not say so.
    async fn discover(&self, generation: u64) -> Result<Option<Session>, String> {
        let before = Session::before(Some(Revision::MODERN));
        let ask = self.exchange(&before, self.own("server/discover", handshake::discover_params()));
        Ok(match timeout(self.settings.discover_timeout, ask).await {
            Ok(Outcome::Answered { answer: Answer::Result(result), .. }) => {
                let (revision, facts) = (Some(Revision::MODERN), handshake::read_discover(&result));
                facts.map(|facts| Session { generation, given: Given::default(), revision, facts: Some(facts) })
            }
            Ok(Outcome::Failed(CallError::NotStarted { reason })) => return Err(reason),
            Ok(Outcome::Refused(status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN))) => {
                return Err(status_text(status));
            }
            _ => None,
        })
    }

    async fn initialize(&self, generation: u64) -> Result<Session, String> {
        let before = Session::before(None);
        let outgoing = self.own("initialize", handshake::initialize_params(self.declared.as_deref()));
        let (result, given) = match self.exchange(&before, outgoing).await {
            Outcome::Answered { answer: Answer::Result(result), session } => (result, session),
            Outcome::Answered { answer: Answer::Error(error), .. } => {
                return Err(handshake::refused("initialize", &error));
            }
            Outcome::Refused(status) => return Err(status_text(status)),
            Outcome::SessionGone => return Err("it asks for a session before there is one".to_owned()),
            Outcome::Failed(CallError::NotStarted { reason }) => return Err(reason),
            Outcome::Failed(error) => return Err(format!("initialize was not answered: {error}")),
        };
        let facts = handshake::read_initialize(&result)?;
        let session = Session { generation, given, revision: Some(facts.revision), facts: Some(facts) };
        let initialized = message::notification("notifications/initialized", "{}");
        let status = self.post_only(&session, "notifications/initialized", initialized).await?;
        match status.is_success() {
            true => Ok(session),
            false => Err(format!("it refused notifications/initialized: {}", status_text(status))),
        }
    }
}

fn client(settings: &HttpSettings, url: &Url) -> reqwest::Result<reqwest::Client> {
    let mut builder = http_client::builder(url)
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(settings.pool_idle_timeout);
    let loopback = url.host_str().is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    });
    if loopback {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// What a status without a JSON-RPC error says about a call. These refuse a request before anything ran; after any
/// other the tool may have run.
fn refused(status: StatusCode) -> CallError {
    let before_running =
        status.is_redirection() || matches!(status.as_u16(), 401 | 403 | 404 | 405 | 413 | 415 | 421 | 429);
    match before_running {
        true => CallError::not_started(status_text(status)),
        false => CallError::lost(status_text(status)),
    }
}

fn status_text(status: StatusCode) -> String {
    match status.is_redirection() {
        true => format!("it answered with HTTP {} (redirects are not followed)", status.as_u16()),
        false => format!("it answered with HTTP {status}"),
    }
}

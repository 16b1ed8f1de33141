//! The bridge: each line of the client's to one exchange with the server, each message of the server's to one line. What
//! broke is sent again once, and only where a second sending is no second run. Keeps the legacy session alive over a
//! restart of the server; stores nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::keys::Keys;
use super::line::{Kind, Line};
use super::outage::{self, Outage};
use super::server::{self, Messages, Part, Session, Trouble};
use crate::cli::client::Client;
use crate::cli::failure::Exit;
use crate::mcp::frame;
use crate::mcp::id::Id;

/// How long a cancellation waits for the server to have the call that it cancels.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);
/// How long a notification may take.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a session that the server forgot is opened anew for one request.
const REOPENS_MAX: u32 = 3;

/// How the bridge treats what goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How long a server that is away is waited for.
    pub patience: Duration,
    /// Calls without a key are given one, so that they can be sent again.
    pub keys: bool,
}

/// One client at one server.
pub struct Bridge {
    client: Client,
    rules: Rules,
    lines: mpsc::Sender<String>,
    session: watch::Sender<Option<Arc<Session>>>,
    hello: Mutex<Hello>,
    /// Held while a session is opened anew.
    reopening: tokio::sync::Mutex<()>,
    flights: Mutex<HashMap<String, Arc<Flight>>>,
    keys: Keys,
    /// Requests under way.
    pub tracker: TaskTracker,
}

/// What opened the session, to open it again.
#[derive(Clone, Default)]
struct Hello {
    initialize: Option<String>,
    initialized: Option<String>,
}

/// A request under way.
struct Flight {
    modern: bool,
    /// The server has it: an answer has begun.
    taken: Notify,
    was_taken: AtomicBool,
    cancelled: CancellationToken,
    timed_out: AtomicBool,
}

/// A request and what came of it so far.
struct Request {
    id: Id<'static>,
    line: Line,
    /// What an identical call has in common with it, and the key that it was given here.
    given: Option<(String, String)>,
    /// The call as the client wrote it, where it was given a key.
    plain: Option<String>,
    flight: Arc<Flight>,
    /// The last progress that the client was told.
    progress: f64,
    repeated: bool,
}

impl Bridge {
    /// Lines for the client go to `lines`.
    pub fn new(client: Client, rules: Rules, lines: mpsc::Sender<String>) -> Arc<Bridge> {
        Arc::new(Bridge {
            client,
            rules,
            lines,
            session: watch::Sender::new(None),
            hello: Mutex::default(),
            reopening: tokio::sync::Mutex::new(()),
            flights: Mutex::default(),
            keys: Keys::default(),
            tracker: TaskTracker::new(),
        })
    }

    /// Takes one line of the client's. Requests run on; what has an order is done before the next line.
    pub async fn take(self: &Arc<Self>, text: String) {
        let line = Line::read(text);
        match &line.kind {
            Kind::Request(id) => {
                let id = id.clone();
                let opens = server::opens(&line);
                let request = self.enter(id, line);
                if opens {
                    return self.run(request).await;
                }
                let bridge = self.clone();
                self.tracker.spawn(async move { bridge.run(request).await });
            }
            Kind::Cancelled { request, timed_out } => self.cancel(request.canonical().to_owned(), *timed_out, line),
            Kind::Batch(_) | Kind::Unreadable(_) => {
                let bridge = self.clone();
                self.tracker.spawn(async move { bridge.pass(line).await });
            }
            Kind::Notification | Kind::Response => {
                if line.method == "notifications/initialized" {
                    self.hello().initialized = Some(line.text.clone());
                }
                let session = self.session();
                let sent = timeout(NOTIFY_TIMEOUT, server::post(&self.client, &line, session.as_deref())).await;
                if !matches!(sent, Ok(Ok(_))) {
                    eprintln!("connect: the server did not take {}", outage::shown(&line.method));
                }
            }
        }
    }

    fn enter(&self, id: Id<'static>, mut line: Line) -> Request {
        let mut plain = None;
        let given = line.unkeyed.take().filter(|_| self.rules.keys).and_then(|call| {
            let (key, text) = (self.keys.take(&call), line.text.clone());
            line.set_key(&key).then(|| plain = Some(text)).map(|()| (call, key))
        });
        let flight = Arc::new(Flight {
            modern: line.version.is_some(),
            taken: Notify::new(),
            was_taken: AtomicBool::new(false),
            cancelled: CancellationToken::new(),
            timed_out: AtomicBool::new(false),
        });
        self.flights().insert(id.canonical().to_owned(), flight.clone());
        Request { id, line, given, plain, flight, progress: f64::NEG_INFINITY, repeated: false }
    }

    async fn run(&self, mut request: Request) {
        let flight = request.flight.clone();
        let open = tokio::select! {
            open = self.exchange(&mut request) => open,
            // In 2026-07-28 the end of the stream is the cancellation, and nothing more is said about the request.
            () = flight.cancelled.cancelled(), if flight.modern => true,
        };
        let cancelled = flight.cancelled.is_cancelled() && !flight.timed_out.load(Ordering::Relaxed);
        if let Some((call, key)) = request.given.take().filter(|_| open && !cancelled) {
            self.keys.keep(call, key);
        }
        let mut flights = self.flights();
        if flights.get(request.id.canonical()).is_some_and(|known| Arc::ptr_eq(known, &flight)) {
            flights.remove(request.id.canonical());
        }
    }

    /// Sends a request until it is answered; returns whether its call may still go on.
    async fn exchange(&self, request: &mut Request) -> bool {
        let mut outage = Outage::new(self.rules.patience);
        let mut reopened = 0;
        loop {
            let session = self.session();
            let trouble = match self.attempt(request, session.as_deref()).await {
                Ok(open) => return open,
                Err(trouble) => trouble,
            };
            match trouble {
                Trouble::SessionGone if reopened < REOPENS_MAX => {
                    reopened += 1;
                    let generation = session.map_or(0, |session| session.generation);
                    if let Err(words) = self.reopen(generation).await {
                        return self.give_up(request, &outage::Reason::Away(words)).await;
                    }
                }
                Trouble::SessionGone => return self.give_up(request, &outage::Reason::Session).await,
                Trouble::Away(words) if !outage.wait(&words).await => {
                    let reason = match request.repeated {
                        true => outage::Reason::Lost(words),
                        false => outage::Reason::Away(words),
                    };
                    return self.give_up(request, &reason).await;
                }
                Trouble::Away(_) => {}
                // A call that was cancelled is not sent again; nobody waits for its answer.
                Trouble::Broke(_) if request.flight.cancelled.is_cancelled() => return true,
                Trouble::Broke(words) if request.repeated || !request.line.repeatable => {
                    return self.give_up(request, &outage::Reason::Lost(words)).await;
                }
                Trouble::Broke(words) => {
                    eprintln!("connect: {words}; sending {} again", outage::shown(&request.line.method));
                    request.repeated = true;
                    outage = Outage::new(self.rules.patience);
                    if !self.is_back(&mut outage).await {
                        return self.give_up(request, &outage::Reason::Lost(words)).await;
                    }
                }
                Trouble::Refused(status, body) => {
                    match body.as_deref().and_then(|body| server::refusal(body, &request.id)) {
                        Some(answer) => self.say(answer).await,
                        None => return self.give_up(request, &outage::Reason::Status(status.as_u16(), body)).await,
                    }
                    return false;
                }
            }
        }
    }

    /// Waits until the server answers at all: a dying one would only break the second sending too.
    async fn is_back(&self, outage: &mut Outage) -> bool {
        loop {
            match self.client.get("/healthz", &[]).await {
                Err(failure) if failure.exit == Exit::Unreachable as u8 => {
                    if !outage.wait(&failure.error).await {
                        return false;
                    }
                }
                // Whatever it says, it is there.
                _ => return true,
            }
        }
    }

    /// One exchange. Returns whether the call goes on after its answer.
    async fn attempt(&self, request: &mut Request, session: Option<&Session>) -> Result<bool, Trouble> {
        let response = server::post(&self.client, &request.line, session).await?;
        request.flight.was_taken.store(true, Ordering::Release);
        request.flight.taken.notify_waiters();
        let session_id = response.headers().get(crate::mcp::headers::SESSION_ID).cloned();
        let has_body = response.status() != reqwest::StatusCode::ACCEPTED;
        let mut messages = Messages::of(&self.client, response);
        while let Some(message) = messages.next().await? {
            match server::part(&message, &request.id) {
                Part::Answer { refuses_keys: true, .. } if request.given.is_some() => {
                    return self.without_our_key(request, session).await;
                }
                Part::Answer { open, .. } => {
                    if server::opens(&request.line) {
                        self.open(&request.line, &message, session_id);
                    }
                    self.say(message).await;
                    return Ok(open);
                }
                // After a second sending the server counts anew; a client is told rising values only.
                Part::Progress(value) if request.repeated && value <= request.progress => {}
                Part::Progress(value) => {
                    request.progress = value;
                    self.say(message).await;
                }
                Part::Other => self.say(message).await,
            }
        }
        if request.flight.cancelled.is_cancelled() {
            return Ok(true);
        }
        match has_body {
            true => Err(Trouble::Broke("the server ended its answer before it was whole".to_owned())),
            false => Err(Trouble::Refused(reqwest::StatusCode::ACCEPTED, None)),
        }
    }

    /// The call carries a key in its arguments, where only the server knows to look: that one counts, for repeats too.
    async fn without_our_key(&self, request: &mut Request, session: Option<&Session>) -> Result<bool, Trouble> {
        request.given = None;
        if let Some(text) = request.plain.take() {
            request.line.text = text;
        }
        Box::pin(self.attempt(request, session)).await
    }

    /// Answers a request with an error of our own; returns whether its call may go on.
    async fn give_up(&self, request: &Request, reason: &outage::Reason) -> bool {
        let mut text = String::new();
        frame::error(&mut text, Some(&request.id), &outage::error(reason, &self.client.address.base));
        self.say(text).await;
        matches!(reason, outage::Reason::Lost(_))
    }

    /// Passes on what is no single message, and whatever comes back.
    async fn pass(&self, line: Line) {
        let session = self.session();
        let answered = async {
            let response = server::post(&self.client, &line, session.as_deref()).await?;
            let mut messages = Messages::of(&self.client, response);
            while let Some(message) = messages.next().await? {
                self.say(message).await;
            }
            Ok::<(), Trouble>(())
        };
        let Err(trouble) = answered.await else { return };
        let reason = match trouble {
            Trouble::Refused(_, Some(body)) if body.trim_start().starts_with(r#"{"jsonrpc""#) => {
                return self.say(body).await;
            }
            Trouble::Refused(status, body) => outage::Reason::Status(status.as_u16(), body),
            Trouble::Away(words) => outage::Reason::Away(words),
            Trouble::Broke(words) => outage::Reason::Lost(words),
            Trouble::SessionGone => outage::Reason::Session,
        };
        let error = outage::error(&reason, &self.client.address.base);
        let answer = |id: Option<&Id<'_>>| {
            let mut text = String::new();
            frame::error(&mut text, id, &error);
            text
        };
        match &line.kind {
            Kind::Batch(ids) if ids.is_empty() => {}
            Kind::Batch(ids) => {
                let answers: Vec<String> = ids.iter().map(|id| answer(Some(id))).collect();
                self.say(format!("[{}]", answers.join(","))).await;
            }
            Kind::Unreadable(id) => self.say(answer(id.as_ref())).await,
            _ => {}
        }
    }

    fn cancel(self: &Arc<Self>, id: String, timed_out: bool, line: Line) {
        let Some(flight) = self.flights().get(&id).cloned() else { return };
        flight.timed_out.store(timed_out, Ordering::Relaxed);
        flight.cancelled.cancel();
        if flight.modern {
            return;
        }
        let bridge = self.clone();
        self.tracker.spawn(async move {
            // On a connection of its own it could overtake the call.
            let taken = flight.taken.notified();
            if !flight.was_taken.load(Ordering::Acquire) {
                let _ = timeout(CANCEL_PATIENCE, taken).await;
            }
            let session = bridge.session();
            let _ = timeout(NOTIFY_TIMEOUT, server::post(&bridge.client, &line, session.as_deref())).await;
        });
    }

    fn open(&self, line: &Line, answer: &str, id: Option<reqwest::header::HeaderValue>) {
        let generation = self.session().map_or(0, |session| session.generation) + 1;
        if let Some(session) = server::opened(answer, id, generation) {
            *self.hello() = Hello { initialize: Some(line.text.clone()), initialized: None };
            self.session.send_replace(Some(Arc::new(session)));
        }
    }

    /// Opens the session anew, unless that has been done since `generation`. Errors: why it can not be.
    async fn reopen(&self, generation: u64) -> Result<(), String> {
        let _alone = self.reopening.lock().await;
        if self.session().is_some_and(|session| session.generation > generation) {
            return Ok(());
        }
        let Hello { initialize, initialized } = self.hello().clone();
        let Some(initialize) = initialize else { return Err("there is no session to open anew".to_owned()) };
        let line = Line::read(initialize);
        let Kind::Request(id) = &line.kind else { return Err("there is no session to open anew".to_owned()) };
        let mut outage = Outage::new(self.rules.patience);
        let session = loop {
            match self.greet(&line, id, generation + 1).await {
                Ok(session) => break session,
                Err(Trouble::Away(words) | Trouble::Broke(words)) if outage.wait(&words).await => {}
                Err(Trouble::Away(words) | Trouble::Broke(words)) => return Err(words),
                Err(_) => return Err("the server does not open a new session".to_owned()),
            }
        };
        let tells_changes = session.tells_changes;
        let session = Arc::new(session);
        if let Some(initialized) = initialized {
            let _ = server::post(&self.client, &Line::read(initialized), Some(&session)).await;
        }
        self.session.send_replace(Some(session));
        if tells_changes {
            // A server that was started anew may have other tools.
            let mut news = String::new();
            frame::notification(&mut news, "notifications/tools/list_changed", None);
            self.say(news).await;
        }
        Ok(())
    }

    /// Sends `initialize` again; the client has its answer already.
    async fn greet(&self, line: &Line, id: &Id<'_>, generation: u64) -> Result<Session, Trouble> {
        let response = server::post(&self.client, line, None).await?;
        let session_id = response.headers().get(crate::mcp::headers::SESSION_ID).cloned();
        let mut messages = Messages::of(&self.client, response);
        while let Some(message) = messages.next().await? {
            if matches!(server::part(&message, id), Part::Answer { .. }) {
                let refused = Trouble::Refused(reqwest::StatusCode::OK, None);
                return server::opened(&message, session_id, generation).ok_or(refused);
            }
        }
        Err(Trouble::Broke("the server ended its answer before it was whole".to_owned()))
    }

    /// Listens to what the server says unasked in the legacy session there is, until it is dropped.
    pub async fn listen(self: Arc<Self>) {
        let mut sessions = self.session.subscribe();
        loop {
            let session = sessions.borrow_and_update().clone();
            let listening = async {
                match &session {
                    Some(session) if session.id.is_some() => self.listen_in(session).await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                () = listening => {}
                changed = sessions.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Returns when another session is there; waits for ever when this one has nothing to say.
    async fn listen_in(&self, session: &Session) {
        let mut pause = outage::FIRST_PAUSE;
        loop {
            let opened = Instant::now();
            let headers = server::headers_in(session);
            match self.client.exchange(reqwest::Method::GET, headers, String::new()).await {
                Ok(response) if response.status().is_success() => {
                    let mut messages = Messages::of(&self.client, response);
                    while let Ok(Some(message)) = messages.next().await {
                        self.say(message).await;
                    }
                    if opened.elapsed() > outage::LONGEST_PAUSE {
                        pause = outage::FIRST_PAUSE;
                    }
                }
                Ok(response) => match response.status() {
                    reqwest::StatusCode::NOT_FOUND if self.reopen(session.generation).await.is_ok() => return,
                    reqwest::StatusCode::NOT_FOUND => {}
                    status if status.is_server_error() => {}
                    // This server says nothing unasked.
                    _ => std::future::pending().await,
                },
                Err(_) => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(outage::LONGEST_PAUSE);
        }
    }

    /// Ends the session, if there is one.
    pub async fn leave(&self) {
        let Some(session) = self.session().filter(|session| session.id.is_some()) else { return };
        let ended = self.client.exchange(reqwest::Method::DELETE, server::headers_in(&session), String::new());
        // The server forgets it by itself, too.
        let _ = timeout(Duration::from_secs(1), ended).await;
    }

    /// Writes a message as a line.
    pub async fn say(&self, message: String) {
        let mut line = String::with_capacity(message.len() + 1);
        frame::line(&mut line, &message);
        // A client that is gone reads nothing more.
        let _ = self.lines.send(line).await;
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.borrow().clone()
    }

    fn hello(&self) -> std::sync::MutexGuard<'_, Hello> {
        self.hello.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flights(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Flight>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

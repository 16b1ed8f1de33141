//! One client's connection over which both sides say what they like, whenever they like: over a pair of pipes, or over the
//! two HTTP endpoints of 2024-11-05. Each request runs on a task of its own, so that a slow call delays no cancellation.
//! Reads and writes no bytes: lines come in and go out as whole messages.

mod batch;
mod opening;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use opentelemetry::trace::SpanKind;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use self::opening::Opened;
use super::admit::{self, Admitted, Body, Entered};
use super::answer;
use super::call::{Begun, Caller, Hold, Step, progress_params};
use super::envelope::Message;
use super::era::Ruling;
use super::face::Face;
use super::frame;
use super::going::{Answering, Finished, Going, Said};
use super::hearing::LegacyHearing;
use super::id::Id;
use super::input;
use super::method;
use super::reject::{RpcError, code};
use super::requests::Request;
use super::session::{Flight, InFlight};
use super::stream::carries_message;
use super::wishes::Wishes;
use super::written;
use crate::engine::client::ClientContext;
use crate::model::principal::Principal;
use crate::model::revision::{Era, Revision};
use crate::model::trace::TraceContext;
use crate::telemetry::{Place, Span, here};

/// A client's connection.
pub struct Connection {
    face: Arc<Face>,
    /// Who is at the other end.
    pub principal: Principal,
    /// What the rest of the program knows the connection by, where it has no session that is kept.
    id: String,
    /// Over a pair of pipes: nobody else is served, both eras are spoken, and nothing is kept of the session.
    is_pipe: bool,
    session: Mutex<Opened>,
    in_flight: InFlight,
    outbox: mpsc::Sender<Outgoing>,
    requests: TaskTracker,
    /// What the client of a pair of pipes has asked to hear.
    wishes: Arc<Wishes>,
    /// A request of 2026-07-28 has said what its client can do.
    is_known: AtomicBool,
    /// Where what is heard from the first `initialize` on goes.
    opening: Mutex<Option<oneshot::Sender<LegacyHearing>>>,
    /// Held while a session is opened, so that there is one.
    opening_now: tokio::sync::Mutex<()>,
    /// Nothing more comes from the client: streams that wait for news are over.
    pub read_out: CancellationToken,
    /// The client is gone: nobody waits for the answers to its requests.
    pub left: CancellationToken,
}

/// A message on its way to the client.
pub struct Outgoing {
    /// The message and a line break; of a long one what was put together of it.
    pub line: String,
    /// The rest of a long message and a line break.
    pub rest: Vec<Bytes>,
    /// Told once the line is written.
    pub hold: Option<Hold>,
}

/// What else a message came with, where it came over HTTP.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    /// Idempotency keys.
    pub keys: Vec<Vec<u8>>,
    /// Trace context.
    pub trace: TraceContext,
}

/// What a client gets of a connection: its messages.
pub struct Opening {
    /// The connection.
    pub connection: Arc<Connection>,
    /// What goes out.
    pub inbox: mpsc::Receiver<Outgoing>,
    /// What is heard from `initialize` on.
    heard: oneshot::Receiver<LegacyHearing>,
}

impl Opening {
    /// A connection of `principal`.
    pub fn new(face: &Arc<Face>, principal: Principal, is_pipe: bool) -> Opening {
        let (outbox, inbox) = mpsc::channel(face.settings.outbox_max.max(1));
        let (opening, heard) = oneshot::channel();
        let connection = Arc::new(Connection {
            face: face.clone(),
            principal,
            id: format!("stdio-{}", hex::encode(&crate::engine::entropy()[..8])),
            is_pipe,
            session: Mutex::default(),
            in_flight: InFlight::default(),
            outbox,
            requests: TaskTracker::new(),
            wishes: Arc::default(),
            is_known: AtomicBool::new(false),
            opening: Mutex::new(Some(opening)),
            opening_now: tokio::sync::Mutex::new(()),
            read_out: CancellationToken::new(),
            left: CancellationToken::new(),
        });
        Opening { connection, inbox, heard }
    }

    /// Tells the client what its upstreams say unasked, from its `initialize` on; the rest of what there is.
    pub fn announce(self) -> (Arc<Connection>, mpsc::Receiver<Outgoing>, tokio::task::JoinHandle<()>) {
        let Opening { connection, inbox, heard } = self;
        let announcing = connection.clone();
        let announced = tokio::spawn(async move {
            // A client of 2026-07-28 opens nothing.
            let Ok(mut hearing) = heard.await else { return };
            loop {
                let message = hearing.next().await;
                announcing.send(&message, None).await;
            }
        });
        (connection, inbox, announced)
    }
}

impl Connection {
    /// The requests that run.
    pub fn requests(&self) -> &TaskTracker {
        &self.requests
    }

    /// Takes one message in. Requests run on; everything else is done at once, in order.
    pub async fn take(self: &Arc<Self>, line: &[u8], heads: Heads) {
        let opened = self.opened();
        let entered = match admit::stdio(line, &self.face.settings.envelope, opened.revision) {
            Ok(entered) => entered,
            Err(refusal) => return self.send_error(refusal.id.as_ref(), &refusal.rejection.error).await,
        };
        if let Some((id, error)) = self.refused(&entered, &opened) {
            return self.send_error(id, &error).await;
        }
        match entered {
            Entered::One(admitted) => match (&admitted.message, &admitted.body) {
                (Message::Notification { method, .. }, Body::Other { params, .. }) => {
                    method::notified(&self.in_flight, method, params);
                }
                (Message::Request { id, .. }, Body::Other { params, .. })
                    if matches!(admitted.ruling, Ruling::Legacy { opens: true, .. }) =>
                {
                    let span = self.span(&heads);
                    let opening = async {
                        admit::told_of(&admitted.message, &admitted.body);
                        self.open(id, params).await;
                    };
                    here::within(span, opening).await;
                }
                (Message::Request { id, .. }, _) => {
                    // Entered here, in the order of the lines, so that a cancellation in the next line finds it.
                    let Some(place) = self.in_flight.enter(id, self.face.settings.in_flight_max) else {
                        let error = answer::overload("too many calls are in flight on this connection".into());
                        return self.send_error(Some(id), &error).await;
                    };
                    let connection = self.clone();
                    let line = line.to_vec();
                    self.requests.spawn(async move {
                        let flight = place.flight.clone();
                        let span = connection.span(&heads);
                        let request = here::within(span, connection.request(&line, flight, heads));
                        connection.while_there(request.instrument(here::logged())).await;
                        connection.in_flight.leave(&place);
                    });
                }
                (Message::Response { id, outcome }, _) => {
                    // The next line may be a cancellation, which waits for no commit.
                    if let Some(told) = input::told(id.as_ref(), outcome) {
                        let connection = self.clone();
                        self.requests.spawn(async move {
                            connection.face.told_by_client(told, &connection.principal).await;
                        });
                    }
                }
                _ => {}
            },
            Entered::Batch(items) => {
                let revision = opened.revision.unwrap_or(Revision::ASSUMED);
                let items: Vec<String> = items.iter().map(|item| item.get().to_owned()).collect();
                let connection = self.clone();
                let span = self.span(&heads);
                span.name("batch");
                self.requests.spawn(async move {
                    let answering = here::within(span, connection.batch(items, revision));
                    connection.while_there(answering).await;
                });
            }
        }
    }

    /// The span of a request of this connection.
    fn span(&self, heads: &Heads) -> Span {
        let traces = &self.face.engine.settings().traces;
        if !traces.is_on() {
            return Span::default();
        }
        let parent = heads.trace.traceparent.as_deref().and_then(Place::parse);
        let span = traces.entry("request", SpanKind::Server, parent);
        span.set("durable_mcp.instance_age_s", traces.age_seconds());
        span
    }

    /// Answers as long as there is somebody to answer.
    async fn while_there(&self, answering: impl Future<Output = ()>) {
        tokio::select! {
            () = answering => {}
            () = self.left.cancelled() => {}
        }
    }

    /// Runs one request. The line is read a second time here: parsing is cheap, and the task owns what it borrows.
    async fn request(&self, line: &[u8], flight: Arc<Flight>, heads: Heads) {
        let opened = self.opened();
        let Ok(Entered::One(admitted)) = admit::stdio(line, &self.face.settings.envelope, opened.revision) else {
            return;
        };
        let Admitted { message, ruling, body } = *admitted;
        let Message::Request { id, method, .. } = &message else { return };
        admit::told_of(&message, &body);
        let revision = match ruling {
            Ruling::Modern { revision } => revision,
            Ruling::Legacy { revision, .. } => revision.unwrap_or(Revision::ASSUMED),
        };
        match body {
            Body::Call(call) => {
                let client = self.client(&opened, (revision, &call.meta));
                let named = call.meta.protocol.client_info.and_then(method::client_name);
                let name = named.or(opened.client_name).unwrap_or_default();
                let caller =
                    Caller { key_headers: heads.keys, trace: heads.trace, ..self.caller(name, revision.era(), client) };
                let token = call.meta.progress_token.clone();
                let begun = self.face.call(&call, &caller, Some(flight)).await;
                self.answer(id, begun, (token, revision)).await;
            }
            Body::Other { params, .. } if *method == "tasks/result" && revision == Revision::V2025_11_25 => {
                let client = self.legacy_client(&opened);
                let caller = self.caller(opened.client_name.unwrap_or_default(), Era::Legacy, client);
                let begun = self.face.task_result(&params, &caller, Some(flight)).await;
                self.answer(id, begun, (None, revision)).await;
            }
            Body::Other { params, meta } => {
                let asker = self.asker(&opened, (revision, &meta), flight.withdrawn.clone());
                let request = Request { id, method, params: &params, raw: message.params(), meta: &meta };
                match self.face.request(request, &asker).await {
                    Answering::Now(finished) => self.send_finished(id, &finished).await,
                    Answering::Going(going) => self.go(id, going).await,
                }
            }
        }
    }

    /// Tells what comes before an answer, and the answer.
    async fn go(&self, id: &Id<'_>, mut going: Going) {
        let is_stream = going.is_stream;
        loop {
            let said = tokio::select! {
                said = going.next() => said,
                () = self.read_out.cancelled(), if is_stream => return,
            };
            match said {
                Said::Message(message) => self.send(&message, None).await,
                Said::End(finished) => return self.send_finished(id, &finished).await,
                Said::Over => return,
            }
        }
    }

    async fn send_finished(&self, id: &Id<'_>, finished: &Finished) {
        let mut message = String::new();
        finished.write(&mut message, id);
        self.send(&message, None).await;
    }

    async fn answer(&self, id: &Id<'_>, begun: Begun, (token, revision): (Option<Id<'_>>, Revision)) {
        let keep_alive = Duration::from_millis(self.face.settings.keep_alive_ms.max(1));
        let answered = match begun {
            Begun::Answer(answered) => answered,
            Begun::Waiting(mut conversation) => loop {
                let progress = tokio::select! {
                    biased;
                    step = conversation.step() => match step {
                        Step::Answer(_) if conversation.is_withdrawn() => return,
                        Step::Answer(answered) => break answered,
                        Step::Progress(progress) => progress,
                        Step::Message(notice) => {
                            let mut message = String::new();
                            frame::notification(&mut message, &notice.method, notice.params.as_deref());
                            self.send(&message, None).await;
                            continue;
                        }
                        Step::Asked(said) => {
                            for said in said {
                                self.send(&said.message, None).await;
                            }
                            continue;
                        }
                    },
                    () = tokio::time::sleep(keep_alive), if token.is_some() => conversation.still_there(),
                };
                if let Some(token) = &token {
                    let params = progress_params(token, &progress, carries_message(revision));
                    let mut message = String::new();
                    frame::notification(&mut message, "notifications/progress", Some(&params));
                    self.send(&message, None).await;
                }
            },
        };
        let (reply, hold) = answered.split();
        let written::Outgoing { head, mut rest } = reply.message(id);
        if rest.is_empty() {
            return self.send(&head, Some(hold)).await;
        }
        rest.push(Bytes::from_static(b"\n"));
        let _ = self.outbox.send(Outgoing { line: head, rest, hold: Some(hold) }).await;
    }

    /// The error of a message that has no place on this kind of connection, and the id it is answered under.
    fn refused<'a>(&self, entered: &'a Entered<'_>, opened: &Opened) -> Option<(Option<&'a Id<'a>>, RpcError)> {
        const NO_SESSION: &str = "there is no session yet; send initialize first";
        if self.is_pipe {
            return None;
        }
        let Entered::One(admitted) = entered else {
            let error = || (None, RpcError::new(code::INVALID_REQUEST, NO_SESSION));
            return opened.revision.is_none().then(error);
        };
        let Message::Request { id, method, .. } = &admitted.message else { return None };
        let words = match admitted.ruling {
            Ruling::Modern { .. } => "2026-07-28 is spoken at the other endpoint only; here an earlier revision is",
            Ruling::Legacy { opens: false, .. } if opened.revision.is_none() && *method != "ping" => NO_SESSION,
            Ruling::Legacy { .. } => return None,
        };
        Some((Some(id), RpcError::new(code::INVALID_REQUEST, words)))
    }

    fn caller(&self, name: String, era: Era, client: Arc<ClientContext>) -> Caller {
        let principal = self.principal.clone();
        Caller { principal, name, era, key_headers: Vec::new(), client, trace: TraceContext::default() }
    }

    /// Tells the client that something could not be taken in.
    pub async fn send_error(&self, id: Option<&Id<'_>>, error: &RpcError) {
        let mut message = String::new();
        frame::error(&mut message, id, error);
        self.send(&message, None).await;
    }

    async fn send(&self, message: &str, hold: Option<Hold>) {
        let mut line = String::with_capacity(message.len() + 1);
        frame::line(&mut line, message);
        // A closed outbox means that the client is gone; the hold drops as unanswered.
        let _ = self.outbox.send(Outgoing { line, rest: Vec::new(), hold }).await;
    }
}

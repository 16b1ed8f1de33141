//! MCP over stdin and stdout: one client, one connection, both eras. Each request runs on a task of its own, so that a
//! slow call delays no cancellation. At the end of stdin running calls may linger; the work never depends on the pipe.

mod lines;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::lines::{Line, read_line};
use super::admit::{self, Admitted, Body, Entered};
use super::answer;
use super::call::{Begun, Caller, Hold, Step, progress_params};
use super::envelope::Message;
use super::era::Ruling;
use super::face::Face;
use super::frame;
use super::going::{Answering, Finished, Going, Said};
use super::hearing::{Ear, LegacyHearing};
use super::id::Id;
use super::input;
use super::method::{self, Hello};
use super::reject::{RpcError, code};
use super::requests::{Asker, Request};
use super::session::InFlight;
use super::stream::{carries_message, end_of};
use super::wishes::Wishes;
use crate::engine::client::ClientContext;
use crate::model::principal::Principal;
use crate::model::revision::{Era, Revision};
use crate::model::trace::TraceContext;

/// Messages that may wait for a client that does not read.
const OUTBOX_MAX: usize = 1_024;

/// Messages written with one system call, when so many wait.
const LINES_AT_ONCE: usize = 64;

/// A connection over a pair of pipes.
pub struct Connection {
    face: Arc<Face>,
    principal: Principal,
    /// What the rest of the program knows the connection by.
    id: String,
    session: Mutex<Opened>,
    in_flight: InFlight,
    outbox: mpsc::Sender<Outgoing>,
    requests: TaskTracker,
    /// What the client has asked to hear.
    wishes: Arc<Wishes>,
    /// A request of 2026-07-28 has said what its client can do.
    is_known: AtomicBool,
    /// Where what is heard from the first `initialize` on goes.
    opening: Mutex<Option<oneshot::Sender<LegacyHearing>>>,
    /// Nothing more comes from the client: streams that wait for news are over.
    read_out: CancellationToken,
    /// The client is gone: nobody waits for the answers to its requests.
    left: CancellationToken,
}

/// What ends the waiting for answers once stdin has ended.
pub struct Leaving<G> {
    /// Running calls get so long.
    pub linger: Duration,
    /// Ends when the client is seen to be gone. The end of stdin alone says only that it has nothing more to ask.
    pub gone: G,
}

/// How a conversation ended.
pub struct Ended {
    /// Whether stdin ended in order.
    pub read: std::io::Result<()>,
    /// When the time to linger is over.
    pub linger_until: Instant,
}

/// What `initialize` settled.
#[derive(Clone, Debug, Default)]
struct Opened {
    revision: Option<Revision>,
    client_name: Option<String>,
    client: Arc<ClientContext>,
}

struct Outgoing {
    line: String,
    /// Told once the line is written.
    hold: Option<Hold>,
}

/// Serves one client until its stdin ends, then until its running calls are answered, it is gone, or its time has passed.
pub async fn serve<R, W, G>(face: Arc<Face>, input: R, output: W, leaving: Leaving<G>) -> Ended
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
    G: Future<Output = ()>,
{
    let (outbox, inbox) = mpsc::channel(OUTBOX_MAX);
    let writer = tokio::spawn(write(output, inbox));
    let (opening, opened) = oneshot::channel();
    let connection = Arc::new(Connection {
        face: face.clone(),
        principal: Principal::anonymous(),
        id: format!("stdio-{}", hex::encode(&crate::engine::entropy()[..8])),
        session: Mutex::default(),
        in_flight: InFlight::default(),
        outbox,
        requests: TaskTracker::new(),
        wishes: Arc::default(),
        is_known: AtomicBool::new(false),
        opening: Mutex::new(Some(opening)),
        read_out: CancellationToken::new(),
        left: CancellationToken::new(),
    });
    let changes = tokio::spawn(announce_changes(connection.clone(), opened));
    let read = connection.read(input).await;
    let linger_until = Instant::now() + leaving.linger;
    changes.abort();
    connection.read_out.cancel();
    connection.requests.close();
    let answered = tokio::select! {
        biased;
        () = connection.requests.wait() => true,
        () = face.draining.cancelled() => false,
        () = leaving.gone => {
            // As with a connection that is cut: the callers leave, and each tool's policy says what that means.
            connection.left.cancel();
            connection.requests.wait().await;
            false
        }
        // The callers are gone too; their executions go on or are settled by the process's end.
        () = tokio::time::sleep_until(linger_until) => false,
    };
    drop(connection);
    if !answered {
        // Requests that still run hold their end of the channel, so that the writer would wait for them.
        writer.abort();
    }
    // A writer that was ended with its client has nothing to report.
    let _ = writer.await;
    Ended { read, linger_until }
}

async fn write<W: AsyncWrite + Unpin>(mut output: W, mut inbox: mpsc::Receiver<Outgoing>) {
    let mut waiting: Vec<Outgoing> = Vec::with_capacity(LINES_AT_ONCE);
    let mut lines = String::new();
    while inbox.recv_many(&mut waiting, LINES_AT_ONCE).await > 0 {
        lines.clear();
        waiting.iter().for_each(|outgoing| lines.push_str(&outgoing.line));
        let written = async {
            output.write_all(lines.as_bytes()).await?;
            output.flush().await
        };
        if written.await.is_err() {
            // The client closed its end: whoever still answers finds a closed channel.
            return;
        }
        waiting.drain(..).filter_map(|outgoing| outgoing.hold).for_each(Hold::written);
    }
}

/// Tells the client what its upstreams say unasked, from its `initialize` on.
async fn announce_changes(connection: Arc<Connection>, opened: oneshot::Receiver<LegacyHearing>) {
    // A client of 2026-07-28 opens nothing.
    let Ok(mut hearing) = opened.await else { return };
    loop {
        let message = hearing.next().await;
        connection.send(&message, None).await;
    }
}

impl Connection {
    async fn read<R: AsyncBufRead + Unpin>(self: &Arc<Self>, mut input: R) -> std::io::Result<()> {
        let bytes_max = self.face.settings.envelope.bytes_max;
        let mut line = Vec::new();
        loop {
            line.clear();
            match read_line(&mut input, &mut line, bytes_max).await? {
                Line::End => return Ok(()),
                Line::TooLong => {
                    let words = format!("the message is longer than {bytes_max} bytes");
                    self.send_error(None, &RpcError::new(code::INVALID_REQUEST, words)).await;
                }
                Line::Whole if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole => self.take(&line).await,
            }
        }
    }

    /// Takes one line in. Requests run on; everything else is done at once, in order.
    async fn take(self: &Arc<Self>, line: &[u8]) {
        let opened = self.opened();
        let entered = match admit::stdio(line, &self.face.settings.envelope, opened.revision) {
            Ok(entered) => entered,
            Err(refusal) => return self.send_error(refusal.id.as_ref(), &refusal.rejection.error).await,
        };
        match entered {
            Entered::One(admitted) => match (&admitted.message, &admitted.body) {
                (Message::Notification { method, .. }, Body::Other { params, .. }) => {
                    method::notified(&self.in_flight, method, params);
                }
                (Message::Request { id, .. }, Body::Other { params, .. })
                    if matches!(admitted.ruling, Ruling::Legacy { opens: true, .. }) =>
                {
                    self.open(id, params).await;
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
                        connection.while_there(connection.request(&line, flight)).await;
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
                self.requests.spawn(async move { connection.while_there(connection.batch(items, revision)).await });
            }
        }
    }

    /// Answers as long as there is somebody to answer.
    async fn while_there(&self, answering: impl Future<Output = ()>) {
        tokio::select! {
            () = answering => {}
            () = self.left.cancelled() => {}
        }
    }

    async fn open(&self, id: &Id<'_>, params: &super::meta::Params<'_>) {
        let hello = match Hello::read(params) {
            Ok(hello) => hello,
            Err(error) => return self.send_error(Some(id), &error).await,
        };
        let Hello { revision, client_name, capabilities, .. } = hello;
        let client = Arc::new(ClientContext {
            revision: Some(revision.name().to_owned()),
            session: Some(self.id.clone()),
            capabilities: capabilities.and_then(|text| RawValue::from_string(text.to_string()).ok()),
            log_level: None,
        });
        // Before anything that waits for the server, which may wait for this.
        self.face.engine.only_client(client.clone());
        let marks = self.face.offering(&self.principal.namespace).await.marks;
        let result = self.face.initialize_result(revision, &self.principal).await;
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) =
            Opened { revision: Some(revision), client_name, client };
        self.wishes.set_told(marks);
        // What is told from here on is heard, and passed on once the answer is.
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner).take();
        let opening = opening.map(|opening| {
            let ear = Ear { principal: self.principal.clone(), session: Some(self.id.clone()) };
            (opening, LegacyHearing::new(&self.face, ear, &self.wishes))
        });
        let mut message = String::new();
        frame::result(&mut message, id, &result);
        self.send(&message, None).await;
        if let Some((opening, hearing)) = opening {
            let _ = opening.send(hearing);
        }
    }

    /// Runs one request. The line is read a second time here: parsing is cheap, and the task owns what it borrows.
    async fn request(&self, line: &[u8], flight: Arc<super::session::Flight>) {
        let opened = self.opened();
        let Ok(Entered::One(admitted)) = admit::stdio(line, &self.face.settings.envelope, opened.revision) else {
            return;
        };
        let Admitted { message, ruling, body } = *admitted;
        let Message::Request { id, method, .. } = &message else { return };
        let revision = match ruling {
            Ruling::Modern { revision } => revision,
            Ruling::Legacy { revision, .. } => revision.unwrap_or(Revision::ASSUMED),
        };
        match body {
            Body::Call(call) => {
                let client = self.client(&opened, (revision, &call.meta));
                let named = call.meta.protocol.client_info.and_then(method::client_name);
                let name = named.or(opened.client_name).unwrap_or_default();
                let caller = self.caller(name, revision.era(), client);
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

    /// The client that `initialize` told of, with what it has asked for since.
    fn legacy_client(&self, opened: &Opened) -> Arc<ClientContext> {
        match self.wishes.level() {
            None => opened.client.clone(),
            Some(level) => {
                let log_level = Some(level.as_str().to_owned());
                Arc::new(ClientContext { log_level, ..(*opened.client).clone() })
            }
        }
    }

    /// The client of a request.
    fn client(&self, opened: &Opened, (revision, meta): (Revision, &super::meta::Meta<'_>)) -> Arc<ClientContext> {
        if !revision.is_modern() {
            return self.legacy_client(opened);
        }
        let client = method::modern_client(meta, Some(&self.id));
        // Nobody else is served over this pipe; the first request says as much of it as any.
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.face.engine.only_client(client.clone());
        }
        client
    }

    fn asker(
        &self,
        opened: &Opened,
        (revision, meta): (Revision, &super::meta::Meta<'_>),
        withdrawn: CancellationToken,
    ) -> Asker {
        let client = self.client(opened, (revision, meta));
        let wishes = (!revision.is_modern()).then(|| self.wishes.clone());
        Asker { principal: self.principal.clone(), revision, client, wishes, session: None, withdrawn }
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
        let mut message = String::new();
        reply.write(&mut message, id);
        self.send(&message, Some(hold)).await;
    }

    async fn batch(&self, items: Vec<String>, revision: Revision) {
        let opened = self.opened();
        let answers = items.iter().map(|item| self.batch_item(item, revision, &opened));
        let answers: Vec<String> = futures_util::future::join_all(answers).await.into_iter().flatten().collect();
        if !answers.is_empty() {
            self.send(&format!("[{}]", answers.join(",")), None).await;
        }
    }

    async fn batch_item(&self, item: &str, revision: Revision, opened: &Opened) -> Option<String> {
        let raw: &serde_json::value::RawValue = serde_json::from_str(item).ok()?;
        let mut out = String::new();
        let admitted = match admit::batch_element(raw, revision) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                frame::error(&mut out, refusal.id.as_ref(), &refusal.rejection.error);
                return Some(out);
            }
        };
        match (&admitted.message, &admitted.body) {
            (Message::Request { id, .. }, Body::Call(call)) => {
                let name = opened.client_name.clone().unwrap_or_default();
                let caller = self.caller(name, Era::Legacy, method::unasked(&self.legacy_client(opened)));
                let answered = end_of(self.face.call(call, &caller, None).await).await;
                answered.reply.write(&mut out, id);
                answered.written();
                Some(out)
            }
            (Message::Request { id, method, params: raw }, Body::Other { params, meta }) => {
                let asker = self.asker(opened, (revision, meta), CancellationToken::new());
                let request = Request { id, method, params, raw: *raw, meta };
                self.face.request(request, &asker).await.end().await.write(&mut out, id);
                Some(out)
            }
            (Message::Notification { method, .. }, Body::Other { params, .. }) => {
                method::notified(&self.in_flight, method, params);
                None
            }
            (Message::Response { id, outcome }, _) => {
                if let Some(told) = input::told(id.as_ref(), outcome) {
                    self.face.told_by_client(told, &self.principal).await;
                }
                None
            }
            _ => None,
        }
    }

    fn caller(&self, name: String, era: Era, client: Arc<ClientContext>) -> Caller {
        let principal = self.principal.clone();
        Caller { principal, name, era, key_headers: Vec::new(), client, trace: TraceContext::default() }
    }

    async fn send_error(&self, id: Option<&Id<'_>>, error: &RpcError) {
        let mut message = String::new();
        frame::error(&mut message, id, error);
        self.send(&message, None).await;
    }

    async fn send(&self, message: &str, hold: Option<Hold>) {
        let mut line = String::with_capacity(message.len() + 1);
        frame::line(&mut line, message);
        // A closed outbox means that the client is gone; the hold drops as unanswered.
        let _ = self.outbox.send(Outgoing { line, hold }).await;
    }

    fn opened(&self) -> Opened {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

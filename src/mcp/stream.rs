//! How an answer is written over HTTP: a JSON body, or an event stream that keeps the line open. A body that is dropped
//! before it was taken whole leaves the execution's caller uncounted as answered.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body::{Frame, SizeHint};

use super::answer::Reply;
use super::call::{Answered, Begun, Conversation, Hold, Step, progress_params};
use super::face::Face;
use super::frame;
use super::hearing::{Ear, LegacyHearing};
use super::http::{Exchange, status_of};
use super::id::Id;
use super::session::Session;
use crate::engine::waiters::Progress;
use crate::model::revision::{Era, Revision};

/// What a short wait brought.
pub(super) enum Soon {
    /// The answer.
    Answer(Box<Answered>),
    /// A report that has to be told now.
    Progress(Progress),
    /// Nothing.
    NotYet,
}

/// Waits a moment for the answer.
pub(super) async fn soon(conversation: &mut Conversation, patience_ms: u64, follows_progress: bool) -> Soon {
    let patience = tokio::time::sleep(Duration::from_millis(patience_ms.min(86_400_000)));
    tokio::pin!(patience);
    loop {
        tokio::select! {
            biased;
            step = conversation.step() => match step {
                Step::Answer(answered) => return Soon::Answer(Box::new(answered)),
                Step::Progress(progress) if follows_progress => return Soon::Progress(progress),
                Step::Progress(_) | Step::Message(_) | Step::Asked(_) => {}
            },
            () = &mut patience => return Soon::NotYet,
        }
    }
}

/// Waits for the answer, whatever is reported meanwhile.
pub(super) async fn end_of(begun: Begun) -> Answered {
    match begun {
        Begun::Answer(answered) => answered,
        Begun::Waiting(mut conversation) => loop {
            if let Step::Answer(answered) = conversation.step().await {
                return answered;
            }
        },
    }
}

/// Appends a response.
pub(super) fn push_reply(out: &mut String, id: &Id<'_>, reply: &Reply) {
    match reply {
        Reply::Result(result) => frame::result(out, id, result),
        Reply::RawError(error) => frame::raw_error(out, Some(id), error),
        Reply::Error(error) => frame::error(out, Some(id), error),
    }
}

/// The answer as one JSON body.
pub(super) fn json_answer(id: &Id<'_>, answered: Answered, era: Era) -> Response {
    let (reply, hold) = answered.split();
    let mut text = String::new();
    push_reply(&mut text, id, &reply);
    let status = status_of(&reply, era);
    let body = Whole { bytes: Some(Bytes::from(text)), hold: Some(hold) };
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Bytes of an answer handed to the connection at once. It asks for the next piece only when it has room, so a large
/// answer counts as written only when most of it is on its way, and not when a client left in the middle.
const PIECE_BYTES: usize = 64 << 10;

/// A body of one answer that knows whether it was taken whole.
struct Whole {
    bytes: Option<Bytes>,
    hold: Option<Hold>,
}

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(mut rest) = self.bytes.take() else { return Poll::Ready(None) };
        if rest.len() > PIECE_BYTES {
            let piece = rest.split_to(PIECE_BYTES);
            self.bytes = Some(rest);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(hold) = self.hold.take() {
            hold.written();
        }
        Poll::Ready(Some(Ok(Frame::data(rest))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// A conversation that goes on as a stream.
pub(super) struct Talk {
    /// The conversation.
    pub conversation: Box<Conversation>,
    /// A report that came before the stream was opened.
    pub early: Option<Progress>,
    /// What the answer has to fit.
    pub exchange: Exchange,
}

/// The answer as a stream of its own, although it is there already.
pub(super) fn of_answer(_face: &Face, id: &Id<'_>, answered: Answered, exchange: Exchange) -> Response {
    let (reply, hold) = answered.split();
    let mut message = String::new();
    push_reply(&mut message, id, &reply);
    let mut event = String::new();
    frame::event(&mut event, None, &message);
    drop(exchange);
    sse(Body::new(Whole { bytes: Some(Bytes::from(event)), hold: Some(hold) }))
}

/// The conversation as a stream: progress, signs of life, the answer, the end.
pub(super) fn of_conversation(face: &Arc<Face>, id: &Id<'_>, talk: Talk) -> Response {
    let keep_alive = Duration::from_millis(face.settings.keep_alive_ms.max(1));
    let state = Streaming { id: id.clone().into_owned(), talk: Some(talk), hold: None, keep_alive };
    let stream = futures_util::stream::unfold(state, |mut state| async move {
        let chunk = state.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), state))
    });
    sse(Body::from_stream(stream))
}

struct Streaming {
    id: Id<'static>,
    talk: Option<Talk>,
    hold: Option<Hold>,
    keep_alive: Duration,
}

impl Streaming {
    /// The next piece to write. The answer counts as written once the piece after it is asked for.
    async fn next(&mut self) -> Option<String> {
        if let Some(hold) = self.hold.take() {
            hold.written();
        }
        let talk = self.talk.as_mut()?;
        if let Some(progress) = talk.early.take() {
            return Some(progress_event(&talk.exchange, &progress));
        }
        loop {
            let step = tokio::select! {
                biased;
                step = talk.conversation.step() => step,
                () = tokio::time::sleep(self.keep_alive) => {
                    return Some(match &talk.exchange.token {
                        // The comment keeps the line, the notification keeps a client's own timer.
                        Some(_) => {
                            let sign = talk.conversation.still_there();
                            format!("{}{}", frame::KEEP_ALIVE, progress_event(&talk.exchange, &sign))
                        }
                        None => frame::KEEP_ALIVE.to_owned(),
                    });
                }
            };
            match step {
                Step::Progress(progress) if talk.exchange.token.is_some() => {
                    return Some(progress_event(&talk.exchange, &progress));
                }
                Step::Progress(_) | Step::Message(_) | Step::Asked(_) => {}
                Step::Answer(answered) => {
                    let withdrawn = talk.conversation.is_withdrawn();
                    self.talk = None;
                    if withdrawn {
                        // Nothing more may be sent for a request that was taken back.
                        return None;
                    }
                    let (reply, hold) = answered.split();
                    let mut message = String::new();
                    push_reply(&mut message, &self.id, &reply);
                    let mut event = String::new();
                    frame::event(&mut event, None, &message);
                    self.hold = Some(hold);
                    return Some(event);
                }
            }
        }
    }
}

fn progress_event(exchange: &Exchange, progress: &Progress) -> String {
    let Some(token) = &exchange.token else { return String::new() };
    let params = progress_params(token, progress, carries_message(exchange.revision));
    let mut message = String::new();
    frame::notification(&mut message, "notifications/progress", Some(&params));
    let mut event = String::new();
    frame::event(&mut event, None, &message);
    event
}

/// Progress messages came with 2025-03-26.
pub(super) fn carries_message(revision: Revision) -> bool {
    revision.facts().progress_message
}

/// The stream of a legacy session: what its upstreams tell it unasked and signs of life, until the session or the process ends.
pub(super) fn of_session(face: &Arc<Face>, session: &Arc<Session>) -> Response {
    let ear = Ear { principal: session.principal.clone(), session: session.id.get().cloned() };
    let hearing = LegacyHearing::new(face, ear, &session.wishes);
    let listening = Listening { face: face.clone(), session: session.clone(), hearing, opened: false };
    let stream = futures_util::stream::unfold(listening, |mut listening| async move {
        let chunk = listening.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), listening))
    });
    sse(Body::from_stream(stream))
}

struct Listening {
    face: Arc<Face>,
    session: Arc<Session>,
    hearing: LegacyHearing,
    opened: bool,
}

impl Listening {
    async fn next(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.opened, true) {
            // The first bytes tell proxies and clients that the stream is open.
            return Some(frame::KEEP_ALIVE.to_owned());
        }
        let settings = &self.face.settings;
        let keep_alive = tokio::time::sleep(Duration::from_millis(settings.keep_alive_ms.max(1)));
        tokio::pin!(keep_alive);
        let mut heartbeat = tokio::time::interval(Duration::from_millis(settings.session_heartbeat_ms.max(1)));
        loop {
            tokio::select! {
                () = self.session.closed.cancelled() => return None,
                () = self.face.draining.cancelled() => return None,
                // Whoever listens is there, even if it has nothing to say.
                _ = heartbeat.tick() => self.session.seen(self.face.engine.clock().now_ms()),
                message = self.hearing.next() => {
                    let mut event = String::new();
                    frame::event(&mut event, None, &message);
                    return Some(event);
                }
                () = &mut keep_alive => return Some(frame::KEEP_ALIVE.to_owned()),
            }
        }
    }
}

fn sse(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

//! How an answer is written over HTTP: a JSON body, or an event stream that keeps the line open. A body that is dropped
//! before it was taken whole leaves the execution's caller uncounted as answered.

mod listening;
mod resumable;
mod resume;
mod talking;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body::{Frame, SizeHint};

pub(super) use self::listening::of_session;
pub(super) use self::resume::{NotResumed, resume};
pub(super) use self::talking::of_conversation;
use super::answer::Reply;
use super::call::Begun;
use super::conversation::{Answered, Conversation, Hold, Step};
use super::frame;
use super::http::{Exchange, status_of};
use super::id::Id;
use super::written::Outgoing;
use crate::model::revision::{Era, Revision};

/// What a short wait brought.
pub(super) enum Soon {
    /// The answer.
    Answer(Box<Answered>),
    /// Something that has to be told now: a report, a message, a question.
    Told(Step),
    /// Nothing.
    NotYet,
}

/// Waits a moment for the answer.
pub(super) async fn soon(
    conversation: &mut Conversation,
    patience_ms: u64,
    (follows_progress, follows_messages): (bool, bool),
) -> Soon {
    let patience = tokio::time::sleep(Duration::from_millis(patience_ms.min(86_400_000)));
    tokio::pin!(patience);
    loop {
        tokio::select! {
            biased;
            step = conversation.step() => match step {
                Step::Answer(answered) => return Soon::Answer(Box::new(answered)),
                // A client that is asked gets a stream, whatever the mode of the answer.
                step @ Step::Asked(_) => return Soon::Told(step),
                step @ Step::Progress(_) if follows_progress => return Soon::Told(step),
                step @ Step::Message(_) if follows_messages => return Soon::Told(step),
                Step::Progress(_) | Step::Message(_) => {}
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

/// The answer as one JSON body.
pub(super) fn json_answer(id: &Id<'_>, answered: Answered, era: Era) -> Response {
    let (reply, hold) = answered.split();
    let status = status_of(&reply, era);
    let mut response = Response::new(Body::new(Whole::of(reply.message(id), hold)));
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
    rest: std::vec::IntoIter<Bytes>,
    hold: Option<Hold>,
}

impl Whole {
    fn of(Outgoing { head, rest }: Outgoing, hold: Hold) -> Whole {
        Whole { bytes: Some(Bytes::from(head)), rest: rest.into_iter(), hold: Some(hold) }
    }
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
        self.bytes = self.rest.next();
        if self.bytes.is_some() {
            return Poll::Ready(Some(Ok(Frame::data(rest))));
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
        let bytes = self.bytes.iter().chain(self.rest.as_slice());
        SizeHint::with_exact(bytes.map(|bytes| bytes.len() as u64).sum())
    }
}

/// A conversation that goes on as a stream.
pub(super) struct Talk {
    /// The conversation.
    pub conversation: Box<Conversation>,
    /// What came before the stream was opened.
    pub early: Option<Step>,
    /// What the answer has to fit.
    pub exchange: Exchange,
}

/// The answer as a stream of its own, although it is there already. Nothing to resume: it comes in one piece.
pub(super) fn of_answer(id: &Id<'_>, answered: Answered) -> Response {
    sse_answer(String::new(), None, id, answered)
}

/// An answer as an event, after other events.
fn answer_event(events: String, event_id: Option<&str>, id: &Id<'_>, reply: &Reply) -> Outgoing {
    let Outgoing { head: message, mut rest } = reply.message(id);
    let mut head = events;
    if rest.is_empty() {
        frame::event(&mut head, event_id, &message);
    } else {
        frame::event_head(&mut head, event_id, &message);
        rest.push(Bytes::from_static(b"\n\n"));
    }
    Outgoing { head, rest }
}

/// A stream of what is there already; the last event is the answer.
fn sse_answer(events: String, event_id: Option<&str>, id: &Id<'_>, answered: Answered) -> Response {
    let (reply, hold) = answered.split();
    sse(Body::new(Whole::of(answer_event(events, event_id, id, &reply), hold)))
}

/// Progress messages came with 2025-03-26.
pub(super) fn carries_message(revision: Revision) -> bool {
    revision.facts().progress_message
}

/// A body of events.
pub(super) fn sse(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

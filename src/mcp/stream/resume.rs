//! A stream that its client takes up again with `Last-Event-ID` (specification 2025-11-25, transports, resumability):
//! exactly that stream, from the store, whichever process served it before.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::super::answer::{self, Reply};
use super::super::call::{Begun, Caller};
use super::super::conversation::Answered;
use super::super::face::Face;
use super::super::frame;
use super::super::http::{Exchange, Occupied};
use super::super::id::Id;
use super::super::session::{LISTENING, Session};
use super::super::task::create::Related;
use super::resumable::{Context, Resumable, end_id, parse};
use super::{Talk, listening, sse, sse_answer, talking};
use crate::engine::{self, Engine};
use crate::model::policy::OnDisconnect;
use crate::model::principal::Principal;
use crate::model::revision::Era;
use crate::model::trace::TraceContext;
use crate::store::{StreamRow, StreamSeen};

/// Messages that are replayed at most.
const REPLAYED_MAX: usize = 1_000;

/// Why a stream is not taken up.
pub(in crate::mcp) enum NotResumed {
    /// The session has no such stream.
    Unknown,
    /// It could not be read.
    Fault(engine::Error),
}

impl From<engine::Error> for NotResumed {
    fn from(error: engine::Error) -> Self {
        NotResumed::Fault(error)
    }
}

/// Takes up the stream that `event_id` is of.
pub(in crate::mcp) async fn resume(
    face: &Arc<Face>,
    session: &Arc<Session>,
    principal: &Principal,
    event_id: &str,
) -> Result<Response, NotResumed> {
    let (stream, last) = parse(event_id).ok_or(NotResumed::Unknown)?;
    if stream == LISTENING {
        return Ok(listening::of_session(face, session));
    }
    let seen = read(&face.engine, session, (stream, last.unwrap_or(0))).await?;
    let Some(opening) = seen.opening else { return Err(NotResumed::Unknown) };
    let Some(last) = last else {
        // The client has the answer: there is nothing after it.
        return Ok(sse(Body::empty()));
    };
    let context: Context = serde_json::from_str(&opening.context).map_err(|_| NotResumed::Unknown)?;
    let Some(id) = read_id(&opening.request_id) else { return Err(NotResumed::Unknown) };
    let mut replay = String::new();
    let mut newest = last;
    for (seq, message) in &seen.messages {
        frame::event(&mut replay, Some(&format!("{stream}.{seq}")), message);
        newest = *seq;
    }
    let resumed = Resumed { face, session, principal, has: last, replay, last: newest };
    resumed.go_on(&opening, context, &id).await
}

/// Messages after `last`; number 0 is the opening.
async fn read(engine: &Engine, session: &Session, (stream, last): (&str, i64)) -> Result<StreamSeen, engine::Error> {
    Ok(engine.store().stream(session.key, stream, last, REPLAYED_MAX).await?)
}

/// An id as it was written.
fn read_id(text: &str) -> Option<Id<'static>> {
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    Id::parse(raw).ok().map(Id::into_owned)
}

struct Resumed<'a> {
    face: &'a Arc<Face>,
    session: &'a Arc<Session>,
    principal: &'a Principal,
    /// The number of the message that the client has.
    has: i64,
    replay: String,
    last: i64,
}

impl Resumed<'_> {
    async fn go_on(self, opening: &StreamRow, context: Context, id: &Id<'_>) -> Result<Response, NotResumed> {
        let end_id = end_id(&opening.stream);
        let mut ticket = match self.face.engine.resume(opening.execution, self.principal).await {
            Ok(ticket) => ticket,
            Err(error @ engine::Error::NotFound(_)) => {
                let answered = Answered::of(Reply::Error(answer::refused(&error)));
                return Ok(sse_answer(self.replay, Some(&end_id), id, answered));
            }
            // No answer to the request: the client may come again.
            Err(error) => return Err(error.into()),
        };
        // The answer is the one that its first connection would have got.
        ticket.attached = context.attached;
        let name = self.session.client_name.clone().unwrap_or_default();
        let caller = Caller {
            principal: self.principal.clone(),
            name,
            era: Era::Legacy,
            key_headers: Vec::new(),
            client: self.session.context(),
            trace: TraceContext::default(),
        };
        let wait_ms = (context.deadline_at_ms - self.face.engine.clock().now_ms()).max(0);
        let audience = self.face.audience(Era::Legacy);
        let mut conversation = self.face.conversation(ticket, &context.tool, (wait_ms, audience), &caller);
        conversation.deadline = Instant::now() + Duration::from_millis(wait_ms as u64);
        conversation.only_asks = context.only_asks;
        let principal = self.principal.clone();
        conversation.related = context.is_task.then_some(Related { id: opening.execution, principal });
        conversation.on_disconnect = if context.cancels { OnDisconnect::Cancel } else { OnDisconnect::Detach };
        // More may be in flight than a new call would be let in for: this one was let in before.
        let place = self.session.in_flight.enter(id, usize::MAX);
        let place = place.map(|place| Occupied::new(self.session.clone(), place));
        let flight = place.as_ref().map(Occupied::flight);
        let token = context.token.and_then(|token| read_id(token.get()));
        let exchange = Exchange {
            era: Era::Legacy,
            revision: self.session.revision,
            token,
            session: Some(self.session.clone()),
            _place: place,
        };
        Ok(match conversation.begun(flight) {
            Begun::Answer(answered) => {
                // Whoever still writes the stream to a line that is dead stops.
                let token = self.session.take_stream(&opening.stream);
                self.session.leave_stream(&opening.stream, &token);
                sse_answer(self.replay, Some(&end_id), id, answered)
            }
            Begun::Waiting(conversation) => {
                let talk = Talk { conversation, early: None, exchange };
                let facts = (opening.execution, context.cancels, self.last);
                let resumable = Resumable::of(self.session.clone(), opening.stream.clone(), &talk, facts);
                // Official clients know only the events of the newest connection to go on from: it starts with one too.
                let first = resumable.priming(self.has, self.face.settings.retry_ms) + &self.replay;
                talking::stream(self.face, id, talk, (Some(resumable), Some(first)))
            }
        })
    }
}

//! The answer to a call over HTTP: JSON or a stream, and the place it holds among the requests in flight. Waits for
//! nothing longer than the mode of the answer asks.

use std::sync::Arc;

use axum::response::Response;

use super::super::call::Begun;
use super::super::id::Id;
use super::super::session::{Flight, InFlight, Place, Session};
use super::super::stream;
use super::post::Post;
use crate::engine::catalog::ResponseMode;
use crate::model::revision::{Era, Revision};

impl Post<'_> {
    /// JSON when the answer comes soon and alone, else a stream.
    pub(super) async fn answer_call(self, id: &Id<'_>, begun: Begun, exchange: Exchange) -> Response {
        let mut conversation = match begun {
            Begun::Answer(answered) => match answered.response.unwrap_or(self.face.settings.response) {
                ResponseMode::Sse => return stream::of_answer(id, answered),
                ResponseMode::Auto | ResponseMode::Json => return stream::json_answer(id, answered, exchange.era),
            },
            Begun::Waiting(conversation) => conversation,
        };
        let mode = conversation.response.unwrap_or(self.face.settings.response);
        let patience = match mode {
            // A stream that can be resumed costs a write; most answers come before it would be worth it.
            ResponseMode::Sse => exchange.session.as_ref().filter(|session| session.resumes()).map(|_| SSE_WITHIN_MS),
            ResponseMode::Auto => Some(self.face.settings.json_within_ms),
            ResponseMode::Json => Some(u64::MAX),
        };
        let is_stream = mode != ResponseMode::Json;
        let follows = (exchange.token.is_some() && is_stream, is_stream);
        let mut early = None;
        if let Some(patience_ms) = patience {
            match stream::soon(&mut conversation, patience_ms, follows).await {
                stream::Soon::Answer(answered) if mode == ResponseMode::Sse => return stream::of_answer(id, *answered),
                stream::Soon::Answer(answered) => return stream::json_answer(id, *answered, exchange.era),
                stream::Soon::Told(step) => early = Some(step),
                stream::Soon::NotYet => {}
            }
        }
        stream::of_conversation(&self.face, id, stream::Talk { conversation, early, exchange }).await
    }
}

/// An answer that is to be a stream, and comes within this time, is one that can not be resumed.
const SSE_WITHIN_MS: u64 = 50;

/// What the answer to a call has to fit.
pub(in crate::mcp) struct Exchange {
    /// The era of the request.
    pub era: Era,
    /// The revision it is answered in.
    pub revision: Revision,
    /// Where progress is reported to.
    pub token: Option<Id<'static>>,
    /// The legacy session it is answered in.
    pub session: Option<Arc<Session>>,
    /// The request's entry among those in flight.
    pub _place: Option<Occupied>,
}

/// A place among the requests in flight; left when dropped.
pub(in crate::mcp) struct Occupied {
    session: Arc<Session>,
    place: Place,
}

impl Occupied {
    /// The place of a request in `session`.
    pub fn new(session: Arc<Session>, place: Place) -> Occupied {
        Occupied { session, place }
    }

    /// The request.
    pub fn flight(&self) -> Arc<Flight> {
        self.place.flight.clone()
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        let in_flight: &InFlight = &self.session.in_flight;
        in_flight.leave(&self.place);
    }
}

//! The answer to a call over HTTP: JSON or a stream, and the place it holds among the requests in flight. Waits for
//! nothing longer than the mode of the answer asks.

use std::sync::Arc;

use axum::response::Response;

use super::super::call::Begun;
use super::super::id::Id;
use super::super::session::{InFlight, Place, Session};
use super::super::stream;
use super::post::Post;
use crate::engine::catalog::ResponseMode;
use crate::model::revision::{Era, Revision};

impl Post<'_> {
    /// JSON when the answer comes soon and alone, else a stream.
    pub(super) async fn answer_call(self, id: &Id<'_>, begun: Begun, exchange: Exchange) -> Response {
        let mut conversation = match begun {
            Begun::Answer(answered) => match answered.response.unwrap_or(self.face.settings.response) {
                ResponseMode::Sse => return stream::of_answer(&self.face, id, answered, exchange),
                ResponseMode::Auto | ResponseMode::Json => return stream::json_answer(id, answered, exchange.era),
            },
            Begun::Waiting(conversation) => conversation,
        };
        let mode = conversation.response.unwrap_or(self.face.settings.response);
        let patience = match mode {
            ResponseMode::Sse => None,
            ResponseMode::Auto => Some(self.face.settings.json_within_ms),
            ResponseMode::Json => Some(u64::MAX),
        };
        let follows_progress = exchange.token.is_some() && mode == ResponseMode::Auto;
        let mut early = None;
        if let Some(patience_ms) = patience {
            match stream::soon(&mut conversation, patience_ms, follows_progress).await {
                stream::Soon::Answer(answered) => return stream::json_answer(id, *answered, exchange.era),
                stream::Soon::Progress(progress) => early = Some(progress),
                stream::Soon::NotYet => {}
            }
        }
        stream::of_conversation(&self.face, id, stream::Talk { conversation, early, exchange })
    }
}

/// What the answer to a call has to fit.
pub(in crate::mcp) struct Exchange {
    /// The era of the request.
    pub era: Era,
    /// The revision it is answered in.
    pub revision: Revision,
    /// Where progress is reported to.
    pub token: Option<Id<'static>>,
    /// The request's entry among those in flight.
    pub _place: Option<Occupied>,
}

/// A place among the requests in flight; left when dropped.
pub(in crate::mcp) struct Occupied {
    pub(super) session: Arc<Session>,
    pub(super) place: Place,
}

impl Drop for Occupied {
    fn drop(&mut self) {
        let in_flight: &InFlight = &self.session.in_flight;
        in_flight.leave(&self.place);
    }
}

//! The answer to a request that is no `tools/call` over HTTP: JSON when it comes soon and alone, else a stream. What is
//! asked and answered is not looked at.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use tokio::time::Instant;

use super::super::face::Face;
use super::super::frame;
use super::super::going::{Answering, Finished, Going, Said};
use super::super::id::Id;
use super::super::stream::sse;
use super::exchange::Occupied;
use super::reply::json;
use crate::engine::catalog::ResponseMode;
use crate::model::revision::Era;

/// Writes the answer. `place` is the request's among those in flight, kept until it is written.
pub(super) async fn answer(
    face: &Arc<Face>,
    id: &Id<'_>,
    answering: Answering,
    (era, place): (Era, Option<Occupied>),
) -> Response {
    let mut going = match answering {
        Answering::Now(finished) => return whole(id, &finished, era),
        Answering::Going(going) => going,
    };
    let patience_ms = match (going.is_stream, face.settings.response) {
        (true, _) | (_, ResponseMode::Sse) => 0,
        (_, ResponseMode::Json) => 86_400_000,
        (_, ResponseMode::Auto) => face.settings.json_within_ms,
    };
    let until = Instant::now() + Duration::from_millis(patience_ms);
    let mut early = None;
    while patience_ms > 0 && early.is_none() {
        match tokio::time::timeout_at(until, going.next()).await {
            Ok(Said::End(finished)) => return whole(id, &finished, era),
            Ok(Said::Over) => return whole(id, &Finished::withdrawn(), era),
            // Who is answered as JSON hears nothing before.
            Ok(Said::Message(_)) if face.settings.response == ResponseMode::Json => {}
            Ok(Said::Message(message)) => early = Some(message),
            Err(_) => break,
        }
    }
    let keep_alive = Duration::from_millis(face.settings.keep_alive_ms.max(1));
    let opened = !going.is_stream;
    let streaming =
        Streaming { id: id.clone().into_owned(), going: Some(going), early, keep_alive, opened, _place: place };
    let stream = futures_util::stream::unfold(streaming, |mut streaming| async move {
        let chunk = streaming.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), streaming))
    });
    sse(Body::from_stream(stream))
}

/// A whole answer as JSON.
fn whole(id: &Id<'_>, finished: &Finished, era: Era) -> Response {
    let mut out = String::new();
    finished.write(&mut out, id);
    json(finished.status(era), out)
}

struct Streaming {
    id: Id<'static>,
    going: Option<Going>,
    early: Option<String>,
    keep_alive: Duration,
    /// The first bytes are out: they tell proxies and clients that the stream is open.
    opened: bool,
    _place: Option<Occupied>,
}

impl Streaming {
    /// The next piece to write.
    async fn next(&mut self) -> Option<String> {
        let going = self.going.as_mut()?;
        if !std::mem::replace(&mut self.opened, true) {
            return Some(frame::KEEP_ALIVE.to_owned());
        }
        if let Some(message) = self.early.take() {
            return Some(event(&message));
        }
        match tokio::time::timeout(self.keep_alive, going.next()).await {
            Err(_) => Some(frame::KEEP_ALIVE.to_owned()),
            Ok(Said::Message(message)) => Some(event(&message)),
            Ok(Said::End(finished)) => {
                self.going = None;
                let mut message = String::new();
                finished.write(&mut message, &self.id);
                Some(event(&message))
            }
            // Nothing more may be sent for a request that was taken back.
            Ok(Said::Over) => {
                self.going = None;
                None
            }
        }
    }
}

fn event(message: &str) -> String {
    let mut event = String::new();
    frame::event(&mut event, None, message);
    event
}

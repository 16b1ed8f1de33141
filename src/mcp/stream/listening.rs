//! The stream of a legacy session for what concerns no request: what its upstreams tell unasked, signs of life, until the session
//! or the process ends.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;

use super::super::face::Face;
use super::super::frame;
use super::super::hearing::{Ear, LegacyHearing};
use super::super::session::{LISTENING, Outbox, Session};
use super::sse;
use crate::engine;

/// Messages that are replayed at most.
const REPLAYED_MAX: usize = 1_000;

/// The stream of a session, from now on.
pub(in crate::mcp) fn of_session(face: &Arc<Face>, session: &Arc<Session>) -> Response {
    // The first bytes tell proxies and clients that the stream is open.
    let mut first = frame::KEEP_ALIVE.to_owned();
    if session.resumes() {
        // Messages are numbered by the time they come at: this is before the next one.
        let event_id = format!("{LISTENING}.{}", face.engine.clock().now_ms());
        frame::priming_event(&mut first, &event_id, Some(face.settings.retry_ms));
    }
    stream(face, session, session.listen(), first)
}

/// The stream of a session, from the messages after number `last` on.
pub(super) async fn from(face: &Arc<Face>, session: &Arc<Session>, last: i64) -> Result<Response, engine::Error> {
    // What comes while the store is read is not lost.
    let outbox = session.listen();
    let seen = face.engine.store().stream(session.key, LISTENING, last, REPLAYED_MAX).await?;
    let mut first = frame::KEEP_ALIVE.to_owned();
    if session.resumes() {
        // Official clients know only the events of the newest connection to go on from: it starts with one too.
        frame::priming_event(&mut first, &format!("{LISTENING}.{last}"), Some(face.settings.retry_ms));
    }
    for (seq, message) in &seen.messages {
        frame::event(&mut first, Some(&format!("{LISTENING}.{seq}")), message);
    }
    Ok(stream(face, session, outbox, first))
}

fn stream(face: &Arc<Face>, session: &Arc<Session>, outbox: Arc<Outbox>, first: String) -> Response {
    let ear = Ear { principal: session.principal.clone(), session: Some(session.key.to_string()) };
    let hearing = LegacyHearing::new(face, ear, &session.wishes);
    let (restoring, restored) = (face.clone(), session.clone());
    // A stream does not wait for upstreams.
    face.engine.spawn(async move { restoring.restore_subscriptions(&restored).await });
    let listening = Listening { face: face.clone(), session: session.clone(), outbox, hearing, first: Some(first) };
    let stream = futures_util::stream::unfold(listening, |mut listening| async move {
        let chunk = listening.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), listening))
    });
    sse(Body::from_stream(stream))
}

struct Listening {
    face: Arc<Face>,
    session: Arc<Session>,
    outbox: Arc<Outbox>,
    hearing: LegacyHearing,
    first: Option<String>,
}

impl Listening {
    async fn next(&mut self) -> Option<String> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let keep_alive = Duration::from_millis(self.face.settings.keep_alive_ms.max(1));
        let quiet = tokio::time::sleep(keep_alive);
        tokio::pin!(quiet);
        loop {
            tokio::select! {
                () = self.session.closed.cancelled() => return None,
                () = self.face.draining.cancelled() => return None,
                events = self.outbox.take() => return Some(events),
                message = self.hearing.next() => {
                    // What another stream tells is not told twice.
                    if self.session.is_newest(&self.outbox) {
                        let mut event = String::new();
                        frame::event(&mut event, None, &message);
                        return Some(event);
                    }
                }
                () = &mut quiet => return Some(frame::KEEP_ALIVE.to_owned()),
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let dropped = self.outbox.dropped();
        if dropped > 0 {
            tracing::warn!(session = %self.session.key, dropped, "a client did not read what its session was told");
        }
    }
}

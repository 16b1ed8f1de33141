//! The stream of a legacy session for what concerns no request: list changes, messages, signs of life, until the session
//! or the process ends.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;

use super::super::face::Face;
use super::super::frame;
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
    for (seq, message) in &seen.messages {
        frame::event(&mut first, Some(&format!("{LISTENING}.{seq}")), message);
    }
    Ok(stream(face, session, outbox, first))
}

fn stream(face: &Arc<Face>, session: &Arc<Session>, outbox: Arc<Outbox>, first: String) -> Response {
    let mut changes = face.engine.catalog().changes();
    changes.borrow_and_update();
    let listening = Listening { face: face.clone(), session: session.clone(), outbox, changes, first: Some(first) };
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
    changes: tokio::sync::watch::Receiver<u64>,
    first: Option<String>,
}

impl Listening {
    async fn next(&mut self) -> Option<String> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let keep_alive = Duration::from_millis(self.face.settings.keep_alive_ms.max(1));
        tokio::select! {
            () = self.session.closed.cancelled() => None,
            () = self.face.draining.cancelled() => None,
            events = self.outbox.take() => Some(events),
            changed = self.changes.changed() => {
                changed.ok()?;
                let mut message = String::new();
                frame::notification(&mut message, "notifications/tools/list_changed", None);
                let mut event = String::new();
                frame::event(&mut event, None, &message);
                Some(event)
            }
            () = tokio::time::sleep(keep_alive) => Some(frame::KEEP_ALIVE.to_owned()),
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

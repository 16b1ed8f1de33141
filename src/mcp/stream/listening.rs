//! The stream of a legacy session for what concerns no request: what its upstreams tell unasked, signs of life, until
//! the session or the process ends. Keeps nothing: a client that was away gets what is told from then on.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;

use super::super::face::Face;
use super::super::frame;
use super::super::hearing::{Ear, LegacyHearing};
use super::super::session::{LISTENING, Listener, Session};
use super::sse;

/// The stream of a session, from now on. A list that changed while none was open is news at once.
pub(in crate::mcp) fn of_session(face: &Arc<Face>, session: &Arc<Session>) -> Response {
    // The first bytes tell proxies and clients that the stream is open.
    let mut first = frame::KEEP_ALIVE.to_owned();
    if session.resumes() {
        // A client that comes back with this gets a stream like the first.
        frame::priming_event(&mut first, &format!("{LISTENING}.0"), Some(face.settings.retry_ms));
    }
    let listener = session.listen();
    let ear = Ear { principal: session.principal.clone(), session: Some(session.key.to_string()) };
    let hearing = LegacyHearing::new(face, ear, &session.wishes);
    let (restoring, restored) = (face.clone(), session.clone());
    // A stream does not wait for upstreams.
    face.engine.spawn(async move { restoring.restore_subscriptions(&restored).await });
    let listening = Listening { face: face.clone(), session: session.clone(), listener, hearing, first: Some(first) };
    let stream = futures_util::stream::unfold(listening, |mut listening| async move {
        let chunk = listening.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), listening))
    });
    sse(Body::from_stream(stream))
}

struct Listening {
    face: Arc<Face>,
    session: Arc<Session>,
    listener: Arc<Listener>,
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
                message = self.hearing.next() => {
                    // What another stream tells is not told twice.
                    if self.session.is_newest(&self.listener) {
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

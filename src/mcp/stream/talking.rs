//! A conversation as a stream: what can be resumed from, progress, messages, signs of life, the answer, the end. A client
//! that does not read is waited for by nobody: the stream takes the next step only when there is room for it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use tokio::time::Instant;

use super::super::conversation::{Hold, Said, Step, progress_params};
use super::super::face::Face;
use super::super::frame;
use super::super::http::Exchange;
use super::super::id::Id;
use super::resumable::{Resumable, end_id, linger};
use super::{Talk, answer_event, carries_message, sse};
use crate::engine::notices::Notice;
use crate::engine::waiters::Progress;

/// The conversation as a stream.
pub(in crate::mcp) async fn of_conversation(face: &Arc<Face>, id: &Id<'_>, talk: Talk) -> Response {
    let resumable = Resumable::open(face, id, &talk).await;
    let first = resumable.as_ref().map(|resumable| resumable.priming(0, face.settings.retry_ms));
    stream(face, id, talk, (resumable, first))
}

/// A conversation that goes on as a stream; `first` is written before anything else.
pub(super) fn stream(
    face: &Arc<Face>,
    id: &Id<'_>,
    talk: Talk,
    (resumable, first): (Option<Resumable>, Option<String>),
) -> Response {
    let poll_after = face.settings.poll_after_ms.filter(|_| resumable.is_some()).map(Duration::from_millis);
    let state = Streaming {
        face: face.clone(),
        id: id.clone().into_owned(),
        talk: Some(talk),
        hold: None,
        rest: Vec::new().into_iter(),
        first,
        resumable,
        poll_at: poll_after.map(|after| Instant::now() + after),
    };
    let stream = futures_util::stream::unfold(state, |mut state| async move {
        let chunk = state.next().await?;
        Some((Ok::<_, Infallible>(chunk), state))
    });
    sse(Body::from_stream(stream))
}

struct Streaming {
    face: Arc<Face>,
    id: Id<'static>,
    talk: Option<Talk>,
    hold: Option<Hold>,
    /// What is left of the answer.
    rest: std::vec::IntoIter<Bytes>,
    first: Option<String>,
    resumable: Option<Resumable>,
    poll_at: Option<Instant>,
}

/// What comes next on a stream.
enum Turn {
    Step(Step),
    /// Nothing was said for long.
    Quiet,
    /// The client is asked to come back.
    Poll,
    /// The client has come back on another connection.
    Superseded,
}

impl Streaming {
    /// The next piece to write.
    async fn next(&mut self) -> Option<Bytes> {
        match self.rest.next() {
            Some(piece) => Some(piece),
            None => self.told().await.map(Bytes::from),
        }
    }

    /// What comes next. The answer counts as written once the piece after it is asked for.
    async fn told(&mut self) -> Option<String> {
        if let Some(hold) = self.hold.take() {
            hold.written();
        }
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let mut early = self.talk.as_mut()?.early.take().map(Turn::Step);
        loop {
            let turn = match early.take() {
                Some(turn) => turn,
                None => self.turn().await?,
            };
            let talk = self.talk.as_mut()?;
            match turn {
                Turn::Step(Step::Progress(progress)) if talk.exchange.token.is_some() => {
                    return Some(progress_event(&talk.exchange, &progress));
                }
                Turn::Step(Step::Message(notice)) => return Some(notice_event(&notice)),
                Turn::Step(Step::Progress(_)) => {}
                Turn::Step(Step::Asked(said)) => {
                    let events = self.events(said).await;
                    if !events.is_empty() {
                        return Some(events);
                    }
                }
                Turn::Step(Step::Answer(answered)) => {
                    let withdrawn = talk.conversation.is_withdrawn();
                    self.talk = None;
                    if withdrawn {
                        // Nothing more may be sent for a request that was taken back.
                        return None;
                    }
                    let event_id = self.resumable.as_ref().map(|resumable| end_id(&resumable.stream));
                    let (reply, hold) = answered.split();
                    let event = answer_event(String::new(), event_id.as_deref(), &self.id, &reply);
                    self.hold = Some(hold);
                    self.rest = event.rest.into_iter();
                    return Some(event.head);
                }
                Turn::Quiet => {
                    return Some(match &talk.exchange.token {
                        // The comment keeps the line, the notification keeps a client's own timer.
                        Some(_) => {
                            let sign = talk.conversation.still_there();
                            format!("{}{}", frame::KEEP_ALIVE, progress_event(&talk.exchange, &sign))
                        }
                        None => frame::KEEP_ALIVE.to_owned(),
                    });
                }
                Turn::Poll => {
                    let retry_ms = self.face.settings.retry_ms;
                    if let (Some(talk), Some(resumable)) = (self.talk.take(), self.resumable.take()) {
                        linger(&self.face, talk, resumable);
                    }
                    return Some(format!("retry: {retry_ms}\n\n"));
                }
                Turn::Superseded => {
                    self.talk = None;
                    return None;
                }
            }
        }
    }

    /// What was said, as events; where the stream can be taken up again they are kept, and said once.
    async fn events(&mut self, said: Vec<Said>) -> String {
        let mut events = String::new();
        for Said { name, message } in said {
            match &mut self.resumable {
                Some(resumable) => events.extend(resumable.push(&self.face, &name, &message).await),
                None => frame::event(&mut events, None, &message),
            }
        }
        events
    }

    async fn turn(&mut self) -> Option<Turn> {
        let talk = self.talk.as_mut()?;
        let keep_alive = Duration::from_millis(self.face.settings.keep_alive_ms.max(1));
        let superseded = async {
            match &self.resumable {
                Some(resumable) => resumable.superseded.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let poll = async {
            match self.poll_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        // A client that can take its stream up again does so at another process; there is no need to make it wait here.
        let moves = async {
            match (&self.resumable, self.face.engine.has_peers()) {
                (Some(_), true) => self.face.draining.cancelled().await,
                (Some(_), false) => self.face.handing_over.cancelled().await,
                (None, _) => std::future::pending().await,
            }
        };
        Some(tokio::select! {
            biased;
            () = superseded => Turn::Superseded,
            () = moves => Turn::Poll,
            step = talk.conversation.step() => Turn::Step(step),
            () = poll => Turn::Poll,
            () = tokio::time::sleep(keep_alive) => Turn::Quiet,
        })
    }
}

impl Drop for Streaming {
    /// A stream that is cut is taken up again, or not: where the policy says that a call stops with its client, it gets
    /// the time to come back first.
    fn drop(&mut self) {
        if let (Some(talk), Some(resumable)) = (self.talk.take(), self.resumable.take()) {
            resumable.cut(&self.face, talk);
        }
    }
}

fn progress_event(exchange: &Exchange, progress: &Progress) -> String {
    let Some(token) = &exchange.token else { return String::new() };
    let params = progress_params(token, progress, carries_message(exchange.revision));
    notification_event("notifications/progress", Some(&params))
}

fn notice_event(notice: &Notice) -> String {
    notification_event(&notice.method, notice.params.as_deref())
}

fn notification_event(method: &str, params: Option<&str>) -> String {
    let mut message = String::new();
    frame::notification(&mut message, method, params);
    let mut event = String::new();
    frame::event(&mut event, None, &message);
    event
}

//! The stream of a call that its client can take up again (sessions since 2025-11-25). One row is written when the
//! stream opens, before its first event; answers that come without a stream write none. The answer itself is never
//! stored a second time: it is rendered from the execution.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::conversation::Step;
use super::super::face::Face;
use super::super::frame;
use super::super::id::Id;
use super::super::session::Session;
use super::Talk;
use crate::engine;
use crate::model::event::Order;
use crate::model::id::ExecutionId;
use crate::model::policy::OnDisconnect;
use crate::store::{StreamMessage, StreamRow};

/// What the answer has to fit, kept with the stream.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Context {
    /// `progressToken`, as the client wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<Box<RawValue>>,
    /// The tool as the client calls it.
    pub(super) tool: String,
    /// When the caller gets a handle instead, in milliseconds since the epoch.
    pub(super) deadline_at_ms: i64,
    /// An earlier execution took the call.
    pub(super) attached: bool,
    /// The request only asks about the execution.
    pub(super) only_asks: bool,
    /// The work stops when its caller is gone for good.
    pub(super) cancels: bool,
    /// The request asks for the result of the execution as a task.
    #[serde(default)]
    pub(super) is_task: bool,
}

/// How long a client that was cut, or asked to come back, has for it beside the pause it was asked for.
const COMING_BACK: Duration = Duration::from_secs(2);
/// The number of the answer: it is the last event, whatever came before.
const END: &str = "end";

/// A stream that can be taken up again.
pub(super) struct Resumable {
    pub(super) session: Arc<Session>,
    pub(super) execution: ExecutionId,
    /// Its name in the session.
    pub(super) stream: String,
    /// Ends when the client has taken it up on another connection.
    pub(super) superseded: CancellationToken,
    /// The number of the last message that was written.
    pub(super) last: i64,
    /// What stops the work when the client stays away, where the policy says so.
    pub(super) stop: Option<Order>,
}

impl Resumable {
    /// Opens the stream in the store; `None` when the client can not take it up, or the store does not take it: then it
    /// is a stream like any other.
    pub(super) async fn open(face: &Arc<Face>, id: &Id<'_>, talk: &Talk) -> Option<Resumable> {
        let session = talk.exchange.session.clone().filter(|session| session.resumes())?;
        let conversation = &talk.conversation;
        let ticket = conversation.ticket.as_ref()?;
        let now_ms = face.engine.clock().now_ms();
        let left = conversation.deadline.saturating_duration_since(Instant::now());
        let cancels = conversation.on_disconnect == OnDisconnect::Cancel;
        let token = talk.exchange.token.as_ref().and_then(|token| RawValue::from_string(token.raw().to_owned()).ok());
        let context = Context {
            token,
            tool: conversation.tool_name.clone(),
            deadline_at_ms: now_ms + left.as_millis() as i64,
            attached: ticket.attached,
            only_asks: conversation.only_asks,
            cancels,
            is_task: conversation.related.is_some(),
        };
        let (execution, stream) = (ticket.id(), hex::encode(&engine::entropy()[..8]));
        let row = StreamRow {
            session: session.key,
            stream: stream.clone(),
            request_id: id.raw().to_owned(),
            execution,
            context: serde_json::to_string(&context).ok()?.into(),
            at_ms: now_ms,
        };
        if let Err(error) = face.engine.open_stream(row).await {
            tracing::warn!(execution = %execution, code = error.code(), "a stream can not be resumed: {error}");
            return None;
        }
        Some(Resumable::of(session, stream, talk, (execution, cancels, 0)))
    }

    /// A stream that is in the store; `last` is the number of the last message its client has.
    pub(super) fn of(
        session: Arc<Session>,
        stream: String,
        talk: &Talk,
        (execution, cancels, last): (ExecutionId, bool, i64),
    ) -> Resumable {
        let stop =
            cancels.then(|| Order { reason: "the client disconnected".into(), ..talk.conversation.order.clone() });
        let superseded = session.take_stream(&stream);
        Resumable { session, execution, stream, superseded, last, stop }
    }

    /// The first event of a connection: the id of the message that its client has already, and nothing else.
    pub(super) fn priming(&self, has: i64, retry_ms: u64) -> String {
        let mut event = String::new();
        frame::priming_event(&mut event, &self.event_id(has), Some(retry_ms));
        event
    }

    /// The id of message `seq`.
    pub(super) fn event_id(&self, seq: i64) -> String {
        format!("{}.{seq}", self.stream)
    }

    /// Numbers and stores a JSON-RPC message, and gives the event to write. `name` makes it one and the same, however
    /// often it is pushed and by whichever process: `None` when the client has it already.
    pub(super) async fn push(&mut self, face: &Face, name: &str, message: &str) -> Option<String> {
        let pushed = StreamMessage {
            session: self.session.key,
            stream: self.stream.clone(),
            name: name.to_owned(),
            body: message.into(),
            seq_min: 1,
            at_ms: face.engine.clock().now_ms(),
        };
        let seq = match face.engine.push_message(pushed).await {
            Ok(seq) if seq <= self.last => return None,
            Ok(seq) => Some(seq),
            // It is told all the same; a client that is cut before it reads this asks its caller again.
            Err(error) => {
                tracing::warn!(execution = %self.execution, code = error.code(), "a message was not kept: {error}");
                None
            }
        };
        let event_id = seq.map(|seq| {
            self.last = seq;
            self.event_id(seq)
        });
        let mut event = String::new();
        frame::event(&mut event, event_id.as_deref(), message);
        Some(event)
    }

    /// The connection was cut. The caller counts as gone at once, so that the same call may take its execution; where
    /// the policy stops the work, the client has a while to come back.
    pub(super) fn cut(mut self, face: &Arc<Face>, mut talk: Talk) {
        // It is this stream that says when the client is gone for good.
        talk.conversation.on_disconnect = OnDisconnect::Detach;
        drop(talk);
        let Some(order) = self.stop.take().filter(|_| !self.superseded.is_cancelled()) else { return };
        let patience = Duration::from_millis(face.settings.retry_ms) + COMING_BACK;
        let (engine, id) = (face.engine.clone(), self.execution);
        face.engine.spawn(async move {
            tokio::select! {
                () = engine.stopping().cancelled() => return,
                () = tokio::time::sleep(patience) => {}
            }
            if engine.is_waited_here(id) {
                return;
            }
            if let Err(error) = engine.cancel(id, order).await {
                tracing::debug!(execution = %id, code = error.code(), "a cancellation came too late: {error}");
            }
        });
    }
}

impl Drop for Resumable {
    fn drop(&mut self) {
        self.session.leave_stream(&self.stream, &self.superseded);
    }
}

/// The client was asked to come back: it counts as waiting meanwhile.
pub(super) fn linger(face: &Arc<Face>, mut talk: Talk, resumable: Resumable) {
    let patience = Duration::from_millis(face.settings.retry_ms * 2) + COMING_BACK;
    let (engine, face) = (face.engine.clone(), face.clone());
    engine.spawn(async move {
        let ended = async { while !matches!(talk.conversation.step().await, Step::Answer(_)) {} };
        tokio::select! {
            () = face.engine.stopping().cancelled() => {}
            () = resumable.superseded.cancelled() => {}
            // What ended meanwhile is there for whoever comes: the same call, or the stream.
            () = ended => {}
            () = tokio::time::sleep(patience) => {}
        }
        resumable.cut(&face, talk);
    });
}

/// The id of the answer on a stream.
pub(super) fn end_id(stream: &str) -> String {
    format!("{stream}.{END}")
}

/// What an event id says: the stream, and the number of the last message; `None` for the answer.
pub(super) fn parse(event_id: &str) -> Option<(&str, Option<i64>)> {
    let (stream, number) = event_id.rsplit_once('.')?;
    match number {
        END => Some((stream, None)),
        number => {
            let number: i64 = number.parse().ok()?;
            (number >= 0).then_some((stream, Some(number)))
        }
    }
}

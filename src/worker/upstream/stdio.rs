//! A leg to a server that we run: the handshake, calls and lists over its stdin and stdout.
//! The process is `child`'s matter and the streams are `peer`'s.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::call::{Answer, Bounds, Call, CallError, PROGRESS_QUEUE, Progress, TimeoutKind, Watched, watch};
use super::child::Child;
use super::handshake;
use super::leg::{LegContext, StartError};
use super::message;
use super::peer::{Exchange, Peer, PeerSettings};
use super::settings::{EraChoice, LegLimits, StdioSettings};
use super::snapshot::ServerFacts;
use crate::model::revision::Revision;

/// An open leg over stdio.
pub(super) struct StdioLeg {
    conversation: Conversation,
    child: Child,
}

/// A conversation over two streams whose handshake is done; the tests drive it without a process.
pub(super) struct Conversation {
    peer: Arc<Peer>,
    facts: ServerFacts,
    limits: LegLimits,
    /// In 2026-07-28 the request that `list_changed` comes through; it stays unanswered as long as the leg lives.
    _listen: Option<Exchange>,
}

impl StdioLeg {
    /// Starts the process and shakes hands.
    ///
    /// # Errors
    /// Says why there is no server; the process is gone then.
    pub async fn open(settings: &StdioSettings, context: LegContext) -> Result<Self, StartError> {
        let (child, streams) = Child::start(settings, &context)?;
        let peer = Arc::new(Peer::start(
            streams.stdout,
            streams.stdin,
            PeerSettings {
                name: context.name,
                limits: context.limits,
                secrets: settings.env.values().cloned().collect(),
                notices: context.notices,
                overheard: context.overheard,
            },
        ));
        child.watch_over(&peer);
        match Conversation::open(peer, context.era, context.limits).await {
            Ok(conversation) => Ok(Self { conversation, child }),
            Err(reason) => {
                let end = child.end().await;
                Err(StartError::passing(if child.ended_by_itself() { end } else { reason }))
            }
        }
    }

    pub fn facts(&self) -> &ServerFacts {
        self.conversation.facts()
    }

    pub async fn call(&self, call: &Call, bounds: Bounds, on_progress: impl Fn(Progress)) -> Result<Answer, CallError> {
        self.conversation.call(call, bounds, on_progress).await
    }

    pub async fn list_page(&self, cursor: Option<&str>) -> Result<Answer, CallError> {
        self.conversation.list_page(cursor).await
    }

    pub fn lost(&self) -> CancellationToken {
        self.conversation.peer.closed()
    }

    /// Ends the process tree and says how it ended.
    pub async fn end(&self) -> String {
        self.child.end().await
    }
}

impl Conversation {
    /// Shakes hands: `initialize`, or `server/discover` with a server that knows only that.
    ///
    /// # Errors
    /// Says why the conversation cannot go on.
    pub async fn open(peer: Arc<Peer>, era: EraChoice, limits: LegLimits) -> Result<Self, String> {
        let facts = match era {
            EraChoice::Modern => discover(&peer).await?,
            EraChoice::Legacy => initialize(&peer).await.map_err(|refusal| refusal.reason)?,
            EraChoice::Auto => match initialize(&peer).await {
                Ok(facts) => facts,
                Err(refusal) if !refusal.answered => return Err(refusal.reason),
                Err(refusal) => discover(&peer).await.map_err(|_| refusal.reason)?,
            },
        };
        let modern = facts.revision.is_modern();
        let listen = (modern && handshake::declares(&facts, &["tools", "listChanged"]))
            .then(|| peer.send("subscriptions/listen", None, |_| handshake::listen_params()).ok())
            .flatten();
        Ok(Self { peer, facts, limits, _listen: listen })
    }

    pub fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    pub async fn call(&self, call: &Call, bounds: Bounds, on_progress: impl Fn(Progress)) -> Result<Answer, CallError> {
        let revision = self.facts.revision;
        let (sink, progress) = mpsc::channel(PROGRESS_QUEUE);
        let mut exchange = self.peer.send("tools/call", Some(sink), |id| message::call_params(revision, call, id))?;
        match watch(exchange.answer(), progress, bounds, on_progress).await {
            Watched::Answered(answer) => {
                answer.map(|answer| message::admit(answer, revision, self.limits.max_result_bytes))
            }
            Watched::Cancelled => Err(CallError::Cancelled { dispatched: exchange.abandon("the caller cancelled") }),
            Watched::TimedOut(kind) => match exchange.abandon("the attempt took too long") {
                true => Err(CallError::TimedOut { kind }),
                false => Err(CallError::not_started("the server did not read its stdin in time")),
            },
        }
    }

    pub async fn list_page(&self, cursor: Option<&str>) -> Result<Answer, CallError> {
        let revision = self.facts.revision;
        let mut exchange = self.peer.send("tools/list", None, |_| handshake::list_params(revision, cursor))?;
        match timeout(self.limits.request_timeout, exchange.answer()).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::TimedOut { kind: TimeoutKind::Attempt }),
        }
    }
}

struct Refusal {
    reason: String,
    /// The server did answer, so that another question may get a better answer.
    answered: bool,
}

async fn initialize(peer: &Peer) -> Result<ServerFacts, Refusal> {
    let answer = ask(peer, "initialize", handshake::initialize_params()).await;
    match answer.map_err(|reason| Refusal { reason, answered: false })? {
        Answer::Result(result) => {
            let facts = handshake::read_initialize(&result).map_err(|reason| Refusal { reason, answered: true })?;
            peer.notify("notifications/initialized", "{}");
            Ok(facts)
        }
        Answer::Error(error) => Err(Refusal { reason: handshake::refused("initialize", &error), answered: true }),
    }
}

async fn discover(peer: &Peer) -> Result<ServerFacts, String> {
    match ask(peer, "server/discover", handshake::discover_params()).await? {
        Answer::Result(result) => handshake::read_discover(&result)
            .ok_or_else(|| format!("it does not speak protocol revision {}", Revision::MODERN.name())),
        Answer::Error(error) => Err(handshake::refused("server/discover", &error)),
    }
}

async fn ask(peer: &Peer, method: &'static str, params: String) -> Result<Answer, String> {
    let mut exchange = peer.send(method, None, |_| params).map_err(|error| error.to_string())?;
    exchange.answer().await.map_err(|error| format!("{method} was not answered: {error}"))
}

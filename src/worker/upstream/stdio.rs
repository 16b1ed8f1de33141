//! A leg to a server that we run: the handshake, calls and lists over its stdin and stdout.
//! The process is `child`'s matter and the streams are `peer`'s.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{OnceCell, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::asides::{self, Caller};
use super::call::{Answer, Bounds, CallError, Ends, TimeoutKind, Watched, watch};
use super::child::Child;
use super::handshake;
use super::leg::{LegContext, StartError};
use super::log_budget::Unloggable;
use super::message;
use super::peer::{Exchange, Peer, PeerSettings};
use super::request::Request;
use super::settings::{EraChoice, LegLimits, StdioSettings};
use super::snapshot::ServerFacts;
use crate::model::revision::Revision;

/// How long a server that speaks an earlier revision may take to say whether it speaks the later era too.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

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
    /// May speak to a server that knows both eras in the later one too.
    may_be_both: bool,
    both: OnceCell<bool>,
    /// In 2026-07-28 the request that notifications come through; it stays unanswered as long as the leg lives.
    listen: Mutex<Option<Exchange>>,
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
                unloggable: Unloggable::of(settings),
                correlation: context.correlation,
                overheard: context.overheard,
            },
        ));
        child.watch_over(&peer);
        let opening = Opening { era: context.era, limits: context.limits, declared: context.declared };
        match Conversation::open(peer, opening).await {
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

    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    pub fn lost(&self) -> CancellationToken {
        self.conversation.peer.closed()
    }

    /// Ends the process tree and says how it ended.
    pub async fn end(&self) -> String {
        self.child.end().await
    }
}

/// What a conversation begins with.
pub(super) struct Opening {
    pub era: EraChoice,
    pub limits: LegLimits,
    /// The capabilities of a client that the server may use.
    pub declared: Option<Box<RawValue>>,
}

impl Conversation {
    /// Shakes hands: `initialize`, or `server/discover` with a server that knows only that.
    ///
    /// # Errors
    /// Says why the conversation cannot go on.
    pub async fn open(peer: Arc<Peer>, opening: Opening) -> Result<Self, String> {
        let Opening { era, limits, declared } = opening;
        let facts = match era {
            EraChoice::Modern => discover(&peer).await?,
            EraChoice::Legacy => initialize(&peer, declared.as_deref()).await.map_err(|refusal| refusal.reason)?,
            EraChoice::Auto | EraChoice::LegacyFirst => match initialize(&peer, declared.as_deref()).await {
                Ok(facts) => facts,
                Err(refusal) if !refusal.answered => return Err(refusal.reason),
                Err(refusal) => discover(&peer).await.map_err(|_| refusal.reason)?,
            },
        };
        let may_be_both = era != EraChoice::Legacy && !facts.revision.is_modern();
        let conversation = Self { peer, facts, limits, may_be_both, both: OnceCell::new(), listen: Mutex::default() };
        conversation.listen(&[]);
        Ok(conversation)
    }

    pub fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    /// Listens for what a server of 2026-07-28 tells of its lists and of these resources, in place of what was listened
    /// for before.
    pub fn listen(&self, uris: &[String]) {
        if !self.facts.revision.is_modern() {
            return;
        }
        let params = handshake::listen_params(&self.facts, uris);
        let listening = params.and_then(|params| self.peer.send("subscriptions/listen", None, |_| params).ok());
        *self.listen.lock().unwrap_or_else(PoisonError::into_inner) = listening;
    }

    pub async fn call(&self, request: &Request, bounds: Bounds, caller: &dyn Caller) -> Result<Answer, CallError> {
        let revision = self.revision_for(request).await;
        let (sink, asides) = mpsc::channel(asides::QUEUE);
        let build = |id| message::request_params(revision, request, id);
        let mut exchange = self.peer.send(&request.method, Some(sink), build)?;
        let reply = |frame| self.peer.reply(frame);
        match watch(exchange.answer(), asides, bounds, Ends { caller, reply: &reply }).await {
            Watched::Answered(answer) => answer,
            Watched::Cancelled => Err(CallError::Cancelled { dispatched: exchange.abandon("the caller cancelled") }),
            Watched::TimedOut(kind) => match exchange.abandon("the attempt took too long") {
                true => Err(CallError::TimedOut { kind }),
                false => Err(CallError::not_started("the server did not read its stdin in time")),
            },
        }
    }

    /// Sends a harmless request of our own.
    pub async fn ask(&self, request: &Request) -> Result<Answer, CallError> {
        let revision = self.facts.revision;
        let members: Vec<_> = request.members.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        let params = message::params(revision, &members, message::Meta::default());
        let mut exchange = self.peer.send(&request.method, None, |_| params)?;
        match timeout(self.limits.request_timeout, exchange.answer()).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::TimedOut { kind: TimeoutKind::Attempt }),
        }
    }

    pub fn notify(&self, request: &Request) {
        let members: Vec<_> = request.members.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        let meta = message::Meta { passed: &request.meta, ..message::Meta::default() };
        self.peer.notify(&request.method, &message::params(self.facts.revision, &members, meta));
    }

    /// The revision a request is sent in: the caller's own era where the server speaks both.
    pub async fn revision_for(&self, request: &Request) -> Revision {
        let agreed = self.facts.revision;
        if !request.prefers_modern || !self.may_be_both {
            return agreed;
        }
        let both = self.both.get_or_init(|| async {
            let discovering = timeout(PROBE_TIMEOUT, discover(&self.peer)).await;
            discovering.is_ok_and(|discovered| discovered.is_ok())
        });
        if *both.await { Revision::MODERN } else { agreed }
    }
}

struct Refusal {
    reason: String,
    /// The server did answer, so that another question may get a better answer.
    answered: bool,
}

async fn initialize(peer: &Peer, declared: Option<&RawValue>) -> Result<ServerFacts, Refusal> {
    let answer = ask(peer, "initialize", handshake::initialize_params(declared)).await;
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

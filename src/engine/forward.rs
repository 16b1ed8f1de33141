//! Requests that are not `tools/call`: passed to the upstream whose they are, with a deadline, stored nowhere. Defines the
//! seam only; the worker floor forwards, the protocol face asks.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use super::Engine;
use super::client::ClientContext;
use super::waiters::Progress;
use crate::store::Payload;

/// One request to be passed on.
#[derive(Clone, Debug)]
pub struct Forward {
    /// To whom.
    pub upstream: String,
    /// The method as the client named it.
    pub method: String,
    /// The `params` object as the client sent it, `_meta` included: the members of `_meta` that belong to the sender are
    /// replaced on the way, all others pass byte for byte.
    pub params: Option<Payload>,
    /// Who asks.
    pub client: Arc<ClientContext>,
    /// The namespace of the caller.
    pub namespace: String,
    /// The subject of the caller.
    pub principal: String,
    /// How long the answer may take, in milliseconds; absent: as long as the upstream's other requests.
    pub timeout_ms: Option<i64>,
}

/// What the upstream answered, byte for byte.
#[derive(Clone, Debug)]
pub enum Forwarded {
    /// The whole `result` object.
    Result(Payload),
    /// The whole JSON-RPC `error` object.
    Error(Payload),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// No upstream of this process has that name.
    #[error("there is no upstream {0}")]
    Unknown(String),
    /// The request never reached the upstream.
    #[error("the request did not reach its server: {0}")]
    Unreachable(String),
    /// It reached the upstream, and the answer was lost.
    #[error("the answer was lost: {0}")]
    Lost(String),
    /// The answer took too long; the upstream was told to stop.
    #[error("the server did not answer in time")]
    TimedOut,
    /// Other processes run that upstream, and only calls of tools get there from here.
    #[error(
        "this process does not run it, and only calls of tools are handed to the processes that do; \
         connect to one with the roles `mcp` and `worker`"
    )]
    Elsewhere,
    /// `params` is no JSON object.
    #[error("the params are no JSON object")]
    Unreadable,
}

impl ForwardError {
    /// Returns the stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown_upstream",
            Self::Unreachable(_) => "unreachable",
            Self::Lost(_) => "lost",
            Self::TimedOut => "timed_out",
            Self::Elsewhere => "run_elsewhere",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Where a forwarded request's progress goes.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// Passes requests to one upstream.
#[async_trait]
pub trait Forwarder: Send + Sync {
    /// Passes one request on and waits for its answer. Dropping the future cancels the request at the upstream.
    ///
    /// `resources/subscribe` and `resources/unsubscribe` are counted per URI, so each subscriber sends as many of the one as
    /// of the other; they work towards upstreams of every era, and last over the upstream's restarts.
    ///
    /// # Errors
    /// See [`ForwardError`].
    async fn forward(&self, request: Forward, on_progress: OnProgress<'_>) -> Result<Forwarded, ForwardError>;
}

/// Who forwards to which upstream.
#[derive(Default)]
pub struct Forwarders(RwLock<HashMap<String, Arc<dyn Forwarder>>>);

impl Forwarders {
    /// Names who forwards to `upstream`; the newest counts.
    pub fn set(&self, upstream: &str, forwarder: Arc<dyn Forwarder>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(upstream.to_owned(), forwarder);
    }

    /// Who forwards to `upstream`.
    pub fn get(&self, upstream: &str) -> Option<Arc<dyn Forwarder>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(upstream).cloned()
    }
}

impl Engine {
    /// Who forwards what is not `tools/call`.
    pub fn forwarders(&self) -> &Forwarders {
        &self.forwarders
    }

    /// Passes one request to its upstream.
    ///
    /// # Errors
    /// See [`ForwardError`].
    pub async fn forward(&self, request: Forward, on_progress: OnProgress<'_>) -> Result<Forwarded, ForwardError> {
        match self.forwarders.get(&request.upstream) {
            Some(forwarder) => forwarder.forward(request, on_progress).await,
            None => Err(ForwardError::Unknown(request.upstream)),
        }
    }
}

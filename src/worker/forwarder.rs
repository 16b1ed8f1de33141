//! Passes what is not `tools/call` to a server, over the leg that the asker's calls take. Stores nothing, retries nothing
//! and reads no answer.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::legs::{Legs, Whose};
use super::upstream::{Answer, CallError, Caller, Progress, Request, rank};
use super::upstream_executor::towards_modern;
use crate::engine::client::string_member;
use crate::engine::forward::{Forward, ForwardError, Forwarded, Forwarder, OnProgress};
use crate::engine::waiters;
use crate::model::json::one_line;

/// Forwards to one server.
pub struct UpstreamForwarder {
    legs: Arc<Legs>,
}

impl UpstreamForwarder {
    /// Forwards over `legs`.
    pub fn new(legs: Arc<Legs>) -> Arc<UpstreamForwarder> {
        Arc::new(UpstreamForwarder { legs })
    }
}

/// Stands for a server that other processes run: what wants nothing of it is answered, the rest is refused with what to do.
pub struct ForwardedElsewhere;

#[async_trait]
impl Forwarder for ForwardedElsewhere {
    async fn forward(&self, request: Forward, _: OnProgress<'_>) -> Result<Forwarded, ForwardError> {
        let method = request.method.as_str();
        let wants_nothing = matches!(method, "ping" | "logging/setLevel" | "resources/unsubscribe");
        match wants_nothing || method.starts_with("notifications/") {
            true => Ok(nothing()),
            false => Err(ForwardError::Elsewhere),
        }
    }
}

#[async_trait]
impl Forwarder for UpstreamForwarder {
    async fn forward(&self, request: Forward, on_progress: OnProgress<'_>) -> Result<Forwarded, ForwardError> {
        let Forward { method, params, client, namespace, principal, timeout_ms, .. } = request;
        let whose = Whose { namespace: &namespace, principal: &principal, client: &client };
        let default = self.legs.shared().settings().limits.request_timeout;
        let limit = timeout_ms.map_or(default, |ms| Duration::from_millis(ms.max(0).unsigned_abs()));
        let passed = Request::with_params(&method, params.as_deref()).ok_or(ForwardError::Unreadable)?;
        let passed = Request {
            client_capabilities: towards_modern(&client),
            log_level: client.log_level.clone(),
            prefers_modern: client.is_modern(),
            attempt_timeout: Some(limit),
            ..passed
        };
        if method.starts_with("notifications/") {
            if let Some(leg) = self.legs.present(whose) {
                leg.notify(&passed).await;
            }
            return Ok(nothing());
        }
        match method.as_str() {
            "ping" => return Ok(nothing()),
            "logging/setLevel" => {
                let level = params.as_deref().and_then(|params| string_member(params, "level"));
                if let Some(level) = level.filter(|level| rank(level).is_some())
                    && let Some(leg) = self.legs.present(whose)
                {
                    // A leg that is opened later is told with its first call.
                    leg.set_level(&level).await;
                }
                return Ok(nothing());
            }
            _ => {}
        }
        let uri = params.as_deref().and_then(|params| string_member(params, "uri"));
        if let ("resources/unsubscribe", Some(uri)) = (method.as_str(), &uri) {
            // With a leg that is gone the subscription is, too: none is opened to take it back.
            let Some(leg) = self.legs.present(whose) else { return Ok(nothing()) };
            return forwarded(leg.unsubscribe(uri).await);
        }
        let taken = self.legs.for_request(whose).await.map_err(ForwardError::Unreachable)?;
        forwarded(match (method.as_str(), uri) {
            ("resources/subscribe", Some(uri)) => taken.upstream().subscribe(&passed, &uri).await,
            _ => {
                let reply = taken.upstream().request(&passed, CancellationToken::new(), &Asker(on_progress)).await;
                reply.map(|reply| reply.answer)
            }
        })
    }
}

fn forwarded(answer: Result<Answer, CallError>) -> Result<Forwarded, ForwardError> {
    match answer {
        Ok(Answer::Result(result)) => Ok(Forwarded::Result(result.one_line())),
        Ok(Answer::Error(error)) => Ok(Forwarded::Error(one_line(error.get()).into())),
        Err(CallError::NotStarted { reason }) => Err(ForwardError::Unreachable(reason)),
        Err(CallError::Lost { reason }) => Err(ForwardError::Lost(reason)),
        Err(CallError::TimedOut { .. }) => Err(ForwardError::TimedOut),
        Err(CallError::Cancelled { .. }) => Err(ForwardError::Lost("it was cancelled".to_owned())),
    }
}

/// Whoever waits for a forwarded request: it hears of progress, and is asked nothing.
struct Asker<'a>(OnProgress<'a>);

#[async_trait]
impl Caller for Asker<'_> {
    fn progress(&self, progress: Progress) {
        let Progress { progress, total, message } = progress;
        (self.0)(waiters::Progress { progress, total, message });
    }
}

fn nothing() -> Forwarded {
    Forwarded::Result("{}".into())
}

//! The executor of upstream MCP servers: one call over the server's leg, with the keys a tool needs for its own external
//! writes. Restarts nothing and retries nothing; translates what the leg knows into what the worker records.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use async_trait::async_trait;
use serde_json::value::RawValue;

use super::executor::{Executor, Job, Outcome, Report};
use super::upstream::{Answer, Call, CallError, TimeoutKind, Upstream};
use crate::engine::waiters::Progress;
use crate::model::json::{members, one_line, quoted, with_member};

/// The member of `_meta` that carries the effect key to the tool.
pub const KEY_MEMBER: &str = "durable-mcp/idempotencyKey";
/// The member of `_meta` that carries the lease's number to the tool.
pub const TOKEN_MEMBER: &str = "durable-mcp/fencingToken";
/// What stands before the names of our own members of `_meta`.
const OWN_PREFIX: &str = "durable-mcp/";

/// How the server is reached, as far as it names what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its process is our child.
    Child,
    /// Over the network.
    Connection,
}

impl Reach {
    fn lost_code(self) -> &'static str {
        match self {
            Reach::Child => "child_died",
            Reach::Connection => "connection_lost",
        }
    }
}

/// Runs the tools of one upstream.
pub struct UpstreamExecutor {
    upstream: Upstream,
    reach: Reach,
    key_arguments: HashMap<String, String>,
}

impl UpstreamExecutor {
    /// Runs the tools of `upstream`; `key_arguments` names, by tool, the argument that takes the effect key.
    pub fn new(upstream: Upstream, reach: Reach, key_arguments: HashMap<String, String>) -> UpstreamExecutor {
        UpstreamExecutor { upstream, reach, key_arguments }
    }

    fn call(&self, job: &Job) -> Option<Call> {
        let arguments = match self.key_arguments.get(&job.tool) {
            Some(name) => with_member(&job.arguments, name, &quoted(&job.effect_key.to_string())).into_owned(),
            None => job.arguments.to_string(),
        };
        Some(Call {
            tool: job.tool.clone(),
            arguments: Some(RawValue::from_string(arguments).ok()?),
            meta: meta(job)?,
            ..Call::default()
        })
    }
}

#[async_trait]
impl Executor for UpstreamExecutor {
    async fn run(&self, job: Job, report: Report<'_>) -> Outcome {
        let Some(call) = self.call(&job) else {
            return Outcome::not_started("call_unreadable", "the stored call is not JSON");
        };
        let on_progress = |progress: super::upstream::Progress| {
            let super::upstream::Progress { progress, total, message } = progress;
            report(Progress { progress, total, message });
        };
        // Time limits are the worker loop's: it ends `cancel`, and the leg tells the server.
        let answer = self.upstream.call(call, job.cancel.clone(), on_progress).await;
        outcome(answer, self.reach)
    }
}

/// `_meta` of the upstream call: the caller's members byte for byte, then ours, which nobody else may write.
fn meta(job: &Job) -> Option<Vec<(String, Box<RawValue>)>> {
    let given = job.meta.as_deref().map_or(Some(Vec::new()), members)?;
    let given = given.into_iter().filter(|(name, _)| !name.starts_with(OWN_PREFIX));
    let mut meta: Vec<_> = given.map(|(name, value)| (name.into_owned(), value.to_owned())).collect();
    meta.push((KEY_MEMBER.to_owned(), RawValue::from_string(quoted(&job.effect_key.to_string())).ok()?));
    meta.push((TOKEN_MEMBER.to_owned(), RawValue::from_string(job.fencing_token.to_string()).ok()?));
    Some(meta)
}

fn outcome(answer: Result<Answer, CallError>, reach: Reach) -> Outcome {
    match answer {
        Ok(Answer::Result(result)) => Outcome::Result(one_line(result.get()).into()),
        Ok(Answer::Error(error)) => Outcome::RpcError(one_line(error.get()).into()),
        Err(CallError::NotStarted { reason }) => Outcome::not_started("not_started", reason),
        Err(CallError::Lost { reason }) => Outcome::lost(reach.lost_code(), reason),
        Err(CallError::Cancelled { dispatched: false }) => {
            Outcome::not_started("cancelled", "the call was cancelled before it was sent to the server")
        }
        Err(CallError::Cancelled { dispatched: true }) => {
            Outcome::lost("cancelled", "the call was cancelled after it was sent to the server")
        }
        Err(CallError::TimedOut { kind: TimeoutKind::Attempt }) => {
            Outcome::lost("attempt_timeout", "the attempt's absolute time ran out")
        }
        Err(CallError::TimedOut { kind: TimeoutKind::Idle }) => {
            Outcome::lost("idle_timeout", "the tool reported no progress for too long")
        }
    }
}

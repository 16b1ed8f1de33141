//! The executor of upstream MCP servers: one call over the caller's leg, with the keys a tool needs for its own external
//! writes. Restarts nothing and retries nothing; translates what the leg knows into what the worker records.

mod attempt;
mod held;
mod rounds;
mod task;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::value::RawValue;

use self::attempt::Attempt;
use self::rounds::Asked;
pub use self::task::is_task;
use super::executor::{Executor, Job, Outcome, Report};
use super::legs::{Legs, Whose};
use super::upstream::message::{OWN_PREFIX, result_type, unsupported_result};
use super::upstream::{ASKING, Answer, Call, CallError, Reply, Request, TimeoutKind};
use crate::engine::Engine;
use crate::engine::client::ClientContext;
use crate::model::json::{members, one_line, quoted, with_member};

/// The extension for tasks (2026-07-28).
const TASKS: &str = "io.modelcontextprotocol/tasks";
/// How often a server may want a call again without asking anything.
const STATES_MAX: u32 = 8;
/// The pause before the first such repetition; each is longer by as much.
const STATE_PAUSE: Duration = Duration::from_millis(50);

/// The member of `_meta` that carries the effect key to the tool.
pub const KEY_MEMBER: &str = "durable-mcp/idempotencyKey";
/// The member of `_meta` that carries the lease's number to the tool.
pub const TOKEN_MEMBER: &str = "durable-mcp/fencingToken";

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
    legs: Arc<Legs>,
    reach: Reach,
    key_arguments: HashMap<String, String>,
    engine: Weak<Engine>,
}

impl UpstreamExecutor {
    /// Runs the tools of the server behind `legs`; `key_arguments` names, by tool, the argument that takes the effect key.
    pub fn new(
        engine: Weak<Engine>,
        legs: Arc<Legs>,
        reach: Reach,
        key_arguments: HashMap<String, String>,
    ) -> UpstreamExecutor {
        UpstreamExecutor { legs, reach, key_arguments, engine }
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
            client_capabilities: towards_modern(&job.client),
            log_level: job.client.log_level.clone(),
            prefers_modern: job.client.is_modern(),
            ..Call::default()
        })
    }

    /// Sends the call, and sends it again as long as the server wants that without a question.
    async fn rounds(&self, attempt: &Attempt<'_>, mut call: Request) -> Outcome {
        for round in 1..=STATES_MAX {
            // Time limits are the worker loop's: it ends `cancel`, and the leg tells the server.
            let answer = attempt.leg.request(&call, attempt.job.cancel.clone(), attempt).await;
            let (result, revision, keeper) = match answer {
                Ok(Reply { answer: Answer::Result(result), revision, keeper }) => (result, revision, keeper),
                Ok(Reply { answer: Answer::Error(error), .. }) => return rounds::of_error(&error, &attempt.job.client),
                Err(error) => return failure(error, self.reach),
            };
            // Before 2026-07-28 a member of that name is the tool's own.
            let kind = if revision.is_modern() { result_type(&result) } else { "complete".into() };
            match kind.as_ref() {
                "complete" => return Outcome::Result(result.one_line()),
                "task" => return task::follow(attempt, &self.engine, (&result, keeper)).await,
                "input_required" => match rounds::read(&result) {
                    Some(Asked { questions, state }) if !questions.is_empty() => {
                        return Outcome::InputRequired { questions, state };
                    }
                    Some(Asked { state: Some(state), .. }) => {
                        call.members.retain(|(name, _)| !matches!(name.as_str(), "inputResponses" | "requestState"));
                        call = call.with("requestState", &state);
                    }
                    _ => return of_answer(unsupported_result(&kind)),
                },
                _ => return of_answer(unsupported_result(&kind)),
            }
            tokio::select! {
                () = tokio::time::sleep(STATE_PAUSE * round) => {}
                () = attempt.job.cancel.cancelled() => return cancelled_after(),
            }
        }
        of_answer(unsupported_result("input_required"))
    }
}

#[async_trait]
impl Executor for UpstreamExecutor {
    async fn run(&self, job: Job, report: Report<'_>) -> Outcome {
        let Some(call) = self.call(&job) else {
            return Outcome::not_started("call_unreadable", "the stored call is not JSON");
        };
        let whose = Whose { namespace: &job.namespace, principal: &job.principal, client: &job.client };
        let taken = match self.legs.of(whose).await {
            Ok(taken) => taken,
            Err(reason) => return Outcome::not_started("no_leg", reason),
        };
        let attempt = Attempt::new(&job, report, taken.upstream(), &self.engine);
        if let Some(task) = task::known(&attempt, &self.engine).await {
            return task.go_on(&attempt, &self.engine).await;
        }
        self.rounds(&attempt, rounds::continued(call.into(), job.continuation.as_ref())).await
    }
}

/// The capabilities of a client as a server of 2026-07-28 is told them. Those of a client of that revision pass as they
/// are; for others we follow tasks ourselves.
pub(super) fn towards_modern(client: &ClientContext) -> Option<Box<RawValue>> {
    if client.is_modern() {
        return client.capabilities.clone();
    }
    let members = client.capabilities.as_ref().and_then(|raw| members(raw.get())).unwrap_or_default();
    let mut capabilities = format!(r#"{{"extensions":{{"{TASKS}":{{}}}}}}"#);
    for (name, value) in members.iter().filter(|(name, _)| ASKING.contains(&name.as_ref())) {
        capabilities = with_member(&capabilities, name, value.get()).into_owned();
    }
    RawValue::from_string(capabilities).ok()
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

fn of_answer(answer: Answer) -> Outcome {
    match answer {
        Answer::Result(result) => Outcome::Result(result.one_line()),
        Answer::Error(error) => Outcome::RpcError(one_line(error.get()).into()),
    }
}

/// The code of a call whose server was told to stop.
const CANCELLED: &str = "cancelled";

fn cancelled_after() -> Outcome {
    Outcome::lost(CANCELLED, "the call was cancelled after it was sent to the server")
}

fn failure(error: CallError, reach: Reach) -> Outcome {
    match error {
        CallError::NotStarted { reason } => Outcome::not_started("not_started", reason),
        CallError::Lost { reason } => Outcome::lost(reach.lost_code(), reason),
        CallError::Cancelled { dispatched: false } => {
            Outcome::not_started(CANCELLED, "the call was cancelled before it was sent to the server")
        }
        CallError::Cancelled { dispatched: true } => cancelled_after(),
        CallError::TimedOut { kind: TimeoutKind::Attempt } => {
            Outcome::lost("attempt_timeout", "the attempt's absolute time ran out")
        }
        CallError::TimedOut { kind: TimeoutKind::Idle } => {
            Outcome::lost("idle_timeout", "the tool reported no progress for too long")
        }
    }
}

//! A server that answers a call with a task (2026-07-28, extension for tasks): it is polled until it ends, cancelled with
//! the call, answered when it asks. Its id is kept, so that a later attempt goes on with it instead of calling again, where
//! it can: a task of a child of ours is known to that child and to nobody else.

use std::sync::Weak;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::attempt::Attempt;
use super::held::Held;
use super::rounds::{self, response_map, text_member};
use super::{CANCELLED, Reach, cancelled_after, of_answer, towards_modern};
use crate::engine::Engine;
use crate::engine::waiters::Progress;
use crate::model::json::{members, one_line, quoted};
use crate::store::{Keep, Kept, LeaseRef, Payload};
use crate::worker::executor::Outcome;
use crate::worker::upstream::message::{error_parts, own_error};
use crate::worker::upstream::{Answer, CallError, Keeper, Request};

/// The member of a state of ours that names a server's task. States of servers are strings, ours are objects.
const MEMBER: &str = "durable-mcp/task";
/// Our own code for a task that its server cancelled.
const TASK_CANCELLED: i64 = -31499;
/// The server does not know its task any more.
const TASK_GONE: &str = "task_gone";
const POLL_DEFAULT: Duration = Duration::from_millis(1_000);
const POLL_MIN: Duration = Duration::from_millis(20);
const POLL_MAX: Duration = Duration::from_secs(60);
/// The longest answer to one request about a task.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the server may take to say what became of a cancelled task.
const LAST_WORD: Duration = Duration::from_millis(500);

/// A server's task.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    id: String,
    keeper: Keeper,
    poll: Duration,
    /// Questions that were answered: a server may show them for a moment longer.
    answered: Vec<String>,
}

/// What one look at a task says.
enum Look {
    Working(Option<String>),
    Asks(String),
    Ended(Outcome),
    /// There was no answer; the next look may get one.
    Nothing,
}

/// Tells whether a checkpoint or a state names a server's task.
pub fn is_task(state: &str) -> bool {
    Task::read(state).is_some()
}

/// Follows the task that a server has just answered with.
pub(super) async fn follow(attempt: &Attempt<'_>, engine: &Weak<Engine>, (created, keeper): (&str, Keeper)) -> Outcome {
    let Some(id) = text_member(created, "taskId") else {
        return of_answer(super::unsupported_result("task"));
    };
    let mut task = Task { id, keeper, poll: poll_interval(created), answered: Vec::new() };
    task.keep(attempt, engine).await;
    if let Some(engine) = engine.upgrade() {
        engine.served_as_task(attempt.leg.name(), attempt.job.id);
    }
    task.follow_to_its_end(attempt, engine, &[]).await
}

/// The task that an earlier part of the execution has begun.
pub(super) async fn known(attempt: &Attempt<'_>, engine: &Weak<Engine>) -> Option<Task> {
    let continuation = attempt.job.continuation.as_ref();
    if let Some(task) = continuation.and_then(|continuation| Task::read(continuation.state.as_deref()?)) {
        return Some(task);
    }
    // Only an earlier attempt can have left one, and hardly any execution has a second.
    if attempt.job.attempt == 1 {
        return None;
    }
    let kept = engine.upgrade()?.store().progressed(attempt.job.id).await.ok()?;
    // What is lost for good is no reason not to call again.
    Task::read(&kept.checkpoint?).filter(|task| attempt.leg.reaches(task.keeper))
}

impl Task {
    /// Answers what the task has asked, where that is why the execution goes on, and follows it.
    pub async fn go_on(mut self, attempt: &Attempt<'_>, engine: &Weak<Engine>) -> Outcome {
        let responses = attempt.job.continuation.as_ref().map_or(&[][..], |continuation| &continuation.responses);
        self.follow_to_its_end(attempt, engine, responses).await
    }

    /// Brings the task the client's answers; how the call ended, if that ended it.
    async fn answer(
        &mut self,
        attempt: &Attempt<'_>,
        engine: &Weak<Engine>,
        responses: &[(String, Payload)],
    ) -> Option<Outcome> {
        let update = self.request("tasks/update", attempt).with("inputResponses", &response_map(responses));
        match attempt.leg.request(&update, attempt.job.cancel.clone(), attempt).await {
            Ok(reply) => {
                if let Answer::Error(error) = reply.answer {
                    // That the answer was refused says nothing of the call, unless the task is still there.
                    return Some(match self.look(attempt, attempt.job.cancel.clone()).await {
                        Look::Ended(outcome) => outcome,
                        _ => Outcome::RpcError(one_line(error.get()).into()),
                    });
                }
            }
            Err(CallError::Cancelled { .. }) => return Some(self.cancel(attempt).await),
            // The server shows what is still open: it is asked again.
            Err(_) => return None,
        }
        self.answered.extend(responses.iter().map(|(key, _)| key.clone()));
        self.keep(attempt, engine).await;
        None
    }

    /// Follows the task. One that has ended without a good result is nothing for a later attempt to go on with.
    async fn follow_to_its_end(
        &mut self,
        attempt: &Attempt<'_>,
        engine: &Weak<Engine>,
        responses: &[(String, Payload)],
    ) -> Outcome {
        let ended = match responses {
            [] => None,
            responses => self.answer(attempt, engine, responses).await,
        };
        let outcome = match ended {
            Some(outcome) => outcome,
            None => self.poll_to_end(attempt, engine).await,
        };
        let is_over = match &outcome {
            Outcome::Result(result) => crate::worker::is_error(result),
            Outcome::RpcError(_) => true,
            Outcome::Failed(failure) => [TASK_GONE, CANCELLED].contains(&failure.error.code.as_str()),
            Outcome::InputRequired { .. } => false,
        };
        if is_over && attempt.job.may_run_again {
            keep(attempt, engine, "{}".to_owned()).await;
        }
        outcome
    }

    async fn poll_to_end(&mut self, attempt: &Attempt<'_>, engine: &Weak<Engine>) -> Outcome {
        let mut said = None;
        let mut looks = 0.0;
        let mut held = Held::new(&attempt.job.asks);
        loop {
            match self.look(attempt, attempt.job.cancel.clone()).await {
                Look::Ended(outcome) => return outcome,
                Look::Asks(requests) => {
                    let Some(mut questions) = rounds::questions(&requests) else {
                        return of_answer(super::unsupported_result("task"));
                    };
                    questions.retain(|question| !self.answered.contains(&question.key));
                    if self.keeper.is_child() {
                        held.ask(questions);
                    } else if !questions.is_empty() {
                        return Outcome::InputRequired { questions, state: Some(self.write().into()) };
                    }
                }
                Look::Working(message) => {
                    held.ask(Vec::new());
                    looks += 1.0;
                    if message.is_some() && message != said {
                        said.clone_from(&message);
                        (attempt.report)(Progress { progress: looks, total: None, message });
                    }
                }
                Look::Nothing => {}
            }
            tokio::select! {
                // An answer that does not come any more is one that was cancelled, too.
                biased;
                () = attempt.job.cancel.cancelled() => return self.cancel(attempt).await,
                response = held.response() => {
                    let ended = match response {
                        Ok(response) => self.answer(attempt, engine, &[response]).await,
                        Err(outcome) => Some(outcome),
                    };
                    if let Some(outcome) = ended {
                        return outcome;
                    }
                }
                () = tokio::time::sleep(self.poll) => {}
            }
        }
    }

    async fn look(&self, attempt: &Attempt<'_>, cancel: CancellationToken) -> Look {
        let request = self.request("tasks/get", attempt);
        let result = match attempt.leg.request(&request, cancel, attempt).await {
            Ok(reply) => match reply.answer {
                Answer::Result(result) => result,
                Answer::Error(error) => return Look::Ended(gone(&error)),
            },
            // A task of a child ends with it.
            Err(_) if !attempt.leg.reaches(self.keeper) => {
                let words = "the process of the server that had the call's task is gone";
                return Look::Ended(Outcome::lost(Reach::Child.lost_code(), words));
            }
            // Any other is the server's: it outlives the leg.
            Err(_) => return Look::Nothing,
        };
        let raw = |name: &str| {
            let found = members(&result).unwrap_or_default().into_iter().find(|(member, _)| member == name);
            found.map(|(_, value)| one_line(value.get()).into_owned())
        };
        match text_member(&result, "status").as_deref() {
            Some("completed") => Look::Ended(match raw("result") {
                Some(result) => Outcome::Result(result.into()),
                None => Outcome::lost("task_without_result", "the server's task has ended without a result"),
            }),
            Some("failed") => Look::Ended(match raw("error") {
                Some(error) => Outcome::RpcError(error.into()),
                None => of_answer(own_error(TASK_CANCELLED, "task_failed", "the server's task has failed")),
            }),
            Some("cancelled") => {
                Look::Ended(of_answer(own_error(TASK_CANCELLED, "task_cancelled", "the server cancelled its task")))
            }
            Some("input_required") => raw("inputRequests").map_or(Look::Nothing, Look::Asks),
            _ => Look::Working(text_member(&result, "statusMessage")),
        }
    }

    /// Tells the server to stop, unless only we do: then the task goes on, for a later attempt to be taken up. Takes the
    /// server's last word if there is one soon.
    async fn cancel(&self, attempt: &Attempt<'_>) -> Outcome {
        if attempt.is_shutdown() {
            return Outcome::lost("worker_stopped", "the server stopped while the tool ran");
        }
        if attempt.is_passed_on(self.keeper).await {
            return Outcome::lost("lease_expired", "another lease goes on with the server's task");
        }
        let last_word = async {
            let request = self.request("tasks/cancel", attempt);
            let _ = attempt.leg.request(&request, CancellationToken::new(), attempt).await;
            loop {
                match self.look(attempt, CancellationToken::new()).await {
                    Look::Ended(outcome @ Outcome::Result(_)) => return outcome,
                    Look::Ended(_) => return cancelled_after(),
                    _ => tokio::time::sleep(POLL_MIN).await,
                }
            }
        };
        tokio::time::timeout(LAST_WORD, last_word).await.unwrap_or_else(|_| cancelled_after())
    }

    fn request(&self, method: &'static str, attempt: &Attempt<'_>) -> Request {
        let request = Request::new(method).with("taskId", &quoted(&self.id));
        Request {
            client_capabilities: towards_modern(&attempt.job.client),
            prefers_modern: true,
            kept_by: Some(self.keeper),
            attempt_timeout: Some(REQUEST_TIMEOUT),
            ..request
        }
    }

    /// Keeps the id for later attempts. Without it a later one calls again, as delivery permits.
    async fn keep(&self, attempt: &Attempt<'_>, engine: &Weak<Engine>) {
        keep(attempt, engine, self.write()).await;
    }

    fn write(&self) -> String {
        let answered: Vec<_> = self.answered.iter().map(|key| quoted(key)).collect();
        let (id, poll_ms) = (quoted(&self.id), self.poll.as_millis());
        let child = self.keeper.name().map(|name| format!(r#","child":{}"#, quoted(&name))).unwrap_or_default();
        let answered = answered.join(",");
        format!(r#"{{"{MEMBER}":{{"id":{id},"poll_ms":{poll_ms},"answered":[{answered}]{child}}}}}"#)
    }

    fn read(state: &str) -> Option<Task> {
        #[derive(serde::Deserialize)]
        struct Wire {
            #[serde(rename = "durable-mcp/task")]
            task: Inner,
        }
        #[derive(serde::Deserialize)]
        struct Inner {
            id: String,
            poll_ms: u64,
            answered: Vec<String>,
            #[serde(default)]
            child: Option<String>,
        }
        let Wire { task } = serde_json::from_str(state).ok()?;
        let keeper = task.child.as_deref().map_or(Keeper::ADDRESS, Keeper::named);
        Some(Task { id: task.id, keeper, poll: Duration::from_millis(task.poll_ms), answered: task.answered })
    }
}

async fn keep(attempt: &Attempt<'_>, engine: &Weak<Engine>, checkpoint: String) {
    let Some(engine) = engine.upgrade() else { return };
    let lease = LeaseRef { id: attempt.job.id, fencing_token: attempt.job.fencing_token };
    let what = Kept::Checkpoint(checkpoint.into());
    if let Err(error) = engine.store().keep(Keep { lease, what, now_ms: engine.clock().now_ms() }).await {
        tracing::warn!(execution = %lease.id, "the id of a server's task was not kept: {error}");
    }
}

fn gone(error: &RawValue) -> Outcome {
    let (code, _) = error_parts(error);
    let code = code.map(|code| code.to_string()).unwrap_or_default();
    Outcome::lost(TASK_GONE, format!("the server does not tell of its task any more: error {code}"))
}

fn poll_interval(created: &str) -> Duration {
    let found = members(created).unwrap_or_default().into_iter().find(|(name, _)| name == "pollIntervalMs");
    let ms = found.and_then(|(_, value)| serde_json::from_str::<u64>(value.get()).ok());
    ms.map_or(POLL_DEFAULT, Duration::from_millis).clamp(POLL_MIN, POLL_MAX)
}

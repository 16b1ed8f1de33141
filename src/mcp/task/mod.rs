//! Executions as MCP tasks, in both variants: the extension `io.modelcontextprotocol/tasks` of 2026-07-28 and the
//! experimental feature of 2025-11-25. Says what a task looks like and answers `tasks/*`; when a call becomes one is
//! decided by [`offer`], and done by whoever answers the call.

pub mod create;
pub mod experimental;
pub mod extension;
pub mod news;
pub mod offer;
pub mod projection;

#[cfg(test)]
mod tests;

use std::str::FromStr;

use serde_json::json;
use serde_json::value::RawValue;

use self::projection::{Seen, Status};
use super::answer::{self, Audience, Reply};
use super::face::Face;
use super::meta::Params;
use super::reject::{self, RpcError, Source, code};
use crate::engine::asking::OpenQuestion;
use crate::engine::task::Task;
use crate::engine::waiters::Settled;
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::model::json;
use crate::model::principal::{Principal, Scope};
use crate::model::revision::Era;
use crate::store::TaskVariant;

/// The extension's name, in capabilities of both sides.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The `_meta` member that says to which task a message belongs (2025-11-25).
pub const RELATED: &str = "io.modelcontextprotocol/related-task";

/// An error of a handler.
type Failed = (Source, RpcError);

/// A task with everything that its reader is shown.
pub struct Shown {
    task: Task,
    questions: Vec<OpenQuestion>,
    reply: Option<Reply>,
    poll_ms: i64,
}

impl Shown {
    /// What the projections read.
    pub fn seen(&self) -> Seen<'_> {
        Seen {
            row: &self.task.row,
            head: &self.task.head,
            questions: &self.questions,
            reply: self.reply.as_ref(),
            poll_ms: self.poll_ms,
        }
    }

    /// Where it stands.
    pub fn status(&self, variant: TaskVariant) -> Status {
        self.seen().status(variant)
    }
}

impl Face {
    /// The caller's task; anything else is as if it were missing.
    async fn shown(&self, id: &str, reader: (&Principal, Era)) -> Result<Shown, Failed> {
        let Ok(id) = ExecutionId::from_str(id) else { return Err(no_task()) };
        let task = self.engine.task(id, reader.0).await.map_err(failed)?;
        self.dressed(task.ok_or_else(no_task)?, reader.1).await
    }

    /// A task with what else its reader is shown.
    pub(super) async fn dressed(&self, task: Task, era: Era) -> Result<Shown, Failed> {
        let audience = Audience { era, builtins: self.settings.builtins };
        let reply = task.head.state.is_settled().then(|| {
            let settled = Settled { head: task.head.clone(), payload: task.payload.clone() };
            self.settled(&settled, false, audience)
        });
        let questions = match task.head.state {
            State::Waiting => self.engine.questions(task.row.id).await.map_err(failed)?,
            _ => Vec::new(),
        };
        let age_ms = self.engine.clock().now_ms() - task.row.created_at_ms;
        let (min_ms, max_ms) = (self.settings.task_poll_min_ms, self.settings.task_poll_max_ms);
        let poll_ms = projection::poll_ms(age_ms, min_ms, max_ms);
        Ok(Shown { task, questions, reply, poll_ms })
    }
}

/// True when these client capabilities declare the extension.
pub fn is_declared(capabilities: Option<&RawValue>) -> bool {
    let member = |object: &RawValue, name: &str| -> Option<Box<RawValue>> {
        let members = json::members(object.get())?;
        members.into_iter().rev().find(|(member, _)| member == name).map(|(_, value)| value.to_owned())
    };
    let extensions = capabilities.and_then(|capabilities| member(capabilities, "extensions"));
    let extension = extensions.and_then(|extensions| member(&extensions, EXTENSION));
    extension.is_some_and(|extension| json::is_object(&extension))
}

/// The error for a client that would need the extension and did not declare it.
pub fn not_declared() -> RpcError {
    let data = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
    RpcError::new(code::MISSING_CLIENT_CAPABILITY, "this needs the client capability io.modelcontextprotocol/tasks")
        .with_data(&data)
}

fn require(principal: &Principal, scope: Scope) -> Result<(), Failed> {
    reject::require(principal, scope).map_err(|error| (Source::Handler, error))
}

fn task_id<'p>(params: &'p Params<'_>) -> Result<std::borrow::Cow<'p, str>, Failed> {
    params.text("taskId").ok_or_else(|| invalid("params.taskId is missing or not a string"))
}

fn invalid(words: &'static str) -> Failed {
    (Source::Handler, RpcError::new(code::INVALID_PARAMS, words))
}

/// One answer for a task that never was, is somebody else's, or is over.
fn no_task() -> Failed {
    invalid("there is no such task")
}

pub(super) fn failed(error: crate::engine::Error) -> Failed {
    match error {
        crate::engine::Error::NotFound(_) => no_task(),
        error => (Source::Handler, answer::refused(&error)),
    }
}

//! An execution as a task, in both variants: pure, from its row to the JSON that a client reads. Reads nothing and
//! decides nothing about who may see it.
//!
//! The extension (2026-07-28) calls every result `completed`, one that says `isError` included, and keeps `failed` for
//! JSON-RPC errors; the experimental feature (2025-11-25) calls everything but a good result `failed`. An outcome that
//! is not known is shown by what its caller is told: a result that says `isError`.

use std::fmt::Write;

use serde_json::json;

use crate::engine::asking::OpenQuestion;
use crate::engine::view::Time;
use crate::mcp::answer::{Reply, execution_member};
use crate::mcp::face::SERVER_INFO;
use crate::mcp::reject::push_json_string;
use crate::mcp::splice::{EXECUTION_MEMBER, SERVER_INFO_MEMBER};
use crate::model::execution::{Effect, Head, State};
use crate::store::{TaskRow, TaskVariant};

#[cfg(test)]
mod tests;

/// Where a task stands, in the words of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It goes on.
    Working,
    /// It waits for the client.
    InputRequired,
    /// There is a result.
    Completed,
    /// There is none.
    Failed,
    /// It was stopped.
    Cancelled,
}

impl Status {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Working => "working",
            Status::InputRequired => "input_required",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    /// True when nothing follows.
    pub fn is_final(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled)
    }
}

/// What a task is made of.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Since when and how long it is a task.
    pub row: &'a TaskRow,
    /// The execution, as its reader may see it.
    pub head: &'a Head,
    /// What the client has not answered.
    pub questions: &'a [OpenQuestion],
    /// What the caller of an execution that has settled is answered.
    pub reply: Option<&'a Reply>,
    /// When to look again, in milliseconds.
    pub poll_ms: i64,
}

/// What an object of the extension is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The answer to `tools/call`.
    Created,
    /// The answer to `tasks/get`.
    Whole,
    /// The parameters of `notifications/tasks`.
    Notified,
}

impl Seen<'_> {
    /// Where it stands.
    pub fn status(&self, variant: TaskVariant) -> Status {
        match (self.head.state, variant) {
            (State::Scheduled | State::Ready | State::Leased, _) => Status::Working,
            (State::Waiting, _) if self.questions.is_empty() => Status::Working,
            (State::Waiting, _) => Status::InputRequired,
            (State::Cancelled, _) => Status::Cancelled,
            (_, TaskVariant::Extension) => match self.reply {
                Some(Reply::Result(_)) => Status::Completed,
                _ => Status::Failed,
            },
            (State::Completed, TaskVariant::Experimental) if !self.head.is_error => Status::Completed,
            (_, TaskVariant::Experimental) => Status::Failed,
        }
    }

    /// The object of the extension.
    pub fn extension(&self, form: Form) -> String {
        let status = self.status(TaskVariant::Extension);
        let kind = match form {
            Form::Created => "\"resultType\":\"task\",",
            Form::Whole => "\"resultType\":\"complete\",",
            Form::Notified => "",
        };
        let mut out = format!("{{{kind}");
        self.push_common(&mut out, status);
        let _ = write!(out, ",\"ttlMs\":{}", self.row.ttl_ms);
        if !status.is_final() {
            let _ = write!(out, ",\"pollIntervalMs\":{}", self.poll_ms);
        }
        if form != Form::Created {
            match (status, self.reply) {
                (Status::InputRequired, _) => {
                    out.push_str(",\"inputRequests\":");
                    push_requests(&mut out, self.questions);
                }
                (Status::Completed, Some(Reply::Result(result))) => {
                    out.push_str(",\"result\":");
                    result.push(&mut out);
                }
                (Status::Failed, Some(Reply::RawError(error))) => {
                    let _ = write!(out, ",\"error\":{error}");
                }
                (Status::Failed, Some(Reply::Error(error))) => {
                    out.push_str(",\"error\":");
                    error.write(&mut out);
                }
                _ => {}
            }
        }
        if form != Form::Notified {
            let execution = execution_member(self.head, false);
            let _ =
                write!(out, ",\"_meta\":{{\"{SERVER_INFO_MEMBER}\":{SERVER_INFO},\"{EXECUTION_MEMBER}\":{execution}}}");
        }
        out.push('}');
        out
    }

    /// The object of the experimental feature.
    pub fn experimental(&self) -> String {
        self.experimental_as(self.status(TaskVariant::Experimental))
    }

    /// The answer to a `tools/call` of the experimental feature. A task is born working, whatever it is by then
    /// (specification 2025-11-25, tasks, "Task Status Lifecycle").
    pub fn created(&self) -> String {
        let execution = execution_member(self.head, false);
        let task = self.experimental_as(Status::Working);
        format!("{{\"task\":{task},\"_meta\":{{\"{EXECUTION_MEMBER}\":{execution}}}}}")
    }

    fn experimental_as(&self, status: Status) -> String {
        let mut out = String::from("{");
        self.push_common(&mut out, status);
        let _ = write!(out, ",\"ttl\":{}", self.row.ttl_ms);
        if !status.is_final() {
            let _ = write!(out, ",\"pollInterval\":{}", self.poll_ms);
        }
        out.push('}');
        out
    }

    fn push_common(&self, out: &mut String, status: Status) {
        let (id, name) = (self.row.id, status.as_str());
        let _ = write!(out, "\"taskId\":\"{id}\",\"status\":\"{name}\"");
        if let Some(message) = self.message(status) {
            out.push_str(",\"statusMessage\":");
            push_json_string(out, &message);
        }
        let created = Time(self.row.created_at_ms);
        let updated = Time(self.head.updated_at_ms.max(self.row.created_at_ms));
        let _ = write!(out, ",\"createdAt\":\"{created}\",\"lastUpdatedAt\":\"{updated}\"");
    }

    /// One sentence for people, where the status alone does not say it.
    fn message(&self, status: Status) -> Option<String> {
        let head = self.head;
        let error = head.error.as_ref();
        Some(match (status, head.state) {
            (Status::Working, State::Scheduled) if error.is_some() => {
                let code = error.map_or("", |error| &error.code);
                format!("An attempt was lost ({code}); another one follows.")
            }
            (Status::Working, State::Scheduled | State::Ready) => "It waits for its turn.".into(),
            (Status::Working, State::Waiting) => "It waits.".into(),
            (Status::InputRequired, _) => "It needs input from the client.".into(),
            (Status::Cancelled, _) => match head.effect {
                Some(Effect::None) => "It was never started.".into(),
                _ => "It had been started, so it may have taken effect before it was stopped.".into(),
            },
            (_, State::Unknown) => "The outcome is not known; it was not run again.".into(),
            (_, State::Failed) => error.map_or_else(|| "It failed.".into(), |error| error.message.clone()),
            (Status::Failed, _) => "The tool reported an error.".into(),
            _ => return None,
        })
    }
}

/// The questions as `inputRequests`.
fn push_requests(out: &mut String, questions: &[OpenQuestion]) {
    out.push('{');
    for (n, question) in questions.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        push_json_string(out, &question.key);
        let _ = write!(out, ":{{\"method\":{},\"params\":{}}}", json!(question.method), question.params);
    }
    out.push('}');
}

/// When to look at a task again: soon while it is young, then a tenth of its age, within bounds. All in milliseconds.
pub fn poll_ms(age_ms: i64, min_ms: i64, max_ms: i64) -> i64 {
    (age_ms / 10).min(max_ms).max(min_ms)
}

//! What the store keeps of an execution that a client sees as an MCP task: since when, how long, and which end it was
//! shown; and what asking again means for that. Shows nothing itself.

use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::model::policy::OnTaskExpiry;

/// As which of the two features of MCP a task was first asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskVariant {
    /// The extension `io.modelcontextprotocol/tasks` (2026-07-28).
    Extension,
    /// The experimental feature of 2025-11-25.
    Experimental,
}

impl TaskVariant {
    /// The stored name.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskVariant::Extension => "extension",
            TaskVariant::Experimental => "experimental",
        }
    }

    /// Reads a stored name.
    pub fn parse(text: &str) -> Option<Self> {
        [TaskVariant::Extension, TaskVariant::Experimental].into_iter().find(|variant| variant.as_str() == text)
    }
}

/// An execution seen as a task. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// The execution, which names the task too.
    pub id: ExecutionId,
    /// The tenant border.
    pub namespace: String,
    /// Whose it is.
    pub principal: String,
    /// As what it was first asked for.
    pub variant: TaskVariant,
    /// How long it can be read, from its creation.
    pub ttl_ms: i64,
    /// When it was first seen as a task.
    pub created_at_ms: i64,
    /// What its time's end means for work that still runs.
    pub on_expiry: OnTaskExpiry,
    /// The last event of the end that a reader was shown first; only of an end that may still change.
    pub shown_seq: Option<i64>,
    /// Where the client wanted progress reported to, as JSON.
    pub progress_token: Option<String>,
}

impl TaskRow {
    /// From then on it is gone for its reader.
    pub fn expires_at_ms(&self) -> i64 {
        self.created_at_ms.saturating_add(self.ttl_ms)
    }

    /// True once its time is over.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms() <= now_ms
    }

    /// What is stored when a client asks for the execution as a task: one whose time is over starts anew, one that is there
    /// lives as long as the longer of both wishes.
    pub(super) fn opened(stored: Option<TaskRow>, wish: &TaskRow) -> TaskRow {
        let Some(stored) = stored else { return wish.clone() };
        let progress_token = wish.progress_token.clone().or_else(|| stored.progress_token.clone());
        if stored.is_expired(wish.created_at_ms) {
            // Whose it is does not change.
            let TaskRow { namespace, principal, .. } = stored;
            return TaskRow { namespace, principal, shown_seq: None, progress_token, ..wish.clone() };
        }
        let ttl_ms = stored.expires_at_ms().max(wish.expires_at_ms()) - stored.created_at_ms;
        TaskRow { ttl_ms, progress_token, ..stored }
    }

    /// True when the end with event `seq` becomes the one that was shown first: there is none yet, and the execution is
    /// still as its reader saw it.
    pub(super) fn is_first_shown(&self, head: Option<&Head>, seq: i64) -> bool {
        let stands = |head: &Head| head.state == State::Unknown && head.next_seq == seq.saturating_add(1);
        self.shown_seq.is_none() && head.is_some_and(stands)
    }
}

/// A page of somebody's own tasks, newest first.
#[derive(Clone, Debug, Default)]
pub struct TaskQuery {
    /// The tenant border.
    pub namespace: String,
    /// Whose.
    pub principal: String,
    /// Only tasks older than this one.
    pub before: Option<ExecutionId>,
    /// Only tasks whose time is not over then, in milliseconds since the epoch.
    pub now_ms: i64,
    /// At most so many.
    pub limit: usize,
}

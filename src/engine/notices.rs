//! What upstreams tell unasked: changed lists, updated resources, log messages. Each goes to whom it belongs and to nobody
//! else; bounded, and lost rather than waited for.

use tokio::sync::broadcast;

use super::Engine;
use crate::model::id::ExecutionId;
use crate::store::Payload;

/// The notification that the list of tools has changed.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The notification that the list of resources or of their templates has changed.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// The notification that the list of prompts has changed.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// The notification that a resource has changed; for those who subscribed to its URI.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// A log message.
pub const MESSAGE: &str = "notifications/message";
/// The status of a task has changed (2025-11-25); for the session that made it.
pub const TASK_STATUS: &str = "notifications/tasks/status";
/// Not of MCP, and never passed on: the server has made a task of a call, so its caller may get one too.
pub const TASKED: &str = "durable-mcp/tasked";

/// Notices that a follower has not taken yet; a slower one loses the oldest and is told how many.
const QUEUE: usize = 1_024;

/// One notification of an upstream.
#[derive(Clone, Debug)]
pub struct Notice {
    /// Who tells it.
    pub upstream: String,
    /// Whose it is.
    pub to: Addressee,
    /// The notification's method.
    pub method: String,
    /// Its `params` object, byte for byte.
    pub params: Option<Payload>,
}

/// Whose a notice is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressee {
    /// Everybody who sees the upstream; of updated resources, everybody who subscribed.
    Everybody,
    /// One session, by its id.
    Session(String),
    /// Whatever one principal has open.
    Principal {
        /// Its namespace.
        namespace: String,
        /// Its subject.
        subject: String,
    },
    /// Whoever waits for the execution.
    Execution(ExecutionId),
}

/// Where notices go; the channel of an engine.
#[derive(Debug)]
pub struct Notices(broadcast::Sender<Notice>);

impl Default for Notices {
    fn default() -> Self {
        Self(broadcast::channel(QUEUE).0)
    }
}

impl Engine {
    /// Passes a notice on. Nobody may be there to take it.
    pub fn tell(&self, notice: Notice) {
        match notice.to {
            Addressee::Execution(id) => self.waiters.message(id, notice),
            _ => drop(self.notices.0.send(notice)),
        }
    }

    /// Follows all notices but those of executions, which go to the callers of these.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.0.subscribe()
    }
}

//! Calls that their upstream has answered with a task of its own: whoever waits for one of these and knows tasks need wait no
//! longer for a handle. Lost words cost time only: the caller's own budget hands it the task all the same.

use tokio::sync::broadcast;

use super::Engine;
use crate::model::id::ExecutionId;

/// Calls that a follower has not taken yet.
const QUEUE: usize = 1_024;

/// See the module.
#[derive(Debug)]
pub struct ServedTasks(broadcast::Sender<ExecutionId>);

impl Default for ServedTasks {
    fn default() -> Self {
        Self(broadcast::channel(QUEUE).0)
    }
}

impl Engine {
    /// The upstream has answered the call with a task, which this process follows.
    pub fn served_as_task(&self, id: ExecutionId) {
        // Nobody may be there to hear it.
        let _ = self.served_tasks.0.send(id);
    }

    /// Follows the calls that upstreams answer with tasks.
    pub fn served_tasks(&self) -> broadcast::Receiver<ExecutionId> {
        self.served_tasks.0.subscribe()
    }
}

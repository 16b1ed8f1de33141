//! Calls that upstreams answer with tasks of their own. Who waits for such a call may be given a task too; the task itself
//! is followed where its call runs.

use super::Engine;
use super::notices::{Addressee, Notice, TASKED};
use crate::model::id::ExecutionId;

impl Engine {
    /// The upstream has answered the call with a task, which this process follows. Nobody may wait to hear it.
    pub fn served_as_task(&self, upstream: &str, id: ExecutionId) {
        let to = Addressee::Execution(id);
        self.tell(Notice { upstream: upstream.to_owned(), to, method: TASKED.to_owned(), params: None });
    }
}

//! Rows of live executions the writer remembers between batches. True only while nobody else writes to the file: the
//! writer forgets all of them when the database says that another connection changed it, and after a rollback.

use std::collections::HashMap;

use crate::model::id::ExecutionId;
use crate::store::deciding::Entry;

/// The rows remembered.
pub(super) struct Heads {
    entries: HashMap<ExecutionId, Entry>,
    max: usize,
}

impl Heads {
    pub(super) fn new(max: usize) -> Heads {
        Heads { entries: HashMap::new(), max }
    }

    pub(super) fn take(&mut self, id: ExecutionId) -> Option<Entry> {
        self.entries.remove(&id)
    }

    /// Remembers a row unless it has ended: nothing more is decided on those.
    pub(super) fn put(&mut self, entry: Entry) {
        if entry.head.state.is_ended() || self.max == 0 {
            return;
        }
        if self.entries.len() >= self.max {
            self.entries.clear();
        }
        self.entries.insert(entry.head.id(), entry);
    }

    pub(super) fn forget_all(&mut self) {
        self.entries.clear();
    }
}

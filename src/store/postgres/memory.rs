//! Rows of live executions as this process wrote them last: what the common write is decided on without a read. Never the
//! last word: what is written carries the version it was decided on, and a row that is not so any more is read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::store::deciding::Entry;

/// The rows remembered.
pub(super) struct Memory {
    entries: Mutex<HashMap<ExecutionId, Entry>>,
    max: usize,
}

impl Memory {
    pub(super) fn new(max: usize) -> Memory {
        Memory { entries: Mutex::default(), max }
    }

    /// Whether a row is remembered.
    pub(super) fn has(&self, id: ExecutionId) -> bool {
        self.entries().contains_key(&id)
    }

    /// What is remembered of a row. Whoever has it gives it back once it is known to be stored.
    pub(super) fn take(&self, id: ExecutionId) -> Option<Entry> {
        self.entries().remove(&id)
    }

    /// Remembers rows that are stored like this, and forgets those on which nothing more is decided. Full, it forgets all.
    pub(super) fn put(&self, stored: impl IntoIterator<Item = Entry>) {
        let mut entries = self.entries();
        for entry in stored {
            if is_over(&entry.head) {
                entries.remove(&entry.head.id());
                continue;
            }
            if entries.len() >= self.max {
                entries.clear();
            }
            if self.max > 0 {
                entries.insert(entry.head.id(), entry);
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ExecutionId, Entry>> {
        self.entries.lock().expect("no thread panics with this lock")
    }
}

/// An end is the last write of a keyed call; an unkeyed one waits for the mark that it was delivered.
fn is_over(head: &Head) -> bool {
    head.state.is_ended() && (head.ident.key.is_some() || head.delivered_at_ms.is_some() || head.handle_given)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::execution::{Identification, State};

    #[test]
    fn a_row_that_is_over_is_forgotten_whoever_wrote_its_end() {
        let memory = Memory::new(2);
        let id = ExecutionId::from_uuid(Uuid::from_u128(1));
        let ident = Identification { key: Some("k".into()), ..Identification::sample(id) };
        let row = |state| Entry { head: Head { state, ..Head::new(ident.clone(), 1) }, operations: Vec::new() };
        memory.put([row(State::Leased)]);
        assert!(memory.has(id));
        memory.put([row(State::Completed)]);
        assert!(!memory.has(id));
        assert!(memory.take(id).is_none());
    }
}

//! What one command of a batch works with: the open transaction, and what the writer remembers. Commits nothing itself.

use rusqlite::Connection;

use super::events;
use super::fault::Sql;
use super::heads::{Entry, Heads};
use super::liveness::Liveness;
use super::policies::{Policies, StoredPolicies};
use super::rows;
use super::settings::SqliteSettings;
use crate::model::event::{Event, EventRecord};
use crate::model::id::{ExecutionId, OperationId};

/// The open transaction.
pub(super) struct Tx<'a> {
    pub(super) connection: &'a Connection,
    pub(super) heads: &'a mut Heads,
    pub(super) policies: &'a Policies,
    pub(super) stored_policies: &'a mut StoredPolicies,
    pub(super) liveness: &'a Liveness,
    pub(super) settings: &'a SqliteSettings,
}

/// The write an event comes from.
#[derive(Clone, Copy)]
pub(super) struct Write {
    pub(super) operation: OperationId,
    pub(super) now_ms: i64,
}

impl Tx<'_> {
    /// The row of `id` as it stands, with its operations. Give it back with [`Tx::keep`].
    pub(super) fn entry(&mut self, id: ExecutionId) -> Sql<Option<Entry>> {
        let remembered = self.heads.take(id);
        if remembered.is_some() && !cfg!(debug_assertions) {
            return Ok(remembered);
        }
        let stored = match rows::by_id(self.connection, self.policies, id)? {
            Some(head) => Some(Entry { head, operations: events::operations(self.connection, id)? }),
            None => None,
        };
        if let Some(remembered) = remembered {
            // Debug builds, and so every test, pay for the proof that what is remembered is what is stored.
            assert_eq!(Some(&remembered.head), stored.as_ref().map(|entry| &entry.head), "a stale row was remembered");
        }
        Ok(stored)
    }

    /// Remembers the row for the next command.
    pub(super) fn keep(&mut self, entry: Entry) {
        self.heads.put(entry);
    }

    /// Folds events into the row and appends them to the log. The row itself is still to be written.
    pub(super) fn record(&mut self, entry: &mut Entry, events: Vec<Event>, write: Write) -> Sql<()> {
        if events.is_empty() {
            return Ok(());
        }
        let first_seq = entry.head.next_seq;
        for event in &events {
            entry.head.apply(event, write.now_ms);
        }
        entry.operations.push(write.operation);
        self.append(entry.head.id(), events, first_seq, write)
    }

    /// Appends events to the log.
    pub(super) fn append(&mut self, id: ExecutionId, events: Vec<Event>, first_seq: i64, write: Write) -> Sql<()> {
        for (seq, event) in (first_seq..).zip(events) {
            let record = EventRecord { seq, at_ms: write.now_ms, operation: write.operation, event };
            events::insert(self.connection, id, &record)?;
        }
        Ok(())
    }
}

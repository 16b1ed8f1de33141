//! What one command of a batch works with: the open transaction, and what the writer remembers. Commits nothing itself.

use rusqlite::Connection;

use super::events;
use super::fault::Sql;
use super::heads::Heads;
use super::liveness::Liveness;
use super::policies::{Policies, StoredPolicies};
use super::rows;
use super::settings::SqliteSettings;
use crate::model::event::Event;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::deciding::{Change, Entry, Write};
use crate::store::observer::Committed;

/// The open transaction.
pub(super) struct Tx<'a> {
    pub(super) connection: &'a Connection,
    pub(super) heads: &'a mut Heads,
    pub(super) policies: &'a Policies,
    pub(super) stored_policies: &'a mut StoredPolicies,
    pub(super) liveness: &'a Liveness,
    pub(super) settings: &'a SqliteSettings,
    /// What is to be told of this transaction after its commit.
    pub(super) told: &'a mut Vec<Committed>,
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

    /// Appends events to the log.
    pub(super) fn append(&mut self, head: &Head, change: Change, write: Write) -> Sql<()> {
        self.log(head, (Some(change.was), change.first_seq), change.events, write)
    }

    /// Begins the log of a new execution.
    pub(super) fn begin(&mut self, head: &Head, events: Vec<Event>, write: Write) -> Sql<()> {
        self.log(head, (None, 1), events, write)
    }

    fn log(
        &mut self,
        head: &Head,
        (was, first_seq): (Option<State>, i64),
        events: Vec<Event>,
        write: Write,
    ) -> Sql<()> {
        let mut told = Vec::with_capacity(events.len());
        for record in write.records(first_seq, events) {
            events::insert(self.connection, head.id(), &record)?;
            told.push(record.event);
        }
        self.told.push(Committed::of(head, was, write, told));
        Ok(())
    }

    /// Writes what changed in a row that is folded already.
    pub(super) fn write(&mut self, entry: &mut Entry, change: Change, write: Write) -> Sql<()> {
        if change.events.is_empty() {
            return rows::update_lease(self.connection, &mut entry.head);
        }
        self.append(&entry.head, change, write)?;
        rows::update(self.connection, &mut entry.head)
    }
}

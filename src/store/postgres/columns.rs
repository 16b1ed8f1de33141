//! What is written of executions, as columns: a list of values for each, one for each row. Knows no statement: those are in
//! `write.rs`.

use tokio_postgres::types::Type;
use uuid::Uuid;

use super::db::Param;
use super::fault::{Fault, Sql};
use super::rows::shard;
use crate::model::event::EventRecord;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::encoding::{deadline_at_ms, effect_name, event_body, pieces, source_name};
use crate::store::observer::Committed;
use crate::store::{Payload, PayloadKind, deciding};

/// What changes in the life of a row, as columns.
#[derive(Default)]
pub(super) struct States<'a> {
    version: Vec<i64>,
    state: Vec<&'a str>,
    attempt: Vec<i64>,
    attempts_allowed: Vec<i64>,
    fencing_token: Vec<i64>,
    lease_worker: Vec<Option<&'a str>>,
    lease_process: Vec<Option<Uuid>>,
    lease_expires_at_ms: Vec<Option<i64>>,
    effect_possible: Vec<bool>,
    continues: Vec<bool>,
    run_at_ms: Vec<i64>,
    deadline_at_ms: Vec<Option<i64>>,
    updated_at_ms: Vec<i64>,
    ended_at_ms: Vec<Option<i64>>,
    next_seq: Vec<i64>,
    is_error: Vec<bool>,
    source: Vec<Option<&'a str>>,
    error_code: Vec<Option<&'a str>>,
    error_message: Vec<Option<&'a str>>,
    effect: Vec<Option<&'a str>>,
    notes: Vec<i64>,
    waited_ms: Vec<i64>,
    waiting_since_ms: Vec<Option<i64>>,
    waiter: Vec<Option<Uuid>>,
    delivered_at_ms: Vec<Option<i64>>,
    handle_given: Vec<bool>,
}

impl<'a> States<'a> {
    pub(super) fn push(&mut self, head: &'a Head) {
        let (lease, error) = (head.lease.as_ref(), head.error.as_ref());
        self.version.push(head.version);
        self.state.push(head.state.as_str());
        self.attempt.push(head.attempt.into());
        self.attempts_allowed.push(head.attempts_allowed.into());
        self.fencing_token.push(head.fencing_token);
        self.lease_worker.push(lease.map(|lease| lease.worker.as_str()));
        self.lease_process.push(lease.map(|lease| *lease.process.as_uuid()));
        self.lease_expires_at_ms.push(lease.map(|lease| lease.expires_at_ms));
        self.effect_possible.push(head.effect_possible);
        self.continues.push(head.continues);
        self.run_at_ms.push(head.run_at_ms);
        self.deadline_at_ms.push(deadline_at_ms(head));
        self.updated_at_ms.push(head.updated_at_ms);
        self.ended_at_ms.push(head.ended_at_ms);
        self.next_seq.push(head.next_seq);
        self.is_error.push(head.is_error);
        self.source.push(head.source.map(source_name));
        self.error_code.push(error.map(|error| error.code.as_str()));
        self.error_message.push(error.map(|error| error.message.as_str()));
        self.effect.push(head.effect.map(effect_name));
        self.notes.push(head.notes.into());
        self.waited_ms.push(head.waited_ms);
        self.waiting_since_ms.push(head.waiting_since_ms);
        self.waiter.push(head.waiter.map(|process| *process.as_uuid()));
        self.delivered_at_ms.push(head.delivered_at_ms);
        self.handle_given.push(head.handle_given);
    }

    /// What is written of every row.
    pub(super) fn own(&self) -> [Param<'_>; 10] {
        [
            (&self.version, Type::INT8_ARRAY),
            (&self.state, Type::TEXT_ARRAY),
            (&self.attempt, Type::INT8_ARRAY),
            (&self.attempts_allowed, Type::INT8_ARRAY),
            (&self.fencing_token, Type::INT8_ARRAY),
            (&self.effect_possible, Type::BOOL_ARRAY),
            (&self.run_at_ms, Type::INT8_ARRAY),
            (&self.updated_at_ms, Type::INT8_ARRAY),
            (&self.next_seq, Type::INT8_ARRAY),
            (&self.waiter, Type::UUID_ARRAY),
        ]
    }

    /// Who runs it.
    pub(super) fn lease(&self) -> [Param<'_>; 3] {
        [
            (&self.lease_worker, Type::TEXT_ARRAY),
            (&self.lease_process, Type::UUID_ARRAY),
            (&self.lease_expires_at_ms, Type::INT8_ARRAY),
        ]
    }

    /// That it is over.
    pub(super) fn end(&self) -> [Param<'_>; 2] {
        [(&self.ended_at_ms, Type::INT8_ARRAY), (&self.source, Type::TEXT_ARRAY)]
    }

    /// What most rows have nothing in.
    pub(super) fn seldom(&self) -> [Param<'_>; 11] {
        [
            (&self.deadline_at_ms, Type::INT8_ARRAY),
            (&self.continues, Type::BOOL_ARRAY),
            (&self.is_error, Type::BOOL_ARRAY),
            (&self.error_code, Type::TEXT_ARRAY),
            (&self.error_message, Type::TEXT_ARRAY),
            (&self.effect, Type::TEXT_ARRAY),
            (&self.notes, Type::INT8_ARRAY),
            (&self.waited_ms, Type::INT8_ARRAY),
            (&self.waiting_since_ms, Type::INT8_ARRAY),
            (&self.delivered_at_ms, Type::INT8_ARRAY),
            (&self.handle_given, Type::BOOL_ARRAY),
        ]
    }
}

/// True when there is something in what [`States::seldom`] holds of a row.
pub(super) fn is_rare(head: &Head) -> bool {
    let marks = head.delivered_at_ms.is_some() || head.handle_given;
    let waits = head.waiting_since_ms.is_some() || head.waited_ms != 0 || deadline_at_ms(head).is_some();
    let failed = head.is_error || head.error.is_some() || head.effect.is_some() || head.notes != 0;
    marks || waits || failed || head.continues
}

/// Events that go with rows, and the first piece of each payload, as columns.
#[derive(Default)]
pub(super) struct Belongings<'a> {
    event_shard: Vec<i64>,
    event_of: Vec<Uuid>,
    seq: Vec<i64>,
    at_ms: Vec<i64>,
    name: Vec<&'a str>,
    body: Vec<String>,
    operation: Vec<Uuid>,
    payload_shard: Vec<i64>,
    payload_of: Vec<Uuid>,
    kind: Vec<&'a str>,
    chunk: Vec<i64>,
    piece: Vec<&'a str>,
}

impl<'a> Belongings<'a> {
    pub(super) fn push(&mut self, id: ExecutionId, written: &'a Written, chunk_bytes: usize) -> Sql<()> {
        let (part, id) = (shard(id), *id.as_uuid());
        for record in &written.records {
            self.event_shard.push(part);
            self.event_of.push(id);
            self.seq.push(record.seq);
            self.at_ms.push(record.at_ms);
            self.name.push(record.event.name());
            self.body.push(event_body(&record.event).map_err(Fault::internal)?);
            self.operation.push(*record.operation.as_uuid());
        }
        for (kind, text) in &written.payloads {
            self.payload_shard.push(part);
            self.payload_of.push(id);
            self.kind.push(kind.as_str());
            self.chunk.push(0);
            self.piece.extend(pieces(text, chunk_bytes).next());
        }
        Ok(())
    }

    pub(super) fn params(&self) -> [Param<'_>; 12] {
        [
            (&self.event_shard, Type::INT8_ARRAY),
            (&self.event_of, Type::UUID_ARRAY),
            (&self.seq, Type::INT8_ARRAY),
            (&self.at_ms, Type::INT8_ARRAY),
            (&self.name, Type::TEXT_ARRAY),
            (&self.body, Type::TEXT_ARRAY),
            (&self.operation, Type::UUID_ARRAY),
            (&self.payload_shard, Type::INT8_ARRAY),
            (&self.payload_of, Type::UUID_ARRAY),
            (&self.kind, Type::TEXT_ARRAY),
            (&self.chunk, Type::INT8_ARRAY),
            (&self.piece, Type::TEXT_ARRAY),
        ]
    }
}

/// What is written with a row.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Where the execution stood before the first event; a new one stood nowhere.
    pub(super) was: Option<State>,
    pub(super) records: Vec<EventRecord>,
    pub(super) payloads: Vec<(PayloadKind, Payload)>,
}

impl Written {
    /// The pieces of payloads after the first ones, each with its kind and number: the driver builds a statement as one
    /// message and copies that once more, so that a long text goes piece by piece.
    pub(super) fn further_pieces(&self, chunk_bytes: usize) -> impl Iterator<Item = (PayloadKind, i64, &str)> {
        self.payloads.iter().flat_map(move |(kind, text)| {
            (0..).zip(pieces(text, chunk_bytes)).skip(1).map(|(chunk, piece)| (*kind, chunk, piece))
        })
    }

    /// What is to be told of it, each operation's events by themselves.
    pub(super) fn committed(&self, head: &Head) -> impl Iterator<Item = Committed> {
        let mut was = self.was;
        self.records.chunk_by(|one, next| one.operation == next.operation).map(move |records| {
            let write = deciding::Write { operation: records[0].operation, now_ms: records[0].at_ms };
            let events = records.iter().map(|record| record.event.clone()).collect();
            Committed::of(head, was.replace(head.state), write, events)
        })
    }
}

//! What a batch writes, as columns: new executions with their keys, changed ones by version, and with each its events and
//! payloads. One statement for each shape, atomic alone; it tells which rows it struck. Decides nothing.

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::db::{Param, Reading};
use super::fault::{Fault, Sql};
use super::rows::{execution, shard};
use crate::model::event::EventRecord;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::encoding::{deadline_at_ms, effect_name, event_body, pieces, source_name};
use crate::store::observer::Committed;
use crate::store::{Payload, PayloadKind, deciding};

/// What changes in the life of a row, as columns.
#[derive(Default)]
struct States<'a> {
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
    fn push(&mut self, head: &'a Head) {
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

    fn params(&self) -> [Param<'_>; 26] {
        [
            (&self.version, Type::INT8_ARRAY),
            (&self.state, Type::TEXT_ARRAY),
            (&self.attempt, Type::INT8_ARRAY),
            (&self.attempts_allowed, Type::INT8_ARRAY),
            (&self.fencing_token, Type::INT8_ARRAY),
            (&self.lease_worker, Type::TEXT_ARRAY),
            (&self.lease_process, Type::UUID_ARRAY),
            (&self.lease_expires_at_ms, Type::INT8_ARRAY),
            (&self.effect_possible, Type::BOOL_ARRAY),
            (&self.continues, Type::BOOL_ARRAY),
            (&self.run_at_ms, Type::INT8_ARRAY),
            (&self.deadline_at_ms, Type::INT8_ARRAY),
            (&self.updated_at_ms, Type::INT8_ARRAY),
            (&self.ended_at_ms, Type::INT8_ARRAY),
            (&self.next_seq, Type::INT8_ARRAY),
            (&self.is_error, Type::BOOL_ARRAY),
            (&self.source, Type::TEXT_ARRAY),
            (&self.error_code, Type::TEXT_ARRAY),
            (&self.error_message, Type::TEXT_ARRAY),
            (&self.effect, Type::TEXT_ARRAY),
            (&self.notes, Type::INT8_ARRAY),
            (&self.waited_ms, Type::INT8_ARRAY),
            (&self.waiting_since_ms, Type::INT8_ARRAY),
            (&self.waiter, Type::UUID_ARRAY),
            (&self.delivered_at_ms, Type::INT8_ARRAY),
            (&self.handle_given, Type::BOOL_ARRAY),
        ]
    }
}

/// Events and payloads that go with rows, as columns.
#[derive(Default)]
struct Belongings<'a> {
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
    fn push(&mut self, id: ExecutionId, written: &'a Written, chunk_bytes: usize) -> Sql<()> {
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
            for (chunk, piece) in pieces(text, chunk_bytes).enumerate() {
                self.payload_shard.push(part);
                self.payload_of.push(id);
                self.kind.push(kind.as_str());
                self.chunk.push(chunk as i64);
                self.piece.push(piece);
            }
        }
        Ok(())
    }

    fn params(&self) -> [Param<'_>; 12] {
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

/// Rows that are there already, as they are to be.
#[derive(Default)]
pub(super) struct Changed<'a> {
    shard: Vec<i64>,
    id: Vec<Uuid>,
    was: Vec<i64>,
    states: States<'a>,
    belongings: Belongings<'a>,
}

/// Events and payloads are written with the rows that still had the version they were decided on, with no others. `IS TRUE`
/// keeps the planner from making a join of it: hash joins are off here ([`PLANS`](super::lane::PLANS)), and a nested loop
/// compares each event with each row. The list is hashed once instead.
pub(super) const CHANGE: &str = "WITH struck AS (UPDATE executions AS e SET version = g.version, state = g.state, \
    attempt = g.attempt, attempts_allowed = g.attempts_allowed, fencing_token = g.fencing_token, \
    lease_worker = g.lease_worker, lease_process = g.lease_process, lease_expires_at_ms = g.lease_expires_at_ms, \
    effect_possible = g.effect_possible, continues = g.continues, run_at_ms = g.run_at_ms, \
    deadline_at_ms = g.deadline_at_ms, updated_at_ms = g.updated_at_ms, ended_at_ms = g.ended_at_ms, \
    next_seq = g.next_seq, is_error = g.is_error, source = g.source, error_code = g.error_code, \
    error_message = g.error_message, effect = g.effect, notes = g.notes, waited_ms = g.waited_ms, \
    waiting_since_ms = g.waiting_since_ms, waiter = g.waiter, delivered_at_ms = g.delivered_at_ms, \
    handle_given = g.handle_given \
    FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], \
    $8::bigint[], $9::text[], $10::uuid[], $11::bigint[], $12::boolean[], $13::boolean[], $14::bigint[], \
    $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::boolean[], $20::text[], $21::text[], \
    $22::text[], $23::text[], $24::bigint[], $25::bigint[], $26::bigint[], $27::uuid[], $28::bigint[], \
    $29::boolean[]) AS g (shard, id, was, version, state, attempt, attempts_allowed, fencing_token, lease_worker, \
    lease_process, lease_expires_at_ms, effect_possible, continues, run_at_ms, deadline_at_ms, updated_at_ms, \
    ended_at_ms, next_seq, is_error, source, error_code, error_message, effect, notes, waited_ms, waiting_since_ms, \
    waiter, delivered_at_ms, handle_given) \
    WHERE e.shard = g.shard AND e.id = g.id AND e.version = g.was RETURNING e.id), \
    logged AS (INSERT INTO execution_events (shard, execution_id, seq, at_ms, type, body, operation) \
    SELECT v.shard, v.execution_id, v.seq, v.at_ms, v.type, v.body, v.operation \
    FROM unnest($30::bigint[], $31::uuid[], $32::bigint[], $33::bigint[], $34::text[], $35::text[], $36::uuid[]) \
    AS v (shard, execution_id, seq, at_ms, type, body, operation) \
    WHERE (v.execution_id IN (SELECT s.id FROM struck s)) IS TRUE), \
    kept AS (INSERT INTO payloads (shard, execution_id, kind, chunk, body) \
    SELECT p.shard, p.execution_id, p.kind, p.chunk, p.body \
    FROM unnest($37::bigint[], $38::uuid[], $39::text[], $40::bigint[], $41::text[]) \
    AS p (shard, execution_id, kind, chunk, body) WHERE (p.execution_id IN (SELECT s.id FROM struck s)) IS TRUE) \
    SELECT s.id FROM struck s";

impl<'a> Changed<'a> {
    /// A row as it is to be, with the version it was decided on.
    pub(super) fn push(&mut self, head: &'a Head, was: i64, written: &'a Written, chunk_bytes: usize) -> Sql<()> {
        self.shard.push(shard(head.id()));
        self.id.push(*head.id().as_uuid());
        self.was.push(was);
        self.states.push(head);
        self.belongings.push(head.id(), written, chunk_bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// The values of [`CHANGE`].
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let mut params: Vec<Param<'_>> =
            vec![(&self.shard, Type::INT8_ARRAY), (&self.id, Type::UUID_ARRAY), (&self.was, Type::INT8_ARRAY)];
        params.extend(self.states.params());
        params.extend(self.belongings.params());
        params
    }

    /// Writes them; which were struck.
    pub(super) async fn write(&self, reading: &Reading<'_>) -> Sql<Vec<ExecutionId>> {
        struck(&reading.query(CHANGE, &self.params()).await?)
    }
}

/// New rows, as columns.
#[derive(Default)]
pub(super) struct Stored<'a> {
    shard: Vec<i64>,
    id: Vec<Uuid>,
    namespace: Vec<&'a str>,
    upstream: Vec<&'a str>,
    tool: Vec<&'a str>,
    key: Vec<Option<&'a str>>,
    ttl_ms: Vec<i64>,
    principal: Vec<&'a str>,
    caller: Vec<&'a str>,
    arguments_hash: Vec<&'a str>,
    policy_id: Vec<&'a str>,
    effect_key: Vec<Option<Uuid>>,
    retry_of: Vec<Option<Uuid>>,
    bound_to: Vec<Option<Uuid>>,
    start_by_ms: Vec<Option<i64>>,
    created_at_ms: Vec<i64>,
    /// Who has to hold the key for it to be taken over; nobody: it has to be free.
    taken_from: Vec<Option<Uuid>>,
    states: States<'a>,
    belongings: Belongings<'a>,
}

macro_rules! store {
    ($key:literal) => {
        concat!(
            "WITH g AS (SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], \
             $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], $12::uuid[], $13::uuid[], \
             $14::uuid[], $15::bigint[], $16::bigint[], $17::uuid[], $18::bigint[], $19::text[], $20::bigint[], \
             $21::bigint[], $22::bigint[], $23::text[], $24::uuid[], $25::bigint[], $26::boolean[], $27::boolean[], \
             $28::bigint[], $29::bigint[], $30::bigint[], $31::bigint[], $32::bigint[], $33::boolean[], $34::text[], \
             $35::text[], $36::text[], $37::text[], $38::bigint[], $39::bigint[], $40::bigint[], $41::uuid[], \
             $42::bigint[], $43::boolean[]) AS u (shard, id, namespace, upstream, tool, key, ttl_ms, principal, \
             caller, arguments_hash, policy_id, effect_key, retry_of, bound_to, start_by_ms, created_at_ms, \
             taken_from, version, state, attempt, attempts_allowed, fencing_token, lease_worker, lease_process, \
             lease_expires_at_ms, effect_possible, continues, run_at_ms, deadline_at_ms, updated_at_ms, ended_at_ms, \
             next_seq, is_error, source, error_code, error_message, effect, notes, waited_ms, waiting_since_ms, \
             waiter, delivered_at_ms, handle_given)), keyed AS (",
            $key,
            "), struck AS (INSERT INTO executions (shard, id, namespace, upstream, tool, key, principal, caller, \
             arguments_hash, policy_id, effect_key, retry_of, bound_to, start_by_ms, created_at_ms, version, state, \
             attempt, attempts_allowed, fencing_token, lease_worker, lease_process, lease_expires_at_ms, \
             effect_possible, continues, run_at_ms, deadline_at_ms, updated_at_ms, ended_at_ms, next_seq, is_error, \
             source, error_code, error_message, effect, notes, waited_ms, waiting_since_ms, waiter, \
             delivered_at_ms, handle_given, payloads_kept) \
             SELECT g.shard, g.id, g.namespace, g.upstream, g.tool, g.key, g.principal, g.caller, g.arguments_hash, \
             g.policy_id, g.effect_key, g.retry_of, g.bound_to, g.start_by_ms, g.created_at_ms, g.version, g.state, \
             g.attempt, g.attempts_allowed, g.fencing_token, g.lease_worker, g.lease_process, \
             g.lease_expires_at_ms, g.effect_possible, g.continues, g.run_at_ms, g.deadline_at_ms, \
             g.updated_at_ms, g.ended_at_ms, g.next_seq, g.is_error, g.source, g.error_code, g.error_message, \
             g.effect, g.notes, g.waited_ms, g.waiting_since_ms, g.waiter, g.delivered_at_ms, g.handle_given, TRUE \
             FROM g WHERE g.key IS NULL OR g.id IN (SELECT k.execution_id FROM keyed k) \
             ON CONFLICT (shard, id) DO NOTHING RETURNING id), \
             logged AS (INSERT INTO execution_events (shard, execution_id, seq, at_ms, type, body, operation) \
             SELECT v.shard, v.execution_id, v.seq, v.at_ms, v.type, v.body, v.operation \
             FROM unnest($44::bigint[], $45::uuid[], $46::bigint[], $47::bigint[], $48::text[], $49::text[], \
             $50::uuid[]) AS v (shard, execution_id, seq, at_ms, type, body, operation) \
             WHERE (v.execution_id IN (SELECT s.id FROM struck s)) IS TRUE), \
             kept AS (INSERT INTO payloads (shard, execution_id, kind, chunk, body) \
             SELECT p.shard, p.execution_id, p.kind, p.chunk, p.body \
             FROM unnest($51::bigint[], $52::uuid[], $53::text[], $54::bigint[], $55::text[]) \
             AS p (shard, execution_id, kind, chunk, body) \
             WHERE (p.execution_id IN (SELECT s.id FROM struck s)) IS TRUE) \
             SELECT s.id FROM struck s"
        )
    };
}

/// A call is new when its key was free, and when there is nothing of its id.
pub(super) const STORE: &str = store!(
    "INSERT INTO idempotency_keys (namespace, upstream, tool, key, execution_id, ttl_ms) \
     SELECT g.namespace, g.upstream, g.tool, g.key, g.id, g.ttl_ms FROM g WHERE g.key IS NOT NULL \
     ON CONFLICT (namespace, upstream, tool, key) DO NOTHING RETURNING execution_id"
);

/// The same for keys that are taken over from the one who holds them.
const STORE_IN_PLACE: &str = store!(
    "UPDATE idempotency_keys AS k SET execution_id = g.id, ttl_ms = g.ttl_ms FROM g \
     WHERE k.namespace = g.namespace AND k.upstream = g.upstream AND k.tool = g.tool AND k.key = g.key \
     AND k.execution_id = g.taken_from RETURNING k.execution_id"
);

/// A new row and what goes with it.
pub(super) struct NewRow<'a> {
    pub(super) head: &'a Head,
    pub(super) written: &'a Written,
    pub(super) policy_id: &'a str,
    pub(super) key_ttl_ms: i64,
    pub(super) taken_from: Option<ExecutionId>,
}

impl<'a> Stored<'a> {
    pub(super) fn push(&mut self, row: NewRow<'a>, chunk_bytes: usize) -> Sql<()> {
        let (head, ident) = (row.head, &row.head.ident);
        self.shard.push(shard(ident.id));
        self.id.push(*ident.id.as_uuid());
        self.namespace.push(&ident.namespace);
        self.upstream.push(&ident.upstream);
        self.tool.push(&ident.tool);
        self.key.push(ident.key.as_deref());
        self.ttl_ms.push(row.key_ttl_ms);
        self.principal.push(&ident.principal);
        self.caller.push(&ident.caller);
        self.arguments_hash.push(&ident.arguments_hash);
        self.policy_id.push(row.policy_id);
        self.effect_key.push((ident.effect_key != ident.id).then(|| *ident.effect_key.as_uuid()));
        self.retry_of.push(ident.retry_of.map(|id| *id.as_uuid()));
        self.bound_to.push(ident.bound_to.map(|process| *process.as_uuid()));
        self.start_by_ms.push(ident.start_by_ms);
        self.created_at_ms.push(head.created_at_ms);
        self.taken_from.push(row.taken_from.map(|id| *id.as_uuid()));
        self.states.push(head);
        self.belongings.push(ident.id, row.written, chunk_bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Writes those that are new; which.
    pub(super) async fn write(&self, reading: &Reading<'_>) -> Sql<Vec<ExecutionId>> {
        struck(&reading.query(STORE, &self.params()).await?)
    }

    /// Writes those whose key is held by whom they say; which.
    pub(super) async fn write_in_place(&self, reading: &Reading<'_>) -> Sql<Vec<ExecutionId>> {
        struck(&reading.query(STORE_IN_PLACE, &self.params()).await?)
    }

    /// The values of [`STORE`] and [`STORE_IN_PLACE`].
    pub(super) fn params(&self) -> Vec<Param<'_>> {
        let mut params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT8_ARRAY),
            (&self.id, Type::UUID_ARRAY),
            (&self.namespace, Type::TEXT_ARRAY),
            (&self.upstream, Type::TEXT_ARRAY),
            (&self.tool, Type::TEXT_ARRAY),
            (&self.key, Type::TEXT_ARRAY),
            (&self.ttl_ms, Type::INT8_ARRAY),
            (&self.principal, Type::TEXT_ARRAY),
            (&self.caller, Type::TEXT_ARRAY),
            (&self.arguments_hash, Type::TEXT_ARRAY),
            (&self.policy_id, Type::TEXT_ARRAY),
            (&self.effect_key, Type::UUID_ARRAY),
            (&self.retry_of, Type::UUID_ARRAY),
            (&self.bound_to, Type::UUID_ARRAY),
            (&self.start_by_ms, Type::INT8_ARRAY),
            (&self.created_at_ms, Type::INT8_ARRAY),
            (&self.taken_from, Type::UUID_ARRAY),
        ];
        params.extend(self.states.params());
        params.extend(self.belongings.params());
        params
    }
}

/// RETURNING promises no order: rows are known by their ids.
pub(super) fn struck(rows: &[Row]) -> Sql<Vec<ExecutionId>> {
    rows.iter().map(|row| execution(row, 0)).collect()
}

/// What the test of statements reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[CHANGE, STORE, STORE_IN_PLACE];

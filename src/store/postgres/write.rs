//! What a batch writes: new executions with their keys, changed ones by version, and with each its events and payloads. One
//! statement for each shape, atomic alone; it tells which rows it struck. Each value is a list that the database takes
//! apart, so what most rows have nothing in is sent only where some row has something. Decides nothing.

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::columns::{Belongings, States, Written, is_rare};
use super::db::{Param, Reading};
use super::fault::Sql;
use super::rows::{execution, shard};
use crate::model::execution::Head;
use crate::model::id::ExecutionId;

/// Rows that are there already, as they are to be.
#[derive(Default)]
pub(super) struct Changed<'a> {
    shard: Vec<i64>,
    id: Vec<Uuid>,
    was: Vec<i64>,
    states: States<'a>,
    belongings: Belongings<'a>,
    /// Some row has more than [`CHANGE_PLAIN`] writes.
    rare: bool,
}

/// Events and payloads are written with the rows that still had the version they were decided on, with no others. `IS TRUE`
/// keeps the planner from making a join of it: hash joins are off here ([`PLANS`](super::lane::PLANS)), and a nested loop
/// compares each event with each row. The list is hashed once instead.
macro_rules! change {
    ($set:literal, $params:literal, $names:literal) => {
        concat!(
            "WITH struck AS (UPDATE executions AS e SET version = g.version, state = g.state, attempt = g.attempt, \
             attempts_allowed = g.attempts_allowed, fencing_token = g.fencing_token, effect_possible = \
             g.effect_possible, run_at_ms = g.run_at_ms, updated_at_ms = g.updated_at_ms, next_seq = g.next_seq, \
             waiter = g.waiter, ended_at_ms = g.ended_at_ms, source = g.source, ",
            $set,
            " FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], \
             $7::bigint[], $8::bigint[], $9::boolean[], $10::bigint[], $11::bigint[], $12::bigint[], $13::uuid[], \
             $14::bigint[], $15::text[]",
            $params,
            ") AS g (shard, id, was, version, state, attempt, attempts_allowed, fencing_token, effect_possible, \
             run_at_ms, updated_at_ms, next_seq, waiter, ended_at_ms, source",
            $names,
            ") WHERE e.shard = g.shard AND e.id = g.id AND e.version = g.was RETURNING e.id), logged AS (INSERT INTO \
             execution_events (shard, execution_id, seq, at_ms, type, body, operation) SELECT v.shard, \
             v.execution_id, v.seq, v.at_ms, v.type, v.body, v.operation FROM unnest($16::bigint[], $17::uuid[], \
             $18::bigint[], $19::bigint[], $20::text[], $21::text[], $22::uuid[]) AS v (shard, execution_id, seq, \
             at_ms, type, body, operation) WHERE (v.execution_id IN (SELECT s.id FROM struck s)) IS TRUE), kept AS \
             (INSERT INTO payloads (shard, execution_id, kind, chunk, body) SELECT p.shard, p.execution_id, p.kind, \
             p.chunk, p.body FROM unnest($23::bigint[], $24::uuid[], $25::text[], $26::bigint[], $27::text[]) AS p \
             (shard, execution_id, kind, chunk, body) WHERE (p.execution_id IN (SELECT s.id FROM struck s)) IS TRUE) \
             SELECT s.id FROM struck s"
        )
    };
}

/// The statement for all there is of a row.
pub(super) const CHANGE: &str = change!(
    "lease_worker = g.lease_worker, lease_process = g.lease_process, lease_expires_at_ms = g.lease_expires_at_ms, \
     deadline_at_ms = g.deadline_at_ms, continues = g.continues, is_error = g.is_error, error_code = g.error_code, \
     error_message = g.error_message, effect = g.effect, notes = g.notes, waited_ms = g.waited_ms, waiting_since_ms \
     = g.waiting_since_ms, delivered_at_ms = g.delivered_at_ms, handle_given = g.handle_given",
    ", $28::text[], $29::uuid[], $30::bigint[], $31::bigint[], $32::boolean[], $33::boolean[], $34::text[], \
     $35::text[], $36::text[], $37::bigint[], $38::bigint[], $39::bigint[], $40::bigint[], $41::boolean[]",
    ", lease_worker, lease_process, lease_expires_at_ms, deadline_at_ms, continues, is_error, error_code, \
     error_message, effect, notes, waited_ms, waiting_since_ms, delivered_at_ms, handle_given"
);

/// The same for rows that are not leased and have nothing in what is seldom there.
pub(super) const CHANGE_PLAIN: &str = change!(
    "lease_worker = NULL, lease_process = NULL, lease_expires_at_ms = NULL, deadline_at_ms = NULL, continues = \
     FALSE, is_error = FALSE, error_code = NULL, error_message = NULL, effect = NULL, notes = 0, waited_ms = 0, \
     waiting_since_ms = NULL, delivered_at_ms = NULL, handle_given = FALSE",
    "",
    ""
);

impl<'a> Changed<'a> {
    /// A row as it is to be, with the version it was decided on.
    pub(super) fn push(&mut self, head: &'a Head, was: i64, written: &'a Written, chunk_bytes: usize) -> Sql<()> {
        self.shard.push(shard(head.id()));
        self.id.push(*head.id().as_uuid());
        self.was.push(was);
        self.states.push(head);
        self.rare |= is_rare(head) || head.lease.is_some();
        self.belongings.push(head.id(), written, chunk_bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// What writes them, with its values.
    pub(super) fn statement(&self) -> (&'static str, Vec<Param<'_>>) {
        let mut params: Vec<Param<'_>> =
            vec![(&self.shard, Type::INT8_ARRAY), (&self.id, Type::UUID_ARRAY), (&self.was, Type::INT8_ARRAY)];
        params.extend(self.states.own());
        params.extend(self.states.end());
        params.extend(self.belongings.params());
        if !self.rare {
            return (CHANGE_PLAIN, params);
        }
        params.extend(self.states.lease());
        params.extend(self.states.seldom());
        (CHANGE, params)
    }

    /// Writes them; which were struck.
    pub(super) async fn write(&self, reading: &Reading<'_>) -> Sql<Vec<ExecutionId>> {
        let (sql, values) = self.statement();
        struck(&reading.query(sql, &values).await?)
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
    /// Some row has more than [`STORE_PLAIN`] writes.
    rare: bool,
}

macro_rules! store {
    ($key:literal, $params:literal, $names:literal, $columns:literal, $values:literal) => {
        concat!(
            "WITH g AS (SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], \
             $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[], \
             $13::bigint[], $14::text[], $15::bigint[], $16::bigint[], $17::bigint[], $18::boolean[], $19::bigint[], \
             $20::bigint[], $21::bigint[], $22::uuid[], $23::text[], $24::uuid[], $25::bigint[]",
            $params,
            ") AS u (shard, id, namespace, upstream, tool, key, ttl_ms, principal, caller, arguments_hash, \
             policy_id, created_at_ms, version, state, attempt, attempts_allowed, fencing_token, effect_possible, \
             run_at_ms, updated_at_ms, next_seq, waiter, lease_worker, lease_process, lease_expires_at_ms",
            $names,
            ")), keyed AS (",
            $key,
            "), struck AS (INSERT INTO executions (shard, id, namespace, upstream, tool, key, principal, caller, \
             arguments_hash, policy_id, created_at_ms, version, state, attempt, attempts_allowed, fencing_token, \
             effect_possible, run_at_ms, updated_at_ms, next_seq, waiter, lease_worker, lease_process, \
             lease_expires_at_ms, payloads_kept, ",
            $columns,
            ") SELECT g.shard, g.id, g.namespace, g.upstream, g.tool, g.key, g.principal, g.caller, \
             g.arguments_hash, g.policy_id, g.created_at_ms, g.version, g.state, g.attempt, g.attempts_allowed, \
             g.fencing_token, g.effect_possible, g.run_at_ms, g.updated_at_ms, g.next_seq, g.waiter, g.lease_worker, \
             g.lease_process, g.lease_expires_at_ms, TRUE, ",
            $values,
            " FROM g WHERE g.key IS NULL OR g.id IN (SELECT k.execution_id FROM keyed k) ON CONFLICT (shard, id) DO \
             NOTHING RETURNING id), logged AS (INSERT INTO execution_events (shard, execution_id, seq, at_ms, type, \
             body, operation) SELECT v.shard, v.execution_id, v.seq, v.at_ms, v.type, v.body, v.operation FROM \
             unnest($26::bigint[], $27::uuid[], $28::bigint[], $29::bigint[], $30::text[], $31::text[], $32::uuid[]) \
             AS v (shard, execution_id, seq, at_ms, type, body, operation) WHERE (v.execution_id IN (SELECT s.id \
             FROM struck s)) IS TRUE), kept AS (INSERT INTO payloads (shard, execution_id, kind, chunk, body) SELECT \
             p.shard, p.execution_id, p.kind, p.chunk, p.body FROM unnest($33::bigint[], $34::uuid[], $35::text[], \
             $36::bigint[], $37::text[]) AS p (shard, execution_id, kind, chunk, body) WHERE (p.execution_id IN \
             (SELECT s.id FROM struck s)) IS TRUE) SELECT s.id FROM struck s"
        )
    };
}

/// The statement for all there is of a row.
macro_rules! store_whole {
    ($key:literal) => {
        store!(
            $key,
            ", $38::uuid[], $39::uuid[], $40::uuid[], $41::bigint[], $42::uuid[], $43::bigint[], $44::text[], \
             $45::bigint[], $46::boolean[], $47::boolean[], $48::text[], $49::text[], $50::text[], $51::bigint[], \
             $52::bigint[], $53::bigint[], $54::bigint[], $55::boolean[]",
            ", effect_key, retry_of, bound_to, start_by_ms, taken_from, ended_at_ms, source, deadline_at_ms, \
             continues, is_error, error_code, error_message, effect, notes, waited_ms, waiting_since_ms, \
             delivered_at_ms, handle_given",
            "effect_key, retry_of, bound_to, start_by_ms, ended_at_ms, source, deadline_at_ms, continues, is_error, \
             error_code, error_message, effect, notes, waited_ms, waiting_since_ms, delivered_at_ms, handle_given",
            "g.effect_key, g.retry_of, g.bound_to, g.start_by_ms, g.ended_at_ms, g.source, g.deadline_at_ms, \
             g.continues, g.is_error, g.error_code, g.error_message, g.effect, g.notes, g.waited_ms, \
             g.waiting_since_ms, g.delivered_at_ms, g.handle_given"
        )
    };
}

/// A call is new when its key was free, and when there is nothing of its id.
pub(super) const STORE: &str = store_whole!(
    "INSERT INTO idempotency_keys (namespace, upstream, tool, key, execution_id, ttl_ms) \
     SELECT g.namespace, g.upstream, g.tool, g.key, g.id, g.ttl_ms FROM g WHERE g.key IS NOT NULL \
     ON CONFLICT (namespace, upstream, tool, key) DO NOTHING RETURNING execution_id"
);

/// The same for rows that are not over and have nothing in what is seldom there.
pub(super) const STORE_PLAIN: &str = store!(
    "INSERT INTO idempotency_keys (namespace, upstream, tool, key, execution_id, ttl_ms) \
     SELECT g.namespace, g.upstream, g.tool, g.key, g.id, g.ttl_ms FROM g WHERE g.key IS NOT NULL \
     ON CONFLICT (namespace, upstream, tool, key) DO NOTHING RETURNING execution_id",
    "",
    "",
    "continues, is_error, notes, waited_ms, handle_given",
    "FALSE, FALSE, 0, 0, FALSE"
);

/// The same for keys that are taken over from the one who holds them.
const STORE_IN_PLACE: &str = store_whole!(
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
        let held = ident.bound_to.is_some() || ident.start_by_ms.is_some() || row.taken_from.is_some();
        let again = ident.effect_key != ident.id || ident.retry_of.is_some();
        let over = head.ended_at_ms.is_some() || head.source.is_some();
        self.rare |= is_rare(head) || held || again || over;
        self.belongings.push(ident.id, row.written, chunk_bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Writes those that are new; which.
    pub(super) async fn write(&self, reading: &Reading<'_>) -> Sql<Vec<ExecutionId>> {
        let (sql, values) = self.statement();
        struck(&reading.query(sql, &values).await?)
    }

    /// Writes those whose key is held by whom they say; which.
    pub(super) async fn write_in_place(&self, reading: &Reading<'_>) -> Sql<Vec<ExecutionId>> {
        struck(&reading.query(STORE_IN_PLACE, &self.params(true)).await?)
    }

    /// What writes those that are new, with its values.
    pub(super) fn statement(&self) -> (&'static str, Vec<Param<'_>>) {
        (if self.rare { STORE } else { STORE_PLAIN }, self.params(self.rare))
    }

    fn params(&self, whole: bool) -> Vec<Param<'_>> {
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
            (&self.created_at_ms, Type::INT8_ARRAY),
        ];
        params.extend(self.states.own());
        params.extend(self.states.lease());
        params.extend(self.belongings.params());
        if whole {
            let more: [Param<'_>; 5] = [
                (&self.effect_key, Type::UUID_ARRAY),
                (&self.retry_of, Type::UUID_ARRAY),
                (&self.bound_to, Type::UUID_ARRAY),
                (&self.start_by_ms, Type::INT8_ARRAY),
                (&self.taken_from, Type::UUID_ARRAY),
            ];
            params.extend(more);
            params.extend(self.states.end());
            params.extend(self.states.seldom());
        }
        params
    }
}

/// RETURNING promises no order: rows are known by their ids.
pub(super) fn struck(rows: &[Row]) -> Sql<Vec<ExecutionId>> {
    rows.iter().map(|row| execution(row, 0)).collect()
}

/// What the test of statements reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[CHANGE, CHANGE_PLAIN, STORE, STORE_PLAIN, STORE_IN_PLACE];

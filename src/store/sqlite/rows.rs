//! The execution as a row: reading, inserting, updating. The one place that knows the columns of `executions`.

use std::str::FromStr;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::fault::{Fault, Sql};
use super::policies::Policies;
use crate::model::execution::{ErrorInfo, Head, Identification, Lease, State};
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::encoding::{deadline_at_ms, effect_name, effect_of, source_name, source_of};

/// An id as it is stored: hyphenated, lower case.
pub(super) struct IdText([u8; 36]);

impl IdText {
    pub(super) fn of(uuid: &Uuid) -> IdText {
        let mut text = [0; 36];
        uuid.as_hyphenated().encode_lower(&mut text);
        IdText(text)
    }

    pub(super) fn execution(id: ExecutionId) -> IdText {
        IdText::of(id.as_uuid())
    }

    pub(super) fn process(id: ProcessId) -> IdText {
        IdText::of(id.as_uuid())
    }
}

impl ToSql for IdText {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(&self.0)))
    }
}

/// An id read from a column.
pub(super) struct Id<T>(pub(super) T);

impl<T: FromStr> FromSql for Id<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Id).map_err(|_| FromSqlError::InvalidType)
    }
}

/// The columns [`head`] reads, of a table called `e`.
macro_rules! head_columns {
    () => {
        "e.id, e.namespace, e.upstream, e.tool, e.key, e.principal, e.caller, e.arguments_hash, e.policy_id, \
         e.effect_key, e.retry_of, e.bound_to, e.start_by_ms, e.state, e.attempt, e.attempts_allowed, \
         e.fencing_token, e.lease_worker, e.lease_process, e.lease_expires_at_ms, e.effect_possible, e.continues, \
         e.run_at_ms, e.created_at_ms, e.updated_at_ms, e.ended_at_ms, e.next_seq, e.is_error, e.source, \
         e.error_code, e.error_message, e.effect, e.notes, e.version, e.waiter, e.delivered_at_ms, e.handle_given, \
         e.waited_ms, e.waiting_since_ms"
    };
}
pub(super) use head_columns;

/// Reads a row selected by [`head_columns`].
pub(super) fn head(connection: &Connection, policies: &Policies, row: &Row<'_>) -> Sql<Head> {
    let id: ExecutionId = row.get::<_, Id<_>>(0)?.0;
    let effect_key: Option<Id<ExecutionId>> = row.get(9)?;
    let policy_id = row.get_ref(8)?;
    let policy =
        policies.read(connection, policy_id.as_str().map_err(|_| Fault::damaged("a policy id is no text"))?)?;
    let ident = Identification {
        id,
        namespace: row.get(1)?,
        upstream: row.get(2)?,
        tool: row.get(3)?,
        key: row.get(4)?,
        principal: row.get(5)?,
        caller: row.get(6)?,
        arguments_hash: row.get(7)?,
        policy,
        effect_key: effect_key.map_or(id, |key| key.0),
        retry_of: optional_id(row, 10)?,
        bound_to: optional_id(row, 11)?,
        start_by_ms: row.get(12)?,
    };
    let lease = match row.get::<_, Option<String>>(17)? {
        Some(worker) => Some(Lease { worker, process: row.get::<_, Id<_>>(18)?.0, expires_at_ms: row.get(19)? }),
        None => None,
    };
    let error = match row.get::<_, Option<String>>(29)? {
        Some(code) => Some(ErrorInfo { code, message: row.get(30)? }),
        None => None,
    };
    Ok(Head {
        ident,
        state: named(row, 13, id, State::parse)?,
        attempt: row.get(14)?,
        attempts_allowed: row.get(15)?,
        fencing_token: row.get(16)?,
        lease,
        effect_possible: row.get(20)?,
        continues: row.get(21)?,
        run_at_ms: row.get(22)?,
        created_at_ms: row.get(23)?,
        updated_at_ms: row.get(24)?,
        ended_at_ms: row.get(25)?,
        next_seq: row.get(26)?,
        is_error: row.get(27)?,
        source: optional_named(row, 28, id, source_of)?,
        error,
        effect: optional_named(row, 31, id, effect_of)?,
        notes: row.get(32)?,
        version: row.get(33)?,
        waiter: optional_id(row, 34)?,
        delivered_at_ms: row.get(35)?,
        handle_given: row.get(36)?,
        waited_ms: row.get(37)?,
        waiting_since_ms: row.get(38)?,
    })
}

const BY_ID: &str = concat!("SELECT ", head_columns!(), " FROM executions e WHERE e.id = ?1");

/// The row of `id`.
pub(super) fn by_id(connection: &Connection, policies: &Policies, id: ExecutionId) -> Sql<Option<Head>> {
    let mut statement = connection.prepare_cached(BY_ID)?;
    let mut rows = statement.query([IdText::execution(id)])?;
    rows.next()?.map(|row| head(connection, policies, row)).transpose()
}

const INSERT: &str = "INSERT INTO executions (id, namespace, upstream, tool, key, principal, caller, arguments_hash, \
    policy_id, effect_key, retry_of, bound_to, start_by_ms, state, attempt, attempts_allowed, fencing_token, \
    lease_worker, lease_process, lease_expires_at_ms, effect_possible, continues, run_at_ms, deadline_at_ms, \
    created_at_ms, updated_at_ms, ended_at_ms, next_seq, is_error, source, error_code, error_message, effect, notes, \
    version, waiter, delivered_at_ms, handle_given, payloads_kept) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, \
    ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, 1) \
    ON CONFLICT (id) DO NOTHING";

/// Inserts a row; false when the id exists.
pub(super) fn insert(connection: &Connection, head: &Head, policy_id: &str) -> Sql<bool> {
    let ident = &head.ident;
    let lease = head.lease.as_ref();
    let error = head.error.as_ref();
    let inserted = connection.prepare_cached(INSERT)?.execute(params![
        IdText::execution(ident.id),
        ident.namespace,
        ident.upstream,
        ident.tool,
        ident.key,
        ident.principal,
        ident.caller,
        ident.arguments_hash,
        policy_id,
        (ident.effect_key != ident.id).then(|| IdText::execution(ident.effect_key)),
        ident.retry_of.map(IdText::execution),
        ident.bound_to.map(IdText::process),
        ident.start_by_ms,
        head.state.as_str(),
        head.attempt,
        head.attempts_allowed,
        head.fencing_token,
        lease.map(|lease| lease.worker.as_str()),
        lease.map(|lease| IdText::process(lease.process)),
        lease.map(|lease| lease.expires_at_ms),
        head.effect_possible,
        head.continues,
        head.run_at_ms,
        deadline_at_ms(head),
        head.created_at_ms,
        head.updated_at_ms,
        head.ended_at_ms,
        head.next_seq,
        head.is_error,
        head.source.map(source_name),
        error.map(|error| error.code.as_str()),
        error.map(|error| error.message.as_str()),
        head.effect.map(effect_name),
        head.notes,
        head.version,
        head.waiter.map(IdText::process),
        head.delivered_at_ms,
        head.handle_given,
    ])?;
    Ok(inserted == 1)
}

const UPDATE: &str = "UPDATE executions SET state = ?3, attempt = ?4, attempts_allowed = ?5, fencing_token = ?6, \
    lease_worker = ?7, lease_process = ?8, lease_expires_at_ms = ?9, effect_possible = ?10, continues = ?11, \
    run_at_ms = ?12, deadline_at_ms = ?13, updated_at_ms = ?14, ended_at_ms = ?15, next_seq = ?16, is_error = ?17, \
    source = ?18, error_code = ?19, error_message = ?20, effect = ?21, notes = ?22, \
    waited_ms = ?23, waiting_since_ms = ?24, version = ?2 + 1 WHERE id = ?1 AND version = ?2";

/// Writes what events change, over the row of `head.version`, and counts the version up.
pub(super) fn update(connection: &Connection, head: &mut Head) -> Sql<()> {
    let lease = head.lease.as_ref();
    let error = head.error.as_ref();
    let updated = connection.prepare_cached(UPDATE)?.execute(params![
        IdText::execution(head.id()),
        head.version,
        head.state.as_str(),
        head.attempt,
        head.attempts_allowed,
        head.fencing_token,
        lease.map(|lease| lease.worker.as_str()),
        lease.map(|lease| IdText::process(lease.process)),
        lease.map(|lease| lease.expires_at_ms),
        head.effect_possible,
        head.continues,
        head.run_at_ms,
        deadline_at_ms(head),
        head.updated_at_ms,
        head.ended_at_ms,
        head.next_seq,
        head.is_error,
        head.source.map(source_name),
        error.map(|error| error.code.as_str()),
        error.map(|error| error.message.as_str()),
        head.effect.map(effect_name),
        head.notes,
        head.waited_ms,
        head.waiting_since_ms,
    ])?;
    counted(head, updated)
}

const UPDATE_LEASE: &str =
    "UPDATE executions SET lease_expires_at_ms = ?3, version = ?2 + 1 WHERE id = ?1 AND version = ?2";

/// Writes the lease's expiry only, and counts the version up.
pub(super) fn update_lease(connection: &Connection, head: &mut Head) -> Sql<()> {
    let expires_at_ms = head.lease.as_ref().map(|lease| lease.expires_at_ms);
    let updated = connection.prepare_cached(UPDATE_LEASE)?.execute(params![
        IdText::execution(head.id()),
        head.version,
        expires_at_ms
    ])?;
    counted(head, updated)
}

const UPDATE_MARKS: &str = "UPDATE executions SET waiter = ?3, delivered_at_ms = ?4, handle_given = ?5, \
    version = ?2 + 1 WHERE id = ?1 AND version = ?2";

/// Writes the delivery marks only, and counts the version up.
pub(super) fn update_marks(connection: &Connection, head: &mut Head) -> Sql<()> {
    let updated = connection.prepare_cached(UPDATE_MARKS)?.execute(params![
        IdText::execution(head.id()),
        head.version,
        head.waiter.map(IdText::process),
        head.delivered_at_ms,
        head.handle_given
    ])?;
    counted(head, updated)
}

fn counted(head: &mut Head, updated: usize) -> Sql<()> {
    if updated != 1 {
        return Err(Fault::internal(format!("execution {} is not at version {}", head.id(), head.version)));
    }
    head.version += 1;
    Ok(())
}

fn optional_id<T: FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    Ok(row.get::<_, Option<Id<T>>>(column)?.map(|id| id.0))
}

fn named<T>(row: &Row<'_>, column: usize, id: ExecutionId, parse: fn(&str) -> Option<T>) -> Sql<T> {
    optional_named(row, column, id, parse)?
        .ok_or_else(|| Fault::damaged(format!("execution {id} lacks column {column}")))
}

fn optional_named<T>(row: &Row<'_>, column: usize, id: ExecutionId, parse: fn(&str) -> Option<T>) -> Sql<Option<T>> {
    let value = row.get_ref(column)?;
    let Some(name) = value.as_str_or_null().map_err(|_| Fault::damaged(format!("execution {id} holds no text")))?
    else {
        return Ok(None);
    };
    match parse(name) {
        Some(value) => Ok(Some(value)),
        None => Err(Fault::damaged(format!("execution {id} holds an unknown name in column {column}"))),
    }
}

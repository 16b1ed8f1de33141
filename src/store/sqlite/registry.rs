//! The small tables: processes, tokens, the last known pictures of upstreams, and the row that checks of health write.

use rusqlite::{Connection, Row, params};

use super::fault::Sql;
use super::rows::IdText;
use super::tx::Tx;
use crate::model::id::ProcessId;
use crate::store::{TokenRow, UpstreamRow};

const PUT_PROCESS: &str = "INSERT INTO processes (id, started_at_ms) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING";

/// Announces a process.
pub(super) fn put_process(tx: &Tx<'_>, process: ProcessId, now_ms: i64) -> Sql<()> {
    tx.connection.prepare_cached(PUT_PROCESS)?.execute(params![IdText::process(process), now_ms])?;
    Ok(())
}

const FORGET_WAITING: &str = "UPDATE executions INDEXED BY executions_twin SET waiter = NULL, version = version + 1 \
    WHERE key IS NULL AND delivered_at_ms IS NULL AND waiter = ?1";

/// What ended keeps the name of its process.
macro_rules! unbind {
    ($state:literal, $index:literal) => {
        concat!(
            "UPDATE executions INDEXED BY ",
            $index,
            " SET bound_to = NULL, version = version + 1 WHERE state = '",
            $state,
            "' AND bound_to = ?1"
        )
    };
}

const UNBIND_READY: &str = unbind!("ready", "executions_queue");
const UNBIND_SCHEDULED: &str = unbind!("scheduled", "executions_queue");
const UNBIND_WAITING: &str = unbind!("waiting", "executions_rare");
const UNBIND_UNKNOWN: &str = unbind!("unknown", "executions_rare");

const DELETE_PROCESS: &str = "DELETE FROM processes WHERE id = ?1";

/// Forgets a dead process: it waits for nobody, and what only it could run may run anywhere.
pub(super) fn bury_process(tx: &mut Tx<'_>, id: ProcessId) -> Sql<()> {
    let process = IdText::process(id);
    let mut changed = 0;
    for sql in [FORGET_WAITING, UNBIND_READY, UNBIND_SCHEDULED, UNBIND_WAITING, UNBIND_UNKNOWN] {
        changed += tx.connection.prepare_cached(sql)?.execute([&process])?;
    }
    if changed > 0 {
        tx.heads.forget_all();
    }
    tx.connection.prepare_cached(DELETE_PROCESS)?.execute([&process])?;
    super::workers::bury(tx, id)
}

const PUT_TOKEN: &str = "INSERT INTO tokens (prefix, sha256, principal, namespace, scopes, created_at_ms, \
    expires_at_ms, revoked_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// Adds a token.
pub(super) fn put_token(tx: &Tx<'_>, token: &TokenRow) -> Sql<()> {
    tx.connection.prepare_cached(PUT_TOKEN)?.execute(params![
        token.prefix,
        token.sha256,
        token.principal,
        token.namespace,
        token.scopes,
        token.created_at_ms,
        token.expires_at_ms,
        token.revoked_at_ms,
    ])?;
    Ok(())
}

const REVOKE_TOKEN: &str = "UPDATE tokens SET revoked_at_ms = coalesce(revoked_at_ms, ?2) WHERE prefix = ?1";

/// Revokes a token; a second time changes nothing. False when there is none.
pub(super) fn revoke_token(tx: &Tx<'_>, prefix: &str, now_ms: i64) -> Sql<bool> {
    Ok(tx.connection.prepare_cached(REVOKE_TOKEN)?.execute(params![prefix, now_ms])? > 0)
}

const TOKENS: &str = "SELECT prefix, sha256, principal, namespace, scopes, created_at_ms, expires_at_ms, \
    revoked_at_ms FROM tokens ORDER BY created_at_ms, prefix";

/// Every token, oldest first.
pub(super) fn tokens(connection: &Connection) -> Sql<Vec<TokenRow>> {
    let read = |row: &Row<'_>| {
        Ok(TokenRow {
            prefix: row.get(0)?,
            sha256: row.get(1)?,
            principal: row.get(2)?,
            namespace: row.get(3)?,
            scopes: row.get(4)?,
            created_at_ms: row.get(5)?,
            expires_at_ms: row.get(6)?,
            revoked_at_ms: row.get(7)?,
        })
    };
    let mut statement = connection.prepare_cached(TOKENS)?;
    Ok(statement.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
}

const PUT_UPSTREAM: &str = "INSERT INTO upstreams (name, snapshot, updated_at_ms) VALUES (?1, ?2, ?3) \
    ON CONFLICT (name) DO UPDATE SET snapshot = excluded.snapshot, updated_at_ms = excluded.updated_at_ms";

/// Keeps the picture of an upstream.
pub(super) fn put_upstream(tx: &Tx<'_>, row: &UpstreamRow) -> Sql<()> {
    tx.connection.prepare_cached(PUT_UPSTREAM)?.execute(params![row.name, &*row.snapshot, row.updated_at_ms])?;
    Ok(())
}

const UPSTREAMS: &str = "SELECT name, snapshot, updated_at_ms FROM upstreams ORDER BY name";

/// The pictures of all upstreams, by name.
pub(super) fn upstreams(connection: &Connection) -> Sql<Vec<UpstreamRow>> {
    let read = |row: &Row<'_>| {
        Ok(UpstreamRow { name: row.get(0)?, snapshot: row.get::<_, String>(1)?.into(), updated_at_ms: row.get(2)? })
    };
    let mut statement = connection.prepare_cached(UPSTREAMS)?;
    Ok(statement.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
}

const CHECK: &str = "UPDATE store_checks SET count = count + 1 WHERE id = 1";

/// Writes something of no value.
pub(super) fn check(tx: &Tx<'_>) -> Sql<()> {
    tx.connection.prepare_cached(CHECK)?.execute([])?;
    Ok(())
}

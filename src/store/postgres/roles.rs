//! The role that serves: it reads and writes rows, and can neither change the schema nor an event. Makes it where it is not
//! there, and grants what it needs; run again after an upgrade, since a new table is granted to nobody.

use std::sync::Arc;

use super::bind::text;
use super::fault::{Fault, Sql};
use super::pool::{Connection, Connector, quoted};
use super::settings::PostgresSettings;
use super::tls::Target;
use super::vendor::Vendor;
use crate::store::{Error, Result};

/// What a role may do with a table.
const GRANTS: &[(&str, &[&str])] = &[
    ("SELECT", &["schema_history", "schema_guard"]),
    // The log: what is written stays.
    ("SELECT, INSERT", &["execution_events", "policies"]),
    ("SELECT, INSERT, DELETE", &["payloads"]),
    (
        "SELECT, INSERT, UPDATE, DELETE",
        &[
            "executions",
            "idempotency_keys",
            "processes",
            "workers",
            "worker_changes",
            "store_checks",
            "steps",
            "checkpoints",
            "sessions",
            "session_subscriptions",
            "session_messages",
            "input_requests",
            "sealing_keys",
            "series",
            "series_closed",
            "tasks",
            "tokens",
            "upstreams",
        ],
    ),
];

/// What was done for a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// It was not there before: it can log in and has no password yet.
    pub created: bool,
    /// The schema it was granted to work in.
    pub schema: String,
    /// It can delete the events of executions that retention deletes; nobody else's.
    pub prunes: bool,
}

/// Grants `role` what a process that serves needs, in a database whose schema is the present one.
///
/// # Errors
///
/// One sentence with the next step: the role would not be bound by grants, or the user of `url` may not grant or create.
pub async fn grant(url: &str, settings: &PostgresSettings, role: &str) -> Result<Granted> {
    let target = Target::of(url, settings.root_certificates.as_deref())?;
    let client = Connector::new(target, Arc::new(settings.clone())).connect().await.map_err(|fault| fault.error)?;
    grant_on(&client, settings.schema.clone(), role).await.map_err(|fault| match fault.error {
        // The driver's own words are for a process that serves.
        Error::CannotWrite(told) if told.contains("42501") => Error::CannotWrite(format!(
            "the user of the URL may not create roles or grant on these tables ({told}); connect as the owner of the \
             tables, and let an administrator create the role first: CREATE ROLE {} LOGIN",
            quoted(role)
        )),
        error => error,
    })
}

const SCHEMA: &str = "SELECT current_schema()::TEXT";

/// Whether the role is there, is bound by grants, and is somebody else than the one who grants.
const ROLE: &str = "SELECT r.rolsuper, r.rolname = current_user, \
    coalesce((SELECT bool_or(pg_has_role(r.oid, c.relowner, 'MEMBER')) FROM pg_class c \
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $2 AND c.relname = 'execution_events'), false) \
    FROM pg_roles r WHERE r.rolname = $1";

async fn grant_on(client: &Connection, schema: Option<String>, role: &str) -> Sql<Granted> {
    let rows = client.query_typed(Vendor::QUESTION, &[]).await?;
    let vendor = Vendor::of(rows.first().map_or(Ok(""), |row| row.try_get(0))?);
    let schema = match schema {
        Some(schema) => schema,
        None => {
            let rows = client.query_typed(SCHEMA, &[]).await?;
            let found: Option<String> = rows.first().map_or(Ok(None), |row| row.try_get(0))?;
            found.ok_or_else(|| Fault::unavailable("the user's search_path names no schema; set store.schema"))?
        }
    };
    let rows = client.query_typed(ROLE, &[text(&role), text(&schema)]).await?;
    let created = rows.is_empty();
    if let Some(row) = rows.first() {
        let (superuser, own, owner): (bool, bool, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let why = match (superuser, own || owner) {
            (true, _) => Some("is a superuser"),
            (_, true) => Some("owns the tables"),
            _ => None,
        };
        if let Some(why) = why {
            return Err(Fault::refused(format!(
                "the role {role} {why}, so that no grant binds it; name another role for the processes that serve"
            )));
        }
    }
    let prunes = vendor != Vendor::CockroachDb;
    let mut orders = Vec::new();
    let (at, to) = (quoted(&schema), quoted(role));
    if created {
        orders.push(format!("CREATE ROLE {to} LOGIN"));
    }
    orders.push(format!("GRANT USAGE ON SCHEMA {at} TO {to}"));
    for (rights, tables) in GRANTS {
        let tables: Vec<String> = tables.iter().map(|table| format!("{at}.{table}")).collect();
        orders.push(format!("GRANT {rights} ON {} TO {to}", tables.join(", ")));
    }
    orders.push(format!("REVOKE UPDATE, DELETE, TRUNCATE ON {at}.execution_events FROM {to}"));
    if prunes {
        orders.extend(deleting(&at, &to));
    }
    for order in orders {
        client.batch_execute(&order).await?;
    }
    Ok(Granted { created, schema, prunes })
}

/// The one way in which such a role deletes events: as the owner of the log, and only those of executions that are gone.
/// The search path is pinned: nothing of the caller's own takes part in what runs with the owner's rights.
fn deleting(at: &str, to: &str) -> [String; 3] {
    let function = format!("{at}.delete_events_of_deleted(BIGINT[], UUID[])");
    [
        format!(
            "CREATE OR REPLACE FUNCTION {at}.delete_events_of_deleted(shards BIGINT[], ids UUID[]) RETURNS BIGINT \
             LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, {at}, pg_temp AS $$ \
             WITH gone AS (DELETE FROM {at}.execution_events t USING unnest(shards, ids) AS g(shard, id) \
             WHERE t.shard = g.shard AND t.execution_id = g.id AND NOT EXISTS (SELECT 1 FROM {at}.executions e \
             WHERE e.shard = g.shard AND e.id = g.id) RETURNING 1) SELECT count(*) FROM gone $$"
        ),
        format!("REVOKE ALL ON FUNCTION {function} FROM PUBLIC"),
        format!("GRANT EXECUTE ON FUNCTION {function} TO {to}"),
    ]
}

/// Every table that is granted.
#[cfg(test)]
pub(super) fn granted() -> Vec<&'static str> {
    GRANTS.iter().flat_map(|(_, tables)| tables.iter().copied()).collect()
}

/// What the test of statements reads, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[(ROLE, "text, text")];

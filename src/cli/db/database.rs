//! What `db status` says of a PostgreSQL store. Looks at nothing itself.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::place::Database;
use super::size;
use crate::engine::view::Time;
use crate::model::execution::State;
use crate::store::postgres::DatabaseStatus;

/// A store in a database.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DatabaseView {
    /// `default`, mostly.
    pub store: String,
    /// Its address, without the password.
    pub url: String,
    /// `postgresql`, `cockroachdb` or `yugabytedb`.
    pub vendor: String,
    /// The database's own words for its release.
    pub version: String,
    /// The schema that holds the tables.
    pub schema: Option<String>,
    /// The version of the tables; `durable-mcp db migrate` brings older ones up.
    pub schema_version: i64,
    /// The newest version that this program knows.
    pub schema_known: i64,
    /// The isolation that transactions get.
    pub isolation: String,
    /// The protocol that encrypts the connection, empty without one; null when the database does not tell.
    pub encryption: Option<String>,
    /// The database takes no writes: a standby, for example.
    pub read_only: bool,
    /// All executions.
    pub executions: u64,
    /// Executions per state; every state is there.
    pub states: BTreeMap<String, u64>,
    /// When the oldest execution was submitted.
    pub oldest_at: Option<Time>,
    /// When something happened last to one of the newest executions.
    pub newest_at: Option<Time>,
    /// The tables with their indexes; null when the database does not tell.
    pub bytes: Option<u64>,
    /// Of these, the payloads.
    pub payload_bytes: Option<u64>,
    /// Processes of durable-mcp that use the store and live.
    pub processes_alive: u64,
    /// Processes that died and whose work is not settled yet.
    pub processes_dead: u64,
    /// Remote workers that live.
    pub remote_workers: u64,
}

impl DatabaseView {
    /// What was found of a store.
    pub fn of(database: &Database, status: &DatabaseStatus) -> DatabaseView {
        let count = |state: &State| (state.as_str().to_owned(), status.states.get(state).copied().unwrap_or(0));
        let look = &status.look;
        DatabaseView {
            store: database.name.clone(),
            url: database.shown(),
            vendor: look.vendor.to_string(),
            version: look.version.clone(),
            schema: look.schema.clone(),
            schema_version: look.schema_version.unwrap_or(0),
            schema_known: look.schema_known,
            isolation: look.isolation.clone(),
            encryption: look.encryption.clone(),
            read_only: look.read_only,
            executions: status.states.values().sum(),
            states: State::ALL.iter().map(count).collect(),
            oldest_at: status.oldest_created_at_ms.map(Time),
            newest_at: status.newest_event_at_ms.map(Time),
            bytes: status.bytes,
            payload_bytes: status.payload_bytes,
            processes_alive: status.processes_alive,
            processes_dead: status.processes_dead,
            remote_workers: status.remote_workers,
        }
    }

    /// The same for people.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let states: Vec<String> = self
            .states
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(state, count)| format!("{count} {state}"))
            .collect();
        let version = match self.schema_version < self.schema_known {
            true => {
                format!("version {} (`durable-mcp db migrate` brings it to {})", self.schema_version, self.schema_known)
            }
            false => format!("version {}", self.schema_version),
        };
        let executions = match self.executions {
            0 => "none".to_owned(),
            all => format!("{all}: {}", states.join(", ")),
        };
        let span = match (self.oldest_at, self.newest_at) {
            (Some(oldest), Some(newest)) => format!("{oldest} to {newest}"),
            _ => "-".to_owned(),
        };
        let encryption = match self.encryption.as_deref() {
            Some("") => "not encrypted",
            Some(protocol) => protocol,
            None => "encryption is not told",
        };
        let processes = match (self.processes_alive, self.processes_dead) {
            (alive, 0) => format!("{alive} alive"),
            (alive, dead) => format!("{alive} alive, {dead} dead (a scheduler settles what they held)"),
        };
        let told = |bytes: Option<u64>| bytes.map_or("-".to_owned(), size);
        vec![
            ("store", self.store.clone()),
            ("url", self.url.clone()),
            ("database", format!("{}{}", self.version, if self.read_only { ", read-only" } else { "" })),
            ("connection", format!("{encryption}, {}", self.isolation)),
            ("schema", format!("{}, {version}", self.schema.as_deref().unwrap_or("-"))),
            ("executions", executions),
            ("from", span),
            ("tables", format!("{}, {} of it payloads", told(self.bytes), told(self.payload_bytes))),
            ("processes", processes),
            ("workers", format!("{} remote", self.remote_workers)),
        ]
    }
}

//! Looks at a database from outside of a running server: what it is, how it is reached, which schema it has, and what is in
//! it. Migrates and changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_postgres::Row;

use super::bind::{int, texts};
use super::db::Db;
use super::fault::{Fault, Sql};
use super::lists::count_states;
use super::migrate::{self, Hand};
use super::migrations::{self, Verdict};
use super::pool::{Connection, Connector};
use super::prune;
use super::registry::clock;
use super::settings::PostgresSettings;
use super::tls::Target;
use super::vendor::Vendor;
use crate::model::execution::State;
use crate::store::{Error, Pruned, Result, Retention, Slice};

/// A database, as it says of itself.
#[derive(Clone, Debug)]
pub struct DatabaseLook {
    /// Host, port and database.
    pub place: String,
    /// Which one.
    pub vendor: Vendor,
    /// Its own words for its release.
    pub version: String,
    /// The schema of the tables; absent: there is none on the search path.
    pub schema: Option<String>,
    /// The version of our tables there; absent: there are none.
    pub schema_version: Option<i64>,
    /// The newest version this program knows.
    pub schema_known: i64,
    /// Why this program can not work on it, the missing of migrations apart.
    pub schema_fault: Option<String>,
    /// The isolation that a transaction of ours really gets.
    pub isolation: String,
    /// The isolation that the settings ask for.
    pub isolation_wanted: &'static str,
    /// The protocol of the encrypted connection; empty: it is in the clear; absent: this vendor does not tell.
    pub encryption: Option<String>,
    /// It takes no writes.
    pub read_only: bool,
    /// The user can change or delete events.
    pub changes_events: bool,
    /// Its clock, in milliseconds since the epoch.
    pub clock_ms: i64,
}

/// What is in a store.
#[derive(Clone, Debug)]
pub struct DatabaseStatus {
    /// The database.
    pub look: DatabaseLook,
    /// Executions per state.
    pub states: BTreeMap<State, u64>,
    /// All our tables with their indexes; absent: this vendor does not tell.
    pub bytes: Option<u64>,
    /// Of these, the payloads.
    pub payload_bytes: Option<u64>,
    /// When the oldest execution was submitted, in milliseconds since the epoch.
    pub oldest_created_at_ms: Option<i64>,
    /// When something happened last to one of the newest executions, in milliseconds since the epoch.
    pub newest_event_at_ms: Option<i64>,
    /// Announced processes that live.
    pub processes_alive: u64,
    /// Announced processes that are dead.
    pub processes_dead: u64,
    /// Remote workers that live.
    pub remote_workers: u64,
}

/// Looks at the database at `url`.
///
/// # Errors
///
/// One sentence without the password: it can not be reached, or refuses the user.
pub async fn look(url: &str, settings: &PostgresSettings) -> Result<DatabaseLook> {
    let target = Target::of(url, settings.root_certificates.as_deref())?;
    let place = target.place.clone();
    let connector = Connector::new(target, Arc::new(settings.clone()));
    let looking = async {
        let client = connector.connect().await?;
        look_at(&client, &connector, settings, place).await
    };
    looking.await.map_err(|fault: Fault| fault.error)
}

const ABOUT: &str = concat!(
    "SELECT current_schema()::TEXT, current_setting('transaction_isolation'), \
     current_setting('transaction_read_only') = 'on', ",
    clock!()
);

const ENCRYPTION: &str = "SELECT CASE WHEN ssl THEN coalesce(version, 'TLS') ELSE '' END FROM pg_stat_ssl \
    WHERE pid = pg_backend_pid()";

const CHANGES_EVENTS: &str =
    "SELECT has_table_privilege('execution_events', 'DELETE') OR has_table_privilege('execution_events', 'UPDATE')";

async fn look_at(
    client: &Connection,
    connector: &Connector,
    settings: &PostgresSettings,
    place: String,
) -> Sql<DatabaseLook> {
    let version: String = first(client.query_typed(Vendor::QUESTION, &[]).await?)?.try_get(0)?;
    let vendor = Vendor::of(&version);
    let encryption = match vendor {
        Vendor::CockroachDb => None,
        _ => client.query_typed(ENCRYPTION, &[]).await?.first().map(|row| row.try_get(0)).transpose()?,
    };
    // Through a pooler only a transaction knows the schema; and only in one it shows which isolation there is.
    client.batch_execute(&connector.begin()).await?;
    let about = first(client.query_typed(ABOUT, &[]).await?)?;
    let history = migrate::history(Hand { client, begin: None }).await?;
    let known = migrations::embedded();
    let schema_fault = match history.as_deref().map(|applied| migrations::judge(&known, applied)) {
        Some(Err(error)) => Some(error.to_string()),
        None | Some(Ok(Verdict::Fits | Verdict::Behind(_))) => None,
    };
    let changes_events = match &history {
        Some(applied) if !applied.is_empty() => first(client.query_typed(CHANGES_EVENTS, &[]).await?)?.try_get(0)?,
        _ => false,
    };
    let look = DatabaseLook {
        place,
        vendor,
        version: version.split(" (").next().unwrap_or_default().split(" on ").next().unwrap_or_default().to_owned(),
        schema: about.try_get(0)?,
        schema_version: history.map(|applied| applied.last().map_or(0, |newest| newest.version)),
        schema_known: migrations::newest(&known),
        schema_fault,
        isolation: about.try_get::<_, String>(1)?,
        isolation_wanted: settings.isolation.name(),
        encryption,
        read_only: about.try_get(2)?,
        changes_events,
        clock_ms: about.try_get(3)?,
    };
    client.batch_execute("ROLLBACK").await?;
    Ok(look)
}

fn first(rows: Vec<Row>) -> Sql<Row> {
    rows.into_iter().next().ok_or_else(|| Fault::internal("the database says nothing of itself"))
}

/// Looks at the database and at what is in it; `now_ms` (since the epoch) tells which remote workers live.
///
/// # Errors
///
/// As of [`look`]; [`Error::TooOld`] where the schema is not there yet, and what `schema_fault` says.
pub async fn status(url: &str, settings: &PostgresSettings, now_ms: i64) -> Result<DatabaseStatus> {
    let look = look(url, settings).await?;
    match (look.schema_version, &look.schema_fault) {
        (_, Some(fault)) => return Err(Error::Unavailable(fault.clone())),
        (Some(version), None) if version > 0 => {}
        _ => return Err(Error::TooOld { found: 0, known: look.schema_known }),
    }
    let db = Db::new(url, Arc::new(settings.clone()))?;
    let sized = look.vendor != Vendor::CockroachDb;
    let read = db.read(move |reading| {
        Box::pin(async move {
            let (mut bytes, mut payload_bytes) = (None, None);
            if sized {
                let row = reading.query_opt(BYTES, &[texts(&OUR_TABLES.to_vec())]).await?;
                if let Some(row) = row {
                    (bytes, payload_bytes) = (row.try_get::<_, Option<i64>>(0)?, row.try_get::<_, Option<i64>>(1)?);
                }
            }
            let number = |row: Option<Row>| row.map_or(Ok(None), |row| row.try_get::<_, Option<i64>>(0));
            let oldest = number(reading.query_opt(OLDEST, &[]).await?)?;
            let newest = number(reading.query_opt(NEWEST, &[]).await?)?;
            let (mut alive, mut dead) = (0, 0);
            if let Some(row) = reading.query_opt(PROCESSES, &[]).await? {
                (alive, dead) = (row.try_get::<_, i64>(0)?, row.try_get::<_, i64>(1)?);
            }
            let workers = number(reading.query_opt(REMOTE, &[int(&now_ms)]).await?)?;
            let size = |bytes: Option<i64>| bytes.map(i64::unsigned_abs);
            Ok((
                count_states(reading).await?,
                (size(bytes), size(payload_bytes)),
                (oldest, newest),
                (alive.unsigned_abs(), dead.unsigned_abs(), workers.unwrap_or(0).unsigned_abs()),
            ))
        })
    });
    let (states, (bytes, payload_bytes), (oldest, newest), (alive, dead, remote)) = read.await?;
    Ok(DatabaseStatus {
        look,
        states,
        bytes,
        payload_bytes,
        oldest_created_at_ms: oldest,
        newest_event_at_ms: newest,
        processes_alive: alive,
        processes_dead: dead,
        remote_workers: remote,
    })
}

/// The large ones.
const OUR_TABLES: [&str; 6] =
    ["executions", "execution_events", "payloads", "idempotency_keys", "session_messages", "input_requests"];

const BYTES: &str = "SELECT CAST(sum(pg_total_relation_size(c.oid)) AS BIGINT), \
    CAST(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relname = 'payloads') AS BIGINT) FROM pg_class c \
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relname = ANY($1::TEXT[])";

const OLDEST: &str = "SELECT min(e.created_at_ms) FROM unnest(ARRAY[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, \
    15]::BIGINT[]) AS s(shard) CROSS JOIN LATERAL (SELECT x.created_at_ms FROM executions x WHERE x.shard = s.shard \
    ORDER BY x.id LIMIT 1) e";

const NEWEST: &str = "SELECT max(e.updated_at_ms) FROM unnest(ARRAY[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, \
    15]::BIGINT[]) AS s(shard) CROSS JOIN LATERAL (SELECT x.updated_at_ms FROM executions x WHERE x.shard = s.shard \
    ORDER BY x.id DESC LIMIT 100) e";

const PROCESSES: &str = concat!(
    "SELECT count(*) FILTER (WHERE expires_at_ms > ",
    clock!(),
    "), count(*) FILTER (WHERE expires_at_ms <= ",
    clock!(),
    ") FROM processes"
);

const REMOTE: &str = "SELECT count(*) FROM workers WHERE kind = 'remote' AND gone_at_ms IS NULL AND silent_at_ms > $1";

/// What pruning would delete; changes nothing.
///
/// # Errors
///
/// As of [`status`].
pub async fn prune_preview(
    url: &str,
    settings: &PostgresSettings,
    slice: &Slice,
    retention: Retention,
    now_ms: i64,
) -> Result<Pruned> {
    let db = Db::new(url, Arc::new(settings.clone()))?;
    prune::preview(&db, slice, retention, now_ms).await
}

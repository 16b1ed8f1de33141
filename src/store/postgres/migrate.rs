//! Brings a database to the schema this program knows, or checks that it has one this program can work with. Files are
//! embedded and checksummed; a row that is changed by compare-and-set lets one process migrate while the others wait.
//! What is in the files, and which history fits which program, is decided in `migrations.rs`. Opens no connection.

use std::time::{Duration, Instant};

use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::fault::{Fault, Sql};
use super::migrations::{self, Applied, Migration, Verdict};
use super::registry::clock;
use super::vendor::Vendor;
use crate::store::{Error, Result};

/// How long a process that migrates keeps the others out without a sign of life.
const GUARD_MS: i64 = 15_000;
/// How often it gives one.
const RENEWAL: Duration = Duration::from_secs(5);
/// How often those who wait look.
const LOOK: Duration = Duration::from_millis(100);
/// How long they wait: an index on a large table takes its time.
const WAIT_MAX: Duration = Duration::from_secs(3_600);
/// Tries of one section that a distributed database asks to run again.
const TRIES_MAX: u32 = 10;

/// Two connections of this process to the same schema: one runs the files, one meanwhile says that it still does.
#[derive(Clone, Copy)]
pub(super) struct Hands<'a> {
    pub(super) work: &'a Client,
    pub(super) sign: &'a Client,
}

/// The version that is there after it; `migrates` says whether anything may be changed.
///
/// # Errors
///
/// [`Error::TooNew`] and [`Error::TooOld`] in one line; [`Error::Damaged`] for a history that is not this program's.
pub(super) async fn run(hands: Hands<'_>, vendor: Vendor, migrates: bool) -> Result<i64> {
    let known = migrations::embedded();
    run_known(hands, vendor, migrates, &known).await
}

/// The same with other files than those of this program.
pub(super) async fn run_known(hands: Hands<'_>, vendor: Vendor, migrates: bool, known: &[Migration]) -> Result<i64> {
    let began = Instant::now();
    let holder = Uuid::new_v4();
    let mut told = false;
    loop {
        let (found, newest) = match history(hands.work).await.map_err(|fault| fault.error)? {
            Some(applied) => (migrations::judge(known, &applied)?, applied.last().map_or(0, |newest| newest.version)),
            None => {
                refuse_foreign(hands.work).await?;
                (Verdict::Behind(0), 0)
            }
        };
        let next = match found {
            Verdict::Fits => return Ok(newest),
            Verdict::Behind(next) => next,
        };
        if !migrates {
            return Err(Error::TooOld { found: newest, known: migrations::newest(known) });
        }
        prepare(hands.work).await.map_err(|fault| fault.error)?;
        if !take(hands.sign, holder).await.map_err(|fault| fault.error)? {
            if !told {
                tracing::info!("another process brings the schema up to date; waiting for it");
                told = true;
            }
            if began.elapsed() > WAIT_MAX {
                return Err(Error::Unavailable("another process has been migrating the schema for an hour".into()));
            }
            tokio::time::sleep(LOOK).await;
            continue;
        }
        let done = migrate(hands, vendor, (holder, newest), &known[next..]).await;
        let freed = free(hands.sign, holder).await;
        done.and(freed).map_err(|fault| fault.error)?;
    }
}

/// Runs what is missing while the guard is held. Ends early when it is not any more: the caller looks again.
async fn migrate(hands: Hands<'_>, vendor: Vendor, (holder, newest): (Uuid, i64), missing: &[Migration]) -> Sql<()> {
    // Between the look and the guard another process may have been faster.
    let applied = history(hands.work).await?.unwrap_or_default();
    if applied.last().map_or(0, |newest| newest.version) != newest {
        return Ok(());
    }
    for migration in missing {
        tracing::info!(version = migration.version, name = migration.name, "migrating the schema");
        for sql in migration.sections_for(vendor) {
            if !under_guard(hands, holder, sql).await? {
                return Ok(());
            }
        }
        note(hands.work, migration).await?;
    }
    Ok(())
}

/// Runs `sql`, and keeps the guard meanwhile; false when it is lost.
async fn under_guard(hands: Hands<'_>, holder: Uuid, sql: &str) -> Sql<bool> {
    let run = section(hands.work, sql);
    tokio::pin!(run);
    let mut kept = renew(hands.sign, holder).await?;
    if !kept {
        return Ok(false);
    }
    loop {
        tokio::select! {
            done = &mut run => return done.map(|()| kept),
            () = tokio::time::sleep(RENEWAL) => {
                // The statement goes on in any case: it may be run twice, and what is lost shows in the end.
                kept &= renew(hands.sign, holder).await.unwrap_or(true);
            }
        }
    }
}

/// Each section can be run again: after a death half-way, beside another process, or when the database asks for it.
async fn section(client: &Client, sql: &str) -> Sql<()> {
    let mut tries = 1;
    loop {
        match client.batch_execute(sql).await {
            Ok(()) => return Ok(()),
            Err(error) if tries < TRIES_MAX && error.code().is_some_and(|code| REPEATABLE.contains(&code.code())) => {
                tracing::debug!(%error, tries, "a section of a migration runs again");
                tries += 1;
                tokio::time::sleep(LOOK).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Serialization, deadlock, and two processes that make the same object at once: `IF NOT EXISTS` is no promise there.
const REPEATABLE: [&str; 6] = ["40001", "40P01", "23505", "42P07", "42710", "XX000"];

const IS_THERE: &str = "SELECT count(*) FROM information_schema.tables \
    WHERE table_schema = current_schema() AND table_name = $1";

async fn is_there(client: &Client, table: &str) -> Sql<bool> {
    let rows = client.query_typed(IS_THERE, &[(&table, Type::TEXT)]).await?;
    Ok(rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or(0) > 0)
}

const HISTORY: &str = "SELECT version, name, checksum, oldest_program FROM schema_history ORDER BY version";

/// The migrations that ran; `None` without a table of them.
pub(super) async fn history(client: &Client) -> Sql<Option<Vec<Applied>>> {
    if !is_there(client, "schema_history").await? {
        return Ok(None);
    }
    let rows = client.query_typed(HISTORY, &[]).await?;
    let read = |row: &tokio_postgres::Row| -> Sql<Applied> {
        Ok(Applied {
            version: row.try_get(0)?,
            name: row.try_get(1)?,
            checksum: row.try_get(2)?,
            oldest_program: row.try_get(3)?,
        })
    };
    rows.iter().map(read).collect::<Sql<Vec<_>>>().map(Some)
}

/// A schema without our history must not have our tables: they would be another program's.
async fn refuse_foreign(client: &Client) -> Result<()> {
    for table in ["executions", "execution_events", "payloads", "sessions", "workers", "tasks"] {
        if is_there(client, table).await.map_err(|fault| fault.error)? {
            return Err(Error::Damaged(format!(
                "the schema holds a table {table:?} of another program; name a schema or a database of its own"
            )));
        }
    }
    Ok(())
}

/// The tables of history and guard.
async fn prepare(client: &Client) -> Sql<()> {
    if !is_there(client, "schema_guard").await? {
        section(client, migrations::HISTORY_SQL).await?;
    }
    client.execute_typed(PUT_GUARD, &[]).await?;
    Ok(())
}

const PUT_GUARD: &str =
    "INSERT INTO schema_guard (id, holder, until_ms) VALUES (1, NULL, 0) ON CONFLICT (id) DO NOTHING";

const TAKE: &str = concat!(
    "UPDATE schema_guard SET holder = $1, until_ms = ",
    clock!(),
    " + $2 WHERE id = 1 AND (holder IS NULL OR until_ms < ",
    clock!(),
    ")"
);

async fn take(client: &Client, holder: Uuid) -> Sql<bool> {
    changed(client, TAKE, &[(&holder, Type::UUID), (&GUARD_MS, Type::INT8)]).await
}

const RENEW: &str = concat!("UPDATE schema_guard SET until_ms = ", clock!(), " + $2 WHERE id = 1 AND holder = $1");

async fn renew(client: &Client, holder: Uuid) -> Sql<bool> {
    changed(client, RENEW, &[(&holder, Type::UUID), (&GUARD_MS, Type::INT8)]).await
}

const FREE: &str = "UPDATE schema_guard SET holder = NULL WHERE id = 1 AND holder = $1";

async fn free(client: &Client, holder: Uuid) -> Sql<()> {
    changed(client, FREE, &[(&holder, Type::UUID)]).await.map(drop)
}

/// Runs a compare-and-set on one row, again when the database asks for it; true when it changed the row.
async fn changed(client: &Client, sql: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Sql<bool> {
    let mut tries = 1;
    loop {
        match client.execute_typed(sql, values).await {
            Ok(count) => return Ok(count == 1),
            Err(error) if tries < TRIES_MAX && error.code().is_some_and(|code| code.code() == "40001") => {
                tries += 1;
                tokio::time::sleep(LOOK).await;
            }
            Err(error) => return Err(Fault::from(error)),
        }
    }
}

const NOTE: &str = concat!(
    "INSERT INTO schema_history (version, name, checksum, oldest_program, applied_at_ms) VALUES ($1, $2, $3, $4, ",
    clock!(),
    ") ON CONFLICT (version) DO NOTHING"
);

/// Two that ran the same file note it once.
async fn note(client: &Client, migration: &Migration) -> Sql<()> {
    let values: [(&(dyn ToSql + Sync), Type); 4] = [
        (&migration.version, Type::INT8),
        (&migration.name, Type::TEXT),
        (&migration.checksum, Type::TEXT),
        (&migration.oldest_program, Type::INT8),
    ];
    client.execute_typed(NOTE, &values).await?;
    Ok(())
}

//! Brings a database to the schema this program knows, or checks that it has one this program can work with. Files are
//! embedded and checksummed; a row that is changed by compare-and-set lets one process migrate while the others wait.
//! What is in the files, and which history fits which program, is decided in `migrations.rs`. Opens no connection.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::fault::{Fault, Kind, Sql};
use super::migrations::{self, Applied, Migration, Verdict};
use super::registry::clock;
use super::vendor::Vendor;
use crate::store::Error;

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
    pub(super) work: Hand<'a>,
    pub(super) sign: Hand<'a>,
}

/// A connection. What a distributed database asks to run again runs again.
#[derive(Clone, Copy)]
pub(super) struct Hand<'a> {
    pub(super) client: &'a Client,
    /// Begins a transaction in which the schema is known, where it is known in transactions only: through a pooler.
    pub(super) begin: Option<&'a str>,
}

/// What the database will have told.
type Told<'run, T> = BoxFuture<'run, std::result::Result<T, tokio_postgres::Error>>;

impl Hand<'_> {
    /// Runs a statement, alone, for its rows.
    async fn rows(self, sql: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Sql<Vec<Row>> {
        self.persistently(|| Box::pin(self.client.query_typed(sql, values)), &["40001"]).await
    }

    /// Runs a statement, alone, for the number of rows it struck.
    async fn execute(self, sql: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Sql<u64> {
        self.persistently(|| Box::pin(self.client.execute_typed(sql, values)), &["40001"]).await
    }

    /// Each section can be run again: after a death half-way, beside another process, or when the database asks for it.
    async fn section(self, sql: &str) -> Sql<()> {
        self.persistently(|| Box::pin(self.client.batch_execute(sql)), &REPEATABLE).await
    }

    async fn persistently<'run, T>(self, run: impl Fn() -> Told<'run, T>, codes: &[&str]) -> Sql<T> {
        let mut tries = 1;
        loop {
            let error = match self.framed(&run).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if tries == TRIES_MAX || !error.code().is_some_and(|code| codes.contains(&code.code())) {
                return Err(error.into());
            }
            tracing::debug!(%error, tries, "a part of the set-up of the schema runs again");
            tries += 1;
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn framed<'run, T>(self, run: &impl Fn() -> Told<'run, T>) -> std::result::Result<T, tokio_postgres::Error> {
        let Some(begin) = self.begin else { return run().await };
        self.client.batch_execute(begin).await?;
        let done = async {
            let done = run().await?;
            self.client.batch_execute("COMMIT").await.map(|()| done)
        };
        let done = done.await;
        if done.is_err() {
            // Of no use where the connection is gone; the error to tell is the first.
            let _ = self.client.batch_execute("ROLLBACK").await;
        }
        done
    }
}

/// The version that is there after it; `migrates` says whether anything may be changed.
///
/// # Errors
///
/// [`Error::TooNew`] and [`Error::TooOld`] in one line; [`Error::Damaged`] for a history that is not this program's.
pub(super) async fn run(hands: Hands<'_>, vendor: Vendor, migrates: bool) -> Sql<i64> {
    let known = migrations::embedded();
    run_known(hands, vendor, migrates, &known).await
}

/// The same with other files than those of this program.
pub(super) async fn run_known(hands: Hands<'_>, vendor: Vendor, migrates: bool, known: &[Migration]) -> Sql<i64> {
    let began = Instant::now();
    let holder = Uuid::new_v4();
    let mut told = false;
    loop {
        let (found, newest) = match history(hands.work).await? {
            Some(applied) => (
                migrations::judge(known, &applied).map_err(of_schema)?,
                applied.last().map_or(0, |newest| newest.version),
            ),
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
            return Err(of_schema(Error::TooOld { found: newest, known: migrations::newest(known) }));
        }
        prepare(hands.work).await?;
        if !take(hands.sign, holder).await? {
            if !told {
                tracing::info!("another process brings the schema up to date; waiting for it");
                told = true;
            }
            if began.elapsed() > WAIT_MAX {
                return Err(Fault::unavailable("another process has been migrating the schema for an hour"));
            }
            tokio::time::sleep(LOOK).await;
            continue;
        }
        let done = migrate(hands, vendor, (holder, newest), &known[next..]).await;
        let freed = free(hands.sign, holder).await;
        done.and(freed)?;
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
    let run = hands.work.section(sql);
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

/// Serialization, deadlock, and two processes that make the same object at once: `IF NOT EXISTS` is no promise there.
const REPEATABLE: [&str; 6] = ["40001", "40P01", "23505", "42P07", "42710", "XX000"];

const IS_THERE: &str = "SELECT count(*) FROM information_schema.tables \
    WHERE table_schema = current_schema() AND table_name = $1";

async fn is_there(hand: Hand<'_>, table: &str) -> Sql<bool> {
    let rows = hand.rows(IS_THERE, &[(&table, Type::TEXT)]).await?;
    Ok(rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or(0) > 0)
}

const HISTORY: &str = "SELECT version, name, checksum, oldest_program FROM schema_history ORDER BY version";

/// The migrations that ran; `None` without a table of them.
pub(super) async fn history(hand: Hand<'_>) -> Sql<Option<Vec<Applied>>> {
    if !is_there(hand, "schema_history").await? {
        return Ok(None);
    }
    let rows = hand.rows(HISTORY, &[]).await?;
    let read = |row: &Row| -> Sql<Applied> {
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
async fn refuse_foreign(hand: Hand<'_>) -> Sql<()> {
    for table in ["executions", "execution_events", "payloads", "sessions", "workers", "tasks"] {
        if is_there(hand, table).await? {
            return Err(Fault::damaged(format!(
                "the schema holds a table {table:?} of another program; name a schema or a database of its own"
            )));
        }
    }
    Ok(())
}

/// The tables of history and guard.
async fn prepare(hand: Hand<'_>) -> Sql<()> {
    if !is_there(hand, "schema_guard").await? {
        hand.section(migrations::HISTORY_SQL).await?;
    }
    hand.execute(PUT_GUARD, &[]).await?;
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

async fn take(hand: Hand<'_>, holder: Uuid) -> Sql<bool> {
    changed(hand, TAKE, &[(&holder, Type::UUID), (&GUARD_MS, Type::INT8)]).await
}

const RENEW: &str = concat!("UPDATE schema_guard SET until_ms = ", clock!(), " + $2 WHERE id = 1 AND holder = $1");

async fn renew(hand: Hand<'_>, holder: Uuid) -> Sql<bool> {
    changed(hand, RENEW, &[(&holder, Type::UUID), (&GUARD_MS, Type::INT8)]).await
}

const FREE: &str = "UPDATE schema_guard SET holder = NULL WHERE id = 1 AND holder = $1";

async fn free(hand: Hand<'_>, holder: Uuid) -> Sql<()> {
    changed(hand, FREE, &[(&holder, Type::UUID)]).await.map(drop)
}

/// Runs a compare-and-set on one row; true when it changed the row.
async fn changed(hand: Hand<'_>, sql: &str, values: &[(&(dyn ToSql + Sync), Type)]) -> Sql<bool> {
    Ok(hand.execute(sql, values).await? == 1)
}

const NOTE: &str = concat!(
    "INSERT INTO schema_history (version, name, checksum, oldest_program, applied_at_ms) VALUES ($1, $2, $3, $4, ",
    clock!(),
    ") ON CONFLICT (version) DO NOTHING"
);

/// Two that ran the same file note it once.
async fn note(hand: Hand<'_>, migration: &Migration) -> Sql<()> {
    let values: [(&(dyn ToSql + Sync), Type); 4] = [
        (&migration.version, Type::INT8),
        (&migration.name, Type::TEXT),
        (&migration.checksum, Type::TEXT),
        (&migration.oldest_program, Type::INT8),
    ];
    hand.execute(NOTE, &values).await?;
    Ok(())
}

/// What a history says of itself is no fault of the database.
fn of_schema(error: Error) -> Fault {
    Fault { error, kind: Kind::Whole }
}

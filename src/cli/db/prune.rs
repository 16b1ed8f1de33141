//! `db prune`: applies retention now, in small batches beside running processes. What it deletes is decided by the store.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use super::place::{self, Place};
use super::progress::Progress;
use super::{blocking, json};
use crate::cli::args::PruneArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::Output;
use crate::engine::clock::Clock;
use crate::serve::settings;
use crate::store::{self, Pruned, Retention, Store, postgres, sqlite};

/// Executions in one commit.
const BATCH: usize = 100;
/// Older than anything: keeps all of a kind.
const NEVER_MS: i64 = i64::MAX;

/// What was deleted, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PruneView {
    /// `default`, or the name of a `wrap`.
    pub store: String,
    /// Nothing was deleted.
    pub dry_run: bool,
    /// Executions with all that belongs to them.
    pub executions: u64,
    /// Executions that stay, without arguments and result.
    pub payloads: u64,
    /// Expired idempotency keys.
    pub keys: u64,
}

/// Runs the command.
pub async fn run(args: PruneArgs, out: Output) -> Result<Exit, Failure> {
    let loaded = args.place.configuration.load(|_| {})?;
    let place = place::one(&args.place, &loaded)?;
    let configured = &loaded.config.retention;
    let retention = Retention {
        payloads_ms: args.older_than.map_or(configured.payloads.0, |span| span.0),
        executions_ms: match args.payloads_only {
            true => NEVER_MS,
            false => args.older_than.map_or(configured.executions.0, |span| span.0),
        },
        batch: BATCH,
    };
    let now_ms = Clock::System.now_ms();
    let (name, url, wanted) = match place {
        Place::File(file) => {
            let (path, url) = (file.path.clone(), format!("sqlite:{}", file.path.display()));
            (file.name, url, blocking(move || sqlite::prune_preview(&path, retention, now_ms)).await?)
        }
        Place::Database(database) => {
            let wanted = postgres::prune_preview(&database.url, &database.settings, retention, now_ms).await?;
            (database.name, database.url, wanted)
        }
    };
    let mut settings = settings::store(&loaded.config);
    settings.postgres.migrates = false;
    let pruned = match args.dry_run {
        true => wanted,
        false => prune(&*store::open(&url, &settings).await?, retention, (now_ms, wanted)).await?,
    };
    let view = PruneView {
        store: name,
        dry_run: args.dry_run,
        executions: pruned.executions as u64,
        payloads: pruned.payloads as u64,
        keys: pruned.keys as u64,
    };
    if args.json {
        out.line(&json(&view)?)?;
        return Ok(Exit::Ok);
    }
    let done = if args.dry_run { "would be deleted" } else { "deleted" };
    out.line(&format!(
        "{done}: {} executions, the payloads of {} more, {} expired keys",
        view.executions, view.payloads, view.keys
    ))?;
    if !args.dry_run && pruned.executions + pruned.payloads > 0 {
        match store::is_postgres(&url) {
            true => eprintln!("the room is free for new rows once the database has vacuumed"),
            false => eprintln!("the file keeps its size; what is free in it is used again"),
        }
    }
    Ok(Exit::Ok)
}

async fn prune(store: &dyn Store, retention: Retention, (now_ms, wanted): (i64, Pruned)) -> Result<Pruned, Failure> {
    let mut pruned = Pruned::default();
    let bar = Progress::new("executions");
    // Whole executions first: then what is counted as payloads alone is what stays without them.
    let rounds = [Retention { payloads_ms: NEVER_MS, ..retention }, Retention { executions_ms: NEVER_MS, ..retention }];
    let mut ended = Ok(());
    for round in rounds {
        ended = all(store, round, now_ms, &mut |more| {
            pruned.executions += more.executions;
            pruned.payloads += more.payloads;
            pruned.keys += more.keys;
            let done = (pruned.executions + pruned.payloads) as u64;
            bar.set(done, ((wanted.executions + wanted.payloads) as u64).max(done));
        })
        .await;
        if ended.is_err() {
            break;
        }
    }
    store.close().await;
    ended.map(|()| pruned)
}

async fn all(
    store: &dyn Store,
    retention: Retention,
    now_ms: i64,
    tell: &mut dyn FnMut(Pruned),
) -> Result<(), Failure> {
    loop {
        let since = Instant::now();
        let more = store.prune(retention, now_ms).await?;
        tell(more);
        if more == Pruned::default() {
            return Ok(());
        }
        // A running server has more urgent things to write: it gets as much time as was just taken.
        tokio::time::sleep(since.elapsed().min(Duration::from_millis(100))).await;
    }
}

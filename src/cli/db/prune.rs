//! `db prune`: applies retention now, in small batches beside running processes. What it deletes is decided by the store.

use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::place::{self, Place};
use super::progress::Progress;
use super::{blocking, json};
use crate::cli::args::PruneArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::Output;
use crate::config::units::Millis;
use crate::engine::clock::Clock;
use crate::engine::rests::Rests;
use crate::model::execution::State;
use crate::serve::settings;
use crate::store::counting::Pace;
use crate::store::{self, Pruned, Retention, Slice, Store, postgres, sqlite};

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
    /// The same by rule, as counted beforehand.
    pub rules: Vec<RuleView>,
}

/// What one rule of retention deletes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleView {
    /// Of which namespace; null: of all that have no rule of their own.
    pub namespace: Option<String>,
    /// Of which state; null: of all ended ones.
    pub state: Option<&'static str>,
    /// Executions with all that belongs to them.
    pub executions: u64,
    /// Executions that stay, without arguments and result.
    pub payloads: u64,
    /// Expired idempotency keys.
    pub keys: u64,
}

impl RuleView {
    fn of(slice: &Slice, wanted: Pruned) -> RuleView {
        RuleView {
            namespace: slice.namespace.clone(),
            state: slice.state.map(State::as_str),
            executions: wanted.executions as u64,
            payloads: wanted.payloads as u64,
            keys: wanted.keys as u64,
        }
    }

    fn line(&self) -> String {
        let namespace = self.namespace.as_deref().unwrap_or("all others");
        let state = self.state.unwrap_or("any state");
        let RuleView { executions, payloads, keys, .. } = self;
        format!("  {namespace}, {state}: {executions} executions, the payloads of {payloads} more, {keys} expired keys")
    }
}

/// Runs the command.
pub async fn run(args: PruneArgs, out: Output) -> Result<Exit, Failure> {
    let loaded = args.place.configuration.load(|_| {})?;
    let place = place::one(&args.place, &loaded)?;
    let configured = settings::retention_rules(&loaded.config);
    let whole = |span: Millis| {
        let batch = loaded.config.retention.batch as usize;
        vec![(Slice::default(), Retention { payloads_ms: span.0, executions_ms: span.0, batch })]
    };
    let mut rules = args.older_than.map_or(configured, whole);
    if args.payloads_only {
        rules.iter_mut().for_each(|(_, retention)| retention.executions_ms = NEVER_MS);
    }
    let now_ms = Clock::System.now_ms();
    let (name, url, wanted) = match place {
        Place::File(file) => {
            let (path, url) = (file.path.clone(), format!("sqlite:{}", file.path.display()));
            let counted = rules.clone();
            let wanted = blocking(move || {
                let count =
                    |(slice, retention): &(Slice, Retention)| sqlite::prune_preview(&path, slice, *retention, now_ms);
                counted.iter().map(count).collect::<store::Result<Vec<Pruned>>>()
            });
            (file.name, url, wanted.await?)
        }
        Place::Database(database) => {
            let mut wanted = Vec::with_capacity(rules.len());
            for (slice, retention) in &rules {
                let counted =
                    postgres::prune_preview(&database.url, &database.settings, slice, *retention, now_ms).await?;
                wanted.push(counted);
            }
            (database.name, database.url, wanted)
        }
    };
    let mut settings = settings::store(&loaded.config);
    settings.postgres.migrates = false;
    let counted = rules.iter().zip(&wanted).map(|((slice, _), wanted)| RuleView::of(slice, *wanted)).collect();
    let mut all_wanted = Pruned::default();
    wanted.into_iter().for_each(|wanted| all_wanted += wanted);
    let pruned = match args.dry_run {
        true => all_wanted,
        false => {
            let share = loaded.config.retention.share;
            prune(&*store::open(&url, &settings).await?, &rules, (now_ms, all_wanted, share)).await?
        }
    };
    let view = PruneView {
        store: name,
        dry_run: args.dry_run,
        executions: pruned.executions as u64,
        payloads: pruned.payloads as u64,
        keys: pruned.keys as u64,
        rules: counted,
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
    if view.rules.len() > 1 {
        for rule in &view.rules {
            out.line(&rule.line())?;
        }
    }
    if !args.dry_run && pruned.executions + pruned.payloads > 0 {
        match store::is_postgres(&url) {
            true => eprintln!("the room is free for new rows once the database has vacuumed"),
            false => eprintln!("the file keeps its size; what is free in it is used again"),
        }
    }
    Ok(Exit::Ok)
}

async fn prune(
    store: &dyn Store,
    rules: &[(Slice, Retention)],
    (now_ms, wanted, share): (i64, Pruned, u32),
) -> Result<Pruned, Failure> {
    let mut pruned = Pruned::default();
    let bar = Progress::new("executions");
    let mut ended = Ok(());
    for rule in rules {
        ended = all(store, rule, (now_ms, share), &mut |more| {
            pruned += more;
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
    (slice, retention): &(Slice, Retention),
    (now_ms, share): (i64, u32),
    tell: &mut dyn FnMut(Pruned),
) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    let mut rests = Rests::begin(&Clock::System, &stop, share);
    loop {
        let more = store.prune_slice(slice.clone(), *retention, now_ms).await?;
        tell(more);
        if more == Pruned::default() {
            return Ok(());
        }
        // A running server has more urgent things to write.
        rests.rest().await;
    }
}

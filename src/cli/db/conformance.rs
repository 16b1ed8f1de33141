//! `db conformance --url`: the conformance suite of the store against somebody's own database, case by case, each in a
//! schema that is dropped after it. Judges nothing itself: the cases say what holds.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use super::json;
use super::progress::Progress;
use crate::cli::args::{ConformanceArgs, IsolationFlag};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Output, printable};
use crate::store::conformance::{Case, cases};
use crate::store::postgres::{Isolation, PostgresSettings, Throwaway};
use crate::store::{Error, is_postgres};

/// A line of `db conformance --json`: the database first, then each case as it ends, then the sum.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ConformanceView {
    /// What is tested.
    Database {
        /// `postgresql`, `cockroachdb` or `yugabytedb`.
        vendor: String,
        /// The database's own words for its release.
        version: String,
        /// The isolation that was asked for.
        isolation_wanted: String,
        /// The isolation that transactions get.
        isolation: String,
        /// The protocol that encrypts the connection, empty without one; null when the database does not tell.
        encryption: Option<String>,
        /// The program that tests.
        program: String,
    },
    /// A case.
    Case {
        /// A sentence.
        name: String,
        /// It holds.
        ok: bool,
        /// How long it took, its schema included.
        milliseconds: u64,
        /// Why it does not hold.
        failure: Option<String>,
    },
    /// All of them.
    Sum {
        /// Cases that hold.
        passed: usize,
        /// Cases that do not.
        failed: usize,
    },
}

/// Runs the command.
pub async fn run(args: ConformanceArgs, out: Output) -> Result<Exit, Failure> {
    if !is_postgres(&args.url) {
        return Err(Failure::usage(
            "the suite is for PostgreSQL and what speaks its protocol; SQLite is tested with the \
                                   program",
        )
        .next("write --url postgres://USER@HOST/DATABASE"));
    }
    let only = args.only.as_deref().unwrap_or_default();
    let wanted: Vec<Case> = cases().into_iter().filter(|case| case.name.contains(only)).collect();
    if wanted.is_empty() {
        return Err(Failure::usage(format!("no case has {only:?} in its name")).next("leave --only out to run all"));
    }
    let settings = PostgresSettings {
        isolation: match args.isolation {
            IsolationFlag::Serializable => Isolation::Serializable,
            IsolationFlag::ReadCommitted => Isolation::ReadCommitted,
        },
        pooled: args.pooled,
        // Its nodes may be far away.
        answer_deadline_ms: 20_000,
        commit_deadline_ms: 10_000,
        ..PostgresSettings::default()
    };
    let mut report = Report { out, json: args.json, passed: 0, failed: 0 };
    report.about(&args.url, &settings).await?;
    let bar = Progress::new("cases");
    for (number, case) in wanted.iter().enumerate() {
        bar.set(number as u64, wanted.len() as u64);
        let began = Instant::now();
        let failure = one(case, &args, &settings).await?;
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let view = ConformanceView::Case { name: case.name.into(), ok: failure.is_none(), milliseconds, failure };
        let mut told = Ok(());
        bar.aside(|| told = report.tell(&view));
        told?;
    }
    drop(bar);
    let (passed, failed) = (report.passed, report.failed);
    report.tell(&ConformanceView::Sum { passed, failed })?;
    Ok(if failed > 0 { Exit::Failure } else { Exit::Ok })
}

/// Runs one case; why it does not hold. Its schema is gone when this is over, also after Ctrl-C.
async fn one(case: &Case, args: &ConformanceArgs, settings: &PostgresSettings) -> Result<Option<String>, Failure> {
    let ground = Throwaway::create(&args.url, settings).await.map_err(unreachable)?;
    let limit = Duration::from_millis(u64::try_from(args.timeout.0).unwrap_or(u64::MAX));
    let ended = tokio::select! {
        ended = tokio::time::timeout(limit, case.run(&ground)) => Some(match ended {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure.to_string()),
            Err(_) => Some(format!("it had not ended after {} s", limit.as_secs())),
        }),
        _ = tokio::signal::ctrl_c() => None,
    };
    ground.drop_schema().await.map_err(|error| {
        Failure::new(Exit::Failure, error.to_string()).next(format!("drop the schema {} yourself", ground.name()))
    })?;
    ended.ok_or_else(|| Failure::new(Exit::Interrupted, "stopped before the last case"))
}

fn unreachable(error: Error) -> Failure {
    let exit = if matches!(error, Error::Unavailable(_)) { Exit::Unreachable } else { Exit::Failure };
    Failure::new(exit, error.to_string())
}

struct Report {
    out: Output,
    json: bool,
    passed: usize,
    failed: usize,
}

impl Report {
    async fn about(&mut self, url: &str, settings: &PostgresSettings) -> Result<(), Failure> {
        let look = crate::store::postgres::look(url, settings).await.map_err(unreachable)?;
        self.tell(&ConformanceView::Database {
            vendor: look.vendor.to_string(),
            version: look.version,
            isolation_wanted: look.isolation_wanted.to_owned(),
            isolation: look.isolation,
            encryption: look.encryption,
            program: format!("durable-mcp {}", env!("CARGO_PKG_VERSION")),
        })
    }

    fn tell(&mut self, view: &ConformanceView) -> Result<(), Failure> {
        if let ConformanceView::Case { ok, .. } = view {
            *if *ok { &mut self.passed } else { &mut self.failed } += 1;
        }
        if self.json {
            return self.out.line(&json(view)?);
        }
        self.out.line(&printable(&match view {
            ConformanceView::Database { vendor, version, isolation, isolation_wanted, encryption, program } => {
                let asked = match isolation == isolation_wanted {
                    true => String::new(),
                    false => format!(" (asked for: {isolation_wanted})"),
                };
                let encryption = match encryption.as_deref() {
                    Some("") => "not encrypted",
                    Some(protocol) => protocol,
                    None => "encryption not told",
                };
                format!("{vendor}: {version}; {isolation}{asked}; {encryption}; {program}")
            }
            ConformanceView::Case { name, ok, milliseconds, failure } => {
                let (mark, why) = match (ok, failure) {
                    (true, _) => ("ok  ", String::new()),
                    (false, failure) => ("FAIL", format!(": {}", failure.as_deref().unwrap_or_default())),
                };
                format!("{mark}  {:>6.2} s  {}{why}", *milliseconds as f64 / 1_000.0, name.replace('_', " "))
            }
            ConformanceView::Sum { passed, failed } => format!("{passed} cases hold, {failed} do not"),
        }))
    }
}

//! `db verify`: every store against the rules of the store, one line for each that does not hold. Changes nothing. Of a
//! database one moment is copied into a private file first, and that is checked.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::place::{self, Place};
use super::progress::Progress;
use super::{blocking, json, scratch};
use crate::cli::args::DbReadArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Output, printable};
use crate::store::sqlite::{self, Told, Verified};
use crate::store::transfer::{self, Source};
use crate::store::verify::Finding;

/// A line of `db verify --json`: findings as they are made, then one `store` for each store.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum VerifyView {
    /// A rule that does not hold.
    Finding {
        /// `default`, or the name of a `wrap`.
        store: String,
        /// Which rule: `integrity`, `schema`, `readable`, `gapless`, `fold`, `final`, `attempts`, `payload`, `key` or
        /// `orphan`.
        rule: String,
        /// The execution it is about; null when it is about the file.
        execution: Option<String>,
        /// What is wrong.
        what: String,
    },
    /// What was checked.
    Store {
        /// `default`, or the name of a `wrap`.
        store: String,
        /// Its file, or its address without the password.
        path: String,
        /// Executions.
        executions: u64,
        /// Their events.
        events: u64,
        /// Their payloads.
        payloads: u64,
        /// Idempotency keys.
        keys: u64,
        /// Rules that do not hold.
        findings: u64,
    },
}

/// Runs the command.
pub async fn run(args: DbReadArgs, out: Output) -> Result<Exit, Failure> {
    let loaded = args.place.configuration.load(|_| {})?;
    let places = place::all(&args.place, &loaded)?;
    if places.is_empty() {
        eprintln!("there is no store yet; the first start of `durable-mcp serve` or `wrap` makes it");
    }
    let mut exit = Exit::Ok;
    for place in places {
        let (name, shown) = match &place {
            Place::File(file) => (file.name.clone(), file.path.display().to_string()),
            Place::Database(database) => (database.name.clone(), database.shown()),
        };
        let verified = match check(place, (name.clone(), out.clone()), args.json).await {
            Ok(verified) => verified,
            // One that can not be read must not hide the others.
            Err(failure) if !failure.error.is_empty() => {
                failure.print();
                exit = Exit::Failure;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        if verified.findings > 0 {
            exit = Exit::Failure;
        }
        if args.json {
            out.line(&json(&summary(name, shown, &verified))?)?;
        } else {
            eprintln!("{name}: {}", sentence(&verified));
        }
    }
    Ok(exit)
}

async fn check(place: Place, (name, out): (String, Output), as_json: bool) -> Result<Verified, Failure> {
    let line = move |finding: &Finding| -> Result<(), Failure> {
        let execution = finding.execution.clone();
        match as_json {
            true => {
                let rule = finding.rule.as_str().to_owned();
                out.line(&json(&VerifyView::Finding {
                    store: name.clone(),
                    rule,
                    execution,
                    what: finding.what.clone(),
                })?)
            }
            false => out.line(&text(&name, finding)),
        }
    };
    let told = Arc::new(std::sync::Mutex::new(None));
    let broken = told.clone();
    let mut found = move |finding: &Finding| match line(finding) {
        Ok(()) => ControlFlow::Continue(()),
        Err(failure) => {
            *told.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(failure);
            ControlFlow::Break(())
        }
    };
    let verified = match place {
        Place::File(file) => blocking(move || verify(&file.path, &mut found)).await?,
        Place::Database(database) => {
            let folder = scratch()?;
            let source = Source::Postgres(database.url, database.settings);
            let progress = Progress::new("executions");
            let tell = move |told: Told| telling(&progress, told, &mut found);
            transfer::verify(&source, &folder.path().join("checked.db"), tell).await?
        }
    };
    let failure = broken.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    failure.map_or(Ok(verified), Err)
}

/// Checks a file with a bar on stderr. Blocks.
pub(super) fn verify(
    path: &Path,
    found: &mut dyn FnMut(&Finding) -> ControlFlow<()>,
) -> crate::store::Result<Verified> {
    let progress = Progress::new("executions");
    sqlite::verify(path, &mut |told| telling(&progress, told, found))
}

fn telling(progress: &Progress, told: Told, found: &mut dyn FnMut(&Finding) -> ControlFlow<()>) -> ControlFlow<()> {
    match told {
        Told::Progress { done, total } => {
            progress.set(done, total);
            ControlFlow::Continue(())
        }
        Told::Found(finding) => {
            let mut next = ControlFlow::Continue(());
            progress.aside(|| next = found(&finding));
            next
        }
    }
}

/// A finding for people: `default: fold: 0198c3f2-…: the row is not its events' fold: state`.
pub(super) fn text(store: &str, finding: &Finding) -> String {
    let rule = finding.rule.as_str();
    let what = printable(&finding.what);
    match &finding.execution {
        Some(execution) => format!("{store}: {rule}: {}: {what}", printable(execution)),
        None => format!("{store}: {rule}: {what}"),
    }
}

/// What was checked, for people.
pub(super) fn sentence(verified: &Verified) -> String {
    let Verified { executions, events, payloads, keys, findings } = verified;
    let verdict = match findings {
        0 => "all hold together".to_owned(),
        1 => "1 rule does not hold".to_owned(),
        more => format!("{more} rules do not hold"),
    };
    format!("{executions} executions, {events} events, {payloads} payloads, {keys} keys: {verdict}")
}

fn summary(store: String, path: String, verified: &Verified) -> VerifyView {
    VerifyView::Store {
        store,
        path,
        executions: verified.executions,
        events: verified.events,
        payloads: verified.payloads,
        keys: verified.keys,
        findings: verified.findings,
    }
}

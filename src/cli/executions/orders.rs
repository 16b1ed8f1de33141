//! `executions cancel|retry|resolve`: by id, by a start of it, or by filter; a filter shows first what it finds, and asks at
//! a terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use serde_json::value::RawValue;

use crate::cli::args::{ResolveArgs, WhichArgs};
use crate::cli::call;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Output, printable};
use crate::cli::source::{Done, Found, Source};
use crate::engine::bulk::MATCHING_MAX;
use crate::engine::operate::{Action, Resolution};

/// An order as the command line has it.
pub struct Order<'a> {
    /// What to do.
    pub action: Action,
    /// Why.
    pub reason: &'a str,
    /// With which executions.
    pub which: &'a WhichArgs,
}

/// What a person says became of executions.
pub fn resolution(args: &ResolveArgs) -> Result<Action, Failure> {
    if args.failed {
        return Ok(Action::Resolve(Resolution::Failed));
    }
    let result = args.result.as_deref().map(call::arguments).transpose()?;
    let result = result.map(RawValue::from_string).transpose();
    let result = result.map_err(|error| Failure::usage(format!("the result is no JSON: {error}")))?;
    let resolution = Resolution::completed(result.as_deref(), None);
    resolution.map(Action::Resolve).map_err(|next| Failure::usage("the result can not be used").next(next))
}

/// Runs the command.
pub async fn run(order: &Order<'_>, source: &Source, out: &Output) -> Result<Exit, Failure> {
    match (order.which.ids.is_empty(), order.which.filter.is_empty()) {
        (true, true) => Err(Failure::usage("which executions?").next("give their ids, or say by filters which")),
        (false, false) => Err(Failure::usage("ids and filters do not go together").next("give one or the other")),
        (false, true) => by_id(order, source, out).await,
        (true, false) => by_filter(order, source, out).await,
    }
}

async fn by_id(order: &Order<'_>, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let mut failed = None;
    for start in &order.which.ids {
        let id = source.find(start).await;
        let done = match id {
            Ok(id) => source.act(id, &order.action, order.reason).await,
            Err(failure) => Err(failure),
        };
        match done {
            Ok(outcome) => tell(&outcome, order.which.source.json, out)?,
            // With one execution the failure is the whole story; with several the others go on.
            Err(failure) if order.which.ids.len() == 1 => return Err(failure),
            Err(failure) => {
                failure.print();
                failed.get_or_insert(failure.exit);
            }
        }
    }
    match failed {
        Some(exit) => Err(Failure { exit, error: String::new(), next: None }),
        None => Ok(Exit::Ok),
    }
}

async fn by_filter(order: &Order<'_>, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let verb = order.action.verb();
    let filter = order.which.filter.query();
    let found = source.preview(&filter, &order.action).await?;
    if found.more {
        let error = format!("the filters find more than {MATCHING_MAX} executions");
        return Err(Failure::usage(error).next("narrow them"));
    }
    if found.matching == 0 {
        eprintln!("nothing to {verb}: the filters find no execution in a fitting state");
        return Ok(Exit::Ok);
    }
    if !order.which.yes {
        show(&found, verb);
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(Failure::usage("nothing was done").next("repeat it with --yes to do it"));
        }
        if !agreed(verb, found.matching) {
            eprintln!("nothing was done");
            return Ok(Exit::Ok);
        }
    }
    let outcomes = source.act_on_all(&filter, &order.action, (order.reason, found.matching)).await?;
    let mut refused = 0;
    for outcome in &outcomes {
        tell(outcome, order.which.source.json, out)?;
        refused += usize::from(!outcome.ok);
    }
    match refused {
        0 => Ok(Exit::Ok),
        refused => Err(Failure::new(Exit::Conflict, format!("{refused} of {} were refused", outcomes.len()))),
    }
}

fn show(found: &Found, verb: &str) {
    eprintln!("{verb} {} executions:", found.matching);
    for id in &found.ids {
        eprintln!("  {id}");
    }
    let hidden = found.matching.saturating_sub(found.ids.len());
    if hidden > 0 {
        eprintln!("  and {hidden} more");
    }
}

fn agreed(verb: &str, count: usize) -> bool {
    eprint!("{verb} these {count}? [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn tell(done: &Done, json: bool, out: &Output) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string(done).map_err(|error| Failure::new(Exit::Failure, error.to_string()))?;
        return out.line(&text);
    }
    let state = done.state.as_deref().unwrap_or("refused");
    let more = match (&done.retried_as, &done.code) {
        (Some(id), _) => format!("  runs again as {id}"),
        (None, Some(code)) => format!("  {code}: {}", done.detail.as_deref().unwrap_or_default()),
        (None, None) => String::new(),
    };
    out.line(&format!("{}  {}{}", done.id, out.state(state), printable(&more)))
}

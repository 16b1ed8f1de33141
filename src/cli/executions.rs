//! `executions …`: tables, or with `--json` one object a line; the same at a terminal and in a pipe. Looking is in this
//! file; what takes its time and what changes something have files of their own.

mod following;
mod orders;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use self::orders::Order;
use super::args::{ExecutionsArgs, ExecutionsCommand, ListArgs, OneArgs};
use super::failure::{Exit, Failure};
use super::output::{Output, printable};
use super::source::{Source, Wanted};
use crate::engine::operate::Action;

/// Rows of a list at a terminal when nothing is asked for.
const TERMINAL_ROWS: usize = 50;

/// Runs the command.
pub async fn run(args: ExecutionsArgs, out: Output) -> Result<Exit, Failure> {
    let source = Source::open(args.command.source()).await?;
    let ended = match &args.command {
        ExecutionsCommand::List(args) => list(args, &source, &out).await,
        ExecutionsCommand::Show(args) => show(args, &source, &out).await,
        ExecutionsCommand::Why(args) => why(args, &source, &out).await,
        ExecutionsCommand::Events(args) => events(args, &source, &out).await,
        ExecutionsCommand::Result(args) => result(args, &source, &out).await,
        ExecutionsCommand::Tail(args) => following::tail(args, &source, &out).await,
        ExecutionsCommand::Wait(args) => following::wait(args, &source, &out).await,
        ExecutionsCommand::Export(args) => following::export(args, &source, &out).await,
        ExecutionsCommand::Cancel(args) => {
            let order = Order { action: Action::Cancel, reason: &args.reason, which: &args.which };
            orders::run(&order, &source, &out).await
        }
        ExecutionsCommand::Retry(args) => {
            let order = Order { action: Action::Retry, reason: &args.reason, which: &args.which };
            orders::run(&order, &source, &out).await
        }
        ExecutionsCommand::Resolve(args) => match orders::resolution(args) {
            Ok(action) => {
                let order = Order { action, reason: &args.reason, which: &args.which };
                orders::run(&order, &source, &out).await
            }
            Err(failure) => Err(failure),
        },
    };
    source.close().await;
    ended
}

#[derive(Deserialize)]
struct Row {
    id: String,
    state: String,
    upstream: String,
    tool: String,
    attempt: u32,
    created_at: String,
}

async fn list(args: &ListArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let mut wanted = Wanted::of(args);
    if args.source.json {
        for row in source.list(&wanted).await? {
            out.line(&row)?;
        }
        return Ok(Exit::Ok);
    }
    if out.terminal {
        wanted.limit = wanted.limit.or(Some(TERMINAL_ROWS));
    }
    let rows = source.list(&wanted).await?;
    let cells = |row: &String| {
        let row: Row = serde_json::from_str(row).map_err(|_| unreadable())?;
        let attempt = row.attempt.to_string();
        Ok(vec![row.id, row.state, attempt, row.created_at, format!("{}/{}", row.upstream, row.tool)])
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect::<Result<_, Failure>>()?;
    out.table_of_states(&["ID", "STATE", "ATTEMPT", "CREATED", "TOOL"], &cells, 1)?;
    if out.terminal && cells.len() >= TERMINAL_ROWS && args.limit.is_none() {
        eprintln!("the last {TERMINAL_ROWS}; --limit N or --json shows more");
    }
    Ok(Exit::Ok)
}

async fn show(args: &OneArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let row = source.show(source.find(&args.id).await?).await?;
    if args.source.json {
        out.line(&row)?;
        return Ok(Exit::Ok);
    }
    let members: Map<String, Value> = serde_json::from_str(&row).map_err(|_| unreadable())?;
    let width = members.keys().map(String::len).max().unwrap_or_default();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        out.line(&format!("{name:width$}  {}", printable(&value)))?;
    }
    Ok(Exit::Ok)
}

#[derive(Deserialize)]
struct Reasons {
    asked: String,
    ran: String,
    lost: String,
    decided: String,
    next: String,
}

async fn why(args: &OneArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let reasons = source.why(source.find(&args.id).await?).await?;
    if args.source.json {
        out.line(&reasons)?;
        return Ok(Exit::Ok);
    }
    let reasons: Reasons = serde_json::from_str(&reasons).map_err(|_| unreadable())?;
    for sentence in [reasons.asked, reasons.ran, reasons.lost, reasons.decided, reasons.next] {
        out.line(&printable(&sentence))?;
    }
    Ok(Exit::Ok)
}

async fn events(args: &OneArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let events = source.events(source.find(&args.id).await?).await?;
    if args.source.json {
        for event in events {
            out.line(&event)?;
        }
        return Ok(Exit::Ok);
    }
    let cells = |event: &String| {
        let mut members: Map<String, Value> = serde_json::from_str(event).map_err(|_| unreadable())?;
        let mut take = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
            None => String::new(),
        };
        let (seq, at, kind) = (take("seq"), take("at"), take("type"));
        let rest: Vec<String> = members.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Ok(vec![seq, at, kind, rest.join(" ")])
    };
    let cells: Vec<Vec<String>> = events.iter().map(cells).collect::<Result<_, Failure>>()?;
    out.table(&["SEQ", "AT", "TYPE", "DETAILS"], &cells)?;
    Ok(Exit::Ok)
}

#[derive(Deserialize)]
struct Ending {
    id: String,
    state: String,
    is_error: Option<bool>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    rpc_error: Option<Box<RawValue>>,
    error: Option<Why>,
    #[serde(default)]
    deleted: bool,
}

#[derive(Deserialize)]
struct Why {
    code: String,
    message: String,
}

async fn result(args: &OneArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let text = source.result(source.find(&args.id).await?).await?;
    let ending: Ending = serde_json::from_str(&text).map_err(|_| unreadable())?;
    if args.source.json {
        out.line(&text)?;
    } else if let Some(result) = ending.result.as_ref().or(ending.rpc_error.as_ref()) {
        out.line(result.get())?;
    }
    ending.exit(args.source.json)
}

impl Ending {
    /// `told`: the whole story is on stdout already.
    fn exit(&self, told: bool) -> Result<Exit, Failure> {
        let id = &self.id;
        let why = self.error.as_ref().map(|why| format!(" ({}: {})", why.code, why.message)).unwrap_or_default();
        let (exit, error, next) = match self.state.as_str() {
            "completed" if self.deleted => {
                let error = format!("the result of execution {id} was deleted by retention");
                (Exit::NotFound, error, "retention.payloads sets how long results are kept")
            }
            "completed" if self.is_error == Some(true) => return Ok(Exit::ToolError),
            "completed" => return Ok(Exit::Ok),
            "failed" if self.rpc_error.is_some() => return Ok(Exit::ToolError),
            "failed" => (Exit::ToolError, format!("execution {id} failed{why}"), ""),
            "cancelled" => (Exit::Failure, format!("execution {id} was cancelled"), ""),
            "unknown" => (
                Exit::Unknown,
                format!("the outcome of execution {id} is unknown{why}; it was started and is not run again by itself"),
                "check at the tool whether it took effect",
            ),
            state => (Exit::Running, format!("execution {id} is {state}{why}"), "ask again later"),
        };
        if told {
            return Ok(exit);
        }
        let failure = Failure::new(exit, error);
        Err(if next.is_empty() { failure } else { failure.next(next) })
    }
}

fn unreadable() -> Failure {
    Failure::new(Exit::Failure, "an execution came in a form that this program does not know")
        .next("server and command line may be of different versions")
}

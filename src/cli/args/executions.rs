//! The flags of `executions`.

use clap::{Args, Subcommand};

use super::{SourceFlags, duration};
use crate::config::units::Millis;
use crate::engine::changes::Cursor;
use crate::engine::clock::Clock;
use crate::model::execution::State;
use crate::store::ListQuery;

/// `executions`.
#[derive(Debug, Args)]
pub struct ExecutionsArgs {
    /// What to look at.
    #[command(subcommand)]
    pub command: ExecutionsCommand,
}

/// The commands of `executions`.
#[derive(Debug, Subcommand)]
pub enum ExecutionsCommand {
    /// List executions, newest first; on a terminal the last 50.
    #[command(after_help = "Example:\n  durable-mcp executions list --state failed,unknown --json | jq -r .id")]
    List(ListArgs),
    /// Show one execution.
    #[command(after_help = "Example:\n  durable-mcp executions show 0198c3f2")]
    Show(OneArgs),
    /// Tell in plain words why an execution stands where it stands, and what can be done.
    #[command(after_help = "Example:\n  durable-mcp executions why 0198c3f2")]
    Why(OneArgs),
    /// Show what happened to an execution, in order.
    #[command(after_help = "Example:\n  durable-mcp executions events 0198c3f2 --json")]
    Events(OneArgs),
    /// Print the stored result of an execution.
    #[command(after_help = "Example:\n  durable-mcp executions result 0198c3f2 > result.json")]
    Result(OneArgs),
    /// Show what happens to all executions; with --follow as it happens, until Ctrl-C.
    #[command(after_help = "Examples:\n  durable-mcp executions tail --upstream github\n  \
                            durable-mcp executions tail --from 1h --json | jq -r .type")]
    Tail(TailArgs),
    /// Wait until an execution has ended; exit code 0 completed, 5 failed, 8 still running, 9 unknown.
    #[command(after_help = "Example:\n  durable-mcp executions wait 0198c3f2 --timeout 5m")]
    Wait(WaitArgs),
    /// Cancel executions, by id or by filter; final at once.
    #[command(
        after_help = "Example:\n  durable-mcp executions cancel --tool create_issue --yes --reason 'wrong input'"
    )]
    Cancel(CancelArgs),
    /// Run executions once more: unknown ones in place, failed and cancelled ones as new executions with the same keys.
    #[command(
        after_help = "Example:\n  durable-mcp executions retry --error-code rpc_error --yes --reason 'the server is back'"
    )]
    Retry(RetryArgs),
    /// Say what became of unknown executions.
    #[command(after_help = "Example:\n  durable-mcp executions resolve --tool create_issue --completed --yes \
                            --reason 'I looked'")]
    Resolve(ResolveArgs),
    /// Write executions with their events and payloads as JSON Lines.
    #[command(after_help = "Example:\n  durable-mcp executions export --since 7d > executions.jsonl")]
    Export(ExportArgs),
}

impl ExecutionsCommand {
    /// Where the command looks.
    pub fn source(&self) -> &SourceFlags {
        use ExecutionsCommand::{Cancel, Events, Export, List, Resolve, Result, Retry, Show, Tail, Wait, Why};
        match self {
            List(args) => &args.source,
            Show(args) | Why(args) | Events(args) | Result(args) => &args.source,
            Tail(args) => &args.source,
            Wait(args) => &args.source,
            Cancel(args) => &args.which.source,
            Retry(args) => &args.which.source,
            Resolve(args) => &args.which.source,
            Export(args) => &args.source,
        }
    }
}

/// Which executions; all conditions hold at once.
#[derive(Clone, Debug, Default, Args)]
pub struct FilterFlags {
    /// Only these states.
    #[arg(long, value_delimiter = ',', value_parser = state)]
    pub state: Vec<State>,
    /// Only this tool, by its own name at its server.
    #[arg(long)]
    pub tool: Option<String>,
    /// Only tools of this server.
    #[arg(long)]
    pub upstream: Option<String>,
    /// Only this namespace.
    #[arg(long)]
    pub namespace: Option<String>,
    /// Only this principal.
    #[arg(long)]
    pub principal: Option<String>,
    /// Only this idempotency key.
    #[arg(long)]
    pub key: Option<String>,
    /// Only those whose last error has this code.
    #[arg(long, value_name = "CODE")]
    pub error_code: Option<String>,
    /// Only those with more attempts than this.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub attempts_over: Option<u32>,
    /// Only those submitted then or later: a time, or how long ago (90m, 7d).
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Moment>,
    /// Only those submitted before then: a time, or how long ago.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Moment>,
    /// Only those that completed although an attempt was lost.
    #[arg(long)]
    pub recovered: bool,
}

impl FilterFlags {
    /// The same for the store; how long ago counts from now.
    pub fn query(&self) -> ListQuery {
        let now_ms = Clock::System.now_ms();
        ListQuery {
            states: self.state.clone(),
            tool: self.tool.clone(),
            upstream: self.upstream.clone(),
            namespace: self.namespace.clone(),
            principal: self.principal.clone(),
            key: self.key.clone(),
            error_code: self.error_code.clone(),
            attempts_over: self.attempts_over,
            since_ms: self.since.map(|moment| moment.at_ms(now_ms)),
            until_ms: self.until.map(|moment| moment.at_ms(now_ms)),
            recovered: self.recovered,
            ..ListQuery::default()
        }
    }

    /// True when nothing is asked for.
    pub fn is_empty(&self) -> bool {
        let texts = [&self.tool, &self.upstream, &self.namespace, &self.principal, &self.key, &self.error_code];
        self.state.is_empty()
            && texts.iter().all(|text| text.is_none())
            && self.attempts_over.is_none()
            && self.since.is_none()
            && self.until.is_none()
            && !self.recovered
    }
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Milliseconds since the epoch.
    At(i64),
    /// So long ago.
    Ago(Millis),
}

impl Moment {
    /// Milliseconds since the epoch.
    pub fn at_ms(self, now_ms: i64) -> i64 {
        match self {
            Moment::At(at_ms) => at_ms,
            Moment::Ago(span) => now_ms.saturating_sub(span.0),
        }
    }
}

/// `executions list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    pub filter: FilterFlags,
    /// At most so many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    #[command(flatten)]
    pub source: SourceFlags,
}

/// A command about one execution.
#[derive(Debug, Args)]
pub struct OneArgs {
    /// The execution's id, or a start of it that no other has.
    pub id: String,
    #[command(flatten)]
    pub source: SourceFlags,
}

/// `executions tail`.
#[derive(Debug, Args)]
pub struct TailArgs {
    /// Go on until Ctrl-C; comes back by itself after a lost connection and misses nothing.
    #[arg(long, short)]
    pub follow: bool,
    /// Begin then: a time, or how long ago.
    #[arg(long, value_name = "TIME", value_parser = moment, default_value = "10m")]
    pub from: Moment,
    /// Begin after this event: the `cursor` that --json shows.
    #[arg(long, value_name = "CURSOR", value_parser = cursor)]
    pub after: Option<Cursor>,
    #[command(flatten)]
    pub filter: FilterFlags,
    #[command(flatten)]
    pub source: SourceFlags,
}

/// `executions wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// The execution's id, or a start of it that no other has.
    pub id: String,
    /// At most so long (30s, 5m); without it until the end.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Millis>,
    #[command(flatten)]
    pub source: SourceFlags,
}

/// Which executions an order concerns.
#[derive(Debug, Args)]
pub struct WhichArgs {
    /// Ids, or starts of them that no others have; without any the filters say which.
    pub ids: Vec<String>,
    #[command(flatten)]
    pub filter: FilterFlags,
    /// Do not ask, and do it for everything that the filters find.
    #[arg(long, short)]
    pub yes: bool,
    #[command(flatten)]
    pub source: SourceFlags,
}

/// `executions cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    #[command(flatten)]
    pub which: WhichArgs,
    /// Why; it is kept in the log.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub reason: String,
}

/// `executions retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    #[command(flatten)]
    pub which: WhichArgs,
    /// Why; it is kept in the log.
    #[arg(long, value_parser = reason)]
    pub reason: String,
}

/// `executions resolve`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("outcome").required(true).args(["completed", "failed"])))]
pub struct ResolveArgs {
    #[command(flatten)]
    pub which: WhichArgs,
    /// They took effect.
    #[arg(long)]
    pub completed: bool,
    /// They did not.
    #[arg(long)]
    pub failed: bool,
    /// What callers get as the tool's result: a JSON object with `content`, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON", conflicts_with = "failed")]
    pub result: Option<String>,
    /// Why; it is kept in the log.
    #[arg(long, value_parser = reason)]
    pub reason: String,
}

/// `executions export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub filter: FilterFlags,
    #[command(flatten)]
    pub source: SourceFlags,
}

fn state(text: &str) -> Result<State, String> {
    let names: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    State::parse(text).ok_or_else(|| format!("the states are {}", names.join(", ")))
}

fn moment(text: &str) -> Result<Moment, String> {
    if let Some(span) = Millis::parse(text) {
        return Ok(Moment::Ago(span));
    }
    let time: Result<jiff::Timestamp, _> = text.parse();
    time.map(|time| Moment::At(time.as_millisecond()))
        .map_err(|_| "write a time such as 2026-11-29T08:00:00Z, or how long ago: 90s, 15m, 7d".to_owned())
}

fn cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|()| "give the `cursor` of an event".to_owned())
}

fn reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("say why".to_owned()),
        text => Ok(text.to_owned()),
    }
}

//! The flags of `executions`.

use clap::{Args, Subcommand};

use super::SourceFlags;
use crate::model::execution::State;

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
    /// Show what happened to an execution, in order.
    #[command(after_help = "Example:\n  durable-mcp executions events 0198c3f2 --json")]
    Events(OneArgs),
    /// Print the stored result of an execution.
    #[command(after_help = "Example:\n  durable-mcp executions result 0198c3f2 > result.json")]
    Result(OneArgs),
}

/// `executions list`.
#[derive(Debug, Args)]
pub struct ListArgs {
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

fn state(text: &str) -> Result<State, String> {
    let names: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    State::parse(text).ok_or_else(|| format!("the states are {}", names.join(", ")))
}

//! The flags of `tools`.

use clap::{Args, Subcommand};

use super::SourceFlags;

/// `tools`.
#[derive(Debug, Args)]
pub struct ToolsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ToolsCommand,
}

/// The commands of `tools`.
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List tools with what may happen to a lost call of theirs; without --url those of the configuration as last known.
    #[command(after_help = "Example:\n  durable-mcp tools list --json | jq -r .name")]
    List(ToolListArgs),
    /// Show one tool: every setting in force, and who said so.
    #[command(after_help = "Example:\n  durable-mcp tools show demo_echo")]
    Show(ToolShowArgs),
}

/// `tools list`.
#[derive(Debug, Args)]
pub struct ToolListArgs {
    /// Only tools of this server.
    #[arg(long)]
    pub upstream: Option<String>,
    #[command(flatten)]
    pub source: SourceFlags,
}

/// `tools show`.
#[derive(Debug, Args)]
pub struct ToolShowArgs {
    /// The name clients call it by.
    pub name: String,
    #[command(flatten)]
    pub source: SourceFlags,
}

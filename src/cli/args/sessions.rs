//! The flags of `sessions`.

use clap::{Args, Subcommand};

use super::SourceFlags;

/// `sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SessionsCommand,
}

/// The commands of `sessions`.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List open sessions; they outlive a restart of the server.
    #[command(after_help = "Example:\n  durable-mcp sessions list --json")]
    List(SessionsListArgs),
    /// End a session for every process; its client has to initialize again. Calls that run go on.
    #[command(after_help = "Example:\n  durable-mcp sessions close 3f9a27")]
    Close(SessionsCloseArgs),
}

/// `sessions list`.
#[derive(Debug, Args)]
pub struct SessionsListArgs {
    /// Closed ones too; they are shown for a day.
    #[arg(long)]
    pub closed: bool,
    #[command(flatten)]
    pub source: SourceFlags,
}

/// `sessions close`.
#[derive(Debug, Args)]
pub struct SessionsCloseArgs {
    /// The session's id as listed (not the one its client sends), or a start of it that no other has.
    pub id: String,
    #[command(flatten)]
    pub source: SourceFlags,
}

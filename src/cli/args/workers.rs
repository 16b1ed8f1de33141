//! The flags of `workers`.

use clap::{Args, Subcommand};

use super::SourceFlags;

/// `workers`.
#[derive(Debug, Args)]
pub struct WorkersArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: WorkersCommand,
}

/// The commands of `workers`.
#[derive(Debug, Subcommand)]
pub enum WorkersCommand {
    /// List workers, inside processes and remote ones; one that is gone is shown for a day.
    #[command(after_help = "Example:\n  durable-mcp workers list --json")]
    List(WorkersListArgs),
    /// Ask a remote worker to finish what it has and to end.
    #[command(after_help = "Example:\n  durable-mcp workers drain 6f1c22")]
    Drain(WorkersDrainArgs),
}

/// `workers list`.
#[derive(Debug, Args)]
pub struct WorkersListArgs {
    #[command(flatten)]
    pub source: SourceFlags,
}

/// `workers drain`.
#[derive(Debug, Args)]
pub struct WorkersDrainArgs {
    /// The worker's id, or a start of it that no other has.
    pub id: String,
    #[command(flatten)]
    pub source: SourceFlags,
}

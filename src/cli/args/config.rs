//! The flags of `config`.

use clap::{Args, Subcommand};

use super::ConfigFlags;

/// `config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// The commands of `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration and report every mistake with its line.
    #[command(after_help = "Example:\n  durable-mcp config check --config durable-mcp.toml")]
    Check(ConfigFlags),
    /// Show every setting in force and where it comes from, without secrets.
    #[command(after_help = "Example:\n  durable-mcp config show --config durable-mcp.toml")]
    Show {
        #[command(flatten)]
        configuration: ConfigFlags,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the configuration.
    #[command(after_help = "Example:\n  durable-mcp config schema > durable-mcp.schema.json")]
    Schema,
}

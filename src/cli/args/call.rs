//! The flags of `call`.

use clap::Args;

use super::{ConfigFlags, ServerFlags, duration};
use crate::config::units::Millis;

/// `call`.
#[derive(Debug, Args)]
// Who writes the arguments after the tool's name is told by the usage where they go.
#[command(override_usage = "durable-mcp call [OPTIONS] [--args <JSON>] <TOOL>")]
pub struct CallArgs {
    /// The tool's name.
    pub tool: String,
    /// Arguments: a JSON object, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON", default_value = "{}", allow_hyphen_values = true)]
    pub args: String,
    /// Idempotency key: the same key never runs the call twice.
    #[arg(long)]
    pub key: Option<String>,
    /// How long to wait for the answer (30s, 5m); 0 prints the execution id at once.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Millis>,
    /// Print the whole result as one line of JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerFlags,
    #[command(flatten)]
    pub configuration: ConfigFlags,
}

//! The flags of `init`.

use std::path::PathBuf;

use clap::Args;

/// `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Take the servers of a client (claude-desktop, claude-code, cursor, vscode) or of a file like theirs.
    #[arg(long, value_name = "CLIENT|FILE")]
    pub from: Option<String>,
    /// The file to write; - for stdout.
    #[arg(long, value_name = "FILE", default_value = "durable-mcp.toml")]
    pub out: PathBuf,
    /// Write over a file that is there.
    #[arg(long)]
    pub force: bool,
    /// Write secrets into the file as they are, instead of naming variables for them.
    #[arg(long)]
    pub keep_secrets: bool,
}

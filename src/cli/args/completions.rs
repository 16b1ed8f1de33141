//! The flags of `completions` and `man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// A folder for one page per command; without it the page of the program goes to stdout.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

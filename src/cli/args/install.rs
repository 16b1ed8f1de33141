//! The flags of `install` and `uninstall`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::install::client::{Client, Scope};

/// Which entries of which client.
#[derive(Debug, Args)]
pub struct InstallFlags {
    /// The client.
    pub client: Client,
    /// Only this server; repeatable.
    #[arg(long = "server", value_name = "NAME")]
    pub servers: Vec<String>,
    /// Every server of the client.
    #[arg(long, conflicts_with = "servers")]
    pub all: bool,
    /// The user's own configuration, or that of the project of the working folder.
    #[arg(long, value_enum)]
    pub scope: Option<Scope>,
    /// The configuration, where it is not in its usual place.
    #[arg(long, value_name = "FILE", conflicts_with = "scope")]
    pub config_file: Option<PathBuf>,
    /// Show what would change and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// What is done to each server, as JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

/// `install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    #[command(flatten)]
    pub flags: InstallFlags,
    /// Add a server of its own, `durable-mcp`, that leads to a running `serve`.
    #[arg(long, conflicts_with_all = ["servers", "all"])]
    pub connect: bool,
    /// Address of that server.
    #[arg(long, value_name = "URL", requires = "connect")]
    pub url: Option<String>,
}

/// `uninstall`.
#[derive(Debug, Args)]
pub struct UninstallArgs {
    #[command(flatten)]
    pub flags: InstallFlags,
}

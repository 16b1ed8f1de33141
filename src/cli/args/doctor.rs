//! The flags of `doctor`.

use clap::Args;

use super::ConfigFlags;
use crate::cli::install::client::Client;

/// `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub configuration: ConfigFlags,
    /// Look at all of this client's servers too, with the environment that it gives them.
    #[arg(long, value_name = "NAME")]
    pub client: Option<Client>,
    /// Ask the running server of this configuration whether it takes calls now, and look at nothing else.
    #[arg(long, conflicts_with = "client")]
    pub ready: bool,
    /// Show what was checked and found right, too.
    #[arg(long)]
    pub verbose: bool,
    /// Every check as JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

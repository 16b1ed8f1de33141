//! The flags of `doctor`.

use clap::Args;

use super::ConfigFlags;

/// `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub configuration: ConfigFlags,
    /// Look at this client's configuration too, and with the environment that it gives its servers.
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
    /// Show what was checked and found right, too.
    #[arg(long)]
    pub verbose: bool,
    /// Every check as JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

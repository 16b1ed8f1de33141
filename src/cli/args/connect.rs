//! The flags of `connect`.

use clap::Args;

use super::{ServerFlags, duration};
use crate::config::units::Millis;

/// `connect`.
#[derive(Debug, Args)]
pub struct ConnectArgs {
    #[command(flatten)]
    pub server: ServerFlags,
    /// How long a server that is away is waited for before a request is answered with an error.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub patience: Millis,
    /// Give calls no keys: the server's own rules for calls without one apply, and a call whose connection broke is not
    /// sent again.
    #[arg(long)]
    pub no_keys: bool,
}

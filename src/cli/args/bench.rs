//! The flags of `bench`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::duration;
use crate::config::units::Millis;
use crate::model::revision;

/// `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// Address of a running server; without it one of its own is started, in a temporary folder.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// The tool; without it demo_echo, or echo of a CMD.
    #[arg(long)]
    pub tool: Option<String>,
    /// Its arguments, a JSON object; {{key}} becomes the key of each call.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// A text that has to stand in each answer; {{key}} becomes the key of its call.
    #[arg(long, value_name = "TEXT")]
    pub expect: Option<String>,
    /// Clients; each waits for its answer before it calls again.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub concurrency: u32,
    /// How long it is measured.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub duration: Millis,
    /// How long it runs before.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s")]
    pub warmup: Millis,
    /// How often each call is repeated with its key.
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub duplicates: u32,
    /// Revision 2026-07-28 (the default over HTTP) or a session of 2025-11-25 (the default over stdio).
    #[arg(long)]
    pub era: Option<Era>,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
    /// A stdio server: measured directly and behind `wrap`, side by side.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// An era of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Era {
    Legacy,
    Modern,
}

impl From<Era> for revision::Era {
    fn from(era: Era) -> revision::Era {
        match era {
            Era::Legacy => revision::Era::Legacy,
            Era::Modern => revision::Era::Modern,
        }
    }
}

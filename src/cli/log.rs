//! The log of a long-running program: to stderr, as configured. Short commands have none: their failures are their log.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::failure::Failure;
use crate::config::settings::{Log, LogFormat};

/// Starts writing the log. Errors: the filter can not be read.
pub fn write(log: &Log) -> Result<(), Failure> {
    // What a library tells about its own steps is news for its developers.
    let filter = EnvFilter::try_new(format!("refinery_core=warn,{}", &*log.level)).map_err(|_| {
        Failure::usage("log.level is no level or filter").next("write error, warn, info, debug, trace or a filter")
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // A second start in one process keeps the first log.
    let _ = match log.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    Ok(())
}

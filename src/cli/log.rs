//! The log of a long-running program: to stderr, as configured, and what of it goes elsewhere. Short commands have none:
//! their failures are their log.

use std::io::IsTerminal;

use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use super::failure::Failure;
use crate::config::settings::{Config, LogFormat};
use crate::serve::telemetry::sentry;
use crate::telemetry::faults;

/// Starts writing the log, and following the faults in it where they are to be told. Errors: the filter or the DSN can not
/// be read.
pub fn write(config: &Config) -> Result<sentry::Delivery, Failure> {
    let log = &config.log;
    // What a library tells about its own steps is news for its developers.
    let filter = EnvFilter::try_new(format!("refinery_core=warn,{}", &*log.level)).map_err(|_| {
        Failure::usage("log.level is no level or filter").next("write error, warn, info, debug, trace or a filter")
    })?;
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = vec![match log.format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().with_filter(filter).boxed(),
    }];
    let (follower, delivery) = sentry::start(config).map_err(Failure::from)?;
    if let Some(follower) = follower {
        layers.push(follower.with_filter(filter_fn(sentry::follows)).boxed());
    }
    // A second start in one process keeps the first log.
    let _ = Registry::default().with(layers).try_init();
    faults::watch_panics();
    Ok(delivery)
}

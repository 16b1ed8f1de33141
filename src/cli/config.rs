//! `config check|show|schema`. Starts and opens nothing.

use super::args::{ConfigArgs, ConfigCommand};
use super::failure::{Exit, Failure};
use super::output::Output;

/// Runs the command.
pub fn run(args: ConfigArgs, out: Output) -> Result<Exit, Failure> {
    match args.command {
        ConfigCommand::Check(configuration) => {
            let loaded = configuration.load(|_| {})?;
            let config = &loaded.config;
            let what =
                loaded.file.as_ref().map_or("the default configuration".into(), |file| file.display().to_string());
            eprintln!("{what} is correct: {} servers, {} tools of its own", config.servers.len(), config.tools.len());
        }
        ConfigCommand::Show { configuration, json } => {
            out.write(&crate::config::show(&configuration.load(|_| {})?, json))?;
        }
        ConfigCommand::Schema => {
            let schema = serde_json::to_string_pretty(&crate::config::schema())
                .map_err(|error| Failure::new(Exit::Failure, error.to_string()))?;
            out.line(&schema)?;
        }
    }
    Ok(Exit::Ok)
}

//! Floor 4: the command line. Reads flags, asks a running server or the stores, prints data on stdout and everything else
//! on stderr. Serves nothing itself: `serve` and `wrap` are the wiring's.

pub mod address;
pub mod args;
pub mod bench;
pub mod call;
pub mod client;
pub mod completions;
pub mod config;
pub mod connect;
pub mod db;
pub mod demo;
pub mod doctor;
pub mod executions;
pub mod failure;
pub mod init;
pub mod install;
pub mod log;
pub mod mcp_client;
pub mod output;
pub mod schemas;
pub mod sessions;
pub mod source;
pub mod stage;
pub mod stores;
pub mod token;
pub mod tools;
pub mod workers;
pub mod wrap;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::Parser;

use crate::serve;
use args::{Cli, Command};
use failure::{Exit, Failure};
use output::Output;

/// The whole process: reads the command line, runs it, and says how it ended.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are data, and no failure.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Usage as u8 } else { Exit::Ok as u8 });
        }
    };
    let runtime = match cli.serves_many() {
        true => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
        false => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(run(cli));
            // A read of stdin or of a file that hangs must not hold the process.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(Failure::new(Exit::Failure, format!("the runtime can not start: {error}"))),
    };
    match ended {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.exit)
        }
    }
}

async fn run(cli: Cli) -> Result<Exit, Failure> {
    // The programs have their own way to stop.
    let long = cli.is_long();
    let out = Output::of_process();
    let command = async {
        match cli.command {
            Command::Serve(args) => {
                let options = args.options()?;
                let faults = log::write(&options.loaded.config)?;
                let ended = serve::serve(options).await;
                faults.finish().await;
                ended?;
                Ok(Exit::Ok)
            }
            Command::Wrap(args) if args.shadow => wrap::watch(args).await,
            Command::Wrap(args) => {
                let options = wrap::options(args)?;
                let faults = log::write(&options.loaded.config)?;
                let ended = serve::wrap(options).await;
                faults.finish().await;
                ended?;
                Ok(Exit::Ok)
            }
            Command::Connect(args) => connect::run(args).await,
            Command::Call(args) => call::run(args, out).await,
            Command::Executions(args) => executions::run(args, out).await,
            Command::Workers(args) => workers::run(args, out).await,
            Command::Sessions(args) => sessions::run(args, out).await,
            Command::Init(args) => init::run(args, out),
            Command::Install(args) => install::install(args, out),
            Command::Uninstall(args) => install::uninstall(args, out),
            Command::Tools(args) => tools::run(args, out).await,
            Command::Token(args) => token::run(args, out).await,
            Command::Config(args) => config::run(args, out),
            Command::Db(args) => db::run(args, out).await,
            Command::Doctor(args) => doctor::run(args, out).await,
            Command::Completions(args) => completions::print(&args, &out),
            Command::Man(args) => completions::man(&args, &out),
            Command::Demo(args) => demo::run(args, out).await,
            Command::Bench(args) => bench::run(args, out).await,
        }
    };
    if long {
        return command.await;
    }
    tokio::select! {
        ended = command => ended,
        // What was submitted goes on; leaving ends only the waiting.
        Ok(()) = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
    }
}

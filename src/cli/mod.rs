//! Floor 4: the command line. Reads flags, asks a running server or the stores, prints data on stdout and everything else
//! on stderr. Serves nothing itself: `serve` and `wrap` are the wiring's.

pub mod address;
pub mod args;
pub mod call;
pub mod client;
pub mod config;
pub mod executions;
pub mod failure;
pub mod mcp_client;
pub mod output;
pub mod source;
pub mod stores;
pub mod token;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::pin::Pin;
use std::process::ExitCode;

use clap::Parser;

use crate::worker::upstream::guard;
use args::{Cli, Command, ServeOptions, WrapOptions};
use failure::{Exit, Failure};
use output::Output;

/// A program that runs until it is told to stop.
pub type Running = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// The programs that are wired elsewhere.
#[derive(Clone, Copy)]
pub struct Programs {
    /// `durable-mcp serve`.
    pub serve: fn(ServeOptions) -> Running,
    /// `durable-mcp wrap`.
    pub wrap: fn(WrapOptions) -> Running,
}

/// The whole process: reads the command line, runs it, and says how it ended.
pub fn main(programs: Programs) -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    // Before any thread starts, and without our own flags: what follows belongs to somebody else's command.
    if argv.get(1).is_some_and(|word| word == guard::SUBCOMMAND) {
        let code = guard::guard_main(argv.into_iter().skip(2).collect());
        return ExitCode::from(code.clamp(0, 255) as u8);
    }
    let cli = match Cli::try_parse_from(argv) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are data, and no failure.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Usage as u8 } else { Exit::Ok as u8 });
        }
    };
    let runtime = match cli.is_long() {
        true => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
        false => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(run(cli, programs));
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

async fn run(cli: Cli, programs: Programs) -> Result<Exit, Failure> {
    // The programs have their own way to stop.
    let long = cli.is_long();
    let out = Output::of_process();
    let command = async {
        match cli.command {
            Command::Serve(args) => (programs.serve)(args.options()?).await.map(|()| Exit::Ok),
            Command::Wrap(args) => (programs.wrap)(args.options()?).await.map(|()| Exit::Ok),
            Command::Call(args) => call::run(args, out).await,
            Command::Executions(args) => executions::run(args, out).await,
            Command::Token(args) => token::run(args, out).await,
            Command::Config(args) => config::run(args, out),
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

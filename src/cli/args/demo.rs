//! The flags of `demo`.

use clap::{Args, Subcommand};

use super::duration;
use crate::config::units::Millis;

/// `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Which scene.
    #[command(subcommand)]
    pub command: DemoCommand,
}

/// The scenes.
#[derive(Debug, Subcommand)]
pub enum DemoCommand {
    /// A worker is stopped past its lease; what it brings later is judged by its fencing token.
    #[command(after_help = "Example:\n  durable-mcp demo fencing")]
    Fencing(SceneArgs),
    /// Clients repeat their calls in every way there is; each runs once.
    #[command(after_help = "Example:\n  durable-mcp demo duplicate")]
    Duplicate(SceneArgs),
    /// A flaky tool is retried with back-off while the server is killed in between.
    #[command(after_help = "Example:\n  durable-mcp demo retry")]
    Retry(SceneArgs),
    /// Workers are killed under load; nothing is lost, nothing runs twice that may not.
    #[command(after_help = "Example:\n  durable-mcp demo crash")]
    Crash(SceneArgs),
    /// A server, two workers, a scheduler, a load and a killer, until you stop it.
    #[command(after_help = "Example:\n  durable-mcp demo stack --chaos 5s --duration 3s")]
    Stack(StackArgs),
}

/// A scene.
#[derive(Clone, Debug, Args)]
pub struct SceneArgs {
    /// One JSON object at the end; what happens meanwhile is told on stderr.
    #[arg(long)]
    pub json: bool,
    /// Keep the folder with store, ledgers and logs, and say where it is.
    #[arg(long)]
    pub keep: bool,
}

/// `demo stack`.
#[derive(Clone, Debug, Args)]
pub struct StackArgs {
    #[command(flatten)]
    pub scene: SceneArgs,
    /// How often one of the processes is killed; 0 kills none.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub chaos: Millis,
    /// End by itself after this time.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Millis>,
    /// Address and port of the server.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    pub listen: std::net::SocketAddr,
}

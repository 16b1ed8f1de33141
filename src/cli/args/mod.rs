//! The command line as types, with its help: one file per family of commands. Reads configuration for the commands that need it; does nothing else.

mod bench;
mod call;
mod completions;
mod config;
mod connect;
mod db;
mod demo;
mod doctor;
mod executions;
mod init;
mod install;
mod serve;
mod sessions;
mod token;
mod tools;
mod workers;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use bench::BenchArgs;
pub use call::CallArgs;
pub use completions::{CompletionsArgs, ManArgs};
pub use config::{ConfigArgs, ConfigCommand};
pub use connect::ConnectArgs;
pub use db::{
    BackupArgs, ConformanceArgs, DbArgs, DbCommand, DbReadArgs, IsolationFlag, MigrateArgs, PruneArgs, RestoreArgs,
    StoreFlags,
};
pub use demo::{DemoArgs, DemoCommand, SceneArgs, StackArgs};
pub use doctor::DoctorArgs;
pub use executions::{
    ExecutionsArgs, ExecutionsCommand, ExportArgs, FilterFlags, ListArgs, OneArgs, ResolveArgs, TailArgs, WaitArgs,
    WhichArgs,
};
pub use init::InitArgs;
pub use install::{InstallArgs, InstallFlags, UninstallArgs};
pub use serve::{ServeArgs, WrapArgs};
pub use sessions::{SessionsArgs, SessionsCloseArgs, SessionsCommand, SessionsListArgs};
pub use token::{CreateArgs, RevokeArgs, TokenArgs, TokenCommand, TokenStoreArgs};
pub use tools::{ToolListArgs, ToolShowArgs, ToolsArgs, ToolsCommand};
pub use workers::{WorkersArgs, WorkersCommand, WorkersDrainArgs};

use super::failure::{Exit, Failure};
use crate::config::units::Millis;
use crate::config::{Loaded, Overrides};

/// A durable execution layer in front of unmodified MCP servers.
#[derive(Debug, Parser)]
#[command(name = "durable-mcp", version, about, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// True for a program that runs until it is told to stop.
    pub fn is_long(&self) -> bool {
        use Command::{Bench, Connect, Demo, Serve, Wrap};
        matches!(self.command, Serve(_) | Wrap(_) | Connect(_) | Demo(_) | Bench(_))
    }

    /// True for a program whose work is worth more than one thread. A single client's is not: its messages would be
    /// handed from thread to thread.
    pub fn serves_many(&self) -> bool {
        use Command::{Bench, Demo, Serve};
        matches!(self.command, Serve(_) | Demo(_) | Bench(_))
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve MCP over HTTP: durable calls to the configured servers and commands.
    #[command(after_help = "Example:\n  durable-mcp serve --config examples/quickstart.toml")]
    Serve(ServeArgs),
    /// A durable stdio server in front of another MCP server; put it before the command in your client's configuration.
    #[command(after_help = "Examples:\n  durable-mcp wrap -- npx -y @modelcontextprotocol/server-github\n  \
                            durable-mcp wrap --url https://crm.example/mcp --header 'Authorization: Bearer …'\n  \
                            durable-mcp wrap --shadow -- npx -y @modelcontextprotocol/server-github")]
    Wrap(WrapArgs),
    /// A stdio client's way into a running `serve`; put it as the command into your client's configuration.
    #[command(after_help = "Example:\n  durable-mcp connect --url http://127.0.0.1:7400 < /dev/null")]
    Connect(ConnectArgs),
    /// Call a tool of a running server and wait for its answer.
    #[command(after_help = "Examples:\n  durable-mcp call demo_echo --args '{\"message\":\"hello\"}'\n  \
                            durable-mcp call github__create_issue --args @issue.json --key release-1.4 --wait 5m")]
    Call(CallArgs),
    /// Look at executions: of a running server with --url, else in the stores of this user.
    #[command(after_help = "Example:\n  durable-mcp executions list --state unknown")]
    Executions(ExecutionsArgs),
    /// Who runs tools: list workers, or ask a remote one to finish and to end.
    #[command(after_help = "Example:\n  durable-mcp workers list")]
    Workers(WorkersArgs),
    /// MCP sessions of clients that open one: list them, or end one.
    #[command(after_help = "Example:\n  durable-mcp sessions list")]
    Sessions(SessionsArgs),
    /// Write a configuration to begin with: with every setting, or from a client's servers.
    #[command(after_help = "Examples:\n  durable-mcp init --out -\n  durable-mcp init --from cursor --out shared.toml")]
    Init(InitArgs),
    /// Put a client's servers behind durable-mcp: each entry is rewritten to `wrap`, the rest of the file stays.
    #[command(after_help = "Example:\n  durable-mcp install cursor --all --dry-run")]
    Install(InstallArgs),
    /// Take back what `install` did, to the byte.
    #[command(after_help = "Example:\n  durable-mcp uninstall cursor --dry-run")]
    Uninstall(UninstallArgs),
    /// Look at the tools that are offered: what happens to a lost call, how long callers wait, and who said so.
    #[command(after_help = "Example:\n  durable-mcp tools list")]
    Tools(ToolsArgs),
    /// API keys for auth mode `token`.
    #[command(after_help = "Example:\n  durable-mcp token create --principal ci --scope call --scope read")]
    Token(TokenArgs),
    /// Check, show or describe the configuration.
    #[command(after_help = "Example:\n  durable-mcp config check --config durable-mcp.toml")]
    Config(ConfigArgs),
    /// Look after the store: migrate, status, backup, restore, prune, verify, conformance.
    #[command(after_help = "Example:\n  durable-mcp db status")]
    Db(DbArgs),
    /// Find what is wrong with configuration, servers, port, store and clock; silent when nothing is.
    #[command(after_help = "Example:\n  durable-mcp doctor --verbose")]
    Doctor(DoctorArgs),
    /// Print the completions of a shell.
    #[command(after_help = "Example:\n  durable-mcp completions bash > durable-mcp.bash")]
    Completions(CompletionsArgs),
    /// Write the manual pages, or print the one of the program.
    #[command(after_help = "Example:\n  durable-mcp man --out man1")]
    Man(ManArgs),
    /// Watch failures happen, and what becomes of the calls: real processes, really killed, in a folder of their own.
    #[command(after_help = "Example:\n  durable-mcp demo crash")]
    Demo(DemoArgs),
    /// Measure a server with checked calls in a closed loop, beside the limits of this machine.
    #[command(after_help = "Examples:\n  durable-mcp bench --duration 2s\n  \
                            durable-mcp bench --concurrency 64 --duplicates 3 --duration 2s --json\n\n\
                            A stdio server directly and behind wrap:\n  \
                            $ durable-mcp bench -- npx -y @modelcontextprotocol/server-everything")]
    Bench(BenchArgs),
}

/// Where the configuration comes from.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigFlags {
    /// Configuration: TOML, or a client's mcpServers JSON.
    #[arg(long, value_name = "FILE", env = "DURABLE_MCP_CONFIG")]
    pub config: Option<PathBuf>,
    /// Store, such as sqlite:PATH.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

/// Which server to ask.
#[derive(Clone, Debug, Default, Args)]
pub struct ServerFlags {
    /// Address of a running server.
    #[arg(long, value_name = "URL", env = "DURABLE_MCP_URL")]
    pub url: Option<String>,
}

/// Where executions are looked for.
#[derive(Clone, Debug, Default, Args)]
pub struct SourceFlags {
    #[command(flatten)]
    pub server: ServerFlags,
    #[command(flatten)]
    pub configuration: ConfigFlags,
    /// JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

impl ConfigFlags {
    /// Reads and checks the configuration; `more` adds what other flags set. Warnings go to stderr.
    pub fn load(&self, more: impl FnOnce(&mut Overrides)) -> Result<Loaded, Failure> {
        let mut flags = Overrides::default();
        flags.set("--store", "store.url", self.store.clone());
        more(&mut flags);
        let loaded = crate::config::load(self.config.as_deref(), &flags, &environment()).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Failure::new(Exit::Usage, lines.join("\nerror: "))
        })?;
        for warning in &loaded.warnings {
            eprintln!("warning: {warning}");
        }
        Ok(loaded)
    }
}

/// The process environment, as far as it is text.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn duration(text: &str) -> Result<Millis, String> {
    Millis::parse(text).ok_or_else(|| "write a duration such as 500ms, 30s, 5m or 90d".to_owned())
}

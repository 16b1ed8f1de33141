//! The command line as types, with its help. Reads configuration for the commands that need it; does nothing else.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::failure::{Exit, Failure};
use crate::config::units::Millis;
use crate::config::{Loaded, Overrides};
use crate::engine::Roles;
use crate::model::execution::State;
use crate::model::principal::Scope;
use crate::serve::ServeOptions;

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
        matches!(self.command, Command::Serve(_) | Command::Wrap(_))
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
                            durable-mcp wrap --url https://crm.example/mcp --header 'Authorization: Bearer …'")]
    Wrap(WrapArgs),
    /// Call a tool of a running server and wait for its answer.
    #[command(after_help = "Examples:\n  durable-mcp call demo_echo --args '{\"message\":\"hello\"}'\n  \
                            durable-mcp call github__create_issue --args @issue.json --key release-1.4 --wait 5m")]
    Call(CallArgs),
    /// Look at executions: of a running server with --url, else in the stores of this user.
    #[command(after_help = "Example:\n  durable-mcp executions list --state unknown")]
    Executions(ExecutionsArgs),
    /// API keys for auth mode `token`.
    #[command(after_help = "Example:\n  durable-mcp token create --principal ci --scope call --scope read")]
    Token(TokenArgs),
    /// Check, show or describe the configuration.
    #[command(after_help = "Example:\n  durable-mcp config check --config durable-mcp.toml")]
    Config(ConfigArgs),
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

/// `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    configuration: ConfigFlags,
    /// Address and port to listen on.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// What this process does.
    #[arg(long, value_name = "ROLE", value_delimiter = ',', default_value = "mcp,worker,scheduler")]
    roles: Vec<Role>,
    /// Offer the demo tools.
    #[arg(long)]
    demo: bool,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    Mcp,
    Worker,
    Scheduler,
}

impl ServeArgs {
    /// Reads the configuration.
    pub fn options(self) -> Result<ServeOptions, Failure> {
        let has = |role| self.roles.contains(&role);
        let roles = Roles { mcp: has(Role::Mcp), worker: has(Role::Worker), scheduler: has(Role::Scheduler) };
        let loaded = self.configuration.load(|flags| {
            flags.set("--listen", "server.listen", self.listen);
        })?;
        Ok(ServeOptions { loaded, roles, demo: self.demo })
    }
}

/// `wrap`.
#[derive(Debug, Args)]
pub struct WrapArgs {
    #[command(flatten)]
    pub configuration: ConfigFlags,
    /// Name of this server and of its store; without it one is made from the command.
    #[arg(long, value_parser = store_name)]
    pub name: Option<String>,
    /// An argument of a tool that carries the idempotency key; repeatable.
    #[arg(long, value_name = "TOOL=ARGUMENT", value_parser = pair)]
    pub key_argument: Vec<(String, String)>,
    /// An MCP server over HTTP.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// A header for that server, as 'Name: value'; repeatable.
    #[arg(long, value_name = "HEADER", conflicts_with = "command")]
    pub header: Vec<String>,
    /// An MCP server over stdio: its command and arguments.
    #[arg(last = true, value_name = "CMD", required_unless_present = "url")]
    pub command: Vec<OsString>,
}

/// Which server to ask.
#[derive(Clone, Debug, Default, Args)]
pub struct ServerFlags {
    /// Address of a running server.
    #[arg(long, value_name = "URL", env = "DURABLE_MCP_URL")]
    pub url: Option<String>,
}

/// `call`.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// The tool's name.
    pub tool: String,
    /// Arguments: a JSON object, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON", default_value = "{}", allow_hyphen_values = true)]
    pub args: String,
    /// Idempotency key: the same key never runs the call twice.
    #[arg(long)]
    pub key: Option<String>,
    /// How long to wait for the answer (30s, 5m); 0 prints the execution id at once.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Millis>,
    /// Print the whole result as one line of JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerFlags,
    #[command(flatten)]
    pub configuration: ConfigFlags,
}

/// `executions`.
#[derive(Debug, Args)]
pub struct ExecutionsArgs {
    /// What to look at.
    #[command(subcommand)]
    pub command: ExecutionsCommand,
}

/// The commands of `executions`.
#[derive(Debug, Subcommand)]
pub enum ExecutionsCommand {
    /// List executions, newest first; on a terminal the last 50.
    #[command(after_help = "Example:\n  durable-mcp executions list --state failed,unknown --json | jq -r .id")]
    List(ListArgs),
    /// Show one execution.
    #[command(after_help = "Example:\n  durable-mcp executions show 0198c3f2")]
    Show(OneArgs),
    /// Show what happened to an execution, in order.
    #[command(after_help = "Example:\n  durable-mcp executions events 0198c3f2 --json")]
    Events(OneArgs),
    /// Print the stored result of an execution.
    #[command(after_help = "Example:\n  durable-mcp executions result 0198c3f2 > result.json")]
    Result(OneArgs),
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

/// `executions list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only these states.
    #[arg(long, value_delimiter = ',', value_parser = state)]
    pub state: Vec<State>,
    /// Only this tool, by its own name at its server.
    #[arg(long)]
    pub tool: Option<String>,
    /// Only tools of this server.
    #[arg(long)]
    pub upstream: Option<String>,
    /// Only this namespace.
    #[arg(long)]
    pub namespace: Option<String>,
    /// Only this principal.
    #[arg(long)]
    pub principal: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    #[command(flatten)]
    pub source: SourceFlags,
}

/// A command about one execution.
#[derive(Debug, Args)]
pub struct OneArgs {
    /// The execution's id, or a start of it that no other has.
    pub id: String,
    #[command(flatten)]
    pub source: SourceFlags,
}

/// `token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// The commands of `token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token; it is printed once and can not be read again.
    #[command(after_help = "Example:\n  durable-mcp token create --principal ci --scope call,read --expires-in 90d")]
    Create(CreateArgs),
    /// List tokens, without their secrets.
    #[command(after_help = "Example:\n  durable-mcp token list --json")]
    List(TokenStoreArgs),
    /// End a token; running servers refuse it within a second.
    #[command(after_help = "Example:\n  durable-mcp token revoke 3f9a1c0b77de")]
    Revoke(RevokeArgs),
}

/// The store of the tokens.
#[derive(Debug, Args)]
pub struct TokenStoreArgs {
    #[command(flatten)]
    pub configuration: ConfigFlags,
    /// JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

/// `token create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Who the token stands for.
    #[arg(long, value_name = "NAME")]
    pub principal: String,
    /// The namespace it is good for.
    #[arg(long, default_value = "default")]
    pub namespace: String,
    /// What it permits: call, read, cancel, work, operate, admin.
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', default_value = "call,read,cancel", value_parser = scope)]
    pub scope: Vec<Scope>,
    /// When it ends, from now (90d); without it never.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub expires_in: Option<Millis>,
    #[command(flatten)]
    pub place: TokenStoreArgs,
}

/// `token revoke`.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// The token's prefix, as `token list` shows it.
    pub prefix: String,
    #[command(flatten)]
    pub place: TokenStoreArgs,
}

/// `config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// The commands of `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration and report every mistake with its line.
    #[command(after_help = "Example:\n  durable-mcp config check --config durable-mcp.toml")]
    Check(ConfigFlags),
    /// Show every setting in force and where it comes from, without secrets.
    #[command(after_help = "Example:\n  durable-mcp config show --config durable-mcp.toml")]
    Show {
        #[command(flatten)]
        configuration: ConfigFlags,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the configuration.
    #[command(after_help = "Example:\n  durable-mcp config schema > durable-mcp.schema.json")]
    Schema,
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

/// A name that is a file's name and nothing more, and the name of a server.
fn store_name(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let fits = (1..=64).contains(&text.len()) && text.bytes().all(good);
    fits.then(|| text.to_owned()).ok_or_else(|| "use 1 to 64 of A-Z, a-z, 0-9, `-` and `_`".to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let split = text.split_once('=').filter(|(tool, argument)| !tool.is_empty() && !argument.is_empty());
    split.map(|(tool, argument)| (tool.to_owned(), argument.to_owned())).ok_or_else(|| "write TOOL=ARGUMENT".to_owned())
}

fn duration(text: &str) -> Result<Millis, String> {
    Millis::parse(text).ok_or_else(|| "write a duration such as 500ms, 30s, 5m or 90d".to_owned())
}

fn state(text: &str) -> Result<State, String> {
    let names: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    State::parse(text).ok_or_else(|| format!("the states are {}", names.join(", ")))
}

fn scope(text: &str) -> Result<Scope, String> {
    let names: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    Scope::parse(text).ok_or_else(|| format!("the scopes are {}", names.join(", ")))
}

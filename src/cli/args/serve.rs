//! The flags of `serve` and `wrap`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{ConfigFlags, Failure};
use crate::serve::ServeOptions;

/// `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    configuration: ConfigFlags,
    /// Address and port to listen on.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// What this process does, of `mcp`, `worker` and `scheduler`, separated by commas; all of it unless configured.
    #[arg(long, value_name = "ROLES")]
    roles: Option<String>,
    /// Offer the demo tools.
    #[arg(long)]
    demo: bool,
}

impl ServeArgs {
    /// Reads the configuration.
    pub fn options(self) -> Result<ServeOptions, Failure> {
        let loaded = self.configuration.load(|flags| {
            flags.set("--listen", "server.listen", self.listen);
            flags.set("--roles", "server.roles", self.roles);
        })?;
        Ok(ServeOptions { loaded, demo: self.demo })
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
    /// Change nothing: pass every byte through and report at the end what DurableMCP would have done.
    #[arg(long, conflicts_with_all = ["url", "url_env"])]
    pub shadow: bool,
    /// Where that report also goes, as JSON.
    #[arg(long, value_name = "FILE", requires = "shadow")]
    pub shadow_report: Option<PathBuf>,
    /// The variable with the address of an MCP server over HTTP, for one with a secret in it.
    #[arg(long, value_name = "VARIABLE", conflicts_with_all = ["command", "url"])]
    pub url_env: Option<String>,
    /// A header for that server and the variable with its value, which `ps` does not show; repeatable.
    #[arg(long, value_name = "NAME=VARIABLE", value_parser = header_variable, conflicts_with = "command")]
    pub header_env: Vec<(String, String)>,
    /// An MCP server over stdio: its command and arguments.
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["url", "url_env"])]
    pub command: Vec<OsString>,
}

/// A name that is a file's name and nothing more, and the name of a server.
fn store_name(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let fits = (1..=64).contains(&text.len()) && text.bytes().all(good);
    fits.then(|| text.to_owned()).ok_or_else(|| "use 1 to 64 of A-Z, a-z, 0-9, `-` and `_`".to_owned())
}

fn header_variable(text: &str) -> Result<(String, String), String> {
    pair(text).map_err(|_| "write NAME=VARIABLE".to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let split = text.split_once('=').filter(|(tool, argument)| !tool.is_empty() && !argument.is_empty());
    split.map(|(tool, argument)| (tool.to_owned(), argument.to_owned())).ok_or_else(|| "write TOOL=ARGUMENT".to_owned())
}

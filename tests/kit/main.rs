//! The fixture MCP server of the integration tests: counts side effects in a ledger, is slow, crashes and misbehaves on
//! order. Speaks raw JSON without an SDK and shares no code with the library, so that it cannot share its mistakes.
//! Deliberately knows nothing of DurableMCP but the two `_meta` members it writes into its ledger.

mod corpus;
mod http;
mod ledger;
mod offers;
mod protocol;
mod rmcp_server;
mod server;
mod stdio;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};

#[derive(Parser)]
#[command(name = "kit", about = "A fixture MCP server for tests")]
enum Command {
    /// Newline-delimited JSON on stdin and stdout.
    Stdio(Options),
    /// Streamable HTTP on 127.0.0.1; the first line on stdout is `listening on URL`.
    Http {
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// How calls are answered: `auto` streams where there is progress to tell.
        #[arg(long, value_enum, default_value = "auto")]
        response: Response,
        /// Mint no session ids (legacy revisions allow that).
        #[arg(long)]
        sessionless: bool,
        #[command(flatten)]
        options: Options,
    },
    /// A server of the official Rust SDK over stdio.
    RmcpStdio,
    /// A server of the official Rust SDK over Streamable HTTP.
    RmcpHttp {
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
}

#[derive(Args, Clone, Default)]
pub struct Options {
    /// The file that gets one synced line for each start and each end of a run.
    #[arg(long, env = "KIT_LEDGER")]
    pub ledger: Option<PathBuf>,
    /// Which protocol revisions are spoken.
    #[arg(long, value_enum, default_value = "legacy")]
    pub era: Era,
    /// The newest legacy revision offered.
    #[arg(long, default_value = "2025-11-25")]
    pub revision: String,
    /// Reads `initialize` and `server/discover` and never answers them.
    #[arg(long)]
    pub hang_handshake: bool,
    /// Writes noise between the messages on stdout.
    #[arg(long)]
    pub garbage: bool,
    /// Tools on one page of `tools/list`; 0: all on one.
    #[arg(long, default_value_t = 0)]
    pub list_page: usize,
    /// So many further tools, `extra_0001` and on, that answer their own name.
    #[arg(long, default_value_t = 0)]
    pub extra_tools: usize,
    /// Sleeps so many milliseconds before the first read.
    #[arg(long, default_value_t = 0)]
    pub delay_start: u64,
    /// Offers resources, templates, prompts and completion, with the corpus in them.
    #[arg(long)]
    pub offers: bool,
    /// `instructions` of the handshake.
    #[arg(long)]
    pub instructions: Option<String>,
    /// After so many calls a tool `late` appears and `list_changed` is sent.
    #[arg(long)]
    pub change_tools_after: Option<u64>,
    /// Writes one line to stderr and exits with this code instead of serving.
    #[arg(long)]
    pub fail_start: Option<i32>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default)]
pub enum Era {
    #[default]
    Legacy,
    Modern,
    Both,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    Auto,
    Json,
    Sse,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Stdio(options) => stdio::serve(started(options).await).await,
        Command::Http { port, response, sessionless, options } => {
            let server = started(options).await;
            http::serve(http::Face { server, response, sessionless }, port).await
        }
        Command::RmcpStdio => rmcp_server::serve_stdio().await,
        Command::RmcpHttp { port } => rmcp_server::serve_http(port).await,
    }
}

async fn started(options: Options) -> Arc<server::Server> {
    if let Some(code) = options.fail_start {
        eprintln!("kit: told to fail at the start");
        std::process::exit(code);
    }
    tokio::time::sleep(Duration::from_millis(options.delay_start)).await;
    Arc::new(server::Server::new(options))
}

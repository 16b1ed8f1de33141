//! The servers that stand behind the program, or, in the direct tests, behind a client: the official `server-everything`,
//! our fixture `kit`, and a server of the official Rust SDK; over stdio as a command line, over HTTP as a running process.

use std::ffi::OsStr;
use std::path::Path;

use tokio::net::TcpSocket;

use super::client::Target;
use super::cluster::free_port;
use super::process::Process;
use super::{clients_folder, example_binary, kit_binary};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    EverythingStdio,
    EverythingHttp,
    KitStdio,
    KitHttp,
    RmcpStdio,
    RmcpHttp,
}

impl Kind {
    pub const ALL: [Kind; 6] =
        [Kind::EverythingStdio, Kind::EverythingHttp, Kind::KitStdio, Kind::KitHttp, Kind::RmcpStdio, Kind::RmcpHttp];

    /// Whether it answers 2026-07-28.
    pub fn is_modern(self) -> bool {
        !matches!(self, Kind::EverythingStdio | Kind::EverythingHttp)
    }

    /// Whether it needs what `tests/setup.sh` installs.
    pub fn needs_set_up(self) -> bool {
        !self.is_modern()
    }
}

/// A server that clients can be pointed at. HTTP servers run until this is dropped; a stdio server is started by
/// whoever uses `target`.
pub struct Server {
    pub target: Target,
    pub process: Option<Process>,
}

impl Server {
    /// Starts one of the known servers; kit speaks both eras and keeps its ledger in `folder`.
    pub async fn start(kind: Kind, folder: &Path) -> Server {
        let ledger = super::ledger::Ledger::in_folder(folder);
        let kit = ["--era", "both", "--ledger", ledger.path()];
        match kind {
            Kind::EverythingStdio => Server { target: everything_stdio(), process: None },
            Kind::EverythingHttp => everything_http().await,
            Kind::KitStdio => Server { target: kit_stdio(&kit), process: None },
            Kind::KitHttp => kit_http(&kit).await,
            Kind::RmcpStdio => {
                Server { target: Target::command([kit_binary().to_str().unwrap(), "rmcp-stdio"]), process: None }
            }
            Kind::RmcpHttp => listening(kit_binary(), &["rmcp-http"]).await,
        }
    }

    /// The URL of an HTTP server.
    pub fn url(&self) -> &str {
        match &self.target.place {
            super::client::Place::Url(url) => url,
            super::client::Place::Command(_) => panic!("a stdio server has no URL"),
        }
    }

    /// The port of an HTTP server, to start another one in its place.
    pub fn port(&self) -> u16 {
        let authority = self.url().trim_start_matches("http://127.0.0.1:");
        authority.split('/').next().and_then(|port| port.parse().ok()).expect("a URL with a port")
    }

    /// The command line of a stdio server.
    pub fn argv(&self) -> &[String] {
        match &self.target.place {
            super::client::Place::Command(argv) => argv,
            super::client::Place::Url(_) => panic!("an HTTP server has no command line"),
        }
    }
}

/// `kit stdio` with these flags, as a command line.
pub fn kit_stdio(flags: &[&str]) -> Target {
    let kit = kit_binary();
    Target::command([&[kit.to_str().unwrap(), "stdio"], flags].concat())
}

/// A running `kit http` with these flags, on a free port unless `--port` is among them.
pub async fn kit_http(flags: &[&str]) -> Server {
    // One that is started again where it was finds its port free.
    let port = free_port().to_string();
    let own: &[&str] = if flags.contains(&"--port") { &[] } else { &["--port", &port] };
    listening(kit_binary(), &[&["http"], own, flags].concat()).await
}

/// A running server that says `listening on URL` when it is ready.
async fn listening(program: impl AsRef<OsStr>, arguments: &[&str]) -> Server {
    let process = Process::start(program, arguments, &[]);
    let line = process.line_with("listening on ").await;
    let url = line.trim_start_matches("listening on ").to_owned();
    Server { target: Target::url(url), process: Some(process) }
}

/// The conformance suite's fixture server over stdio, as a command line.
pub fn fixture_stdio() -> Target {
    Target::command([example_binary("fixture").to_str().unwrap(), "stdio"])
}

/// The same over HTTP, running.
pub async fn fixture_http() -> Server {
    listening(example_binary("fixture"), &["http"]).await
}

/// `server-everything stdio` as a command line.
pub fn everything_stdio() -> Target {
    Target::command(["node", everything_script().as_str(), "stdio"])
}

/// A running `server-everything streamableHttp`.
pub async fn everything_http() -> Server {
    let script = everything_script();
    let port = free_port();
    let process = Process::start("node", &[&script, "streamableHttp"], &[("PORT", &port.to_string())]);
    process.line_with("listening on port").await;
    Server { target: Target::url(format!("http://127.0.0.1:{port}/mcp")), process: Some(process) }
}

fn everything_script() -> String {
    let script = clients_folder().join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    script.to_str().unwrap().to_owned()
}

/// A port that refuses connections for as long as this lives: it is taken, and nobody listens on it. A port that was
/// merely free may be taken by another test, or by the very connection that asks for it.
pub struct Nobody(TcpSocket);

impl Nobody {
    pub fn new() -> Nobody {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        Nobody(socket)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }
}

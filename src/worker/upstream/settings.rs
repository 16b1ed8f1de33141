//! What an upstream needs to know before it starts: how to reach the server, and every limit of its legs.
//! Reads no file and no variable of ours: the wiring fills these from the configuration.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::timeout;

use super::asides::{Scope, Tell};
use super::handshake::ASKING;
use super::snapshot::Snapshot;
use crate::engine::client::ClientContext;
use crate::model::redact::Rules;

/// A value that no log, error or debug output ever shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the value itself, to be handed to the server and to nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Which revisions a leg may speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraChoice {
    /// Finds out: over stdio `initialize` first, over HTTP `server/discover` first.
    #[default]
    Auto,
    /// Finds out: `initialize` first over both transports.
    LegacyFirst,
    /// Only `initialize`, revisions 2024-11-05 to 2025-11-25.
    Legacy,
    /// Only `server/discover`, revision 2026-07-28.
    Modern,
}

/// A server that we run as a child and talk to over its stdin and stdout.
#[derive(Clone, Debug)]
pub struct StdioSettings {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Added to (and winning over) the variables of [`INHERITED_VARIABLES`].
    pub env: BTreeMap<String, Secret>,
    pub cwd: Option<PathBuf>,
    /// The guard's command line up to the `--`: normally our own binary and `__guard`. Empty: no guard, so that the
    /// child's tree outlives a kill -9 of this process.
    pub guard: Vec<OsString>,
    /// How long the child may take to end by itself after its stdin was closed.
    pub close_grace: Duration,
    /// How long SIGTERM may take before SIGKILL follows; the guard uses the same span.
    pub kill_grace: Duration,
    /// What of its lines is kept out of the log.
    pub redact: Arc<Rules>,
}

/// The variables of our own environment that a child inherits; all others stay with us.
pub const INHERITED_VARIABLES: [&str; 7] = ["PATH", "HOME", "LANG", "TERM", "USER", "TMPDIR", "SHELL"];

impl StdioSettings {
    pub fn new(program: impl Into<OsString>, args: Vec<OsString>) -> Self {
        Self {
            program: program.into(),
            args,
            env: BTreeMap::new(),
            cwd: None,
            guard: vec![own_program().into(), OsString::from(super::guard::SUBCOMMAND)],
            close_grace: Duration::from_millis(500),
            kill_grace: Duration::from_secs(2),
            redact: Arc::default(),
        }
    }
}

/// Our own binary. On Linux by the name that still works after the file was replaced or removed by an upgrade.
fn own_program() -> PathBuf {
    let running = PathBuf::from("/proc/self/exe");
    match running.exists() {
        true => running,
        false => std::env::current_exe().unwrap_or_else(|_| PathBuf::from("durable-mcp")),
    }
}

/// A server that we reach over Streamable HTTP.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    pub url: String,
    /// Sent with every request; a header of the protocol itself cannot be overridden here.
    pub headers: Vec<(String, Secret)>,
    pub connect_timeout: Duration,
    /// How long an idle connection is kept. Below the 5 s after which Node.js servers close one, so that a request
    /// rarely meets a closing connection (its outcome would be unknown).
    pub pool_idle_timeout: Duration,
    /// How long `server/discover` may hang before `initialize` is tried.
    pub discover_timeout: Duration,
    /// How long a new session waits for its server to say whether it tells anything unasked.
    pub listen_patience: Duration,
    /// How often in a row a broken stream is resumed without having received anything new.
    pub resume_attempts: u32,
    /// The pause before a stream is resumed, unless the server's `retry` names one.
    pub resume_delay: Duration,
    /// The longest pause that a server's `retry` may ask for.
    pub max_resume_delay: Duration,
}

impl HttpSettings {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            pool_idle_timeout: Duration::from_secs(4),
            discover_timeout: Duration::from_secs(5),
            listen_patience: Duration::from_millis(500),
            resume_attempts: 3,
            resume_delay: Duration::from_secs(1),
            max_resume_delay: Duration::from_secs(30),
        }
    }
}

/// How the server is reached.
#[derive(Clone, Debug)]
pub enum Transport {
    Stdio(StdioSettings),
    Http(HttpSettings),
}

/// How fast a server that went down is started again.
#[derive(Clone, Copy, Debug)]
pub struct RestartSettings {
    /// The first pause; a server that has answered a call is started again at once.
    pub initial_delay: Duration,
    pub max_delay: Duration,
    /// The longest pause while a call waits for the server.
    pub max_delay_wanted: Duration,
    /// The same for a server that did not come as far as its tools.
    pub max_delay_wanted_failing: Duration,
    /// A leg that lived this long without a call counts as healthy: its loss starts again at `initial_delay`.
    pub healthy_after: Duration,
}

impl Default for RestartSettings {
    fn default() -> Self {
        Self {
            initial_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(30),
            max_delay_wanted: Duration::from_millis(250),
            max_delay_wanted_failing: Duration::from_secs(1),
            healthy_after: Duration::from_secs(60),
        }
    }
}

/// The bounds of one leg.
#[derive(Clone, Copy, Debug)]
pub struct LegLimits {
    /// Handshake and first list of tools together.
    pub handshake_timeout: Duration,
    /// How long a call waits for a server that is not up.
    pub start_timeout: Duration,
    /// One later request of our own (a list, a notification).
    pub request_timeout: Duration,
    /// The largest `result` of a call; a larger one is answered with our own error, since the tool did run.
    pub max_result_bytes: usize,
    /// Calls on the leg at once; one more is refused as not started.
    pub max_in_flight: usize,
    pub max_pages: usize,
    /// Entries of each list.
    pub max_tools: usize,
    /// How long `list_changed` notifications are gathered before the list is read again.
    pub list_changed_debounce: Duration,
    /// Lines of stderr, and of stdout that are no protocol, that reach the log in a second.
    pub log_lines_per_second: u32,
}

impl Default for LegLimits {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(30),
            max_result_bytes: 16 * 1024 * 1024,
            max_in_flight: 1024,
            max_pages: 200,
            max_tools: 10_000,
            list_changed_debounce: Duration::from_millis(100),
            log_lines_per_second: 20,
        }
    }
}

/// All that [`super::Upstream::start`] needs.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// The server's name in the configuration; it names the server in logs and reasons.
    pub name: String,
    pub transport: Transport,
    pub era: EraChoice,
    pub restart: RestartSettings,
    pub limits: LegLimits,
    /// The lists as last known, shown until the server is up.
    pub last_known: Option<Snapshot>,
    /// Its lists are read; without it `last_known` stays, for one more leg to a server whose lists another one reads.
    pub reads_lists: bool,
    /// Whose leg it is.
    pub scope: Scope,
    /// What is declared to servers of revisions up to 2025-11-25.
    pub declared: Declared,
    /// Where notifications go that belong to no request.
    pub tell: Tell,
    /// Counts each time it is opened again after it was lost, or did not open.
    pub restarts: Counter,
}

/// The capabilities that are declared to a server of revisions up to 2025-11-25.
#[derive(Clone, Debug, Default)]
pub enum Declared {
    /// None: the server asks nothing back.
    #[default]
    Nothing,
    /// Those of one client.
    These(Box<RawValue>),
    /// Those of the one client that is about to say who it is; it is waited for so long.
    Awaited(watch::Receiver<Option<Arc<ClientContext>>>, Duration),
}

impl Declared {
    /// The capabilities as they are known now, or soon.
    pub(super) async fn get(&self) -> Option<Box<RawValue>> {
        match self {
            Self::Nothing => None,
            Self::These(capabilities) => Some(capabilities.clone()),
            Self::Awaited(client, at_most) => {
                let mut client = client.clone();
                // Without a word in time nothing is declared.
                let _ = timeout(*at_most, client.wait_for(Option::is_some)).await;
                client.borrow().as_ref().and_then(|client| client.capabilities.clone())
            }
        }
    }

    /// Resolves when an awaited client has come after all, and can be asked.
    pub(super) async fn arrival(&self) {
        let Self::Awaited(client, _) = self else { return std::future::pending().await };
        let can_be_asked = |client: &Option<Arc<ClientContext>>| {
            client.as_ref().is_some_and(|client| ASKING.iter().any(|capability| client.declares(&[capability])))
        };
        if client.clone().wait_for(can_be_asked).await.is_err() {
            std::future::pending().await
        }
    }
}

impl UpstreamSettings {
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            era: EraChoice::Auto,
            restart: RestartSettings::default(),
            limits: LegLimits::default(),
            last_known: None,
            reads_lists: true,
            scope: Scope::default(),
            declared: Declared::default(),
            tell: Tell::default(),
            restarts: Counter::default(),
        }
    }
}

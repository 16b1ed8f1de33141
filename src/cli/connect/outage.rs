//! A server that is away: how long it is waited for, and what the client is told then. Connects to nothing itself.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::cli::client::TOKEN_VARIABLE;
use crate::cli::output::printable;
use crate::mcp::reject::RpcError;

/// The pause before the first look whether the server is back; doubled from look to look.
pub const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The server can not be reached. Outside of the codes that JSON-RPC and MCP keep, like those of the server.
const UNREACHABLE: i64 = -31502;
/// The server wants a credential, or one that permits more.
const UNAUTHORIZED: i64 = -31401;
/// Characters of a foreign text that are repeated.
const SHOWN_CHARS: usize = 200;

/// One time without the server.
pub struct Outage {
    patience: Duration,
    since: Option<Instant>,
    pause: Duration,
}

impl Outage {
    /// The server is waited for so long, from the first time that it is not there.
    pub fn new(patience: Duration) -> Outage {
        Outage { patience, since: None, pause: FIRST_PAUSE }
    }

    /// Waits a moment; false when the patience is spent.
    pub async fn wait(&mut self, words: &str) -> bool {
        let now = Instant::now();
        let since = *self.since.get_or_insert_with(|| {
            eprintln!("connect: {words}; waiting for it");
            now
        });
        let left = self.patience.saturating_sub(now - since);
        if left.is_zero() {
            return false;
        }
        sleep(self.pause.min(left)).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

/// Why a request gets no answer of the server's.
pub enum Reason {
    /// The server was not reached; it knows nothing of the request.
    Away(String),
    /// The connection broke, and no second sending brought the answer.
    Lost(String),
    /// The server forgets each session at once.
    Session,
    /// This status, with these words.
    Status(u16, Option<String>),
}

/// What the client is told. `base` is the server's address.
pub fn error(reason: &Reason, base: &str) -> RpcError {
    let (code, words, kind, retryable, next) = match reason {
        Reason::Away(words) => (
            UNREACHABLE,
            words.clone(),
            "server_unreachable",
            true,
            "nothing was sent; start the server with `durable-mcp serve`, or give another one with --url",
        ),
        Reason::Lost(words) => (
            UNREACHABLE,
            words.clone(),
            "connection_lost",
            true,
            "the call may be running; repeat the same call to come back to it, or ask durable_result",
        ),
        Reason::Session => {
            (UNREACHABLE, format!("{base} opens no session that lasts"), "session_lost", true, "reconnect")
        }
        Reason::Status(401 | 403, body) => {
            let said = body.as_deref().and_then(said).map_or(String::new(), |said| format!(": {said}"));
            (
                UNAUTHORIZED,
                format!("{base} refuses this client{said}"),
                "unauthorized",
                false,
                "put a token of that server into DURABLE_MCP_TOKEN in the environment of `connect`",
            )
        }
        Reason::Status(status, body) => {
            let said = body.as_deref().and_then(said).map_or(String::new(), |said| format!(": {said}"));
            let next = "check that the address is that of a running `durable-mcp serve`";
            (UNREACHABLE, format!("{base} answered with the status {status}{said}"), "bad_answer", false, next)
        }
    };
    debug_assert!(code != UNAUTHORIZED || next.contains(TOKEN_VARIABLE));
    let data = serde_json::json!({ "type": kind, "retryable": retryable, "next": next });
    RpcError::new(code, words).with_data(&data)
}

/// The server's own sentence in the body of a refusal.
fn said(body: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    let sentence = ["detail", "error", "title"].iter().find_map(|member| body[*member].as_str())?;
    Some(shown(sentence))
}

/// A foreign text, fit for a terminal.
pub fn shown(text: &str) -> String {
    printable(&text.chars().take(SHOWN_CHARS).collect::<String>())
}

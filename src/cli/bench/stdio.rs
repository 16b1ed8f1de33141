//! A client of a stdio server: one message a line, many calls on their way at once. Answers no questions of the server's.

use std::collections::HashMap;
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use super::super::failure::{Exit, Failure};
use super::super::stage::caller::{self, Error, Told, ToolCall};
use super::super::stage::wire;
use crate::model::revision::Era;

const READ_BUFFER_BYTES: usize = 64 << 10;
/// How long a server may take to come up: `npx` may install it first.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// What we call ourselves.
const NAME: &str = "durable-mcp-bench";

/// A connection to a stdio server; clones share it.
#[derive(Clone)]
pub struct StdioClient {
    shared: Arc<Shared>,
}

struct Shared {
    era: Era,
    stdin: tokio::sync::Mutex<tokio::process::ChildStdin>,
    waiting: Arc<Waiting>,
    last_id: AtomicU64,
    _reader: AbortOnDropHandle<()>,
}

/// Who waits for the answer of which id; `None` when the server is gone.
type Waiting = Mutex<Option<HashMap<u64, oneshot::Sender<Vec<u8>>>>>;

#[derive(Deserialize)]
struct Peek {
    id: Option<serde_json::Value>,
    method: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Listing {
    result: Option<Tools>,
}

#[derive(Deserialize)]
struct Tools {
    #[serde(default)]
    tools: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl StdioClient {
    /// Speaks over these pipes; the handshake is done when it returns. Errors: the server does not answer.
    pub async fn connect((stdin, stdout): (ChildStdin, ChildStdout), era: Era) -> Result<StdioClient, Failure> {
        let broken = |error: std::io::Error| Failure::new(Exit::Failure, format!("the server's pipes: {error}"));
        let stdin = tokio::process::ChildStdin::from_std(stdin).map_err(broken)?;
        let stdout = tokio::process::ChildStdout::from_std(stdout).map_err(broken)?;
        let waiting: Arc<Waiting> = Arc::new(Mutex::new(Some(HashMap::new())));
        let reader = tokio::spawn(read(stdout, waiting.clone()));
        let shared = Shared {
            era,
            stdin: tokio::sync::Mutex::new(stdin),
            waiting,
            last_id: AtomicU64::new(0),
            _reader: AbortOnDropHandle::new(reader),
        };
        let client = StdioClient { shared: Arc::new(shared) };
        if era == Era::Legacy {
            let id = client.next_id();
            client.answered(id, caller::initialize_body(id, NAME)).await?;
            client.write(&caller::initialized_body()).await.map_err(|error| gone(&error))?;
        }
        Ok(client)
    }

    /// The names of the tools on the first page.
    pub async fn tools(&self) -> Result<Vec<String>, Failure> {
        let id = self.next_id();
        let answer = self.answered(id, caller::list_body(id, self.shared.era, NAME)).await?;
        let listing: Listing = serde_json::from_slice(&answer)
            .map_err(|_| Failure::new(Exit::Failure, "the server's list of tools can not be read"))?;
        let tools = listing.result.map(|result| result.tools).unwrap_or_default();
        Ok(tools.into_iter().map(|tool| tool.name).collect())
    }

    /// Calls a tool. Errors: as over HTTP.
    pub async fn call(&self, call: &ToolCall<'_>) -> Result<Told, Error> {
        let id = self.next_id();
        let answer = self.ask(id, caller::call_body(id, (self.shared.era, NAME), call)).await?;
        caller::told(&answer, id)?.ok_or(Error::Foreign("it is no response"))
    }

    fn next_id(&self) -> u64 {
        self.shared.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    async fn answered(&self, id: u64, body: String) -> Result<Vec<u8>, Failure> {
        match tokio::time::timeout(START_TIMEOUT, self.ask(id, body)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(gone(&error)),
            Err(_) => Err(Failure::new(Exit::Failure, "the server does not answer")),
        }
    }

    async fn ask(&self, id: u64, body: String) -> Result<Vec<u8>, Error> {
        let (sender, answer) = oneshot::channel();
        match self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(waiting) => waiting.insert(id, sender),
            None => return Err(cut("the server is gone")),
        };
        self.write(&body).await?;
        answer.await.map_err(|_| cut("the server ended"))
    }

    async fn write(&self, body: &str) -> Result<(), Error> {
        let line = format!("{body}\n");
        let mut stdin = self.shared.stdin.lock().await;
        stdin.write_all(line.as_bytes()).await.map_err(|error| cut(&error.to_string()))
    }
}

fn cut(why: &str) -> Error {
    Error::Wire(wire::Error::Cut(why.to_owned()))
}

fn gone(error: &Error) -> Failure {
    Failure::new(Exit::Failure, format!("the server does not speak MCP over stdio: {error}"))
        .next("try its command by itself; what it wrote to stderr is in its log")
}

/// Gives each line to whoever waits for it. Anything that is no response to a call is passed over.
async fn read(stdout: tokio::process::ChildStdout, waiting: Arc<Waiting>) {
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, stdout);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
        let id = serde_json::from_slice::<Peek>(&line).ok().filter(|peek| peek.method.is_none());
        let sender = id.and_then(|peek| peek.id?.as_u64()).and_then(|id| {
            waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut().and_then(|waiting| waiting.remove(&id))
        });
        if let Some(sender) = sender {
            let _ = sender.send(std::mem::take(&mut line));
        }
        line.clear();
    }
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
}

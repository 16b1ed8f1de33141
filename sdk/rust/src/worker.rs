//! The worker as its author sees it: register handlers, run. Runs handlers on the caller's runtime; the conversation with
//! the server has a thread of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::address::{AddressError, ServerAddress};
use crate::context::{Context, lock};
use crate::conversation::{Conversation, Terms, ToWire};
use crate::failure::{Failure, Kind};
use crate::held::{Held, Report};
use crate::link::Link;
use crate::results::{error_result, failure};
use crate::tool::{Handler, Tool, handler};

/// How long the process may take to end after the drain is over.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a worker does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A wrong credential, a tool name that is another's, a bad definition.
    #[error("the server refuses this worker: {0}")]
    NotWelcome(String),
    #[error("a worker without tools has nothing to do")]
    NoTools,
    #[error("there are two tools {0}")]
    ToolNamedTwice(String),
    #[error("the worker can not be set up: {0}")]
    SetUp(String),
}

/// Offers tools to a DurableMCP server and runs their calls.
pub struct Worker {
    url: Option<String>,
    token: Option<String>,
    name: Option<String>,
    slots: usize,
    grace: Duration,
    tools: HashMap<String, Handler>,
    definitions: Vec<Value>,
    named_twice: Option<String>,
    stop: CancellationToken,
}

impl Default for Worker {
    fn default() -> Worker {
        Worker::new()
    }
}

impl Worker {
    /// For the server of `DURABLE_MCP_URL`, else http://127.0.0.1:7400, with the token of `DURABLE_MCP_TOKEN`, else the
    /// local token of a server of this user; 16 slots, 20 s of grace.
    pub fn new() -> Worker {
        Worker {
            url: None,
            token: None,
            name: None,
            slots: 16,
            grace: Duration::from_secs(20),
            tools: HashMap::new(),
            definitions: Vec::new(),
            named_twice: None,
            stop: CancellationToken::new(),
        }
    }

    pub fn url(self, url: impl Into<String>) -> Worker {
        Worker { url: Some(url.into()), ..self }
    }

    /// A credential with the scope `work`.
    pub fn token(self, token: impl Into<String>) -> Worker {
        Worker { token: Some(token.into()), ..self }
    }

    pub fn name(self, name: impl Into<String>) -> Worker {
        Worker { name: Some(name.into()), ..self }
    }

    /// Calls at once; at least 1.
    pub fn slots(self, slots: usize) -> Worker {
        Worker { slots: slots.max(1), ..self }
    }

    /// How long running calls may take to end after SIGTERM or SIGINT.
    pub fn grace(self, grace: Duration) -> Worker {
        Worker { grace, ..self }
    }

    /// Registers a handler. The schema of the arguments is that of `A`, unless the tool has one.
    pub fn tool<A, R, E, F, Fut>(mut self, tool: Tool, function: F) -> Worker
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize,
        E: Into<Failure>,
        F: Fn(A, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let name = tool.name.clone();
        self.definitions.push(tool.definition::<A>());
        if self.tools.insert(name.clone(), handler(function)).is_some() {
            self.named_twice = Some(name);
        }
        self
    }

    /// Ends `run` as SIGTERM does, when it is cancelled.
    pub fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Serves until SIGTERM or SIGINT, then drains. A second signal ends the process at once.
    pub async fn run(self) -> Result<(), RunError> {
        self.start(true).await
    }

    /// As `run`, without signals: the stop token ends it.
    pub async fn serve(self) -> Result<(), RunError> {
        self.start(false).await
    }

    async fn start(self, owns_process: bool) -> Result<(), RunError> {
        if self.tools.is_empty() {
            return Err(RunError::NoTools);
        }
        if let Some(name) = self.named_twice {
            return Err(RunError::ToolNamedTwice(name));
        }
        let address = ServerAddress::new(self.url.as_deref(), self.token.as_deref())?;
        let worker_id = uuid::Uuid::new_v4().to_string();
        let mut registration = json!({
            "worker_id": worker_id,
            "name": self.name.unwrap_or_else(|| format!("rust-{}", std::process::id())),
            "slots": self.slots,
            "sdk": concat!("rust/", env!("CARGO_PKG_VERSION")),
            "tools": self.definitions,
        });
        let (sender, inbox) = mpsc::unbounded_channel();
        let (handlers, tools) = (Handle::current(), Arc::new(self.tools));
        let (slots, grace, stop) = (self.slots, self.grace, self.stop);
        let (end, ended) = oneshot::channel();
        let over = CancellationToken::new();
        let _over = over.clone().drop_guard();
        let talk = move || {
            let deliver = Box::new(move |call| run_call(&handlers, &tools, call, sender.clone()));
            let full = registration.to_string();
            registration["tools"] = json!([]);
            let terms =
                Terms { worker_id, registration: full, leaving: registration.to_string(), slots, grace, deliver };
            let result = converse(terms, address, stop, owns_process, inbox);
            let _ = end.send(result);
            if owns_process {
                end_process_unless(&over);
            }
        };
        let spawned = std::thread::Builder::new().name("durable-mcp-wire".to_owned()).spawn(talk);
        spawned.map_err(|error| RunError::SetUp(error.to_string()))?;
        ended.await.unwrap_or_else(|_| Err(RunError::SetUp("the conversation with the server broke off".to_owned())))
    }
}

/// The whole conversation, on this thread.
fn converse(
    terms: Terms,
    address: ServerAddress,
    stop: CancellationToken,
    owns_process: bool,
    inbox: mpsc::UnboundedReceiver<ToWire>,
) -> Result<(), RunError> {
    let set_up = |error: &dyn std::fmt::Display| RunError::SetUp(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| set_up(&e))?;
    let local = tokio::task::LocalSet::new();
    let result = local.block_on(&runtime, async {
        if owns_process {
            // Here and not on the handlers' runtime, which a handler may block.
            for (kind, number) in [(SignalKind::terminate(), 15), (SignalKind::interrupt(), 2)] {
                let mut signals = signal(kind).map_err(|e| set_up(&e))?;
                let stop = stop.clone();
                tokio::task::spawn_local(async move {
                    while signals.recv().await.is_some() {
                        if stop.is_cancelled() {
                            std::process::exit(128 + number);
                        }
                        stop.cancel();
                    }
                });
            }
        }
        // A drain that the server asked for is no signal of somebody's.
        let link = Link::new(address).map_err(|e| set_up(&e))?;
        Conversation::new(terms, link, stop.child_token()).run(inbox).await.map_err(RunError::NotWelcome)
    });
    drop(local);
    runtime.shutdown_background();
    result
}

/// A handler that blocks the caller's runtime after the drain does not keep the process.
fn end_process_unless(over: &CancellationToken) {
    let waited = std::time::Instant::now();
    while !over.is_cancelled() {
        if waited.elapsed() > END_TIMEOUT {
            std::process::exit(0);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs a claimed call on the handlers' runtime.
fn run_call(
    handlers: &Handle,
    tools: &Arc<HashMap<String, Handler>>,
    call: Arc<Held>,
    wire: mpsc::UnboundedSender<ToWire>,
) {
    let tools = tools.clone();
    let supervisor = handlers.clone();
    handlers.spawn(async move {
        if !call.begin() {
            return;
        }
        let report = match tools.get(&call.job.tool) {
            None => Some(Report::Fail(failure("tool_unknown", "this worker has no such tool", false))),
            Some(handler) => {
                let running = handler(call.job.arguments.clone(), Context::new(call.clone(), wire.clone()));
                // A task of its own, so that a panic is an outcome.
                match supervisor.spawn(running).await {
                    Ok(Ok(result)) => Some(Report::Complete(result)),
                    Ok(Err(Failure(kind))) => report_of(&call, kind),
                    Err(error) if error.is_panic() => {
                        Some(Report::Fail(failure("panic", "the handler panicked", false)))
                    }
                    Err(_) => None,
                }
            }
        };
        *lock(&call.report) = report;
        let _ = wire.send(ToWire::Finished(call));
    });
}

fn report_of(call: &Held, kind: Kind) -> Option<Report> {
    let id = &call.job.execution_id;
    match kind {
        Kind::ToolError(message) => Some(Report::Complete(error_result(&message))),
        // Whatever ended it, nobody waits for it.
        _ if call.dropped.is_cancelled() => None,
        Kind::Cancelled => Some(Report::Fail(failure("Cancelled", "the handler gave up", false))),
        Kind::Retry { message, after, not_started } => {
            tracing::info!("execution {id}: attempt {} asks to be retried", call.job.attempt);
            let mut members = failure("Retry", &message, true);
            if let Some(after) = after {
                members.push_str(&format!(",\"retry_after_ms\":{}", after.as_millis()));
            }
            if not_started {
                members.push_str(",\"not_started\":true");
            }
            Some(Report::Fail(members))
        }
        Kind::Other { code, message } => {
            // The message may hold payloads, so that it is for debugging only.
            tracing::error!("execution {id}: tool {} failed with {code}", call.job.tool);
            tracing::debug!("execution {id}: {message}");
            Some(Report::Fail(failure(&code, &message, false)))
        }
    }
}

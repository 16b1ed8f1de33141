//! Upstream servers, tools of our own and the policy of a call as they are written. What is left out here is inherited:
//! tool, then server, then `[defaults]`; `policy.rs` puts the effective values together,
//! `defaults.rs` holds the values that nobody has to write.

use super::json::{Json, JsonSource};
use super::redaction::Redaction;
use super::secret::{Secret, Text};
use super::units::{Bytes, Millis};
pub use crate::model::policy::{OnTaskExpiry, Tasks};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What holds for every tool that says nothing else.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// How long a caller waits before the answer is "still running, ask with this id"; 0 answers at once.
    #[schemars(extend("x-max-ms" = 86_400_000))]
    pub wait: Millis,
    /// Time limits of an execution.
    pub timeout: DefaultTimeout,
    /// How a lost attempt is repeated, where delivery permits it.
    pub retry: DefaultRetry,
    /// Idempotency keys and calls without one.
    pub idempotency: DefaultIdempotency,
    /// What a client that leaves, or whose own timer fires, does to the execution.
    pub on_disconnect: OnDisconnect,
    /// Whether a call becomes an MCP task for a client that knows tasks: after `task_after`, at once, never, or at once
    /// with a refusal of the clients of 2026-07-28 that do not know them.
    pub tasks: Tasks,
    /// How long a call runs before it becomes a task, with `auto`.
    #[schemars(extend("x-max-ms" = 86_400_000))]
    pub task_after: Millis,
    /// How long a task can be read, from its creation; at most as long as payloads are kept.
    #[schemars(extend("x-min-ms" = 1))]
    pub task_ttl: Millis,
    /// What the end of that time does to work that still runs and that nobody else waits for.
    pub on_task_expiry: OnTaskExpiry,
    /// Calls that one upstream server or command tool runs at once, in one process.
    #[schemars(range(min = 1, max = 65_536))]
    pub concurrency: u32,
    /// Calls that wait for one upstream server or command tool; beyond it calls are refused as overload.
    #[schemars(range(max = 1_000_000))]
    pub queue: u32,
    /// How long a call waits in that queue before it is refused as overload.
    #[schemars(extend("x-max-ms" = 86_400_000))]
    pub queue_timeout: Millis,
}

/// Time limits of an execution.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DefaultTimeout {
    /// The longest attempt; a longer one is lost.
    #[schemars(extend("x-min-ms" = 1))]
    pub attempt: Millis,
    /// From submission to the end, with all attempts and pauses.
    #[schemars(extend("x-min-ms" = 1))]
    pub total: Millis,
    /// The longest silence of an attempt without progress; 0 is off.
    pub idle: Millis,
}

/// How a lost attempt is repeated.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DefaultRetry {
    /// Attempts in all, the first included.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_attempts: u32,
    /// Pause before the second attempt.
    pub initial_interval: Millis,
    /// Factor from one pause to the next.
    #[schemars(range(min = 1.0, max = 100.0))]
    pub backoff_coefficient: f64,
    /// The longest pause.
    pub max_interval: Millis,
    /// Part of a pause that varies, by execution and attempt.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
    /// What is repeated besides a lost attempt.
    pub on: Vec<RetryOn>,
}

/// Idempotency keys and calls without one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DefaultIdempotency {
    /// What a call without a key does when the same call is known.
    pub unkeyed: Unkeyed,
    /// How long after its end an execution whose answer nobody got takes the same call.
    pub reattach_window: Millis,
    /// How long a key lives after the end of its execution.
    #[schemars(extend("x-min-ms" = 1))]
    pub ttl: Millis,
}

/// What may happen to a call whose attempt was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    AtLeastOnce,
    AtMostOnce,
}

/// An outcome that is repeated although an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    ToolError,
    RpcError,
}

/// What a call without a key does when the same call is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unkeyed {
    Reattach,
    Coalesce,
    None,
}

/// What a client that leaves does to the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    Detach,
    Cancel,
}

/// Form of an answer over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    Auto,
    Json,
    Sse,
}

/// Whose calls share a process of a server, or a connection to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    Shared,
    Principal,
    Session,
    Call,
}

/// The policy of a call, as far as a server or tool says something of its own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OwnPolicy {
    /// What may happen to a call whose attempt was lost; without it the tool's own hints decide, else `at_most_once`.
    pub delivery: Option<Delivery>,
    /// How long a caller waits before the answer is "still running, ask with this id"; 0 answers at once.
    #[schemars(extend("x-max-ms" = 86_400_000, "x-inherits" = "defaults.wait"))]
    pub wait: Option<Millis>,
    /// Time limits of an execution.
    pub timeout: OwnTimeout,
    /// How a lost attempt is repeated, where delivery permits it.
    pub retry: OwnRetry,
    /// Idempotency keys and calls without one.
    pub idempotency: OwnIdempotency,
    /// What a client that leaves, or whose own timer fires, does to the execution.
    #[schemars(extend("x-inherits" = "defaults.on_disconnect"))]
    pub on_disconnect: Option<OnDisconnect>,
    /// Whether a call becomes an MCP task for a client that knows tasks.
    #[schemars(extend("x-inherits" = "defaults.tasks"))]
    pub tasks: Option<Tasks>,
    /// How long a call runs before it becomes a task, with `auto`.
    #[schemars(extend("x-max-ms" = 86_400_000, "x-inherits" = "defaults.task_after"))]
    pub task_after: Option<Millis>,
    /// How long a task can be read, from its creation; at most as long as payloads are kept.
    #[schemars(extend("x-min-ms" = 1, "x-inherits" = "defaults.task_ttl"))]
    pub task_ttl: Option<Millis>,
    /// What the end of that time does to work that still runs and that nobody else waits for.
    #[schemars(extend("x-inherits" = "defaults.on_task_expiry"))]
    pub on_task_expiry: Option<OnTaskExpiry>,
    /// Form of an answer over HTTP.
    #[schemars(extend("x-inherits" = "server.response"))]
    pub response: Option<Response>,
    /// The most of a result that a caller is sent; of a longer one it gets the beginning, and how to read the rest.
    #[schemars(extend("x-min-bytes" = 1024, "x-max-bytes" = 1_073_741_824, "x-inherits" = "limits.answer_bytes"))]
    pub answer_bytes: Option<Bytes>,
    /// What is struck out of its calls besides.
    pub redaction: Redaction,
}

/// Time limits of its own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnTimeout {
    /// The longest attempt; a longer one is lost.
    #[schemars(extend("x-min-ms" = 1, "x-inherits" = "defaults.timeout.attempt"))]
    pub attempt: Option<Millis>,
    /// From submission to the end, with all attempts and pauses.
    #[schemars(extend("x-min-ms" = 1, "x-inherits" = "defaults.timeout.total"))]
    pub total: Option<Millis>,
    /// The longest silence of an attempt without progress; 0 is off.
    #[schemars(extend("x-inherits" = "defaults.timeout.idle"))]
    pub idle: Option<Millis>,
}

/// Repetition of its own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnRetry {
    /// Attempts in all, the first included.
    #[schemars(range(min = 1, max = 1_000), extend("x-inherits" = "defaults.retry.max_attempts"))]
    pub max_attempts: Option<u32>,
    /// Pause before the second attempt.
    #[schemars(extend("x-inherits" = "defaults.retry.initial_interval"))]
    pub initial_interval: Option<Millis>,
    /// Factor from one pause to the next.
    #[schemars(range(min = 1.0, max = 100.0), extend("x-inherits" = "defaults.retry.backoff_coefficient"))]
    pub backoff_coefficient: Option<f64>,
    /// The longest pause.
    #[schemars(extend("x-inherits" = "defaults.retry.max_interval"))]
    pub max_interval: Option<Millis>,
    /// Part of a pause that varies, by execution and attempt.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-inherits" = "defaults.retry.jitter"))]
    pub jitter: Option<f64>,
    /// What is repeated besides a lost attempt.
    #[schemars(extend("x-inherits" = "defaults.retry.on"))]
    pub on: Option<Vec<RetryOn>>,
}

/// Idempotency of its own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnIdempotency {
    /// What a call without a key does when the same call is known.
    #[schemars(extend("x-inherits" = "defaults.idempotency.unkeyed"))]
    pub unkeyed: Option<Unkeyed>,
    /// How long after its end an execution whose answer nobody got takes the same call.
    #[schemars(extend("x-inherits" = "defaults.idempotency.reattach_window"))]
    pub reattach_window: Option<Millis>,
    /// How long a key lives after the end of its execution.
    #[schemars(extend("x-min-ms" = 1, "x-inherits" = "defaults.idempotency.ttl"))]
    pub ttl: Option<Millis>,
}

/// An upstream MCP server: a command spoken to over stdio, or a URL spoken to over Streamable HTTP.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Server {
    /// Program of a stdio server; with a `/` in it relative to the configuration file, else found in `PATH`.
    #[schemars(length(min = 1), extend("x-format" = "program"))]
    pub command: Option<Text>,
    /// Arguments of the program.
    #[schemars(extend("x-argv" = true))]
    pub args: Vec<Text>,
    /// Variables added to the environment of the program.
    #[schemars(extend("x-variables" = true))]
    pub env: IndexMap<String, Secret>,
    /// Folder in which the program starts; without it the folder of this process.
    #[schemars(extend("x-format" = "path"))]
    pub cwd: Option<Text>,
    /// Address of a Streamable HTTP server.
    #[schemars(extend("x-format" = "http-url", "x-secret" = false, "x-url" = true))]
    pub url: Option<Secret>,
    /// Headers sent with every request to the address.
    #[schemars(extend("x-headers" = true))]
    pub headers: IndexMap<String, Secret>,
    /// What stands before the tool names in `serve`; without it `NAME__`. Empty leaves the names unchanged.
    #[schemars(extend("x-format" = "prefix"))]
    pub prefix: Option<Text>,
    /// Whether the server is used.
    pub enabled: bool,
    /// Calls that run at once in one process.
    #[schemars(range(min = 1, max = 65_536), extend("x-inherits" = "defaults.concurrency"))]
    pub concurrency: Option<u32>,
    /// Calls that wait for the server; beyond it calls are refused as overload.
    #[schemars(range(max = 1_000_000), extend("x-inherits" = "defaults.queue"))]
    pub queue: Option<u32>,
    /// How long a call waits in the queue before it is refused as overload.
    #[schemars(extend("x-max-ms" = 86_400_000, "x-inherits" = "defaults.queue_timeout"))]
    pub queue_timeout: Option<Millis>,
    /// How long start and handshake may take.
    #[schemars(extend("x-min-ms" = 10))]
    pub start_timeout: Millis,
    /// How long the answer to anything but a tool call may take.
    #[schemars(extend("x-min-ms" = 10))]
    pub request_timeout: Millis,
    /// Whose calls share a process or connection: everybody's, those of a principal, of a session, or none. Without it
    /// everybody's in `serve`, a session's in `wrap`. A server of a revision up to 2025-11-25 can ask the client back, and
    /// its log messages find their session, with `session` and `call` only.
    pub isolation: Option<Isolation>,
    /// Processes or connections of their own that one process of ours keeps for the server; the one that was idle the
    /// longest makes room for the next.
    #[schemars(range(min = 1, max = 65_536))]
    pub max_isolated: u32,
    /// How long such a process or connection stays when nobody uses it; with the end of its session it ends at once.
    #[schemars(extend("x-min-ms" = 10))]
    pub isolated_idle: Millis,
    /// How a server that died is started again.
    pub restart: Restart,
    /// What holds for every tool of the server that says nothing else.
    #[serde(flatten)]
    pub policy: OwnPolicy,
    /// Tools that differ from the rest of the server, by the server's own name of the tool.
    #[schemars(extend("x-names" = 128))]
    pub tools: IndexMap<String, ServerTool>,
}

/// How a server that died is started again.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Restart {
    /// Pause before a new start; a server that has answered a call is started again at once, and one that a call waits for
    /// after 250 ms at most.
    #[schemars(extend("x-min-ms" = 1))]
    pub initial_interval: Millis,
    /// The longest pause; each one is twice the last.
    #[schemars(extend("x-min-ms" = 1))]
    pub max_interval: Millis,
    /// A server that lived so long starts again with the first pause.
    #[schemars(extend("x-min-ms" = 1))]
    pub reset_after: Millis,
}

/// A tool of an upstream server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerTool {
    /// Whether clients see the tool.
    pub enabled: bool,
    /// The policy of a call.
    #[serde(flatten)]
    pub policy: OwnPolicy,
    /// Argument that carries the idempotency key; one that the caller left out is filled in.
    #[schemars(length(min = 1, max = 255))]
    pub key_argument: Option<Text>,
    /// How a lost call asks the server whether it took effect.
    pub reconcile: Option<Reconcile>,
}

/// A tool of remote workers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkerTool {
    /// Whether clients see the tool.
    pub enabled: bool,
    /// The policy of a call.
    #[serde(flatten)]
    pub policy: OwnPolicy,
    /// Argument that carries the idempotency key.
    #[schemars(length(min = 1, max = 255))]
    pub key_argument: Option<Text>,
}

/// How a lost call asks the server whether it took effect.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reconcile {
    /// A reading tool of the same server.
    #[schemars(length(min = 1, max = 255))]
    pub tool: Text,
    /// Its arguments; `{{arguments.NAME}}` and `{{idempotency_key}}` (the effect key) are filled in from the lost call.
    #[serde(default)]
    pub arguments: Json,
    /// What must hold for its result if the call took effect, such as `/items/0/title == arguments.title`.
    #[serde(rename = "match")]
    #[schemars(length(min = 1, max = 4096))]
    pub matches: Text,
}

/// A tool of this process: a command (no shell, arguments as JSON on stdin), or an HTTP request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct OwnTool {
    /// Program and its arguments; a program with a `/` in it is relative to the configuration file.
    #[serde(default)]
    #[schemars(length(min = 1), extend("x-argv" = true))]
    pub command: Vec<Text>,
    /// Address that is called instead of a command; `{{arguments.NAME}}` in its path and query is filled in from the call.
    #[serde(default)]
    #[schemars(extend("x-format" = "http-url-template", "x-secret" = false, "x-url" = true))]
    pub url: Option<Secret>,
    /// Method of the request; without it `POST`. `GET` and `HEAD` make a tool read-only unless its hints say otherwise.
    #[serde(default)]
    pub method: Option<Method>,
    /// Headers of the request, with `{{arguments.NAME}}` and `{{effect_key}}`; one that is an absent argument is left out.
    #[serde(default)]
    #[schemars(extend("x-headers" = true))]
    pub headers: IndexMap<String, Secret>,
    /// Parameters added to the address; without it, of methods without a body, the arguments that the address does not name.
    #[serde(default)]
    pub query: Option<IndexMap<String, Secret>>,
    /// JSON body with `{{arguments.NAME}}` in its strings; without it, of `POST`, `PUT` and `PATCH`, the arguments.
    #[serde(default)]
    pub body: Option<Json>,
    /// Statuses after which the request is made again where delivery permits it; without it 408, 425, 429, 500, 502, 503, 504.
    #[serde(default)]
    #[schemars(length(max = 100), inner(range(min = 400, max = 599)))]
    pub retry_on_status: Option<Vec<u16>>,
    /// Whether the request may go to a private, loopback or link-local address; without it, only to `http_tools.private_hosts`.
    #[serde(default)]
    pub allow_private: Option<bool>,
    /// The largest body of an answer; a longer one is cut off and not kept.
    #[serde(default)]
    #[schemars(extend("x-min-bytes" = 1024, "x-max-bytes" = 1_073_741_824, "x-inherits" = "limits.result_bytes"))]
    pub max_response: Option<Bytes>,
    /// JSON Schema of the arguments: a table, or the path of a file.
    #[serde(default)]
    pub input_schema: Option<JsonSource>,
    /// JSON Schema of the structured result: a table, or the path of a file.
    #[serde(default)]
    pub output_schema: Option<JsonSource>,
    /// What the tool does, for the model.
    #[serde(default)]
    #[schemars(length(max = 65_536))]
    pub description: Option<Text>,
    /// Name for people.
    #[serde(default)]
    #[schemars(length(min = 1, max = 255))]
    pub title: Option<Text>,
    /// Hints for clients.
    #[serde(default)]
    pub annotations: Annotations,
    /// Folder in which the program starts; without it the folder of this process.
    #[serde(default)]
    #[schemars(extend("x-format" = "path"))]
    pub cwd: Option<Text>,
    /// Variables added to the environment of the program.
    #[serde(default)]
    #[schemars(extend("x-variables" = true))]
    pub env: IndexMap<String, Secret>,
    /// Whether clients see the tool.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Calls that run at once in one process.
    #[serde(default)]
    #[schemars(range(min = 1, max = 65_536), extend("x-inherits" = "defaults.concurrency"))]
    pub concurrency: Option<u32>,
    /// Calls that wait for the tool; beyond it calls are refused as overload.
    #[serde(default)]
    #[schemars(range(max = 1_000_000), extend("x-inherits" = "defaults.queue"))]
    pub queue: Option<u32>,
    /// How long a call waits in the queue before it is refused as overload.
    #[serde(default)]
    #[schemars(extend("x-max-ms" = 86_400_000, "x-inherits" = "defaults.queue_timeout"))]
    pub queue_timeout: Option<Millis>,
    /// The policy of a call.
    #[serde(flatten)]
    pub policy: OwnPolicy,
    /// Argument that carries the idempotency key; one that the caller left out is filled in.
    #[serde(default)]
    #[schemars(length(min = 1, max = 255))]
    pub key_argument: Option<Text>,
}

/// Method of an HTTP tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

/// Hints for clients; the names are those of the protocol. `readOnlyHint` and `idempotentHint` also decide delivery.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Annotations {
    /// The tool changes nothing.
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The tool may destroy something.
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// The same call twice changes nothing more.
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The tool reaches beyond a closed world.
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl Server {
    /// A stdio server as a command line names it; everything else at its default.
    pub fn stdio(command: &str, args: impl IntoIterator<Item = String>) -> Self {
        Self { command: Some(command.into()), args: args.into_iter().map(Text::from).collect(), ..Self::default() }
    }

    /// An HTTP server as a command line names it; everything else at its default.
    pub fn http(url: String, headers: impl IntoIterator<Item = (String, String)>) -> Self {
        let headers = headers.into_iter().map(|(name, value)| (name, Secret::from(value))).collect();
        Self { url: Some(url.into()), headers, ..Self::default() }
    }
}

fn yes() -> bool {
    true
}

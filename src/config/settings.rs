//! The sections that exist once: store, listener, worker, auth, times, limits. Upstream servers, tools and the policy of a
//! call are in `tools.rs`. Holds values only; what they mean is decided where they are used.

use super::redaction::Redaction;
use super::retention::{OwnRetention, Retention};
use super::secret::{Secret, Text};
pub use super::store::{Isolation, Migrate};
pub use super::telemetry::Telemetry;
use super::tools::{Defaults, OwnTool, Response, Server, WorkerTool};
use super::units::{Bytes, Millis};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The whole configuration of one `durable-mcp` process.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where executions are stored.
    pub store: Store,
    /// The HTTP listener.
    pub server: Listener,
    /// The worker inside this process.
    pub worker: Worker,
    /// Remote workers, which run tools over HTTP.
    pub workers: Workers,
    /// Who may call.
    pub auth: Auth,
    /// The timed right of a worker to work on an execution.
    pub lease: Lease,
    /// The loop that expires leases, promotes scheduled executions and applies retention.
    pub scheduler: Scheduler,
    /// MCP sessions of clients up to revision 2025-11-25.
    pub sessions: Sessions,
    /// How long ended executions are kept.
    pub retention: Retention,
    /// What is struck out of every call before anything of it is kept.
    pub redaction: Redaction,
    /// What holds for every tool that says nothing else.
    pub defaults: Defaults,
    /// `durable-mcp wrap`.
    pub wrap: Wrap,
    /// What holds for every tool that is an HTTP request.
    pub http_tools: HttpTools,
    /// Limits that fit nowhere else.
    pub limits: Limits,
    /// What is written to stderr.
    pub log: Log,
    /// What is told of this process to others: metrics, traces, faults.
    pub telemetry: Telemetry,
    /// The built-in tools that are opt-in; `durable_result` is always there.
    pub builtin: Builtin,
    /// Tenants beyond `default`, by name.
    #[schemars(extend("x-names" = 64))]
    pub namespaces: IndexMap<String, Namespace>,
    /// Upstream MCP servers, by name; the order decides collisions.
    #[schemars(extend("x-names" = 64))]
    pub servers: IndexMap<String, Server>,
    /// Commands and HTTP requests offered as tools, by tool name.
    #[schemars(extend("x-names" = 64))]
    pub tools: IndexMap<String, OwnTool>,
}

/// Where executions are stored.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// Address of the store: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`; without it a SQLite file in `data_dir`.
    #[schemars(extend("x-format" = "store", "x-secret" = false, "x-url" = true))]
    pub url: Option<Secret>,
    /// Folder for what the program writes by itself; without it the user's data folder.
    #[schemars(extend("x-format" = "path"))]
    pub data_dir: Option<Text>,
    /// Whether a start migrates the store or only checks that it is current.
    pub migrate: Migrate,
    /// PostgreSQL: where to listen for wake-ups, past a pooler; without it at `url`, unless that is a pooler.
    #[schemars(extend("x-format" = "postgres", "x-secret" = false, "x-url" = true))]
    pub listen_url: Option<Secret>,
    /// PostgreSQL: the schema of the tables; without it the first one of the role's `search_path`.
    #[schemars(length(min = 1, max = 63))]
    pub schema: Option<Text>,
    /// PostgreSQL: how far transactions are kept apart; what is written is right with both.
    pub isolation: Isolation,
    /// PostgreSQL: `url` leads to a pooler in transaction mode, where nothing outlives a transaction.
    pub pooled: bool,
    /// PostgreSQL: the certificates to trust, as a PEM file; without it those of the system.
    #[schemars(extend("x-format" = "path"))]
    pub root_certificates: Option<Text>,
    /// PostgreSQL: connections for reads and rare writes; writers and wake-ups have their own.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_connections: u32,
    /// PostgreSQL: a connection that nobody used for so long is closed.
    #[schemars(extend("x-min-ms" = 100))]
    pub connection_idle: Millis,
    /// PostgreSQL: a connection this old is closed once it is free, so that a fail-over or a new password reaches all.
    #[schemars(extend("x-min-ms" = 1000))]
    pub connection_life: Millis,
    /// PostgreSQL: how long opening a connection may take, TLS and password included.
    #[schemars(extend("x-min-ms" = 10))]
    pub connect_timeout: Millis,
    /// PostgreSQL: how long a statement may run.
    #[schemars(extend("x-min-ms" = 10))]
    pub statement_timeout: Millis,
    /// PostgreSQL: how long nothing may be heard of a commit before its connection is closed and the same is written again.
    #[schemars(extend("x-min-ms" = 10))]
    pub commit_deadline: Millis,
    /// PostgreSQL: how long a call may wait for the database in all before it is refused, to be repeated.
    #[schemars(extend("x-min-ms" = 10))]
    pub answer_deadline: Millis,
    /// PostgreSQL: how often other processes' changes are looked for where nothing wakes us.
    #[schemars(extend("x-min-ms" = 1, "x-max-ms" = 60_000))]
    pub poll_interval: Millis,
    /// PostgreSQL: a process of which nothing was heard for so long counts as dead.
    #[schemars(extend("x-min-ms" = 300, "x-max-ms" = 3_600_000))]
    pub process_ttl: Millis,
    /// How long a write waits for another process that holds the SQLite file.
    #[schemars(extend("x-min-ms" = 1))]
    pub busy_timeout: Millis,
    /// The most writes that share one commit.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_batch: u32,
    /// The most writes that wait for a commit; beyond it calls are refused as overload.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_queue: u32,
    /// SQLite: connections that only read.
    #[schemars(range(min = 1, max = 64))]
    pub readers: u32,
    /// PostgreSQL: connections that write executions; while one waits for its commit, the next one writes.
    #[schemars(range(min = 1, max = 16))]
    pub writers: u32,
}

/// The HTTP listener.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Listener {
    /// What a process does: `mcp` serves clients, `worker` runs tools, `scheduler` settles what is due. Processes that share a
    /// store can share the work in any way.
    #[schemars(length(min = 1, max = 3))]
    pub roles: Vec<Role>,
    /// Address and port to listen on; port 0 takes a free one. Beyond loopback only with `auth.mode`.
    #[schemars(with = "String", extend("x-format" = "listen"))]
    pub listen: SocketAddr,
    /// Host names accepted in `Host` besides those of the loopback; `*` accepts every one.
    #[schemars(length(max = 256), inner(length(min = 1)))]
    pub allowed_hosts: Vec<Text>,
    /// Web origins accepted in `Origin` besides the listener's own; `*` accepts every one.
    #[schemars(length(max = 256), inner(length(min = 1)))]
    pub allowed_origins: Vec<Text>,
    /// Path of the MCP endpoint.
    #[schemars(extend("x-format" = "url-path", "default" = "/mcp"))]
    pub path: Text,
    /// Path of the two endpoints of 2024-11-05 (HTTP+SSE), for clients that know nothing later: a GET is the stream, and says
    /// where messages are sent to. Absent: they are not served.
    #[schemars(extend("x-format" = "url-path"))]
    pub sse_path: Option<Text>,
    /// Whether each namespace is also served below the endpoint, as `/mcp/NAME`.
    pub namespace_paths: bool,
    /// The largest body of a request.
    #[schemars(extend("x-min-bytes" = 1024, "x-max-bytes" = 1_073_741_824))]
    pub max_body_bytes: Bytes,
    /// The deepest nesting of a JSON body.
    #[schemars(range(min = 8, max = 512))]
    pub max_depth: u32,
    /// The most open MCP sessions of one principal; beyond it `initialize` is answered with 429.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_sessions: u32,
    /// The most connections at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: u32,
    /// The most streams of `/api/v1/events` at once; beyond it the answer is 503.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_event_streams: u32,
    /// A stream of `/api/v1/events` ends after so long; its client takes it up again where it was and proves anew who it is.
    #[schemars(extend("x-min-ms" = 1000, "x-max-ms" = 86_400_000))]
    pub event_stream_life: Millis,
    /// The most calls in flight of one session or connection; beyond it a call is refused as overload.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_in_flight: u32,
    /// The most messages in one array (batches of revisions up to 2025-03-26).
    #[schemars(range(min = 1, max = 10_000))]
    pub max_batch: u32,
    /// The most messages that wait for a client that does not read, over stdio and over the endpoints of 2024-11-05; whoever has
    /// more to say waits.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_outbox: u32,
    /// The most resources that one session or one stream of `subscriptions/listen` follows, and the most tasks.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_subscriptions: u32,
    /// The most streams of `subscriptions/listen` at once; beyond it the request is refused as overload.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_subscription_streams: u32,
    /// How often `initialize` is answered, a second; beyond it the answer is 429.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_initialize_rate: u32,
    /// How many `initialize` may come at once before the rate counts.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_initialize_burst: u32,
    /// How often a quiet stream gets a comment, so that nobody between takes it for dead.
    #[schemars(extend("x-min-ms" = 10))]
    pub keep_alive: Millis,
    /// A call that ends within this time, with nothing else to say, is answered as JSON and not as a stream.
    pub json_within: Millis,
    /// The shortest interval at which a client is told to look at a task; it grows with the task's age.
    #[schemars(extend("x-min-ms" = 1))]
    pub min_task_poll: Millis,
    /// The longest interval at which a client is told to look at a task.
    #[schemars(extend("x-min-ms" = 1))]
    pub max_task_poll: Millis,
    /// A stream that its client can take up again (sessions since 2025-11-25) is closed after so long, and the client asks
    /// again; absent: never. For what ends long connections.
    #[schemars(extend("x-min-ms" = 10))]
    pub poll_after: Option<Millis>,
    /// How long a client whose stream was closed is asked to wait before it comes back.
    #[schemars(extend("x-min-ms" = 1, "x-max-ms" = 60_000))]
    pub retry: Millis,
    /// Form of an answer: `auto` follows `json_within`.
    pub response: Response,
    /// How long a connection may take to send the head of a request.
    #[schemars(extend("x-min-ms" = 10))]
    pub header_timeout: Millis,
    /// How long a request may take to send its body.
    #[schemars(extend("x-min-ms" = 10))]
    pub body_timeout: Millis,
    /// How long open requests and running calls get at shutdown; what is cut then is settled or goes on after the restart.
    pub shutdown_grace: Millis,
    /// How long new connections are still taken at shutdown while `/readyz` says 503, so that a load balancer can turn away.
    #[schemars(extend("x-max-ms" = 3_600_000))]
    pub drain_delay: Millis,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Mcp,
    Worker,
    Scheduler,
}

/// The worker inside this process.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Worker {
    /// Calls that run at once in this process.
    #[schemars(range(min = 1, max = 65_536))]
    pub slots: u32,
    /// How often the store is asked for work when no wake-up came.
    #[schemars(extend("x-min-ms" = 1))]
    pub poll_interval: Millis,
    /// The only entries of `servers` and `tools` that this process runs; without it all. The others are offered here all the
    /// same, and run by other processes on the same store.
    #[schemars(length(max = 10_000), inner(length(min = 1)))]
    pub runs: Option<Vec<Text>>,
}

/// Remote workers, which run tools over HTTP (`/worker/v1`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workers {
    /// The most workers registered at once; beyond it a registration is refused.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_registered: u32,
    /// The most tools of one worker.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_tools: u32,
    /// The largest description of one tool, schemas included.
    #[schemars(extend("x-min-bytes" = 1024, "x-max-bytes" = 1_073_741_824))]
    pub tool_bytes: Bytes,
    /// The most calls that one claim is answered with.
    #[schemars(range(min = 1, max = 10_000))]
    pub claim_max: u32,
    /// How long a claim waits for a call at most; never longer than two thirds of `lease.ttl`.
    #[schemars(extend("x-max-ms" = 3_600_000))]
    pub claim_wait_max: Millis,
    /// How long a call waits for the next claim of a worker that is at work, so that one write stores and leases it.
    #[schemars(extend("x-max-ms" = 1000))]
    pub claim_moment: Millis,
    /// The most named steps of one execution.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_steps: u32,
    /// The largest result of a step.
    #[schemars(extend("x-min-bytes" = 1, "x-max-bytes" = 1_073_741_824))]
    pub step_bytes: Bytes,
    /// The largest checkpoint.
    #[schemars(extend("x-min-bytes" = 1, "x-max-bytes" = 1_073_741_824))]
    pub checkpoint_bytes: Bytes,
    /// The operator's word on tools, by name; it stands over what a worker registers.
    #[schemars(extend("x-names" = 128))]
    pub tools: IndexMap<String, WorkerTool>,
}

/// Who may call.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// `none` on loopback only, `token` for hashed API keys, `proxy` for identity headers of listed peers.
    pub mode: AuthMode,
    /// Identity headers; used with mode `proxy`.
    pub proxy: Proxy,
}

/// How a request gets its principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    None,
    Token,
    Proxy,
}

/// Identity headers that an authenticating proxy sets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Proxy {
    /// Header that names the principal; a request without it is refused.
    #[schemars(extend("x-format" = "header", "default" = "x-forwarded-user"))]
    pub principal_header: Text,
    /// Header that names the namespace; absent in a request means `default`.
    #[schemars(extend("x-format" = "header", "default" = "x-durable-mcp-namespace"))]
    pub namespace_header: Text,
    /// Header with the scopes, separated by spaces or commas; absent in a request means `call read cancel`.
    #[schemars(extend("x-format" = "header", "default" = "x-durable-mcp-scopes"))]
    pub scopes_header: Text,
    /// Addresses or networks (`10.0.0.0/8`) of the proxies; anybody else is refused.
    #[schemars(length(max = 256), extend("items" = { "type": "string", "x-format": "network" }))]
    pub peers: Vec<Text>,
}

/// The timed right of a worker to work on an execution.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lease {
    /// How long a lease lasts without a heartbeat.
    #[schemars(extend("x-min-ms" = 10, "x-max-ms" = 86_400_000))]
    pub ttl: Millis,
    /// How often leases are extended; without it a third of `ttl`. Below `ttl`.
    #[schemars(extend("x-min-ms" = 1))]
    pub heartbeat: Option<Millis>,
}

/// The loop that keeps time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Scheduler {
    /// How often it looks; it also wakes at the next due time.
    #[schemars(extend("x-min-ms" = 1, "x-max-ms" = 3_600_000))]
    pub interval: Millis,
    /// The most executions settled in one step.
    #[schemars(range(min = 1, max = 10_000))]
    pub batch: u32,
}

/// MCP sessions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sessions {
    /// A session that nobody used for so long ends.
    #[schemars(extend("x-min-ms" = 10))]
    pub idle_timeout: Millis,
    /// How often the use of sessions is written down; a session may outlive its idle time by as much.
    #[schemars(extend("x-min-ms" = 10))]
    pub heartbeat: Millis,
}

/// `durable-mcp wrap`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Wrap {
    /// How long running calls get after the client closed stdin.
    #[schemars(extend("x-max-ms" = 86_400_000))]
    pub linger: Millis,
    /// Calls that `wrap --shadow` remembers to recognise repeats; beyond it the oldest are forgotten.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub shadow_calls: u32,
}

/// What holds for every tool that is an HTTP request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpTools {
    /// Hosts that may be called although their addresses are private, loopback or link-local, as the `url` of a tool has them.
    #[schemars(length(max = 256), inner(length(min = 1)))]
    pub private_hosts: Vec<Text>,
    /// How long a connection may take to open.
    #[schemars(extend("x-min-ms" = 10, "x-max-ms" = 3_600_000))]
    pub connect_timeout: Millis,
    /// The longest wait before the next attempt that a server may ask for with `Retry-After`.
    #[schemars(extend("x-max-ms" = 86_400_000))]
    pub max_retry_after: Millis,
}

/// Limits that fit nowhere else.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// How long a tool's question to the client waits for its answer. Then a form or link counts as cancelled by the user,
    /// and any other question fails the call.
    #[schemars(extend("x-min-ms" = 10))]
    pub input_timeout: Millis,
    /// The largest arguments of a call; larger ones are refused and nothing is stored.
    #[schemars(extend("x-min-bytes" = 1024, "x-max-bytes" = 1_073_741_824))]
    pub argument_bytes: Bytes,
    /// The largest result of a tool; a larger one is a failure of the attempt.
    #[schemars(extend("x-min-bytes" = 1024, "x-max-bytes" = 1_073_741_824))]
    pub result_bytes: Bytes,
    /// The most of a result that a caller is sent; of a longer one it gets the beginning, and how to read the rest. Without it
    /// all.
    #[schemars(extend("x-min-bytes" = 1024, "x-max-bytes" = 1_073_741_824))]
    pub answer_bytes: Option<Bytes>,
    /// The most bytes of true arguments that are kept in memory for calls that wait or may run again, where a rule of
    /// redaction strikes the stored ones; beyond it such calls are refused as overload.
    #[schemars(extend("x-min-bytes" = 1024, "x-max-bytes" = 1_073_741_824))]
    pub unredacted_bytes: Bytes,
    /// The most results under an older token that an execution records; later ones only count.
    #[schemars(range(min = 1, max = 10_000))]
    pub stale_results_per_execution: u32,
    /// The most callers that wait in this process.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub waiters: u32,
    /// Tools on one page of `tools/list`.
    #[schemars(range(min = 200, max = 10_000))]
    pub tools_per_page: u32,
    /// Lines a second that the stderr of one child may add to the log; the rest is counted.
    #[schemars(range(min = 1, max = 100_000))]
    pub child_log_rate: u32,
}

/// What is written to stderr.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// Level or filter: `error`, `warn`, `info`, `debug`, `trace`, or `warn,durable_mcp=debug`.
    #[schemars(length(min = 1, max = 1024), extend("x-format" = "log-filter", "default" = "info"))]
    pub level: Text,
    /// Form of a line.
    pub format: LogFormat,
}

/// Form of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

/// The built-in tools that are opt-in.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Builtin {
    /// Whether callers may cancel their executions by tool.
    pub durable_cancel: bool,
    /// Whether callers may list their executions by tool.
    pub durable_list: bool,
    /// Whether callers may order another attempt of an `unknown`; without it on in `wrap`, off in `serve`.
    pub durable_retry: Option<bool>,
}

/// A tenant beyond `default`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Namespace {
    /// Name for people.
    #[schemars(length(min = 1, max = 255))]
    pub display_name: Option<Text>,
    /// Tools that its callers see, by full name or with a `*` at the end; without it all.
    #[schemars(length(max = 10_000), inner(length(min = 1)))]
    pub tools: Option<Vec<Text>>,
    /// How long its ended executions are kept.
    pub retention: OwnRetention,
}

impl Namespace {
    /// Whether callers of this namespace may see and call the tool of this full name.
    pub fn allows(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|allowed| {
            allowed.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => tool.starts_with(start),
                None => tool == &**pattern,
            })
        })
    }
}

impl Lease {
    /// The heartbeat in force, in milliseconds: the one configured, else a third of the TTL.
    pub fn heartbeat_ms(&self) -> i64 {
        self.heartbeat.map_or((self.ttl.0 / 3).max(1), |heartbeat| heartbeat.0)
    }
}

//! The values that nobody has to write. Every number that the program takes without asking is here, and nowhere else.

use super::retention::{KeptSpans, Retention};
use super::settings::{
    Auth, AuthMode, HttpTools, Isolation, Lease, Limits, Listener, Log, LogFormat, Migrate, Proxy, Role, Scheduler,
    Sessions, Store, Worker, Workers, Wrap,
};
use super::tools::{
    DefaultIdempotency, DefaultRetry, DefaultTimeout, Defaults, OnDisconnect, OnTaskExpiry, OwnPolicy, Response,
    Restart, Server, ServerTool, Tasks, Unkeyed, WorkerTool,
};
use super::units::{Bytes, Millis};
use indexmap::IndexMap;
use std::net::SocketAddr;

impl Default for Store {
    fn default() -> Self {
        Self {
            url: None,
            data_dir: None,
            migrate: Migrate::Auto,
            listen_url: None,
            schema: None,
            isolation: Isolation::Serializable,
            pooled: false,
            root_certificates: None,
            max_connections: 8,
            connection_idle: Millis(60_000),
            connection_life: Millis(1_800_000),
            connect_timeout: Millis(10_000),
            statement_timeout: Millis(30_000),
            commit_deadline: Millis(3_000),
            answer_deadline: Millis(4_000),
            poll_interval: Millis(50),
            process_ttl: Millis(5_000),
            busy_timeout: Millis(5_000),
            max_batch: 256,
            max_queue: 16_384,
            readers: 4,
            writers: 4,
        }
    }
}

impl Default for Listener {
    fn default() -> Self {
        Self {
            roles: vec![Role::Mcp, Role::Worker, Role::Scheduler],
            listen: SocketAddr::from(([127, 0, 0, 1], 7400)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            path: "/mcp".into(),
            sse_path: None,
            namespace_paths: true,
            max_body_bytes: Bytes(4 << 20),
            max_depth: 64,
            max_sessions: 10_000,
            max_connections: 10_000,
            max_event_streams: 256,
            event_stream_life: Millis(300_000),
            max_in_flight: 1_000,
            max_batch: 100,
            max_outbox: 1_024,
            max_subscriptions: 1_000,
            max_subscription_streams: 10_000,
            max_initialize_rate: 100,
            max_initialize_burst: 1_000,
            keep_alive: Millis(10_000),
            json_within: Millis(1_000),
            min_task_poll: Millis(500),
            max_task_poll: Millis(5_000),
            poll_after: None,
            retry: Millis(1_000),
            response: Response::Auto,
            header_timeout: Millis(30_000),
            body_timeout: Millis(60_000),
            shutdown_grace: Millis(5_000),
            drain_delay: Millis(0),
        }
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self { slots: 64, poll_interval: Millis(1_000), runs: None }
    }
}

impl Default for Workers {
    fn default() -> Self {
        Self {
            max_registered: 1_000,
            max_tools: 256,
            tool_bytes: Bytes(64 << 10),
            claim_max: 64,
            claim_wait_max: Millis(30_000),
            claim_moment: Millis(3),
            max_steps: 1_000,
            step_bytes: Bytes(1 << 20),
            checkpoint_bytes: Bytes(256 << 10),
            tools: IndexMap::new(),
        }
    }
}

impl Default for Auth {
    fn default() -> Self {
        Self { mode: AuthMode::None, proxy: Proxy::default() }
    }
}

impl Default for Proxy {
    fn default() -> Self {
        Self {
            principal_header: "x-forwarded-user".into(),
            namespace_header: "x-durable-mcp-namespace".into(),
            scopes_header: "x-durable-mcp-scopes".into(),
            peers: Vec::new(),
        }
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self { ttl: Millis(30_000), heartbeat: None }
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self { interval: Millis(1_000), batch: 500 }
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self { idle_timeout: Millis(86_400_000), heartbeat: Millis(30_000) }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            payloads: Millis(7 * 86_400_000),
            executions: Millis(30 * 86_400_000),
            interval: Millis(60_000),
            batch: 20,
            share: 20,
            completed: KeptSpans::default(),
            failed: KeptSpans::default(),
            cancelled: KeptSpans::default(),
        }
    }
}

impl Default for Wrap {
    fn default() -> Self {
        Self { linger: Millis(600_000), shadow_calls: 10_000 }
    }
}

impl Default for HttpTools {
    fn default() -> Self {
        Self { private_hosts: Vec::new(), connect_timeout: Millis(10_000), max_retry_after: Millis(300_000) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_timeout: Millis(3_600_000),
            argument_bytes: Bytes(4 << 20),
            result_bytes: Bytes(16 << 20),
            answer_bytes: None,
            unredacted_bytes: Bytes(64 << 20),
            stale_results_per_execution: 16,
            waiters: 65_536,
            tools_per_page: 500,
            child_log_rate: 100,
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".into(), format: LogFormat::Text }
    }
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            // Most clients give up at 60 s.
            wait: Millis(50_000),
            timeout: DefaultTimeout::default(),
            retry: DefaultRetry::default(),
            idempotency: DefaultIdempotency::default(),
            on_disconnect: OnDisconnect::Detach,
            tasks: Tasks::Auto,
            task_after: Millis(1_000),
            task_ttl: Millis(86_400_000),
            on_task_expiry: OnTaskExpiry::Cancel,
            concurrency: 16,
            queue: 1_000,
            queue_timeout: Millis(30_000),
        }
    }
}

impl Default for DefaultTimeout {
    fn default() -> Self {
        Self { attempt: Millis(600_000), total: Millis(3_600_000), idle: Millis(0) }
    }
}

impl Default for DefaultRetry {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_interval: Millis(500),
            backoff_coefficient: 2.0,
            max_interval: Millis(30_000),
            jitter: 0.2,
            on: Vec::new(),
        }
    }
}

impl Default for DefaultIdempotency {
    fn default() -> Self {
        Self { unkeyed: Unkeyed::Reattach, reattach_window: Millis(600_000), ttl: Millis(86_400_000) }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: IndexMap::new(),
            cwd: None,
            url: None,
            headers: IndexMap::new(),
            prefix: None,
            enabled: true,
            concurrency: None,
            queue: None,
            queue_timeout: None,
            start_timeout: Millis(30_000),
            request_timeout: Millis(30_000),
            isolation: None,
            max_isolated: 64,
            isolated_idle: Millis(300_000),
            restart: Restart::default(),
            policy: OwnPolicy::default(),
            tools: IndexMap::new(),
        }
    }
}

impl Default for Restart {
    fn default() -> Self {
        Self { initial_interval: Millis(200), max_interval: Millis(30_000), reset_after: Millis(60_000) }
    }
}

impl Default for WorkerTool {
    fn default() -> Self {
        Self { enabled: true, policy: OwnPolicy::default(), key_argument: None }
    }
}

impl Default for ServerTool {
    fn default() -> Self {
        Self { enabled: true, policy: OwnPolicy::default(), key_argument: None, reconcile: None }
    }
}

//! The effective policy of a call: tool, then server, then `[defaults]`. Decides no delivery from hints: without a word of
//! the operator it stays open here.

use super::redaction::Redaction;
use super::secret::Text;
use super::settings::Config;
use super::tools::{
    Delivery, OnDisconnect, OnTaskExpiry, OwnPolicy, OwnRetry, OwnTimeout, Reconcile, Response, RetryOn, Tasks, Unkeyed,
};
use super::units::Millis;

/// Everything that a call of one tool needs to know. Times are milliseconds.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether clients see the tool.
    pub enabled: bool,
    /// What the operator said; `None` leaves it to the tool's hints.
    pub delivery: Option<Delivery>,
    pub wait_ms: i64,
    pub timeout: Timeout,
    pub retry: Retry,
    pub idempotency: Idempotency,
    pub on_disconnect: OnDisconnect,
    pub task: Task,
    pub response: Response,
    pub key_argument: Option<Text>,
    pub reconcile: Option<Reconcile>,
    /// The most of a result that a caller is sent.
    pub answer_bytes: Option<u64>,
    /// What is struck, of all levels.
    pub redaction: Redaction,
}

/// Time limits in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    pub attempt_ms: i64,
    pub total_ms: i64,
    /// `None`: silence is no reason to end an attempt.
    pub idle_ms: Option<i64>,
}

/// How a lost attempt is repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    pub max_attempts: u32,
    pub initial_interval_ms: i64,
    pub backoff_coefficient: f64,
    pub max_interval_ms: i64,
    pub jitter: f64,
    pub on: Vec<RetryOn>,
}

/// Keys and calls without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idempotency {
    pub unkeyed: Unkeyed,
    pub reattach_window_ms: i64,
    pub ttl_ms: i64,
}

/// Calls that become MCP tasks. Times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub tasks: Tasks,
    pub after_ms: i64,
    pub ttl_ms: i64,
    pub on_expiry: OnTaskExpiry,
}

/// How many calls run at once and how many wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    pub concurrency: u32,
    pub length: u32,
    pub timeout_ms: i64,
}

impl Config {
    /// Returns the policy of a tool of an upstream, by the upstream's own name of the tool. What is not configured is at
    /// its default.
    pub fn server_policy(&self, server: &str, tool: &str) -> Policy {
        let server = self.servers.get(server);
        let tool = server.and_then(|server| server.tools.get(tool));
        let layers: Vec<&OwnPolicy> =
            tool.map(|tool| &tool.policy).into_iter().chain(server.map(|server| &server.policy)).collect();
        Policy {
            enabled: tool.is_none_or(|tool| tool.enabled),
            key_argument: tool.and_then(|tool| tool.key_argument.clone()),
            reconcile: tool.and_then(|tool| tool.reconcile.clone()),
            ..self.policy(&layers)
        }
    }

    /// Returns the policy of a command tool; what is not configured is at its default.
    pub fn tool_policy(&self, tool: &str) -> Policy {
        let tool = self.tools.get(tool);
        let layers: Vec<&OwnPolicy> = tool.map(|tool| &tool.policy).into_iter().collect();
        Policy {
            enabled: tool.is_none_or(|tool| tool.enabled),
            key_argument: tool.and_then(|tool| tool.key_argument.clone()),
            ..self.policy(&layers)
        }
    }

    /// Returns the policy of a tool of remote workers; what is not configured is as the worker registered it, else at its
    /// default. The worker's word on delivery is not among it.
    pub fn worker_tool_policy(&self, tool: &str, timeout_ms: Option<i64>, max_attempts: Option<u32>) -> Policy {
        let tool = self.workers.tools.get(tool);
        let registered = OwnPolicy {
            timeout: OwnTimeout { attempt: timeout_ms.map(Millis), ..OwnTimeout::default() },
            retry: OwnRetry { max_attempts, ..OwnRetry::default() },
            ..OwnPolicy::default()
        };
        let layers: Vec<&OwnPolicy> = tool.map(|tool| &tool.policy).into_iter().chain([&registered]).collect();
        Policy {
            enabled: tool.is_none_or(|tool| tool.enabled),
            key_argument: tool.and_then(|tool| tool.key_argument.clone()),
            ..self.policy(&layers)
        }
    }

    /// Returns how many calls of a tool of remote workers wait for one.
    pub fn worker_tool_queue(&self) -> Queue {
        let defaults = &self.defaults;
        Queue { concurrency: defaults.concurrency, length: defaults.queue, timeout_ms: defaults.queue_timeout.0 }
    }

    /// Returns how many calls an upstream runs at once and how many wait for it.
    pub fn server_queue(&self, server: &str) -> Queue {
        let server = self.servers.get(server);
        let defaults = &self.defaults;
        Queue {
            concurrency: server.and_then(|server| server.concurrency).unwrap_or(defaults.concurrency),
            length: server.and_then(|server| server.queue).unwrap_or(defaults.queue),
            timeout_ms: server.and_then(|server| server.queue_timeout).unwrap_or(defaults.queue_timeout).0,
        }
    }

    /// Returns how many calls a command tool runs at once and how many wait for it.
    pub fn tool_queue(&self, tool: &str) -> Queue {
        let tool = self.tools.get(tool);
        let defaults = &self.defaults;
        Queue {
            concurrency: tool.and_then(|tool| tool.concurrency).unwrap_or(defaults.concurrency),
            length: tool.and_then(|tool| tool.queue).unwrap_or(defaults.queue),
            timeout_ms: tool.and_then(|tool| tool.queue_timeout).unwrap_or(defaults.queue_timeout).0,
        }
    }

    fn policy(&self, layers: &[&OwnPolicy]) -> Policy {
        let defaults = &self.defaults;
        let (timeout, retry, idempotency) = (&defaults.timeout, &defaults.retry, &defaults.idempotency);
        let idle = first(layers, |own| own.timeout.idle).unwrap_or(timeout.idle);
        Policy {
            enabled: true,
            delivery: first(layers, |own| own.delivery),
            wait_ms: first(layers, |own| own.wait).unwrap_or(defaults.wait).0,
            timeout: Timeout {
                attempt_ms: first(layers, |own| own.timeout.attempt).unwrap_or(timeout.attempt).0,
                total_ms: first(layers, |own| own.timeout.total).unwrap_or(timeout.total).0,
                idle_ms: (idle.0 > 0).then_some(idle.0),
            },
            retry: Retry {
                max_attempts: first(layers, |own| own.retry.max_attempts).unwrap_or(retry.max_attempts),
                initial_interval_ms: first(layers, |own| own.retry.initial_interval)
                    .unwrap_or(retry.initial_interval)
                    .0,
                backoff_coefficient: first(layers, |own| own.retry.backoff_coefficient)
                    .unwrap_or(retry.backoff_coefficient),
                max_interval_ms: first(layers, |own| own.retry.max_interval).unwrap_or(retry.max_interval).0,
                jitter: first(layers, |own| own.retry.jitter).unwrap_or(retry.jitter),
                on: first(layers, |own| own.retry.on.clone()).unwrap_or_else(|| retry.on.clone()),
            },
            idempotency: Idempotency {
                unkeyed: first(layers, |own| own.idempotency.unkeyed).unwrap_or(idempotency.unkeyed),
                reattach_window_ms: first(layers, |own| own.idempotency.reattach_window)
                    .unwrap_or(idempotency.reattach_window)
                    .0,
                ttl_ms: first(layers, |own| own.idempotency.ttl).unwrap_or(idempotency.ttl).0,
            },
            on_disconnect: first(layers, |own| own.on_disconnect).unwrap_or(defaults.on_disconnect),
            task: Task {
                tasks: first(layers, |own| own.tasks).unwrap_or(defaults.tasks),
                after_ms: first(layers, |own| own.task_after).unwrap_or(defaults.task_after).0,
                ttl_ms: first(layers, |own| own.task_ttl).unwrap_or(defaults.task_ttl).0,
                on_expiry: first(layers, |own| own.on_task_expiry).unwrap_or(defaults.on_task_expiry),
            },
            response: first(layers, |own| own.response).unwrap_or(self.server.response),
            key_argument: None,
            reconcile: None,
            answer_bytes: first(layers, |own| own.answer_bytes).or(self.limits.answer_bytes).map(|bytes| bytes.0),
            redaction: layers.iter().fold(self.redaction.clone(), |all, own| all.with(&own.redaction)),
        }
    }
}

/// The first layer that says something.
fn first<T>(layers: &[&OwnPolicy], read: impl Fn(&OwnPolicy) -> Option<T>) -> Option<T> {
    layers.iter().find_map(|own| read(own))
}

//! From the configuration to the settings of each floor. The one place that knows both.

use std::sync::Arc;
use std::time::Duration;

use crate::config;
use crate::config::retention::{KeptSpans, OwnRetention};
use crate::config::settings::{Config, Isolation, Migrate, Role};

use crate::config::units::Millis;
use crate::engine;
use crate::engine::catalog::{ResponseMode, Service, TaskService};
use crate::engine::slots::UpstreamLimits;
use crate::mcp::envelope;
use crate::mcp::exposure::Exposure;
use crate::mcp::{face, names};
use crate::model::decide::Limits;
use crate::model::execution::State;
use crate::model::policy::{Delivery, OnDisconnect, Timeouts, Unkeyed};
use crate::model::retry::{RetryOn, RetryPolicy};
use crate::store::{PostgresSettings, Retention, Slice, SqliteSettings, StoreSettings, postgres};
use crate::worker::rules::{Reconcile, Rules};

/// The settings of the store, whichever driver its URL asks for.
pub fn store(config: &Config) -> StoreSettings {
    let limits = Limits { notes_max: config.limits.stale_results_per_execution };
    let store = &config.store;
    let migrates = store.migrate == Migrate::Auto;
    let (queue_max, batch_max) = (store.max_queue as usize, store.max_batch as usize);
    let ms = |time: Millis| time.0.max(1) as u64;
    let sqlite = SqliteSettings {
        queue_max,
        batch_max,
        busy_timeout_ms: ms(store.busy_timeout),
        point_readers: store.readers as usize,
        migrates,
        limits,
        ..SqliteSettings::default()
    };
    let postgres = PostgresSettings {
        schema: store.schema.as_ref().map(|schema| schema[..].to_owned()),
        isolation: match store.isolation {
            Isolation::Serializable => postgres::Isolation::Serializable,
            Isolation::ReadCommitted => postgres::Isolation::ReadCommitted,
        },
        pool_max: store.max_connections as usize,
        writers: store.writers as usize,
        idle_timeout_ms: ms(store.connection_idle),
        lifetime_max_ms: ms(store.connection_life),
        connect_timeout_ms: ms(store.connect_timeout),
        statement_timeout_ms: ms(store.statement_timeout),
        commit_deadline_ms: ms(store.commit_deadline),
        answer_deadline_ms: ms(store.answer_deadline),
        queue_max,
        batch_max,
        poll_interval_ms: ms(store.poll_interval),
        process_ttl_ms: ms(store.process_ttl),
        listen_url: store.listen_url.as_ref().map(|url| url.expose().to_owned()),
        migrates,
        pooled: store.pooled,
        root_certificates: store.root_certificates.as_ref().map(|path| path[..].into()),
        limits,
        ..PostgresSettings::default()
    };
    StoreSettings { sqlite, postgres }
}

/// The engine's settings. `bound`: executions belong to this process (`wrap`).
pub fn engine(config: &Config, bound: bool) -> engine::Settings {
    engine::Settings {
        lease_ttl_ms: config.lease.ttl.0,
        heartbeat_ms: config.lease.heartbeat_ms(),
        scheduler_interval_ms: config.scheduler.interval.0,
        scheduler_batch: config.scheduler.batch as usize,
        retention: Retention {
            payloads_ms: config.retention.payloads.0,
            executions_ms: config.retention.executions.0,
            batch: config.retention.batch as usize,
        },
        retention_rules: retention_rules(config),
        retention_share: config.retention.share,
        retention_interval_ms: config.retention.interval.0,
        slots: config.worker.slots as usize,
        worker_poll_ms: millis(config.worker.poll_interval.0).max(1),
        waiters_max: config.limits.waiters as usize,
        input_timeout_ms: config.limits.input_timeout.0,
        redaction: redaction(config),
        bound,
        metric_tools_max: config.telemetry.metric_tools as usize,
        result_bytes_max: config.limits.result_bytes.len(),
        remote: remote(config),
        sessions: engine::sessions::Settings {
            idle_ms: config.sessions.idle_timeout.0,
            heartbeat_ms: config.sessions.heartbeat.0,
            principal_max: config.server.max_sessions as usize,
            subscriptions_max: config.server.max_subscriptions as usize,
        },
        ..engine::Settings::default()
    }
}

/// How long what is kept, of whom: a rule for each namespace with spans of its own, and for each state in which they
/// differ; the last ones are for all others.
pub fn retention_rules(config: &Config) -> Vec<(Slice, Retention)> {
    let all = &config.retention;
    let batch = all.batch as usize;
    let states = [State::Completed, State::Failed, State::Cancelled];
    let of_state = |state: State, completed: KeptSpans, failed: KeptSpans, cancelled: KeptSpans| match state {
        State::Completed => completed,
        State::Failed => failed,
        _ => cancelled,
    };
    let named = config.namespaces.iter().filter(|(_, namespace)| namespace.retention != OwnRetention::default());
    let own = named.clone().map(|(name, namespace)| (Some(name.clone()), namespace.retention));
    let but: Vec<String> = named.map(|(name, _)| name.clone()).collect();
    let mut rules = Vec::new();
    for (namespace, own) in own.chain([(None, OwnRetention::default())]) {
        let spans = states.map(|state| {
            let inner = of_state(state, own.completed, own.failed, own.cancelled);
            let outer = of_state(state, all.completed, all.failed, all.cancelled);
            let payloads = inner.payloads.or(own.payloads).or(outer.payloads).unwrap_or(all.payloads);
            let executions = inner.executions.or(own.executions).or(outer.executions).unwrap_or(all.executions);
            Retention { payloads_ms: payloads.0, executions_ms: executions.0, batch }
        });
        let but = if namespace.is_none() { but.clone() } else { Vec::new() };
        let slice = Slice { state: None, namespace, but };
        match spans.iter().all(|other| *other == spans[0]) {
            true => rules.push((slice, spans[0])),
            false => rules.extend(
                states.iter().zip(spans).map(|(state, spans)| (Slice { state: Some(*state), ..slice.clone() }, spans)),
            ),
        }
    }
    rules
}

/// What is struck out of calls.
fn redaction(config: &Config) -> engine::redaction::Settings {
    let of_servers = config
        .servers
        .values()
        .flat_map(|server| std::iter::once(&server.policy).chain(server.tools.values().map(|tool| &tool.policy)));
    let of_tools = config.tools.values().map(|tool| &tool.policy);
    let of_workers = config.workers.tools.values().map(|tool| &tool.policy);
    let mut own = of_servers.chain(of_tools).chain(of_workers).map(|policy| &policy.redaction);
    engine::redaction::Settings {
        rules: Arc::new(config.redaction.rules()),
        is_on: !config.redaction.is_empty() || own.any(|rules| !rules.is_empty()),
        held_bytes_max: config.limits.unredacted_bytes.len(),
    }
}

/// What a process does.
pub fn roles(config: &Config) -> engine::Roles {
    let has = |role| config.server.roles.contains(&role);
    engine::Roles { mcp: has(Role::Mcp), worker: has(Role::Worker), scheduler: has(Role::Scheduler) }
}

/// How the engine works with remote workers.
fn remote(config: &Config) -> engine::remote::Settings {
    let workers = &config.workers;
    engine::remote::Settings {
        workers_max: workers.max_registered as usize,
        claim_max: workers.claim_max as usize,
        claim_wait_max_ms: workers.claim_wait_max.0,
        claim_moment_ms: millis(workers.claim_moment.0),
        steps_max: workers.max_steps as usize,
        queue: limits(config.worker_tool_queue()),
    }
}

/// What the worker routes accept.
pub fn worker_limits(config: &Config) -> crate::http::worker::Limits {
    let workers = &config.workers;
    crate::http::worker::Limits {
        tools: workers.max_tools as usize,
        tool_bytes: workers.tool_bytes.len(),
        step_bytes: workers.step_bytes.len(),
        checkpoint_bytes: workers.checkpoint_bytes.len(),
        result_bytes: config.limits.result_bytes.len(),
        depth: config.server.max_depth as usize,
    }
}

/// The bounds of the streams of events.
pub fn stream_limits(config: &Config) -> crate::http::events::Limits {
    let server = &config.server;
    crate::http::events::Limits { streams: server.max_event_streams as usize, life: duration(server.event_stream_life) }
}

/// The protocol face's settings. `retry`: `durable_retry` where the configuration says nothing.
pub fn face(config: &Config, retry: bool) -> face::Settings {
    let builtin = &config.builtin;
    face::Settings {
        envelope: envelope::Limits {
            bytes_max: config.server.max_body_bytes.len(),
            depth_max: config.server.max_depth as usize,
            batch_max: config.server.max_batch as usize,
        },
        body_timeout_ms: millis(config.server.body_timeout.0),
        response: response(config.server.response),
        json_within_ms: millis(config.server.json_within.0),
        keep_alive_ms: millis(config.server.keep_alive.0),
        task_poll_min_ms: config.server.min_task_poll.0,
        task_poll_max_ms: config.server.max_task_poll.0,
        page_size: config.limits.tools_per_page as usize,
        poll_after_ms: config.server.poll_after.as_ref().map(|after| millis(after.0)),
        retry_ms: millis(config.server.retry.0),
        initialize_rate: config.server.max_initialize_rate,
        initialize_burst: config.server.max_initialize_burst,
        in_flight_max: config.server.max_in_flight as usize,
        outbox_max: config.server.max_outbox as usize,
        listeners_max: config.server.max_subscription_streams as usize,
        argument_bytes_max: config.limits.argument_bytes.len(),
        result_wait_ms: config.defaults.wait.0,
        builtins: face::Builtins {
            cancel: builtin.durable_cancel,
            list: builtin.durable_list,
            retry: builtin.durable_retry.unwrap_or(retry),
        },
        ..face::Settings::default()
    }
}

/// What is shown of the servers to whom, besides tools. `unchanged`: names stay as they are (`wrap`).
pub fn exposure(config: &Config, unchanged: bool) -> Exposure {
    let servers = config.servers.iter().filter(|_| !unchanged);
    let prefix = |(name, server): (&String, &config::tools::Server)| {
        let default = || format!("{name}{}", names::SEPARATOR);
        (name.clone(), server.prefix.as_ref().map_or_else(default, |prefix| prefix.to_string()))
    };
    let patterns = config.namespaces.iter().filter_map(|(name, namespace)| {
        let tools = namespace.tools.as_ref()?;
        Some((name.clone(), tools.iter().map(|pattern| pattern.to_string()).collect()))
    });
    Exposure { prefixes: servers.map(prefix).collect(), patterns: patterns.collect() }
}

/// The rules of a tool. `namespaces`: who may call it; absent: all.
pub fn rules(policy: &config::Policy, namespaces: Option<Vec<String>>) -> Rules {
    Rules {
        enabled: policy.enabled,
        delivery: policy.delivery.map(|delivery| match delivery {
            config::tools::Delivery::AtLeastOnce => Delivery::AtLeastOnce,
            config::tools::Delivery::AtMostOnce => Delivery::AtMostOnce,
        }),
        registered_delivery: None,
        retry: RetryPolicy {
            max_attempts: policy.retry.max_attempts,
            initial_interval_ms: policy.retry.initial_interval_ms,
            backoff_coefficient: policy.retry.backoff_coefficient,
            max_interval_ms: policy.retry.max_interval_ms,
            jitter: policy.retry.jitter,
            on: RetryOn {
                tool_error: policy.retry.on.contains(&config::tools::RetryOn::ToolError),
                rpc_error: policy.retry.on.contains(&config::tools::RetryOn::RpcError),
            },
        },
        timeouts: Timeouts {
            attempt_ms: policy.timeout.attempt_ms,
            total_ms: policy.timeout.total_ms,
            idle_ms: policy.timeout.idle_ms,
        },
        unkeyed: match policy.idempotency.unkeyed {
            config::tools::Unkeyed::Reattach => Unkeyed::Reattach,
            config::tools::Unkeyed::Coalesce => Unkeyed::Coalesce,
            config::tools::Unkeyed::None => Unkeyed::None,
        },
        reattach_window_ms: policy.idempotency.reattach_window_ms,
        key_ttl_ms: policy.idempotency.ttl_ms,
        service: Service {
            wait_ms: policy.wait_ms,
            key_argument: policy.key_argument.as_ref().map(|name| name.to_string()),
            on_disconnect: match policy.on_disconnect {
                config::tools::OnDisconnect::Detach => OnDisconnect::Detach,
                config::tools::OnDisconnect::Cancel => OnDisconnect::Cancel,
            },
            response: Some(response(policy.response)),
            task: TaskService {
                tasks: policy.task.tasks,
                after_ms: policy.task.after_ms,
                ttl_ms: policy.task.ttl_ms,
                on_expiry: policy.task.on_expiry,
            },
            namespaces,
            answer_bytes_max: policy.answer_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        },
        redact: Arc::new(policy.redaction.rules()),
        reconcile: policy.reconcile.as_ref().map(|reconcile| Reconcile {
            tool: reconcile.tool.to_string(),
            arguments: reconcile.arguments.raw().get().to_owned(),
            matches: reconcile.matches.to_string(),
        }),
    }
}

/// The bounds of one upstream.
pub fn limits(queue: config::Queue) -> UpstreamLimits {
    UpstreamLimits {
        concurrency: queue.concurrency as usize,
        queue: queue.length as usize,
        queue_timeout_ms: queue.timeout_ms,
    }
}

/// A duration of the configuration.
pub fn duration(millis: config::units::Millis) -> Duration {
    millis.duration()
}

fn response(response: config::tools::Response) -> ResponseMode {
    match response {
        config::tools::Response::Auto => ResponseMode::Auto,
        config::tools::Response::Json => ResponseMode::Json,
        config::tools::Response::Sse => ResponseMode::Sse,
    }
}

fn millis(ms: i64) -> u64 {
    ms.max(0) as u64
}

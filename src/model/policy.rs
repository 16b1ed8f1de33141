//! What the configuration and a tool's annotations decide about a call: delivery, retries, time-outs, identity.
//! Holds the effective values only; reads no configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::retry::RetryPolicy;

/// What may happen to a call whose attempt was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Run again, up to the policy's attempts.
    AtLeastOnce,
    /// Never run again by itself: the outcome is `unknown`.
    AtMostOnce,
}

impl Delivery {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Delivery::AtLeastOnce => "at_least_once",
            Delivery::AtMostOnce => "at_most_once",
        }
    }

    /// Reads a wire name.
    pub fn parse(text: &str) -> Option<Self> {
        [Delivery::AtLeastOnce, Delivery::AtMostOnce].into_iter().find(|d| d.as_str() == text)
    }
}

/// Why a tool has its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliverySource {
    /// The operator's configuration said so.
    Config,
    /// The remote worker that registered the tool said so.
    Worker,
    /// The tool's annotation `readOnlyHint: true`.
    ReadOnlyHint,
    /// The tool's annotation `idempotentHint: true`.
    IdempotentHint,
    /// Nothing was said: the safe value.
    Default,
}

impl DeliverySource {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliverySource::Config => "config",
            DeliverySource::Worker => "worker",
            DeliverySource::ReadOnlyHint => "read_only_hint",
            DeliverySource::IdempotentHint => "idempotent_hint",
            DeliverySource::Default => "default",
        }
    }
}

/// The hints of a tool that bear on delivery (MCP `ToolAnnotations`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: bool,
    /// Repeating a call has no further effect.
    pub idempotent: bool,
}

/// First match wins: the operator's word, then that of the worker that registered the tool, then the hints, then the
/// safe value.
pub fn effective_delivery(
    configured: Option<Delivery>,
    registered: Option<Delivery>,
    hints: Hints,
) -> (Delivery, DeliverySource) {
    match configured.or(registered) {
        Some(delivery) if configured.is_some() => (delivery, DeliverySource::Config),
        Some(delivery) => (delivery, DeliverySource::Worker),
        None if hints.read_only => (Delivery::AtLeastOnce, DeliverySource::ReadOnlyHint),
        None if hints.idempotent => (Delivery::AtLeastOnce, DeliverySource::IdempotentHint),
        None => (Delivery::AtMostOnce, DeliverySource::Default),
    }
}

/// What an unkeyed call does when an equal one exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unkeyed {
    /// Attach to an earlier equal call that nobody waits for any more and whose end nobody was told.
    #[default]
    Reattach,
    /// Attach also while the first caller still waits.
    Coalesce,
    /// Every call is new.
    None,
}

/// What a client's leaving means for the execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// The work goes on.
    #[default]
    Detach,
    /// The execution is cancelled.
    Cancel,
}

/// Whether calls of a tool become tasks for clients that know tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tasks {
    /// When they take longer than a moment.
    #[default]
    Auto,
    /// At once.
    Always,
    /// Never.
    Never,
    /// At once, and clients that do not know them are refused.
    Required,
}

/// What the end of a task's time means for work that still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTaskExpiry {
    /// It is cancelled: nobody can ask for it any more.
    #[default]
    Cancel,
    /// It goes on.
    Detach,
}

impl OnTaskExpiry {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            OnTaskExpiry::Cancel => "cancel",
            OnTaskExpiry::Detach => "detach",
        }
    }

    /// Reads a wire name.
    pub fn parse(text: &str) -> Option<Self> {
        [OnTaskExpiry::Cancel, OnTaskExpiry::Detach].into_iter().find(|policy| policy.as_str() == text)
    }
}

/// How long things may take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// One attempt, from its lease.
    pub attempt_ms: i64,
    /// The whole execution, from its submission, back-off and queue included.
    pub total_ms: i64,
    /// No progress for so long; absent means no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<i64>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { attempt_ms: 600_000, total_ms: 3_600_000, idle_ms: None }
    }
}

/// The part of a tool's policy that is stored with each of its executions: decisions made later, perhaps by another
/// process with another configuration, follow what was promised at submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// What may happen to a lost attempt.
    pub delivery: Delivery,
    /// Where `delivery` came from.
    pub delivery_source: DeliverySource,
    /// Attempts and back-off.
    pub retry: RetryPolicy,
    /// Time limits.
    pub timeouts: Timeouts,
    /// The stored arguments are not those of the call: only the process that took it in can run it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub arguments_redacted: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            delivery: Delivery::AtMostOnce,
            delivery_source: DeliverySource::Default,
            retry: RetryPolicy::default(),
            timeouts: Timeouts::default(),
            arguments_redacted: false,
        }
    }
}

/// How unkeyed and repeated calls of a tool are told apart. Durations in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What a call without a key does.
    pub unkeyed: Unkeyed,
    /// How long after its end an undelivered execution takes a repeat.
    pub reattach_window_ms: i64,
    /// How long a key lives after the end.
    pub key_ttl_ms: i64,
    /// A read-only tool attaches only while running, or when the earlier caller got a handle.
    pub read_only: bool,
}

impl Default for Identity {
    fn default() -> Self {
        Self { unkeyed: Unkeyed::Reattach, reattach_window_ms: 600_000, key_ttl_ms: 86_400_000, read_only: false }
    }
}

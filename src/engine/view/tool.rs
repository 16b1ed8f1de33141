//! A tool as it is offered: its effective policy, and who said each part of it.

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::engine::catalog::{ResponseMode, Tool};
use crate::model::policy::{DeliverySource, OnDisconnect, Unkeyed};

/// Who said what a setting of a tool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingSource {
    /// The configuration of the tool.
    Tool,
    /// The configuration of its server.
    Server,
    /// The configuration's defaults.
    Defaults,
    /// The remote worker that registered the tool.
    Worker,
    /// The tool's annotation `readOnlyHint: true`.
    ReadOnlyHint,
    /// The tool's annotation `idempotentHint: true`.
    IdempotentHint,
    /// Nobody said anything.
    BuiltIn,
}

/// Who said what a setting of a tool is, by the name that the setting has in the configuration.
pub type SourceOf = Arc<dyn Fn(&Tool, &str) -> SettingSource + Send + Sync>;

/// A setting in force.
#[derive(Clone, Debug, Serialize, ToSchema, JsonSchema)]
#[schema(as = ToolSetting)]
#[schemars(rename = "ToolSetting")]
pub struct SettingView {
    /// The value of a setting that is no duration; null: off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub value: Option<Value>,
    /// The value of a duration, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_ms: Option<i64>,
    /// Who said so.
    pub source: SettingSource,
}

/// How the server of a tool stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamState {
    /// It has not answered since this process started; what it offers is what is known from before.
    Starting,
    /// It answers.
    Up,
    /// It does not; its calls wait or are refused.
    Down,
    /// Nobody runs it now: this is what is known of it.
    Known,
}

/// A tool.
#[derive(Clone, Debug, Serialize, ToSchema, JsonSchema)]
#[schema(as = Tool)]
#[schemars(rename = "Tool")]
pub struct ToolView<'a> {
    /// The name clients call it by.
    pub name: &'a str,
    /// Its own name at its upstream.
    pub tool: &'a str,
    /// Whose tool.
    pub upstream: &'a str,
    /// How its upstream stands.
    pub upstream_state: UpstreamState,
    /// The name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Its policy, by the names that the settings have in the configuration.
    #[schema(value_type = std::collections::HashMap<String, SettingView>)]
    pub policy: IndexMap<&'static str, SettingView>,
    /// The tool object as its server gave it, byte for byte; only when one tool is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub definition: Option<&'a RawValue>,
}

/// What people read of a definition.
#[derive(Default, Deserialize)]
struct Words {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

impl<'a> ToolView<'a> {
    /// The view of a tool without its definition.
    pub fn of(tool: &'a Tool, upstream_state: UpstreamState, sources: &SourceOf) -> Self {
        let words: Words = serde_json::from_str(tool.definition.get()).unwrap_or_default();
        Self {
            name: &tool.exposed,
            tool: &tool.name,
            upstream: &tool.upstream,
            upstream_state,
            title: words.title,
            description: words.description,
            policy: policy(tool, sources),
            definition: None,
        }
    }

    /// The same with the definition.
    pub fn whole(self, tool: &'a Tool) -> Self {
        Self { definition: Some(&tool.definition), ..self }
    }
}

fn policy(tool: &Tool, sources: &SourceOf) -> IndexMap<&'static str, SettingView> {
    let (retry, timeouts) = (&tool.policy.retry, tool.policy.timeouts);
    let (identity, service) = (&tool.identity, &tool.service);
    let plain = |value: Value| (Some(value), None);
    let duration = |ms: i64| (None, Some(ms));
    let on: Vec<&str> = [(retry.on.tool_error, "tool_error"), (retry.on.rpc_error, "rpc_error")]
        .into_iter()
        .filter_map(|(is_on, name)| is_on.then_some(name))
        .collect();
    let unkeyed = match identity.unkeyed {
        Unkeyed::Reattach => "reattach",
        Unkeyed::Coalesce => "coalesce",
        Unkeyed::None => "none",
    };
    let on_disconnect = match service.on_disconnect {
        OnDisconnect::Detach => "detach",
        OnDisconnect::Cancel => "cancel",
    };
    let response = match service.response.unwrap_or_default() {
        ResponseMode::Auto => "auto",
        ResponseMode::Json => "json",
        ResponseMode::Sse => "sse",
    };
    let settings = [
        ("delivery", plain(json!(tool.policy.delivery.as_str()))),
        ("wait", duration(service.wait_ms)),
        ("timeout.attempt", duration(timeouts.attempt_ms)),
        ("timeout.total", duration(timeouts.total_ms)),
        ("timeout.idle", timeouts.idle_ms.map_or(plain(Value::Null), duration)),
        ("retry.max_attempts", plain(json!(retry.max_attempts))),
        ("retry.initial_interval", duration(retry.initial_interval_ms)),
        ("retry.backoff_coefficient", plain(json!(retry.backoff_coefficient))),
        ("retry.max_interval", duration(retry.max_interval_ms)),
        ("retry.jitter", plain(json!(retry.jitter))),
        ("retry.on", plain(json!(on))),
        ("idempotency.unkeyed", plain(json!(unkeyed))),
        ("idempotency.reattach_window", duration(identity.reattach_window_ms)),
        ("idempotency.ttl", duration(identity.key_ttl_ms)),
        ("key_argument", plain(json!(service.key_argument))),
        ("on_disconnect", plain(json!(on_disconnect))),
        ("response", plain(json!(response))),
        ("tasks", plain(json!(service.task.tasks))),
        ("task_after", duration(service.task.after_ms)),
        ("task_ttl", duration(service.task.ttl_ms)),
        ("on_task_expiry", plain(json!(service.task.on_expiry))),
    ];
    let view = |(name, (value, value_ms)): (&'static str, (Option<Value>, Option<i64>))| {
        let source = match (name, tool.policy.delivery_source) {
            ("delivery", DeliverySource::Worker) => SettingSource::Worker,
            ("delivery", DeliverySource::ReadOnlyHint) => SettingSource::ReadOnlyHint,
            ("delivery", DeliverySource::IdempotentHint) => SettingSource::IdempotentHint,
            ("delivery", DeliverySource::Default) => SettingSource::BuiltIn,
            _ => sources(tool, name),
        };
        (name, SettingView { value, value_ms, source })
    };
    settings.into_iter().map(view).collect()
}

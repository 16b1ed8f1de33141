//! Executions, events and results as people and programs see them: one JSON shape for the CLI and the HTTP API. Decides
//! nothing about who may see what.

mod change;
mod tool;

pub use change::ChangeView;
pub use tool::{SettingSource, SettingView, SourceOf, ToolView, UpstreamState};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::model::event::{Event, EventRecord};
use crate::model::execution::{Effect, ErrorInfo, Head, ResultSource, State};
use crate::model::policy::{Delivery, DeliverySource};
use crate::store::{Payload, PayloadKind};

#[cfg(test)]
mod tests;

/// A time in milliseconds since the epoch, written as RFC 3339 in UTC with exactly three decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema, JsonSchema)]
#[schemars(with = "String", extend("format" = "date-time"))]
#[schema(value_type = String, format = DateTime, example = "2026-11-29T08:00:00.000Z")]
pub struct Time(pub i64);

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Outside the years a timestamp can hold the nearest end is shown: a listing must not fail for one damaged row.
        let end = if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        write!(f, "{:.3}", Timestamp::from_millisecond(self.0).unwrap_or(end))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An execution. Every member is always there; `null` says that it does not apply.
#[derive(Clone, Debug, Serialize, ToSchema, JsonSchema)]
#[schema(as = Execution)]
#[schemars(rename = "Execution")]
pub struct ExecutionView<'a> {
    /// The id.
    pub id: String,
    /// Where it stands.
    #[schemars(with = "State")]
    pub state: &'static str,
    /// The tool's own name at its upstream.
    pub tool: &'a str,
    /// Whose tool.
    pub upstream: &'a str,
    /// The tenant border.
    pub namespace: &'a str,
    /// Who called.
    pub principal: &'a str,
    /// The client's idempotency key.
    pub key: Option<&'a str>,
    /// Tries so far.
    pub attempt: u32,
    /// Tries permitted.
    pub attempts_allowed: u32,
    /// What may happen to a call whose attempt was lost.
    #[schemars(with = "Delivery")]
    pub delivery: &'static str,
    /// Why it has this delivery.
    #[schemars(with = "DeliverySource")]
    pub delivery_source: &'static str,
    /// The newest fencing token; 0 before the first lease.
    pub fencing_token: i64,
    /// When it was submitted.
    pub created_at: Time,
    /// When the last event happened.
    pub updated_at: Time,
    /// When a scheduled execution is due.
    pub run_at: Option<Time>,
    /// When it ended, or became `unknown`.
    pub ended_at: Option<Time>,
    /// Why there is no result, or why the last attempt was lost.
    pub error: Option<&'a ErrorInfo>,
    /// Whether a cancelled call may have had its effect.
    pub effect: Option<Effect>,
    /// Where the result came from.
    pub source: Option<ResultSource>,
    /// The result's `isError`; absent without a result.
    pub is_error: Option<bool>,
    /// The execution this one was ordered to repeat.
    pub retry_of: Option<String>,
    /// The key the tool got for its own external writes.
    pub effect_key: String,
    /// The current lease.
    pub lease: Option<LeaseView<'a>>,
}

/// A lease as it is shown.
#[derive(Clone, Debug, Serialize, ToSchema, JsonSchema)]
#[schema(as = Lease)]
#[schemars(rename = "Lease")]
pub struct LeaseView<'a> {
    /// Who holds it.
    pub worker: &'a str,
    /// When it ends without a heartbeat.
    pub expires_at: Time,
}

impl<'a> ExecutionView<'a> {
    /// The view of a row.
    pub fn of(head: &'a Head) -> Self {
        let ident = &head.ident;
        Self {
            id: ident.id.to_string(),
            state: head.state.as_str(),
            tool: &ident.tool,
            upstream: &ident.upstream,
            namespace: &ident.namespace,
            principal: &ident.principal,
            key: ident.key.as_deref(),
            attempt: head.attempt,
            attempts_allowed: head.attempts_allowed,
            delivery: ident.policy.delivery.as_str(),
            delivery_source: ident.policy.delivery_source.as_str(),
            fencing_token: head.fencing_token,
            created_at: Time(head.created_at_ms),
            updated_at: Time(head.updated_at_ms),
            run_at: (head.state == State::Scheduled).then_some(Time(head.run_at_ms)),
            ended_at: head.ended_at_ms.map(Time),
            error: head.error.as_ref(),
            effect: head.effect,
            source: head.source,
            is_error: (head.state == State::Completed).then_some(head.is_error),
            retry_of: ident.retry_of.map(|id| id.to_string()),
            effect_key: ident.effect_key.to_string(),
            lease: head
                .lease
                .as_ref()
                .map(|lease| LeaseView { worker: &lease.worker, expires_at: Time(lease.expires_at_ms) }),
        }
    }
}

/// An event: its place, its type, its time, then its own members.
#[derive(Clone, Debug, Serialize, ToSchema, JsonSchema)]
#[schema(as = Event)]
#[schemars(rename = "Event")]
pub struct EventView {
    /// 1..n without gaps.
    pub seq: i64,
    /// The wire name.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// When it happened.
    pub at: Time,
    /// When it will run, for events that say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Time>,
    /// The event's own members.
    #[serde(flatten)]
    #[schema(value_type = std::collections::HashMap<String, Value>)]
    pub members: Map<String, Value>,
}

impl EventView {
    /// The view of an event.
    pub fn of(record: &EventRecord) -> Self {
        let mut members = match serde_json::to_value(&record.event) {
            Ok(Value::Object(members)) => members,
            // Events are structs of strings and integers; there is nothing in them that has no JSON.
            _ => Map::new(),
        };
        members.remove("type");
        members.remove("run_at_ms");
        let run_at = match &record.event {
            Event::Submitted { run_at_ms, .. } => run_at_ms.map(Time),
            Event::Retried { run_at_ms, .. } => Some(Time(*run_at_ms)),
            _ => None,
        };
        Self { seq: record.seq, kind: record.event.name(), at: Time(record.at_ms), run_at, members }
    }
}

/// What became of an execution, with the exact text that its tool gave.
#[derive(Serialize, ToSchema, JsonSchema)]
#[schema(as = Ending)]
#[schemars(rename = "Ending")]
pub struct ResultView<'a> {
    /// The id.
    pub id: String,
    /// Where it stands.
    #[schemars(with = "State")]
    pub state: &'static str,
    /// The result's `isError`; absent without a result.
    pub is_error: Option<bool>,
    /// The tool's whole result, byte for byte.
    #[schema(value_type = Option<Object>)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub result: Option<&'a RawValue>,
    /// The upstream's whole JSON-RPC error, byte for byte.
    #[schema(value_type = Option<Object>)]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub rpc_error: Option<&'a RawValue>,
    /// Why there is no result.
    pub error: Option<&'a ErrorInfo>,
    /// True when there was a result and retention took it.
    pub deleted: bool,
}

impl<'a> ResultView<'a> {
    /// The view of a row with its payload. Errors: what is stored is no JSON.
    pub fn of(head: &'a Head, payload: Option<&'a Payload>) -> serde_json::Result<Self> {
        let raw: Option<&RawValue> = payload.map(|text| serde_json::from_str(text)).transpose()?;
        let completed = head.state == State::Completed;
        Ok(Self {
            id: head.id().to_string(),
            state: head.state.as_str(),
            is_error: completed.then_some(head.is_error),
            result: raw.filter(|_| completed),
            rpc_error: raw.filter(|_| !completed),
            error: head.error.as_ref(),
            deleted: completed && raw.is_none(),
        })
    }

    /// Which payload tells what became of an execution in this state.
    pub fn payload_kind(state: State) -> Option<PayloadKind> {
        match state {
            State::Completed => Some(PayloadKind::Result),
            State::Failed => Some(PayloadKind::Error),
            _ => None,
        }
    }
}

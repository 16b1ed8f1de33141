//! Registering, its end, and how much waits: who runs what.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::Desk;
use super::body::{self, invalid};
use crate::engine::remote::{Registered, Registration};
use crate::http::auth::Access;
use crate::http::openapi::{Problem, Refused};
use crate::http::refusal::{Refusal, json};
use crate::model::id::ProcessId;
use crate::model::json;
use crate::model::policy::Delivery;
use crate::model::principal::Scope;

/// Characters of a worker's name, and of what it is made with.
const NAME_CHARS_MAX: usize = 255;
/// Characters of a tool's name.
const TOOL_NAME_MAX: usize = 64;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Register<'a> {
    /// The id that the worker made for itself.
    #[schema(value_type = String)]
    worker_id: ProcessId,
    /// Its name, for people.
    name: String,
    /// Calls it runs at once.
    #[schema(minimum = 1, maximum = 65536)]
    slots: u32,
    /// What it is made with.
    #[serde(default)]
    sdk: Option<String>,
    /// MCP tool objects, each with `delivery`, `timeout_ms` and `max_attempts` besides.
    #[serde(borrow)]
    #[schema(value_type = Vec<Object>)]
    tools: Vec<&'a RawValue>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Greeting {
    /// The id that the worker made for itself.
    #[schema(value_type = String)]
    worker_id: ProcessId,
    /// A lease lasts so long without a heartbeat.
    lease_ttl_ms: i64,
    /// Send one so often.
    heartbeat_ms: i64,
    /// How long a claim waits at most.
    claim_wait_max_ms: i64,
    /// Calls that one claim is answered with at most.
    claim_max: usize,
}

/// Registers a worker and its tools, again or for the first time.
#[utoipa::path(
    post,
    path = "/worker/v1/register",
    tag = "worker",
    request_body = Register<'_>,
    responses(
        Refused,
        (status = 200, description = "The worker is registered.", body = Greeting),
        (status = 409, description = "`tool_name_taken`: another server or command offers a tool of this name.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(in crate::http) async fn register(
    State(desk): State<Arc<Desk>>,
    Extension(access): Extension<Access>,
    body: Body,
) -> Result<Response, Refusal> {
    access.require(Scope::Work)?;
    let bytes = body::bytes(body).await?;
    let wanted: Register<'_> = body::read(&bytes, desk.limits.depth)?;
    let visible =
        |text: &str| !text.is_empty() && text.chars().count() <= NAME_CHARS_MAX && !text.contains(char::is_control);
    if !visible(&wanted.name) || wanted.sdk.as_deref().is_some_and(|sdk| !visible(sdk)) {
        return Err(invalid(format!("`name` and `sdk` are 1 to {NAME_CHARS_MAX} visible characters")));
    }
    if !(1..=65_536).contains(&wanted.slots) {
        return Err(invalid("`slots` is 1 to 65536"));
    }
    if wanted.tools.len() > desk.limits.tools {
        return Err(invalid(format!("more than {} tools; workers.max_tools sets this", desk.limits.tools)));
    }
    let tools = wanted.tools.iter().map(|raw| tool(raw, desk.limits.tool_bytes)).collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(invalid("`tools` has two tools of one name"));
    }
    let registration =
        Registration { id: wanted.worker_id, name: wanted.name, slots: wanted.slots, sdk: wanted.sdk, tools };
    let worker = desk.engine.register_worker(&access.principal, registration).await?;
    let settings = desk.engine.settings();
    let greeting = Greeting {
        worker_id: worker.row.id,
        lease_ttl_ms: settings.lease_ttl_ms,
        heartbeat_ms: settings.heartbeat_ms,
        claim_wait_max_ms: settings.claim_wait_max_ms(),
        claim_max: settings.remote.claim_max,
    };
    Ok(json(StatusCode::OK, &greeting))
}

/// A tool as it is registered: the members of an MCP tool, and three of ours, which clients do not see.
fn tool(raw: &RawValue, bytes_max: usize) -> Result<Registered, Refusal> {
    if raw.get().len() > bytes_max {
        return Err(invalid(format!("a tool is larger than {bytes_max} bytes; workers.tool_bytes sets this")));
    }
    let members = json::members(raw.get()).ok_or_else(|| invalid("`tools` holds something that is no object"))?;
    let mut definition = String::from("{");
    let (mut name, mut has_schema) = (None, false);
    let (mut delivery, mut timeout_ms, mut max_attempts) = (None, None, None);
    for (member, value) in &members {
        let wrong = |what: &str| invalid(format!("`{member}` of a tool is {what}"));
        match &**member {
            "delivery" => delivery = optional::<Delivery>(value, || wrong("at_least_once or at_most_once"))?,
            "timeout_ms" => {
                timeout_ms = optional::<i64>(value, || wrong("milliseconds"))?;
                if timeout_ms.is_some_and(|ms| !(1..=i64::from(u32::MAX)).contains(&ms)) {
                    return Err(wrong("1 to 4294967295"));
                }
            }
            "max_attempts" => {
                max_attempts = optional::<u32>(value, || wrong("a number"))?;
                if max_attempts.is_some_and(|attempts| !(1..=1_000).contains(&attempts)) {
                    return Err(wrong("1 to 1000"));
                }
            }
            "name" | "inputSchema" | "title" | "description" | "outputSchema" | "annotations" | "icons" | "_meta" => {
                if json::is_null(value) {
                    continue;
                }
                match &**member {
                    "name" => name = Some(tool_name(value)?),
                    "title" | "description" if !value.get().starts_with('"') => return Err(wrong("a text")),
                    "icons" if !value.get().starts_with('[') => return Err(wrong("a list")),
                    "inputSchema" | "outputSchema" | "annotations" | "_meta" if !json::is_object(value) => {
                        return Err(wrong("an object"));
                    }
                    _ => {}
                }
                has_schema |= member == "inputSchema";
                if definition.len() > 1 {
                    definition.push(',');
                }
                definition.push_str(&json::quoted(member));
                definition.push(':');
                definition.push_str(value.get());
            }
            _ => return Err(invalid(format!("a tool has no member `{member}`"))),
        }
    }
    definition.push('}');
    let name = name.ok_or_else(|| invalid("a tool has no `name`"))?;
    if !has_schema {
        return Err(invalid(format!("the tool `{name}` has no `inputSchema`")));
    }
    let definition = RawValue::from_string(definition).map_err(|_| invalid("a tool is no JSON"))?;
    Ok(Registered { name, definition, delivery, timeout_ms, max_attempts })
}

fn optional<'a, T: Deserialize<'a>>(value: &'a RawValue, wrong: impl Fn() -> Refusal) -> Result<Option<T>, Refusal> {
    serde_json::from_str(value.get()).map_err(|_| wrong())
}

/// The characters MCP takes in the name of a tool (2025-11-25, server/tools).
fn tool_name(value: &RawValue) -> Result<String, Refusal> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    let name = json::text(value).filter(|name| (1..=TOOL_NAME_MAX).contains(&name.len()) && name.bytes().all(good));
    let words = "the `name` of a tool is 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`, `.` and `/`";
    name.map(|name| name.into_owned()).ok_or_else(|| invalid(words))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Deregister {
    /// The id that the worker made for itself.
    #[schema(value_type = String)]
    worker_id: ProcessId,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Deregistered {
    status: &'static str,
}

/// Ends a worker; what it still holds is settled as lost.
#[utoipa::path(
    post,
    path = "/worker/v1/deregister",
    tag = "worker",
    request_body = Deregister,
    responses(
        Refused,
        (status = 200, description = "The worker is gone.", body = Deregistered),
    ),
)]
pub(in crate::http) async fn deregister(
    State(desk): State<Arc<Desk>>,
    Extension(access): Extension<Access>,
    body: Body,
) -> Result<Response, Refusal> {
    access.require(Scope::Work)?;
    let bytes = body::bytes(body).await?;
    let wanted: Deregister = body::read(&bytes, desk.limits.depth)?;
    let worker = desk.engine.remote_worker_or_late(wanted.worker_id, &access.principal).await?;
    desk.engine.deregister_worker(&worker).await?;
    Ok(json(StatusCode::OK, &Deregistered { status: "deregistered" }))
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct WorkerStats {
    tools: Vec<ToolStats>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ToolStats {
    /// The tool.
    name: String,
    /// Calls that wait, for a worker or for their time.
    queued: usize,
    /// Calls that a worker has.
    leased: usize,
    /// Living workers that registered it.
    workers: usize,
}

/// Tells how busy the tools of a worker are.
#[utoipa::path(
    get,
    path = "/worker/v1/stats",
    tag = "worker",
    params(("worker_id" = String, Query, description = "The worker.")),
    responses(
        Refused,
        (status = 200, description = "Its tools.", body = WorkerStats),
    ),
)]
pub(in crate::http) async fn stats(
    State(desk): State<Arc<Desk>>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let mut id = None;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "worker_id" => id = value.parse().ok(),
            _ => return Err(Refusal::bad_request("there is no such parameter", "the parameter is worker_id")),
        }
    }
    let id: ProcessId =
        id.ok_or_else(|| Refusal::bad_request("`worker_id` is missing or no id", "send the id that was registered"))?;
    let worker = desk.worker(&access, id).await?;
    let mut tools = Vec::with_capacity(worker.tools.len());
    for tool in &worker.tools {
        let counts = desk.engine.remote_counts(&worker.row.namespace, &tool.name).await?;
        let (queued, leased, workers) = (counts.queued, counts.leased, counts.workers);
        tools.push(ToolStats { name: tool.name.clone(), queued, leased, workers });
    }
    Ok(json(StatusCode::OK, &WorkerStats { tools }))
}

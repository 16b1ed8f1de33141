//! Reading executions: `/api/v1/executions` and what lies below. Shows a caller what is the caller's to see; a foreign
//! execution is as if it were missing. What changes something is in `executions/actions.rs`.

mod actions;
mod bulk;
mod export;
pub(super) mod filters;
mod pieces;

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use serde::Serialize;
use utoipa::ToSchema;

pub(super) use self::actions::{__path_cancel, __path_resolve, __path_retry, cancel, resolve, retry};
pub(super) use self::bulk::{__path_act, act};
pub(super) use self::export::{__path_export, export};
use self::filters::{Filter, FilterParams, number, parse_id, unknown_parameter, wrong};
pub(super) use self::pieces::{__path_piece, piece};
use super::auth::Access;
use super::openapi::Refused;
use super::refusal::{Refusal, json, no_parameters};
use crate::engine::view::{EventView, ExecutionView, ResultView};
use crate::engine::why::{Why, why as explain};
use crate::engine::{Engine, changes};
use crate::model::execution::Head;
use crate::model::principal::Scope;
use crate::store::{ListQuery, Store};

#[cfg(test)]
mod tests;

/// Rows of a page when the caller says nothing.
pub const LIMIT_DEFAULT: usize = 50;
/// Rows of a page at most.
pub const LIMIT_MAX: usize = 1_000;
/// How long an observer waits when it says nothing, in milliseconds.
const WAIT_DEFAULT_MS: i64 = 30_000;
/// How long an observer waits at most, in milliseconds: less than the minute after which proxies give up.
const WAIT_MAX_MS: i64 = 55_000;

pub(super) type Answer = Result<Response, Refusal>;
pub(super) type Source = State<Arc<Engine>>;
pub(super) type Caller = Extension<Access>;

/// The routes of executions. Each expects an [`Access`] among the request's extensions.
pub fn routes(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/api/v1/executions", get(list))
        .route("/api/v1/executions/actions", post(act))
        .route("/api/v1/executions/export", get(export))
        .route("/api/v1/executions/{id}", get(show))
        .route("/api/v1/executions/{id}/events", get(events))
        .route("/api/v1/executions/{id}/result", get(result))
        .route("/api/v1/executions/{id}/payloads/{kind}", get(piece))
        .route("/api/v1/executions/{id}/why", get(why))
        .route("/api/v1/executions/{id}/wait", get(wait))
        .route("/api/v1/executions/{id}/cancel", post(cancel))
        .route("/api/v1/executions/{id}/retry", post(retry))
        .route("/api/v1/executions/{id}/resolve", post(resolve))
        .with_state(engine)
}

/// A page of executions.
#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionPage)]
pub struct Page<'a> {
    /// Newest first.
    executions: Vec<ExecutionView<'a>>,
    /// The `before` of the next page.
    next_before: Option<String>,
}

/// Lists executions, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/executions",
    tag = "executions",
    params(
        FilterParams,
        ("before" = Option<String>, Query, description = "Only executions older than this one: `next_before` of the page before."),
        ("limit" = Option<u32>, Query, description = "At most so many.", minimum = 1, maximum = 1000),
    ),
    responses(Refused, (status = 200, description = "A page.", body = Page)),
)]
pub(super) async fn list(State(engine): Source, Extension(access): Caller, RawQuery(query): RawQuery) -> Answer {
    access.require(Scope::Read)?;
    let (mut filter, mut before, mut limit) = (Filter::default(), None, LIMIT_DEFAULT);
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "before" => before = Some(parse_id(&value).ok_or_else(|| wrong("before", "an execution id"))?),
            "limit" => limit = number(&value, "limit", 1..=LIMIT_MAX as i64)? as usize,
            _ if filter.take(&name, &value)? => {}
            _ => return Err(unknown_parameter("before, limit")),
        }
    }
    let Some(query) = filter.bounded(&access) else {
        return Ok(json(StatusCode::OK, &Page { executions: Vec::new(), next_before: None }));
    };
    let query = ListQuery { before, limit, ..query };
    let heads = engine.store().list(query).await.map_err(|error| Refusal::store(&error))?;
    let full = heads.len() >= limit;
    let next_before = heads.last().filter(|_| full).map(|head| head.id().to_string());
    Ok(json(StatusCode::OK, &Page { executions: heads.iter().map(ExecutionView::of).collect(), next_before }))
}

/// Shows one execution.
#[utoipa::path(
    get,
    path = "/api/v1/executions/{id}",
    tag = "executions",
    params(("id" = String, Path, description = "The execution's id.")),
    responses(Refused, (status = 200, description = "The execution.", body = ExecutionView)),
)]
pub(super) async fn show(
    State(engine): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    query: RawQuery,
) -> Answer {
    access.require(Scope::Read)?;
    no_parameters(query)?;
    let head = find(&**engine.store(), &access, &id).await?;
    Ok(json(StatusCode::OK, &ExecutionView::of(&head)))
}

/// A page of the events of one execution.
#[derive(Serialize, ToSchema)]
pub struct EventPage {
    /// In order.
    events: Vec<EventView>,
    /// The `after` of the next page.
    next_after: Option<i64>,
}

/// Shows what happened to an execution, in order.
#[utoipa::path(
    get,
    path = "/api/v1/executions/{id}/events",
    tag = "executions",
    params(
        ("id" = String, Path, description = "The execution's id."),
        ("after" = Option<i64>, Query, description = "Only events with a greater `seq`."),
        ("limit" = Option<u32>, Query, description = "At most so many.", minimum = 1, maximum = 1000),
    ),
    responses(Refused, (status = 200, description = "A page.", body = EventPage)),
)]
pub(super) async fn events(
    State(engine): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    access.require(Scope::Read)?;
    let (mut after, mut limit) = (0, LIMIT_MAX);
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "after" => after = number(&value, "after", 0..=i64::MAX)?,
            "limit" => limit = number(&value, "limit", 1..=LIMIT_MAX as i64)? as usize,
            _ => return Err(Refusal::bad_request("there is no such parameter", "the parameters are after, limit")),
        }
    }
    let store = engine.store();
    let head = find(&**store, &access, &id).await?;
    let records = store.events(head.id(), after, limit).await.map_err(|error| Refusal::store(&error))?;
    let next_after = records.last().filter(|_| records.len() >= limit).map(|record| record.seq);
    Ok(json(StatusCode::OK, &EventPage { events: records.iter().map(EventView::of).collect(), next_after }))
}

/// Shows what became of an execution, with the exact text of its tool.
#[utoipa::path(
    get,
    path = "/api/v1/executions/{id}/result",
    tag = "executions",
    params(("id" = String, Path, description = "The execution's id.")),
    responses(Refused, (status = 200, description = "What became of it.", body = ResultView)),
)]
pub(super) async fn result(
    State(engine): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    query: RawQuery,
) -> Answer {
    access.require_payloads()?;
    no_parameters(query)?;
    let store = engine.store();
    let head = find(&**store, &access, &id).await?;
    let payload = match ResultView::payload_kind(head.state) {
        Some(kind) => store.payload(head.id(), kind).await.map_err(|error| Refusal::store(&error))?,
        None => None,
    };
    let view = ResultView::of(&head, payload.as_ref()).map_err(|_| {
        tracing::error!(execution = %head.id(), "a stored payload is no JSON");
        Refusal::internal(&head.id().to_string())
    })?;
    Ok(json(StatusCode::OK, &view))
}

/// Tells in plain sentences why an execution stands where it stands.
#[utoipa::path(
    get,
    path = "/api/v1/executions/{id}/why",
    tag = "executions",
    params(("id" = String, Path, description = "The execution's id.")),
    responses(Refused, (status = 200, description = "The sentences.", body = Why)),
)]
pub(super) async fn why(
    State(engine): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    query: RawQuery,
) -> Answer {
    access.require(Scope::Read)?;
    no_parameters(query)?;
    let store = &**engine.store();
    let head = find(store, &access, &id).await?;
    let log = changes::events(store, head.id(), 0).await.map_err(|error| Refusal::store(&error))?;
    Ok(json(StatusCode::OK, &explain(&head, &log)))
}

/// Waits until an execution has ended or is unknown, and shows it as it stands then.
#[utoipa::path(
    get,
    path = "/api/v1/executions/{id}/wait",
    tag = "executions",
    params(
        ("id" = String, Path, description = "The execution's id."),
        ("wait_ms" = Option<i64>, Query, description = "At most so long.", minimum = 0, maximum = 55000),
    ),
    responses(Refused, (status = 200, description = "The execution; it may still go on.", body = ExecutionView)),
)]
pub(super) async fn wait(
    State(engine): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    access.require(Scope::Read)?;
    let mut wait_ms = WAIT_DEFAULT_MS;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "wait_ms" => wait_ms = number(&value, "wait_ms", 0..=WAIT_MAX_MS)?,
            _ => return Err(Refusal::bad_request("there is no such parameter", "the parameter is wait_ms")),
        }
    }
    let head = find(&**engine.store(), &access, &id).await?;
    let observed = engine.observe(head.id(), Duration::from_millis(wait_ms.unsigned_abs())).await;
    let head = observed.map_err(|error| Refusal::engine(&error))?.ok_or_else(missing)?;
    Ok(json(StatusCode::OK, &ExecutionView::of(&head)))
}

/// The execution when the caller sees it.
pub(super) async fn find(store: &dyn Store, access: &Access, id: &str) -> Result<Head, Refusal> {
    let id = parse_id(id).ok_or_else(missing)?;
    let head = store.heads(&[id]).await.map_err(|error| Refusal::store(&error))?.pop();
    head.filter(|head| access.sees(head)).ok_or_else(missing)
}

fn missing() -> Refusal {
    Refusal::not_found("there is no such execution", "`durable-mcp executions list` shows those that you may see")
}

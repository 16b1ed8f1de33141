//! Reading executions: `/api/v1/executions` and what lies below. Shows a caller what is the caller's to see; a foreign
//! execution is as if it were missing. Changes nothing.

use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::auth::Access;
use super::openapi::Refused;
use super::refusal::{Refusal, json};
use crate::engine::view::{EventView, ExecutionView, ResultView};
use crate::model::execution::{Head, State as Stage};
use crate::model::id::ExecutionId;
use crate::model::principal::Scope;
use crate::store::{ListQuery, Store};

#[cfg(test)]
mod tests;

/// Rows of a page when the caller says nothing.
pub const LIMIT_DEFAULT: usize = 50;
/// Rows of a page at most.
pub const LIMIT_MAX: usize = 1_000;

type Answer = Result<Response, Refusal>;
type Source = State<Arc<dyn Store>>;
type Caller = Extension<Access>;

/// The read routes of executions. Each expects an [`Access`] among the request's extensions.
pub fn routes(store: Arc<dyn Store>) -> Router {
    Router::new()
        .route("/api/v1/executions", get(list))
        .route("/api/v1/executions/{id}", get(show))
        .route("/api/v1/executions/{id}/events", get(events))
        .route("/api/v1/executions/{id}/result", get(result))
        .with_state(store)
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

/// What a list takes. For the document; the query is read by hand, since what is unknown is an error.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only described")]
struct ListParams {
    /// Only these states, separated by commas.
    #[param(example = "failed,unknown")]
    state: Option<String>,
    /// Only this tool, by its own name at its server.
    tool: Option<String>,
    /// Only tools of this server.
    upstream: Option<String>,
    /// Only this namespace.
    namespace: Option<String>,
    /// Only this principal.
    principal: Option<String>,
    /// Only ids that start with this text.
    id_prefix: Option<String>,
    /// Only executions older than this one: `next_before` of the page before.
    before: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u32>,
}

/// Lists executions, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/executions",
    tag = "executions",
    params(ListParams),
    responses(Refused, (status = 200, description = "A page.", body = Page)),
)]
pub(super) async fn list(State(store): Source, Extension(access): Caller, RawQuery(query): RawQuery) -> Answer {
    access.require(Scope::Read)?;
    let query = filters(&access, query.as_deref().unwrap_or_default())?;
    let Some(query) = query else {
        return Ok(json(StatusCode::OK, &Page { executions: Vec::new(), next_before: None }));
    };
    let limit = query.limit;
    let heads = store.list(query).await.map_err(|error| Refusal::store(&error))?;
    let full = heads.len() >= limit;
    let next_before = heads.last().filter(|_| full).map(|head| head.id().to_string());
    Ok(json(StatusCode::OK, &Page { executions: heads.iter().map(ExecutionView::of).collect(), next_before }))
}

/// What a list shows; `None` when the caller asks for what it may not see, which is nothing.
fn filters(access: &Access, query: &str) -> Result<Option<ListQuery>, Refusal> {
    let mut wanted = ListQuery { limit: LIMIT_DEFAULT, ..ListQuery::default() };
    let (mut namespace, mut principal) = (None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "state" => wanted.states.extend(states(&value)?),
            "tool" => set(&mut wanted.tool, &name, &value)?,
            "upstream" => set(&mut wanted.upstream, &name, &value)?,
            "namespace" => set(&mut namespace, &name, &value)?,
            "principal" => set(&mut principal, &name, &value)?,
            "id_prefix" => set(&mut wanted.id_prefix, &name, &value.to_ascii_lowercase())?,
            "before" => wanted.before = Some(parse_id(&value).ok_or_else(|| wrong("before", "an execution id"))?),
            "limit" => wanted.limit = number(&value, "limit", LIMIT_MAX as i64)? as usize,
            _ => {
                return Err(unknown_parameter("state, tool, upstream, namespace, principal, id_prefix, before, limit"));
            }
        }
    }
    // What the caller may see bounds what it asks for.
    let (namespace, principal) = match (bounded(access.namespace(), namespace), bounded(access.owner(), principal)) {
        (Some(namespace), Some(principal)) => (namespace, principal),
        _ => return Ok(None),
    };
    Ok(Some(ListQuery { namespace, principal, ..wanted }))
}

/// The narrower of a border and a wish; `None` when the wish lies outside.
fn bounded(border: Option<&str>, wish: Option<String>) -> Option<Option<String>> {
    match (border, wish) {
        (Some(border), Some(wish)) if border != wish => None,
        (Some(border), _) => Some(Some(border.to_owned())),
        (None, wish) => Some(wish),
    }
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
    State(store): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    query: RawQuery,
) -> Answer {
    access.require(Scope::Read)?;
    no_parameters(query)?;
    let head = find(&store, &access, &id).await?;
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
    State(store): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    access.require(Scope::Read)?;
    let (mut after, mut limit) = (0, LIMIT_MAX);
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "after" => after = number(&value, "after", i64::MAX)?,
            "limit" => limit = number(&value, "limit", LIMIT_MAX as i64)? as usize,
            _ => return Err(unknown_parameter("after, limit")),
        }
    }
    let head = find(&store, &access, &id).await?;
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
    State(store): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    query: RawQuery,
) -> Answer {
    access.require_payloads()?;
    no_parameters(query)?;
    let head = find(&store, &access, &id).await?;
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

async fn find(store: &Arc<dyn Store>, access: &Access, id: &str) -> Result<Head, Refusal> {
    let missing = || {
        Refusal::not_found("there is no such execution", "`durable-mcp executions list` shows those that you may see")
    };
    let id = parse_id(id).ok_or_else(missing)?;
    let head = store.heads(&[id]).await.map_err(|error| Refusal::store(&error))?.pop();
    head.filter(|head| access.sees(head)).ok_or_else(missing)
}

/// An id in its one spelling.
fn parse_id(text: &str) -> Option<ExecutionId> {
    text.parse().ok().filter(|id: &ExecutionId| text.eq_ignore_ascii_case(&id.to_string()))
}

fn states(value: &str) -> Result<Vec<Stage>, Refusal> {
    let names = value.split(',');
    names.map(|name| Stage::parse(name).ok_or_else(|| wrong("state", &stage_names()))).collect()
}

fn stage_names() -> String {
    let names: Vec<&str> = Stage::ALL.iter().map(|state| state.as_str()).collect();
    format!("one or more of {}", names.join(", "))
}

fn set(place: &mut Option<String>, name: &str, value: &str) -> Result<(), Refusal> {
    if place.is_some() {
        return Err(Refusal::bad_request("a parameter stands twice", format!("give `{name}` once")));
    }
    *place = Some(value.to_owned());
    Ok(())
}

fn number(value: &str, name: &'static str, max: i64) -> Result<i64, Refusal> {
    let min = i64::from(name == "limit");
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number: Option<i64> = digits.then(|| value.parse().ok()).flatten();
    number.filter(|number| (min..=max).contains(number)).ok_or_else(|| wrong(name, &format!("{min} to {max}")))
}

fn no_parameters(RawQuery(query): RawQuery) -> Result<(), Refusal> {
    match query.is_none_or(|query| query.is_empty()) {
        true => Ok(()),
        false => Err(Refusal::bad_request("this address takes no parameters", "leave them out")),
    }
}

fn wrong(name: &str, takes: &str) -> Refusal {
    Refusal::bad_request(format!("the value of `{name}` can not be used"), format!("`{name}` takes {takes}"))
}

fn unknown_parameter(known: &'static str) -> Refusal {
    Refusal::bad_request("there is no such parameter", format!("the parameters are {known}"))
}

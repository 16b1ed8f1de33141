//! `/api/v1/openapi.json`: what this listener serves besides MCP, generated from the routes' own annotations. A test
//! holds it against the routes. Describes; serves nothing else.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi, ToSchema};

use super::refusal::{PROBLEM_JSON, Refusal, json};
use super::{caller, events, executions, health, metrics, series, sessions, tools, totals, worker, workers};

#[cfg(test)]
mod tests;

/// Every route with a `#[utoipa::path]` is named here.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "DurableMCP",
        description = "What operators and workers ask a DurableMCP server. MCP clients use the MCP endpoint instead."
    ),
    paths(
        executions::list,
        executions::show,
        executions::events,
        executions::result,
        executions::piece,
        executions::why,
        executions::wait,
        executions::export,
        executions::cancel,
        executions::retry,
        executions::resolve,
        executions::act,
        events::follow,
        tools::list,
        tools::show,
        health::alive,
        health::ready,
        metrics::metrics,
        workers::list,
        workers::drain_one,
        sessions::list,
        sessions::close,
        totals::now,
        series::over_time,
        caller::show,
        worker::register::register,
        worker::register::deregister,
        worker::register::stats,
        worker::claim::claim,
        worker::report::heartbeat,
        worker::report::complete,
        worker::report::fail,
        worker::report::release,
        worker::report::step,
        openapi,
    ),
    components(schemas(Problem)),
    tags(
        (name = "executions", description = "Looking at executions. A foreign one is as if it were missing."),
        (name = "workers", description = "Who runs tools."),
        (name = "sessions", description = "MCP sessions of clients up to revision 2025-11-25."),
        (name = "orders", description = "Cancel, retry, resolve. Each is an event with its principal and reason."),
        (name = "events", description = "What happens, as it happens."),
        (name = "tools", description = "What is offered, its policy, and who said so."),
        (name = "numbers", description = "How much there is, and how it goes. Counted from what the caller may see."),
        (name = "caller", description = "Who one is to this server."),
        (name = "worker", description = "The worker protocol; needs the scope `work`. Everything may be repeated."),
        (name = "health", description = "For supervisors; needs no credential."),
        (name = "metrics", description = "Figures for Prometheus. `telemetry.metrics` turns them off."),
        (name = "description", description = "This document."),
    ),
    modifiers(&Bearer, &OperationIds),
)]
struct Document;

/// The document.
pub fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// The route of the document.
pub fn routes() -> Router {
    Router::new().route("/api/v1/openapi.json", get(openapi))
}

/// The document's text, made once.
static TEXT: LazyLock<Option<Box<RawValue>>> = LazyLock::new(|| {
    let text = document().to_json().ok()?;
    RawValue::from_string(text).ok()
});

/// This document.
#[utoipa::path(
    get,
    path = "/api/v1/openapi.json",
    tag = "description",
    responses(Refused, (status = 200, description = "This document.", body = Object)),
)]
async fn openapi() -> Result<Response, Refusal> {
    let text = TEXT.as_ref().ok_or_else(|| Refusal::internal("openapi"))?;
    Ok(json(axum::http::StatusCode::OK, text))
}

/// Why a request was not served (RFC 9457). Programs go by `code`.
#[derive(Serialize, ToSchema)]
#[serde(rename = "Problem")]
pub struct Problem {
    /// `about:blank`: `code` says which problem it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The status.
    pub status: u16,
    /// The stable name.
    #[schema(example = "not_found")]
    pub code: String,
    /// One sentence: what is wrong.
    pub detail: String,
    /// One sentence: what to do about it.
    pub next: String,
}

/// What every route may answer instead: the statuses of refusals, each with a [`Problem`].
pub struct Refused;

/// The same for what changes something.
pub struct OrderRefused;

const REFUSED: [(&str, &str); 5] = [
    ("400", "A parameter or the body is wrong."),
    ("401", "A credential is missing or not known."),
    ("403", "The credential lacks the scope."),
    ("404", "There is no such thing, or the caller may not see it."),
    ("503", "The store can not answer now."),
];

const ORDER_REFUSED: [(&str, &str); 3] = [
    ("409", "The present state does not permit it; nothing changed."),
    ("413", "The body is too large."),
    ("415", "The body is not said to be JSON."),
];

type Responses = BTreeMap<String, RefOr<utoipa::openapi::response::Response>>;

impl IntoResponses for Refused {
    fn responses() -> Responses {
        problems(&REFUSED)
    }
}

impl IntoResponses for OrderRefused {
    fn responses() -> Responses {
        problems(&[&REFUSED[..], &ORDER_REFUSED[..]].concat())
    }
}

fn problems(statuses: &[(&str, &str)]) -> Responses {
    let response = |text: &str| {
        let schema = utoipa::openapi::Ref::from_schema_name("Problem");
        let content = ContentBuilder::new().schema(Some(schema)).build();
        ResponseBuilder::new().description(text).content(PROBLEM_JSON, content).build()
    };
    statuses.iter().map(|(status, text)| ((*status).to_owned(), RefOr::T(response(text)))).collect()
}

/// Says which credential the routes take.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let text = "An API key, or the local token of a server without authentication.";
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(text)).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
        document.security = Some(vec![
            utoipa::openapi::security::SecurityRequirement::new::<_, [&str; 0], &str>("bearer", []),
            // Without authentication reads need none.
            utoipa::openapi::security::SecurityRequirement::default(),
        ]);
    }
}

/// Makes the ids of operations unique, as the specification wants them: functions of two nouns have the same name.
struct OperationIds;

impl Modify for OperationIds {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for item in document.paths.paths.values_mut() {
            let operations = [&mut item.get, &mut item.post];
            for operation in operations.into_iter().flatten() {
                let tag = operation.tags.iter().flatten().next();
                if let (Some(tag), Some(id)) = (tag, &mut operation.operation_id) {
                    *id = format!("{tag}_{id}");
                }
            }
        }
    }
}

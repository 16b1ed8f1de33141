//! `/api/v1/sessions`: MCP sessions of clients up to revision 2025-11-25, and ending one. A session that may not be seen
//! is as if it were missing.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::Access;
use super::openapi::{Problem, Refused};
use super::refusal::{Refusal, json};
use crate::engine::Engine;
use crate::engine::sessions::{self, CloseRefused, SessionView};
use crate::model::principal::Scope;
use crate::store::{SessionKey, SessionQuery};

/// Sessions in one answer at most.
const PAGE_MAX: usize = 1_000;

/// The routes. Each expects an [`Access`] among the request's extensions.
pub fn routes(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/api/v1/sessions", get(list))
        .route("/api/v1/sessions/{id}/close", post(close))
        .with_state(engine)
}

/// A page of sessions, by id.
#[derive(Serialize, ToSchema)]
pub struct SessionList {
    sessions: Vec<SessionView>,
    /// Where the next page goes on; absent on the last one.
    next_after: Option<String>,
}

/// Lists sessions: one's own, or with `operate` those of the namespace.
#[utoipa::path(
    get,
    path = "/api/v1/sessions",
    tag = "sessions",
    params(
        ("closed" = Option<bool>, Query, description = "Closed ones too; they are shown for a day."),
        ("after" = Option<String>, Query, description = "Only sessions after this one: `next_after` of the page before."),
        ("limit" = Option<usize>, Query, description = "At most so many, up to 1000."),
    ),
    responses(Refused, (status = 200, description = "Sessions, by id.", body = SessionList)),
)]
pub(super) async fn list(
    State(engine): State<Arc<Engine>>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    access.require(Scope::Read)?;
    let mut wanted = SessionQuery {
        namespace: access.namespace().map(str::to_owned),
        principal: access.owner().map(str::to_owned),
        limit: PAGE_MAX,
        ..SessionQuery::default()
    };
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let bad = |what: &str| Refusal::bad_request(format!("{name}: {what}"), "correct the parameter");
        match &*name {
            "closed" => wanted.closed = value.parse().map_err(|_| bad("must be true or false"))?,
            "after" => wanted.after = Some(value.parse::<SessionKey>().map_err(|_| bad("is no id of a session"))?),
            "limit" => {
                let limit: usize = value.parse().map_err(|_| bad("must be a number"))?;
                wanted.limit = limit.clamp(1, PAGE_MAX);
            }
            _ => return Err(bad("there is no such parameter")),
        }
    }
    let limit = wanted.limit;
    let rows = engine.store().sessions(wanted).await.map_err(|error| Refusal::store(&error))?;
    let next_after = rows.last().filter(|_| rows.len() == limit).map(|row| row.key.to_string());
    let sessions = rows.iter().map(sessions::view).collect();
    Ok(json(StatusCode::OK, &SessionList { sessions, next_after }))
}

/// Ends a session for every process; its client has to `initialize` again. Calls that run go on.
#[utoipa::path(
    post,
    path = "/api/v1/sessions/{id}/close",
    tag = "sessions",
    params(("id" = String, Path, description = "The session's id here, or a start of it that no other has.")),
    responses(
        Refused,
        (status = 200, description = "The session, closed.", body = SessionView),
        (status = 409, description = "The start of the id is that of several.", body = Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(super) async fn close(
    State(engine): State<Arc<Engine>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    access.require_action(Scope::Operate)?;
    let owner = (access.namespace(), access.owner());
    match sessions::close(&**engine.store(), &id, owner, engine.clock().now_ms()).await {
        Ok(view) => Ok(json(StatusCode::OK, &view)),
        Err(CloseRefused::Missing) => {
            let next = "`durable-mcp sessions list` shows those that you may see";
            Err(Refusal::not_found("there is no such session", next))
        }
        Err(error @ CloseRefused::Ambiguous) => {
            Err(Refusal::new(StatusCode::CONFLICT, "ambiguous", error.to_string(), "give more of the id"))
        }
        Err(CloseRefused::Store(error)) => Err(Refusal::store(&error)),
    }
}

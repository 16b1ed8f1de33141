//! `/api/v1/workers`: who runs tools, and asking one to finish and to end. A remote worker of another namespace is as if
//! it were missing.

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
use super::refusal::{Refusal, json, no_parameters};
use crate::engine::Engine;
use crate::engine::remote::listing::{self, WorkerView};
use crate::engine::remote::{DrainRefused, drain};
use crate::model::principal::Scope;

/// The routes. Each expects an [`Access`] among the request's extensions.
pub fn routes(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/api/v1/workers", get(list))
        .route("/api/v1/workers/{id}/drain", post(drain_one))
        .with_state(engine)
}

/// Every worker.
#[derive(Serialize, ToSchema)]
pub struct WorkerList {
    workers: Vec<WorkerView>,
}

/// Lists workers, living ones first; one that is gone is shown for a day.
#[utoipa::path(
    get,
    path = "/api/v1/workers",
    tag = "workers",
    responses(Refused, (status = 200, description = "Workers of server processes and remote ones.", body = WorkerList)),
)]
pub(super) async fn list(
    State(engine): State<Arc<Engine>>,
    Extension(access): Extension<Access>,
    query: RawQuery,
) -> Result<Response, Refusal> {
    access.require(Scope::Read)?;
    no_parameters(query)?;
    let workers = listing::workers(&**engine.store(), access.namespace()).await;
    let workers = workers.map_err(|error| Refusal::store(&error))?;
    Ok(json(StatusCode::OK, &WorkerList { workers }))
}

/// Asks a worker to finish what it has and to take nothing more; one inside a process of ours goes on with what else it does.
#[utoipa::path(
    post,
    path = "/api/v1/workers/{id}/drain",
    tag = "workers",
    params(("id" = String, Path, description = "The worker's id.")),
    responses(
        Refused,
        (status = 200, description = "The worker, which learns it within a second, or with its next request.", body = WorkerView),
        (status = 409, description = "It is that of a `wrap`, or is gone.", body = Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(super) async fn drain_one(
    State(engine): State<Arc<Engine>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    access.require(Scope::Operate)?;
    let missing =
        || Refusal::not_found("there is no such worker", "`durable-mcp workers list` shows those that you may see");
    let id = id.parse().map_err(|_| missing())?;
    let view = match drain(&**engine.store(), (id, access.namespace()), engine.clock().now_ms()).await {
        Ok(view) => view,
        Err(DrainRefused::Missing) => return Err(missing()),
        Err(DrainRefused::Bound) => {
            let next = "end its client: it lets what runs end";
            let detail = "this worker is that of a `wrap` and ends with it";
            return Err(Refusal::new(StatusCode::CONFLICT, "not_permitted", detail, next));
        }
        Err(DrainRefused::Gone) => {
            let detail = "this worker is gone already";
            return Err(Refusal::new(StatusCode::CONFLICT, "not_permitted", detail, "there is nothing to do"));
        }
        Err(DrainRefused::Store(error)) => return Err(Refusal::store(&error)),
    };
    // Its claim may wait here, or it may be ours.
    if let Err(error) = engine.refresh_workers().await {
        tracing::warn!(code = error.code(), "the workers could not be read again: {error}");
    }
    Ok(json(StatusCode::OK, &view))
}

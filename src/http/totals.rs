//! `/api/v1/totals`: how much there is now. Counts what the caller may see, and nothing else.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::Access;
use super::openapi::Refused;
use super::refusal::{Refusal, json, no_parameters};
use crate::engine::Engine;
use crate::engine::remote::listing;
use crate::engine::view::Time;
use crate::model::execution::State as Stands;
use crate::model::principal::Scope;
use crate::store::series::{Standing, Whose};

/// The route. It expects an [`Access`] among the request's extensions.
pub fn routes(engine: Arc<Engine>) -> Router {
    Router::new().route("/api/v1/totals", get(now)).with_state(engine)
}

/// How much there is.
#[derive(Serialize, ToSchema)]
pub struct Totals {
    /// When it was counted.
    at: Time,
    /// Executions that are stored, by state.
    executions: ByState,
    /// Those that could run now and wait for a worker.
    queue: Queue,
    /// Workers that the caller may see.
    workers: WorkerCount,
}

/// Executions by state.
#[derive(Serialize, ToSchema)]
pub struct ByState {
    /// All of them.
    all: u64,
    scheduled: u64,
    ready: u64,
    leased: u64,
    waiting: u64,
    completed: u64,
    failed: u64,
    cancelled: u64,
    unknown: u64,
}

/// What waits for a worker.
#[derive(Serialize, ToSchema)]
pub struct Queue {
    /// So many: ready ones, and scheduled ones whose time came.
    depth: u64,
    /// How long the one waits that has waited longest, in milliseconds; absent when none waits.
    oldest_age_ms: Option<i64>,
}

/// Workers by what they do.
#[derive(Serialize, ToSchema)]
pub struct WorkerCount {
    /// Those that take calls.
    running: usize,
    /// Those that finish what they have.
    draining: usize,
    /// Those that ended, or were found dead, within a day.
    gone: usize,
}

impl ByState {
    fn of(standing: &Standing) -> ByState {
        let count = |state| standing.states.get(&state).copied().unwrap_or_default();
        ByState {
            all: standing.states.values().sum(),
            scheduled: count(Stands::Scheduled),
            ready: count(Stands::Ready),
            leased: count(Stands::Leased),
            waiting: count(Stands::Waiting),
            completed: count(Stands::Completed),
            failed: count(Stands::Failed),
            cancelled: count(Stands::Cancelled),
            unknown: count(Stands::Unknown),
        }
    }
}

/// Counts what there is now: stored executions by state, the queue, workers.
#[utoipa::path(
    get,
    path = "/api/v1/totals",
    tag = "numbers",
    responses(Refused, (status = 200, description = "How much there is.", body = Totals)),
)]
pub(super) async fn now(
    State(engine): State<Arc<Engine>>,
    Extension(access): Extension<Access>,
    query: RawQuery,
) -> Result<Response, Refusal> {
    access.require(Scope::Read)?;
    no_parameters(query)?;
    let (store, now_ms) = (&**engine.store(), engine.clock().now_ms());
    let standing = store.standing(whose(&access), now_ms).await.map_err(|error| Refusal::store(&error))?;
    let workers = listing::workers(store, access.namespace()).await.map_err(|error| Refusal::store(&error))?;
    let of = |state: &str| workers.iter().filter(|worker| worker.state == state).count();
    let totals = Totals {
        at: Time(now_ms),
        executions: ByState::of(&standing),
        queue: Queue {
            depth: standing.queued,
            oldest_age_ms: standing.oldest_ms.map(|oldest_ms| (now_ms - oldest_ms).max(0)),
        },
        workers: WorkerCount { running: of("running"), draining: of("draining"), gone: of("gone") },
    };
    Ok(json(StatusCode::OK, &totals))
}

/// Whose numbers the caller may see: as in the list of executions.
pub(super) fn whose(access: &Access) -> Whose {
    Whose { namespace: access.namespace().map(str::to_owned), principal: access.owner().map(str::to_owned) }
}

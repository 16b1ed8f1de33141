//! The map of one listener: health, the API, the dashboard, and the MCP face as it comes in. Guards nothing: see `front.rs`.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::IntoResponse;

use super::health::{self, Readiness};
use super::metrics::{self, SessionCount};
use super::openapi;
use super::refusal::Refusal;
use super::tools::Tools;
use super::{caller, dashboard, events, executions, series, sessions, tools, totals, worker, workers};
use crate::engine::Engine;
use crate::engine::view::SourceOf;

/// What the routes work with.
pub struct Parts<'a> {
    /// The verbs.
    pub engine: &'a Arc<Engine>,
    /// What is known of the process's readiness.
    pub readiness: Arc<Readiness>,
    /// What the worker protocol accepts.
    pub limits: worker::Limits,
    /// The bounds of the streams of events.
    pub streams: events::Limits,
    /// Who said what a tool's settings are.
    pub sources: SourceOf,
    /// How many sessions are in memory here; absent: `/metrics` is not served.
    pub metrics: Option<SessionCount>,
}

/// Everything that is served on one listener. The limit on bodies is `front.rs`'s.
pub fn router(mcp: Router, parts: Parts<'_>) -> Router {
    let Parts { engine, readiness, limits, streams, sources, metrics } = parts;
    let metrics = metrics.map(|sessions| metrics::routes(engine.clone(), sessions));
    mcp.merge(health::routes(readiness.clone(), engine.store().clone()))
        .merge(tools::routes(Tools { engine: engine.clone(), readiness, sources }))
        .merge(executions::routes(engine.clone()))
        .merge(events::routes(engine.clone(), streams))
        .merge(worker::routes(engine.clone(), limits))
        .merge(workers::routes(engine.clone()))
        .merge(sessions::routes(engine.clone()))
        .merge(totals::routes(engine.clone()))
        .merge(series::routes(engine.clone()))
        .merge(caller::routes())
        .merge(openapi::routes())
        .merge(dashboard::routes())
        .merge(metrics.unwrap_or_default())
        .fallback(async || {
            Refusal::not_found(
                "there is nothing at this path",
                "MCP clients connect to the address that the server prints at its start",
            )
            .into_response()
        })
        .layer(DefaultBodyLimit::disable())
}

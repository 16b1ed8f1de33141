//! The map of one listener: health, the API, and the MCP face as it comes in. Guards nothing: see `front.rs`.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::IntoResponse;

use super::executions;
use super::health::{self, Readiness};
use super::openapi;
use super::refusal::Refusal;
use super::worker;
use crate::engine::Engine;

/// Everything that is served on one listener. The limit on bodies is `front.rs`'s.
pub fn router(mcp: Router, engine: &Arc<Engine>, readiness: Arc<Readiness>, limits: worker::Limits) -> Router {
    let store = engine.store().clone();
    mcp.merge(health::routes(readiness, store.clone()))
        .merge(executions::routes(store))
        .merge(worker::routes(engine.clone(), limits))
        .merge(openapi::routes())
        .fallback(async || {
            Refusal::not_found(
                "there is nothing at this path",
                "MCP clients connect to the address that the server prints at its start",
            )
            .into_response()
        })
        .layer(DefaultBodyLimit::disable())
}

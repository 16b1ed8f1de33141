//! The worker protocol (docs/worker-protocol.md): `/worker/v1`. Reads strict bodies, acts through the engine's verbs,
//! and says what became of it. Decides nothing about executions.

mod body;
pub(super) mod claim;
mod refused;
pub(super) mod register;
pub(super) mod report;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::engine::Engine;
use crate::engine::remote::RemoteWorker;
use crate::model::id::ProcessId;
use crate::model::principal::Scope;

use super::auth::Access;
use super::refusal::Refusal;

/// What the routes accept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tools of one worker.
    pub tools: usize,
    /// Bytes of one tool's description.
    pub tool_bytes: usize,
    /// Bytes of a step's result.
    pub step_bytes: usize,
    /// Bytes of a checkpoint.
    pub checkpoint_bytes: usize,
    /// Bytes of a result.
    pub result_bytes: usize,
    /// Nesting of a body.
    pub depth: usize,
}

/// What the routes work with.
pub(super) struct Desk {
    engine: Arc<Engine>,
    limits: Limits,
}

/// The routes of the worker protocol. Each expects an [`Access`] among the request's extensions.
pub fn routes(engine: Arc<Engine>, limits: Limits) -> Router {
    Router::new()
        .route("/worker/v1/register", post(register::register))
        .route("/worker/v1/deregister", post(register::deregister))
        .route("/worker/v1/stats", get(register::stats))
        .route("/worker/v1/claim", post(claim::claim))
        .route("/worker/v1/heartbeat", post(report::heartbeat))
        .route("/worker/v1/complete", post(report::complete))
        .route("/worker/v1/fail", post(report::fail))
        .route("/worker/v1/release", post(report::release))
        .route("/worker/v1/step", post(report::step))
        .with_state(Arc::new(Desk { engine, limits }))
}

impl Desk {
    /// The living worker that sends this.
    async fn worker(&self, access: &Access, id: ProcessId) -> Result<Arc<RemoteWorker>, Refusal> {
        access.require(Scope::Work)?;
        Ok(self.engine.remote_worker(id, &access.principal).await?)
    }
}

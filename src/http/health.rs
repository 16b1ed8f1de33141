//! `/healthz`: the process answers. `/readyz`: calls can be served now, or why not. Needs no credential and tells no more
//! than names and states.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;
use tokio::time::{Instant, timeout};
use utoipa::ToSchema;

use super::refusal::json;
use crate::store::Store;

#[cfg(test)]
mod tests;

/// The store has so long to answer a probe.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// Probes share an answer of the store that is no older.
const CHECK_AGE: Duration = Duration::from_millis(200);

/// How far an upstream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Startup {
    /// It has not answered yet and its start-up deadline has not passed.
    Starting,
    /// It has come up.
    Up,
    /// It failed its start-up deadline; its calls are refused, everything else is served.
    Failed,
}

/// What the process knows about its own readiness. Filled by whoever starts things.
#[derive(Debug, Default)]
pub struct Readiness {
    draining: AtomicBool,
    upstreams: Mutex<BTreeMap<String, Startup>>,
}

impl Readiness {
    /// Ready once each of these has come up or failed.
    pub fn new(upstreams: &[String]) -> Arc<Readiness> {
        let upstreams = upstreams.iter().map(|name| (name.clone(), Startup::Starting)).collect();
        Arc::new(Readiness { draining: AtomicBool::new(false), upstreams: Mutex::new(upstreams) })
    }

    /// Says how far an upstream is.
    pub fn set(&self, upstream: &str, startup: Startup) {
        self.upstreams().insert(upstream.to_owned(), startup);
    }

    /// How far an upstream is; `None` for what needs no start.
    pub fn of(&self, upstream: &str) -> Option<Startup> {
        self.upstreams().get(upstream).copied()
    }

    /// From now on nothing new is accepted.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// True after [`Readiness::drain`].
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    fn upstreams(&self) -> MutexGuard<'_, BTreeMap<String, Startup>> {
        self.upstreams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Probe {
    readiness: Arc<Readiness>,
    store: Arc<dyn Store>,
    checked: tokio::sync::Mutex<Option<(Instant, Result<(), &'static str>)>>,
}

/// Whether calls can be served.
#[derive(Serialize, ToSchema)]
#[schema(as = Readiness)]
pub(super) struct Report {
    /// True when they can.
    ready: bool,
    /// Why not.
    reasons: Vec<Reason>,
    /// How far each upstream is.
    upstreams: BTreeMap<String, Startup>,
}

/// Why calls can not be served.
#[derive(Serialize, ToSchema)]
#[schema(as = ReadinessReason)]
pub(super) struct Reason {
    /// The stable name.
    code: &'static str,
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
}

/// The routes `/healthz` and `/readyz`.
pub fn routes(readiness: Arc<Readiness>, store: Arc<dyn Store>) -> Router {
    let probe = Arc::new(Probe { readiness, store, checked: tokio::sync::Mutex::default() });
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready)).with_state(probe)
}

/// Says that the process answers.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "health",
    security(()),
    responses((status = 200, description = "It does.", body = Object, example = json!({"status": "alive"}))),
)]
pub(super) async fn alive() -> Response {
    json(StatusCode::OK, &BTreeMap::from([("status", "alive")]))
}

/// Says whether calls can be served.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    security(()),
    responses(
        (status = 200, description = "They can.", body = Report),
        (status = 503, description = "They can not, and why.", body = Report),
    ),
)]
pub(super) async fn ready(State(probe): State<Arc<Probe>>) -> Response {
    let mut reasons = Vec::new();
    if probe.readiness.is_draining() {
        reasons.push(Reason { code: "draining", upstream: None });
    }
    if let Err(code) = probe.check_store().await {
        reasons.push(Reason { code, upstream: None });
    }
    let upstreams = probe.readiness.upstreams().clone();
    let starting = upstreams.iter().filter(|(_, startup)| **startup == Startup::Starting);
    reasons.extend(starting.map(|(name, _)| Reason { code: "upstream_starting", upstream: Some(name.clone()) }));
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let report = Report { ready: reasons.is_empty(), reasons, upstreams };
    json(status, &report)
}

impl Probe {
    async fn check_store(&self) -> Result<(), &'static str> {
        let mut checked = self.checked.lock().await;
        if let Some((at, answer)) = *checked
            && at.elapsed() < CHECK_AGE
        {
            return answer;
        }
        let answer = match timeout(CHECK_TIMEOUT, self.store.check()).await {
            Ok(answer) => answer.map_err(|error| error.code()),
            Err(_) => Err("store_timeout"),
        };
        *checked = Some((Instant::now(), answer));
        answer
    }
}

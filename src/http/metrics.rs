//! `/metrics`: the counters of this process and how store and process stand, as OpenMetrics text for Prometheus. Needs the
//! scope `read` in the namespace `default`: the figures are those of every tenant. Counts nothing: see `engine/meter`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use tokio::time::Instant;

use super::auth::Access;
use super::openapi::Refused;
use super::refusal::Refusal;
use crate::engine::Engine;
use crate::engine::meter::Figures;
use crate::model::execution::State as Standing;
use crate::model::principal::{DEFAULT_NAMESPACE, Scope};
use crate::store::{self, CandidateQuery};

/// Scrapes share what was read from the store so lately: any number of scrapers costs the store one.
const READ_AGE: Duration = Duration::from_secs(1);

/// How many sessions are in memory here.
pub type SessionCount = Arc<dyn Fn() -> usize + Send + Sync>;

pub(super) struct Scraped {
    engine: Arc<Engine>,
    sessions: SessionCount,
    read: tokio::sync::Mutex<Option<(Instant, Figures)>>,
}

/// The route. Expects an [`Access`] among the request's extensions.
pub fn routes(engine: Arc<Engine>, sessions: SessionCount) -> Router {
    let scraped = Scraped { engine, sessions, read: tokio::sync::Mutex::default() };
    Router::new().route("/metrics", get(metrics)).with_state(Arc::new(scraped))
}

/// The figures of this process, for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "metrics",
    responses(
        Refused,
        (status = 200, description = "OpenMetrics 1.0; docs/metrics.md names every family.", body = String,
         content_type = "application/openmetrics-text"),
    ),
)]
pub(super) async fn metrics(
    State(scraped): State<Arc<Scraped>>,
    Extension(access): Extension<Access>,
) -> Result<Response, Refusal> {
    access.require(Scope::Read)?;
    if access.namespace().is_some_and(|namespace| namespace != DEFAULT_NAMESPACE) {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "namespace_not_permitted",
            "these figures are those of every namespace",
            "use a credential of the namespace `default`",
        ));
    }
    let figures = scraped.figures().await.map_err(|error| Refusal::store(&error))?;
    let mut response = Response::new(Body::from(scraped.engine.meter().encode(&figures)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The media type (OpenMetrics 1.0, "Overall structure").
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Scraped {
    async fn figures(&self) -> store::Result<Figures> {
        let stored = self.stored().await?;
        let engine = &self.engine;
        let listing = engine.catalog().listing();
        let upstreams = listing.upstreams.iter().map(|(name, offer)| (name.clone(), offer.problem.is_none()));
        Ok(Figures {
            connections: engine.store().connections(),
            slots: engine.slots().standing(),
            running: engine.running_count(),
            waiters: engine.waiting_callers(),
            sessions: (self.sessions)(),
            upstreams: upstreams.collect(),
            spans: engine.settings().traces.counts(),
            ..stored
        })
    }

    /// What only the store knows.
    async fn stored(&self) -> store::Result<Figures> {
        let mut read = self.read.lock().await;
        if let Some((at, figures)) = &*read
            && at.elapsed() < READ_AGE
        {
            return Ok(figures.clone());
        }
        let engine = &self.engine;
        let executions = engine.store().totals().await?;
        let now_ms = engine.clock().now_ms();
        let listing = engine.catalog().listing();
        let query = CandidateQuery {
            upstreams: listing.upstreams.iter().map(|(name, _)| name.clone()).collect(),
            process: engine.process(),
            dead: Vec::new(),
            now_ms,
            limit: 1,
        };
        let oldest = engine.store().candidates(query).await?;
        let figures = Figures {
            queue_depth: executions.get(&Standing::Ready).map_or(0, |count| *count as usize),
            queue_oldest_ms: oldest.first().map_or(0, |head| (now_ms - head.run_at_ms).max(0)),
            executions,
            ..Figures::default()
        };
        *read = Some((Instant::now(), figures.clone()));
        Ok(figures)
    }
}

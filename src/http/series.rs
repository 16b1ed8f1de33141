//! `/api/v1/series`: how it went over the last minutes or hours, step by step. Counts what the caller may see, from the
//! log; what each number means is the model's.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::Access;
use super::executions::filters::wrong;
use super::openapi::Refused;
use super::refusal::{Refusal, json};
use super::totals::whose;
use crate::engine::Engine;
use crate::engine::series::Range;
use crate::engine::view::Time;
use crate::model::principal::Scope;
use crate::model::tally::Tally;

/// The route. It expects an [`Access`] among the request's extensions.
pub fn routes(engine: Arc<Engine>) -> Router {
    Router::new().route("/api/v1/series", get(over_time)).with_state(engine)
}

/// How it went.
#[derive(Serialize, ToSchema)]
pub struct Series {
    /// How far back: `15m`, `1h` or `24h`.
    range: &'static str,
    /// How long each step is, in milliseconds.
    step_ms: i64,
    /// The beginning of the first step.
    from: Time,
    /// When it was counted; the last step goes on.
    at: Time,
    /// All steps together.
    sum: Numbers,
    /// The steps, the oldest first, those in which nothing happened too.
    steps: Vec<SeriesStep>,
}

/// A step.
#[derive(Serialize, ToSchema)]
pub struct SeriesStep {
    /// Its beginning.
    at: Time,
    /// What happened in it.
    numbers: Numbers,
}

/// What happened in a span of time. Each number counts events of the log that lie in it, but for `repeats`.
#[derive(Serialize, ToSchema)]
pub struct Numbers {
    /// Calls that were stored.
    submitted: u64,
    /// Calls that completed.
    completed: u64,
    /// Of these, those whose result says `isError`.
    tool_errors: u64,
    /// Calls that completed although an attempt of theirs was lost.
    recovered: u64,
    /// Calls that failed.
    failed: u64,
    /// Calls that were cancelled.
    cancelled: u64,
    /// Calls whose outcome became unknown.
    unknown: u64,
    /// Attempts that were started.
    attempts: u64,
    /// Attempts that were lost: nobody learnt then how they went.
    lost: u64,
    /// Attempts that were ordered after one that ended without a result.
    retried: u64,
    /// Results and reports that came under an old token, or for what has ended. They changed nothing.
    stale_writes: u64,
    /// Calls that were refused, since their key stands for another call.
    conflicts: u64,
    /// Calls that were answered by an execution that was there. They leave no event: each process counts them.
    repeats: u64,
    /// Lost attempts for each attempt; absent when there was none.
    crash_rate: Option<f64>,
    /// From submission to the tool's result; absent when none came.
    latency: Option<Latency>,
}

/// Quantiles of completed calls, in milliseconds, at most 3.2 % off.
#[derive(Serialize, ToSchema)]
pub struct Latency {
    p50_ms: u64,
    p95_ms: u64,
    p99_ms: u64,
}

impl From<&Tally> for Numbers {
    fn from(tally: &Tally) -> Numbers {
        let quantile = |percent| tally.latency.quantile(percent);
        let latency = match (quantile(50), quantile(95), quantile(99)) {
            (Some(p50_ms), Some(p95_ms), Some(p99_ms)) => Some(Latency { p50_ms, p95_ms, p99_ms }),
            _ => None,
        };
        Numbers {
            submitted: tally.submitted,
            completed: tally.completed,
            tool_errors: tally.tool_errors,
            recovered: tally.recovered,
            failed: tally.failed,
            cancelled: tally.cancelled,
            unknown: tally.unknown,
            attempts: tally.attempts,
            lost: tally.lost,
            retried: tally.retried,
            stale_writes: tally.rejected,
            conflicts: tally.conflicted,
            repeats: tally.repeats,
            crash_rate: (tally.attempts > 0).then(|| tally.lost as f64 / tally.attempts as f64),
            latency,
        }
    }
}

/// Tells how it went: throughput, latency, losses and recoveries, step by step.
#[utoipa::path(
    get,
    path = "/api/v1/series",
    tag = "numbers",
    params(("range" = Option<String>, Query, description = "How far back: `15m` (by the minute; the default), `1h` (by the minute) or `24h` (by ten minutes).")),
    responses(Refused, (status = 200, description = "The steps, and all of them together.", body = Series)),
)]
pub(super) async fn over_time(
    State(engine): State<Arc<Engine>>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    access.require(Scope::Read)?;
    let mut wanted = None;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if name != "range" {
            return Err(Refusal::bad_request("there is no such parameter", "the parameter is range"));
        }
        let range = Range::ALL.into_iter().find(|range| range.as_str() == value);
        if wanted.replace(range.ok_or_else(|| wrong("range", "15m, 1h or 24h"))?).is_some() {
            return Err(Refusal::bad_request("a parameter stands twice", "give `range` once"));
        }
    }
    let range = wanted.unwrap_or(Range::QuarterHour);
    let series = engine.series(range, &whose(&access)).await.map_err(|error| Refusal::engine(&error))?;
    let at_ms = (0..).map(|step: i64| series.from_ms + step * series.step_ms);
    let steps =
        series.steps.iter().zip(at_ms).map(|(tally, at_ms)| SeriesStep { at: Time(at_ms), numbers: tally.into() });
    let view = Series {
        range: range.as_str(),
        step_ms: series.step_ms,
        from: Time(series.from_ms),
        at: Time(series.at_ms),
        sum: (&series.sum).into(),
        steps: steps.collect(),
    };
    Ok(json(StatusCode::OK, &view))
}

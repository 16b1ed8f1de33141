//! What a worker reports about the calls it holds: that it works, what came of it, what a later attempt need not do again.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::Desk;
use super::body::{self, invalid, payload};
use crate::engine::remote::{Beat, LeaseStatus, RemoteWorker};
use crate::engine::waiters::Progress;
use crate::http::auth::Access;
use crate::http::openapi::{Problem, Refused};
use crate::http::refusal::{Refusal, json};
use crate::model::decide::{Failure, FailureKind};
use crate::model::execution::ErrorInfo;
use crate::model::id::ProcessId;
use crate::model::principal::Scope;

type Desks = State<Arc<Desk>>;
type Caller = Extension<Access>;
type Answer = Result<Response, Refusal>;

/// Characters of an error's code, of its message, and of the name of a step.
const CODE_CHARS_MAX: usize = 64;
const MESSAGE_CHARS_MAX: usize = 1_000;
const STEP_CHARS_MAX: usize = 255;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Heartbeat<'a> {
    /// The id that the worker made for itself.
    #[schema(value_type = String)]
    worker_id: ProcessId,
    #[serde(default, borrow)]
    leases: Vec<HeldLease<'a>>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct HeldLease<'a> {
    lease_token: String,
    #[serde(default)]
    progress: Option<Reported>,
    #[serde(default, borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<&'a RawValue>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Reported {
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Beaten {
    leases: Vec<LeaseAnswer>,
    draining: bool,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct LeaseAnswer {
    lease_token: String,
    status: &'static str,
}

/// Extends leases; tells what to do about each.
#[utoipa::path(
    post,
    path = "/worker/v1/heartbeat",
    tag = "worker",
    request_body = Heartbeat<'_>,
    responses(
        Refused,
        (status = 200, description = "One answer for each lease, in order.", body = Beaten),
    ),
)]
pub(in crate::http) async fn heartbeat(State(desk): Desks, Extension(access): Caller, body: Body) -> Answer {
    let bytes = body::bytes(body).await?;
    let wanted: Heartbeat<'_> = body::read(&bytes, desk.limits.depth)?;
    let worker = desk.worker(&access, wanted.worker_id).await?;
    let max = desk.limits.checkpoint_bytes;
    if wanted.leases.iter().any(|lease| lease.checkpoint.is_some_and(|raw| raw.get().len() > max)) {
        return Err(invalid(format!("a checkpoint is larger than {max} bytes; workers.checkpoint_bytes sets this")));
    }
    let tokens: Vec<String> = wanted.leases.iter().map(|lease| lease.lease_token.clone()).collect();
    let beats = wanted.leases.into_iter().map(|lease| Beat {
        token: lease.lease_token,
        progress: lease.progress.map(|reported| Progress {
            progress: reported.progress,
            total: reported.total,
            message: reported.message,
        }),
        checkpoint: lease.checkpoint.map(payload),
    });
    let statuses = desk.engine.beat(&worker, beats.collect()).await?;
    let leases = tokens.into_iter().zip(statuses).map(|(lease_token, status)| {
        let status = match status {
            LeaseStatus::Ok => "ok",
            LeaseStatus::Cancel => "cancel",
            LeaseStatus::Lost => "lost",
        };
        LeaseAnswer { lease_token, status }
    });
    Ok(json(StatusCode::OK, &Beaten { leases: leases.collect(), draining: desk.engine.is_drained(&worker) }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Complete<'a> {
    /// The id that the worker made for itself.
    #[schema(value_type = String)]
    worker_id: ProcessId,
    #[serde(default)]
    lease_token: Option<String>,
    #[serde(default, borrow)]
    #[schema(value_type = Option<Object>)]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    results: Option<Vec<Completed<'a>>>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Completed<'a> {
    lease_token: String,
    #[serde(borrow)]
    #[schema(value_type = Object)]
    result: &'a RawValue,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Recorded {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct AllRecorded {
    results: Vec<Recorded>,
}

/// Brings results: one, or many at once.
#[utoipa::path(
    post,
    path = "/worker/v1/complete",
    tag = "worker",
    request_body = Complete<'_>,
    responses(
        Refused,
        (status = 200, description = "Recorded; for many at once an object with one answer for each, in order.", body = Recorded),
        (status = 409, description = "`lease_stale` or `execution_ended`; nothing changed.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(in crate::http) async fn complete(State(desk): Desks, Extension(access): Caller, body: Body) -> Answer {
    access.require(Scope::Work)?;
    let bytes = body::bytes(body).await?;
    let wanted: Complete<'_> = body::read(&bytes, desk.limits.depth)?;
    // Evidence beats ignorance: also a worker that counts as dead may bring it.
    let worker = desk.engine.remote_worker_or_late(wanted.worker_id, &access.principal).await?;
    match (wanted.lease_token, wanted.result, wanted.results) {
        (Some(lease_token), Some(result), None) => {
            let recorded = desk.record(&worker, &Completed { lease_token, result }).await?;
            Ok(json(StatusCode::OK, &recorded))
        }
        (None, None, Some(results)) => {
            let recorded = results.iter().map(|completed| desk.record(&worker, completed));
            let results = futures_util::future::join_all(recorded).await.into_iter().map(|recorded| {
                recorded.unwrap_or_else(|refusal| Recorded {
                    status: "refused",
                    code: Some(refusal.code),
                    detail: Some(refusal.detail.into_owned()),
                })
            });
            Ok(json(StatusCode::OK, &AllRecorded { results: results.collect() }))
        }
        _ => Err(invalid("send either `lease_token` with `result`, or `results`")),
    }
}

impl Desk {
    async fn record(&self, worker: &RemoteWorker, completed: &Completed<'_>) -> Result<Recorded, Refusal> {
        let lease = self.engine.lease_of(worker, &completed.lease_token)?;
        let is_error = body::check_result(completed.result).map_err(invalid)?;
        let max = self.limits.result_bytes;
        if completed.result.get().len() > max {
            return Err(invalid(format!("`result` is larger than {max} bytes; limits.result_bytes sets this")));
        }
        let repeated = self.engine.complete_remote(lease, payload(completed.result), is_error).await?;
        Ok(Recorded { status: if repeated { "already_done" } else { "accepted" }, code: None, detail: None })
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Fail {
    /// The id that the worker made for itself.
    #[schema(value_type = String)]
    worker_id: ProcessId,
    lease_token: String,
    error: Reason,
    retryable: bool,
    #[serde(default)]
    retry_after_ms: Option<i64>,
    #[serde(default)]
    not_started: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Reason {
    #[serde(default)]
    code: Option<String>,
    message: String,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Moved {
    status: &'static str,
    state: &'static str,
}

/// Reports that an attempt brought no result.
#[utoipa::path(
    post,
    path = "/worker/v1/fail",
    tag = "worker",
    request_body = Fail,
    responses(
        Refused,
        (status = 200, description = "Where the execution stands now.", body = Moved),
        (status = 409, description = "`lease_stale`, `lease_lost` or `execution_ended`; nothing changed.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(in crate::http) async fn fail(State(desk): Desks, Extension(access): Caller, body: Body) -> Answer {
    let bytes = body::bytes(body).await?;
    let wanted: Fail = body::read(&bytes, desk.limits.depth)?;
    let worker = desk.worker(&access, wanted.worker_id).await?;
    let lease = desk.engine.lease_of(&worker, &wanted.lease_token)?;
    if wanted.retry_after_ms.is_some_and(|ms| !(0..=86_400_000 * 30).contains(&ms)) {
        return Err(invalid("`retry_after_ms` is 0 to 30 days"));
    }
    let code = wanted.error.code.as_deref().map_or(Ok("worker_error"), |code| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let fits = (1..=CODE_CHARS_MAX).contains(&code.len()) && code.bytes().all(good);
        fits.then_some(code)
            .ok_or_else(|| invalid("`error.code` is 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-` and `.`"))
    })?;
    let failure = Failure {
        kind: match (wanted.not_started, wanted.retryable) {
            (true, true) => FailureKind::NotStarted,
            (_, retryable) => FailureKind::Reported { retryable },
        },
        error: ErrorInfo {
            code: code.to_owned(),
            message: wanted.error.message.chars().take(MESSAGE_CHARS_MAX).collect(),
        },
        retry_after_ms: wanted.retry_after_ms,
    };
    let state = desk.engine.fail_remote(lease, failure).await?;
    Ok(json(StatusCode::OK, &Moved { status: "accepted", state: state.as_str() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Release {
    /// The id that the worker made for itself.
    #[schema(value_type = String)]
    worker_id: ProcessId,
    lease_token: String,
}

/// Gives back a call that was not begun.
#[utoipa::path(
    post,
    path = "/worker/v1/release",
    tag = "worker",
    request_body = Release,
    responses(
        Refused,
        (status = 200, description = "Where the execution stands now.", body = Moved),
        (status = 409, description = "`lease_stale`, `lease_lost` or `execution_ended`; nothing changed.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(in crate::http) async fn release(State(desk): Desks, Extension(access): Caller, body: Body) -> Answer {
    let bytes = body::bytes(body).await?;
    let wanted: Release = body::read(&bytes, desk.limits.depth)?;
    let worker = desk.worker(&access, wanted.worker_id).await?;
    let lease = desk.engine.lease_of(&worker, &wanted.lease_token)?;
    let state = desk.engine.release_remote(lease).await?;
    Ok(json(StatusCode::OK, &Moved { status: "accepted", state: state.as_str() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Step<'a> {
    /// The id that the worker made for itself.
    #[schema(value_type = String)]
    worker_id: ProcessId,
    lease_token: String,
    name: String,
    #[serde(default, borrow, deserialize_with = "body::there")]
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<&'a RawValue>,
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Stepped<'a> {
    name: &'a str,
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<&'a RawValue>,
    found: bool,
    stored: bool,
}

/// Stores the result of a named step once, or asks for it.
#[utoipa::path(
    post,
    path = "/worker/v1/step",
    tag = "worker",
    request_body = Step<'_>,
    responses(
        Refused,
        (status = 200, description = "What is stored.", body = Stepped<'_>),
        (status = 409, description = "`lease_stale`, `lease_lost` or `execution_ended`; nothing changed.", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(in crate::http) async fn step(State(desk): Desks, Extension(access): Caller, body: Body) -> Answer {
    let bytes = body::bytes(body).await?;
    let wanted: Step<'_> = body::read(&bytes, desk.limits.depth)?;
    let worker = desk.worker(&access, wanted.worker_id).await?;
    let lease = desk.engine.lease_of(&worker, &wanted.lease_token)?;
    let chars = wanted.name.chars().count();
    if !(1..=STEP_CHARS_MAX).contains(&chars) || wanted.name.contains(char::is_control) {
        return Err(invalid("the `name` of a step is 1 to 255 visible characters"));
    }
    let max = desk.limits.step_bytes;
    if wanted.result.is_some_and(|raw| raw.get().len() > max) {
        return Err(invalid(format!("the result of a step is larger than {max} bytes; workers.step_bytes sets this")));
    }
    let answer = desk.engine.step(lease, wanted.name.clone(), wanted.result.map(payload)).await?;
    let result: Option<&RawValue> = match &answer.result {
        Some(text) => Some(serde_json::from_str(text).map_err(|_| Refusal::internal("step"))?),
        None => None,
    };
    let stepped = Stepped { name: &wanted.name, result, found: result.is_some(), stored: answer.stored };
    Ok(json(StatusCode::OK, &stepped))
}

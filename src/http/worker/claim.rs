//! Claiming: a long poll whose answer carries leased calls. What was not written whole is given back.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use http_body::{Frame, SizeHint};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::Desk;
use super::body;
use crate::engine::parking::Leased;
use crate::engine::remote::{Ask, Handed, RemoteWorker, lease_token};
use crate::engine::spans;
use crate::http::auth::Access;
use crate::http::openapi::Refused;
use crate::http::refusal::Refusal;
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::Progressed;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Claim {
    /// The id that the worker made for itself.
    #[schema(value_type = String)]
    worker_id: ProcessId,
    /// Calls it has room for.
    #[schema(minimum = 1)]
    max: usize,
    /// How long to wait for the first, in milliseconds.
    #[serde(default)]
    #[schema(minimum = 0)]
    wait_ms: i64,
    /// Only these of its tools.
    #[serde(default)]
    tools: Option<Vec<String>>,
}

/// Claims calls: those that wait, else the next ones, by long poll.
#[utoipa::path(
    post,
    path = "/worker/v1/claim",
    tag = "worker",
    request_body = Claim,
    responses(
        Refused,
        (status = 200, description = "Leased calls; none when nothing came in time.", body = Claimed<'_>),
    ),
)]
pub(in crate::http) async fn claim(
    State(desk): State<Arc<Desk>>,
    Extension(access): Extension<Access>,
    body: Body,
) -> Result<Response, Refusal> {
    let bytes = body::bytes(body).await?;
    let wanted: Claim = body::read(&bytes, desk.limits.depth)?;
    if wanted.max == 0 || wanted.wait_ms < 0 {
        return Err(body::invalid("`max` is at least 1 and `wait_ms` at least 0"));
    }
    let worker = desk.worker(&access, wanted.worker_id).await?;
    let ask = Ask { tools: wanted.tools, max: wanted.max, wait_ms: wanted.wait_ms };
    let handed = desk.engine.claim_remote(&worker, ask).await?;
    let text = desk.answer(&worker, &handed).await?;
    let mut response = Response::new(Body::new(Whole { bytes: Some(text.into()), handed: Some(handed) }));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What a claim is answered with.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Claimed<'a> {
    jobs: Vec<Job<'a>>,
    /// The worker is asked to finish what it has, to deregister and to end.
    draining: bool,
}

/// A leased call.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Job<'a> {
    #[schema(value_type = String)]
    execution_id: ExecutionId,
    /// Names the lease in later requests; opaque and secret.
    lease_token: String,
    /// Grows with each lease of an execution; to be passed on to what the tool writes to.
    fencing_token: i64,
    /// Which try this is.
    attempt: u32,
    max_attempts: u32,
    tool: &'a str,
    #[schema(value_type = Object)]
    arguments: &'a RawValue,
    /// What else of the call is for the tool.
    #[schema(value_type = Option<Object>)]
    meta: Option<Cow<'a, RawValue>>,
    /// The same for every attempt: the tool's key for its own external writes.
    #[schema(value_type = String)]
    effect_key: ExecutionId,
    principal: &'a str,
    namespace: &'a str,
    lease_ttl_ms: i64,
    attempt_timeout_ms: i64,
    total_left_ms: i64,
    /// Results of named steps that earlier attempts stored.
    #[schema(value_type = Object)]
    steps: Steps<'a>,
    /// The newest checkpoint of earlier attempts.
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<&'a RawValue>,
}

/// Results of steps by name, in the order they were stored.
pub(in crate::http) struct Steps<'a>(Vec<(&'a str, &'a RawValue)>);

impl Serialize for Steps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, result) in &self.0 {
            map.serialize_entry(name, result)?;
        }
        map.end()
    }
}

impl Desk {
    async fn answer(&self, worker: &RemoteWorker, handed: &Handed) -> Result<Vec<u8>, Refusal> {
        let mut kept = Vec::with_capacity(handed.jobs().len());
        for leased in handed.jobs() {
            kept.push(self.engine.kept_for(&leased.head).await?);
        }
        let jobs = handed.jobs().iter().zip(&kept).map(|(leased, kept)| self.job(worker, (leased, kept)));
        let jobs = jobs.collect::<serde_json::Result<Vec<_>>>();
        let text = jobs.and_then(|jobs| serde_json::to_vec(&Claimed { jobs, draining: handed.draining() }));
        text.map_err(|error| {
            tracing::error!(%error, "what is stored of a call is no JSON");
            Refusal::internal("claim")
        })
    }

    /// What else of the call goes to the worker, with the span of its lease where spans are made.
    fn meta<'a>(&self, leased: &'a Leased) -> serde_json::Result<Option<Cow<'a, RawValue>>> {
        let (stored, lease) = (leased.meta.as_deref(), leased.lease());
        if let Some(place) = self.engine.place_of_lease(lease.id, lease.fencing_token, stored) {
            let meta = RawValue::from_string(spans::meta_at(stored, place).to_string())?;
            return Ok(Some(Cow::Owned(meta)));
        }
        let borrowed = stored.map(serde_json::from_str::<&RawValue>).transpose()?;
        Ok(borrowed.map(Cow::Borrowed))
    }

    fn job<'a>(
        &self,
        worker: &RemoteWorker,
        (leased, kept): (&'a Leased, &'a Progressed),
    ) -> serde_json::Result<Job<'a>> {
        let (head, ident) = (&leased.head, &leased.head.ident);
        let steps = kept.steps.iter().map(|(name, result)| Ok((name.as_str(), serde_json::from_str(result)?)));
        Ok(Job {
            execution_id: head.id(),
            lease_token: lease_token(&worker.row.lease_key, leased.lease()),
            fencing_token: head.fencing_token,
            attempt: head.attempt,
            max_attempts: head.attempts_allowed,
            tool: &ident.tool,
            arguments: serde_json::from_str(&leased.arguments)?,
            meta: self.meta(leased)?,
            effect_key: ident.effect_key,
            principal: &ident.principal,
            namespace: &ident.namespace,
            lease_ttl_ms: self.engine.settings().lease_ttl_ms,
            attempt_timeout_ms: ident.policy.timeouts.attempt_ms,
            total_left_ms: head.total_deadline_ms().saturating_sub(self.engine.clock().now_ms()).max(0),
            steps: Steps(steps.collect::<serde_json::Result<_>>()?),
            checkpoint: kept.checkpoint.as_deref().map(serde_json::from_str).transpose()?,
        })
    }
}

/// Bytes handed to the connection at once: a worker that left in the middle of a large answer did not get it whole.
const PIECE_BYTES: usize = 64 << 10;

/// A body that gives its calls back when it is dropped before it was taken whole.
struct Whole {
    bytes: Option<Bytes>,
    handed: Option<Handed>,
}

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(mut rest) = self.bytes.take() else { return Poll::Ready(None) };
        if rest.len() > PIECE_BYTES {
            let piece = rest.split_to(PIECE_BYTES);
            self.bytes = Some(rest);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(handed) = self.handed.take() {
            handed.sent();
        }
        Poll::Ready(Some(Ok(Frame::data(rest))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

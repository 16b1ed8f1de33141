//! Claiming: a long poll whose answer carries leased calls. What was not written whole is given back.

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
use serde::Deserialize;

use super::Desk;
use super::body;
use crate::engine::parking::Leased;
use crate::engine::remote::{Ask, Handed, RemoteWorker, lease_token};
use crate::http::auth::Access;
use crate::http::refusal::Refusal;
use crate::model::id::ProcessId;
use crate::model::json::quoted;
use crate::store::Progressed;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    worker_id: ProcessId,
    max: usize,
    #[serde(default)]
    wait_ms: i64,
    #[serde(default)]
    tools: Option<Vec<String>>,
}

pub(super) async fn claim(
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

impl Desk {
    async fn answer(&self, worker: &RemoteWorker, handed: &Handed) -> Result<String, Refusal> {
        let jobs = handed.jobs();
        let bytes: usize = jobs.iter().map(|job| job.arguments.len() + JOB_BYTES).sum();
        let mut text = String::with_capacity(bytes + JOB_BYTES);
        text.push_str("{\"jobs\":[");
        for (at, leased) in jobs.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            let kept = self.engine.kept_for(&leased.head).await?;
            self.push_job(&mut text, worker, (leased, &kept));
        }
        text.push_str("],\"draining\":");
        text.push_str(if worker.row.draining { "true}" } else { "false}" });
        Ok(text)
    }

    /// Arguments, results of steps and the checkpoint are JSON as it was stored, and stay the same bytes.
    fn push_job(&self, text: &mut String, worker: &RemoteWorker, (leased, kept): (&Leased, &Progressed)) {
        use std::fmt::Write;

        let (head, ident) = (&leased.head, &leased.head.ident);
        let total_left_ms = head.total_deadline_ms().saturating_sub(self.engine.clock().now_ms()).max(0);
        // A String takes whatever is written to it.
        let _ = write!(
            text,
            "{{\"execution_id\":\"{}\",\"lease_token\":\"{}\",\"fencing_token\":{},\"attempt\":{},\"max_attempts\":{},\
             \"tool\":{},\"arguments\":{},\"meta\":{},\"effect_key\":\"{}\",\"principal\":{},\"namespace\":{},\
             \"lease_ttl_ms\":{},\"attempt_timeout_ms\":{},\"total_left_ms\":{total_left_ms},\"steps\":{{",
            head.id(),
            lease_token(&worker.row.lease_key, leased.lease()),
            head.fencing_token,
            head.attempt,
            head.attempts_allowed,
            quoted(&ident.tool),
            leased.arguments,
            leased.meta.as_deref().unwrap_or("null"),
            ident.effect_key,
            quoted(&ident.principal),
            quoted(&ident.namespace),
            self.engine.settings().lease_ttl_ms,
            ident.policy.timeouts.attempt_ms,
        );
        for (at, (name, result)) in kept.steps.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(text, "{comma}{}:{result}", quoted(name));
        }
        let _ = write!(text, "}},\"checkpoint\":{}}}", kept.checkpoint.as_deref().unwrap_or("null"));
    }
}

/// About what a job takes besides its arguments.
const JOB_BYTES: usize = 640;

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

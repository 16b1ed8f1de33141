//! The span of a POST, from its head to the answer; a stream holds on to it until its end. Answers nothing itself.

use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use opentelemetry::trace::SpanKind;
use tracing::Instrument;

use super::super::face::Face;
use super::super::headers;
use super::post;
use crate::model::principal::Principal;
use crate::telemetry::{Place, here};

/// Takes in a POST, and tells of it where spans are made.
pub(super) async fn post(face: Arc<Face>, principal: Principal, headers: &HeaderMap, body: Body) -> Response {
    let traces = face.engine.settings().traces.clone();
    let logged = here::logged();
    if !traces.is_on() {
        return post::post(face, principal, headers, body).instrument(logged).await;
    }
    let parent = headers::trace(headers).traceparent.as_deref().and_then(Place::parse);
    let span = traces.span("POST", SpanKind::Server, parent);
    span.set("http.request.method", "POST");
    span.set("mcp.session.present", headers.contains_key(headers::SESSION_ID));
    span.set("durable_mcp.instance_age_s", traces.age_seconds());
    let answering = Box::pin(post::post(face, principal, headers, body).instrument(logged));
    let response = here::within(span.clone(), answering).await;
    let kind = response.headers().get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    let mode = match kind {
        kind if kind.starts_with(b"text/event-stream") => "sse",
        kind if kind.starts_with(b"application/json") => "json",
        _ => "none",
    };
    span.set("durable_mcp.response_mode", mode);
    span.set("http.response.status_code", i64::from(response.status().as_u16()));
    if response.status().is_server_error() {
        span.fail("server_error");
    }
    response
}

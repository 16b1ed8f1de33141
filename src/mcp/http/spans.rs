//! The span of a request, from its head to the answer; a stream holds on to it until its end. Answers nothing itself.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use futures_util::StreamExt;
use opentelemetry::trace::SpanKind;
use tracing::Instrument;

use super::super::face::Face;
use super::super::headers;
use super::{post, sessions};
use crate::model::principal::Principal;
use crate::telemetry::{Place, Span, here};

/// Takes in a POST, and tells of it where spans are made.
pub(super) async fn post(face: Arc<Face>, principal: Principal, headers: &HeaderMap, body: Body) -> Response {
    let logged = here::logged();
    let span = begin(&face, "POST", headers);
    // In a box, since every layer of the router moves what it answers with.
    let answering = Box::pin(post::post(face, principal, headers, body).instrument(logged));
    let Some(span) = span else { return answering.await };
    let response = here::within(span.clone(), answering).await;
    told(&span, &response);
    response
}

/// Answers a GET or a DELETE, and tells of it where spans are made.
pub(super) async fn other(face: Arc<Face>, principal: Principal, method: Method, headers: &HeaderMap) -> Response {
    let gets = method == Method::GET;
    let answering = async {
        match gets {
            true => sessions::get(&face, &principal, headers).await,
            false => sessions::delete(&face, &principal, headers).await,
        }
    };
    let Some(span) = begin(&face, if gets { "GET" } else { "DELETE" }, headers) else { return answering.await };
    let response = here::within(span.clone(), answering).await;
    told(&span, &response);
    held(response, span)
}

/// The span of what opens a stream: it ends with it.
pub(super) fn stream(face: &Face, headers: &HeaderMap, response: Response) -> Response {
    match begin(face, "GET", headers) {
        Some(span) => {
            told(&span, &response);
            held(response, span)
        }
        None => response,
    }
}

fn begin(face: &Face, method: &'static str, headers: &HeaderMap) -> Option<Span> {
    let traces = &face.engine.settings().traces;
    if !traces.is_on() {
        return None;
    }
    let parent = headers::trace(headers).traceparent.as_deref().and_then(Place::parse);
    let span = traces.entry(method, SpanKind::Server, parent);
    span.set("http.request.method", method);
    span.set("mcp.session.present", headers.contains_key(headers::SESSION_ID));
    span.set("durable_mcp.instance_age_s", traces.age_seconds());
    Some(span)
}

fn told(span: &Span, response: &Response) {
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
}

/// The answer, whose body holds on to the span.
fn held(response: Response, span: Span) -> Response {
    response.map(|body| {
        Body::from_stream(body.into_data_stream().map(move |piece| {
            let _held = &span;
            piece
        }))
    })
}

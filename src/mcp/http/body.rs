//! The body of a POST: its media types, its size, its time. Understands nothing of what it says.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::super::face::Settings;
use super::super::reject::{RpcError, code};
use super::reply::rpc;

/// The whole body, within its bounds of size and time.
pub(super) async fn read(mut body: Body, settings: &Settings) -> Result<Bytes, Box<Response>> {
    let bytes_max = settings.envelope.bytes_max;
    let too_long = |body: Body| {
        tokio::spawn(drain(body));
        let words = format!("the body is longer than {bytes_max} bytes");
        rpc(413, None, &RpcError::new(code::INVALID_REQUEST, words))
    };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(Box::new(too_long(body)));
    }
    let read = Limited::new(&mut body, bytes_max).collect();
    let refusal = match tokio::time::timeout(Duration::from_millis(settings.body_timeout_ms), read).await {
        Ok(Ok(collected)) => return Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => too_long(body),
        // The client left in the middle of its own message.
        Ok(Err(_)) => StatusCode::BAD_REQUEST.into_response(),
        Err(_) => rpc(408, None, &RpcError::new(code::INVALID_REQUEST, "the body did not come in time")),
    };
    Err(Box::new(refusal))
}

/// How long a client may go on sending a body that is refused.
const DRAIN: Duration = Duration::from_secs(5);

/// Takes in what is left and keeps nothing of it: a client that is cut while it sends never reads why.
async fn drain(mut body: Body) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    // A client that is not done by then is cut.
    let _ = tokio::time::timeout(DRAIN, rest).await;
}

/// The body has to be JSON, and the client has to read both forms of an answer (specification, Streamable HTTP).
pub(super) fn check_media_types(headers: &HeaderMap) -> Result<(), Box<Response>> {
    if !is_json(headers) {
        let error = RpcError::new(code::INVALID_REQUEST, "the Content-Type must be application/json");
        return Err(Box::new(rpc(415, None, &error)));
    }
    let (mut json, mut sse) = (false, false);
    for value in headers.get_all(header::ACCEPT) {
        for range in value.to_str().unwrap_or_default().split(',') {
            match range.split(';').next().unwrap_or_default().trim() {
                "*/*" => (json, sse) = (true, true),
                "application/json" | "application/*" => json = true,
                "text/event-stream" | "text/*" => sse = true,
                _ => {}
            }
        }
    }
    if json && sse {
        return Ok(());
    }
    let words = "the Accept header must list application/json and text/event-stream";
    Err(Box::new(rpc(406, None, &RpcError::new(code::INVALID_REQUEST, words))))
}

/// True when the body is said to be JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| {
        value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    })
}

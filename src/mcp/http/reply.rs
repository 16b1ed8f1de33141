//! Responses: a status and a JSON body. Decides nothing about what was asked.

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::super::answer::Reply;
use super::super::frame;
use super::super::going::error_code;
use super::super::id::Id;
use super::super::method;
use super::super::reject::{RpcError, Source, code, http_status};
use crate::model::revision::Era;

/// The method is not offered to this caller.
pub(super) fn not_allowed() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response()
}

/// The answer to a request that is no call.
pub(super) fn respond(era: Era, id: &Id<'_>, answer: method::Answer) -> Response {
    let mut out = String::new();
    match answer {
        Ok(result) => {
            frame::result(&mut out, id, &result);
            json(200, out)
        }
        Err((source, error)) => {
            let status = http_status(era, source, error.code);
            frame::error(&mut out, Some(id), &error);
            json(status, out)
        }
    }
}

/// An error response.
pub(super) fn rpc(status: u16, id: Option<&Id<'_>>, error: &RpcError) -> Response {
    let mut out = String::new();
    frame::error(&mut out, id, error);
    json(status, out)
}

/// A JSON body.
pub(super) fn json(status: u16, text: String) -> Response {
    let mut response = Response::new(Body::from(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The status of an answer to a call.
pub(in crate::mcp) fn status_of(reply: &Reply, era: Era) -> u16 {
    match reply {
        Reply::Result(_) => 200,
        // What an upstream says of the client's capabilities is as good as our own word.
        Reply::RawError(error) if error_code(error) == Some(code::MISSING_CLIENT_CAPABILITY) => {
            http_status(era, Source::Handler, code::MISSING_CLIENT_CAPABILITY)
        }
        Reply::RawError(_) => 200,
        Reply::Error(error) if error.code == code::INTERNAL_ERROR => 500,
        Reply::Error(error) => http_status(era, Source::Handler, error.code),
    }
}

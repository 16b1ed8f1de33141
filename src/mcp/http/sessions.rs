//! GET and DELETE, and who may use which session. Opens none.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::super::era;
use super::super::face::Face;
use super::super::headers::{self, Field};
use super::super::reject::{RpcError, code};
use super::super::session::{Lookup, Session};
use super::super::stream;
use super::reply::{not_allowed, rpc};
use crate::model::principal::Principal;

/// The stream of a legacy session for what concerns no request.
pub(super) fn get(face: &Arc<Face>, principal: &Principal, headers: &HeaderMap) -> Response {
    let version = Field::of(headers, headers::PROTOCOL_VERSION);
    match era::decide_stream(version, headers.contains_key(headers::SESSION_ID)) {
        Ok(_) => {}
        Err(rejection) if rejection.status == 405 => return not_allowed(),
        Err(rejection) => return rpc(rejection.status, None, &rejection.error),
    }
    match session_of(face, principal, headers) {
        Ok(session) => stream::of_session(face, &session),
        Err(refusal) => *refusal,
    }
}

/// Ends a session.
pub(super) fn delete(face: &Face, principal: &Principal, headers: &HeaderMap) -> Response {
    let version = Field::of(headers, headers::PROTOCOL_VERSION);
    match era::decide_stream(version, headers.contains_key(headers::SESSION_ID)) {
        Ok(_) => {}
        Err(rejection) if rejection.status == 405 => return not_allowed(),
        Err(rejection) => return rpc(rejection.status, None, &rejection.error),
    }
    let id = match Field::of(headers, headers::SESSION_ID) {
        Field::Value(id) => id,
        Field::Absent | Field::Invalid => return unreadable_session(),
    };
    match face.sessions.find(id, principal, face.engine.clock().now_ms()) {
        Lookup::Found(_) => face.sessions.close(id),
        Lookup::Unknown => {}
        Lookup::Foreign => return foreign_session(),
    }
    StatusCode::NO_CONTENT.into_response()
}

/// The session that a request names.
pub(super) fn session_of(
    face: &Face,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Arc<Session>, Box<Response>> {
    let id = match Field::of(headers, headers::SESSION_ID) {
        Field::Value(id) => id,
        Field::Absent => {
            let words = "the header Mcp-Session-Id is missing; send initialize first";
            return Err(Box::new(rpc(400, None, &RpcError::new(code::INVALID_REQUEST, words))));
        }
        Field::Invalid => return Err(Box::new(unreadable_session())),
    };
    match face.sessions.find(id, principal, face.engine.clock().now_ms()) {
        Lookup::Found(session) => Ok(session),
        Lookup::Unknown => {
            let words = "the session is unknown or has expired; reconnect with initialize";
            Err(Box::new(rpc(404, None, &RpcError::new(SESSION_GONE, words))))
        }
        Lookup::Foreign => Err(Box::new(foreign_session())),
    }
}

/// Legacy only: the session is unknown or expired.
const SESSION_GONE: i64 = -32001;
/// Legacy only: the session is somebody else's.
const SESSION_FOREIGN: i64 = -32003;

fn unreadable_session() -> Response {
    let words = "the header Mcp-Session-Id must be there once and be plain text";
    rpc(400, None, &RpcError::new(code::INVALID_REQUEST, words))
}

fn foreign_session() -> Response {
    rpc(403, None, &RpcError::new(SESSION_FOREIGN, "the session belongs to another caller"))
}

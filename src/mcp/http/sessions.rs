//! GET and DELETE, and who may use which session. Opens none.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::super::answer;
use super::super::era;
use super::super::face::Face;
use super::super::headers::{self, Field};
use super::super::reject::{RpcError, code};
use super::super::session::{Lookup, Session};
use super::super::stream::{self, NotResumed};
use super::reply::{not_allowed, rpc};
use crate::engine;
use crate::model::principal::Principal;

/// The stream of a legacy session for what concerns no request; or one that was cut, from the event that came last.
pub(super) async fn get(face: &Arc<Face>, principal: &Principal, headers: &HeaderMap) -> Response {
    let version = Field::of(headers, headers::PROTOCOL_VERSION);
    match era::decide_stream(version, headers.contains_key(headers::SESSION_ID)) {
        Ok(_) => {}
        Err(rejection) if rejection.status == 405 => return not_allowed(),
        Err(rejection) => return rpc(rejection.status, None, &rejection.error),
    }
    let session = match session_of(face, principal, headers).await {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    let unknown = || {
        let words =
            "this session has no stream with the event of Last-Event-ID; ask without it, or send the call again";
        rpc(400, None, &RpcError::new(code::INVALID_REQUEST, words))
    };
    match Field::of(headers, headers::LAST_EVENT_ID) {
        Field::Absent => stream::of_session(face, &session),
        Field::Invalid => unknown(),
        Field::Value(event_id) => match stream::resume(face, &session, principal, event_id).await {
            Ok(response) => response,
            Err(NotResumed::Unknown) => unknown(),
            Err(NotResumed::Fault(error)) => fault(&error),
        },
    }
}

/// Ends a session, for every process. One that has ended already has ended (docs/adr/0009).
pub(super) async fn delete(face: &Face, principal: &Principal, headers: &HeaderMap) -> Response {
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
    match face.close_session(id, principal).await {
        Ok(true) => StatusCode::NO_CONTENT.into_response(),
        Ok(false) => foreign_session(),
        Err(error) => fault(&error),
    }
}

/// The session that a request names.
pub(super) async fn session_of(
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
    match face.find_session(id, principal).await {
        Ok(Lookup::Found(session)) => Ok(session),
        Ok(Lookup::Unknown) => Err(Box::new(unknown_session())),
        Ok(Lookup::Foreign) => Err(Box::new(foreign_session())),
        Err(error) => Err(Box::new(fault(&error))),
    }
}

/// The store can not say whose the session is: a client must not take that for its end.
fn fault(error: &engine::Error) -> Response {
    rpc(503, None, &answer::refused(error))
}

/// Legacy only: the session is unknown or expired.
const SESSION_GONE: i64 = -32001;
/// Legacy only: the session is somebody else's.
const SESSION_FOREIGN: i64 = -32003;

fn unreadable_session() -> Response {
    let words = "the header Mcp-Session-Id must be there once and be plain text";
    rpc(400, None, &RpcError::new(code::INVALID_REQUEST, words))
}

pub(super) fn unknown_session() -> Response {
    let words = "the session is unknown or has expired; reconnect with initialize";
    rpc(404, None, &RpcError::new(SESSION_GONE, words))
}

pub(super) fn foreign_session() -> Response {
    rpc(403, None, &RpcError::new(SESSION_FOREIGN, "the session belongs to another caller"))
}

//! `initialize`: opens a session. Checks nothing that holds for every POST.

use std::sync::PoisonError;

use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::super::admit::Body as Params;
use super::super::envelope::Message;
use super::super::id::Id;
use super::super::reject::{RpcError, Source, code};
use super::super::session::Session;
use super::super::{answer, headers, method};
use super::post::Post;
use super::reply::{respond, rpc};
use crate::model::revision::Era;

impl Post<'_> {
    /// `initialize`.
    pub(super) async fn open(self, message: Message<'_>, body: Params<'_>) -> Response {
        let Message::Request { id, .. } = &message else {
            return rpc(400, None, &RpcError::new(code::INVALID_REQUEST, "initialize must be a request"));
        };
        let Params::Other { params, .. } = body else {
            return rpc(400, Some(id), &RpcError::new(code::INVALID_REQUEST, "initialize carries no call"));
        };
        let hello = match method::Hello::read(&params) {
            Ok(hello) => hello,
            Err(error) => return respond(Era::Legacy, id, Err((Source::Handler, error))),
        };
        let now_ms = self.face.engine.clock().now_ms();
        if let Err(wait_ms) = self.face.opening.lock().unwrap_or_else(PoisonError::into_inner).take(now_ms) {
            return too_many(id, "sessions are being opened too fast; try again later", wait_ms);
        }
        let namespace = self.principal.namespace.clone();
        let result = self.face.initialize_result(hello.revision, &self.principal).await;
        let mut session = Session::new(hello.revision, hello.client_name, self.principal, now_ms);
        session.capabilities = hello.capabilities;
        session.wishes.set_told(self.face.offering_now(&namespace).marks);
        let Some(session_id) = self.face.sessions.open(session, now_ms) else {
            return too_many(id, "too many sessions are open; try again later", SESSION_RETRY_MS);
        };
        let mut response = respond(Era::Legacy, id, Ok(result.into()));
        if let Ok(value) = HeaderValue::from_str(&session_id) {
            response.headers_mut().insert(headers::SESSION_ID, value);
        }
        response
    }
}

/// When a place for a session may be free: idle ones are looked for at least so often.
const SESSION_RETRY_MS: i64 = 60_000;

/// A client that opens sessions faster than they end. The status is what proxies and clients back off for.
fn too_many(id: &Id<'_>, words: &'static str, wait_ms: i64) -> Response {
    let mut response = rpc(429, Some(id), &answer::overload(words.into()));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from((wait_ms + 999) / 1_000));
    response
}

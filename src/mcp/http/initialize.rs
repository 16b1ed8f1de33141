//! `initialize`: opens a session. Checks nothing that holds for every POST.

use std::sync::PoisonError;

use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::super::admit::Body as Params;
use super::super::envelope::Message;
use super::super::id::Id;
use super::super::reject::{RpcError, Source, code};
use super::super::{answer, headers, method};
use super::post::Post;
use super::reply::{respond, rpc};
use crate::engine::sessions::NewSession;
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
        let namespace = &self.principal.namespace;
        let result = self.face.initialize_result(hello.revision, &self.principal).await;
        let marks = self.face.offering_now(namespace).marks;
        let new = NewSession {
            revision: hello.revision,
            client_name: hello.client_name,
            client_info: hello.client_info,
            capabilities: hello.capabilities,
        };
        // The last thing that may fail: what is refused has left nothing behind.
        let session_id = match self.face.open_session(new, &self.principal).await {
            Ok(Some((session_id, session))) => {
                session.wishes.set_told(marks);
                session_id
            }
            Ok(None) => {
                let words = "too many sessions of this caller are open; end some with DELETE, or try again later";
                return too_many(id, words, SESSION_RETRY_MS);
            }
            Err(error) => return respond(Era::Legacy, id, Err((Source::Handler, answer::refused(&error)))),
        };
        let mut response = respond(Era::Legacy, id, Ok(result.into()));
        if let Ok(value) = HeaderValue::from_str(&session_id) {
            response.headers_mut().insert(headers::SESSION_ID, value);
        }
        response
    }
}

/// When a place for a session may be free.
const SESSION_RETRY_MS: i64 = 60_000;

/// A client that opens sessions faster than they end. The status is what proxies and clients back off for.
fn too_many(id: &Id<'_>, words: &'static str, wait_ms: i64) -> Response {
    let mut response = rpc(429, Some(id), &answer::overload(words.into()));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from((wait_ms + 999) / 1_000));
    response
}

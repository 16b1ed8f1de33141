//! Streamable HTTP: one endpoint for every revision. A POST carries one message (or an old batch) and is answered as
//! JSON or as an event stream; GET streams notifications to legacy sessions; DELETE ends one. Authenticates nobody and
//! checks no Host or Origin: the guard in front of it does.

mod batch;
mod body;
mod exchange;
mod going;
mod initialize;
pub mod pair;
mod post;
mod reply;
mod sessions;
mod spans;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;

pub(super) use self::exchange::{Exchange, Occupied};
pub(super) use self::reply::status_of;
use super::face::Face;
use super::reject::{RpcError, code};
use crate::model::principal::Principal;

/// The routes of the endpoint at `path`, and below it at each namespace's name with `namespace_paths`. Requests must
/// carry their [`Principal`] as an extension.
pub fn router(face: Arc<Face>, path: &str, namespace_paths: bool) -> Router {
    let mut router = Router::new().route(path, any(|State(face), request: Request| endpoint(face, None, request)));
    if namespace_paths {
        let named =
            |State(face), Path(namespace): Path<String>, request: Request| endpoint(face, Some(namespace), request);
        router = router.route(&format!("{path}/{{namespace}}"), any(named));
    }
    router.with_state(face)
}

async fn endpoint(face: Arc<Face>, namespace: Option<String>, request: Request) -> Response {
    let Some(principal) = request.extensions().get::<Principal>().cloned() else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    // A namespace in the path that is not the credential's does not exist for the caller.
    if namespace.is_some_and(|namespace| namespace != principal.namespace) {
        let words = "the path names a namespace that is not the one of the credential";
        return reply::rpc(404, None, &RpcError::new(code::INVALID_REQUEST, words));
    }
    let (parts, body) = request.into_parts();
    match parts.method {
        Method::POST => spans::post(face, principal, &parts.headers, body).await,
        // What is rare gets a box of its own: the future of a call is made and moved for each one.
        method @ (Method::GET | Method::DELETE) => {
            Box::pin(spans::other(face, principal, method, &parts.headers)).await
        }
        _ => reply::not_allowed(),
    }
}

//! `/api/v1/caller`: who the server takes the caller for, so that a page offers nothing that would be refused. Grants
//! nothing: each route decides for itself.

use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::{Access, Proof};
use super::openapi::Refused;
use super::refusal::{Refusal, json, no_parameters};
use crate::model::principal::Scope;

/// The route. It expects an [`Access`] among the request's extensions.
pub fn routes() -> Router {
    Router::new().route("/api/v1/caller", get(show))
}

/// Who calls, and what for.
#[derive(Serialize, ToSchema)]
#[schema(as = Caller)]
pub struct CallerView<'a> {
    /// The subject of the credential; `anonymous` without one.
    principal: &'a str,
    /// The tenant border.
    namespace: &'a str,
    /// The scopes that the credential permits.
    scopes: Vec<&'static str>,
    /// True when orders are taken from this caller, each with its scope.
    actions: bool,
    /// True when the caller may read arguments and results.
    payloads: bool,
}

/// Tells who the caller is to this server.
#[utoipa::path(
    get,
    path = "/api/v1/caller",
    tag = "caller",
    responses(Refused, (status = 200, description = "Who calls.", body = CallerView)),
)]
pub(super) async fn show(Extension(access): Extension<Access>, query: RawQuery) -> Result<Response, Refusal> {
    no_parameters(query)?;
    let principal = &access.principal;
    let scopes = Scope::ALL.into_iter().filter(|scope| principal.scopes.permits(*scope)).map(Scope::as_str).collect();
    let view = CallerView {
        principal: &principal.subject,
        namespace: &principal.namespace,
        scopes,
        actions: access.proof != Proof::None,
        payloads: access.require_payloads().is_ok(),
    };
    Ok(json(StatusCode::OK, &view))
}

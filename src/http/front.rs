//! The front of a listener: what every request passes before a router sees it. Host and Origin, size, identity, in this
//! order, and before the body is read. Knows no routes but those that need no identity.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http_body_util::Limited;
use tower_service::Service;

use super::auth::{Access, Auth, Connection, Proof};
use super::dashboard;
use super::guard::Guard;
use super::refusal::Refusal;
use crate::model::principal::{DEFAULT_NAMESPACE, Principal, Scope};
use crate::telemetry::faults;

#[cfg(test)]
mod tests;

/// What guards a router.
pub struct Front {
    /// Host and Origin.
    pub guard: Guard,
    /// Who calls.
    pub auth: Auth,
    /// What is served.
    pub router: Router,
    /// The paths of the MCP endpoints; what lies at and below one needs the scope `call`.
    pub mcp_paths: Vec<String>,
    /// The namespaces that are declared besides `default`.
    pub namespaces: BTreeSet<String>,
    /// The largest body of a request elsewhere.
    pub body_bytes_max: usize,
}

impl Front {
    /// Answers a request. Never fails; a panic below is an internal fault with an id in the log.
    pub async fn handle<B>(&self, request: axum::http::Request<B>, connection: Connection) -> Response
    where
        B: HttpBody<Data = axum::body::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let answered = AssertUnwindSafe(self.admit(request, connection)).catch_unwind().await;
        match answered {
            Ok(Ok(response)) => response,
            Ok(Err(refusal)) => refusal.into_response(),
            Err(_) => {
                let id = faults::caught();
                // The panic itself went to the hook, under this id; its text is not for clients.
                tracing::error!(id, "a request ended in an internal fault");
                Refusal::internal(&id).into_response()
            }
        }
    }

    async fn admit<B>(&self, request: axum::http::Request<B>, connection: Connection) -> Result<Response, Refusal>
    where
        B: HttpBody<Data = axum::body::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        self.guard.check(request.uri(), request.headers(), Some(connection.local.ip()))?;
        let is_mcp = self.is_mcp(request.uri().path());
        // The MCP face has its own limit, and answers in its own words.
        if !is_mcp && request.body().size_hint().lower() > self.body_bytes_max as u64 {
            return Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                format!("the body is larger than {} bytes", self.body_bytes_max),
                "send less, or raise server.max_body_bytes",
            ));
        }
        let (mut head, body) = request.into_parts();
        head.extensions.insert(connection);
        let path = head.uri.path();
        if !is_open(path) {
            let access = self.auth.identify(&head.headers, Some(connection.peer.ip())).await?;
            self.require_declared(&access)?;
            if is_mcp {
                access.require(Scope::Call)?;
            }
            head.extensions.insert(caller(&access, is_mcp));
            head.extensions.insert(access);
        }
        let body = if is_mcp { Body::new(body) } else { Body::new(Limited::new(body, self.body_bytes_max)) };
        let request = Request::from_parts(head, body);
        // A router is always ready; a clone is two reference counts.
        let Ok(response) = self.router.clone().call(request).await;
        Ok(response)
    }

    /// A credential of a tenant that this server does not have is somebody's mistake, and opens nothing.
    fn require_declared(&self, access: &Access) -> Result<(), Refusal> {
        let namespace = &access.principal.namespace;
        if namespace == DEFAULT_NAMESPACE || self.namespaces.contains(namespace) {
            return Ok(());
        }
        Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "namespace_unknown",
            "the namespace of this credential is not declared on this server",
            "declare it in the configuration: [namespaces.NAME]",
        ))
    }

    fn is_mcp(&self, path: &str) -> bool {
        let is_at =
            |mcp: &String| path.strip_prefix(mcp.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.mcp_paths.iter().any(is_at)
    }
}

/// Probes come from supervisors that have no credential, and a page is loaded before it can have one.
fn is_open(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz") || dashboard::serves(path)
}

/// Without authentication every MCP caller is the same one, whoever else it could prove to be: its keys and executions
/// must not depend on whether a token was at hand.
fn caller(access: &Access, is_mcp: bool) -> Principal {
    match access.proof {
        Proof::LocalToken if is_mcp => Principal::anonymous(),
        _ => access.principal.clone(),
    }
}

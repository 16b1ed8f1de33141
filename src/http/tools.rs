//! The tools that are offered, each with its effective policy and who said so, and how the servers behind them stand.
//! Calls none.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Router};
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::Access;
use super::executions::Answer;
use super::health::{Readiness, Startup};
use super::openapi::Refused;
use super::refusal::{Refusal, json};
use crate::engine::Engine;
use crate::engine::catalog::{Offer, Tool};
use crate::engine::view::{SourceOf, ToolView, UpstreamState};
use crate::model::principal::Scope;

#[cfg(test)]
mod tests;

/// What the routes work with.
#[derive(Clone)]
pub struct Tools {
    /// Has the catalog.
    pub engine: Arc<Engine>,
    /// How far the servers are.
    pub readiness: Arc<Readiness>,
    /// Who said what.
    pub sources: SourceOf,
}

/// The routes of tools.
pub fn routes(tools: Tools) -> Router {
    Router::new().route("/api/v1/tools", get(list)).route("/api/v1/tools/{name}", get(show)).with_state(tools)
}

/// Every tool that the caller may see.
#[derive(Serialize, ToSchema)]
pub struct ToolList<'a> {
    /// In the order in which clients get them.
    tools: Vec<ToolView<'a>>,
    /// What offers them.
    upstreams: Vec<UpstreamView<'a>>,
}

/// What offers tools.
#[derive(Serialize, ToSchema)]
#[schema(as = Upstream)]
pub struct UpstreamView<'a> {
    /// Its name.
    name: &'a str,
    /// How it stands.
    state: UpstreamState,
    /// Why it is down; for those who may operate.
    problem: Option<&'a str>,
    /// How many tools the caller sees of it.
    tools: usize,
}

/// Lists the tools with their effective policies.
#[utoipa::path(
    get,
    path = "/api/v1/tools",
    tag = "tools",
    responses(Refused, (status = 200, description = "The tools.", body = ToolList)),
)]
pub(super) async fn list(State(tools): State<Tools>, Extension(access): Extension<Access>) -> Answer {
    access.require(Scope::Read)?;
    let listing = tools.engine.catalog().listing();
    let seen: Vec<&Arc<Tool>> = listing.tools.iter().filter(|tool| sees(&access, tool)).collect();
    let view = |tool: &&'_ Arc<Tool>| {
        let offer = listing.upstreams.iter().find(|(name, _)| *name == tool.upstream).map(|(_, offer)| offer);
        tools.state(&tool.upstream, offer)
    };
    let views = seen.iter().map(|tool| ToolView::of(tool, view(tool), &tools.sources)).collect();
    let operates = access.principal.scopes.permits(Scope::Operate);
    let upstreams = listing.upstreams.iter().map(|(name, offer)| UpstreamView {
        name,
        state: tools.state(name, Some(offer)),
        problem: offer.problem.as_deref().filter(|_| operates),
        tools: seen.iter().filter(|tool| tool.upstream == *name).count(),
    });
    // What offers nothing to this caller is none of its business, unless it operates.
    let upstreams = upstreams.filter(|upstream| operates || upstream.tools > 0).collect();
    Ok(json(StatusCode::OK, &ToolList { tools: views, upstreams }))
}

/// Shows one tool with its definition.
#[utoipa::path(
    get,
    path = "/api/v1/tools/{name}",
    tag = "tools",
    params(("name" = String, Path, description = "The name clients call it by.")),
    responses(Refused, (status = 200, description = "The tool.", body = ToolView)),
)]
pub(super) async fn show(
    State(tools): State<Tools>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
) -> Answer {
    access.require(Scope::Read)?;
    let listing = tools.engine.catalog().listing();
    let found = listing.tools.iter().find(|tool| tool.exposed == name && sees(&access, tool));
    let tool = found.ok_or_else(|| {
        Refusal::not_found("there is no such tool", "`durable-mcp tools list` shows those that you may see")
    })?;
    let offer = listing.upstreams.iter().find(|(name, _)| *name == tool.upstream).map(|(_, offer)| offer);
    let view = ToolView::of(tool, tools.state(&tool.upstream, offer), &tools.sources).whole(tool);
    Ok(json(StatusCode::OK, &view))
}

/// A tool of another tenant is as if it were missing.
fn sees(access: &Access, tool: &Tool) -> bool {
    access.namespace().is_none_or(|namespace| tool.service.is_offered_in(namespace))
}

impl Tools {
    fn state(&self, upstream: &str, offer: Option<&Offer>) -> UpstreamState {
        match (offer, self.readiness.of(upstream)) {
            (Some(Offer { problem: Some(_), .. }), _) => UpstreamState::Down,
            (_, Some(Startup::Starting)) | (Some(Offer { known: false, .. }), _) => UpstreamState::Starting,
            _ => UpstreamState::Up,
        }
    }
}

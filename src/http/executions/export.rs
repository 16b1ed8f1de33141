//! Executions whole, as JSON Lines. The server streams them: a client that paged would ask three times for each execution.
//! Holds one page of rows at a time, and goes on as fast as the client reads.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use futures_util::stream;

use super::filters::{Filter, FilterParams, unknown_parameter};
use super::{Answer, Caller, Source};
use crate::engine::{Engine, export as exported};
use crate::http::openapi::Refused;
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::store::{self, ListQuery};

/// Rows read at once.
const PAGE: usize = 200;

/// Exports executions with their events and payloads, newest first: one JSON object a line.
#[utoipa::path(
    get,
    path = "/api/v1/executions/export",
    tag = "executions",
    params(FilterParams),
    responses(
        Refused,
        (status = 200, description = "A line for each execution.", body = crate::engine::export::ExportLine,
            content_type = "application/jsonl"),
    ),
)]
pub(in crate::http) async fn export(
    State(engine): Source,
    Extension(access): Caller,
    RawQuery(query): RawQuery,
) -> Answer {
    access.require_payloads()?;
    let mut filter = Filter::default();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if !filter.take(&name, &value)? {
            return Err(unknown_parameter("no others"));
        }
    }
    let body = match filter.bounded(&access) {
        Some(filter) => {
            let export = Export { engine, filter, before: None, rows: VecDeque::new(), ended: false };
            // An error ends the body before its last chunk: no client takes half an export for a whole one.
            Body::from_stream(stream::try_unfold(export, |mut export| async move {
                let line = export.line().await.inspect_err(|error| {
                    tracing::error!(code = error.code(), %error, "an export was broken off");
                })?;
                Ok::<_, store::Error>(line.map(|line| (line, export)))
            }))
        }
        None => Body::empty(),
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

struct Export {
    engine: Arc<Engine>,
    filter: ListQuery,
    before: Option<ExecutionId>,
    rows: VecDeque<Head>,
    ended: bool,
}

impl Export {
    async fn line(&mut self) -> store::Result<Option<Bytes>> {
        let store = self.engine.store();
        if self.rows.is_empty() && !self.ended {
            let query = ListQuery { before: self.before, limit: PAGE, ..self.filter.clone() };
            let page = store.list(query).await?;
            self.ended = page.len() < PAGE;
            self.before = page.last().map(Head::id);
            self.rows = page.into();
        }
        let Some(head) = self.rows.pop_front() else { return Ok(None) };
        let mut line = exported::line(&**store, &head).await?;
        line.push('\n');
        Ok(Some(line.into()))
    }
}

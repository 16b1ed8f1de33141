//! Orders by filter: first a preview with a count, then the order with that count as its condition. What a filter finds is
//! what the order can do something with, and what the caller may see.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::actions::{ResolveOutcome, body, needed, order_of, permit, resolution};
use super::filters::FilterBody;
use super::{Answer, Caller, Source};
use crate::engine::bulk::{self, Outcome};
use crate::engine::operate::Action;
use crate::http::openapi::OrderRefused;
use crate::http::refusal::{Refusal, json};

/// Ids that a preview shows.
const SHOWN: usize = 20;

/// An order for every execution that a filter finds.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkOrder {
    /// What to do.
    action: BulkAction,
    /// With which executions. Only those in a state in which the action does something are found.
    #[serde(default)]
    filter: FilterBody,
    /// Why; needed unless it is a preview or a cancel.
    #[serde(default)]
    reason: Option<String>,
    /// True: only count.
    #[serde(default)]
    preview: bool,
    /// How many the filter finds, from the preview: with another number nothing is done.
    #[serde(default)]
    expected: Option<usize>,
    /// For `resolve`.
    #[serde(default)]
    outcome: Option<ResolveOutcome>,
    /// For `resolve` as completed.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    result: Option<Box<RawValue>>,
    /// For `resolve` as completed, without a result.
    #[serde(default)]
    is_error: Option<bool>,
}

/// What can be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// Stop it.
    Cancel,
    /// Run it once more.
    Retry,
    /// Say what became of it.
    Resolve,
}

/// What a filter finds, or what was done.
#[derive(Serialize, ToSchema)]
pub struct BulkDone {
    /// How many the filter finds; up to 1,000.
    matching: usize,
    /// True when it finds more; then nothing can be ordered.
    more: bool,
    /// For a preview: the first of them, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<Vec<String>>,
    /// Otherwise: what became of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcomes: Option<Vec<Outcome>>,
}

/// Counts what a filter finds, or gives an order for all of it.
#[utoipa::path(
    post,
    path = "/api/v1/executions/actions",
    tag = "orders",
    request_body(content = BulkOrder),
    responses(
        OrderRefused,
        (status = 200, description = "The count, or what became of each.", body = BulkDone),
    ),
)]
pub(in crate::http) async fn act(
    State(engine): Source,
    Extension(access): Caller,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer {
    // Who may order nothing learns nothing about the form.
    permit(&access, &Action::Cancel)?;
    let order: BulkOrder = body(&headers, &bytes)?;
    let action = match order.action {
        BulkAction::Cancel => Action::Cancel,
        BulkAction::Retry => Action::Retry,
        BulkAction::Resolve => {
            let outcome = order
                .outcome
                .ok_or_else(|| Refusal::bad_request("the outcome is missing", "`outcome` takes completed or failed"))?;
            resolution(outcome, order.result, order.is_error)?
        }
    };
    permit(&access, &action)?;
    let found = match order.filter.filter()?.bounded(&access) {
        Some(filter) => bulk::matching(&**engine.store(), &action, filter).await,
        None => Ok(bulk::Matching::default()),
    };
    let found = found.map_err(|error| Refusal::store(&error))?;
    let (matching, more) = (found.ids.len(), found.more);
    if order.preview {
        let ids = found.ids.iter().take(SHOWN).map(ToString::to_string).collect();
        return Ok(json(StatusCode::OK, &BulkDone { matching, more, ids: Some(ids), outcomes: None }));
    }
    let reason = order.reason.unwrap_or_default();
    let reason = if matches!(action, Action::Cancel) { reason } else { needed(reason)? };
    let by = order_of(&access, reason)?;
    check(order.expected, &found)?;
    let engine = engine.clone();
    // Whoever gave the order may leave; half of it must not stay behind.
    let acting = tokio::spawn(async move { bulk::act(&engine, found.ids, action, by).await });
    let outcomes = acting.await.map_err(|_| Refusal::internal("bulk"))?;
    Ok(json(StatusCode::OK, &BulkDone { matching, more, ids: None, outcomes: Some(outcomes) }))
}

fn check(expected: Option<usize>, found: &bulk::Matching) -> Result<(), Refusal> {
    let conflict = |code, detail: String, next: &'static str| Refusal::new(StatusCode::CONFLICT, code, detail, next);
    if found.more {
        let detail = format!("the filter finds more than {} executions", bulk::MATCHING_MAX);
        return Err(conflict("too_many", detail, "narrow the filter"));
    }
    match expected {
        None => Err(Refusal::bad_request(
            "the expected number is missing",
            "ask with `preview: true` first, and give its `matching` as `expected`",
        )),
        Some(expected) if expected != found.ids.len() => {
            let detail = format!("the filter finds {} executions, not {expected}", found.ids.len());
            Err(conflict("matching_changed", detail, "look at the preview again"))
        }
        Some(_) => Ok(()),
    }
}

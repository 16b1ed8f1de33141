//! Orders of operators: cancel, retry and resolve one execution. Each is an event with principal and reason; a repeated one
//! changes nothing and says so. The state machine decides what an order does.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Answer, Caller, Source, find};
use crate::engine::Engine;
use crate::engine::operate::{Acted, Action, Resolution};
use crate::engine::view::ExecutionView;
use crate::http::auth::Access;
use crate::http::openapi::OrderRefused;
use crate::http::refusal::{Refusal, json};
use crate::model::event::Order;
use crate::model::principal::Scope;
use crate::model::scan;

/// How deep a body may be nested.
const DEPTH_MAX: usize = 64;
/// Characters of a reason at most.
const REASON_MAX: usize = 1_000;

/// The body of a cancel.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CancelOrder {
    /// Why; up to 1,000 characters. It is kept in the log.
    reason: Option<String>,
}

/// The body of a retry.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryOrder {
    /// Why; up to 1,000 characters. It is kept in the log.
    reason: String,
}

/// The body of a resolve.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveOrder {
    /// Why; up to 1,000 characters. It is kept in the log.
    reason: String,
    /// What became of it.
    outcome: ResolveOutcome,
    /// For `completed`: the tool's result (an MCP `CallToolResult`), kept byte for byte. Without it callers get a text that
    /// says that a person confirmed the effect.
    #[schema(value_type = Option<Object>)]
    result: Option<Box<RawValue>>,
    /// For `completed` without a result: whether callers get it as an error of the tool.
    is_error: Option<bool>,
}

/// What became of an `unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResolveOutcome {
    /// It took effect.
    Completed,
    /// It did not.
    Failed,
}

/// What an order did.
#[derive(Serialize, ToSchema)]
pub struct OrderDone<'a> {
    /// The execution it concerns from now on: after a retry of one that had ended, the new one.
    execution: ExecutionView<'a>,
    /// True when the same had been ordered before; then nothing changed.
    repeated: bool,
}

/// Cancels an execution; final at once.
#[utoipa::path(
    post,
    path = "/api/v1/executions/{id}/cancel",
    tag = "orders",
    params(("id" = String, Path, description = "The execution's id.")),
    request_body(content = Option<CancelOrder>),
    responses(
        OrderRefused,
        (status = 200, description = "It is cancelled.", body = OrderDone),
    ),
)]
pub(in crate::http) async fn cancel(
    State(engine): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer {
    permit(&access, &Action::Cancel)?;
    let order: CancelOrder = if bytes.is_empty() { CancelOrder::default() } else { body(&headers, &bytes)? };
    let by = order_of(&access, order.reason.unwrap_or_default())?;
    carry_out(&engine, &access, &id, (Action::Cancel, by)).await
}

/// Runs an execution once more: an unknown one in place, one that failed or was cancelled as a new execution that takes
/// its idempotency key over.
#[utoipa::path(
    post,
    path = "/api/v1/executions/{id}/retry",
    tag = "orders",
    params(("id" = String, Path, description = "The execution's id.")),
    request_body(content = RetryOrder),
    responses(
        OrderRefused,
        (status = 200, description = "It runs again.", body = OrderDone),
    ),
)]
pub(in crate::http) async fn retry(
    State(engine): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer {
    permit(&access, &Action::Retry)?;
    let order: RetryOrder = body(&headers, &bytes)?;
    let by = order_of(&access, needed(order.reason)?)?;
    carry_out(&engine, &access, &id, (Action::Retry, by)).await
}

/// Says what became of an unknown execution.
#[utoipa::path(
    post,
    path = "/api/v1/executions/{id}/resolve",
    tag = "orders",
    params(("id" = String, Path, description = "The execution's id.")),
    request_body(content = ResolveOrder),
    responses(
        OrderRefused,
        (status = 200, description = "It has ended.", body = OrderDone),
    ),
)]
pub(in crate::http) async fn resolve(
    State(engine): Source,
    Extension(access): Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answer {
    access.require_action(Scope::Operate)?;
    let order: ResolveOrder = body(&headers, &bytes)?;
    let by = order_of(&access, needed(order.reason)?)?;
    let action = resolution(order.outcome, order.result, order.is_error)?;
    carry_out(&engine, &access, &id, (action, by)).await
}

async fn carry_out(engine: &std::sync::Arc<Engine>, access: &Access, id: &str, order: (Action, Order)) -> Answer {
    let (action, by) = order;
    // A foreign execution is as if it were missing.
    let head = find(&**engine.store(), access, id).await?;
    let Acted { head, repeated } = engine.act(head.id(), &action, by).await.map_err(|error| Refusal::engine(&error))?;
    Ok(json(StatusCode::OK, &OrderDone { execution: ExecutionView::of(&head), repeated }))
}

/// Errors: the caller may not order this.
pub(super) fn permit(access: &Access, action: &Action) -> Result<(), Refusal> {
    let cancels_own = matches!(action, Action::Cancel) && !access.principal.scopes.permits(Scope::Operate);
    access.require_action(if cancels_own { Scope::Cancel } else { Scope::Operate })
}

/// A person's word with its reason.
pub(super) fn order_of(access: &Access, reason: String) -> Result<Order, Refusal> {
    if reason.chars().count() > REASON_MAX {
        return Err(Refusal::bad_request("the reason is too long", format!("`reason` takes {REASON_MAX} characters")));
    }
    Ok(Order { principal: access.principal.subject.clone(), reason: reason.trim().to_owned() })
}

/// A reason that has to be there.
pub(super) fn needed(reason: String) -> Result<String, Refusal> {
    match reason.trim() {
        "" => Err(Refusal::bad_request("the reason is missing", "say why in `reason`; it is kept in the log")),
        _ => Ok(reason),
    }
}

/// What a person says became of an execution. Errors: the parts do not fit.
pub(super) fn resolution(
    outcome: ResolveOutcome,
    result: Option<Box<RawValue>>,
    is_error: Option<bool>,
) -> Result<Action, Refusal> {
    if outcome == ResolveOutcome::Failed {
        return match (result, is_error) {
            (None, None) => Ok(Action::Resolve(Resolution::Failed)),
            _ => Err(Refusal::bad_request("what failed has no result", "leave `result` and `is_error` out")),
        };
    }
    let resolution = Resolution::completed(result.as_deref(), is_error)
        .map_err(|next| Refusal::bad_request("the result can not be used", next))?;
    Ok(Action::Resolve(resolution))
}

/// Reads a body of ours. Errors: it is no JSON of this form. What was sent is not
/// repeated.
pub(super) fn body<T: DeserializeOwned>(headers: &HeaderMap, bytes: &Bytes) -> Result<T, Refusal> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "the body is not said to be JSON",
            "send it with `Content-Type: application/json`",
        ));
    }
    let invalid = |detail: String| {
        Refusal::new(StatusCode::BAD_REQUEST, "invalid_body", detail, "its members are in /api/v1/openapi.json")
    };
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("the body is no UTF-8".to_owned()))?;
    scan::check(text, DEPTH_MAX).map_err(|fault| invalid(format!("the body is no strict JSON: {fault}")))?;
    if !text.trim_start().starts_with('{') {
        return Err(invalid("the body is no JSON object".to_owned()));
    }
    let place = |error: serde_json::Error| {
        invalid(format!("the body does not fit (line {}, column {})", error.line(), error.column()))
    };
    serde_json::from_str(text).map_err(place)
}

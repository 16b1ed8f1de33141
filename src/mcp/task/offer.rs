//! Whether a call is answered with a task, as what, and when: from what the client asked, what it declared, and the
//! tool's policy. Pure; stores and answers nothing.

use serde_json::value::RawValue;

use super::{is_declared, not_declared};
use crate::engine::catalog::{TaskService, Tool};
use crate::engine::task::Wish;
use crate::mcp::call_params::CallParams;
use crate::mcp::reject::{RpcError, code};
use crate::model::json;
use crate::model::policy::Tasks;
use crate::model::revision::{Era, Revision};
use crate::store::TaskVariant;

/// A task instead of the answer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// As what, and how long.
    pub wish: Wish,
    /// How long the answer itself is waited for before, in milliseconds; absent: a task at once, whatever is known.
    pub after_ms: Option<i64>,
}

/// What the tool says about tasks of 2025-11-25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Calls may become tasks.
    Optional,
    /// Its server wants them to.
    Required,
    /// They may not.
    Forbidden,
}

/// The offer for a call of `tool`; `None`: no task.
///
/// # Errors
///
/// The tool is for clients with the extension only, or is no task (2025-11-25).
pub fn offer(params: &CallParams<'_>, revision: Revision, tool: &Tool) -> Result<Option<Offer>, RpcError> {
    let service = &tool.service.task;
    match revision.era() {
        Era::Modern => extension(params, service),
        Era::Legacy if revision == Revision::V2025_11_25 => experimental(params, tool),
        Era::Legacy => Ok(None),
    }
}

fn extension(params: &CallParams<'_>, service: &TaskService) -> Result<Option<Offer>, RpcError> {
    let declared = is_declared(params.meta.protocol.client_capabilities);
    let after_ms = match (service.tasks, declared) {
        (Tasks::Never, _) | (Tasks::Auto | Tasks::Always, false) => return Ok(None),
        (Tasks::Required, false) => return Err(not_declared()),
        (Tasks::Required | Tasks::Always, true) => None,
        (Tasks::Auto, true) => Some(service.after_ms.min(params.meta.wait_ms.unwrap_or(i64::MAX))),
    };
    // `params.task` of earlier revisions is tolerated and says nothing.
    Ok(Some(Offer { wish: wish(params, service, (TaskVariant::Extension, None)), after_ms }))
}

fn experimental(params: &CallParams<'_>, tool: &Tool) -> Result<Option<Offer>, RpcError> {
    let Some(task) = params.task else { return Ok(None) };
    if support(tool) == Support::Forbidden {
        return Err(RpcError::new(code::METHOD_NOT_FOUND, "calls of this tool can not be tasks"));
    }
    let variant = (TaskVariant::Experimental, ttl_ms(task)?);
    Ok(Some(Offer { wish: wish(params, &tool.service.task, variant), after_ms: None }))
}

fn wish(params: &CallParams<'_>, service: &TaskService, (variant, asked): (TaskVariant, Option<i64>)) -> Wish {
    Wish {
        variant,
        ttl_ms: asked.map_or(service.ttl_ms, |asked| asked.min(service.ttl_ms)),
        on_expiry: service.on_expiry,
        progress_token: params.meta.progress_token.as_ref().map(|token| token.raw().to_owned()),
    }
}

/// What is offered for a tool in lists of 2025-11-25: what its own server says, else that calls may become tasks.
pub fn support(tool: &Tool) -> Support {
    match stated(&tool.definition).as_deref() {
        _ if tool.service.task.tasks == Tasks::Never => Support::Forbidden,
        Some("forbidden") => Support::Forbidden,
        Some("required") => Support::Required,
        _ => Support::Optional,
    }
}

/// `execution.taskSupport` of a tool object.
pub fn stated(definition: &RawValue) -> Option<String> {
    let last = |text: &str, name: &str| -> Option<Box<RawValue>> {
        let members = json::members(text)?;
        members.into_iter().rev().find(|(member, _)| member == name).map(|(_, value)| value.to_owned())
    };
    let execution = last(definition.get(), "execution")?;
    let support = last(execution.get(), "taskSupport")?;
    json::text(&support).map(|text| text.into_owned())
}

/// `task.ttl`, in milliseconds; `null` and nothing leave it to us.
fn ttl_ms(task: &RawValue) -> Result<Option<i64>, RpcError> {
    let members = json::members(task.get()).unwrap_or_default();
    let Some((_, ttl)) = members.into_iter().rev().find(|(name, _)| name == "ttl") else { return Ok(None) };
    if json::is_null(ttl) {
        return Ok(None);
    }
    // A number as JavaScript writes it: whole or not.
    match ttl.get().parse::<f64>() {
        Ok(ttl) if ttl >= 0.0 && ttl.is_finite() => Ok(Some((ttl.min(9e15) as i64).max(1))),
        _ => Err(RpcError::new(code::INVALID_PARAMS, "params.task.ttl is not a number of milliseconds")),
    }
}

//! `tasks/get`, `tasks/update` and `tasks/cancel` of the extension (2026-07-28). `tasks/list` and `tasks/result` are
//! unknown methods there.

use super::projection::Form;
use super::{failed, invalid, is_declared, not_declared, require, task_id};
use crate::engine::Error;
use crate::mcp::face::{Face, SERVER_INFO};
use crate::mcp::meta::{Meta, Params};
use crate::mcp::method::Answer;
use crate::mcp::reject::Source;
use crate::mcp::splice::SERVER_INFO_MEMBER;
use crate::model::event::Order;
use crate::model::json;
use crate::model::principal::{Principal, Scope};
use crate::model::revision::Era;

impl Face {
    /// Answers a request of the extension; `None` when the method is none of it.
    pub async fn extension_task(
        &self,
        method: &str,
        (params, meta): (&Params<'_>, &Meta<'_>),
        principal: &Principal,
    ) -> Option<Answer> {
        if !matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel") {
            return None;
        }
        if !is_declared(meta.protocol.client_capabilities) {
            return Some(Err((Source::Handler, not_declared())));
        }
        Some(match method {
            "tasks/get" => self.get_task(params, principal).await,
            "tasks/update" => self.update_task(params, principal).await,
            _ => self.cancel_task(params, principal).await,
        })
    }

    async fn get_task(&self, params: &Params<'_>, principal: &Principal) -> Answer {
        require(principal, Scope::Call)?;
        let shown = self.shown(&task_id(params)?, (principal, Era::Modern)).await?;
        Ok(shown.seen().extension(Form::Whole).into())
    }

    /// Takes answers of the client; keys that are unknown or answered already are passed over.
    async fn update_task(&self, params: &Params<'_>, principal: &Principal) -> Answer {
        require(principal, Scope::Call)?;
        let shown = self.shown(&task_id(params)?, (principal, Era::Modern)).await?;
        let responses = params.get("inputResponses").ok_or_else(|| invalid("params.inputResponses is missing"))?;
        let responses =
            json::members(responses.get()).ok_or_else(|| invalid("params.inputResponses is not an object"))?;
        if responses.iter().any(|(_, response)| !json::is_object(response)) {
            return Err(invalid("a member of params.inputResponses is not an object"));
        }
        let _ = (shown, responses);
        Ok(acknowledged())
    }

    /// Stops the work; an acknowledgement also when there is nothing to stop any more.
    async fn cancel_task(&self, params: &Params<'_>, principal: &Principal) -> Answer {
        require(principal, Scope::Cancel)?;
        let shown = self.shown(&task_id(params)?, (principal, Era::Modern)).await?;
        let order = Order { principal: principal.subject.clone(), reason: "cancelled by the client".into() };
        match self.engine.cancel(shown.task.row.id, order).await {
            Ok(_) | Err(Error::NotPermitted { .. }) => Ok(acknowledged()),
            Err(error) => Err(failed(error)),
        }
    }
}

fn acknowledged() -> std::sync::Arc<str> {
    format!("{{\"resultType\":\"complete\",\"_meta\":{{\"{SERVER_INFO_MEMBER}\":{SERVER_INFO}}}}}").into()
}

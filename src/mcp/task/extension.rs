//! `tasks/get`, `tasks/update` and `tasks/cancel` of the extension (2026-07-28). `tasks/list` and `tasks/result` are
//! unknown methods there.

use super::projection::Form;
use super::{failed, invalid, is_declared, not_declared, require, task_id};
use crate::engine::Error;
use crate::engine::asking::Told;
use crate::mcp::face::{Face, SERVER_INFO};
use crate::mcp::input::fits;
use crate::mcp::meta::Params;
use crate::mcp::method::Answer;
use crate::mcp::reject::Source;
use crate::mcp::requests::{Asker, Request};
use crate::mcp::splice::SERVER_INFO_MEMBER;
use crate::model::event::Order;
use crate::model::json;
use crate::model::principal::{Principal, Scope};
use crate::model::revision::Era;

impl Face {
    /// Answers a request of the extension.
    pub(in crate::mcp) async fn extension_task(&self, request: Request<'_>, asker: &Asker) -> Answer {
        if !is_declared(request.meta.protocol.client_capabilities) {
            return Err((Source::Handler, not_declared()));
        }
        match request.method {
            "tasks/get" => self.get_task(request.params, &asker.principal).await,
            "tasks/update" => self.update_task(request.params, &asker.principal).await,
            _ => self.cancel_task(request.params, &asker.principal).await,
        }
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
        // What does not fit its question stays open and is shown again.
        let answers: Vec<(String, Told)> = responses
            .into_iter()
            .filter(|(key, response)| {
                shown.questions.iter().any(|open| open.key == *key && fits(&open.method, response.get()))
            })
            .map(|(key, response)| (key.into_owned(), Told::Result(json::one_line(response.get()).into())))
            .collect();
        if !answers.is_empty() {
            self.engine.answer(shown.task.row.id, answers, principal).await.map_err(failed)?;
        }
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

//! `tasks/get`, `tasks/list`, `tasks/cancel` of 2025-11-25, and what `tasks/result` and lists of tools add. Waiting for
//! a result is done by whoever answers calls.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::json;

use super::offer::{Support, stated, support};
use super::{RELATED, failed, invalid, no_task, require, task_id};
use crate::engine::Error;
use crate::engine::catalog::Tool;
use crate::mcp::answer::{Reply, execution_member};
use crate::mcp::cursor::{self, Position};
use crate::mcp::face::Face;
use crate::mcp::meta::Params;
use crate::mcp::method::Answer;
use crate::mcp::requests::{Asker, Request};
use crate::mcp::splice::{self, EXECUTION_MEMBER, Edit};
use crate::model::event::Order;
use crate::model::id::ExecutionId;
use crate::model::principal::{Principal, Scope};
use crate::model::revision::{Era, Revision};
use crate::store::TaskVariant;

/// Tasks in one page of a list.
const PAGE: usize = 100;

/// The `tasks` capability; `tasks/list` is for those who proved who they are, since everybody else is one principal.
pub fn capability(anonymous: bool) -> &'static str {
    match anonymous {
        true => "{\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}",
        false => "{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}",
    }
}

/// True when the method is known to whoever asks: in sessions of the revision, and the list to a named caller only.
pub(in crate::mcp) fn is_offered(method: &str, asker: &Asker) -> bool {
    asker.revision == Revision::V2025_11_25 && (method != "tasks/list" || !asker.principal.is_anonymous())
}

/// A tool object as it is listed to sessions of 2025-11-25: it says that its calls may become tasks. What its own server
/// said of that stays, unless the operator wants no tasks.
pub fn listed<'d>(definition: &'d str, tool: &Tool) -> Cow<'d, str> {
    let said = stated(&tool.definition);
    let says = match (support(tool), said) {
        (Support::Optional, None) => "\"optional\"",
        (Support::Forbidden, Some(said)) if said != "forbidden" => "\"forbidden\"",
        _ => return Cow::Borrowed(definition),
    };
    let inner = [Edit::Set("taskSupport", says.into())];
    splice::edited(definition, &[Edit::Within("execution", &inner)]).map_or(Cow::Borrowed(definition), Cow::Owned)
}

/// A message about a task, with the `_meta` member that says which; anything but an object is left alone.
pub fn related(object: &str, id: ExecutionId) -> String {
    let value = json!({ "taskId": id }).to_string();
    let inner = [Edit::Set(RELATED, value.into())];
    splice::edited(object, &[Edit::Within("_meta", &inner)]).unwrap_or_else(|| object.to_owned())
}

/// The answer to `tasks/result`: what the call would have been answered, and to which task it belongs.
pub fn result(reply: Reply, id: ExecutionId) -> Reply {
    match reply {
        Reply::Result(result) => Reply::Result(related(&result.into_whole(), id).into()),
        error => error,
    }
}

impl Face {
    /// Answers a request of 2025-11-25 about tasks that waits for nothing.
    pub(in crate::mcp) async fn experimental_task(self: &Arc<Self>, request: Request<'_>, asker: &Asker) -> Answer {
        match request.method {
            "tasks/get" => self.experimental_get(request.params, asker).await,
            "tasks/list" => self.experimental_list(request.params, &asker.principal).await,
            _ => self.experimental_cancel(request.params, &asker.principal).await,
        }
    }

    async fn experimental_get(self: &Arc<Self>, params: &Params<'_>, asker: &Asker) -> Answer {
        let principal = &asker.principal;
        require(principal, Scope::Call)?;
        let shown = self.shown(&task_id(params)?, (principal, Era::Legacy)).await?;
        let seen = shown.seen();
        // Whoever asks once need not ask again, also after a restart.
        let whose = (principal, asker.client.session.as_deref());
        self.tell_of_task(seen.row.id, whose, shown.status(TaskVariant::Experimental));
        Ok(with_execution(&seen.experimental(), &execution_member(seen.head, false)).into())
    }

    async fn experimental_list(&self, params: &Params<'_>, principal: &Principal) -> Answer {
        require(principal, Scope::Call)?;
        let before = match params.get("cursor") {
            Some(_) => Some(self.task_before(params, principal)?),
            None => None,
        };
        let tasks = self.engine.tasks(principal, before, PAGE).await.map_err(failed)?;
        let full = tasks.len() == PAGE;
        let last = tasks.last().map(|task| task.row.id);
        let mut objects = Vec::with_capacity(tasks.len());
        for task in tasks {
            objects.push(self.dressed(task, Era::Legacy).await?.seen().experimental());
        }
        let mut page = format!("{{\"tasks\":[{}]", objects.join(","));
        if let Some(last) = last.filter(|_| full) {
            let (snapshot, offset) = last.as_uuid().as_u64_pair();
            let cursor = cursor::encode(&self.cursor_key, &scope(principal), Position { snapshot, offset });
            page.push_str(&format!(",\"nextCursor\":\"{cursor}\""));
        }
        page.push('}');
        Ok(page.into())
    }

    /// The task that a page goes on after.
    fn task_before(
        &self,
        params: &Params<'_>,
        principal: &Principal,
    ) -> Result<ExecutionId, (crate::mcp::reject::Source, crate::mcp::reject::RpcError)> {
        let cursor = params.text("cursor").ok_or_else(|| invalid("the cursor must be a string"))?;
        let bad = |bad: cursor::BadCursor| (crate::mcp::reject::Source::Handler, bad.rpc_error());
        let position = cursor::decode(&self.cursor_key, &scope(principal), &cursor).map_err(bad)?;
        Ok(ExecutionId::from_u64_pair(position.snapshot, position.offset))
    }

    /// Stops the work and answers with the task, cancelled; one that has ended can not be cancelled.
    async fn experimental_cancel(&self, params: &Params<'_>, principal: &Principal) -> Answer {
        require(principal, Scope::Cancel)?;
        let id = task_id(params)?;
        let shown = self.shown(&id, (principal, Era::Legacy)).await?;
        let status = shown.status(TaskVariant::Experimental);
        if status.is_final() {
            return Err(ended());
        }
        let order = Order { principal: principal.subject.clone(), reason: "cancelled by the client".into() };
        match self.engine.cancel(shown.task.row.id, order).await {
            Ok(_) => {}
            Err(Error::NotPermitted { .. }) => return Err(ended()),
            Err(error) => return Err(failed(error)),
        }
        let shown = self.shown(&id, (principal, Era::Legacy)).await?;
        let seen = shown.seen();
        Ok(with_execution(&seen.experimental(), &execution_member(seen.head, false)).into())
    }

    /// The task whose result is asked for.
    pub(in crate::mcp) async fn result_of(
        &self,
        params: &Params<'_>,
        principal: &Principal,
    ) -> Result<super::Shown, (crate::mcp::reject::Source, crate::mcp::reject::RpcError)> {
        require(principal, Scope::Call)?;
        self.shown(&task_id(params)?, (principal, Era::Legacy)).await
    }
}

/// The error for somebody who waits for the result of a task whose time ends meanwhile.
pub(in crate::mcp) fn over() -> Reply {
    Reply::Error(no_task().1)
}

fn ended() -> (crate::mcp::reject::Source, crate::mcp::reject::RpcError) {
    invalid("the task has ended and can not be cancelled")
}

fn scope(principal: &Principal) -> String {
    format!("tasks {} {}", json!(principal.namespace), json!(principal.subject))
}

fn with_execution(task: &str, execution: &str) -> String {
    let inner = [Edit::Set(EXECUTION_MEMBER, execution.into())];
    splice::edited(task, &[Edit::Within("_meta", &inner)]).unwrap_or_else(|| task.to_owned())
}

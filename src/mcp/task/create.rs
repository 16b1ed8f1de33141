//! From a waiting call to a task, and from a task to a request that waits for its result. Answers are written by whoever
//! answers calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::experimental;
use super::offer::Offer;
use super::projection::Form;
use super::{Shown, failed};
use crate::engine::task::Wish;
use crate::mcp::answer::Reply;
use crate::mcp::call::{Answered, Begun, Caller};
use crate::mcp::face::Face;
use crate::mcp::meta::Params;
use crate::mcp::reject::RpcError;
use crate::mcp::session::Flight;
use crate::model::id::ExecutionId;
use crate::model::principal::Principal;
use crate::model::revision::Era;
use crate::store::TaskVariant;

/// A task that a waiting call becomes.
pub(in crate::mcp) struct Pending {
    /// As what, and how long.
    pub wish: Wish,
    /// When.
    pub at: Instant,
}

impl Pending {
    /// A call that is waited for first.
    pub(in crate::mcp) fn of(offer: Offer, after_ms: i64) -> Pending {
        let after = Duration::from_millis(after_ms.max(0) as u64);
        Pending { wish: offer.wish, at: Instant::now() + after }
    }

    /// True when it is time.
    pub(in crate::mcp) fn is_due(&self) -> bool {
        self.at <= Instant::now()
    }

    /// Resolves when it is time; never without a task.
    pub(in crate::mcp) async fn due(pending: Option<&Pending>) {
        match pending {
            Some(pending) => tokio::time::sleep_until(pending.at).await,
            None => std::future::pending().await,
        }
    }
}

/// The task that a request asks the result of.
#[derive(Clone, Debug)]
pub struct Related {
    /// Which.
    pub id: ExecutionId,
    /// Whose.
    pub principal: Principal,
}

impl Face {
    /// The answer that makes a task of a call; durable when this returns.
    ///
    /// # Errors
    ///
    /// The store can not be written; the call goes on.
    pub(in crate::mcp) async fn create_task(&self, id: ExecutionId, wish: &Wish) -> Result<Reply, RpcError> {
        let era = match wish.variant {
            TaskVariant::Extension => Era::Modern,
            TaskVariant::Experimental => Era::Legacy,
        };
        let opened = async {
            let task = self.engine.open_task(id, wish).await.map_err(failed)?;
            self.dressed(task, era).await
        };
        let shown = opened.await.map_err(|(_, error)| error)?;
        let created = match wish.variant {
            TaskVariant::Extension => shown.seen().extension(Form::Created),
            TaskVariant::Experimental => shown.seen().created(),
        };
        Ok(Reply::Result(created.into()))
    }

    /// `tasks/result` of 2025-11-25: waits for the end of the task, and is answered as the call would have been.
    pub async fn task_result(
        self: &Arc<Self>,
        params: &Params<'_>,
        caller: &Caller,
        flight: Option<Arc<Flight>>,
    ) -> Begun {
        let shown = match self.result_of(params, &caller.principal).await {
            Ok(shown) => shown,
            Err((_, error)) => return Begun::Answer(Answered::of(Reply::Error(error))),
        };
        let related = Related { id: shown.task.row.id, principal: caller.principal.clone() };
        if shown.status(TaskVariant::Experimental).is_final() {
            return Begun::Answer(Answered::of(end_of(shown)));
        }
        let left_ms = shown.task.row.expires_at_ms() - self.engine.clock().now_ms();
        self.await_task(related, left_ms, caller, flight).await
    }

    /// What a request for the result of a task that has just ended is answered.
    pub(in crate::mcp) async fn end_of_task(&self, related: &Related) -> Reply {
        let task = match self.engine.task(related.id, &related.principal).await {
            Ok(Some(task)) => task,
            Ok(None) => return experimental::over(),
            Err(error) => return Reply::Error(failed(error).1),
        };
        match self.dressed(task, Era::Legacy).await {
            Ok(shown) => end_of(shown),
            Err((_, error)) => Reply::Error(error),
        }
    }
}

fn end_of(shown: Shown) -> Reply {
    let id = shown.task.row.id;
    shown.reply.map_or_else(experimental::over, |reply| experimental::result(reply, id))
}

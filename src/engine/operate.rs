//! The verbs of people and policies: cancel, retry, resolve, reconcile.

use std::sync::Arc;

use super::finishing::Finishing;
use super::running::Write;
use super::{Engine, Error, Result};
use crate::model::decide::{Answer, Command, Outcome};
use crate::model::event::{Digest, Order};
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::store::{LeaseRef, Payload, PayloadKind};

impl Engine {
    /// Cancels an execution; final at once. The row says whether it may have had its effect.
    pub async fn cancel(self: &Arc<Self>, id: ExecutionId, order: Order) -> Result<Head> {
        self.order(id, "cancel", Command::Cancel(order), None).await
    }

    /// Orders one more attempt of an `unknown`.
    pub async fn retry_unknown(self: &Arc<Self>, id: ExecutionId, order: Order) -> Result<Head> {
        self.order(id, "retry", Command::Retry(order), None).await
    }

    /// Says what became of an `unknown`.
    pub async fn resolve(
        self: &Arc<Self>,
        id: ExecutionId,
        by: Order,
        result: Option<(Payload, bool)>,
    ) -> Result<Head> {
        let (outcome, payload) = match result {
            Some((result, is_error)) => {
                (Outcome::Completed { result: Digest::of(&result), is_error }, Some((PayloadKind::Result, result)))
            }
            None => (Outcome::Failed, None),
        };
        self.order(id, "resolve", Command::Resolve { by, outcome }, payload).await
    }

    /// Records what the upstream said about the attempt that was lost under this lease: the result of a call that took
    /// effect, or that it did not.
    pub async fn reconcile(self: &Arc<Self>, lost: LeaseRef, found: Option<Payload>) -> Result<Head> {
        let found_digest = found.as_deref().map(Digest::of);
        let command = Command::Reconcile { fencing_token: lost.fencing_token, found: found_digest };
        self.order(lost.id, "reconcile", command, found.map(|result| (PayloadKind::Result, result))).await
    }

    /// Gives an order, which is carried out whole whether or not whoever gave it stays.
    async fn order(
        self: &Arc<Self>,
        id: ExecutionId,
        verb: &'static str,
        command: Command,
        payload: Option<(PayloadKind, Payload)>,
    ) -> Result<Head> {
        let engine = self.clone();
        let ordering = async move { engine.apply(Write { payload, ..engine.write(id, command) }).await };
        let applied = Finishing::new(ordering, &self.tasks).await?.ok_or_else(|| Error::NotFound(id.to_string()))?;
        match applied.answer {
            Answer::Accepted | Answer::AlreadyDone => Ok(applied.head),
            _ => Err(Error::NotPermitted { id, state: applied.head.state.as_str(), verb }),
        }
    }
}

//! The verbs of people and policies on one execution: cancel, retry, resolve, reconcile. A repeated order is harmless and
//! says so. Who may order what is decided above.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::finishing::Finishing;
use super::running::Write;
use super::{Engine, Error, Result};
use crate::model::decide::{Answer, Command, Outcome};
use crate::model::event::{Digest, Event, Order};
use crate::model::execution::{Head, ResultSource, State};
use crate::model::id::ExecutionId;
use crate::model::json;
use crate::store::{Applied, LeaseRef, Payload, PayloadKind};

#[cfg(test)]
mod tests;

/// What an operator may order of an execution.
#[derive(Clone, Debug)]
pub enum Action {
    /// Stop it.
    Cancel,
    /// Run it once more: an `unknown` in place, one that failed or was cancelled as a new execution.
    Retry,
    /// Say what became of an `unknown`.
    Resolve(Resolution),
}

/// What became of an `unknown`, in a person's words.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// It took effect, with this result.
    Completed {
        /// The tool's result, or one in its place.
        result: Payload,
        /// The result's `isError`.
        is_error: bool,
    },
    /// It did not.
    Failed,
}

/// What callers get when a person only said that the call took effect.
const CONFIRMED: &str = "A person confirmed that this call took effect. What the tool answered is not known.";
/// What callers get when a person only said that the tool reported an error.
const CONFIRMED_ERROR: &str = "A person confirmed that the tool reported an error. What it answered is not known.";

impl Resolution {
    /// A result that a person gives, byte for byte, or one in its place. Errors: what a result must be.
    pub fn completed(
        result: Option<&RawValue>,
        is_error: Option<bool>,
    ) -> std::result::Result<Resolution, &'static str> {
        let Some(result) = result else {
            let is_error = is_error.unwrap_or(false);
            let text = if is_error { CONFIRMED_ERROR } else { CONFIRMED };
            let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":{is_error}}}"#);
            return Ok(Resolution::Completed { result: result.into(), is_error });
        };
        let members = json::members(result.get()).ok_or("`result` takes a JSON object: the result of a tool")?;
        let member = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, value)| value.get());
        if !member("content").is_some_and(|content| content.starts_with('[')) {
            return Err("`result` needs the member `content`, a list");
        }
        let says_error = match member("isError") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err("`isError` in `result` takes true or false"),
        };
        if is_error.is_some_and(|is_error| is_error != says_error) {
            return Err("`is_error` must say what `isError` in `result` says; leave it out");
        }
        Ok(Resolution::Completed { result: result.get().into(), is_error: says_error })
    }
}

impl Action {
    /// The verb.
    pub fn verb(&self) -> &'static str {
        match self {
            Action::Cancel => "cancel",
            Action::Retry => "retry",
            Action::Resolve(_) => "resolve",
        }
    }

    /// The states in which it does something.
    pub fn states(&self) -> &'static [State] {
        match self {
            Action::Cancel => &[State::Scheduled, State::Ready, State::Leased, State::Waiting],
            Action::Retry => &[State::Unknown, State::Failed, State::Cancelled],
            Action::Resolve(_) => &[State::Unknown],
        }
    }
}

/// What became of an order.
#[derive(Clone, Debug)]
pub struct Acted {
    /// The execution that the order concerns from now on: for a retry of one that had ended, the new one.
    pub head: Head,
    /// The same had been ordered before, and nothing changed.
    pub repeated: bool,
}

impl Engine {
    /// Carries an operator's order out. The order becomes an event with its principal and reason.
    ///
    /// # Errors
    ///
    /// The state does not permit it; for a retry also: another execution holds the key, or the arguments are gone.
    pub async fn act(self: &Arc<Self>, id: ExecutionId, action: &Action, by: Order) -> Result<Acted> {
        let engine = self.clone();
        let action = action.clone();
        let acting = async move {
            match action {
                Action::Cancel => engine.act_cancel(id, by).await,
                Action::Retry => engine.act_retry(id, by).await,
                Action::Resolve(resolution) => engine.act_resolve(id, resolution, by).await,
            }
        };
        Finishing::new(acting, &self.tasks).await
    }

    async fn act_cancel(self: &Arc<Self>, id: ExecutionId, by: Order) -> Result<Acted> {
        let applied = self.give(id, Command::Cancel(by), None).await?;
        let repeated = applied.answer == Answer::Ended && applied.head.state == State::Cancelled;
        acted(applied, "cancel", repeated)
    }

    async fn act_resolve(self: &Arc<Self>, id: ExecutionId, resolution: Resolution, by: Order) -> Result<Acted> {
        let (outcome, payload) = match resolution {
            Resolution::Completed { result, is_error } => {
                (Outcome::Completed { result: Digest::of(&result), is_error }, Some((PayloadKind::Result, result)))
            }
            Resolution::Failed => (Outcome::Failed, None),
        };
        let applied = self.give(id, Command::Resolve { by: by.clone(), outcome: outcome.clone() }, payload).await?;
        let repeated = applied.answer == Answer::Ended && self.is_resolved(&applied.head, &outcome).await?;
        acted(applied, "resolve", repeated)
    }

    /// Whether a person had said the same of it.
    async fn is_resolved(&self, head: &Head, outcome: &Outcome) -> Result<bool> {
        Ok(match outcome {
            Outcome::Failed => head.error.as_ref().is_some_and(|error| error.code == "resolved_failed"),
            Outcome::Completed { result, .. } if head.source == Some(ResultSource::Resolve) => {
                let stored = self.store.payload(head.id(), PayloadKind::Result).await?;
                stored.is_none_or(|stored| Digest::of(&stored) == *result)
            }
            Outcome::Completed { .. } => false,
        })
    }

    async fn act_retry(self: &Arc<Self>, id: ExecutionId, by: Order) -> Result<Acted> {
        let head = self.store.heads(&[id]).await?.pop().ok_or_else(|| Error::NotFound(id.to_string()))?;
        if matches!(head.state, State::Failed | State::Cancelled) {
            return self.run_again(head, by).await;
        }
        self.may_be_retried(&head)?;
        let applied = self.give(id, Command::Retry(by.clone()), None).await?;
        let goes_on = !applied.head.state.is_settled();
        let repeated = applied.answer == Answer::NotPermitted && goes_on && self.was_ordered(id, &by).await?;
        acted(applied, "retry", repeated)
    }

    /// Whether the newest attempt was ordered by the same person for the same reason.
    async fn was_ordered(&self, id: ExecutionId, by: &Order) -> Result<bool> {
        let events = super::changes::events(&*self.store, id, 0).await?;
        let newest = events.iter().rev().find_map(|record| match &record.event {
            Event::Retried { by, .. } => Some(by.as_ref()),
            _ => None,
        });
        Ok(newest.flatten() == Some(by))
    }

    /// Cancels an execution; final at once. The row says whether it may have had its effect.
    pub async fn cancel(self: &Arc<Self>, id: ExecutionId, order: Order) -> Result<Head> {
        self.order(id, "cancel", Command::Cancel(order), None).await
    }

    /// Orders one more attempt of an `unknown`.
    pub async fn retry_unknown(self: &Arc<Self>, id: ExecutionId, order: Order) -> Result<Head> {
        if let Some(head) = self.store.heads(&[id]).await?.pop() {
            self.may_be_retried(&head)?;
        }
        self.order(id, "retry", Command::Retry(order), None).await
    }

    /// Nobody has the arguments of a call whose stored ones are redacted, once it is given up.
    fn may_be_retried(&self, head: &Head) -> Result<()> {
        match head.state == State::Unknown && head.ident.policy.arguments_redacted {
            true => Err(Error::ArgumentsRedacted(head.id())),
            false => Ok(()),
        }
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
        let ordering = async move { engine.give(id, command, payload).await };
        let applied = Finishing::new(ordering, &self.tasks).await?;
        acted(applied, verb, false).map(|acted| acted.head)
    }

    async fn give(
        &self,
        id: ExecutionId,
        command: Command,
        payload: Option<(PayloadKind, Payload)>,
    ) -> Result<Applied> {
        let applied = self.apply(Write { payload, ..self.write(id, command) }).await?;
        applied.ok_or_else(|| Error::NotFound(id.to_string()))
    }
}

fn acted(applied: Applied, verb: &'static str, repeated: bool) -> Result<Acted> {
    let Applied { head, answer } = applied;
    match answer {
        Answer::Accepted => Ok(Acted { head, repeated: false }),
        Answer::AlreadyDone => Ok(Acted { head, repeated: true }),
        _ if repeated => Ok(Acted { head, repeated: true }),
        _ => Err(Error::NotPermitted { id: head.id(), state: head.state.as_str(), verb }),
    }
}

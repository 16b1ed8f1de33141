//! An execution that failed or was cancelled, run again: a new execution in its place, which carries the same effect key
//! and takes the idempotency key over, so that the next call with that key joins it. Ended stays ended: the old row and
//! its log do not change.

use std::sync::Arc;

use super::operate::Acted;
use super::{Engine, Error, Result};
use crate::model::event::Order;
use crate::model::execution::{Head, Identification};
use crate::model::id::ExecutionId;
use crate::model::policy::{Identity, Policy};
use crate::model::submit::{IfWaited, Submission};
use crate::store::{PayloadKind, Submit, SubmitOutcome};

impl Engine {
    /// Submits the call of `ended` anew. A call without a key has its execution id as key from here on: a second order
    /// finds what the first one made.
    pub(super) async fn run_again(self: &Arc<Self>, ended: Head, by: Order) -> Result<Acted> {
        let old = ended.id();
        if ended.ident.policy.arguments_redacted {
            return Err(Error::ArgumentsRedacted(old));
        }
        let arguments = self.store.payload(old, PayloadKind::Arguments).await?;
        let arguments = arguments.ok_or(Error::ArgumentsDeleted(old))?;
        let meta = self.store.payload(old, PayloadKind::Meta).await?;
        let (policy, identity) = self.rules_of(&ended);
        let id = self.new_execution_id();
        let submission = Submission {
            ident: Identification {
                id,
                key: Some(ended.ident.key.clone().unwrap_or_else(|| old.to_string())),
                policy,
                retry_of: Some(old),
                // Whatever process it belonged to, this is an order to run it.
                bound_to: None,
                start_by_ms: None,
                ..ended.ident.clone()
            },
            identity,
            run_at_ms: None,
            by: Some(by),
            lease: None,
            waiter: None,
            if_waited: IfWaited::New,
        };
        let flight = self.in_flight.begin(&self.clock);
        let submit = Submit { submission, arguments, meta, operation: self.new_operation(), now_ms: flight.now_ms };
        let outcome = self.store.submit(submit).await?;
        drop(flight);
        let taken = |holder: Option<ExecutionId>| Error::KeyTaken {
            id: old,
            holder: holder.map_or_else(|| "of another caller".to_owned(), |holder| holder.to_string()),
        };
        match outcome {
            SubmitOutcome::New(head) => {
                self.slots.announce(&head.ident.upstream);
                self.waiters.look_again();
                Ok(Acted { head: *head, repeated: false })
            }
            SubmitOutcome::Existing(head) if head.ident.retry_of == Some(old) => {
                Ok(Acted { head: *head, repeated: true })
            }
            SubmitOutcome::Existing(head) => Err(taken(Some(head.id()))),
            SubmitOutcome::Conflict(holder) => Err(taken(holder)),
            SubmitOutcome::Waited(holder) => Err(taken(Some(holder))),
        }
    }

    /// A new execution follows the rules of now, where they are known here; else those of the old one.
    fn rules_of(&self, head: &Head) -> (Policy, Identity) {
        let listing = self.catalog.listing();
        match listing.of_upstream(&head.ident.upstream, &head.ident.tool) {
            Some(tool) => (tool.policy.clone(), tool.identity),
            None => (head.ident.policy.clone(), Identity::default()),
        }
    }
}

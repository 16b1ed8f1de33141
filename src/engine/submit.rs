//! A call arrives: stored, found, attached or refused. Nothing is run before it is stored.

use std::sync::Arc;
use std::time::Duration;

use super::catalog::Tool;
use super::finishing::Finishing;
use super::known_keys::Known;
use super::slots::{Admission, Holder};
use super::spans;
use super::ticket::Ticket;
use super::waiters::Seat;
use super::{Engine, Error, Result};
use crate::model::arguments;
use crate::model::execution::{Head, Identification, State};
use crate::model::id::ExecutionId;
use crate::model::policy::{Policy, Unkeyed};
use crate::model::principal::Principal;
use crate::model::submit::{self, IfWaited, Submission};
use crate::store::{self, KeyScope, Payload, Submit, SubmitOutcome, crash};
use crate::telemetry::here;

/// A call as the protocol face understood it.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which tool.
    pub tool: Arc<Tool>,
    /// Who calls.
    pub principal: Principal,
    /// Without authentication: what tells this anonymous caller from another.
    pub caller: String,
    /// The client's key.
    pub key: Option<String>,
    /// The arguments' exact text; `{}` when there were none.
    pub arguments: Payload,
    /// What else of the call goes upstream.
    pub meta: Option<Payload>,
}

impl Call {
    fn key_scope(&self) -> Option<KeyScope> {
        Some(KeyScope {
            namespace: self.principal.namespace.clone(),
            upstream: self.tool.upstream.clone(),
            tool: self.tool.name.clone(),
            key: self.key.clone()?,
        })
    }
}

/// A call on its way into the store.
struct Arrival {
    call: Call,
    arguments_hash: String,
}

impl Engine {
    /// Stores the call or finds the execution that takes it. The ticket is the caller's hold on it. Cancel safe: what is
    /// stored is started, whether or not the caller is still there.
    pub async fn submit(self: &Arc<Self>, call: Call) -> Result<Ticket> {
        let keyed = call.key.is_some();
        let Principal { namespace, subject, .. } = call.principal.clone();
        let span = here::child("submit");
        let meta = span.place().and_then(|_| call.meta.clone());
        let submitted = self.take_in(call).await;
        match &submitted {
            Ok(ticket) => {
                if ticket.attached {
                    self.meter.duplicate(keyed);
                    self.count_repeat(&namespace, &subject);
                }
                if span.place().is_some() {
                    span.set("durable_mcp.execution", ticket.id().to_string());
                    span.set("durable_mcp.attached", ticket.attached);
                    span.link(self.settings.traces.of_execution(ticket.id(), spans::caller(meta.as_deref())));
                }
            }
            Err(error) => {
                self.meter.refused(error.code());
                span.fail(error.code());
            }
        }
        submitted
    }

    async fn take_in(self: &Arc<Self>, call: Call) -> Result<Ticket> {
        let arguments_hash = arguments::hash(&call.arguments, call.tool.service.key_argument.as_deref())?;
        if let Some(ticket) = self.repeated(&call, &arguments_hash).await? {
            return Ok(ticket);
        }
        if !self.waiters.has_room() {
            return Err(Error::Overloaded("too many callers wait in this process".into()));
        }
        crash::point("before_submit");
        let coalesces = call.tool.identity.unkeyed == Unkeyed::Coalesce;
        let arrival = Arc::new(Arrival { call, arguments_hash });
        match self.store_call(arrival.clone(), IfWaited::Tell).await? {
            Stored::Ticket(mut ticket) => {
                ticket.coalesces = coalesces;
                Ok(ticket)
            }
            Stored::Waited(id) => {
                // An equal call is waited for. A client that re-issues after a cut connection may be here before the
                // cut was noticed: look for a moment whether the earlier caller is just leaving.
                if let Some(departure) = self.waiters.departure(id) {
                    let grace = Duration::from_millis(self.settings.departure_grace_ms);
                    // Either way the submission is decided anew, in the order of all writes.
                    let _ = tokio::time::timeout(grace, departure.notified()).await;
                }
                match self.store_call(arrival, IfWaited::New).await? {
                    Stored::Ticket(ticket) => Ok(ticket),
                    Stored::Waited(_) => Err(Error::Overloaded("an equal call is still being answered".into())),
                }
            }
        }
    }

    /// A repeated key is answered from memory or from a reader before it takes the writer. Anything but a plain repeat of
    /// what has ended is decided where it is written.
    async fn repeated(self: &Arc<Self>, call: &Call, arguments_hash: &str) -> Result<Option<Ticket>> {
        let Some(scope) = call.key_scope() else { return Ok(None) };
        let end = match self.known_keys.look(&scope) {
            Known::New => return Ok(None),
            Known::Ended(end) => Some(end),
            Known::Seen => None,
        };
        let head = match &end {
            Some(end) => end.head.clone(),
            None => match self.store.by_key(scope.clone()).await? {
                Some(head) => Arc::new(head),
                None => return Ok(None),
            },
        };
        if !head.state.is_ended() || !self.is_repeat(&head, call, arguments_hash) {
            return Ok(None);
        }
        let end = match end {
            Some(end) => end,
            None => {
                let end = self.settled((*head).clone()).await?;
                self.known_keys.keep(&scope, &end);
                end
            }
        };
        Ok(Some(Ticket::of_end(self.clone(), end)))
    }

    /// True when `holder` of the call's key lives, and is the same call of the same principal.
    fn is_repeat(&self, holder: &Head, call: &Call, arguments_hash: &str) -> bool {
        submit::is_same_call(holder, &call.principal.subject, arguments_hash)
            && submit::keeps_key(holder, call.tool.identity.key_ttl_ms, self.now_ms())
    }

    /// Stores the call, and starts it where it is leased at once, whether or not its caller stays that long.
    async fn store_call(self: &Arc<Self>, arrival: Arc<Arrival>, if_waited: IfWaited) -> Result<Stored> {
        let engine = self.clone();
        let storing = async move { engine.store_arrival(&arrival, if_waited).await };
        Finishing::new(storing, &self.tasks).await
    }

    async fn store_arrival(self: &Arc<Self>, arrival: &Arrival, if_waited: IfWaited) -> Result<Stored> {
        let Arrival { call, arguments_hash } = arrival;
        let tool = &call.tool;
        let id = self.new_execution_id();
        let kept = self.kept_of_call(id, call)?;
        let (holder, start_by_ms) = match self.admit(&tool.upstream, id).await {
            Admission::Now(holder) => (Some(holder), None),
            Admission::Queue { queue_timeout_ms } => {
                (None, queue_timeout_ms.map(|timeout_ms| self.now_ms().saturating_add(timeout_ms)))
            }
            Admission::Full { waiting } => {
                self.unredacted.forget(id);
                return self.found_or_refused(arrival, waiting).await;
            }
            // It had its time, and gets none a second time.
            Admission::Soon(_) => (None, None),
        };
        let marks = call.key.is_none() && tool.identity.unkeyed != Unkeyed::None;
        let submission = Submission {
            ident: Identification {
                id,
                namespace: call.principal.namespace.clone(),
                upstream: tool.upstream.clone(),
                tool: tool.name.clone(),
                key: call.key.clone(),
                principal: call.principal.subject.clone(),
                caller: call.caller.clone(),
                arguments_hash: arguments_hash.clone(),
                policy: Policy { arguments_redacted: kept.is_redacted, ..tool.policy.clone() },
                effect_key: id,
                retry_of: None,
                bound_to: (self.settings.bound || kept.is_redacted).then_some(self.process),
                start_by_ms,
            },
            identity: tool.identity,
            run_at_ms: None,
            by: None,
            lease: holder.as_ref().map(|holder| self.lease_request(holder)),
            waiter: marks.then_some(self.process),
            if_waited,
        };
        let flight = self.in_flight.begin(&self.clock);
        let operation = self.new_operation();
        let submit =
            Submit { submission, arguments: kept.arguments, meta: kept.meta, operation, now_ms: flight.now_ms };
        // What is stored for any worker may end before the caller has its ticket.
        let seat = holder.is_none().then(|| Seat::take(&self.waiters, id));
        let outcome = self.store.submit(submit).await;
        drop(flight);
        crash::point("submitted");
        if !matches!(outcome, Ok(SubmitOutcome::New(_))) {
            self.slots.dequeue(&tool.upstream, id);
        }
        if !matches!(outcome, Ok(SubmitOutcome::New(_)) | Err(store::Error::Unavailable(_))) {
            self.unredacted.forget(id);
        }
        if holder.is_some() && matches!(outcome, Err(store::Error::Unavailable(_))) {
            self.doubt(id, operation);
        }
        match outcome? {
            SubmitOutcome::New(head) => Ok(Stored::Ticket(self.accepted(*head, call, (holder, seat)))),
            SubmitOutcome::Existing(head) => self.joined(*head).await.map(Stored::Ticket),
            SubmitOutcome::Waited(id) => Ok(Stored::Waited(id)),
            SubmitOutcome::Conflict(id) => Err(Error::Conflict(id)),
        }
    }

    /// What the call gets; where a remote worker is at work, after the moment in which it asks for its next calls.
    async fn admit(&self, upstream: &str, id: ExecutionId) -> Admission {
        match self.slots.admit(upstream, id, true) {
            Admission::Soon(claimed) => {
                // Either way it gets what there is then.
                let moment = Duration::from_millis(self.settings.remote.claim_moment_ms);
                let _ = tokio::time::timeout(moment, claimed).await;
                self.slots.admit(upstream, id, false)
            }
            admission => admission,
        }
    }

    /// The queue is full: a repeat of a key needs no place in it, anything else is refused unstored.
    async fn found_or_refused(self: &Arc<Self>, arrival: &Arrival, waiting: usize) -> Result<Stored> {
        let Arrival { call, arguments_hash } = arrival;
        if let Some(scope) = call.key_scope()
            && let Some(head) = self.store.by_key(scope).await?
            && self.is_repeat(&head, call, arguments_hash)
        {
            return self.joined(head).await.map(Stored::Ticket);
        }
        let text = format!("{waiting} calls wait for {} already; try again later", call.tool.upstream);
        Err(Error::Overloaded(text))
    }

    /// A new execution: hand it to its holder when it is leased already, else let a worker find it.
    fn accepted(
        self: &Arc<Self>,
        head: Head,
        call: &Call,
        (holder, seat): (Option<Holder>, Option<Seat<'_>>),
    ) -> Ticket {
        let mut ticket = Ticket::new(self.clone(), head, false);
        if let Some(mut seat) = seat {
            seat.hand_over(&mut ticket.following);
        }
        match holder {
            Some(holder) if ticket.head.state == State::Leased => {
                self.start(ticket.head.clone(), (call.arguments.clone(), call.meta.clone()), holder);
            }
            _ => {
                let upstream = &call.tool.upstream;
                self.slots.keep(upstream, ticket.id(), (call.arguments.clone(), call.meta.clone()));
                self.slots.announce(upstream);
                self.look_elsewhere();
            }
        }
        ticket
    }

    /// An execution that exists: its end may be there already, or come between the look and the waiting.
    pub(super) async fn joined(self: &Arc<Self>, head: Head) -> Result<Ticket> {
        let ticket = Ticket::new(self.clone(), head, true);
        if !ticket.head.state.is_settled() && !self.running.contains(ticket.id()) {
            self.look_elsewhere();
        }
        let head = match ticket.head.state.is_settled() {
            true => Some((*ticket.head).clone()),
            false => self.store.heads(&[ticket.id()]).await?.pop(),
        };
        match head {
            Some(head) if head.state.is_settled() => self.settle(head, None).await?,
            Some(head) if head.state == State::Waiting => self.told_questions(head.id()).await,
            _ => {}
        }
        Ok(ticket)
    }

    /// A hold on an execution of the caller, by id; a foreign one is as if it were missing.
    pub async fn attach(self: &Arc<Self>, id: ExecutionId, principal: &Principal) -> Result<Ticket> {
        let head = self.store.heads(&[id]).await?.pop();
        let head = head
            .filter(|head| head.ident.namespace == principal.namespace && head.ident.principal == principal.subject);
        let head = head.ok_or_else(|| Error::NotFound(id.to_string()))?;
        self.joined(head).await
    }
}

enum Stored {
    Ticket(Ticket),
    Waited(ExecutionId),
}

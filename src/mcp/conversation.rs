//! One caller's request while it waits: what it is told next, and how it leaves. Speaks no transport.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::answer::{self, Audience, Reply};
use super::call::Begun;
use super::face::Face;
use super::id::Id;
use super::input;
use super::log_level;
use super::progress::Rising;
use super::reject::{RpcError, code};
use super::session::Flight;
use super::task::create::{Pending, Related};
use super::task::experimental;
use crate::engine::asking::{OpenQuestion, Round};
use crate::engine::client::ClientContext;
use crate::engine::notices::{Notice, TASKED};
use crate::engine::ticket::{News, Ticket};
use crate::engine::waiters::Progress;
use crate::model::event::Order;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::model::policy::OnDisconnect;
use crate::model::principal::Principal;
use crate::model::revision::Era;
use crate::store::InputOutcome;
use crate::store::{Payload, crash};

/// How an answer ends for whoever asks the same again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The end, or what was asked for.
    Whole,
    /// A handle at a spent budget.
    Handle,
}

/// An answer, and the hold on the execution until it is written.
pub struct Answered {
    /// What to write.
    pub reply: Reply,
    /// How the tool's answers are written over HTTP, where it says so.
    pub response: Option<crate::engine::catalog::ResponseMode>,
    pub(super) hold: Option<(Ticket, Kind)>,
}

impl Answered {
    /// An answer that concerns no execution.
    pub fn of(reply: Reply) -> Answered {
        Answered { reply, hold: None, response: None }
    }

    /// The answer was written whole. Dropping an answer instead means that it was not.
    pub fn written(self) {
        crash::point("answer_handed_over");
        match self.hold {
            Some((ticket, Kind::Whole)) => ticket.answered(),
            Some((ticket, Kind::Handle)) => ticket.handle_given(),
            None => {}
        }
    }

    /// The reply apart from the hold.
    pub fn split(self) -> (Reply, Hold) {
        (self.reply, Hold(self.hold))
    }
}

/// What keeps an execution's caller counted until its answer is written.
pub struct Hold(Option<(Ticket, Kind)>);

impl Hold {
    /// The answer was written whole.
    pub fn written(self) {
        Answered { reply: Reply::Result(String::new().into()), hold: self.0, response: None }.written();
    }
}

/// What a waiting caller is told next.
pub enum Step {
    /// The answer; the last step.
    Answer(Answered),
    /// How far the tool is; values rise over the whole call.
    Progress(Progress),
    /// What the tool or its server told.
    Message(Arc<Notice>),
    /// Messages to write: requests to the client, or notifications that take one back.
    Asked(Vec<Said>),
}

/// A message to the client that is part of no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// What makes it one and the same, however often it is said.
    pub name: String,
    /// A whole JSON-RPC message.
    pub message: String,
}

/// Where a conversation stands with its client's questions.
#[derive(Default)]
pub(super) struct Asking {
    /// What was told of them last, and is not yet dealt with.
    told: Option<Arc<Round>>,
    /// Questions that this client was asked.
    asked: BTreeSet<u32>,
    /// Those of them that are open.
    open: BTreeSet<u32>,
    /// The answer to a call that has ended, once its open questions were taken back.
    answer: Option<(ExecutionId, Answered)>,
}

/// One caller's request, waiting.
pub struct Conversation {
    pub(super) face: Arc<Face>,
    pub(super) ticket: Option<Ticket>,
    pub(super) flight: Option<Arc<Flight>>,
    pub(super) tool_name: String,
    pub(super) on_disconnect: OnDisconnect,
    /// The request only asks about the execution: taking it back stops nothing.
    pub(super) only_asks: bool,
    pub(super) deadline: Instant,
    pub(super) audience: Audience,
    pub(super) rising: Rising,
    pub(super) order: Order,
    /// The task that the call becomes.
    pub(super) pending: Option<Pending>,
    /// The task whose result is asked for.
    pub(super) related: Option<Related>,
    /// How the server writes this tool's answers.
    pub response: Option<crate::engine::catalog::ResponseMode>,
    /// What the client can be asked.
    pub(super) client: Arc<ClientContext>,
    /// Who asks.
    pub(super) principal: Principal,
    /// A request of 2026-07-28 that may be answered with questions: the name it calls, and its arguments.
    pub(super) request: Option<(String, Payload)>,
    pub(super) asking: Asking,
}

impl Conversation {
    pub(super) fn begun(mut self, flight: Option<Arc<Flight>>) -> Begun {
        if let (Some(flight), Some(ticket)) = (&flight, &self.ticket) {
            // Set once: a flight has one request.
            let _ = flight.execution.set(ticket.id());
        }
        self.flight = flight;
        // The end of a task is read as the task shows it.
        let ready = self.related.is_none();
        if let Some(ticket) = self.ticket.take_if(|ticket| ready && ticket.settled().is_some())
            && let Some(settled) = ticket.settled()
        {
            let reply = self.face.settled(&settled, ticket.attached, self.audience);
            let response = self.response;
            return Begun::Answer(Answered { reply, hold: Some((ticket, Kind::Whole)), response });
        }
        Begun::Waiting(Box::new(self))
    }

    /// The next thing to tell the caller; pending for ever once the answer was given. Cancel safe.
    pub async fn step(&mut self) -> Step {
        loop {
            if let Some((id, _)) = &self.asking.answer {
                let said = match self.asking.open.is_empty() {
                    true => Vec::new(),
                    false => Box::pin(self.withdrawals(*id)).await,
                };
                self.asking.open.clear();
                if !said.is_empty() {
                    return Step::Asked(said);
                }
                if let Some((_, answered)) = self.asking.answer.take() {
                    return Step::Answer(answered);
                }
            }
            // A question of a call that is a task by now is asked in the task, whichever was told first.
            if self.asking.told.is_some() && self.pending.as_ref().is_some_and(Pending::is_due) {
                match self.become_task().await {
                    Some(step) => return step,
                    None => continue,
                }
            }
            if let Some(round) = self.asking.told.clone() {
                let step = Box::pin(self.asked(&round)).await;
                self.asking.told = None;
                match step {
                    Some(step) => return step,
                    None => continue,
                }
            }
            let Some(ticket) = &mut self.ticket else { return std::future::pending().await };
            let time_is_up = async {
                tokio::select! {
                    () = tokio::time::sleep_until(self.deadline) => {}
                    // This process ends, and the call goes on, or its end is stored: the handle says where to ask.
                    () = self.face.handing_over.cancelled() => {}
                }
            };
            let withdrawn = async {
                match &self.flight {
                    Some(flight) => flight.withdrawn.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                news = ticket.news() => match news {
                    News::Settled(settled) => {
                        if let Some(related) = &self.related {
                            let reply = Box::pin(self.face.end_of_task(related)).await;
                            return self.answered(reply, Kind::Whole);
                        }
                        let reply = self.face.settled(&settled, ticket.attached, self.audience);
                        let hold = self.ticket.take().map(|ticket| (ticket, Kind::Whole));
                        let answered = Answered { reply, hold, response: self.response };
                        self.asking.answer = Some((settled.head.id(), answered));
                    }
                    News::Message(notice) if notice.method == TASKED => {
                        if let Some(pending) = &mut self.pending {
                            pending.at = Instant::now();
                        }
                    }
                    News::Message(notice) => {
                        if log_level::hears(&self.client, &notice) {
                            return Step::Message(notice);
                        }
                    }
                    News::Asked(round) => self.asking.told = Some(round),
                    News::Progress(progress) => {
                        if let Some(progress) = self.rising.next(progress) {
                            return Step::Progress(progress);
                        }
                    }
                },
                () = withdrawn => {
                    self.withdrawn();
                    return Step::Answer(Answered::of(Reply::Error(RpcError::new(
                        code::INVALID_REQUEST,
                        "the request was cancelled by the client",
                    ))));
                }
                () = Pending::due(self.pending.as_ref()) => {
                    if let Some(step) = self.become_task().await {
                        return step;
                    }
                }
                () = time_is_up => {
                    if self.related.is_some() {
                        return self.answered(experimental::over(), Kind::Handle);
                    }
                    let head = ticket.head.clone();
                    let reply = answer::handle(&head, &self.tool_name, ticket.attached, self.audience);
                    return self.answered(reply, Kind::Handle);
                }
            }
        }
    }

    /// The answer that is the task; `None` when there can be none, so that the call is waited for as any other.
    async fn become_task(&mut self) -> Option<Step> {
        let pending = self.pending.as_ref()?;
        let id = self.ticket.as_ref()?.id();
        match Box::pin(self.face.create_task(id, &pending.wish)).await {
            Ok(reply) => Some(self.answered(reply, Kind::Whole)),
            Err(error) => {
                tracing::warn!(execution = %id, "a call could not become a task: {}", error.message);
                self.pending = None;
                None
            }
        }
    }

    /// The task that the messages of this conversation belong to (2025-11-25).
    pub fn related_task(&self) -> Option<ExecutionId> {
        self.related.as_ref().map(|related| related.id)
    }

    /// What the client is told of a round: nothing, requests, or the answer that is a question.
    async fn asked(&mut self, round: &Round) -> Option<Step> {
        let head = self.ticket.as_ref()?.head.clone();
        let questions: Vec<OpenQuestion> =
            round.questions.iter().filter(|question| input::can_be_asked(&self.client, question)).cloned().collect();
        self.asking.open = questions.iter().map(|question| question.number).collect();
        if self.audience.era == Era::Modern {
            let (name, arguments) = self.request.as_ref().filter(|_| !questions.is_empty())?;
            let bound = input::bound(&self.principal, name, arguments);
            let attached = self.ticket.as_ref()?.attached;
            let waiting = Head { state: State::Waiting, ..(*head).clone() };
            let told = (attached, self.audience);
            let reply = self.face.input_required(&waiting, (&questions, &bound), told).await?;
            return Some(self.answered(reply, Kind::Handle));
        }
        let questions: Vec<OpenQuestion> = match &self.related {
            Some(related) => questions.into_iter().map(|question| of_task(question, related.id)).collect(),
            None => questions,
        };
        let new = questions.iter().filter(|question| self.asking.asked.insert(question.number));
        let said: Vec<Said> = new
            .map(|question| Said {
                name: input::request_id(head.id(), question.number),
                message: input::request(head.id(), question),
            })
            .collect();
        (!said.is_empty()).then_some(Step::Asked(said))
    }

    /// What takes back the questions that the end of the call leaves open. One that another process had the answer to is
    /// not open, although nobody told of it here.
    async fn withdrawals(&self, id: ExecutionId) -> Vec<Said> {
        let open: Vec<u32> = self.asking.open.intersection(&self.asking.asked).copied().collect();
        if open.is_empty() {
            return Vec::new();
        }
        // Should the store not say, a client that is told too much ignores it.
        let rows = self.face.engine.store().inputs(id).await.unwrap_or_default();
        let is_answered = |number: u32| {
            let row = rows.iter().find(|row| row.number == number);
            row.is_some_and(|row| matches!(row.outcome, Some(InputOutcome::Result | InputOutcome::Error)))
        };
        let left = open.into_iter().filter(|number| !is_answered(*number));
        left.map(|number| Said {
            name: format!("{}.withdrawn", input::request_id(id, number)),
            message: input::withdrawal(id, number),
        })
        .collect()
    }

    /// A sign of life for a caller that follows progress: the last value and a small fraction.
    pub fn still_there(&mut self) -> Progress {
        self.rising.again()
    }

    /// True when the client took its request back: nothing more may be sent for it.
    pub fn is_withdrawn(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.withdrawn.is_cancelled())
    }

    fn answered(&mut self, reply: Reply, kind: Kind) -> Step {
        let hold = self.ticket.take().map(|ticket| (ticket, kind));
        Step::Answer(Answered { reply, hold, response: self.response })
    }

    /// A cancellation that only says that the client's timer ran out follows the policy, as a client that disconnects
    /// does; any other cancels the work.
    fn withdrawn(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let timed_out = self.flight.as_ref().is_some_and(|flight| flight.timed_out());
        if timed_out || self.only_asks {
            self.left(ticket, "the client gave up waiting");
        } else {
            self.cancel(ticket.id(), self.order.clone());
            // Who cancels knows how it ended: the same call later is a new wish, and not one for the old answer.
            ticket.answered();
        }
    }

    /// The caller is gone. Where the policy says so the work stops, unless somebody else waits for it.
    fn left(&self, ticket: Ticket, reason: &str) {
        let id = ticket.id();
        if ticket.leave() && self.on_disconnect == OnDisconnect::Cancel {
            self.cancel(id, Order { reason: reason.into(), ..self.order.clone() });
        }
    }

    /// Cancels the work on a task of its own: the request may be gone before the cancellation is stored.
    fn cancel(&self, id: ExecutionId, order: Order) {
        let engine = self.face.engine.clone();
        self.face.engine.spawn(async move {
            if let Err(error) = engine.cancel(id, order).await {
                tracing::debug!(execution = %id, code = error.code(), "a cancellation came too late: {error}");
            }
        });
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.left(ticket, "the client disconnected");
        }
    }
}

/// A question with the `_meta` member that says which task asks (2025-11-25).
fn of_task(question: OpenQuestion, id: ExecutionId) -> OpenQuestion {
    OpenQuestion { params: experimental::related(&question.params, id).into(), ..question }
}

/// The parameters of a progress notification for `token`.
pub fn progress_params(token: &Id<'_>, progress: &Progress, with_message: bool) -> String {
    let mut params = format!("{{\"progressToken\":{},\"progress\":{}", token.raw(), progress.progress);
    if let Some(total) = progress.total {
        params.push_str(&format!(",\"total\":{total}"));
    }
    if let Some(message) = progress.message.as_ref().filter(|_| with_message) {
        params.push_str(&format!(",\"message\":{}", serde_json::json!(message)));
    }
    params.push('}');
    params
}

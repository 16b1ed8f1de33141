//! The verbs of questions to the client: hold, park, answer, expire, and who is told. Whoever runs a tool asks here;
//! whoever serves clients answers here.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::asking::{AskError, Asks, OpenQuestion, Pauses, Question, Round, Told, is_capable, needs, turned_away};
use super::client::ClientContext;
use super::finishing::Finishing;
use super::running::Work;
use super::{Engine, Error, Result};
use crate::model::arguments;
use crate::model::event::Digest;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::model::json::members;
use crate::model::principal::Principal;
use crate::store::{AnswerInputs, Ask, Asked, Fate, InputOutcome, InputRow, LeaseRef, NewAnswer, NewQuestion, Payload};

/// The member of a call's stored `_meta` that carries answers to questions that were never asked here (`inputResponses`
/// without a `requestState`).
pub const RESPONSES_MEMBER: &str = "durable-mcp/inputResponses";

/// Questions that are waited for in this process.
#[derive(Debug, Default)]
pub(super) struct Asking {
    entries: Mutex<HashMap<ExecutionId, (usize, Arc<Notify>)>>,
    /// Held while callers are told what is open: whoever tells last has read last.
    telling: tokio::sync::Mutex<()>,
}

impl Asking {
    fn enter(&self, id: ExecutionId) -> Arc<Notify> {
        let mut entries = self.entries();
        let entry = entries.entry(id).or_default();
        entry.0 += 1;
        entry.1.clone()
    }

    fn leave(&self, id: ExecutionId) {
        let mut entries = self.entries();
        if let Some(entry) = entries.get_mut(&id) {
            entry.0 -= 1;
            if entry.0 == 0 {
                entries.remove(&id);
            }
        }
    }

    /// Whoever waits for an answer to a question of `id` looks again.
    fn tell(&self, id: ExecutionId) {
        if let Some((_, told)) = self.entries().get(&id) {
            told.notify_waiters();
        }
    }

    /// Whoever waits for an answer of these looks again.
    pub(super) fn look_again(&self, is_told: impl Fn(&ExecutionId) -> bool) {
        let entries = self.entries();
        entries.iter().filter(|(id, _)| is_told(id)).for_each(|(_, (_, told))| told.notify_waiters());
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ExecutionId, (usize, Arc<Notify>)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of a round that gives its lease up.
#[derive(Clone, Debug, PartialEq)]
pub enum Parked {
    /// The execution waits; another lease goes on with it.
    Waiting,
    /// An earlier attempt got the answers already.
    Known(Answered),
    /// The client lacks a capability; nothing was stored.
    NotCapable(&'static str),
    /// The lease is not held any more.
    Refused,
}

/// How a round of questions ended, for the tool that asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// What the tool wanted to see again.
    pub state: Option<Payload>,
    /// The client's results by the tool's own names.
    pub responses: Vec<(String, Payload)>,
    /// A question that has no result, and cannot be taken for turned away by the user: its method, and whether the client
    /// answered with an error (else it did not answer in time).
    pub lacks: Option<(String, bool)>,
}

/// What became of answers.
#[derive(Clone, Debug)]
pub struct Answers {
    /// In the order of the answers.
    pub fates: Vec<Fate>,
    /// What is still open.
    pub open: Vec<OpenQuestion>,
    /// The row after that.
    pub head: Box<Head>,
}

impl Engine {
    /// Where the work asks its client.
    pub fn asks(self: &Arc<Self>, work: &Work, client: Arc<ClientContext>, pauses: Arc<Pauses>) -> Arc<dyn Asks> {
        Arc::new(Holder { engine: self.clone(), lease: work.lease(), cancel: work.cancel.clone(), client, pauses })
    }

    /// Stores the questions of a round that gives the lease up.
    ///
    /// # Errors
    ///
    /// When the store can not be written; the same may be offered again.
    pub async fn park(
        &self,
        work: &Work,
        client: &ClientContext,
        (questions, state): (&[Question], Option<&Payload>),
    ) -> Result<Parked> {
        let lacking = questions.iter().map(|question| needs(&question.method, &question.params));
        if let Some(needs) = lacking.into_iter().find(|needs| !is_capable(client, needs)) {
            return Ok(Parked::NotCapable(needs));
        }
        let questions = self.kept_of_questions(work.head.id(), questions.iter().map(new_question).collect()).await?;
        let flight = self.in_flight.begin(&self.clock);
        let ask = Ask {
            lease: work.lease(),
            questions,
            parked: true,
            state: state.cloned(),
            operation: work.operation,
            now_ms: flight.now_ms,
        };
        let asked = self.store.ask(ask).await;
        drop(flight);
        let (head, rows) = match asked? {
            Asked::Stored { head, rows } => (head, rows),
            Asked::Refused(_) => return Ok(Parked::Refused),
        };
        if head.state != State::Waiting {
            return Ok(Parked::Known(answered(&self.with_true_answers(head.id(), rows))));
        }
        self.running.remove(work.lease());
        self.told_questions(head.id()).await;
        Ok(Parked::Waiting)
    }

    /// What the client answered in the rounds since the attempt began, where `head` goes on after one.
    pub async fn answered_round(&self, head: &Head) -> Result<Option<Answered>> {
        if !head.continues {
            return Ok(None);
        }
        let rows = self.store.inputs(head.id()).await?;
        let round = rows.iter().filter(|row| row.parked && row.attempt == head.attempt).map(|row| row.round).max();
        let Some(round) = round else { return Ok(None) };
        let rows: Vec<InputRow> = rows.into_iter().filter(|row| row.round == round && row.parked).collect();
        Ok(Some(answered(&self.with_true_answers(head.id(), rows))))
    }

    /// The open questions of an execution.
    pub async fn questions(&self, id: ExecutionId) -> Result<Vec<OpenQuestion>> {
        let Some(head) = self.store.heads(&[id]).await?.pop() else { return Ok(Vec::new()) };
        if head.state != State::Waiting {
            return Ok(Vec::new());
        }
        Ok(open(&head, &self.store.inputs(id).await?))
    }

    /// Every question of a caller's execution; a foreign one is as if it were missing.
    pub async fn inputs_of(&self, id: ExecutionId, principal: &Principal) -> Result<(Head, Vec<InputRow>)> {
        let head = self.own(id, principal).await?;
        let rows = self.store.inputs(id).await?;
        Ok((head, rows))
    }

    /// Answers questions by their keys. Each is answered once; only its owner may.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for a foreign execution as for a missing one; the store.
    pub async fn answer(
        &self,
        id: ExecutionId,
        answers: Vec<(String, Told)>,
        principal: &Principal,
    ) -> Result<Answers> {
        let (_, rows) = self.inputs_of(id, principal).await?;
        let number = |key: &str| rows.iter().find(|row| row.key == key).map_or(0, |row| row.number);
        let answers = answers.into_iter().map(|(key, told)| (number(&key), told)).collect();
        self.write_answers(id, answers, &principal.subject).await
    }

    /// The same by the numbers of the questions.
    pub async fn answer_numbered(
        &self,
        id: ExecutionId,
        answers: Vec<(u32, Told)>,
        principal: &Principal,
    ) -> Result<Answers> {
        self.own(id, principal).await?;
        self.write_answers(id, answers, &principal.subject).await
    }

    async fn own(&self, id: ExecutionId, principal: &Principal) -> Result<Head> {
        let head = self.store.heads(&[id]).await?.pop();
        let own =
            |head: &Head| head.ident.namespace == principal.namespace && head.ident.principal == principal.subject;
        head.filter(own).ok_or_else(|| Error::NotFound(id.to_string()))
    }

    async fn write_answers(&self, id: ExecutionId, answers: Vec<(u32, Told)>, by: &str) -> Result<Answers> {
        let mut kept = Vec::with_capacity(answers.len());
        for (number, told) in answers {
            let (outcome, text) = match told {
                Told::Result(text) => (InputOutcome::Result, text),
                Told::Error(text) => (InputOutcome::Error, text),
            };
            let hash = Some(arguments::hash(&text, None).unwrap_or_else(|_| Digest::of(&text).sha256));
            let text = Some(self.kept_of_answer(id, number, text).await?);
            kept.push(NewAnswer { number, outcome, text, hash });
        }
        self.close_questions(id, kept, by).await
    }

    /// Questions as they may be stored, and so as the client sees them.
    async fn kept_of_questions(&self, id: ExecutionId, mut questions: Vec<NewQuestion>) -> Result<Vec<NewQuestion>> {
        for question in &mut questions {
            if let Some(struck) = self.struck_of(id, &question.params).await? {
                question.params = struck;
            }
        }
        Ok(questions)
    }

    async fn close_questions(&self, id: ExecutionId, answers: Vec<NewAnswer>, by: &str) -> Result<Answers> {
        let operation = self.new_operation();
        let flight = self.in_flight.begin(&self.clock);
        let answers = AnswerInputs { id, answers, by: by.to_owned(), operation, now_ms: flight.now_ms };
        let done = self.store.answer(answers).await;
        drop(flight);
        let Some(done) = done? else { return Err(Error::NotFound(id.to_string())) };
        self.asking.tell(id);
        let open = open(&done.head, &done.rows);
        self.told_questions(id).await;
        if done.head.state == State::Ready {
            self.slots.announce(&done.head.ident.upstream);
            self.released(&done.head);
        }
        Ok(Answers { fates: done.fates, open, head: done.head })
    }

    /// Closes what nobody answered in time; the tools are told so.
    pub(super) async fn expire_questions(&self) -> Result<()> {
        let until_ms = self.now_ms().saturating_sub(self.settings.input_timeout_ms);
        let mut due = self.store.inputs_due(until_ms, self.settings.scheduler_batch).await?;
        due.sort_unstable();
        for same in due.chunk_by(|one, next| one.0 == next.0) {
            let expired = |(_, number): &(ExecutionId, u32)| NewAnswer {
                number: *number,
                outcome: InputOutcome::Expired,
                text: None,
                hash: None,
            };
            match self.close_questions(same[0].0, same.iter().map(expired).collect(), "scheduler").await {
                Ok(_) | Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the callers here which questions of the execution are open. A failure is made up for by the next look.
    pub(super) async fn told_questions(&self, id: ExecutionId) {
        self.watchers.tell(id);
        if !self.waiters.are_there(id) {
            return;
        }
        let _telling = self.asking.telling.lock().await;
        match self.questions(id).await {
            Ok(questions) => self.waiters.asked(id, Round { questions }),
            Err(error) => {
                tracing::warn!(execution = %id, code = error.code(), "a question could not be told: {error}");
                self.waiters.look_again();
            }
        }
    }
}

/// What is open for an execution that waits.
fn open(head: &Head, rows: &[InputRow]) -> Vec<OpenQuestion> {
    if head.state != State::Waiting {
        return Vec::new();
    }
    let asked_now = |row: &&InputRow| row.outcome.is_none() && row.attempt == head.attempt;
    let question = |row: &InputRow| OpenQuestion {
        number: row.number,
        round: row.round,
        key: row.key.clone(),
        method: row.method.clone(),
        params: row.params.clone(),
        asked_at_ms: row.asked_at_ms,
    };
    rows.iter().filter(asked_now).map(question).collect()
}

fn new_question(question: &Question) -> NewQuestion {
    // What a client shows of a question is not in `_meta`, which may differ each time.
    let hash = arguments::hash(&question.params, Some("_meta"));
    NewQuestion {
        name: question.key.clone(),
        method: question.method.clone(),
        params: question.params.clone(),
        params_hash: hash.unwrap_or_else(|_| Digest::of(&question.params).sha256),
    }
}

/// What a tool gets of a closed question; errors say whether the client answered with one.
fn told(row: &InputRow) -> std::result::Result<Payload, bool> {
    match (row.outcome, &row.answer) {
        (Some(InputOutcome::Result), Some(answer)) => Ok(answer.clone()),
        // It was answered, and what with is known to another process only.
        (Some(InputOutcome::Error), None) => Err(true),
        (Some(outcome), _) => turned_away(&row.method).ok_or(outcome == InputOutcome::Error),
        (None, _) => Err(false),
    }
}

fn answered(rows: &[InputRow]) -> Answered {
    let mut answered =
        Answered { state: rows.iter().find_map(|row| row.state.clone()), responses: Vec::new(), lacks: None };
    for row in rows {
        match told(row) {
            Ok(response) => answered.responses.push((row.name.clone(), response)),
            Err(refused) => answered.lacks = Some((row.method.clone(), refused)),
        }
    }
    answered
}

/// The answers that came with a call itself, by name.
pub fn responses_of_meta(meta: Option<&str>) -> Option<Vec<(String, Payload)>> {
    let found = meta.and_then(members)?.into_iter().find(|(name, _)| name == RESPONSES_MEMBER)?;
    let responses = members(found.1.get())?;
    Some(responses.into_iter().map(|(name, value)| (name.into_owned(), value.get().into())).collect())
}

/// Asks under a lease that is kept.
struct Holder {
    engine: Arc<Engine>,
    lease: LeaseRef,
    cancel: CancellationToken,
    client: Arc<ClientContext>,
    pauses: Arc<Pauses>,
}

impl std::fmt::Debug for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Holder({})", self.lease.id)
    }
}

#[async_trait]
impl Asks for Holder {
    async fn ask(&self, question: Question) -> std::result::Result<Told, AskError> {
        let needs = needs(&question.method, &question.params);
        if !is_capable(&self.client, needs) {
            return Err(AskError::NotCapable(needs));
        }
        let engine = &self.engine;
        let id = self.lease.id;
        // A tool that gives up while the question is being stored withdraws it, too.
        let stored = Waiting::begin(engine.clone(), self.lease, new_question(&question));
        let (mut waiting, mut row) = Finishing::new(stored, &engine.tasks).await?;
        if row.outcome.is_none() {
            let _pause = self.pauses.begin();
            engine.told_questions(id).await;
            // Answers that came elsewhere are seen by looking.
            engine.waiters.look_again();
            let looks = waiting.looks.clone();
            loop {
                let looked = looks.notified();
                tokio::pin!(looked);
                looked.as_mut().enable();
                match engine.store.inputs(id).await {
                    Ok(rows) => {
                        let rows = engine.with_true_answers(id, rows);
                        if let Some(closed) = rows.into_iter().find(|r| r.number == row.number && r.outcome.is_some()) {
                            row = closed;
                            break;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(execution = %id, code = error.code(), "an answer could not be looked for: {error}");
                    }
                }
                tokio::select! {
                    () = looked => {}
                    () = self.cancel.cancelled() => {
                        // It has ended, or somebody else runs it: what is stored says so already.
                        waiting.number = None;
                        return Err(AskError::Withdrawn);
                    }
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
            }
            waiting.number = None;
        }
        match row.outcome {
            Some(InputOutcome::Error) => row.answer.map(Told::Error).ok_or(AskError::Withdrawn),
            Some(InputOutcome::Withdrawn) => Err(AskError::Withdrawn),
            _ => told(&row).map(Told::Result).map_err(|_| AskError::TimedOut),
        }
    }
}

/// However answers come, they are looked for so often.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

/// A question that is waited for: withdrawn when the tool gives it up.
struct Waiting {
    engine: Arc<Engine>,
    id: ExecutionId,
    /// Told when there may be an answer.
    looks: Arc<Notify>,
    number: Option<u32>,
}

impl Waiting {
    /// Stores a question; the row may have an answer already.
    async fn begin(
        engine: Arc<Engine>,
        lease: LeaseRef,
        question: NewQuestion,
    ) -> std::result::Result<(Waiting, InputRow), AskError> {
        let looks = engine.asking.enter(lease.id);
        let mut waiting = Waiting { engine, id: lease.id, looks, number: None };
        let engine = &waiting.engine;
        let kept = engine.kept_of_questions(lease.id, vec![question]).await;
        let questions = kept.map_err(|error| AskError::Store(error.to_string()))?;
        let flight = engine.in_flight.begin(&engine.clock);
        let ask = Ask {
            lease,
            questions,
            parked: false,
            state: None,
            operation: engine.new_operation(),
            now_ms: flight.now_ms,
        };
        let asked = engine.store.ask(ask).await;
        drop(flight);
        let asked = asked.map_err(|error| AskError::Store(error.to_string()))?;
        let Asked::Stored { rows, .. } = asked else { return Err(AskError::Withdrawn) };
        let rows = engine.with_true_answers(lease.id, rows);
        let Some(row) = rows.into_iter().next() else { return Err(AskError::Withdrawn) };
        waiting.number = row.outcome.is_none().then_some(row.number);
        Ok((waiting, row))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.engine.asking.leave(self.id);
        let Some(number) = self.number else { return };
        // A process that stops lets the question be: whoever runs the call next asks it again.
        if self.engine.halting.is_cancelled() {
            return;
        }
        let (engine, id) = (self.engine.clone(), self.id);
        self.engine.spawn(async move {
            let withdrawn = NewAnswer { number, outcome: InputOutcome::Withdrawn, text: None, hash: None };
            if let Err(error) = engine.close_questions(id, vec![withdrawn], "tool").await {
                tracing::debug!(execution = %id, code = error.code(), "a question could not be withdrawn: {error}");
            }
        });
    }
}

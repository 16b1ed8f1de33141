//! What is kept of a call where rules strike something out of it: every write passes here, and only the struck text reaches
//! the store. The true arguments and answers stay in the memory of this process, for the tool and for no longer than the
//! execution may need them. Which rules there are is the catalog's matter.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::submit::Call;
use super::{Engine, Error, Result};
use crate::model::decide::{Command, Failure, FailureKind, Outcome};
use crate::model::event::{Digest, Order};
use crate::model::execution::{ErrorInfo, Head, State};
use crate::model::id::ExecutionId;
use crate::model::json::{members, quoted, with_member};
use crate::model::redact::{Known, Part, Rules};
use crate::store::{InputOutcome, InputRow, Payload, PayloadKind};

/// The code of a call that can not be run, since nobody has its arguments any more.
pub const ARGUMENTS_REDACTED: &str = "arguments_redacted";
/// The member of a stored answer that is not the one the client gave.
const REDACTED_MEMBER: &str = "durable-mcp/redacted";
/// Entries that are kept before the old ones are looked through.
const LOOK_THROUGH_AT: usize = 4_096;

/// What is struck, for the whole process.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The rules for every call; those of a tool stand in the catalog and include them.
    pub rules: Arc<Rules>,
    /// Some tool has rules.
    pub is_on: bool,
    /// The most bytes of true arguments in memory.
    pub held_bytes_max: usize,
}

/// What is kept of a call in the store.
#[derive(Debug)]
pub(super) struct KeptCall {
    pub(super) arguments: Payload,
    pub(super) meta: Option<Payload>,
    /// Something was struck: only this process can run it.
    pub(super) is_redacted: bool,
}

/// Calls whose rules strike something, and what of them is nowhere else.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    entries: HashMap<ExecutionId, Entry>,
    bytes: usize,
    look_through_at: usize,
}

#[derive(Debug)]
struct Entry {
    rules: Arc<Rules>,
    known: Arc<Known>,
    /// The call as it came, while it may have to be run.
    call: Option<(Payload, Option<Payload>)>,
    /// Answers of the client as they came, by the numbers of the questions.
    answers: HashMap<u32, Payload>,
    /// From then on nothing can run it any more.
    until_ms: i64,
}

impl Entry {
    fn bytes(&self) -> usize {
        let call = self.call.as_ref().map_or(0, |(call, meta)| call.len() + meta.as_ref().map_or(0, |meta| meta.len()));
        call + self.answers.values().map(|answer| answer.len()).sum::<usize>()
    }
}

impl Held {
    fn insert(&self, id: ExecutionId, entry: Entry, (bytes_max, now_ms): (usize, i64)) -> Result<()> {
        let mut held = self.entries();
        if held.entries.len() >= held.look_through_at.max(LOOK_THROUGH_AT) {
            held.entries.retain(|_, entry| entry.until_ms > now_ms);
            held.bytes = held.entries.values().map(Entry::bytes).sum();
            held.look_through_at = held.entries.len() * 2;
        }
        if held.bytes + entry.bytes() > bytes_max {
            let words = "too many calls with redacted arguments wait or run; limits.unredacted_bytes sets how many may";
            return Err(Error::Overloaded(words.into()));
        }
        held.bytes += entry.bytes();
        held.entries.insert(id, entry);
        Ok(())
    }

    /// It has ended, or was never stored.
    pub(super) fn forget(&self, id: ExecutionId) {
        let mut held = self.entries();
        if let Some(entry) = held.entries.remove(&id) {
            held.bytes = held.bytes.saturating_sub(entry.bytes());
        }
    }

    fn forget_call(&self, id: ExecutionId) {
        let mut held = self.entries();
        let Some(entry) = held.entries.get_mut(&id) else { return };
        let before = entry.bytes();
        (entry.call, entry.answers) = (None, HashMap::new());
        held.bytes = held.bytes.saturating_sub(before);
    }

    /// The call as it came.
    pub(super) fn call(&self, id: ExecutionId) -> Option<(Payload, Option<Payload>)> {
        self.entries().entries.get(&id)?.call.clone()
    }

    fn rules(&self, id: ExecutionId) -> Option<(Arc<Rules>, Arc<Known>)> {
        self.entries().entries.get(&id).map(|entry| (entry.rules.clone(), entry.known.clone()))
    }

    fn answer(&self, id: ExecutionId, number: u32) -> Option<Payload> {
        self.entries().entries.get(&id)?.answers.get(&number).cloned()
    }

    fn keep_answer(&self, id: ExecutionId, number: u32, answer: Payload) {
        let mut held = self.entries();
        let Some(entry) = held.entries.get_mut(&id) else { return };
        let added = answer.len();
        let before = entry.answers.insert(number, answer).map_or(0, |before| before.len());
        held.bytes = (held.bytes + added).saturating_sub(before);
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// What may be stored of a call. What it strikes is held here from now on.
    pub(super) fn kept_of_call(&self, id: ExecutionId, call: &Call) -> Result<KeptCall> {
        let rules = &call.tool.redact;
        let (mut arguments, mut meta) = (call.arguments.clone(), call.meta.clone());
        if rules.is_empty() {
            return Ok(KeptCall { arguments, meta, is_redacted: false });
        }
        let mut values = BTreeSet::new();
        let mut is_redacted = false;
        if let Some(struck) = rules.strike(&arguments, Part::Arguments, &Known::default()) {
            (arguments, values, is_redacted) = (struck.text.into(), struck.values, true);
        }
        let known = Known::of(&values);
        if let Some(struck) = meta.as_ref().and_then(|meta| rules.strike(meta, Part::Other, &known)) {
            (meta, is_redacted) = (Some(struck.text.into()), true);
        }
        let now_ms = self.now_ms();
        let asked_ms = self.settings.input_timeout_ms;
        let entry = Entry {
            rules: rules.clone(),
            known: Arc::new(known),
            call: is_redacted.then(|| (call.arguments.clone(), call.meta.clone())),
            answers: HashMap::new(),
            until_ms: now_ms.saturating_add(call.tool.policy.timeouts.total_ms).saturating_add(asked_ms),
        };
        self.unredacted.insert(id, entry, (self.settings.redaction.held_bytes_max, now_ms))?;
        Ok(KeptCall { arguments, meta, is_redacted })
    }

    /// The rules for what is said of an execution, and the values that were struck in its call; `None`: nothing is struck.
    async fn rules_of_execution(&self, id: ExecutionId) -> Result<Option<(Arc<Rules>, Arc<Known>)>> {
        if !self.settings.redaction.is_on {
            return Ok(None);
        }
        if let Some(held) = self.unredacted.rules(id) {
            return Ok(Some(held));
        }
        let Some(head) = self.store.heads(&[id]).await?.pop() else { return Ok(None) };
        let listing = self.catalog.listing();
        let tool = listing.of_upstream(&head.ident.upstream, &head.ident.tool);
        let rules = tool.map_or_else(|| self.settings.redaction.rules.clone(), |tool| tool.redact.clone());
        Ok((!rules.is_empty()).then(|| (rules, Arc::default())))
    }

    /// True when rules may strike something out of a command, or of what comes with it.
    pub(super) fn may_strike(&self, command: &Command) -> bool {
        self.settings.redaction.is_on && carries_words(command)
    }

    /// A command and its payload, as far as they may be stored.
    pub(super) async fn kept_of_write(
        &self,
        id: ExecutionId,
        command: Command,
        payload: Option<(PayloadKind, Payload)>,
    ) -> Result<(Command, Option<(PayloadKind, Payload)>)> {
        let Some((rules, known)) = self.rules_of_execution(id).await? else { return Ok((command, payload)) };
        let struck = payload.as_ref().and_then(|(kind, payload)| {
            let part = if *kind == PayloadKind::Result { Part::Result } else { Part::Other };
            rules.strike(payload, part, &known)
        });
        let digest = struck.as_ref().map(|struck| Digest::of(&struck.text));
        let payload = match struck {
            Some(struck) => payload.map(|(kind, _)| (kind, struck.text.into())),
            None => payload,
        };
        Ok((kept_of_command(command, digest, (&rules, &known)), payload))
    }

    /// Lets go of what a settled execution needs no more.
    pub(super) fn forget_unredacted(&self, head: &Head) {
        if !self.settings.redaction.is_on {
            return;
        }
        match head.state {
            // Nothing runs it again by itself; a late result may still come.
            State::Unknown => self.unredacted.forget_call(head.id()),
            state if state.is_ended() => self.unredacted.forget(head.id()),
            _ => {}
        }
    }

    /// What may be stored of a text that belongs to an execution; `None`: all of it.
    pub(super) async fn struck_of(&self, id: ExecutionId, json: &str) -> Result<Option<Payload>> {
        let Some((rules, known)) = self.rules_of_execution(id).await? else { return Ok(None) };
        Ok(rules.strike(json, Part::Other, &known).map(|struck| struck.text.into()))
    }

    /// What may be stored of a client's answer. One that is struck is marked as such, and held here as it came.
    pub(super) async fn kept_of_answer(&self, id: ExecutionId, number: u32, answer: Payload) -> Result<Payload> {
        let Some(struck) = self.struck_of(id, &answer).await? else { return Ok(answer) };
        self.unredacted.keep_answer(id, number, answer);
        let marked = with_member(&struck, REDACTED_MEMBER, "true");
        Ok(match members(&marked) {
            Some(_) => marked.as_ref().into(),
            None => format!("{{{}:true}}", quoted(REDACTED_MEMBER)).into(),
        })
    }

    /// Questions with the answers as the client gave them. One that this process does not have counts as refused: a tool is
    /// never given what it was not answered.
    pub(super) fn with_true_answers(&self, id: ExecutionId, mut rows: Vec<InputRow>) -> Vec<InputRow> {
        if !self.settings.redaction.is_on {
            return rows;
        }
        for row in &mut rows {
            let marked = |answer: &Payload| {
                members(answer).is_some_and(|members| members.iter().any(|(name, _)| name == REDACTED_MEMBER))
            };
            if row.answer.as_ref().is_some_and(marked) {
                row.answer = self.unredacted.answer(id, row.number);
                if row.answer.is_none() {
                    row.outcome = Some(InputOutcome::Error);
                }
            }
        }
        rows
    }
}

/// Why a call whose arguments are known nowhere any more fails.
pub(super) fn unrunnable() -> Failure {
    let message = "the process that took the call in is gone, and what is stored of the arguments is redacted, so the call \
                   could not be run by another one";
    let error = ErrorInfo { code: ARGUMENTS_REDACTED.into(), message: message.into() };
    Failure { kind: FailureKind::Unrunnable, error, retry_after_ms: None }
}

/// True for a command with words, or a digest of words, of somebody else's.
fn carries_words(command: &Command) -> bool {
    match command {
        Command::Complete { .. }
        | Command::Fail { .. }
        | Command::Cancel(_)
        | Command::Retry(_)
        | Command::Resolve { .. }
        | Command::Reconcile { .. } => true,
        Command::Lease(_)
        | Command::Heartbeat { .. }
        | Command::Release { .. }
        | Command::Hold { .. }
        | Command::Park { .. }
        | Command::Resume
        | Command::Expire { .. }
        | Command::TimeOut { .. }
        | Command::Promote => false,
    }
}

fn kept_of_command(command: Command, digest: Option<Digest>, (rules, known): (&Rules, &Known)) -> Command {
    let text = |text: &str| rules.strike_text(text, known).unwrap_or_else(|| text.to_owned());
    let order = |order: &Order| Order { reason: text(&order.reason), ..order.clone() };
    match command {
        Command::Complete { fencing_token, result, is_error } => {
            Command::Complete { fencing_token, result: digest.unwrap_or(result), is_error }
        }
        Command::Fail { fencing_token, failure } => {
            let error = ErrorInfo { message: text(&failure.error.message), code: text(&failure.error.code) };
            Command::Fail { fencing_token, failure: Failure { error, ..failure } }
        }
        Command::Cancel(by) => Command::Cancel(order(&by)),
        Command::Retry(by) => Command::Retry(order(&by)),
        Command::Resolve { by, outcome } => {
            let outcome = match outcome {
                Outcome::Completed { result, is_error } => {
                    Outcome::Completed { result: digest.unwrap_or(result), is_error }
                }
                Outcome::Failed => Outcome::Failed,
            };
            Command::Resolve { by: order(&by), outcome }
        }
        Command::Reconcile { fencing_token, found } => {
            Command::Reconcile { fencing_token, found: found.map(|found| digest.unwrap_or(found)) }
        }
        other => other,
    }
}

//! Questions to the client, in its own era: as requests on a stream or a pipe (up to 2025-11-25), or as an
//! `input_required` answer that is continued (2026-07-28). Takes the answers; stores nothing itself.

use std::sync::{Arc, PoisonError};

use serde_json::value::RawValue;

use super::answer::{self, Audience, Reply};
use super::call::{Begun, Caller};
use super::call_params::CallParams;
use super::envelope::Outcome;
use super::face::Face;
use super::frame;
use super::id::Id;
use super::reject::{RpcError, code};
use super::request_state::{BadState, Bound, RequestState, Sealer};
use super::session::Flight;
use crate::engine::asking::{ELICITATION, OpenQuestion, Told, is_capable, needs};
use crate::engine::client::ClientContext;
use crate::model::arguments;
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::model::json::{members, one_line, quoted};
use crate::model::principal::Principal;
use crate::store::{Fate, InputOutcome, InputRow, Payload, WantedKeys};

#[cfg(test)]
mod tests;

/// What may answer `input_required` here.
const CALL: &str = "tools/call";
/// A sealing key is used for so long at least; states must not outlive the key before theirs.
const KEY_LIFE_MIN_MS: i64 = 86_400_000;
/// How often a process looks whether another one has made a new key.
pub(super) const KEYS_FRESH_MS: i64 = 60_000;
/// A state that names an unknown key makes a process look, but not more often than this.
pub(super) const KEYS_LOOK_MS: i64 = 1_000;

/// The sealing keys as this process knows them.
#[derive(Default)]
pub(super) struct Keys {
    sealer: Option<Arc<Sealer>>,
    read_at_ms: i64,
}

/// The id of the request that asks a question: unique over processes and restarts.
pub fn request_id(execution: ExecutionId, number: u32) -> String {
    format!("{execution}.{number}")
}

/// Reads an id that [`request_id`] wrote.
pub fn read_request_id(id: &Id<'_>) -> Option<(ExecutionId, u32)> {
    let text: String = serde_json::from_str(id.raw()).ok()?;
    let (execution, number) = text.split_once('.')?;
    let parsed: u32 = number.parse().ok()?;
    let execution: ExecutionId = execution.parse().ok()?;
    (request_id(execution, parsed) == text).then_some((execution, parsed))
}

/// The request that asks a question.
pub fn request(execution: ExecutionId, question: &OpenQuestion) -> String {
    let mut message = String::new();
    let id = Id::from_text(&request_id(execution, question.number));
    frame::request(&mut message, &id, &question.method, Some(&question.params));
    message
}

/// The notification that takes a question back.
pub fn withdrawal(execution: ExecutionId, number: u32) -> String {
    let id = quoted(&request_id(execution, number));
    let mut message = String::new();
    let params = format!("{{\"requestId\":{id},\"reason\":\"the tool does not wait for the answer any more\"}}");
    frame::notification(&mut message, "notifications/cancelled", Some(&params));
    message
}

/// True when this client can be asked this.
pub fn can_be_asked(client: &ClientContext, question: &OpenQuestion) -> bool {
    is_capable(client, needs(&question.method, &question.params))
}

/// What a response answers, and with what; `None` when it is to none of our requests.
pub fn told(id: Option<&Id<'_>>, outcome: &Outcome<'_>) -> Option<(ExecutionId, u32, Told)> {
    let (execution, number) = id.and_then(read_request_id)?;
    let told = match outcome {
        Outcome::Result(result) => Told::Result(one_line(result.get()).into()),
        Outcome::Error(error) => Told::Error(one_line(error.get()).into()),
    };
    Some((execution, number, told))
}

/// What a request is bound to, so that its continuation is the same request.
pub fn bound(principal: &Principal, name: &str, arguments: &str) -> Bound {
    let hash = arguments::hash(arguments, None).unwrap_or_else(|_| arguments.to_owned());
    Bound::to(principal, CALL, &[name.as_bytes(), hash.as_bytes()])
}

impl Face {
    /// A legacy client's response to a question. What is unknown, foreign or late is ignored, as JSON-RPC has it.
    pub async fn told_by_client(&self, (execution, number, told): (ExecutionId, u32, Told), principal: &Principal) {
        match self.engine.answer_numbered(execution, vec![(number, told)], principal).await {
            Ok(answers) => {
                tracing::debug!(%execution, number, fates = ?answers.fates, "a client answered a question");
            }
            Err(error) => {
                tracing::debug!(%execution, number, code = error.code(), "an answer of a client was ignored: {error}");
            }
        }
    }

    /// The `input_required` answer for these questions; `None` when no key can be had, so that the caller goes on waiting.
    pub(super) async fn input_required(
        &self,
        head: &Head,
        (questions, bound): (&[OpenQuestion], &Bound),
        told: (bool, Audience),
    ) -> Option<Reply> {
        let sealer = self.sealer(KEYS_FRESH_MS).await?;
        let now_ms = self.engine.clock().now_ms();
        let state = RequestState {
            execution: head.id(),
            round: questions.iter().map(|question| question.round).max().unwrap_or(0),
            expires_at_ms: now_ms.saturating_add(self.engine.settings().input_timeout_ms),
            numbers: questions.iter().map(|question| question.number).collect(),
        };
        let sealed = sealer.seal(&state, bound)?;
        let requests: Vec<String> = questions
            .iter()
            .map(|question| {
                let (key, method) = (quoted(&question.key), quoted(&question.method));
                format!("{key}:{{\"method\":{method},\"params\":{}}}", question.params)
            })
            .collect();
        let requests = requests.join(",");
        let result = format!("\"inputRequests\":{{{requests}}},\"requestState\":{}", quoted(&sealed));
        Some(answer::input_required(&result, head, told))
    }

    /// A call that brings a `requestState` back: it goes to its execution before any key is looked at.
    pub(super) async fn continue_call(
        self: &Arc<Self>,
        (params, state): (&CallParams<'_>, &str),
        caller: &Caller,
        flight: Option<Arc<Flight>>,
    ) -> Result<Begun, RpcError> {
        let refused = |error: crate::engine::Error| answer::refused(&error);
        let bound = bound(&caller.principal, &params.name, params.arguments.map_or("{}", RawValue::get));
        let state = self.open_state(state, &bound).await?;
        let id = state.execution;
        let (_, rows) = self.engine.inputs_of(id, &caller.principal).await.map_err(refused)?;
        let given = params.input_responses.and_then(|raw| members(raw.get())).unwrap_or_default();
        let shown = |row: &&InputRow| state.numbers.contains(&row.number);
        let mut answers = Vec::new();
        for row in rows.iter().filter(shown) {
            // What is missing or does not fit is asked again.
            let Some((_, value)) = given.iter().find(|(key, _)| *key == row.key) else { continue };
            if fits(&row.method, value.get()) {
                answers.push((row.number, Told::Result(one_line(value.get()).into())));
            }
        }
        if !answers.is_empty() {
            let said = self.engine.answer_numbered(id, answers, &caller.principal).await.map_err(refused)?;
            if said.fates.contains(&Fate::Other) && !is_late(&rows, &state) {
                let words = "a question of this requestState was already answered otherwise; each is answered once";
                return Err(RpcError::new(code::INVALID_PARAMS, words));
            }
        }
        self.wait_again(id, (params, caller), flight).await
    }

    async fn open_state(&self, text: &str, bound: &Bound) -> Result<RequestState, RpcError> {
        let no_keys = || RpcError::new(code::STORE_UNAVAILABLE, "the store can not be read now; try again later");
        let now_ms = self.engine.clock().now_ms();
        let sealer = self.sealer(KEYS_FRESH_MS).await.ok_or_else(no_keys)?;
        let opened = match sealer.open(text, bound, now_ms) {
            // Another process may have made a new key since.
            Err(BadState::UnknownKey) => {
                let sealer = self.sealer(KEYS_LOOK_MS).await.ok_or_else(no_keys)?;
                sealer.open(text, bound, now_ms)
            }
            opened => opened,
        };
        opened.map_err(|bad| RpcError::new(code::INVALID_PARAMS, bad.to_string()))
    }

    /// The sealing keys, not older than `fresh_ms`.
    pub(super) async fn sealer(&self, fresh_ms: i64) -> Option<Arc<Sealer>> {
        let now_ms = self.engine.clock().now_ms();
        let known = {
            let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            keys.sealer.clone().filter(|_| now_ms - keys.read_at_ms < fresh_ms)
        };
        if known.is_some() {
            return known;
        }
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).expect("the system's random generator works");
        let life_ms = self.engine.settings().input_timeout_ms.saturating_mul(2).max(KEY_LIFE_MIN_MS);
        let wanted = WantedKeys { fresh, due_before_ms: now_ms - life_ms, now_ms };
        match self.engine.store().sealing_keys(wanted).await {
            Ok(stored) => {
                let sealer = Arc::new(Sealer::new(&stored));
                let given: Vec<_> = stored.iter().map(|key| (key.generation, key.key)).collect();
                self.state_keys.replace(&given);
                let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
                (keys.sealer, keys.read_at_ms) = (Some(sealer.clone()), now_ms);
                Some(sealer)
            }
            Err(error) => {
                tracing::warn!(code = error.code(), "the sealing keys could not be read: {error}");
                self.keys.lock().unwrap_or_else(PoisonError::into_inner).sealer.clone()
            }
        }
    }
}

/// True when a question of the round was closed without an answer: the tool knows, and what comes later is too late
/// rather than contrary.
fn is_late(rows: &[InputRow], state: &RequestState) -> bool {
    rows.iter().any(|row| state.numbers.contains(&row.number) && row.outcome == Some(InputOutcome::Expired))
}

/// True when a response has the form of an answer to such a question; what is in it is the tool's matter.
pub fn fits(method: &str, response: &str) -> bool {
    let Some(members) = members(response) else { return false };
    let member = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, value)| value.get());
    match method {
        ELICITATION => match member("action") {
            Some(r#""accept""#) => member("content").is_none_or(|content| content.starts_with('{')),
            Some(r#""decline""# | r#""cancel""#) => true,
            _ => false,
        },
        "sampling/createMessage" => {
            let is_text = |name: &str| member(name).is_some_and(|value| value.starts_with('"'));
            is_text("role") && is_text("model") && member("content").is_some()
        }
        "roots/list" => member("roots").is_some_and(|roots| roots.starts_with('[')),
        _ => true,
    }
}

/// `inputResponses` that answer no question of ours, as the value of a member of the stored `_meta`.
pub fn unasked_responses(params: &CallParams<'_>) -> Option<Payload> {
    params.input_responses.filter(|_| params.request_state.is_none()).map(|raw| one_line(raw.get()).into())
}

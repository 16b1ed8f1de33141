//! What a caller is told: the stored result, a handle, or an honest word about a call without one. Texts are written
//! for a model that reads them: what is known, what was done, what to do next.

use std::borrow::Cow;

use serde_json::json;
use serde_json::value::RawValue;

use super::earlier;
use super::face::{Builtins, SERVER_INFO};
use super::frame;
use super::id::Id;
use super::reject::{RpcError, code};
use super::splice::{self, Additions};
use super::written::{Outgoing, Written};
use crate::engine::waiters::Settled;
use crate::engine::{self};
use crate::model::execution::{Effect, Head, State};
use crate::model::payload::{Payload, has_line_break};
use crate::model::revision::Era;
use crate::telemetry::faults;

/// The member of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// `result`.
    Result(Written),
    /// `error`, as an upstream wrote it.
    RawError(String),
    /// `error`, ours.
    Error(RpcError),
}

impl Reply {
    /// Appends the response to the request `id`.
    pub fn write(&self, out: &mut String, id: &Id<'_>) {
        match self {
            Reply::Result(Written::Whole(result)) => frame::result(out, id, result),
            Reply::Result(pieces) => {
                frame::result_head(out, id);
                pieces.push(out);
                out.push('}');
            }
            Reply::RawError(error) => frame::raw_error(out, Some(id), error),
            Reply::Error(error) => frame::error(out, Some(id), error),
        }
    }

    /// The response to the request `id`, a long result as it is.
    pub fn message(&self, id: &Id<'_>) -> Outgoing {
        if let Reply::Result(result) = self {
            return Outgoing::result(id, result);
        }
        let mut message = Outgoing::default();
        self.write(&mut message.head, id);
        message
    }
}

/// For whom an answer is written.
#[derive(Clone, Copy, Debug)]
pub struct Audience {
    /// The era of the request.
    pub era: Era,
    /// What the caller can do next.
    pub builtins: Builtins,
}

/// The answer about a settled execution.
pub fn settled(settled: &Settled, attached: bool, audience: Audience) -> Reply {
    let head = &settled.head;
    match (head.state, &settled.payload) {
        (State::Completed, Some(result)) => match serde_json::from_str::<&RawValue>(result) {
            Ok(raw) => Reply::Result(complete((result, raw), head, attached, audience.era)),
            Err(_) => Reply::Error(RpcError::new(code::INTERNAL_ERROR, "the stored result is not readable")),
        },
        (State::Completed, None) => text(&payload_gone(head), true, head, (attached, audience.era)),
        (State::Failed, Some(error)) => Reply::RawError(error.to_string()),
        (State::Failed, None) if is_queue_timeout(head) => {
            let reason = head.error.as_ref().map_or("the call waited too long in the queue", |error| &error.message);
            Reply::Error(overload(format!("{reason}; try again later")))
        }
        (State::Failed, None) => text(&failed(head), true, head, (attached, audience.era)),
        (State::Cancelled, _) => text(&cancelled(head), true, head, (attached, audience.era)),
        _ => text(&unknown(head, audience.builtins), true, head, (attached, audience.era)),
    }
}

/// The answer when the caller's time is up: nothing failed, and here is how to go on.
pub fn handle(head: &Head, tool: &str, attached: bool, audience: Audience) -> Reply {
    let id = head.id();
    let again = match &head.ident.key {
        Some(_) => "or repeat the same call with the same idempotency key",
        None => "or repeat exactly the same call",
    };
    let words = format!(
        "Nothing failed: {tool} is still running, and goes on running. Its execution id is {id}. \
         To get the result, call durable_result with {{\"execution_id\":\"{id}\"}}, {again}. Neither starts it a second time."
    );
    text(&words, true, head, (attached, audience.era))
}

/// The answer that was asked for with a wait of 0: the id, at once. Clients hold every result of a tool with an
/// `outputSchema` against it unless it says `isError`; so there it says so, lest they refuse the id.
pub fn accepted(head: &Head, has_output_schema: bool, attached: bool, audience: Audience) -> Reply {
    let (id, state) = (head.id(), head.state.as_str());
    let nothing_failed = if has_output_schema { "Nothing failed. " } else { "" };
    let words = format!(
        "{nothing_failed}Accepted as execution {id} ({state}). The work goes on. To get the result, call durable_result \
         with {{\"execution_id\":\"{id}\"}}."
    );
    let mut result = json!({ "content": [{ "type": "text", "text": words }] });
    match has_output_schema {
        true => result["isError"] = json!(true),
        false => result["structuredContent"] = json!({ "execution_id": id, "state": state }),
    }
    result_of(&result, head, (attached, audience.era))
}

/// A result with nothing but a text.
pub fn plain(words: &str, is_error: bool, era: Era) -> Reply {
    let result = json!({ "content": [{ "type": "text", "text": words }], "isError": is_error });
    let additions =
        Additions { server_info: server_info(era), result_type: era == Era::Modern, ..Additions::default() };
    Reply::Result(spliced(&result.to_string(), &additions).into())
}

/// A result of several texts.
pub fn texts(words: &[&str], era: Era) -> Reply {
    let blocks: Vec<_> = words.iter().map(|words| json!({ "type": "text", "text": words })).collect();
    let additions =
        Additions { server_info: server_info(era), result_type: era == Era::Modern, ..Additions::default() };
    Reply::Result(spliced(&json!({ "content": blocks, "isError": false }).to_string(), &additions).into())
}

/// A result that is none yet: what the client has to answer first (2026-07-28). `members` are `inputRequests` and
/// `requestState`, as JSON.
pub fn input_required(members: &str, head: &Head, (attached, audience): (bool, Audience)) -> Reply {
    let execution = execution_member(head, attached);
    let info = match server_info(audience.era) {
        Some(info) => format!(",\"{}\":{info}", splice::SERVER_INFO_MEMBER),
        None => String::new(),
    };
    let result = format!(
        "{{\"resultType\":\"input_required\",{members},\"_meta\":{{\"durable-mcp/execution\":{execution}{info}}}}}"
    );
    Reply::Result(result.into())
}

/// The error for a verb that could not be done.
pub fn refused(error: &engine::Error) -> RpcError {
    use crate::store::Error as Store;

    match error {
        engine::Error::Conflict(id) => {
            let data = json!({
                "type": error.code(),
                "execution_id": id,
                "retryable": false,
                "next": "use a new idempotency key for a different call, or repeat the first call exactly",
            });
            RpcError::new(code::CONFLICT, error.to_string()).with_data(&without_null(data))
        }
        engine::Error::Overloaded(words) => overload(words.clone()),
        engine::Error::NotFound(_)
        | engine::Error::NotPermitted { .. }
        | engine::Error::KeyTaken { .. }
        | engine::Error::ArgumentsDeleted(_)
        | engine::Error::ArgumentsRedacted(_)
        | engine::Error::Arguments(_)
        | engine::Error::Store(Store::Unstorable(_)) => RpcError::new(code::INVALID_PARAMS, error.to_string())
            .with_data(&json!({ "type": error.code(), "retryable": false })),
        engine::Error::Store(Store::Overloaded(_)) => overload("too many writes wait; try again later".into()),
        engine::Error::Store(Store::Unavailable(_) | Store::CannotWrite(_)) => {
            tracing::warn!(code = error.code(), "a call was refused: {error}");
            let data =
                json!({ "type": error.code(), "retryable": true, "next": "nothing was started; try again later" });
            RpcError::new(code::STORE_UNAVAILABLE, "the store can not take the call now").with_data(&data)
        }
        engine::Error::Store(_) => internal(&error.to_string()),
    }
}

/// A fault of ours: logged in full under an opaque id, told by the id only.
pub fn internal(words: &str) -> RpcError {
    let id = faults::new_id();
    tracing::error!(fault = id, "internal fault: {words}");
    RpcError::new(code::INTERNAL_ERROR, format!("internal fault {id}"))
        .with_data(&json!({ "type": "internal", "fault": id, "retryable": true }))
}

/// The error of a full queue.
pub fn overload(words: String) -> RpcError {
    let data = json!({ "type": "overloaded", "retryable": true, "next": "nothing was started; try again later" });
    RpcError::new(code::OVERLOAD, words).with_data(&data)
}

fn without_null(mut data: serde_json::Value) -> serde_json::Value {
    if let Some(members) = data.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    data
}

fn complete((result, raw): (&Payload, &RawValue), head: &Head, attached: bool, era: Era) -> Written {
    let fitting = match era {
        Era::Legacy => earlier::result(raw),
        Era::Modern => None,
    };
    let execution = execution_member(head, attached);
    let additions = Additions {
        execution: Some(&execution),
        server_info: server_info(era),
        result_type: era == Era::Modern,
        cache: None,
    };
    match fitting.as_deref() {
        None if result.is_long() && !has_line_break(result) => {
            Written::Pieces(splice::long_result(result, raw, &additions))
        }
        fitting => Written::Whole(splice::result(fitting.unwrap_or(raw), &additions).into_owned()),
    }
}

fn result_of(result: &serde_json::Value, head: &Head, (attached, era): (bool, Era)) -> Reply {
    let execution = execution_member(head, attached);
    let additions = Additions {
        execution: Some(&execution),
        server_info: server_info(era),
        result_type: era == Era::Modern,
        cache: None,
    };
    Reply::Result(spliced(&result.to_string(), &additions).into())
}

fn text(words: &str, is_error: bool, head: &Head, told: (bool, Era)) -> Reply {
    result_of(&json!({ "content": [{ "type": "text", "text": words }], "isError": is_error }), head, told)
}

fn spliced(result: &str, additions: &Additions<'_>) -> String {
    match serde_json::from_str::<&RawValue>(result) {
        Ok(raw) => match splice::result(raw, additions) {
            Cow::Owned(text) => text,
            Cow::Borrowed(text) => text.to_owned(),
        },
        Err(_) => result.to_owned(),
    }
}

fn server_info(era: Era) -> Option<&'static str> {
    (era == Era::Modern).then_some(SERVER_INFO)
}

/// `_meta["durable-mcp/execution"]`, as JSON.
pub fn execution_member(head: &Head, attached: bool) -> String {
    // Every value is an id, a number or one of our own names: nothing needs escaping.
    format!(
        "{{\"id\":\"{}\",\"state\":\"{}\",\"attempt\":{},\"delivery\":\"{}\",\"attached\":{attached}}}",
        head.id(),
        head.state.as_str(),
        head.attempt,
        head.ident.policy.delivery.as_str(),
    )
}

fn is_queue_timeout(head: &Head) -> bool {
    head.error.as_ref().is_some_and(|error| error.code == "queue_timeout")
}

fn why(head: &Head) -> (&str, &str) {
    head.error.as_ref().map_or(("unknown", "no reason was recorded"), |error| (&error.code, &error.message))
}

fn unknown(head: &Head, builtins: Builtins) -> String {
    let id = head.id();
    let tool = &head.ident.tool;
    let (code, reason) = why(head);
    let order = match builtins.retry {
        true => format!(
            "If it did not take effect, order one more attempt: durable_retry with \
             {{\"execution_id\":\"{id}\",\"reason\":\"…\"}}."
        ),
        false => match head.ident.key {
            Some(_) => "If it did not take effect, call again with a new idempotency key.".to_owned(),
            None => "If it did not take effect, call again.".to_owned(),
        },
    };
    format!(
        "The outcome of this call is not known. {tool} was started (attempt {attempt}), then contact was lost: {reason} \
         ({code}). It may or may not have taken effect. It was NOT run again, because {tool} is not known to be safe to \
         repeat.\nCheck first whether it took effect, for example with a read-only tool of the same server. {order} If it \
         did take effect, do not call it again. A late result is still accepted: durable_result with \
         {{\"execution_id\":\"{id}\"}} shows what is known.",
        attempt = head.attempt,
    )
}

fn failed(head: &Head) -> String {
    let (code, reason) = why(head);
    let attempts = match head.attempt {
        0 => "It was never started.".to_owned(),
        1 => "One attempt was made.".to_owned(),
        n => format!("{n} attempts were made; none is left."),
    };
    let effect = match head.effect_possible {
        true => "An attempt may have had its effect.",
        false => "It had no effect.",
    };
    format!(
        "{tool} failed: {reason} ({code}). {attempts} {effect} Execution id: {id}.",
        tool = head.ident.tool,
        id = head.id(),
    )
}

fn cancelled(head: &Head) -> String {
    let effect = match head.effect {
        Some(Effect::None) => "It was never started.",
        _ => "It had been started, so it may have taken effect before it was stopped: check before calling it again.",
    };
    format!("{} was cancelled. {effect} Execution id: {}.", head.ident.tool, head.id())
}

fn payload_gone(head: &Head) -> String {
    let ended = match head.is_error {
        true => "returned an error",
        false => "succeeded",
    };
    format!(
        "{} {ended}, but its result is no longer kept. It was not run again. Execution id: {}.",
        head.ident.tool,
        head.id()
    )
}

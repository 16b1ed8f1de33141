//! JSON-RPC messages to and from a server, as raw text. Tolerant towards what a server sends; never parses a payload
//! further than the envelope, so that what passes through keeps its bytes.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::{Answer, Progress};
use super::request::Request;
use crate::model::json::quoted;
use crate::model::payload::{LONG_BYTES, Payload};
use crate::model::revision::Revision;

/// What stands before the names of our own members of `_meta`, which no server sees unless we put them there.
pub const OWN_PREFIX: &str = "durable-mcp/";

/// Our own code for a result that is larger than the limit: the tool ran.
pub(super) const RESULT_TOO_LARGE: i64 = -31413;
/// Our own code for a kind of result that we cannot carry on with.
pub(super) const RESULT_UNSUPPORTED: i64 = -31501;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
const INTERNAL_ERROR: i64 = -32603;

/// One message from a server.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// The answer to one of our requests.
    Response {
        id: u64,
        answer: Said<'a>,
    },
    /// An answer that lacks a usable id, result or error; `id` where it could be read.
    Broken {
        id: Option<u64>,
    },
    Request {
        id: &'a RawValue,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
}

/// An answer as it stands in its message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said<'a> {
    Result(&'a RawValue),
    Error(&'a RawValue),
}

impl From<Said<'_>> for Answer {
    fn from(said: Said<'_>) -> Answer {
        match said {
            Said::Result(result) => Answer::Result(result.get().into()),
            Said::Error(error) => Answer::Error(error.to_owned()),
        }
    }
}

/// A long result that is all its message is for.
pub(super) struct LongResult {
    pub id: u64,
    range: Range<usize>,
}

impl LongResult {
    /// `messages` are those of `text`.
    pub fn of(messages: &[Incoming<'_>], text: &[u8]) -> Option<LongResult> {
        let [Incoming::Response { id, answer: Said::Result(result) }] = messages else { return None };
        let (start, len) = (result.get().as_ptr() as usize - text.as_ptr() as usize, result.get().len());
        (len >= LONG_BYTES).then_some(LongResult { id: *id, range: start..start + len })
    }

    /// The answer, with the memory of the message that it was read from.
    pub fn taken_from(self, text: Vec<u8>) -> Answer {
        Answer::Result(match String::from_utf8(text) {
            Ok(text) => Payload::part(text, self.range),
            // Another member, that nobody reads, is no text.
            Err(error) => String::from_utf8_lossy(&error.as_bytes()[self.range]).into(),
        })
    }
}

/// A message as a server wrote it, read no further than its envelope.
#[derive(Debug, Deserialize)]
pub struct Wire<'a> {
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

/// Reads one message, or a batch of them (revision 2025-03-26). `None`: not JSON-RPC.
pub fn wires(text: &[u8]) -> Option<Vec<Wire<'_>>> {
    if text.trim_ascii_start().first() == Some(&b'[') {
        let batch: Vec<&RawValue> = serde_json::from_slice(text).ok()?;
        return batch.into_iter().map(|item| serde_json::from_str(item.get()).ok()).collect();
    }
    serde_json::from_slice(text).ok().map(|wire| vec![wire])
}

/// The same, as messages to us.
pub(super) fn parse(text: &[u8]) -> Option<Vec<Incoming<'_>>> {
    wires(text)?.into_iter().map(incoming).collect()
}

fn incoming(wire: Wire<'_>) -> Option<Incoming<'_>> {
    if let Some(method) = wire.method {
        return Some(match wire.id {
            Some(id) => Incoming::Request { id, method, params: wire.params },
            None => Incoming::Notification { method, params: wire.params },
        });
    }
    let id = wire.id.and_then(own_id);
    let answer = match (wire.result, wire.error) {
        (Some(result), None) => Some(Said::Result(result)),
        (_, Some(error)) => Some(Said::Error(error)),
        (None, None) => None,
    };
    match (id, answer) {
        (Some(id), Some(answer)) => Some(Incoming::Response { id, answer }),
        // An error without an id says that the server could not read something of ours; it names no call.
        (id, _) => Some(Incoming::Broken { id }),
    }
}

/// Reads an id of ours; some servers send numbers back as strings.
fn own_id(raw: &RawValue) -> Option<u64> {
    raw.get().trim_matches('"').parse().ok()
}

/// Reads `notifications/progress`: the token (our request id) and the values.
pub(super) fn progress(params: &RawValue) -> Option<(u64, Progress)> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "progressToken")]
        token: &'a RawValue,
        progress: f64,
        #[serde(default)]
        total: Option<f64>,
        #[serde(default)]
        message: Option<String>,
    }
    let params: Params = serde_json::from_str(params.get()).ok()?;
    let token = own_id(params.token)?;
    Some((token, Progress { progress: params.progress, total: params.total, message: params.message }))
}

/// Reads `code` and `message` of a JSON-RPC error object.
pub fn error_parts(error: &RawValue) -> (Option<i64>, String) {
    #[derive(Deserialize)]
    struct Parts {
        #[serde(default)]
        code: Option<i64>,
        #[serde(default)]
        message: Option<String>,
    }
    match serde_json::from_str::<Parts>(error.get()) {
        Ok(parts) => (parts.code, parts.message.unwrap_or_default()),
        Err(_) => (None, String::new()),
    }
}

/// Builds an error object of ours.
pub fn own_error(code: i64, kind: &str, message: &str) -> Answer {
    let object = serde_json::json!({"code": code, "message": message, "data": {"type": kind, "retryable": false}});
    Answer::Error(serde_json::value::to_raw_value(&object).expect("an object of strings and numbers is always JSON"))
}

/// The answer in place of a result that is larger than `limit_bytes`.
pub(super) fn too_large(limit_bytes: usize) -> Answer {
    let message = format!("the tool ran, but its result is larger than the limit of {limit_bytes} bytes");
    own_error(RESULT_TOO_LARGE, "result_too_large", &message)
}

/// The answer itself, or an error of ours where it is too large to be passed on.
pub(super) fn admit(answer: Answer, max_result_bytes: usize) -> Answer {
    match &answer {
        Answer::Result(result) if result.len() > max_result_bytes => too_large(max_result_bytes),
        _ => answer,
    }
}

/// The kind of a result (2026-07-28, `resultType`); a result without one is complete.
pub fn result_type(result: &str) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "resultType", default)]
        kind: Option<Cow<'a, str>>,
    }
    let kind = serde_json::from_str::<Kind>(result).ok().and_then(|kind| kind.kind);
    kind.unwrap_or(Cow::Borrowed("complete"))
}

/// The answer in place of a result of a kind that nobody here can go on with.
pub fn unsupported_result(kind: &str) -> Answer {
    let message = format!("the server answered with a result of type {kind:?}, which is not supported");
    own_error(RESULT_UNSUPPORTED, "unsupported_result", &message)
}

/// Who we say we are.
pub(super) fn client_info() -> String {
    format!(r#"{{"name":"durable-mcp","version":{}}}"#, quoted(env!("CARGO_PKG_VERSION")))
}

/// What goes into `params._meta` of one request of ours.
#[derive(Clone, Copy, Default)]
pub(super) struct Meta<'a> {
    pub progress_token: Option<u64>,
    pub passed: &'a [(String, Box<RawValue>)],
    pub client_capabilities: Option<&'a RawValue>,
    pub log_level: Option<&'a str>,
}

/// Members of `_meta` that only the sender of the request may set.
const SENDER_META: [&str; 5] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
];

/// Builds the `params` object: `members` are names and raw JSON; `_meta` is added where the revision or the call has one.
pub(super) fn params(revision: Revision, members: &[(&str, &str)], meta: Meta<'_>) -> String {
    let mut out = String::from("{");
    for (name, value) in members {
        push_member(&mut out, name, value);
    }
    let mut inner = String::from("{");
    if let Some(token) = meta.progress_token {
        push_member(&mut inner, "progressToken", &token.to_string());
    }
    if revision.is_modern() {
        push_member(&mut inner, SENDER_META[1], &quoted(revision.name()));
        push_member(&mut inner, SENDER_META[2], &client_info());
        push_member(&mut inner, SENDER_META[3], meta.client_capabilities.map_or("{}", RawValue::get));
        if let Some(level) = meta.log_level {
            push_member(&mut inner, SENDER_META[4], &quoted(level));
        }
    }
    for (name, value) in meta.passed.iter().filter(|(name, _)| !SENDER_META.contains(&name.as_str())) {
        push_member(&mut inner, name, value.get());
    }
    inner.push('}');
    if inner.len() > 2 {
        push_member(&mut out, "_meta", &inner);
    }
    out.push('}');
    out
}

/// Builds the `params` of a request that is passed on. An earlier revision knows no answers to questions of a result.
pub(super) fn request_params(revision: Revision, request: &Request, progress_token: u64) -> String {
    let known = |name: &str| revision.is_modern() || !matches!(name, "inputResponses" | "requestState");
    let members = request.members.iter().filter(|(name, _)| known(name));
    let members: Vec<_> = members.map(|(name, value)| (name.as_str(), value.get())).collect();
    let meta = Meta {
        progress_token: Some(progress_token),
        passed: &request.meta,
        client_capabilities: request.client_capabilities.as_deref(),
        log_level: request.log_level.as_deref(),
    };
    params(revision, &members, meta)
}

fn push_member(object: &mut String, name: &str, value: &str) {
    if object.len() > 1 {
        object.push(',');
    }
    object.push_str(&quoted(name));
    object.push(':');
    // A line break in valid JSON stands between tokens only, and would end the frame on stdio.
    for (n, part) in value.split(['\n', '\r']).enumerate() {
        object.push_str(if n == 0 { "" } else { " " });
        object.push_str(part);
    }
}

/// Builds a request.
pub(super) fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#, quoted(method))
}

/// Builds a notification.
pub(super) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, quoted(method))
}

/// Builds `notifications/cancelled`.
pub(super) fn cancelled(id: u64, reason: &str) -> String {
    notification("notifications/cancelled", &format!(r#"{{"requestId":{id},"reason":{}}}"#, quoted(reason)))
}

/// The id of a request that the server takes back.
pub(super) fn cancelled_id(params: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "requestId")]
        id: &'a RawValue,
    }
    serde_json::from_str::<Params>(params.get()).ok().map(|params| params.id)
}

/// Builds the answer to a request of the server.
pub(super) fn response(id: &RawValue, answer: &Answer) -> String {
    let mut out = format!(r#"{{"jsonrpc":"2.0","id":{}"#, id.get());
    match answer {
        Answer::Result(result) => push_member(&mut out, "result", result),
        Answer::Error(error) => push_member(&mut out, "error", error.get()),
    }
    out.push('}');
    out
}

/// The answer to a request of the server that nobody here answers.
pub fn unsupported(method: &str) -> Answer {
    plain_error(METHOD_NOT_FOUND, &format!("{method} is not supported by this client"))
}

/// The answer to a question that went wrong.
pub fn failed(reason: &str) -> Answer {
    plain_error(INTERNAL_ERROR, reason)
}

/// The answer to a question whose call is over.
pub(super) fn question_over() -> Answer {
    plain_error(INTERNAL_ERROR, "the call that this request belonged to has ended")
}

fn plain_error(code: i64, message: &str) -> Answer {
    let object = serde_json::json!({"code": code, "message": message});
    Answer::Error(serde_json::value::to_raw_value(&object).expect("an object of strings and numbers is always JSON"))
}

/// The answer to `ping`.
pub(super) fn pong() -> Answer {
    Answer::Result("{}".into())
}

//! The JSON-RPC errors that this server makes: their codes, their rendering and the HTTP status they travel with.
//! Does not decide what is an error, and never carries internal text.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::model::principal::{Principal, Scope};
use crate::model::revision::Era;

#[cfg(test)]
mod tests;

/// The codes of JSON-RPC and MCP, and our own. Our own lie outside -32768…-32000, which JSON-RPC and MCP keep.
pub mod code {
    /// The text is no JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON, but no message that is accepted here.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method is unknown, or not offered.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Parameters are missing or wrong; also an unknown tool, a bad cursor, a malformed `_meta`.
    pub const INVALID_PARAMS: i64 = -32602;
    /// A fault of ours; the text is an opaque id.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// HTTP headers and body differ, or a required header is missing (revision 2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a client capability that was not declared (revision 2026-07-28).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The protocol revision is not spoken here (revision 2026-07-28).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
    /// The idempotency key belongs to a call with other arguments, or of another principal.
    pub const CONFLICT: i64 = -31409;
    /// Too many calls at once; nothing was stored and a retry is safe.
    pub const OVERLOAD: i64 = -31429;
    /// The store cannot be written; nothing was started.
    pub const STORE_UNAVAILABLE: i64 = -31503;
}

/// Where an error came to be; with its code this decides the HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The message itself: its text, envelope, protocol `_meta`, headers, or its method.
    Envelope,
    /// A handler, the gateway's rules, or the upstream.
    Handler,
    /// A fault inside this server.
    Fault,
}

/// A JSON-RPC error object.
#[derive(Debug, Clone)]
pub struct RpcError {
    pub code: i64,
    pub message: Cow<'static, str>,
    /// `data` as JSON text.
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// Makes an error without `data`.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        RpcError { code, message: message.into(), data: None }
    }

    /// Adds `data`; a value that cannot be written as JSON adds nothing.
    pub fn with_data<T: serde::Serialize>(mut self, data: &T) -> Self {
        self.data = serde_json::value::to_raw_value(data).ok();
        self
    }

    /// Appends the error object as JSON.
    pub fn write(&self, out: &mut String) {
        out.push_str("{\"code\":");
        out.push_str(&self.code.to_string());
        out.push_str(",\"message\":");
        push_json_string(out, &self.message);
        if let Some(data) = &self.data {
            out.push_str(",\"data\":");
            out.push_str(data.get());
        }
        out.push('}');
    }
}

/// Refuses what the credential does not permit.
///
/// # Errors
/// It lacks the scope.
pub fn require(principal: &Principal, scope: Scope) -> Result<(), RpcError> {
    if principal.scopes.permits(scope) {
        return Ok(());
    }
    let words = format!("the credential lacks the scope {}", scope.as_str());
    Err(RpcError::new(code::INVALID_REQUEST, words))
}

impl PartialEq for RpcError {
    fn eq(&self, other: &Self) -> bool {
        let data = |error: &Self| error.data.as_ref().map(|data| data.get().to_owned());
        self.code == other.code && self.message == other.message && data(self) == data(other)
    }
}

/// The HTTP status of an error answer.
///
/// Errors of handlers and of the gateway travel with 200: official clients do not read the body of other statuses.
/// A modern request gets 400 only for errors of its envelope and for -32020…-32022 (an upstream's -32021 included),
/// and 404 only for a method that is unknown here. A legacy request gets 400 for a text that is no request.
pub fn http_status(era: Era, source: Source, error_code: i64) -> u16 {
    use code::*;
    match (source, era, error_code) {
        (Source::Fault, ..) => 500,
        (_, Era::Modern, HEADER_MISMATCH | MISSING_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION) => 400,
        (Source::Envelope, Era::Modern, METHOD_NOT_FOUND) => 404,
        (Source::Envelope, Era::Modern, PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS) => 400,
        (Source::Envelope, Era::Legacy, PARSE_ERROR | INVALID_REQUEST) => 400,
        _ => 200,
    }
}

/// Appends `text` as a JSON string.
pub(super) fn push_json_string(out: &mut String, text: &str) {
    let quoted = serde_json::to_string(text).expect("a str is always JSON");
    out.push_str(&quoted);
}

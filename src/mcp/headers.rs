//! The HTTP headers that mirror the body of a modern request, and their comparison with it (specification
//! 2026-07-28, Streamable HTTP, "Server Validation"). Legacy requests are not compared. Knows no tool schemas, so
//! `Mcp-Param-*` are decoded here and compared where the schema is known.

use std::borrow::Cow;

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::meta::Params;
use super::reject::{RpcError, code};
use crate::model::trace::TraceContext;

#[cfg(test)]
mod tests;

pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
pub const METHOD: &str = "mcp-method";
pub const NAME: &str = "mcp-name";
pub const SESSION_ID: &str = "mcp-session-id";
pub const LAST_EVENT_ID: &str = "last-event-id";
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What is valid of the trace context in the headers. A list may be spread over several fields of one name (RFC 9110,
/// 5.3); a parent given twice is none.
pub fn trace(headers: &HeaderMap) -> TraceContext {
    if !TraceContext::NAMES.iter().any(|name| headers.contains_key(*name)) {
        return TraceContext::default();
    }
    let part = |name: &str| {
        let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        (!values.is_empty()).then(|| values.join(","))
    };
    let [parent, state, baggage] = TraceContext::NAMES.map(part);
    TraceContext::read(parent.as_deref(), state.as_deref(), baggage.as_deref())
}

/// One header field of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    Absent,
    Value(&'a str),
    /// Given more than once, or with characters outside visible ASCII, space and tab.
    Invalid,
}

impl<'a> Field<'a> {
    /// Reads a header by its lower-case name.
    pub fn of(headers: &'a HeaderMap, name: &str) -> Self {
        let mut values = headers.get_all(name).iter();
        let Some(value) = values.next() else {
            return Field::Absent;
        };
        match (values.next(), value.to_str()) {
            (None, Ok(value)) => Field::Value(value.trim_matches([' ', '\t'])),
            _ => Field::Invalid,
        }
    }

    pub fn value(self) -> Option<&'a str> {
        match self {
            Field::Value(value) => Some(value),
            _ => None,
        }
    }
}

/// Why headers and body do not fit; always -32020.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("header mismatch: {header} is missing")]
    Missing { header: &'static str },
    #[error("header mismatch: {header} is given twice, has invalid characters or bad base64")]
    Invalid { header: &'static str },
    #[error("header mismatch: {header} differs from the body's {member}")]
    Differs { header: &'static str, member: &'static str },
}

impl Mismatch {
    pub fn rpc_error(&self) -> RpcError {
        RpcError::new(code::HEADER_MISMATCH, self.to_string())
    }
}

/// The mirroring headers of one request.
#[derive(Debug, Clone, Copy)]
pub struct Mirror<'a> {
    pub version: Field<'a>,
    pub method: Field<'a>,
    pub name: Field<'a>,
}

impl<'a> Mirror<'a> {
    pub fn of(headers: &'a HeaderMap) -> Self {
        Mirror {
            version: Field::of(headers, PROTOCOL_VERSION),
            method: Field::of(headers, METHOD),
            name: Field::of(headers, NAME),
        }
    }

    /// Compares `MCP-Protocol-Version` with the version in the request's `_meta`.
    pub fn check_version(&self, in_body: &str) -> Result<(), Mismatch> {
        let member = "_meta[\"io.modelcontextprotocol/protocolVersion\"]";
        compare("MCP-Protocol-Version", self.version, (member, in_body))
    }

    /// Compares `Mcp-Method` and `Mcp-Name` with the body of a modern request.
    ///
    /// A missing `Mcp-Name` is tolerated on `tasks/*` (clients that leave it out are in use), a differing one is not.
    /// Methods without a name ignore `Mcp-Name`.
    pub fn check_request(&self, method: &str, params: &Params<'_>) -> Result<(), Mismatch> {
        compare("Mcp-Method", self.method, ("method", method))?;
        let Some(member) = named_by(method) else {
            return Ok(());
        };
        if self.name == Field::Absent && member == "taskId" {
            return Ok(());
        }
        let name = match self.name {
            Field::Value(value) => decode(value).ok_or(Mismatch::Invalid { header: "Mcp-Name" })?,
            Field::Absent => return Err(Mismatch::Missing { header: "Mcp-Name" }),
            Field::Invalid => return Err(Mismatch::Invalid { header: "Mcp-Name" }),
        };
        match params.text(member) {
            Some(in_body) if in_body == name => Ok(()),
            _ => Err(Mismatch::Differs { header: "Mcp-Name", member }),
        }
    }

    /// Compares `Mcp-Method` with a modern notification, whose headers the revision leaves open: only a differing
    /// one is refused.
    pub fn check_notification(&self, method: &str) -> Result<(), Mismatch> {
        match self.method {
            Field::Absent => Ok(()),
            field => compare("Mcp-Method", field, ("method", method)),
        }
    }
}

/// The member of `params` that `Mcp-Name` mirrors for a method.
pub fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// Decodes a header value: `=?base64?…?=` holds base64 of UTF-8 text, anything else stands for itself. `None` for
/// bad base64 or text that is not UTF-8.
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let Some(inner) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = STANDARD.decode(inner).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Encodes a value for `Mcp-Name` or `Mcp-Param-*`, in base64 only where it has to be.
pub fn encode(value: &str) -> Cow<'_, str> {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_trimmed = value.trim_matches([' ', '\t']).len() == value.len();
    let is_sentinel = value.starts_with("=?base64?") && value.ends_with("?=");
    if is_plain && is_trimmed && !is_sentinel && !value.is_empty() {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("=?base64?{}?=", STANDARD.encode(value)))
}

fn compare(header: &'static str, field: Field<'_>, (member, in_body): (&'static str, &str)) -> Result<(), Mismatch> {
    match field {
        Field::Absent => Err(Mismatch::Missing { header }),
        Field::Invalid => Err(Mismatch::Invalid { header }),
        Field::Value(value) if value == in_body => Ok(()),
        Field::Value(_) => Err(Mismatch::Differs { header, member }),
    }
}

//! The parameters of a message, split into members, and their `_meta`: what is for this server, and what passes
//! through. Checks types, not meanings; the era and the headers are judged in `era` and `headers`.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::id::Id;
use super::reject::{RpcError, Source, code};
use crate::model::json::{self, Member};
use crate::model::trace::TraceContext;

#[cfg(test)]
mod tests;

/// The prefix of the protocol's own `_meta` members.
pub const PROTOCOL_PREFIX: &str = "io.modelcontextprotocol/";
/// The prefix of this server's `_meta` members.
pub const VENDOR_PREFIX: &str = "durable-mcp/";

const WAIT_MS_MAX: i64 = 24 * 60 * 60 * 1000;

/// Why parameters are refused; always -32602.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    #[error("_meta is not an object")]
    MetaShape,
    #[error("_meta[\"{member}\"] is not {wanted}")]
    MetaType { member: &'static str, wanted: &'static str },
    #[error("_meta[\"{member}\"] is unknown; known are durable-mcp/idempotencyKey and durable-mcp/wait")]
    UnknownVendor { member: String },
    #[error("params.{member} is missing")]
    Missing { member: &'static str },
    #[error("params.{member} is not {wanted}")]
    Type { member: &'static str, wanted: &'static str },
}

impl ParamsError {
    pub fn code(&self) -> i64 {
        code::INVALID_PARAMS
    }

    /// A malformed `_meta` is a fault of the envelope; all else is a handler's error.
    pub fn source(&self) -> Source {
        match self {
            ParamsError::MetaShape => Source::Envelope,
            ParamsError::MetaType { member, .. } if !member.starts_with(VENDOR_PREFIX) => Source::Envelope,
            _ => Source::Handler,
        }
    }

    pub fn rpc_error(&self) -> RpcError {
        RpcError::new(self.code(), self.to_string())
    }
}

/// Parameters of any method: the members in their order, values as written.
#[derive(Debug, Default)]
pub struct Params<'a> {
    pub members: Vec<Member<'a>>,
}

impl<'a> Params<'a> {
    /// Splits the `params` of a message; absent ones have no members.
    pub fn split(params: Option<&'a RawValue>) -> Self {
        let members = params.and_then(|params| json::members(params.get())).unwrap_or_default();
        Params { members }
    }

    /// A member that is present and not null.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.members.iter().find(|(member, value)| member == name && !json::is_null(value)).map(|(_, value)| *value)
    }

    /// A member that is a string; `None` if it is absent or something else.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(json::text)
    }
}

/// The protocol's own members of `_meta`, unprefixed.
#[derive(Debug, Default)]
pub struct ProtocolMeta<'a> {
    pub version: Option<Cow<'a, str>>,
    pub client_capabilities: Option<&'a RawValue>,
    pub client_info: Option<&'a RawValue>,
    pub log_level: Option<Cow<'a, str>>,
    /// Further members with the protocol's prefix; names in full.
    pub other: Vec<Member<'a>>,
}

/// `params._meta`, sorted by whom it is for. A `null` member counts as absent.
#[derive(Debug, Default)]
pub struct Meta<'a> {
    pub raw: Option<&'a RawValue>,
    pub protocol: ProtocolMeta<'a>,
    pub progress_token: Option<Id<'a>>,
    /// What is valid of it (SEP-414).
    pub trace: TraceContext,
    /// `durable-mcp/idempotencyKey`
    pub vendor_key: Option<&'a RawValue>,
    /// `idempotencyKey`
    pub plain_key: Option<&'a RawValue>,
    /// `durable-mcp/wait`: the wait budget in milliseconds, 0 for an answer at once.
    pub wait_ms: Option<i64>,
    /// `durable-mcp/fencingToken`: set by a DurableMCP in front of this one.
    pub fencing_token: Option<&'a RawValue>,
    /// Everything else, to be passed on as it is.
    pub passthrough: Vec<Member<'a>>,
}

impl<'a> Meta<'a> {
    /// Reads `_meta` of any request. Errors: [`ParamsError`] for a wrong type and for unknown `durable-mcp/…` members.
    pub fn of(params: &Params<'a>) -> Result<Self, ParamsError> {
        let mut meta = Meta::default();
        let Some(raw) = params.get("_meta") else {
            return Ok(meta);
        };
        meta.raw = Some(raw);
        let members = json::members(raw.get()).ok_or(ParamsError::MetaShape)?;
        let mut trace = [None, None, None];
        for (name, value) in members {
            // What is no trace context is ignored, of whatever type it is.
            if let Some(part) = TraceContext::NAMES.iter().position(|part| *part == name) {
                trace[part] = json::text(value);
            } else if !json::is_null(value) {
                meta.take(name, value)?;
            } else if !name.starts_with(PROTOCOL_PREFIX) && !name.starts_with(VENDOR_PREFIX) {
                meta.passthrough.push((name, value));
            }
        }
        let [parent, state, baggage] = trace.each_ref().map(|part| part.as_deref());
        meta.trace = TraceContext::read(parent, state, baggage);
        Ok(meta)
    }

    fn take(&mut self, name: Cow<'a, str>, value: &'a RawValue) -> Result<(), ParamsError> {
        match &*name {
            "io.modelcontextprotocol/protocolVersion" => {
                self.protocol.version = Some(text(value, "io.modelcontextprotocol/protocolVersion")?);
            }
            "io.modelcontextprotocol/clientCapabilities" => {
                self.protocol.client_capabilities = Some(object(value, "io.modelcontextprotocol/clientCapabilities")?);
            }
            "io.modelcontextprotocol/clientInfo" => {
                self.protocol.client_info = Some(object(value, "io.modelcontextprotocol/clientInfo")?);
            }
            "io.modelcontextprotocol/logLevel" => {
                self.protocol.log_level = Some(text(value, "io.modelcontextprotocol/logLevel")?);
            }
            "progressToken" => {
                let wanted = "a string or an integer";
                let token = Id::parse(value).map_err(|_| ParamsError::MetaType { member: "progressToken", wanted })?;
                self.progress_token = Some(token);
            }
            "idempotencyKey" => self.plain_key = Some(value),
            "durable-mcp/idempotencyKey" => self.vendor_key = Some(value),
            "durable-mcp/fencingToken" => self.fencing_token = Some(value),
            "durable-mcp/wait" => self.wait_ms = Some(wait_ms(value)?),
            other if other.starts_with(VENDOR_PREFIX) => {
                return Err(ParamsError::UnknownVendor { member: other.chars().take(80).collect() });
            }
            other if other.starts_with(PROTOCOL_PREFIX) => self.protocol.other.push((name, value)),
            _ => self.passthrough.push((name, value)),
        }
        Ok(())
    }
}

fn text<'a>(value: &'a RawValue, member: &'static str) -> Result<Cow<'a, str>, ParamsError> {
    json::text(value).ok_or(ParamsError::MetaType { member, wanted: "a string" })
}

fn object<'a>(value: &'a RawValue, member: &'static str) -> Result<&'a RawValue, ParamsError> {
    if json::is_object(value) { Ok(value) } else { Err(ParamsError::MetaType { member, wanted: "an object" }) }
}

fn wait_ms(value: &RawValue) -> Result<i64, ParamsError> {
    let wanted = "a number of milliseconds from 0 to 86400000";
    match value.get().parse::<i64>() {
        Ok(wait_ms) if (0..=WAIT_MS_MAX).contains(&wait_ms) => Ok(wait_ms),
        _ => Err(ParamsError::MetaType { member: "durable-mcp/wait", wanted }),
    }
}

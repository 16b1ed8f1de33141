//! From bytes to a classified JSON-RPC message: strict JSON, then the envelope, all borrowed from the input.
//! Does not look into `params` and knows neither revisions nor transports.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::id::Id;
use super::reject::{RpcError, code};
use crate::model::json;
use crate::model::scan;

#[cfg(test)]
mod tests;

/// Longer method names are refused; the longest of the protocol has 37 bytes.
pub const METHOD_BYTES_MAX: usize = 256;

/// What a message may be at most; the configuration sets it.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub bytes_max: usize,
    /// Levels of nesting, the envelope's own object included.
    pub depth_max: usize,
    /// Messages in one batch.
    pub batch_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes_max: 4 << 20, depth_max: 64, batch_max: 100 }
    }
}

/// What was sent at once.
#[derive(Debug)]
pub enum Incoming<'a> {
    One(Message<'a>),
    /// An array of messages, each still to be read with [`classify`], never empty.
    Batch(Vec<&'a RawValue>),
}

/// A JSON-RPC message. `params` is an object when present; `null` counts as absent.
#[derive(Debug)]
pub enum Message<'a> {
    Request {
        id: Id<'a>,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    /// An error may lack its id: the client could not read what it was sent. It is never to be answered.
    Response {
        id: Option<Id<'a>>,
        outcome: Outcome<'a>,
    },
}

impl<'a> Message<'a> {
    /// The method; a response has none.
    pub fn method(&self) -> Option<&str> {
        match self {
            Message::Request { method, .. } | Message::Notification { method, .. } => Some(method),
            Message::Response { .. } => None,
        }
    }

    pub fn params(&self) -> Option<&'a RawValue> {
        match self {
            Message::Request { params, .. } | Message::Notification { params, .. } => *params,
            Message::Response { .. } => None,
        }
    }

    /// The id of a request or response.
    pub fn id(&self) -> Option<&Id<'a>> {
        match self {
            Message::Request { id, .. } => Some(id),
            Message::Response { id, .. } => id.as_ref(),
            Message::Notification { .. } => None,
        }
    }
}

/// What a response carries, as it was written.
#[derive(Debug)]
pub enum Outcome<'a> {
    Result(&'a RawValue),
    Error(&'a RawValue),
}

/// Why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the message is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error(transparent)]
    Json(#[from] scan::Fault),
    #[error("a batch is empty")]
    EmptyBatch,
    #[error("a batch has more than {batch_max} messages")]
    LongBatch { batch_max: usize },
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Shape(&'static str),
    #[error("{0}")]
    Params(&'static str),
}

impl Fault {
    /// The JSON-RPC code: -32700 for what is no JSON, -32602 for wrong `params`, -32600 for all else.
    pub fn code(&self) -> i64 {
        match self {
            Fault::Json(fault) if fault.is_syntax() => code::PARSE_ERROR,
            Fault::Params(_) => code::INVALID_PARAMS,
            _ => code::INVALID_REQUEST,
        }
    }

    pub fn rpc_error(&self) -> RpcError {
        RpcError::new(self.code(), self.to_string())
    }
}

/// A refused message, with the id to answer under if that could be read. A text that is no JSON has none, whatever its
/// start says; nor has a broken response, since its id is one of ours and would hit an innocent request of the client.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub id: Option<Id<'static>>,
    pub fault: Fault,
}

/// Reads what a client sent. Errors: [`Refused`].
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Incoming<'a>, Refused> {
    if bytes.len() > limits.bytes_max {
        return Err(refused(Fault::TooLarge { bytes_max: limits.bytes_max }));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| refused(Fault::Json(scan::Fault::NotUtf8 { at: error.valid_up_to() })))?;
    if let Err(fault) = scan::check(text, limits.depth_max) {
        return Err(Refused { id: readable_id(text), fault: Fault::Json(fault) });
    }
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'[') => batch(text, limits).map(Incoming::Batch),
        _ => classify(text).map(Incoming::One),
    }
}

/// Reads one message of a text that was checked already, such as an element of a batch.
pub fn classify(text: &str) -> Result<Message<'_>, Refused> {
    // serde would read an array as a struct, member by position.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(refused(Fault::Shape("it is not an object")));
    }
    let envelope: Envelope<'_> =
        serde_json::from_str(text).map_err(|_| refused(Fault::Shape("it is not an object")))?;
    let id = envelope.id.map(Id::parse).transpose();
    let is_response = envelope.method.is_none() && (envelope.result.is_some() || envelope.error.is_some());
    envelope.message(&id).map_err(|fault| {
        let id = id.ok().flatten().filter(|_| !is_response);
        Refused { id: id.map(Id::into_owned), fault }
    })
}

fn refused(fault: Fault) -> Refused {
    Refused { id: None, fault }
}

fn batch<'a>(text: &'a str, limits: &Limits) -> Result<Vec<&'a RawValue>, Refused> {
    let items: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|_| refused(Fault::Shape("it is not an array of messages")))?;
    if items.is_empty() {
        return Err(refused(Fault::EmptyBatch));
    }
    if items.len() > limits.batch_max {
        return Err(refused(Fault::LongBatch { batch_max: limits.batch_max }));
    }
    Ok(items)
}

/// The id of a message that follows the grammar of JSON but is refused (duplicates, depth, half a surrogate pair, which
/// JavaScript writes without a word), so that its sender need not wait in vain. What is no JSON has none.
fn readable_id(text: &str) -> Option<Id<'static>> {
    let members = json::members(text)?;
    members.iter().find(|(name, _)| name == "method")?;
    let mut ids = members.iter().filter(|(name, _)| name == "id");
    let (_, id) = ids.next()?;
    // Two ids: which one the sender waits for is not known.
    if ids.next().is_some() {
        return None;
    }
    Id::parse(id).ok().map(Id::into_owned)
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from an absent member.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Envelope<'a> {
    fn message(&self, id: &Result<Option<Id<'a>>, &'static str>) -> Result<Message<'a>, Fault> {
        if self.jsonrpc.and_then(json::text).as_deref() != Some("2.0") {
            return Err(Fault::Shape("the member jsonrpc is not \"2.0\""));
        }
        if let Some(method) = self.method {
            if self.result.is_some() || self.error.is_some() {
                return Err(Fault::Shape("it has a method and an outcome"));
            }
            let method = json::text(method).ok_or(Fault::Shape("the method is not a string"))?;
            if method.is_empty() || method.len() > METHOD_BYTES_MAX {
                return Err(Fault::Shape("the method is empty or too long"));
            }
            let params = self.params.filter(|params| !json::is_null(params));
            if params.is_some_and(|params| !json::is_object(params)) {
                return Err(Fault::Params("params is not an object"));
            }
            return Ok(match id.clone().map_err(Fault::Shape)? {
                Some(id) => Message::Request { id, method, params },
                None => Message::Notification { method, params },
            });
        }
        let outcome = match (self.result, self.error) {
            (Some(result), None) => Outcome::Result(result),
            (None, Some(error)) if json::is_object(error) => Outcome::Error(error),
            (None, Some(_)) => return Err(Fault::Shape("the error is not an object")),
            (Some(_), Some(_)) => return Err(Fault::Shape("it has a result and an error")),
            (None, None) => return Err(Fault::Shape("it has no method and no outcome")),
        };
        match (id, &outcome) {
            (Ok(Some(id)), _) => Ok(Message::Response { id: Some(id.clone()), outcome }),
            (_, Outcome::Error(_)) => Ok(Message::Response { id: None, outcome }),
            (_, Outcome::Result(_)) => Err(Fault::Shape("a result without an id")),
        }
    }
}

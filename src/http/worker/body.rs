//! Bodies of the worker protocol: strict JSON objects whose foreign parts stay the bytes they were sent as.

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body_util::BodyExt;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::http::refusal::Refusal;
use crate::model::json::members;
use crate::model::scan;
use crate::store::Payload;

/// The whole body.
pub(super) async fn bytes(body: Body) -> Result<Bytes, Refusal> {
    match body.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if is_too_long(&error) => Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            "the body is larger than this server takes",
            "send less, or raise server.max_body_bytes",
        )),
        Err(_) => Err(invalid("the body ended early")),
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// Reads the body's object: no duplicate and no unknown members, at any depth no more than `depth`.
pub(super) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8], depth: usize) -> Result<T, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("the body is no UTF-8"))?;
    scan::check(text, depth).map_err(|fault| invalid(format!("the body is no strict JSON: {fault}")))?;
    serde_json::from_str(text).map_err(|error| invalid(format!("the body does not fit: {error}")))
}

/// The body is no such object.
pub(super) fn invalid(detail: impl Into<String>) -> Refusal {
    let next = "send the object that docs/worker-protocol.md describes";
    Refusal::new(StatusCode::BAD_REQUEST, "invalid_body", detail.into(), next)
}

/// A member that is there, `null` included.
pub(super) fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The exact text of a foreign part.
pub(super) fn payload(raw: &RawValue) -> Payload {
    raw.get().into()
}

/// What is wrong with an MCP tool result, if anything (MCP `CallToolResult`); else its `isError`.
pub(super) fn check_result(raw: &RawValue) -> Result<bool, &'static str> {
    let members = members(raw.get()).ok_or("`result` is no object")?;
    let member = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, value)| value.get());
    match member("content") {
        Some(content) if content.starts_with('[') => {
            let blocks: Vec<&RawValue> = serde_json::from_str(content).map_err(|_| "`result.content` is no list")?;
            if !blocks.iter().all(|block| is_block(block)) {
                return Err("`result.content` holds something that is no content block: an object with a `type`");
            }
        }
        _ => return Err("`result.content` is no list"),
    }
    if member("structuredContent").is_some_and(|value| !value.starts_with('{')) {
        return Err("`result.structuredContent` is no object");
    }
    match member("isError") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err("`result.isError` is neither true nor false"),
    }
}

fn is_block(block: &RawValue) -> bool {
    members(block.get())
        .is_some_and(|members| members.iter().any(|(name, value)| name == "type" && value.get().starts_with('"')))
}

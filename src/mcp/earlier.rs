//! What clients up to 2025-11-25 could not read of a tool or a result of 2026-07-28: there `outputSchema` describes an
//! object and `structuredContent` is one, or both are absent (SEP-2106). Everything else passes as it is.

use serde_json::value::RawValue;

use super::splice::{self, Edit};
use crate::model::json;

#[cfg(test)]
mod tests;

const CONTENT: &str = "structuredContent";
const SCHEMA: &str = "outputSchema";

/// The result without structured content that is no object; `None` when it can stay as it is. The text beside it says the
/// same; where a server left that out, its place is taken by one.
pub fn result(raw: &RawValue) -> Option<Box<RawValue>> {
    if !raw.get().contains(CONTENT) {
        return None;
    }
    let members = json::members(raw.get())?;
    let last = |name: &str| members.iter().rev().find(|(member, _)| member == name).map(|(_, value)| *value);
    let structured = last(CONTENT).filter(|value| !json::is_object(value))?;
    let mut text = splice::without(raw.get(), &[CONTENT])?;
    let says_nothing = last("content").is_none_or(|content| is_empty_array(content.get()));
    if says_nothing && !json::is_null(structured) {
        let block = format!("[{{\"type\":\"text\",\"text\":{}}}]", json::quoted(structured.get()));
        text = splice::edited(&text, &[Edit::Set("content", block.into())])?;
    }
    RawValue::from_string(text).ok()
}

/// The tool without a schema of what is no object; `None` when it can stay as it is.
pub fn tool(definition: &str) -> Option<String> {
    let members = json::members(definition)?;
    let (_, schema) = members.iter().rev().find(|(name, _)| name == SCHEMA)?;
    let described = json::members(schema.get()).unwrap_or_default();
    let kind = described.iter().rev().find(|(name, _)| name == "type").and_then(|(_, kind)| json::text(kind));
    match kind.as_deref() {
        Some("object") => None,
        _ => splice::without(definition, &[SCHEMA]),
    }
}

fn is_empty_array(text: &str) -> bool {
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|inner| inner.trim().is_empty())
}

//! From what a handler returns to the JSON text of an MCP tool result. The same rules hold in every language
//! (`sdk/vectors/results.json`).

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// A text is text; an object is its JSON and `structuredContent`; an MCP result stays as it is; nothing is empty.
pub(crate) fn tool_result(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(value)?;
    Ok(match text.as_bytes().first() {
        Some(b'"') => format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#),
        Some(b'n') => r#"{"content":[]}"#.to_owned(),
        Some(b'{') if is_result(&text) => text,
        Some(b'{') => {
            format!(r#"{{"content":[{{"type":"text","text":{}}}],"structuredContent":{text}}}"#, quoted(&text))
        }
        _ => format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, quoted(&text)),
    })
}

/// The result of a tool that says no.
pub(crate) fn error_result(message: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#, quoted(message))
}

/// The JSON text of a string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn is_result(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Result {
        #[serde(rename = "content")]
        _content: Vec<IgnoredAny>,
    }
    text.contains(r#""content""#) && serde_json::from_str::<Result>(text).is_ok()
}

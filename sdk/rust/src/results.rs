//! From what a handler returns to the JSON text of an MCP tool result. The same rules hold in every language
//! (`sdk/vectors/results.json`).

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[cfg(test)]
mod tests;

/// The server's limit.
const ERROR_CODE_CHARS: usize = 64;

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

/// The members of a `fail` beside worker and lease, as JSON without the braces.
pub(crate) fn failure(code: &str, message: &str, retryable: bool) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let code: String = code.chars().map(|c| if good(c) { c } else { '_' }).take(ERROR_CODE_CHARS).collect();
    let error = json!({"code": if code.is_empty() { "error" } else { &code }, "message": message});
    format!("\"error\":{error},\"retryable\":{retryable}")
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

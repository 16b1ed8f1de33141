//! Frames: JSON-RPC messages around raw JSON, and their form on stdio (one line) and in an event stream.
//! Everything is appended to a caller's buffer; nothing is parsed.

use memchr::memchr2;

use super::id::Id;
use super::reject::{RpcError, push_json_string};

#[cfg(test)]
mod tests;

const HEAD: &str = "{\"jsonrpc\":\"2.0\",";

/// Appends a response with `result`, a JSON text.
pub fn result(out: &mut String, id: &Id<'_>, result: &str) {
    out.reserve(HEAD.len() + id.raw().len() + result.len() + 20);
    result_head(out, id);
    out.push_str(result);
    out.push('}');
}

/// Appends what of a response comes before its result; a brace is to follow that.
pub fn result_head(out: &mut String, id: &Id<'_>) {
    out.push_str(HEAD);
    out.push_str("\"id\":");
    out.push_str(id.raw());
    out.push_str(",\"result\":");
}

/// Appends an error response. Without an id the member is left out, as MCP has it (2026-07-28, basic, error responses);
/// JSON-RPC's `null` is refused by the schemas of several clients.
pub fn error(out: &mut String, id: Option<&Id<'_>>, error: &RpcError) {
    let mut text = String::with_capacity(64 + error.message.len());
    error.write(&mut text);
    raw_error(out, id, &text);
}

/// Appends an error response with an error object as it was written elsewhere.
pub fn raw_error(out: &mut String, id: Option<&Id<'_>>, error: &str) {
    out.push_str(HEAD);
    if let Some(id) = id {
        out.push_str("\"id\":");
        out.push_str(id.raw());
        out.push(',');
    }
    out.push_str("\"error\":");
    out.push_str(error);
    out.push('}');
}

/// Appends a notification; `params` is a JSON text.
pub fn notification(out: &mut String, method: &str, params: Option<&str>) {
    out.push_str(HEAD);
    call(out, method, params);
}

/// Appends a request; `params` is a JSON text.
pub fn request(out: &mut String, id: &Id<'_>, method: &str, params: Option<&str>) {
    out.push_str(HEAD);
    out.push_str("\"id\":");
    out.push_str(id.raw());
    out.push(',');
    call(out, method, params);
}

/// Appends a message as one line and its newline, as stdio wants it.
///
/// A newline in valid JSON stands outside strings only, where a space means the same; so strings keep their bytes.
pub fn line(out: &mut String, message: &str) {
    unbroken(out, message);
    out.push('\n');
}

/// Appends a message as an event of a stream, with an event id where streams are resumable.
pub fn event(out: &mut String, event_id: Option<&str>, message: &str) {
    out.reserve(message.len() + 40);
    event_head(out, event_id, message);
    out.push_str("\n\n");
}

/// Appends an event whose message goes on after `message`; an empty line is to follow that.
pub fn event_head(out: &mut String, event_id: Option<&str>, message: &str) {
    if let Some(event_id) = event_id {
        out.push_str("id: ");
        unbroken(out, event_id);
        out.push('\n');
    }
    out.push_str("event: message\ndata: ");
    unbroken(out, message);
}

/// Appends the first event of a resumable stream: an id and empty data, and how long to wait before reconnecting.
pub fn priming_event(out: &mut String, event_id: &str, retry_ms: Option<u64>) {
    out.push_str("id: ");
    unbroken(out, event_id);
    if let Some(retry_ms) = retry_ms {
        out.push_str("\nretry: ");
        out.push_str(&retry_ms.to_string());
    }
    out.push_str("\ndata: \n\n");
}

/// The comment that keeps an idle stream open.
pub const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// Appends a text with each line break as a space.
fn unbroken(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = memchr2(b'\n', b'\r', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push(' ');
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

fn call(out: &mut String, method: &str, params: Option<&str>) {
    out.push_str("\"method\":");
    push_json_string(out, method);
    if let Some(params) = params {
        out.push_str(",\"params\":");
        out.push_str(params);
    }
    out.push('}');
}

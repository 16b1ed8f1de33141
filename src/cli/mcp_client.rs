//! The least MCP client: one `tools/call` of revision 2026-07-28 over Streamable HTTP, answered as JSON or as an event
//! stream. Keeps no session, answers no questions, shows no progress.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::client::Client;
use super::failure::{Exit, Failure};
use crate::mcp::headers;

const REVISION: &str = "2026-07-28";
/// Bytes of one event that are read.
const EVENT_BYTES_MAX: usize = 256 << 20;

/// A call to make.
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its arguments, exact JSON text of an object.
    pub arguments: String,
    /// The idempotency key.
    pub key: Option<String>,
    /// How long the server lets us wait, in milliseconds.
    pub wait_ms: Option<i64>,
}

/// The member of a response that came.
#[derive(Debug)]
pub enum Answer {
    /// `result`, exact text.
    Result(Box<RawValue>),
    /// `error`.
    Error(RpcError),
}

/// A JSON-RPC error.
#[derive(Debug, Deserialize)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// One sentence.
    #[serde(default)]
    pub message: String,
    /// Ours has `type` and `next`.
    #[serde(default)]
    pub data: serde_json::Value,
}

#[derive(Deserialize)]
struct Message {
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
}

/// Calls a tool and waits for the response.
pub async fn call(client: &Client, call: &ToolCall) -> Result<Answer, Failure> {
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
        ("mcp-protocol-version", REVISION.to_owned()),
        ("mcp-method", "tools/call".to_owned()),
        ("mcp-name", headers::encode(&call.name).into_owned()),
    ];
    let mut response = client.post(&headers, body(call)).await?;
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        let text = client.text(response).await?;
        return answer(&text)?.ok_or_else(foreign);
    }
    let mut events = Events::default();
    while let Some(chunk) = response.chunk().await.map_err(|error| client.unreachable(&error))? {
        for data in events.feed(&chunk)? {
            if let Some(answer) = answer(&data)? {
                return Ok(answer);
            }
        }
    }
    Err(Failure::new(Exit::Unreachable, "the server ended the stream without an answer")
        .next("repeat the call; it is not run a second time while the first one goes on or is stored"))
}

pub(super) fn body(call: &ToolCall) -> String {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "durable-mcp", "version": env!("CARGO_PKG_VERSION") },
    });
    if let Some(key) = &call.key {
        meta["durable-mcp/idempotencyKey"] = json!(key);
    }
    if let Some(wait_ms) = call.wait_ms {
        meta["durable-mcp/wait"] = json!(wait_ms);
    }
    let (name, arguments) = (json!(call.name), &call.arguments);
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{name},"arguments":{arguments},"_meta":{meta}}}}}"#
    )
}

/// The response in a message; `None` for a notification.
fn answer(text: &str) -> Result<Option<Answer>, Failure> {
    let message: Message = serde_json::from_str(text).map_err(|_| foreign())?;
    Ok(match message {
        Message { error: Some(error), .. } => Some(Answer::Error(error)),
        Message { result: Some(result), .. } => Some(Answer::Result(result)),
        _ => None,
    })
}

/// Server-sent events: only their data matters here.
#[derive(Default)]
pub(super) struct Events {
    rest: Vec<u8>,
    data: Option<String>,
}

impl Events {
    /// Takes a chunk; returns the data of the events it completes.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<Vec<String>, Failure> {
        self.rest.extend_from_slice(chunk);
        let mut complete = Vec::new();
        let mut start = 0;
        while let Some(length) = self.rest[start..].iter().position(|byte| *byte == b'\n') {
            let line =
                self.rest[start..start + length].strip_suffix(b"\r").unwrap_or(&self.rest[start..start + length]);
            let line = std::str::from_utf8(line).map_err(|_| foreign())?;
            start += length + 1;
            if line.is_empty() {
                complete.extend(self.data.take().filter(|data| !data.is_empty()));
            } else if let Some(data) = line.strip_prefix("data:") {
                let data = data.strip_prefix(' ').unwrap_or(data);
                match &mut self.data {
                    Some(all) => {
                        all.push('\n');
                        all.push_str(data);
                    }
                    None => self.data = Some(data.to_owned()),
                }
            }
        }
        self.rest.drain(..start);
        if self.rest.len() + self.data.as_ref().map_or(0, String::len) > EVENT_BYTES_MAX {
            return Err(Failure::new(Exit::Failure, "the server's answer is too large to read"));
        }
        Ok(complete)
    }
}

fn foreign() -> Failure {
    Failure::new(Exit::Failure, "the server's answer is not that of an MCP server")
        .next("check the address given with --url")
}

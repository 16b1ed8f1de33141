//! One MCP client on one connection, in either era: calls a tool and reads the answer, JSON or stream. Connects again when
//! its connection is gone; repeats no call by itself.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::address::Address;
use super::super::failure::Failure;
use super::super::mcp_client::Events;
use super::wire::{self, Connection};
use crate::mcp::headers;
use crate::model::json::quoted;
use crate::model::revision::Era;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// Where callers call.
#[derive(Clone, Debug)]
pub struct Place {
    authority: String,
    path: String,
    bearer: Option<String>,
}

impl Place {
    /// The MCP endpoint of an address. Errors: it is not plain HTTP.
    pub fn new(address: &Address, bearer: Option<String>) -> Result<Place, Failure> {
        let Some(rest) = address.endpoint.strip_prefix("http://") else {
            return Err(Failure::usage("only plain http is spoken here")
                .next("measure beside the server, at its own http:// address"));
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        // The origin leaves out the port that http has by itself.
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let authority = if has_port { host.to_owned() } else { format!("{host}:80") };
        Ok(Place { authority, path: format!("/{path}"), bearer })
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

/// A call to make. The texts are JSON where they say so.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The JSON text of its arguments.
    pub arguments: &'a str,
    /// The idempotency key.
    pub key: Option<&'a str>,
    /// How long the server may let us wait, in milliseconds.
    pub wait_ms: Option<i64>,
}

/// What the server says about the execution behind a result.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Execution {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub state: String,
    /// Tries so far.
    pub attempt: u32,
    /// An earlier call had it made.
    pub attached: bool,
}

/// A `result`.
#[derive(Clone, Debug)]
pub struct Told {
    /// The text blocks, one after the other.
    pub text: String,
    /// `isError`.
    pub is_error: bool,
    /// Absent when the server is another one than ours.
    pub execution: Option<Execution>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection.
    #[error(transparent)]
    Wire(#[from] wire::Error),
    /// HTTP says no.
    #[error("the server answered with status {status}: {text}")]
    Status {
        /// The status.
        status: u16,
        /// The start of the body.
        text: String,
    },
    /// A JSON-RPC error.
    #[error("{message} ({code})")]
    Rpc {
        /// The code.
        code: i64,
        /// One sentence.
        message: String,
    },
    /// Not the answer to what was asked.
    #[error("not an answer to this call: {0}")]
    Foreign(&'static str),
}

/// See the module.
pub struct Caller {
    place: Arc<Place>,
    era: Era,
    name: String,
    connection: Option<Connection>,
    session: Option<String>,
    last_id: u64,
}

/// An answer on its way, as a stream that has begun or a whole body to come.
pub struct Pending {
    id: u64,
    stream: bool,
    body: Incoming,
}

impl Pending {
    /// True when the answer comes as a stream of events.
    pub fn is_stream(&self) -> bool {
        self.stream
    }
}

impl Caller {
    /// A client of this name. Connects with its first call.
    pub fn new(place: Arc<Place>, era: Era, name: &str) -> Caller {
        Caller { place, era, name: name.to_owned(), connection: None, session: None, last_id: 0 }
    }

    /// Calls a tool and reads the answer whole. Errors: see [`Error`]; the connection is opened anew after one.
    pub async fn call(&mut self, call: &ToolCall<'_>) -> Result<Told, Error> {
        let pending = self.start(call).await?;
        let told = read(pending).await;
        if matches!(told, Err(Error::Wire(_) | Error::Foreign(_))) {
            self.cut();
        }
        told
    }

    /// Calls a tool and returns when the answer has begun. Errors: see [`Error`].
    pub async fn start(&mut self, call: &ToolCall<'_>) -> Result<Pending, Error> {
        if self.era == Era::Legacy && self.session.is_none() {
            self.initialize().await?;
        }
        let id = self.next_id();
        let body = call_body(id, (self.era, &self.name), call);
        let mut request = self.post(&body);
        if self.era == Era::Modern {
            let name = headers::encode(call.tool);
            request = request.header("mcp-method", "tools/call").header("mcp-name", &*name);
        }
        let response = self.send(request, body).await?;
        let is_stream = |kind: &[u8]| kind.starts_with(b"text/event-stream");
        let stream = response.headers().get("content-type").is_some_and(|kind| is_stream(kind.as_bytes()));
        Ok(Pending { id, stream, body: response.into_body() })
    }

    /// Ends the connection at once; what was called goes on without us.
    pub fn cut(&mut self) {
        self.connection = None;
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    async fn initialize(&mut self) -> Result<(), Error> {
        let id = self.next_id();
        let body = initialize_body(id, &self.name);
        let response = self.send(self.post(&body), body).await?;
        let session = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        wire::whole(response.into_body()).await?;
        // A server without sessions is spoken to without one.
        self.session = Some(session.unwrap_or_default());
        let ready = initialized_body();
        let response = self.send(self.post(&ready), ready).await?;
        wire::whole(response.into_body()).await?;
        Ok(())
    }

    fn post(&self, body: &str) -> hyper::http::request::Builder {
        let mut request = Request::post(&self.place.path)
            .header("host", &self.place.authority)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("content-length", body.len());
        if let Some(bearer) = &self.place.bearer {
            request = request.header("authorization", format!("Bearer {bearer}"));
        }
        match (self.era, &self.session) {
            (Era::Modern, _) => request.header("mcp-protocol-version", MODERN),
            (Era::Legacy, None) => request,
            (Era::Legacy, Some(session)) => {
                let request = request.header("mcp-protocol-version", LEGACY);
                if session.is_empty() { request } else { request.header("mcp-session-id", session) }
            }
        }
    }

    /// Sends; a refusal by status is an error.
    async fn send(
        &mut self,
        request: hyper::http::request::Builder,
        body: String,
    ) -> Result<hyper::Response<Incoming>, Error> {
        let request = request.body(Full::new(Bytes::from(body))).map_err(|_| Error::Foreign("no such header"))?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.place.authority).await?,
        };
        let response = connection.send(request).await?;
        self.connection = Some(connection);
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = wire::whole(response.into_body()).await?;
        let text = String::from_utf8_lossy(&text).chars().take(200).collect();
        if status == 404 {
            // The session is gone; the next call begins another.
            self.session = None;
        }
        Err(Error::Status { status: status.as_u16(), text })
    }
}

/// The first message of a legacy session.
pub fn initialize_body(id: u64, client: &str) -> String {
    let client = quoted(client);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":{client},"version":"1"}}}}}}"#
    )
}

/// The second message of a legacy session.
pub fn initialized_body() -> String {
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()
}

/// Asks for the first page of the tools.
pub fn list_body(id: u64, era: Era, client: &str) -> String {
    let meta = envelope(era, client);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"_meta":{{{meta}}}}}}}"#)
}

/// Calls a tool.
pub fn call_body(id: u64, (era, client): (Era, &str), call: &ToolCall<'_>) -> String {
    let mut meta = envelope(era, client);
    let mut add = |member: String| {
        if !meta.is_empty() {
            meta.push(',');
        }
        meta.push_str(&member);
    };
    if let Some(key) = call.key {
        add(format!(r#""durable-mcp/idempotencyKey":{}"#, quoted(key)));
    }
    if let Some(wait_ms) = call.wait_ms {
        add(format!(r#""durable-mcp/wait":{wait_ms}"#));
    }
    let (tool, arguments) = (quoted(call.tool), call.arguments);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{tool},"arguments":{arguments},"_meta":{{{meta}}}}}}}"#
    )
}

/// The members of `_meta` that each request of the modern era carries.
fn envelope(era: Era, client: &str) -> String {
    match era {
        Era::Legacy => String::new(),
        Era::Modern => format!(
            r#""io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":{},"version":"1"}}"#,
            quoted(client)
        ),
    }
}

/// Reads an answer that has begun.
pub async fn read(mut pending: Pending) -> Result<Told, Error> {
    if !pending.stream {
        let text = wire::whole(pending.body).await?;
        return told(&text, pending.id)?.ok_or(Error::Foreign("it is no response"));
    }
    let mut events = Events::default();
    let mut found = None;
    // To the end of the stream, so that the connection can be used again.
    while let Some(chunk) = wire::chunk(&mut pending.body).await? {
        for data in events.feed(&chunk).map_err(|_| Error::Foreign("its events can not be read"))? {
            found = found.or(told(data.as_bytes(), pending.id)?);
        }
    }
    found.ok_or(Error::Foreign("the stream ended without it"))
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
    #[serde(default)]
    is_error: bool,
    #[serde(default, rename = "_meta")]
    meta: Meta,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default)]
    text: std::borrow::Cow<'a, str>,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "durable-mcp/execution")]
    execution: Option<Execution>,
}

/// The response to the request of this id in a message; `None` for a notification or a request.
pub fn told(text: &[u8], id: u64) -> Result<Option<Told>, Error> {
    let message: Message<'_> = serde_json::from_slice(text).map_err(|_| Error::Foreign("it is no JSON-RPC"))?;
    if message.result.is_none() && message.error.is_none() {
        return Ok(None);
    }
    if message.id != Some(id) {
        return Err(Error::Foreign("it has another id"));
    }
    if let Some(RpcError { code, message }) = message.error {
        return Err(Error::Rpc { code, message });
    }
    let result = message.result.map_or("{}", RawValue::get);
    let result: CallResult<'_> =
        serde_json::from_str(result).map_err(|_| Error::Foreign("it is no result of a tool"))?;
    let text = match result.content.as_slice() {
        [one] => one.text.clone().into_owned(),
        many => many.iter().map(|block| &*block.text).collect::<Vec<_>>().join("\n"),
    };
    Ok(Some(Told { text, is_error: result.is_error, execution: result.meta.execution }))
}

//! JSON-RPC and MCP, both eras, as far as tools need them: handshake, discovery, paged lists, calls, cancellation.
//! Texts that pass through (ids, arguments, results) stay as they were written. Knows no transport; batches are refused.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::Era;
use crate::offers;
use crate::server::{Caller, Server};
use crate::tools::{self, Call, Outcome};

pub const MODERN: &str = "2026-07-28";
pub const VERSION_MEMBER: &str = "io.modelcontextprotocol/protocolVersion";
/// What ends a list of that revision.
const MODERN_LIST: &str = ",\"resultType\":\"complete\",\"ttlMs\":60000,\"cacheScope\":\"public\"";
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[derive(Deserialize)]
pub struct Message<'a> {
    /// The whole message as it came.
    #[serde(skip)]
    pub text: &'a str,
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    pub method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Params<'a> {
    pub name: Option<String>,
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta", default)]
    pub meta: Map<String, Value>,
    pub cursor: Option<String>,
    pub uri: Option<String>,
    pub level: Option<String>,
    #[serde(rename = "ref")]
    pub reference: Option<Reference>,
    /// What is to be answered, as it stands.
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    pub protocol_version: Option<String>,
    #[serde(borrow)]
    pub request_id: Option<&'a RawValue>,
}

/// What a completion is asked for.
#[derive(Deserialize)]
pub struct Reference {
    pub name: Option<String>,
}

/// What goes back for one message. `status` is for HTTP only.
pub struct Reply {
    pub body: Option<String>,
    pub status: u16,
}

impl<'a> Message<'a> {
    pub fn parse(text: &'a str) -> Result<Message<'a>, Reply> {
        let parsed: serde_json::Result<Message<'a>> = serde_json::from_str(text);
        let refuse = |error: serde_json::Error| failure("null", -32700, &error.to_string()).with_status(400);
        parsed.map(|message| Message { text, ..message }).map_err(refuse)
    }

    pub fn params(&self) -> Params<'a> {
        self.params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    pub fn method(&self) -> &str {
        self.method.as_deref().unwrap_or_default()
    }

    pub fn is_request(&self) -> bool {
        self.id.is_some() && self.method.is_some()
    }
}

impl Params<'_> {
    /// The revision named by the envelope, which makes a request a modern one.
    pub fn modern_version(&self) -> Option<&str> {
        self.meta.get(VERSION_MEMBER).and_then(Value::as_str)
    }
}

/// Answers one message; `None` as the body of what needs no answer or was cancelled.
pub async fn handle(server: &Server, message: &Message<'_>, caller: &Caller<'_>) -> Reply {
    let params = message.params();
    let Some(id) = message.id.map(RawValue::get).filter(|_| message.is_request()) else {
        if message.method() == "notifications/cancelled"
            && let Some(request_id) = params.request_id
        {
            caller.running.cancel(request_id.get());
        }
        if let (Some(id), None) = (message.id, &message.method) {
            caller.running.told(id.get(), message.text);
        }
        return silence();
    };
    let era = server.options.era;
    let modern = params.modern_version().filter(|_| era != Era::Legacy);
    if let Some(version) = modern
        && let Some(refusal) = refuse_envelope(id, version, &params)
    {
        return refusal;
    }
    if modern.is_none() && era == Era::Modern {
        return failure(id, -32602, "params._meta names no protocol version").with_status(400);
    }
    let method = message.method();
    if server.options.hang_handshake && matches!(method, "initialize" | "server/discover") {
        std::future::pending::<()>().await;
    }
    match (method, modern.is_some()) {
        ("initialize", false) => initialize(server, id, &params),
        ("ping", false) => success(id, "{}"),
        ("server/discover", true) => discover(server, id),
        ("tools/list", _) => list(server, id, &params),
        ("tools/call", _) => call(server, message, caller).await,
        ("subscriptions/listen", true) => listen(server, id, caller).await,
        ("logging/setLevel", false) if server.options.offers => {
            *server.level.lock().unwrap() = params.level.clone();
            success(id, "{}")
        }
        ("resources/subscribe", false) if server.options.offers => subscribe(server, id, (&params, caller)),
        _ if server.options.offers && offers::is_offered(method) => offered(method, id, (message, &params)),
        _ => failure(id, -32601, &format!("unknown method: {method}")).with_status(if modern.is_some() {
            404
        } else {
            200
        }),
    }
}

/// Tells of the resource at once, and logs which level of log messages it was told.
fn subscribe(server: &Server, id: &str, (params, caller): (&Params<'_>, &Caller<'_>)) -> Reply {
    let logged = json!({"level": "info", "data": {"level": *server.level.lock().unwrap()}}).to_string();
    let updated = json!({"uri": params.uri}).to_string();
    for told in
        [notification("notifications/message", &logged), notification("notifications/resources/updated", &updated)]
    {
        let _ = caller.notify.send(told);
    }
    success(id, "{}")
}

/// Answers what is offered beside tools.
fn offered(method: &str, id: &str, (message, params): (&Message<'_>, &Params<'_>)) -> Reply {
    let is_modern = params.modern_version().is_some();
    let raw = message.params.map_or("{}", RawValue::get);
    match offers::answer(method, params, raw) {
        Ok(list) if method.ends_with("/list") && is_modern => success(id, &format!("{list}{MODERN_LIST}}}")),
        Ok(list) if method.ends_with("/list") => success(id, &format!("{list}}}")),
        Ok(result) if is_modern => success(id, &as_modern(&result)),
        Ok(result) => success(id, &result),
        Err(error) => failure_of(id, &error),
    }
}

fn refuse_envelope(id: &str, version: &str, params: &Params<'_>) -> Option<Reply> {
    if version != MODERN {
        let data = json!({"supported": [MODERN], "requested": version}).to_string();
        return Some(failure_with(id, (-32022, "unsupported protocol version"), Some(&data)).with_status(400));
    }
    let declared = params.meta.get("io.modelcontextprotocol/clientCapabilities").is_some_and(Value::is_object);
    (!declared).then(|| failure(id, -32602, "params._meta names no client capabilities").with_status(400))
}

fn capabilities(server: &Server) -> Value {
    match server.options.offers {
        true => {
            json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}, "prompts": {}, "completions": {}, "logging": {}})
        }
        false => json!({"tools": {"listChanged": true}}),
    }
}

fn initialize(server: &Server, id: &str, params: &Params<'_>) -> Reply {
    let newest = server.options.revision.as_str();
    let asked = params.protocol_version.as_deref().unwrap_or_default();
    let known = LEGACY.contains(&asked) && asked <= newest;
    let mut result = json!({
        "protocolVersion": if known { asked } else { newest },
        "capabilities": capabilities(server),
        "serverInfo": {"name": "kit", "version": "1"},
    });
    if let Some(instructions) = &server.options.instructions {
        result["instructions"] = json!(instructions);
    }
    success(id, &result.to_string())
}

fn discover(server: &Server, id: &str) -> Reply {
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": capabilities(server),
        "ttlMs": 60_000,
        "cacheScope": "public",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "kit", "version": "1"}},
    });
    if let Some(instructions) = &server.options.instructions {
        result["instructions"] = json!(instructions);
    }
    success(id, &result.to_string())
}

fn list(server: &Server, id: &str, params: &Params<'_>) -> Reply {
    let tools = tools::definitions(server);
    let page = if server.options.list_page == 0 { tools.len() } else { server.options.list_page };
    let offset = match params.cursor.as_deref().map(str::parse::<usize>) {
        None => 0,
        Some(Ok(offset)) if offset < tools.len() => offset,
        Some(_) => return failure(id, -32602, "unknown cursor").with_status(200),
    };
    let end = (offset + page).min(tools.len());
    let mut result = format!("{{\"tools\":[{}]", tools[offset..end].join(","));
    if end < tools.len() {
        result.push_str(&format!(",\"nextCursor\":\"{end}\""));
    }
    if params.modern_version().is_some() {
        result.push_str(MODERN_LIST);
    }
    result.push('}');
    success(id, &result)
}

async fn call(server: &Server, message: &Message<'_>, caller: &Caller<'_>) -> Reply {
    let id = message.id.map_or("null", RawValue::get);
    let params = message.params();
    let cancelled = caller.running.begin(id);
    let call = Call {
        name: params.name.as_deref().unwrap_or_default(),
        arguments: params.arguments.map_or("{}", RawValue::get),
        meta: &params.meta,
        params: message.params.map_or("{}", RawValue::get),
        headers: caller.headers,
        revision: params.modern_version().unwrap_or(&server.options.revision),
        notify: caller.notify.clone(),
        running: caller.running,
        cancelled,
    };
    let outcome = tools::run(server, &call).await;
    caller.running.end(id);
    server.count_call();
    match outcome {
        Outcome::Result(result) if params.modern_version().is_some() => success(id, &as_modern(&result)),
        Outcome::Result(result) | Outcome::Typed(result) => success(id, &result),
        Outcome::Error { code, message, data } => failure_with(id, (code, &message), data.as_deref()),
        Outcome::Cancelled => silence(),
    }
}

/// Tells of changed tools until the caller leaves or cancels; an end in order is never reached.
async fn listen(server: &Server, id: &str, caller: &Caller<'_>) -> Reply {
    let cancelled = caller.running.begin(id);
    let mut changes = server.tools_changed.subscribe();
    let meta = format!("\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}");
    let acknowledged = format!("{{{meta},\"notifications\":{{\"toolsListChanged\":true}}}}");
    let _ = caller.notify.send(notification("notifications/subscriptions/acknowledged", &acknowledged));
    while let Some(Ok(())) = cancelled.run_until_cancelled(changes.recv()).await {
        let _ = caller.notify.send(notification("notifications/tools/list_changed", &format!("{{{meta}}}")));
    }
    caller.running.end(id);
    silence()
}

/// Splices `resultType` in as the first member and leaves every other byte alone.
fn as_modern(result: &str) -> String {
    let inner = result.trim_start().strip_prefix('{').unwrap_or("}");
    let comma = if inner.trim_start().starts_with('}') { "" } else { "," };
    format!("{{\"resultType\":\"complete\"{comma}{inner}")
}

pub fn notification(method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}")
}

pub fn failure(id: &str, code: i64, message: &str) -> Reply {
    failure_with(id, (code, message), None)
}

fn failure_with(id: &str, (code, message): (i64, &str), data: Option<&str>) -> Reply {
    let data = data.map(|data| format!(",\"data\":{data}")).unwrap_or_default();
    let message = json!(message);
    failure_of(id, &format!("{{\"code\":{code},\"message\":{message}{data}}}"))
}

fn failure_of(id: &str, error: &str) -> Reply {
    Reply { body: Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}")), status: 200 }
}

fn success(id: &str, result: &str) -> Reply {
    Reply { body: Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")), status: 200 }
}

fn silence() -> Reply {
    Reply { body: None, status: 202 }
}

impl Reply {
    pub fn with_status(self, status: u16) -> Reply {
        Reply { status, ..self }
    }
}

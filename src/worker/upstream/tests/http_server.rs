//! An HTTP server in this process: it keeps every request and answers as the test says.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::watch;

/// One request as seen.
#[derive(Clone, Debug)]
pub(in crate::worker) struct Seen {
    pub http: String,
    pub headers: axum::http::HeaderMap,
    pub body: Value,
}

impl Seen {
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or("")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// A JSON answer to this request.
    pub fn result(&self, result: Value) -> Response {
        json_body(200, json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}))
    }

    pub fn error(&self, status: u16, code: i64, message: &str) -> Response {
        json_body(status, json!({"jsonrpc": "2.0", "id": self.body["id"], "error": {"code": code, "message": message}}))
    }
}

#[derive(Clone)]
struct Shared {
    seen: watch::Sender<Vec<Seen>>,
    handler: Arc<Mutex<Handler>>,
    streams_wait: watch::Sender<bool>,
}

type Handler = Arc<dyn Fn(&Seen) -> Response + Send + Sync>;

pub(in crate::worker) struct Server {
    pub url: String,
    seen: watch::Sender<Vec<Seen>>,
    handler: Arc<Mutex<Handler>>,
    streams_wait: watch::Sender<bool>,
}

impl Server {
    pub async fn start(handler: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = watch::Sender::new(Vec::new());
        let handler: Arc<Mutex<Handler>> = Arc::new(Mutex::new(Arc::new(handler)));
        let streams_wait = watch::Sender::new(false);
        let shared = Shared { seen: seen.clone(), handler: handler.clone(), streams_wait: streams_wait.clone() };
        let app = axum::Router::new().fallback(serve).with_state(shared);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, seen, handler, streams_wait }
    }

    /// Lets a GET wait for its answer from now on, or no more.
    pub fn let_streams_wait(&self, wait: bool) {
        self.streams_wait.send_replace(wait);
    }

    /// Answers differently from now on.
    pub fn change(&self, handler: impl Fn(&Seen) -> Response + Send + Sync + 'static) {
        *self.handler.lock().unwrap() = Arc::new(handler);
    }

    pub fn seen(&self, method: &str) -> Vec<Seen> {
        self.seen.borrow().iter().filter(|seen| seen.method() == method).cloned().collect()
    }

    /// Waits until such a request has come.
    pub async fn wait_for(&self, wanted: impl Fn(&Seen) -> bool) -> Seen {
        let mut receiver = self.seen.subscribe();
        let all = super::soon(receiver.wait_for(|all| all.iter().any(&wanted))).await.unwrap();
        all.iter().find(|seen| wanted(seen)).unwrap().clone()
    }
}

async fn serve(State(shared): State<Shared>, request: Request) -> Result<Response, Infallible> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let request = Seen { http: parts.method.to_string(), headers: parts.headers, body };
    shared.seen.send_modify(|all| all.push(request.clone()));
    if request.http == "GET" {
        let _ = shared.streams_wait.subscribe().wait_for(|wait| !wait).await;
    }
    let handler = shared.handler.lock().unwrap().clone();
    Ok(handler(&request))
}

pub(in crate::worker) fn empty(status: u16) -> Response {
    Response::builder().status(status).body(Body::empty()).unwrap()
}

pub(in crate::worker) fn json_body(status: u16, body: Value) -> Response {
    let response = Response::builder().status(status).header("content-type", "application/json; charset=utf-8");
    response.body(Body::from(body.to_string())).unwrap()
}

/// How an event stream ends after its text.
pub(in crate::worker) enum Ending {
    Cleanly,
    /// The connection is cut.
    Cut,
    /// It stays open.
    Never,
}

pub(in crate::worker) fn events(text: String, ending: Ending) -> Response {
    let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from(text))]);
    let rest = match ending {
        Ending::Cleanly => stream::empty().boxed(),
        Ending::Cut => stream::once(async {
            // A body that is not ready lets the server flush what it has.
            tokio::task::yield_now().await;
            Err(std::io::Error::other("cut"))
        })
        .boxed(),
        Ending::Never => stream::pending().boxed(),
    };
    let response = Response::builder().status(200).header("content-type", "text/event-stream");
    response.body(Body::from_stream(first.chain(rest))).unwrap()
}

/// What every legacy server here answers beside its calls.
pub(in crate::worker) fn legacy(seen: &Seen, session: &str) -> Option<Response> {
    match (seen.http.as_str(), seen.method()) {
        ("POST", "server/discover") => Some(seen.error(400, -32000, "Bad Request: Server not initialized")),
        ("POST", "initialize") => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "legacy"}});
            let mut response = seen.result(result);
            response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
            Some(response)
        }
        ("POST", _) if seen.header("mcp-session-id") != session => Some(seen.error(404, -32600, "Session not found")),
        ("POST", "tools/list") => Some(seen.result(json!({"tools": [{"name": "t"}]}))),
        ("POST", method) if method.starts_with("notifications/") => Some(empty(202)),
        ("DELETE", _) => Some(empty(204)),
        ("GET", _) => Some(empty(405)),
        _ => None,
    }
}

/// What every modern server here answers beside its calls.
pub(in crate::worker) fn modern(seen: &Seen) -> Option<Response> {
    match seen.method() {
        "server/discover" => Some(seen.result(json!({"resultType": "complete",
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}))),
        "tools/list" => Some(seen.result(json!({"resultType": "complete", "tools": [{"name": "t"}],
            "ttlMs": 0, "cacheScope": "private"}))),
        "" => Some(empty(405)),
        _ => None,
    }
}

//! The Streamable HTTP transport: sessions with `Mcp-Session-Id` for legacy revisions, stateless POST with checked
//! headers for 2026-07-28. Streams cannot be resumed, and no event carries an id.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response as HttpResponse};
use futures_util::stream;
use serde_json::json;
use tokio::sync::mpsc;

use crate::protocol::{self, MODERN, Message, Reply};
use crate::server::{Caller, Running, Server};
use crate::{Era, Response};

/// The server as HTTP shows it.
pub struct Face {
    pub server: Arc<Server>,
    pub response: Response,
    pub sessionless: bool,
}

struct Endpoint {
    face: Face,
    sessions: Mutex<HashMap<String, Arc<Running>>>,
}

/// Serves until the process ends.
pub async fn serve(face: Face, port: u16) -> anyhow::Result<()> {
    let endpoint = Arc::new(Endpoint { face, sessions: Mutex::default() });
    let router = Router::new().route("/mcp", axum::routing::any(answer)).with_state(endpoint);
    listen(router, port).await
}

/// Binds, prints the readiness line and serves a router.
pub async fn listen(router: Router, port: u16) -> anyhow::Result<()> {
    use axum::serve::ListenerExt;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}

async fn answer(
    State(endpoint): State<Arc<Endpoint>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> HttpResponse<Body> {
    let session = header(&headers, "mcp-session-id").map(str::to_owned);
    match method {
        Method::POST => endpoint.post(&headers, session, body).await,
        Method::GET => endpoint.get(session),
        Method::DELETE => {
            let removed = session.and_then(|session| endpoint.sessions.lock().unwrap().remove(&session));
            plain(if removed.is_some() { 200 } else { 404 }, None)
        }
        _ => plain(405, None),
    }
}

impl Endpoint {
    async fn post(
        self: &Arc<Endpoint>,
        headers: &HeaderMap,
        session: Option<String>,
        body: Bytes,
    ) -> HttpResponse<Body> {
        let text = String::from_utf8_lossy(&body).into_owned();
        let message = match Message::parse(&text) {
            Ok(message) => message,
            Err(refusal) => return plain(refusal.status, refusal.body),
        };
        let params = message.params();
        let era = self.face.server.options.era;
        let modern = era != Era::Legacy && params.modern_version().is_some() || era == Era::Modern;
        let id = message.id.map_or("null", |id| id.get());
        if modern {
            if let Some(refusal) = refuse_headers(headers, &message) {
                return plain(refusal.status, refusal.body);
            }
            return self.run(text.clone(), headers, Work { running: Arc::default(), modern, session: None }).await;
        }
        let running = match (&session, message.method()) {
            (_, "initialize") => {
                let running = Arc::<Running>::default();
                let name = (!self.face.sessionless).then(|| uuid::Uuid::now_v7().simple().to_string());
                if let Some(name) = &name {
                    self.sessions.lock().unwrap().insert(name.clone(), running.clone());
                }
                return self.run(text.clone(), headers, Work { running, modern, session: name }).await;
            }
            _ if self.face.sessionless => Arc::default(),
            (None, _) => {
                let refusal = protocol::failure(id, -32000, "Bad Request: Server not initialized");
                return plain(400, refusal.body);
            }
            (Some(session), _) => match self.sessions.lock().unwrap().get(session) {
                Some(running) => running.clone(),
                None => return plain(404, protocol::failure(id, -32001, "Session not found").body),
            },
        };
        self.run(text.clone(), headers, Work { running, modern, session }).await
    }

    /// Runs one message on a task of its own: a legacy client that leaves cancels nothing.
    async fn run(&self, text: String, headers: &HeaderMap, work: Work) -> HttpResponse<Body> {
        let (notify, notifications) = mpsc::unbounded_channel();
        let (done, reply) = tokio::sync::oneshot::channel();
        let server = self.face.server.clone();
        let headers = headers_as_json(headers);
        let streams = self.streams(&text);
        let Work { running, modern, session } = work;
        let leaving = modern.then(|| CancelOnDrop(running.clone()));
        if let Ok(Message { id: Some(id), .. }) = Message::parse(&text) {
            running.begin(id.get());
        }
        tokio::spawn(async move {
            // Parsed before; the text came in unchanged.
            let Ok(message) = Message::parse(&text) else { return };
            let caller = Caller { notify, running: &running, headers: &headers };
            let reply = protocol::handle(&server, &message, &caller).await;
            if let Some(id) = message.id {
                running.end(id.get());
            }
            let _ = done.send(reply);
        });
        if streams {
            return event_stream(Events { notifications, reply: Some(reply), leaving }, session);
        }
        let reply = reply.await.unwrap_or(Reply { body: None, status: 500 });
        drop(leaving);
        with_session(plain(reply.status, reply.body), session)
    }

    fn streams(&self, text: &str) -> bool {
        let Ok(message) = Message::parse(text) else { return false };
        match self.face.response {
            _ if !message.is_request() => false,
            _ if message.method() == "subscriptions/listen" => true,
            Response::Json => false,
            Response::Sse => true,
            Response::Auto => {
                let params = message.params();
                message.method() == "tools/call"
                    && (params.meta.contains_key("progressToken")
                        || params.name.is_some_and(|name| name.starts_with("slow") || name == "ask"))
            }
        }
    }

    /// The stream a legacy session hears news on.
    fn get(&self, session: Option<String>) -> HttpResponse<Body> {
        let known = session.is_some_and(|session| self.sessions.lock().unwrap().contains_key(&session));
        if self.face.server.options.era == Era::Modern || self.face.sessionless {
            return plain(405, None);
        }
        if !known {
            return plain(404, None);
        }
        let (notify, notifications) = mpsc::unbounded_channel();
        let mut changes = self.face.server.tools_changed.subscribe();
        tokio::spawn(async move {
            while changes.recv().await.is_ok() {
                let news = protocol::notification("notifications/tools/list_changed", "{}");
                if notify.send(news).is_err() {
                    return;
                }
            }
        });
        event_stream(Events { notifications, reply: None, leaving: None }, None)
    }
}

struct Work {
    running: Arc<Running>,
    modern: bool,
    session: Option<String>,
}

/// In 2026-07-28 a closed response stream is the cancellation.
struct CancelOnDrop(Arc<Running>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel_all();
    }
}

/// What one response stream still has to say.
struct Events {
    notifications: mpsc::UnboundedReceiver<String>,
    reply: Option<tokio::sync::oneshot::Receiver<Reply>>,
    leaving: Option<CancelOnDrop>,
}

impl Events {
    async fn next(&mut self) -> Option<String> {
        // The sender lives as long as the run: once it is gone, everything but the reply has been said.
        if let Some(notification) = self.notifications.recv().await {
            return Some(notification);
        }
        let reply = self.reply.take()?.await.ok()?;
        self.leaving = None;
        reply.body
    }
}

fn event_stream(events: Events, session: Option<String>) -> HttpResponse<Body> {
    let frames = stream::unfold(events, |mut events| async move {
        let message = events.next().await?;
        Some((Ok::<_, Infallible>(format!("event: message\ndata: {message}\n\n")), events))
    });
    let mut response = HttpResponse::new(Body::from_stream(frames));
    response.headers_mut().insert("content-type", axum::http::HeaderValue::from_static("text/event-stream"));
    with_session(response, session)
}

fn refuse_headers(headers: &HeaderMap, message: &Message<'_>) -> Option<Reply> {
    let params = message.params();
    let id = message.id.map_or("null", |id| id.get());
    let refuse =
        |what: &str| Some(protocol::failure(id, -32020, &format!("{what} differs from the body")).with_status(400));
    // An unsupported revision is told as such by the protocol, if header and envelope agree.
    if header(headers, "mcp-protocol-version") != params.modern_version().or(Some(MODERN)) {
        return refuse("MCP-Protocol-Version");
    }
    if header(headers, "mcp-method") != Some(message.method()) {
        return refuse("Mcp-Method");
    }
    if message.method() == "tools/call" && header(headers, "mcp-name") != params.name.as_deref() {
        return refuse("Mcp-Name");
    }
    None
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn headers_as_json(headers: &HeaderMap) -> String {
    let pairs = headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), json!(String::from_utf8_lossy(value.as_bytes()))));
    serde_json::Value::Object(pairs.collect()).to_string()
}

fn with_session(mut response: HttpResponse<Body>, session: Option<String>) -> HttpResponse<Body> {
    if let Some(session) = session.and_then(|session| session.parse().ok()) {
        response.headers_mut().insert("mcp-session-id", session);
    }
    response
}

fn plain(status: u16, body: Option<String>) -> HttpResponse<Body> {
    let mut response = HttpResponse::new(Body::from(body.unwrap_or_default()));
    *response.status_mut() = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert("content-type", axum::http::HeaderValue::from_static("application/json"));
    response
}

//! The two HTTP endpoints of 2024-11-05, on one path: a GET is the stream of a session, and its first event says where
//! messages are POSTed to; every answer comes on the stream. The session ends with its stream, and belongs to the process
//! that the stream is open to. Authenticates nobody and checks no Host or Origin: the guard in front of it does.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::mpsc;

use super::super::call::Hold;
use super::super::connection::{Connection, Heads, Opening, Outgoing};
use super::super::face::Face;
use super::super::reject::{RpcError, code};
use super::super::stream::sse;
use super::super::{frame, headers};
use super::body::{is_json, read};
use super::reply::rpc;
use super::sessions::{foreign_session, unknown_session};
use super::spans;
use crate::model::principal::Principal;

/// A stream on which nobody has sent `initialize` by then is closed.
const HELLO_WITHIN: Duration = Duration::from_secs(60);
/// The parameter of the second endpoint that names the stream.
const STREAM: &str = "stream";

/// The routes at `path`. Requests must carry their [`Principal`] as an extension.
pub fn router(face: Arc<Face>, path: &str) -> Router {
    let pairs = Arc::new(Pairs { face, path: path.to_owned(), open: Mutex::default() });
    let open = |State(pairs): State<Arc<Pairs>>, request: Request| async move { pairs.open(&request) };
    let post = |State(pairs): State<Arc<Pairs>>, request: Request| async move { pairs.post(request).await };
    Router::new().route(path, get(open).post(post)).with_state(pairs)
}

/// The streams that are open to this process.
struct Pairs {
    face: Arc<Face>,
    path: String,
    open: Mutex<HashMap<String, Arc<Connection>>>,
}

impl Pairs {
    /// Opens a stream.
    fn open(self: &Arc<Self>, request: &Request) -> Response {
        let Some(principal) = request.extensions().get::<Principal>().cloned() else {
            return StatusCode::UNAUTHORIZED.into_response();
        };
        // Whoever knows it may send, if it is who opened the stream: nobody can guess it.
        let name = hex::encode(crate::engine::entropy());
        let (connection, inbox, announcing) = Opening::new(&self.face, principal, false).announce();
        self.entries().insert(name.clone(), connection.clone());
        let first = format!("event: endpoint\ndata: {}?{STREAM}={name}\n\n", self.path);
        let closing = Closing { pairs: self.clone(), name, connection: connection.clone(), announcing };
        let streaming = Streaming {
            face: self.face.clone(),
            connection,
            inbox,
            first: Some(first),
            rest: Vec::new().into_iter(),
            hold: None,
            hello_until: tokio::time::Instant::now() + HELLO_WITHIN,
            _closing: closing,
        };
        let stream = futures_util::stream::unfold(streaming, |mut streaming| async move {
            let chunk = streaming.next().await?;
            Some((Ok::<_, Infallible>(chunk), streaming))
        });
        spans::stream(&self.face, request.headers(), sse(Body::from_stream(stream)))
    }

    /// Takes a message in; what there is to say to it comes on the stream.
    async fn post(&self, request: Request) -> Response {
        let Some(principal) = request.extensions().get::<Principal>().cloned() else {
            return StatusCode::UNAUTHORIZED.into_response();
        };
        let (parts, body) = request.into_parts();
        let named = stream_of(&parts.uri).and_then(|name| self.entries().get(name).cloned());
        let Some(connection) = named else { return unknown_session() };
        let owner = &connection.principal;
        if owner.subject != principal.subject || owner.namespace != principal.namespace {
            return foreign_session();
        }
        if !is_json(&parts.headers) {
            let error = RpcError::new(code::INVALID_REQUEST, "the Content-Type must be application/json");
            return rpc(415, None, &error);
        }
        let bytes = match read(body, &self.face.settings).await {
            Ok(bytes) => bytes,
            Err(refusal) => return *refusal,
        };
        connection.take(&bytes, heads(&parts.headers)).await;
        (StatusCode::ACCEPTED, "Accepted").into_response()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stream_of(uri: &Uri) -> Option<&str> {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(name, _)| *name == STREAM).map(|(_, value)| value)
}

fn heads(map: &HeaderMap) -> Heads {
    let keys = map.get_all(headers::IDEMPOTENCY_KEY).iter().map(|value| value.as_bytes().to_vec());
    Heads { keys: keys.collect(), trace: headers::trace(map) }
}

struct Streaming {
    face: Arc<Face>,
    connection: Arc<Connection>,
    inbox: mpsc::Receiver<Outgoing>,
    first: Option<String>,
    hold: Option<Hold>,
    /// What is left of a long message.
    rest: std::vec::IntoIter<Bytes>,
    hello_until: tokio::time::Instant,
    _closing: Closing,
}

impl Streaming {
    /// The next piece to write.
    async fn next(&mut self) -> Option<Bytes> {
        match self.rest.next() {
            Some(piece) => Some(piece),
            None => self.told().await.map(Bytes::from),
        }
    }

    /// What comes next. What was written before counts as written once this is asked for.
    async fn told(&mut self) -> Option<String> {
        if let Some(hold) = self.hold.take() {
            hold.written();
        }
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let keep_alive = Duration::from_millis(self.face.settings.keep_alive_ms.max(1));
        let is_opened = self.connection.is_opened();
        tokio::select! {
            biased;
            () = self.connection.ended() => None,
            outgoing = self.inbox.recv() => {
                let Outgoing { line, mut rest, hold } = outgoing?;
                self.hold = hold;
                let mut event = String::new();
                if rest.is_empty() {
                    frame::event(&mut event, None, line.trim_end());
                } else {
                    frame::event_head(&mut event, None, &line);
                    // Its own line break ends the line, this one the event.
                    rest.push(Bytes::from_static(b"\n"));
                    self.rest = rest.into_iter();
                }
                Some(event)
            }
            () = self.face.draining.cancelled() => None,
            () = tokio::time::sleep_until(self.hello_until), if !is_opened => None,
            () = tokio::time::sleep(keep_alive) => Some(frame::KEEP_ALIVE.to_owned()),
        }
    }
}

/// Ends a session with its stream, however that ends.
struct Closing {
    pairs: Arc<Pairs>,
    name: String,
    connection: Arc<Connection>,
    announcing: tokio::task::JoinHandle<()>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.announcing.abort();
        self.pairs.entries().remove(&self.name);
        // As with any connection that is cut: the callers leave, and each tool's policy says what that means.
        self.connection.read_out.cancel();
        self.connection.left.cancel();
        let connection = self.connection.clone();
        self.pairs.face.engine.spawn(async move { connection.close().await });
    }
}

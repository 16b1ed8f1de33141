//! Streamable HTTP: one endpoint for every revision. A POST carries one message (or an old batch) and is answered as
//! JSON or as an event stream; GET streams notifications to legacy sessions; DELETE ends one. Authenticates nobody and
//! checks no Host or Origin: the guard in front of it does.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::admit::{self, Admitted, Body as Params, Entered};
use super::answer::{self, Reply};
use super::call::{Begun, Caller};
use super::envelope::Message;
use super::era::{self, Ruling};
use super::face::{Face, Settings};
use super::headers::{self, Field};
use super::id::Id;
use super::reject::{RpcError, Source, code, http_status};
use super::session::{InFlight, Lookup, Place, Session};
use super::stream;
use super::{frame, method};
use crate::engine::catalog::ResponseMode;
use crate::model::principal::Principal;
use crate::model::revision::{Era, Revision};

/// The routes of the endpoint at `path`, and below it at each namespace's name with `namespace_paths`. Requests must
/// carry their [`Principal`] as an extension.
pub fn router(face: Arc<Face>, path: &str, namespace_paths: bool) -> Router {
    let mut router = Router::new().route(path, any(|State(face), request: Request| endpoint(face, None, request)));
    if namespace_paths {
        let named =
            |State(face), Path(namespace): Path<String>, request: Request| endpoint(face, Some(namespace), request);
        router = router.route(&format!("{path}/{{namespace}}"), any(named));
    }
    router.with_state(face)
}

async fn endpoint(face: Arc<Face>, namespace: Option<String>, request: Request) -> Response {
    let Some(principal) = request.extensions().get::<Principal>().cloned() else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    // A namespace in the path that is not the credential's does not exist for the caller.
    if namespace.is_some_and(|namespace| namespace != principal.namespace) {
        let words = "the path names a namespace that is not the one of the credential";
        return rpc(404, None, &RpcError::new(code::INVALID_REQUEST, words));
    }
    let (parts, body) = request.into_parts();
    match parts.method {
        Method::POST => post(face, principal, &parts.headers, body).await,
        Method::GET => get(&face, &principal, &parts.headers),
        Method::DELETE => delete(&face, &principal, &parts.headers),
        _ => not_allowed(),
    }
}

async fn post(face: Arc<Face>, principal: Principal, headers: &HeaderMap, body: Body) -> Response {
    if let Err(refusal) = check_media_types(headers) {
        return *refusal;
    }
    let bytes = match read(body, &face.settings).await {
        Ok(bytes) => bytes,
        Err(refusal) => return *refusal,
    };
    let entered = match admit::http(&bytes, &face.settings.envelope, headers) {
        Ok(entered) => entered,
        Err(refusal) => return rpc(refusal.rejection.status, refusal.id.as_ref(), &refusal.rejection.error),
    };
    match entered {
        Entered::One(admitted) => {
            let Admitted { message, ruling, body } = *admitted;
            let post = Post { face, principal, headers };
            match ruling {
                Ruling::Modern { revision } => post.modern(message, body, revision).await,
                Ruling::Legacy { opens: true, .. } => post.open(message, body).await,
                Ruling::Legacy { .. } => post.legacy(message, body).await,
            }
        }
        Entered::Batch(items) => {
            let session = match session_of(&face, &principal, headers) {
                Ok(session) => session,
                Err(refusal) => return *refusal,
            };
            if let Err(rejection) = era::decide_batch(Some(session.revision)) {
                return rpc(rejection.status, None, &rejection.error);
            }
            let post = Post { face, principal, headers };
            post.batch(&items, session).await
        }
    }
}

/// The whole body, within its bounds of size and time.
async fn read(mut body: Body, settings: &Settings) -> Result<Bytes, Box<Response>> {
    let bytes_max = settings.envelope.bytes_max;
    let too_long = |body: Body| {
        tokio::spawn(drain(body));
        let words = format!("the body is longer than {bytes_max} bytes");
        rpc(413, None, &RpcError::new(code::INVALID_REQUEST, words))
    };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(Box::new(too_long(body)));
    }
    let read = Limited::new(&mut body, bytes_max).collect();
    let refusal = match tokio::time::timeout(Duration::from_millis(settings.body_timeout_ms), read).await {
        Ok(Ok(collected)) => return Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => too_long(body),
        // The client left in the middle of its own message.
        Ok(Err(_)) => StatusCode::BAD_REQUEST.into_response(),
        Err(_) => rpc(408, None, &RpcError::new(code::INVALID_REQUEST, "the body did not come in time")),
    };
    Err(Box::new(refusal))
}

/// How long a client may go on sending a body that is refused.
const DRAIN: Duration = Duration::from_secs(5);

/// Takes in what is left and keeps nothing of it: a client that is cut while it sends never reads why.
async fn drain(mut body: Body) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    // A client that is not done by then is cut.
    let _ = tokio::time::timeout(DRAIN, rest).await;
}

/// The body has to be JSON, and the client has to read both forms of an answer (specification, Streamable HTTP).
fn check_media_types(headers: &HeaderMap) -> Result<(), Box<Response>> {
    let is_json = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| {
        value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    });
    if !is_json {
        let error = RpcError::new(code::INVALID_REQUEST, "the Content-Type must be application/json");
        return Err(Box::new(rpc(415, None, &error)));
    }
    let (mut json, mut sse) = (false, false);
    for value in headers.get_all(header::ACCEPT) {
        for range in value.to_str().unwrap_or_default().split(',') {
            match range.split(';').next().unwrap_or_default().trim() {
                "*/*" => (json, sse) = (true, true),
                "application/json" | "application/*" => json = true,
                "text/event-stream" | "text/*" => sse = true,
                _ => {}
            }
        }
    }
    if json && sse {
        return Ok(());
    }
    let words = "the Accept header must list application/json and text/event-stream";
    Err(Box::new(rpc(406, None, &RpcError::new(code::INVALID_REQUEST, words))))
}

struct Post<'h> {
    face: Arc<Face>,
    principal: Principal,
    headers: &'h HeaderMap,
}

impl Post<'_> {
    async fn modern(self, message: Message<'_>, body: Params<'_>, revision: Revision) -> Response {
        let Message::Request { id, method, .. } = &message else {
            return StatusCode::ACCEPTED.into_response();
        };
        match body {
            Params::Call(call) => {
                let name = call.meta.protocol.client_info.and_then(method::client_name).unwrap_or_default();
                let caller = self.caller(name, Era::Modern);
                let token = call.meta.progress_token.clone().map(Id::into_owned);
                let begun = self.face.call(&call, &caller, None).await;
                self.answer_call(id, begun, Exchange { era: Era::Modern, revision, token, _place: None }).await
            }
            Params::Other { params, .. } => {
                let namespace = self.principal.namespace.clone();
                let answer = self.face.modern_method(method, &params, &namespace).await;
                respond(Era::Modern, id, answer)
            }
        }
    }

    /// `initialize`.
    async fn open(self, message: Message<'_>, body: Params<'_>) -> Response {
        let Message::Request { id, .. } = &message else {
            return rpc(400, None, &RpcError::new(code::INVALID_REQUEST, "initialize must be a request"));
        };
        let Params::Other { params, .. } = body else {
            return rpc(400, Some(id), &RpcError::new(code::INVALID_REQUEST, "initialize carries no call"));
        };
        let hello = match method::Hello::read(&params) {
            Ok(hello) => hello,
            Err(error) => return respond(Era::Legacy, id, Err((Source::Handler, error))),
        };
        let now_ms = self.face.engine.clock().now_ms();
        if let Err(wait_ms) = self.face.opening.lock().unwrap_or_else(PoisonError::into_inner).take(now_ms) {
            return too_many(id, "sessions are being opened too fast; try again later", wait_ms);
        }
        let session = Session::new(hello.revision, hello.client_name, self.principal, now_ms);
        let result = self.face.initialize_result(hello.revision).await;
        let Some(session_id) = self.face.sessions.open(session, now_ms) else {
            return too_many(id, "too many sessions are open; try again later", SESSION_RETRY_MS);
        };
        let mut response = respond(Era::Legacy, id, Ok(result.into()));
        if let Ok(value) = HeaderValue::from_str(&session_id) {
            response.headers_mut().insert(headers::SESSION_ID, value);
        }
        response
    }

    async fn legacy(self, message: Message<'_>, body: Params<'_>) -> Response {
        let session = match session_of(&self.face, &self.principal, self.headers) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        match (&message, body) {
            (Message::Request { id, .. }, Params::Call(call)) => {
                let Some(place) = session.in_flight.enter(id, self.face.settings.in_flight_max) else {
                    let error = answer::overload("too many calls are in flight in this session".into());
                    return respond(Era::Legacy, id, Err((Source::Handler, error)));
                };
                let place = Occupied { session: session.clone(), place };
                let caller = self.caller(session.client_name.clone().unwrap_or_default(), Era::Legacy);
                let token = call.meta.progress_token.clone().map(Id::into_owned);
                let begun = self.face.call(&call, &caller, Some(place.place.flight.clone())).await;
                let exchange = Exchange { era: Era::Legacy, revision: session.revision, token, _place: Some(place) };
                self.answer_call(id, begun, exchange).await
            }
            (Message::Request { id, method, .. }, Params::Other { params, .. }) => {
                let answer = self.face.legacy_method(method, &params, &self.principal.namespace).await;
                respond(Era::Legacy, id, answer)
            }
            (Message::Notification { method, .. }, Params::Other { params, .. }) => {
                method::notified(&session.in_flight, method, &params);
                StatusCode::ACCEPTED.into_response()
            }
            _ => StatusCode::ACCEPTED.into_response(),
        }
    }

    /// An array of messages (up to 2025-03-26): answered as one array, in the order of the requests.
    async fn batch(self, items: &[&serde_json::value::RawValue], session: Arc<Session>) -> Response {
        let answers = items.iter().map(|item| self.batch_item(item, &session));
        let answers: Vec<String> = futures_util::future::join_all(answers).await.into_iter().flatten().collect();
        if answers.is_empty() {
            return StatusCode::ACCEPTED.into_response();
        }
        json(200, format!("[{}]", answers.join(",")))
    }

    async fn batch_item(&self, item: &serde_json::value::RawValue, session: &Arc<Session>) -> Option<String> {
        let mut out = String::new();
        let admitted = match admit::batch_element(item, session.revision) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                frame::error(&mut out, refusal.id.as_ref(), &refusal.rejection.error);
                return Some(out);
            }
        };
        match (&admitted.message, &admitted.body) {
            (Message::Request { id, .. }, Params::Call(call)) => {
                let caller = self.caller(session.client_name.clone().unwrap_or_default(), Era::Legacy);
                let Some(place) = session.in_flight.enter(id, self.face.settings.in_flight_max) else {
                    let error = answer::overload("too many calls are in flight in this session".into());
                    frame::error(&mut out, Some(id), &error);
                    return Some(out);
                };
                let place = Occupied { session: session.clone(), place };
                let begun = self.face.call(call, &caller, Some(place.place.flight.clone())).await;
                let answered = stream::end_of(begun).await;
                stream::push_reply(&mut out, id, &answered.reply);
                answered.written();
            }
            (Message::Request { id, method, .. }, Params::Other { params, .. }) => {
                match self.face.legacy_method(method, params, &self.principal.namespace).await {
                    Ok(result) => frame::result(&mut out, id, &result),
                    Err((_, error)) => frame::error(&mut out, Some(id), &error),
                }
            }
            (Message::Notification { method, .. }, Params::Other { params, .. }) => {
                method::notified(&session.in_flight, method, params);
                return None;
            }
            _ => return None,
        }
        Some(out)
    }

    fn caller(&self, name: String, era: Era) -> Caller {
        Caller {
            principal: self.principal.clone(),
            name,
            era,
            key_headers: self
                .headers
                .get_all(headers::IDEMPOTENCY_KEY)
                .iter()
                .map(|value| value.as_bytes().to_vec())
                .collect(),
        }
    }

    /// JSON when the answer comes soon and alone, else a stream.
    async fn answer_call(self, id: &Id<'_>, begun: Begun, exchange: Exchange) -> Response {
        let mut conversation = match begun {
            Begun::Answer(answered) => match answered.response.unwrap_or(self.face.settings.response) {
                ResponseMode::Sse => return stream::of_answer(&self.face, id, answered, exchange),
                ResponseMode::Auto | ResponseMode::Json => return stream::json_answer(id, answered, exchange.era),
            },
            Begun::Waiting(conversation) => conversation,
        };
        let mode = conversation.response.unwrap_or(self.face.settings.response);
        let patience = match mode {
            ResponseMode::Sse => None,
            ResponseMode::Auto => Some(self.face.settings.json_within_ms),
            ResponseMode::Json => Some(u64::MAX),
        };
        let follows_progress = exchange.token.is_some() && mode == ResponseMode::Auto;
        let mut early = None;
        if let Some(patience_ms) = patience {
            match stream::soon(&mut conversation, patience_ms, follows_progress).await {
                stream::Soon::Answer(answered) => return stream::json_answer(id, *answered, exchange.era),
                stream::Soon::Progress(progress) => early = Some(progress),
                stream::Soon::NotYet => {}
            }
        }
        stream::of_conversation(&self.face, id, stream::Talk { conversation, early, exchange })
    }
}

/// What the answer to a call has to fit.
pub(super) struct Exchange {
    /// The era of the request.
    pub era: Era,
    /// The revision it is answered in.
    pub revision: Revision,
    /// Where progress is reported to.
    pub token: Option<Id<'static>>,
    /// The request's entry among those in flight.
    pub _place: Option<Occupied>,
}

/// A place among the requests in flight; left when dropped.
pub(super) struct Occupied {
    session: Arc<Session>,
    place: Place,
}

impl Drop for Occupied {
    fn drop(&mut self) {
        let in_flight: &InFlight = &self.session.in_flight;
        in_flight.leave(&self.place);
    }
}

/// The stream of a legacy session for what concerns no request.
fn get(face: &Arc<Face>, principal: &Principal, headers: &HeaderMap) -> Response {
    let version = Field::of(headers, headers::PROTOCOL_VERSION);
    match era::decide_stream(version, headers.contains_key(headers::SESSION_ID)) {
        Ok(_) => {}
        Err(rejection) if rejection.status == 405 => return not_allowed(),
        Err(rejection) => return rpc(rejection.status, None, &rejection.error),
    }
    match session_of(face, principal, headers) {
        Ok(session) => stream::of_session(face, &session),
        Err(refusal) => *refusal,
    }
}

fn delete(face: &Face, principal: &Principal, headers: &HeaderMap) -> Response {
    let version = Field::of(headers, headers::PROTOCOL_VERSION);
    match era::decide_stream(version, headers.contains_key(headers::SESSION_ID)) {
        Ok(_) => {}
        Err(rejection) if rejection.status == 405 => return not_allowed(),
        Err(rejection) => return rpc(rejection.status, None, &rejection.error),
    }
    let id = match Field::of(headers, headers::SESSION_ID) {
        Field::Value(id) => id,
        Field::Absent | Field::Invalid => return unreadable_session(),
    };
    match face.sessions.find(id, principal, face.engine.clock().now_ms()) {
        Lookup::Found(_) => face.sessions.close(id),
        Lookup::Unknown => {}
        Lookup::Foreign => return foreign_session(),
    }
    StatusCode::NO_CONTENT.into_response()
}

fn session_of(face: &Face, principal: &Principal, headers: &HeaderMap) -> Result<Arc<Session>, Box<Response>> {
    let id = match Field::of(headers, headers::SESSION_ID) {
        Field::Value(id) => id,
        Field::Absent => {
            let words = "the header Mcp-Session-Id is missing; send initialize first";
            return Err(Box::new(rpc(400, None, &RpcError::new(code::INVALID_REQUEST, words))));
        }
        Field::Invalid => return Err(Box::new(unreadable_session())),
    };
    match face.sessions.find(id, principal, face.engine.clock().now_ms()) {
        Lookup::Found(session) => Ok(session),
        Lookup::Unknown => {
            let words = "the session is unknown or has expired; reconnect with initialize";
            Err(Box::new(rpc(404, None, &RpcError::new(SESSION_GONE, words))))
        }
        Lookup::Foreign => Err(Box::new(foreign_session())),
    }
}

/// Legacy only: the session is unknown or expired.
const SESSION_GONE: i64 = -32001;
/// Legacy only: the session is somebody else's.
const SESSION_FOREIGN: i64 = -32003;

/// When a place for a session may be free: idle ones are looked for at least so often.
const SESSION_RETRY_MS: i64 = 60_000;

/// A client that opens sessions faster than they end. The status is what proxies and clients back off for.
fn too_many(id: &Id<'_>, words: &'static str, wait_ms: i64) -> Response {
    let mut response = rpc(429, Some(id), &answer::overload(words.into()));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from((wait_ms + 999) / 1_000));
    response
}

fn unreadable_session() -> Response {
    let words = "the header Mcp-Session-Id must be there once and be plain text";
    rpc(400, None, &RpcError::new(code::INVALID_REQUEST, words))
}

fn foreign_session() -> Response {
    rpc(403, None, &RpcError::new(SESSION_FOREIGN, "the session belongs to another caller"))
}

fn not_allowed() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response()
}

fn respond(era: Era, id: &Id<'_>, answer: method::Answer) -> Response {
    let mut out = String::new();
    match answer {
        Ok(result) => {
            frame::result(&mut out, id, &result);
            json(200, out)
        }
        Err((source, error)) => {
            let status = http_status(era, source, error.code);
            frame::error(&mut out, Some(id), &error);
            json(status, out)
        }
    }
}

/// An error response.
fn rpc(status: u16, id: Option<&Id<'_>>, error: &RpcError) -> Response {
    let mut out = String::new();
    frame::error(&mut out, id, error);
    json(status, out)
}

fn json(status: u16, text: String) -> Response {
    let mut response = Response::new(Body::from(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The status of an answer to a call.
pub(super) fn status_of(reply: &Reply, era: Era) -> u16 {
    match reply {
        Reply::Result(_) | Reply::RawError(_) => 200,
        Reply::Error(error) if error.code == code::INTERNAL_ERROR => 500,
        Reply::Error(error) => http_status(era, Source::Handler, error.code),
    }
}

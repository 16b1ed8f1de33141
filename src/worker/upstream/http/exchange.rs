//! One request over HTTP and its answer: a JSON body or an event stream, resumed where the revision allows it.
//! Judges from what happened on the wire whether the request may have run; never sends it twice.

use std::borrow::Cow;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::super::asides::{self, Aside, ServerRequest, Sink, can_be_asked};
use super::super::call::{Answer, CallError};
use super::super::frames::append;
use super::super::message::{self, Incoming, LongResult};
use super::headers::{self, Given, Labels};
use super::sse::Parser;
use super::{Session, Shared};
use crate::worker::http_client::describe;

/// Room for what surrounds the result.
const ENVELOPE_BYTES: usize = 64 * 1024;
/// How long the end of an answered stream is waited for.
const DRAIN: Duration = Duration::from_millis(500);
/// The most that is read of the body of an error status.
const MAX_ERROR_BODY_BYTES: usize = 256 * 1024;

/// A request to be sent.
pub(super) struct Outgoing<'a> {
    pub id: u64,
    pub method: &'a str,
    pub name: Option<Cow<'a, str>>,
    /// Headers that repeat arguments.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub params: String,
    pub asides: Option<&'a Sink>,
}

/// What came of it.
pub(super) enum Outcome {
    /// The answer, and what came with the session that the server opened with it.
    Answered {
        answer: Answer,
        session: Given,
    },
    /// The server does not know the session and so did not look at the request.
    SessionGone,
    /// An HTTP status without a JSON-RPC error.
    Refused(StatusCode),
    Failed(CallError),
}

/// The answer that a stream is read for. No request has the id 0.
#[derive(Clone, Copy)]
struct Awaited<'a> {
    id: u64,
    asides: Option<&'a Sink>,
}

/// Where a broken stream can be taken up.
#[derive(Default)]
struct Position {
    last_event_id: Option<HeaderValue>,
    retry: Option<Duration>,
    /// Something came since the stream was last taken up.
    moved: bool,
}

impl Shared {
    /// Sends a request and waits for its answer.
    pub(super) async fn exchange(&self, session: &Session, outgoing: Outgoing<'_>) -> Outcome {
        let labels = Labels {
            method: outgoing.method,
            name: outgoing.name.as_deref(),
            revision: session.revision,
            session: Some(&session.given),
        };
        let body = message::request(outgoing.id, outgoing.method, &outgoing.params);
        let mut map = headers::for_post(&self.configured, labels);
        map.extend(outgoing.headers.iter().cloned());
        let request = self.client.post(self.url.clone()).headers(map);
        let response = match request.body(body).send().await {
            Ok(response) => response,
            Err(error) => return Outcome::Failed(self.send_error(error)),
        };
        let status = response.status();
        if !status.is_success() {
            return self.refusal(response, session).await;
        }
        let opened = headers::given(response.headers());
        let answer = match media_type(response.headers()).as_str() {
            "text/event-stream" => self.follow(response, session, &outgoing).await,
            "application/json" => self.read_json(response, outgoing.id).await,
            _ if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT => {
                Err(CallError::lost("the server accepted the request and did not answer it"))
            }
            _ => Err(CallError::lost("the server's answer is neither JSON nor an event stream")),
        };
        match answer {
            Ok(answer) => Outcome::Answered { answer, session: opened },
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Sends a notification or an answer; returns the status.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) async fn post_only(&self, session: &Session, method: &str, body: String) -> Result<StatusCode, String> {
        let labels = Labels { method, name: None, revision: session.revision, session: Some(&session.given) };
        let request = self
            .client
            .post(self.url.clone())
            .headers(headers::for_post(&self.configured, labels))
            .timeout(self.limits.request_timeout)
            .body(body);
        request.send().await.map(|response| response.status()).map_err(describe)
    }

    fn send_error(&self, error: reqwest::Error) -> CallError {
        if error.is_connect() {
            let reason = format!("it cannot be reached: {}", describe(error));
            self.mark_lost(&reason);
            CallError::not_started(reason)
        } else if error.is_builder() {
            CallError::not_started(format!("the request cannot be built: {}", describe(error)))
        } else {
            CallError::lost(format!("the connection broke before the answer: {}", describe(error)))
        }
    }

    async fn refusal(&self, response: reqwest::Response, session: &Session) -> Outcome {
        let status = response.status();
        let body = read_body(response, MAX_ERROR_BODY_BYTES).await.ok().flatten().unwrap_or_default();
        let error = json_rpc_error(&body);
        if session.given.id.is_some() {
            // The specification says 404; servers on examples of the official SDKs say 400 with a message of their own.
            let says_session = || {
                let text = error.as_ref().map(|error| message::error_parts(error).1).unwrap_or_default();
                text.to_ascii_lowercase().contains("session")
            };
            if status == StatusCode::NOT_FOUND || (status == StatusCode::BAD_REQUEST && says_session()) {
                return Outcome::SessionGone;
            }
        }
        match error {
            Some(error) => Outcome::Answered { answer: Answer::Error(error), session: Given::default() },
            None => Outcome::Refused(status),
        }
    }

    async fn read_json(&self, response: reqwest::Response, id: u64) -> Result<Answer, CallError> {
        let limit = self.limits.max_result_bytes;
        let mut body = match read_body(response, limit.saturating_add(ENVELOPE_BYTES)).await {
            Ok(Some(body)) => body,
            Ok(None) => return Ok(message::too_large(limit)),
            Err(reason) => return Err(CallError::lost(format!("the answer broke off: {reason}"))),
        };
        let found = self.take(&mut body, Awaited { id, asides: None });
        let found = found.ok_or_else(|| CallError::lost("the server's answer is not JSON-RPC"))?;
        // An error without an id is the answer all the same: HTTP says which request it belongs to.
        let unnamed = || json_rpc_error(&body).filter(|_| names_no_request(&body)).map(Answer::Error);
        found
            .or_else(|| unnamed().map(Ok))
            .unwrap_or_else(|| Err(CallError::lost("the server's answer is not that to the request")))
    }

    /// Reads the stream until the answer, taking it up again where that is possible.
    async fn follow(
        &self,
        response: reqwest::Response,
        session: &Session,
        outgoing: &Outgoing<'_>,
    ) -> Result<Answer, CallError> {
        let awaited = Awaited { id: outgoing.id, asides: outgoing.asides };
        let mut position = Position::default();
        let mut response = Some(response);
        let mut tries = 0;
        loop {
            if let Some(response) = response.take()
                && let Some(answer) = self.read_stream(response, awaited, &mut position).await
            {
                return answer;
            }
            let resumable = !session.revision.is_some_and(|revision| revision.is_modern());
            let Some(last_event_id) = position.last_event_id.clone().filter(|_| resumable) else {
                return Err(CallError::lost("the event stream ended without the answer"));
            };
            if std::mem::take(&mut position.moved) {
                tries = 0;
            }
            tries += 1;
            if tries > self.settings.resume_attempts {
                return Err(CallError::lost("the event stream ended without the answer and could not be resumed"));
            }
            let pause = position.retry.unwrap_or(self.settings.resume_delay);
            sleep(pause.min(self.settings.max_resume_delay)).await;
            match self.open_stream(session, Some(last_event_id)).await {
                Ok(resumed) if resumed.status().is_success() && is_event_stream(&resumed) => response = Some(resumed),
                Ok(refused) if refused.status().is_server_error() => {}
                Ok(refused) => {
                    let status = refused.status().as_u16();
                    return Err(CallError::lost(format!("the event stream cannot be resumed: HTTP {status}")));
                }
                Err(error) => debug!(upstream = self.name, error = describe(error), "a stream was not resumed yet"),
            }
        }
    }

    /// Opens the server's own stream, or takes up a broken one.
    pub(super) async fn open_stream(
        &self,
        session: &Session,
        last_event_id: Option<HeaderValue>,
    ) -> reqwest::Result<reqwest::Response> {
        let labels = Labels { method: "", name: None, revision: session.revision, session: Some(&session.given) };
        let mut map = headers::for_stream(&self.configured, labels);
        if let Some(id) = last_event_id {
            map.insert(headers::LAST_EVENT_ID, id);
        }
        self.client.get(self.url.clone()).headers(map).send().await
    }

    /// Reads one connection's worth of a stream; `None`: it ended without the answer.
    async fn read_stream(
        &self,
        mut response: reqwest::Response,
        awaited: Awaited<'_>,
        position: &mut Position,
    ) -> Option<Result<Answer, CallError>> {
        let limit = self.limits.max_result_bytes;
        let mut parser = Parser::new(limit.saturating_add(ENVELOPE_BYTES));
        let mut events = Vec::new();
        let mut found = None;
        while let Ok(Some(chunk)) = response.chunk().await {
            let fed = parser.feed(&chunk, &mut events);
            for mut event in events.drain(..) {
                position.moved = true;
                if event.kind.is_empty() || event.kind == "message" {
                    found = self.take(&mut event.data, awaited).flatten().or(found);
                }
            }
            if let Some(last) = parser.last_event_id().and_then(|id| HeaderValue::from_str(id).ok()) {
                position.moved |= position.last_event_id.as_ref() != Some(&last);
                position.last_event_id = Some(last);
            }
            position.retry = parser.retry().or(position.retry);
            if found.is_none() && fed.is_err() {
                // On the stream of a request the one message that may be this large is its answer.
                found = Some(Ok(message::too_large(limit)));
            }
            if found.is_some() {
                tokio::spawn(drain(response));
                return found;
            }
        }
        None
    }

    /// Reads a stream that answers no request, until it ends; returns where it can be taken up.
    pub(super) async fn read_notices(&self, response: reqwest::Response) -> Option<HeaderValue> {
        let mut position = Position::default();
        self.read_stream(response, Awaited { id: 0, asides: None }, &mut position).await;
        position.last_event_id
    }

    /// Takes in what was read, `None` when it is no message; returns the answer if it is the awaited one.
    fn take(&self, text: &mut Vec<u8>, awaited: Awaited<'_>) -> Option<Option<Result<Answer, CallError>>> {
        let messages = message::parse(text)?;
        if let Some(long) = LongResult::of(&messages, text).filter(|long| long.id == awaited.id) {
            drop(messages);
            return Some(Some(Ok(long.taken_from(std::mem::take(text)))));
        }
        let mut found = None;
        for message in messages {
            found = self.receive(message, awaited).or(found);
        }
        Some(found)
    }

    /// Takes one message; returns the answer if it is the awaited one.
    fn receive(&self, message: Incoming<'_>, awaited: Awaited<'_>) -> Option<Result<Answer, CallError>> {
        let Awaited { id, asides: sink } = awaited;
        match message {
            Incoming::Response { id: answered, answer } if answered == id => Some(Ok(answer.into())),
            Incoming::Broken { id: Some(broken) } if broken == id => {
                Some(Err(CallError::lost("the server's answer has neither result nor error")))
            }
            Incoming::Response { .. } | Incoming::Broken { .. } => {
                debug!(upstream = self.name, "the server sent an answer to another request on this stream");
                None
            }
            Incoming::Request { id, method, .. } if method == "ping" => {
                self.reply(message::response(id, &message::pong()));
                None
            }
            Incoming::Request { id, method, params } => {
                let params = params.map(ToOwned::to_owned);
                let request = ServerRequest { id: id.to_owned(), method: method.into_owned(), params };
                // On the stream of a request it belongs to that one.
                let refused = match sink {
                    Some(sink) if can_be_asked(&request.method) => {
                        asides::refused(sink.try_send(Aside::Request(request)))
                    }
                    _ => self.correlation.request(request),
                };
                if let Some(refused) = refused {
                    self.reply(message::response(&refused.id, &message::unsupported(&refused.method)));
                }
                None
            }
            Incoming::Notification { method, params } => {
                match (method.as_ref(), sink) {
                    ("notifications/progress", _) => {
                        if let Some((token, value)) = params.and_then(message::progress) {
                            match sink {
                                Some(sink) if token == id => drop(sink.try_send(Aside::Progress(value))),
                                Some(_) => {}
                                // A server may tell on its own stream how a request goes on.
                                None => self.correlation.progress(token, value),
                            }
                        }
                    }
                    ("notifications/message", Some(sink)) => drop(sink.try_send(asides::aside(&method, params))),
                    _ => self.correlation.notice(&method, params),
                }
                None
            }
        }
    }
}

/// Reads what follows the answer, normally nothing but the end, so that the connection can serve the next request.
async fn drain(mut response: reqwest::Response) {
    let reading = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _ = timeout(DRAIN, reading).await;
}

/// Reads a whole body; `None` if it is larger than `max_bytes`.
async fn read_body(mut response: reqwest::Response, max_bytes: usize) -> Result<Option<Vec<u8>>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(describe)? {
        if body.len() + chunk.len() > max_bytes {
            return Ok(None);
        }
        append(&mut body, &chunk, max_bytes);
    }
    Ok(Some(body))
}

fn names_no_request(body: &[u8]) -> bool {
    matches!(message::parse(body).as_deref(), Some([Incoming::Broken { id: None }]))
}

fn json_rpc_error(body: &[u8]) -> Option<Box<serde_json::value::RawValue>> {
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        // Only a JSON-RPC body counts: web frameworks answer with an `error` member of their own.
        #[serde(rename = "jsonrpc")]
        _version: String,
        #[serde(borrow)]
        error: &'a serde_json::value::RawValue,
    }
    let body: Body = serde_json::from_slice(body).ok()?;
    body.error.get().starts_with('{').then(|| body.error.to_owned())
}

fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    text.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

pub(super) fn is_event_stream(response: &reqwest::Response) -> bool {
    media_type(response.headers()) == "text/event-stream"
}

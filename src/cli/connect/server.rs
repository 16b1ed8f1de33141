//! The server's side of the bridge: one HTTP exchange for one message, its headers derived from the message, its answer
//! read piece by piece. Knows which session it is in; repeats nothing and decides nothing about repeats.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};

use super::line::{Kind, Line};
use crate::cli::client::Client;
use crate::cli::mcp_client::Events;
use crate::mcp::envelope::{self, Message, Outcome};
use crate::mcp::headers;
use crate::mcp::id::Id;
use crate::model::json;

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Bytes of a refusal that are read.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

/// A legacy session, as far as the server knows it.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Grows with each one.
    pub generation: u64,
    /// Its id, where the server gave one.
    pub id: Option<HeaderValue>,
    /// What was negotiated.
    pub revision: Option<String>,
    /// The server says that its list of tools may change.
    pub tells_changes: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Trouble {
    /// The server can not be reached; it has seen nothing of the message.
    Away(String),
    /// The connection broke; the message may have been taken.
    Broke(String),
    /// The server does not know the session and looked at nothing.
    SessionGone,
    /// It answered with something that is no answer of MCP: the status, and its own words.
    Refused(StatusCode, Option<String>),
}

/// The headers of a message.
pub fn headers_of(line: &Line, session: Option<&Session>) -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert("content-type", HeaderValue::from_static("application/json"));
    map.insert("accept", HeaderValue::from_static("application/json, text/event-stream"));
    let mut set = |name: &'static str, value: Option<&str>| {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&headers::encode(value)).ok()) {
            map.insert(HeaderName::from_static(name), value);
        }
    };
    if let Some(version) = &line.version {
        set(headers::PROTOCOL_VERSION, Some(version));
        set(headers::METHOD, Some(&line.method).filter(|method| !method.is_empty()).map(String::as_str));
        set(headers::NAME, line.name.as_deref());
        return map;
    }
    if let Some(session) = session.filter(|_| line.method != "initialize") {
        set(headers::PROTOCOL_VERSION, session.revision.as_deref());
        name_session(&mut map, session);
    }
    map
}

/// The headers of a GET or DELETE in a session.
pub fn headers_in(session: &Session) -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert("accept", HeaderValue::from_static("text/event-stream"));
    if let Some(revision) = session.revision.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
        map.insert(HeaderName::from_static(headers::PROTOCOL_VERSION), revision);
    }
    name_session(&mut map, session);
    map
}

fn name_session(map: &mut HeaderMap, session: &Session) {
    if let Some(id) = &session.id {
        map.insert(HeaderName::from_static(headers::SESSION_ID), id.clone());
    }
}

/// Sends a message; gives the response of an accepted one.
pub async fn post(client: &Client, line: &Line, session: Option<&Session>) -> Result<Response, Trouble> {
    let sent = client.exchange(Method::POST, headers_of(line, session), line.text.clone()).await;
    let response = sent.map_err(|error| trouble(client, &error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let named = session.is_some_and(|session| session.id.is_some()) && line.version.is_none();
    if named && status == StatusCode::NOT_FOUND && line.method != "initialize" {
        return Err(Trouble::SessionGone);
    }
    let text = whole(client, response, REFUSAL_BYTES_MAX).await.unwrap_or_default();
    Err(Trouble::Refused(status, Some(text).filter(|text| !text.is_empty())))
}

/// What a failed exchange says about the message.
pub fn trouble(client: &Client, error: &reqwest::Error) -> Trouble {
    let words = client.unreachable(error).error;
    // Before there is a connection nothing was sent; a request that can not be built is never sent.
    if error.is_connect() || error.is_builder() { Trouble::Away(words) } else { Trouble::Broke(words) }
}

/// The messages of a response, one after the other.
pub struct Messages<'c> {
    client: &'c Client,
    response: Option<Response>,
    stream: Option<Events>,
    ready: std::collections::VecDeque<String>,
}

impl<'c> Messages<'c> {
    /// Reads an event stream event by event, and any other body whole.
    pub fn of(client: &'c Client, response: Response) -> Messages<'c> {
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let stream = kind.starts_with("text/event-stream").then(Events::default);
        Messages { client, response: Some(response), stream, ready: Default::default() }
    }

    /// The next message; `None` at the end. Errors: the connection broke.
    pub async fn next(&mut self) -> Result<Option<String>, Trouble> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            let Some(mut response) = self.response.take() else { return Ok(None) };
            let Some(events) = &mut self.stream else {
                let text = whole(self.client, response, ANSWER_BYTES_MAX).await?;
                return Ok(Some(text).filter(|text| !text.trim().is_empty()));
            };
            let Some(chunk) = response.chunk().await.map_err(|error| broke(self.client, &error))? else {
                return Ok(None);
            };
            let fed = events.feed(&chunk).map_err(|failure| Trouble::Broke(failure.error))?;
            self.ready.extend(fed);
            self.response = Some(response);
        }
    }
}

async fn whole(client: &Client, mut response: Response, bytes_max: usize) -> Result<String, Trouble> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| broke(client, &error))? {
        if bytes.len() + chunk.len() > bytes_max {
            return Err(Trouble::Broke("the server's answer is too large to read".to_owned()));
        }
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).map_err(|_| Trouble::Broke("the server's answer is not UTF-8".to_owned()))
}

/// Inside of a response nothing is a failure to connect.
fn broke(client: &Client, error: &reqwest::Error) -> Trouble {
    Trouble::Broke(client.unreachable(error).error)
}

/// What a message is to the request that it came for.
#[derive(Debug, PartialEq)]
pub enum Part {
    /// Its answer. `open`: the call goes on, the answer is only a handle.
    Answer { open: bool, refuses_keys: bool },
    /// How far it is.
    Progress(f64),
    /// Something else.
    Other,
}

/// Looks at a message that came while the answer to `id` is awaited.
pub fn part(message: &str, id: &Id<'_>) -> Part {
    match envelope::classify(message) {
        Ok(Message::Response { id: Some(answered), outcome }) if answered.canonical() == id.canonical() => {
            Part::Answer { open: is_open(&outcome), refuses_keys: refuses_keys(&outcome) }
        }
        Ok(Message::Notification { method, params }) if method == "notifications/progress" => {
            let members = params.and_then(|params| json::members(params.get())).unwrap_or_default();
            let value =
                members.iter().find(|(name, _)| name == "progress").and_then(|(_, value)| value.get().parse().ok());
            value.map_or(Part::Other, Part::Progress)
        }
        _ => Part::Other,
    }
}

/// Whether a result is of an execution that has not ended.
fn is_open(outcome: &Outcome<'_>) -> bool {
    let Outcome::Result(result) = outcome else { return false };
    let member = |object: &str, name: &str| {
        let found = json::members(object)?.into_iter().find(|(member, _)| member == name)?;
        Some(found.1.get().to_owned())
    };
    let state = member(result.get(), "_meta")
        .and_then(|meta| member(&meta, "durable-mcp/execution"))
        .and_then(|execution| member(&execution, "state"));
    state.is_some_and(|state| !matches!(&*state, r#""completed""# | r#""failed""# | r#""cancelled""# | r#""unknown""#))
}

/// Whether the server refused the call because it carries another key in its arguments; nothing was stored then.
fn refuses_keys(outcome: &Outcome<'_>) -> bool {
    matches!(outcome, Outcome::Error(error) if error.get().contains("two idempotency keys disagree"))
}

/// The answer to a request in the body of a refusal, under the request's own id; `None` when there is none.
pub fn refusal(body: &str, id: &Id<'_>) -> Option<String> {
    let Ok(Message::Response { id: answered, outcome: Outcome::Error(error) }) = envelope::classify(body) else {
        return None;
    };
    if answered.is_some_and(|answered| answered.canonical() == id.canonical()) {
        return Some(body.to_owned());
    }
    let mut text = String::new();
    crate::mcp::frame::raw_error(&mut text, Some(id), error.get());
    Some(text)
}

/// What `initialize` agreed on: the session of its answer. `None` when it was refused.
pub fn opened(answer: &str, id: Option<HeaderValue>, generation: u64) -> Option<Session> {
    let Ok(Message::Response { outcome: Outcome::Result(result), .. }) = envelope::classify(answer) else {
        return None;
    };
    let members = json::members(result.get())?;
    let find = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, value)| *value);
    let revision = find("protocolVersion").and_then(json::text).map(|text| text.into_owned());
    let tells_changes = find("capabilities").is_some_and(|capabilities| {
        serde_json::from_str::<serde_json::Value>(capabilities.get())
            .is_ok_and(|capabilities| capabilities["tools"]["listChanged"] == true)
    });
    Some(Session { generation, id, revision, tells_changes })
}

/// True when the line opens a session.
pub fn opens(line: &Line) -> bool {
    matches!(line.kind, Kind::Request(_)) && line.method == "initialize" && line.version.is_none()
}

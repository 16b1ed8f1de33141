//! The headers of each request to an HTTP server, per revision. Sends nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::super::settings::Secret;
use crate::model::revision::Revision;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What a request says about itself in headers.
#[derive(Clone, Copy)]
pub(super) struct Labels<'a> {
    pub method: &'a str,
    /// The tool of a `tools/call`.
    pub name: Option<&'a str>,
    /// `None`: no revision is agreed on yet.
    pub revision: Option<Revision>,
    pub session: Option<&'a HeaderValue>,
}

/// Reads the operator's headers.
///
/// # Errors
/// Names the header that cannot be sent, never its value.
pub(super) fn configured(headers: &[(String, Secret)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value.expose()).ok());
        let Some((header, mut value)) = parsed else {
            return Err(format!("its header {name:?} cannot be sent: the name or the value is malformed"));
        };
        value.set_sensitive(true);
        map.append(header, value);
    }
    Ok(map)
}

/// The headers of a POST, over those that the operator configured.
pub(super) fn for_post(configured: &HeaderMap, labels: Labels<'_>) -> HeaderMap {
    let mut map = for_stream(configured, labels);
    map.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if labels.revision.is_some_and(Revision::is_modern) {
        map.insert(METHOD, encoded(labels.method));
        if let Some(name) = labels.name {
            map.insert(NAME, encoded(name));
        }
    }
    map
}

/// The headers of a GET or DELETE.
pub(super) fn for_stream(configured: &HeaderMap, labels: Labels<'_>) -> HeaderMap {
    let mut map = configured.clone();
    map.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(revision) = labels.revision {
        map.insert(PROTOCOL_VERSION, HeaderValue::from_static(revision.name()));
    }
    if let Some(session) = labels.session {
        map.insert(SESSION_ID, session.clone());
    }
    map
}

/// A value as 2026-07-28 wants it: as it is if it is plain visible ASCII, else in base64.
pub(super) fn encoded(value: &str) -> HeaderValue {
    let plain = !value.is_empty()
        && value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && value.trim() == value
        && !value.starts_with("=?base64?");
    let text = if plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) };
    HeaderValue::from_str(&text).expect("visible ASCII is always a header value")
}

/// Takes over a session id of the server if it is one (visible ASCII).
pub(super) fn session_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let value = headers.get(SESSION_ID)?;
    let visible = !value.is_empty() && value.as_bytes().iter().all(u8::is_ascii_graphic);
    visible.then(|| value.clone())
}

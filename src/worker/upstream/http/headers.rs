//! The headers of each request to an HTTP server, per revision. Sends nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE};

use super::super::request::Request;
use super::super::settings::Secret;
use crate::model::json::text;
use crate::model::revision::Revision;
use crate::model::trace::TraceContext;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The most of cookies that goes with a session: what servers take in a header.
const COOKIES_MAX_BYTES: usize = 4 * 1024;

/// What came with a session, and goes with each of its requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    /// The session's id.
    pub id: Option<HeaderValue>,
    /// Cookies: by them a balancer knows which instance has the session.
    pub cookies: Option<HeaderValue>,
}

/// What a request says about itself in headers.
#[derive(Clone, Copy)]
pub(super) struct Labels<'a> {
    pub method: &'a str,
    /// The tool of a `tools/call`.
    pub name: Option<&'a str>,
    /// `None`: no revision is agreed on yet.
    pub revision: Option<Revision>,
    pub session: Option<&'a Given>,
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

/// The trace context in the `_meta` of a request, for what stands between us and the server and reads no bodies. What the
/// operator configured stays.
pub(super) fn of_trace(request: &Request, configured: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let part = |name: &str| request.meta.iter().find(|(member, _)| member == name).and_then(|(_, value)| text(value));
    let [parent, state, baggage] = TraceContext::NAMES.map(part);
    let trace = TraceContext::read(parent.as_deref(), state.as_deref(), baggage.as_deref());
    let header = |(name, value)| Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?));
    trace.parts().filter_map(header).filter(|(name, _)| !configured.contains_key(name)).collect()
}

/// The headers of a GET or DELETE.
pub(super) fn for_stream(configured: &HeaderMap, labels: Labels<'_>) -> HeaderMap {
    let mut map = configured.clone();
    map.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(revision) = labels.revision {
        map.insert(PROTOCOL_VERSION, HeaderValue::from_static(revision.name()));
    }
    let Some(Given { id, cookies }) = labels.session else { return map };
    if let Some(id) = id {
        map.insert(SESSION_ID, id.clone());
    }
    if let Some(cookies) = cookies {
        // Beside those that the operator configured, in the one header that there may be.
        let all =
            map.get_all(COOKIE).iter().chain([cookies]).map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b"; "[..]);
        if let Ok(mut all) = HeaderValue::from_bytes(&all) {
            all.set_sensitive(true);
            map.insert(COOKIE, all);
        }
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

/// Takes over what an answer to `initialize` gives: a session id if it is one (visible ASCII), and cookies.
pub(super) fn given(headers: &HeaderMap) -> Given {
    let is_id = |value: &&HeaderValue| !value.is_empty() && value.as_bytes().iter().all(u8::is_ascii_graphic);
    Given { id: headers.get(SESSION_ID).filter(is_id).cloned(), cookies: cookies(headers) }
}

/// The cookies of an answer as a request sends them back: names and values. Everything goes to the one address that they
/// came from, so that their other attributes say nothing new.
fn cookies(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut all = Vec::new();
    for set in headers.get_all(SET_COOKIE) {
        let pair = set.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let has_name = pair.iter().position(|byte| *byte == b'=').is_some_and(|at| at > 0);
        if !has_name || all.len() + pair.len() + 2 > COOKIES_MAX_BYTES {
            continue;
        }
        if !all.is_empty() {
            all.extend_from_slice(b"; ");
        }
        all.extend_from_slice(pair);
    }
    let mut value = HeaderValue::from_bytes(&all).ok().filter(|value| !value.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(cookies: &[&str]) -> Given {
        let mut headers = HeaderMap::new();
        headers.insert(SESSION_ID, HeaderValue::from_static("s-1"));
        for cookie in cookies {
            headers.append(SET_COOKIE, HeaderValue::from_str(cookie).unwrap());
        }
        given(&headers)
    }

    #[test]
    fn the_cookies_of_a_session_come_back_by_name_and_value_beside_configured_ones() {
        let given = answer(&["LB=a=1; Path=/; HttpOnly", "no name", "=x", " B=2 "]);
        assert_eq!(given.cookies.as_ref().unwrap(), "LB=a=1; B=2");
        let configured = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static("mine=1"))]);
        let labels = Labels { method: "ping", name: None, revision: None, session: Some(&given) };
        let sent = for_post(&configured, labels);
        let cookies: Vec<_> = sent.get_all(COOKIE).iter().collect();
        assert_eq!(cookies, ["mine=1; LB=a=1; B=2"]);
        assert_eq!(sent[SESSION_ID], "s-1");
    }

    #[test]
    fn no_cookies_and_too_many_are_none() {
        assert!(answer(&[]).cookies.is_none());
        let big = format!("big={}", "x".repeat(COOKIES_MAX_BYTES));
        assert_eq!(answer(&[&big, "small=1"]).cookies.unwrap(), "small=1");
    }
}

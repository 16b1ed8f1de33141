//! One request to an upstream as all legs take it: the members of its `params` byte for byte, and what the leg adds for
//! the sender. Sends nothing and reads no result.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::value::RawValue;

use super::call::Call;
use super::keeper::Keeper;
use super::message;
use crate::model::json;

/// A request to be passed to a server.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method.
    pub method: Cow<'static, str>,
    /// The members of `params` but `_meta`, byte for byte (line breaks between tokens excepted).
    pub members: Vec<(String, Box<RawValue>)>,
    /// Members of `_meta`; the ones that the protocol reserves for the sender (`progressToken`, version, client) are ours.
    pub meta: Vec<(String, Box<RawValue>)>,
    /// What the caller can do, told to servers of revision 2026-07-28; `{}` without it.
    pub client_capabilities: Option<Box<RawValue>>,
    /// The least level of log messages that the caller asked for.
    pub log_level: Option<String>,
    /// The caller speaks revision 2026-07-28: it is served in it where the server speaks both eras.
    pub prefers_modern: bool,
    /// What it is about is kept there: nobody else is asked.
    pub kept_by: Option<Keeper>,
    /// The longest the request may take, waiting for the server included.
    pub attempt_timeout: Option<Duration>,
    /// The longest the server may go without an answer or progress.
    pub idle_timeout: Option<Duration>,
}

impl Request {
    /// A request without params.
    pub fn new(method: impl Into<Cow<'static, str>>) -> Self {
        Self { method: method.into(), ..Self::default() }
    }

    /// The same with one more member; the text has to be JSON.
    #[must_use]
    pub fn with(mut self, name: &str, json: &str) -> Self {
        if let Ok(value) = RawValue::from_string(json.to_owned()) {
            self.members.push((name.to_owned(), value));
        }
        self
    }

    /// Splits a `params` object; `None` when it is none. Members of `_meta` with our own prefix stay behind.
    pub fn with_params(method: &str, params: Option<&str>) -> Option<Self> {
        let mut request = Self::new(method.to_owned());
        let Some(params) = params else { return Some(request) };
        for (name, value) in json::members(params)? {
            if name != "_meta" {
                request.members.push((name.into_owned(), value.to_owned()));
                continue;
            }
            let meta = json::members(value.get()).unwrap_or_default();
            let passed = meta.into_iter().filter(|(name, _)| !name.starts_with(message::OWN_PREFIX));
            request.meta = passed.map(|(name, value)| (name.into_owned(), value.to_owned())).collect();
        }
        Some(request)
    }

    /// The raw value of a member.
    pub fn member(&self, name: &str) -> Option<&RawValue> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// What the header `Mcp-Name` says of the request, where its method has one (2026-07-28, transports, and the
    /// extension for tasks).
    pub(super) fn header_name(&self) -> Option<Cow<'_, str>> {
        let member = match self.method.as_ref() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return None,
        };
        self.member(member).and_then(json::text)
    }
}

impl From<Call> for Request {
    fn from(call: Call) -> Self {
        let name = RawValue::from_string(json::quoted(&call.tool)).expect("a quoted string is JSON");
        let mut members = vec![("name".to_owned(), name)];
        members.extend(call.arguments.map(|arguments| ("arguments".to_owned(), arguments)));
        members.extend(call.members);
        Self {
            method: "tools/call".into(),
            members,
            meta: call.meta,
            client_capabilities: call.client_capabilities,
            log_level: call.log_level,
            prefers_modern: call.prefers_modern,
            kept_by: None,
            attempt_timeout: call.attempt_timeout,
            idle_timeout: call.idle_timeout,
        }
    }
}

//! One line of the client's, read only as far as the bridge needs: what it is, which headers it takes, and whether it may be
//! sent a second time. Judges nothing: what a server would refuse is passed on, so that the server refuses it.

use std::borrow::Cow;

use crate::mcp::envelope::{self, Incoming, Limits, Message};
use crate::mcp::headers;
use crate::mcp::id::Id;
use crate::mcp::meta::Params;
use crate::mcp::session::is_timeout_reason;
use crate::mcp::splice::{self, Edit};
use crate::model::{arguments, json};

/// The longest line that is read; what is longer is no message.
pub const LINE_BYTES_MAX: usize = 256 << 20;

const VERSION_MEMBER: &str = "io.modelcontextprotocol/protocolVersion";
const KEY_MEMBER: &str = "durable-mcp/idempotencyKey";

/// What a line is.
#[derive(Debug, PartialEq)]
pub enum Kind {
    /// It wants an answer under this id.
    Request(Id<'static>),
    /// A request is taken back; `timed_out` when the client's own timer did it.
    Cancelled { request: Id<'static>, timed_out: bool },
    /// Another notification.
    Notification,
    /// The answer to a request of the server's.
    Response,
    /// An array, with the ids that want an answer.
    Batch(Vec<Id<'static>>),
    /// No message; the server says why. The id is there if it could be read.
    Unreadable(Option<Id<'static>>),
}

/// A line and what is known of it.
#[derive(Debug)]
pub struct Line {
    /// Its exact text.
    pub text: String,
    /// What it is.
    pub kind: Kind,
    /// The method; empty where there is none.
    pub method: String,
    /// The revision in its `_meta`, which only revisions from 2026-07-28 on have.
    pub version: Option<String>,
    /// What the header `Mcp-Name` repeats.
    pub name: Option<String>,
    /// A call that has no key of its own: what an identical call has in common with it.
    pub unkeyed: Option<String>,
    /// Sent a second time, it does not run a second time.
    pub repeatable: bool,
}

impl Line {
    /// Reads a line without its line break.
    pub fn read(text: String) -> Line {
        let limits = Limits { bytes_max: LINE_BYTES_MAX, depth_max: arguments::DEPTH_MAX, batch_max: usize::MAX };
        let mut facts = Facts::default();
        let kind = match envelope::parse(text.as_bytes(), &limits) {
            Ok(Incoming::One(message)) => facts.of(&message),
            Ok(Incoming::Batch(items)) => {
                let ids = items.iter().filter_map(|item| match envelope::classify(item.get()) {
                    Ok(Message::Request { id, .. }) => Some(id.into_owned()),
                    _ => None,
                });
                Kind::Batch(ids.collect())
            }
            Err(refused) => Kind::Unreadable(refused.id),
        };
        let Facts { method, version, name, unkeyed, repeatable } = facts;
        Line { text, kind, method, version, name, unkeyed, repeatable }
    }

    /// Gives the call a key; every other byte stays. False when there is no place for one.
    pub fn set_key(&mut self, key: &str) -> bool {
        let key = json::quoted(key);
        let meta = [Edit::Default(KEY_MEMBER, Cow::Borrowed(&*key))];
        let params = [Edit::Within("_meta", &meta)];
        match splice::edited(&self.text, &[Edit::Within("params", &params)]) {
            Some(text) if text != self.text => {
                self.text = text;
                self.repeatable = true;
                true
            }
            _ => false,
        }
    }
}

#[derive(Default)]
struct Facts {
    method: String,
    version: Option<String>,
    name: Option<String>,
    unkeyed: Option<String>,
    repeatable: bool,
}

impl Facts {
    fn of(&mut self, message: &Message<'_>) -> Kind {
        let params = Params::split(message.params());
        self.method = message.method().unwrap_or_default().to_owned();
        let meta = params.get("_meta").and_then(|meta| json::members(meta.get())).unwrap_or_default();
        let version = meta.iter().find(|(name, _)| name == VERSION_MEMBER);
        self.version = version.and_then(|(_, value)| json::text(value)).map(Cow::into_owned);
        match message {
            Message::Request { id, .. } => {
                self.name = headers::named_by(&self.method).and_then(|member| params.text(member)).map(Cow::into_owned);
                self.repeatable = match &*self.method {
                    "tools/call" => self.call(&params, &meta),
                    method => only_reads(method),
                };
                Kind::Request(id.clone().into_owned())
            }
            Message::Notification { .. } if self.method == "notifications/cancelled" => {
                match params.get("requestId").map(Id::parse) {
                    Some(Ok(request)) => Kind::Cancelled {
                        request: request.into_owned(),
                        timed_out: params.text("reason").is_some_and(|reason| is_timeout_reason(&reason)),
                    },
                    _ => Kind::Notification,
                }
            }
            Message::Notification { .. } => Kind::Notification,
            Message::Response { .. } => Kind::Response,
        }
    }

    /// Notes what a call without a key is known by; returns whether it may be sent twice as it is.
    fn call(&mut self, params: &Params<'_>, meta: &[json::Member<'_>]) -> bool {
        let in_meta = |name: &str| meta.iter().any(|(member, value)| member == name && !json::is_null(value));
        // A continuation is known by its state: the same state and answers again join or replay.
        let continues = params.get("requestState").is_some();
        let keyed = in_meta(KEY_MEMBER) || in_meta("idempotencyKey") || params.get("idempotencyKey").is_some();
        if keyed || continues {
            return true;
        }
        let tool = self.name.as_deref().unwrap_or_default();
        if tool.starts_with("durable_") {
            // The server's own tools are no executions and take no keys.
            return tool != "durable_retry";
        }
        let given = params.get("arguments").map_or("{}", |arguments| arguments.get());
        let same = arguments::canonical(given, None).unwrap_or_else(|_| given.to_owned());
        self.unkeyed = Some(format!("{tool}\0{same}"));
        false
    }
}

fn only_reads(method: &str) -> bool {
    matches!(
        method,
        "ping"
            | "server/discover"
            | "tools/list"
            | "prompts/list"
            | "prompts/get"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "completion/complete"
            | "tasks/get"
            | "tasks/result"
            | "tasks/list"
            | "tasks/cancel"
            | "logging/setLevel"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "subscriptions/listen"
    )
}

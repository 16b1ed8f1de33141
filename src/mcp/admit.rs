//! The way of one message into the server, up to where state is needed: parameters split, era decided, headers
//! compared, `tools/call` read. Knows no sessions, no tools, and stores nothing.

use axum::http::HeaderMap;
use serde_json::value::RawValue;

use super::call_params::CallParams;
use super::envelope::{self, Incoming, Limits, Message};
use super::era::{self, Face, HttpHead, Kind, Rejection, Ruling};
use super::headers::{self, Mirror};
use super::id::Id;
use super::meta::{Meta, PROTOCOL_PREFIX, Params, ParamsError};
use super::reject::{Source, http_status};
use crate::model::json;
use crate::model::revision::{Era, Revision};
use crate::telemetry::here;

#[cfg(test)]
mod tests;

/// A message that may enter.
#[derive(Debug)]
pub struct Admitted<'a> {
    pub message: Message<'a>,
    pub ruling: Ruling,
    pub body: Body<'a>,
}

/// The parameters of an admitted message.
#[derive(Debug)]
pub enum Body<'a> {
    /// A `tools/call` request.
    Call(CallParams<'a>),
    Other {
        params: Params<'a>,
        meta: Meta<'a>,
    },
}

/// A message that may not enter: the id to answer under, if any, and the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub id: Option<Id<'static>>,
    pub rejection: Rejection,
}

/// Tells the span of the request what was read: its method, and the span of its client.
pub fn told_of(message: &Message<'_>, body: &Body<'_>) {
    let method = match message {
        Message::Request { method, .. } | Message::Notification { method, .. } => method,
        Message::Response { .. } => "response",
    };
    let meta = match body {
        Body::Call(call) => &call.meta,
        Body::Other { meta, .. } => meta,
    };
    here::read(method, meta.trace.traceparent.as_deref());
}

/// Reads the body of a POST.
pub fn http<'a>(bytes: &'a [u8], limits: &Limits, headers: &HeaderMap) -> Result<Entered<'a>, Refusal> {
    let mirror = Mirror::of(headers);
    let head = HttpHead { mirror, names_session: headers.contains_key(headers::SESSION_ID) };
    let revision = mirror.version.value().and_then(Revision::find);
    let era = revision.map_or(Era::Legacy, Revision::era);
    match envelope::parse(bytes, limits).map_err(|refused| refuse(era, refused))? {
        Incoming::Batch(items) => match era::decide_http_batch(&head) {
            Ok(()) => Ok(Entered::Batch(items)),
            Err(rejection) => Err(Refusal { id: None, rejection }),
        },
        Incoming::One(message) => admit(message, era, |face| era::decide_http(face, &head)).map(Entered::one),
    }
}

/// Reads a line of stdin. `session` is the revision that `initialize` settled, if there was one.
pub fn stdio<'a>(line: &'a [u8], limits: &Limits, session: Option<Revision>) -> Result<Entered<'a>, Refusal> {
    match envelope::parse(line, limits).map_err(|refused| refuse(Era::Legacy, refused))? {
        Incoming::Batch(items) => match era::decide_batch(session.or(Some(Revision::ASSUMED))) {
            Ok(()) => Ok(Entered::Batch(items)),
            Err(rejection) => Err(Refusal { id: None, rejection }),
        },
        Incoming::One(message) => {
            admit(message, Era::Legacy, |face| era::decide_stdio(face, session)).map(Entered::one)
        }
    }
}

/// What came in at once.
#[derive(Debug)]
pub enum Entered<'a> {
    One(Box<Admitted<'a>>),
    /// Elements to be admitted one by one with [`batch_element`], once the session's revision has been asked
    /// ([`era::decide_batch`]).
    Batch(Vec<&'a RawValue>),
}

impl<'a> Entered<'a> {
    fn one(admitted: Admitted<'a>) -> Self {
        Entered::One(Box::new(admitted))
    }
}

/// Admits one element of a batch into a legacy session of `revision`.
pub fn batch_element<'a>(item: &'a RawValue, revision: Revision) -> Result<Admitted<'a>, Refusal> {
    let message = envelope::classify(item.get()).map_err(|refused| refuse(Era::Legacy, refused))?;
    admit(message, Era::Legacy, |face| {
        era::decide_batch_element(face)?;
        Ok(Ruling::Legacy { revision: Some(revision), opens: false })
    })
}

fn admit<'a>(
    message: Message<'a>,
    header_era: Era,
    decide: impl FnOnce(&Face<'_, 'a>) -> Result<Ruling, Rejection>,
) -> Result<Admitted<'a>, Refusal> {
    let kind = match &message {
        Message::Request { .. } => Kind::Request,
        Message::Notification { .. } => Kind::Notification,
        Message::Response { .. } => Kind::Response,
    };
    let id = || message.id().filter(|_| kind == Kind::Request).cloned().map(Id::into_owned);
    let refusal = |rejection| Refusal { id: id(), rejection };
    let params = Params::split(message.params());
    let method = message.method().unwrap_or_default();
    let meta = Meta::of(&params).map_err(|error| refusal(params_rejection(meant_era(header_era, &params), &error)))?;
    let ruling = decide(&Face { kind, method, params: &params, meta: &meta }).map_err(refusal)?;
    let is_call = kind == Kind::Request && method == "tools/call";
    let body = if is_call {
        let call = CallParams::new(params, meta);
        Body::Call(call.map_err(|error| refusal(params_rejection(ruling.era(), &error)))?)
    } else {
        Body::Other { params, meta }
    };
    Ok(Admitted { message, ruling, body })
}

fn params_rejection(era: Era, error: &ParamsError) -> Rejection {
    Rejection { status: http_status(era, error.source(), error.code()), error: error.rpc_error() }
}

fn refuse(era: Era, refused: envelope::Refused) -> Refusal {
    let error = refused.fault.rpc_error();
    let status = match refused.fault {
        envelope::Fault::TooLarge { .. } => 413,
        _ => http_status(era, Source::Envelope, error.code),
    };
    Refusal { id: refused.id, rejection: Rejection { status, error } }
}

/// The era that a request with a malformed `_meta` meant to speak.
fn meant_era(header_era: Era, params: &Params<'_>) -> Era {
    let members = params.get("_meta").and_then(|meta| json::members(meta.get())).unwrap_or_default();
    let speaks_modern = members.iter().any(|(name, _)| name.starts_with(PROTOCOL_PREFIX));
    if speaks_modern { Era::Modern } else { header_era }
}

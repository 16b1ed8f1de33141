//! Which era a message belongs to, and whether it may enter at all. Pure: sees the message's face, the version header
//! and whether a session is named; does not know whether that session exists.
//!
//! Over stdio `initialize` is always legacy, also with a modern `_meta`; over HTTP a modern `_meta` wins, even on a
//! method named `initialize`. A request over stdio before `initialize` is served as the assumed legacy revision: a
//! client that outlives a restart of its server then goes on.

use super::headers::{Field, Mirror};
use super::meta::{Meta, Params};
use super::reject::{RpcError, Source, code, http_status};
use crate::model::revision::{Era, Revision, modern_names};

#[cfg(test)]
mod tests;

/// The era of a message that may enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// `revision` is what the version header says; the session knows better. `opens` is set for `initialize`.
    Legacy {
        revision: Option<Revision>,
        opens: bool,
    },
    Modern {
        revision: Revision,
    },
}

impl Ruling {
    pub fn era(&self) -> Era {
        match self {
            Ruling::Legacy { .. } => Era::Legacy,
            Ruling::Modern { .. } => Era::Modern,
        }
    }
}

/// A message that may not enter, and the HTTP status of the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    pub status: u16,
    pub error: RpcError,
}

impl Rejection {
    /// Refuses with the status that the era gives to an error of the envelope.
    pub fn of(era: Era, error: RpcError) -> Self {
        Rejection { status: http_status(era, Source::Envelope, error.code), error }
    }

    fn plain(status: u16, message: &'static str) -> Self {
        Rejection { status, error: RpcError::new(code::INVALID_REQUEST, message) }
    }
}

/// What a message is, apart from its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    Notification,
    Response,
}

/// The face of a message, over either transport.
#[derive(Debug)]
pub struct Face<'m, 'a> {
    pub kind: Kind,
    /// Empty for a response.
    pub method: &'m str,
    pub params: &'m Params<'a>,
    pub meta: &'m Meta<'a>,
}

/// What the HTTP request around a message says.
#[derive(Debug, Clone, Copy)]
pub struct HttpHead<'h> {
    pub mirror: Mirror<'h>,
    /// The header `Mcp-Session-Id` is there.
    pub names_session: bool,
}

/// Decides about one POSTed message (protocol: 2026-07-28, versioning, compatibility matrix). Headers and body are
/// compared before the version is judged, so that a client that contradicts itself is told so.
pub fn decide_http(face: &Face<'_, '_>, head: &HttpHead<'_>) -> Result<Ruling, Rejection> {
    let mirror = &head.mirror;
    if let Some(version) = face.meta.protocol.version.as_deref() {
        let mismatch = |mismatch: super::headers::Mismatch| Rejection::of(Era::Modern, mismatch.rpc_error());
        mirror.check_version(version).map_err(mismatch)?;
        let revision = modern_revision(version)?;
        match face.kind {
            Kind::Request => {
                check_capabilities(face.meta)?;
                mirror.check_request(face.method, face.params).map_err(mismatch)?;
            }
            Kind::Notification => mirror.check_notification(face.method).map_err(mismatch)?,
            Kind::Response => {}
        }
        return Ok(Ruling::Modern { revision });
    }
    if face.kind == Kind::Request && face.method == "initialize" {
        return Ok(Ruling::Legacy { revision: None, opens: true });
    }
    let revision = match mirror.version {
        Field::Absent => None,
        Field::Invalid => return Err(bad_version_header()),
        Field::Value(name) => Some(Revision::find(name).ok_or_else(bad_version_header)?),
    };
    let speaks_modern = revision.is_some_and(|revision| revision.era() == Era::Modern);
    if speaks_modern || (face.method == "server/discover" && !head.names_session) {
        return decide_without_envelope(face, mirror, revision.unwrap_or(Revision::V2026_07_28));
    }
    if !head.names_session {
        return Err(Rejection::plain(400, "no session: send initialize first, or _meta of revision 2026-07-28"));
    }
    Ok(Ruling::Legacy { revision, opens: false })
}

/// Decides about one message over stdio. `session` is the revision that `initialize` settled, if there was one.
pub fn decide_stdio(face: &Face<'_, '_>, session: Option<Revision>) -> Result<Ruling, Rejection> {
    if face.method == "initialize" {
        return Ok(Ruling::Legacy { revision: None, opens: true });
    }
    if let Some(version) = face.meta.protocol.version.as_deref() {
        let revision = modern_revision(version)?;
        if face.kind == Kind::Request {
            check_capabilities(face.meta)?;
        }
        return Ok(Ruling::Modern { revision });
    }
    if face.method == "server/discover" && session.is_none() {
        return Err(missing_meta("protocolVersion"));
    }
    Ok(Ruling::Legacy { revision: session.or(Some(Revision::ASSUMED)), opens: false })
}

/// Decides about GET and DELETE, which only legacy sessions have.
pub fn decide_stream(version: Field<'_>, names_session: bool) -> Result<Option<Revision>, Rejection> {
    let revision = match version {
        Field::Absent => None,
        Field::Invalid => return Err(bad_version_header()),
        Field::Value(name) => Some(Revision::find(name).ok_or_else(bad_version_header)?),
    };
    if revision.is_some_and(|revision| revision.era() == Era::Modern) {
        return Err(Rejection::plain(405, "revision 2026-07-28 has only POST"));
    }
    if !names_session {
        return Err(Rejection::plain(400, "no session: the header Mcp-Session-Id is missing"));
    }
    Ok(revision)
}

/// Decides whether an array of messages may enter. `session` is the revision of the session, or what the version
/// header says where there is none yet.
pub fn decide_batch(session: Option<Revision>) -> Result<(), Rejection> {
    match session {
        Some(revision) if revision.facts().batches => Ok(()),
        _ => Err(Rejection::plain(400, "batches exist only in sessions of revisions up to 2025-03-26")),
    }
}

/// Decides about an array of messages over HTTP by its headers; [`decide_batch`] has to agree once the session is known.
pub fn decide_http_batch(head: &HttpHead<'_>) -> Result<(), Rejection> {
    let revision = match head.mirror.version {
        Field::Absent => Revision::ASSUMED,
        Field::Invalid => return Err(bad_version_header()),
        Field::Value(name) => Revision::find(name).ok_or_else(bad_version_header)?,
    };
    decide_batch(Some(revision))?;
    if !head.names_session {
        return Err(Rejection::plain(400, "no session: initialize first, and not in a batch"));
    }
    Ok(())
}

/// Decides whether a message may stand in a batch: `initialize` and modern requests may not.
pub fn decide_batch_element(face: &Face<'_, '_>) -> Result<(), Rejection> {
    if face.method == "initialize" {
        return Err(Rejection::plain(400, "initialize may not be part of a batch"));
    }
    if face.meta.protocol.version.is_some() {
        return Err(Rejection::plain(400, "a request of revision 2026-07-28 may not be part of a batch"));
    }
    Ok(())
}

/// A modern header, or a modern-only method, without the version in `_meta`.
fn decide_without_envelope(face: &Face<'_, '_>, mirror: &Mirror<'_>, revision: Revision) -> Result<Ruling, Rejection> {
    match face.kind {
        // The revision asks for no `_meta` there.
        Kind::Notification => {
            mirror.check_notification(face.method).map_err(|error| Rejection::of(Era::Modern, error.rpc_error()))?;
            Ok(Ruling::Modern { revision })
        }
        Kind::Request => Err(missing_meta("protocolVersion")),
        Kind::Response => Err(Rejection::plain(400, "revision 2026-07-28 has no responses from clients")),
    }
}

fn modern_revision(version: &str) -> Result<Revision, Rejection> {
    match Revision::find(version) {
        Some(revision) if revision.era() == Era::Modern => Ok(revision),
        _ => {
            let requested: String = version.chars().take(64).collect();
            let data = serde_json::json!({ "supported": modern_names(), "requested": requested });
            let error = RpcError::new(code::UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version");
            Err(Rejection::of(Era::Modern, error.with_data(&data)))
        }
    }
}

fn check_capabilities(meta: &Meta<'_>) -> Result<(), Rejection> {
    if meta.protocol.client_capabilities.is_none() { Err(missing_meta("clientCapabilities")) } else { Ok(()) }
}

fn missing_meta(member: &str) -> Rejection {
    let message = format!("_meta[\"io.modelcontextprotocol/{member}\"] is missing");
    Rejection::of(Era::Modern, RpcError::new(code::INVALID_PARAMS, message))
}

fn bad_version_header() -> Rejection {
    Rejection::plain(400, "the header MCP-Protocol-Version names no revision that is known here")
}

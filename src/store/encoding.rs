//! How what a driver stores is written down, alike in every dialect: events without their type, names of values, pieces
//! of payloads, the time an index looks for. Knows no database.

use sha2::{Digest, Sha256};

use crate::model::event::Event;
use crate::model::execution::{Effect, Head, ResultSource, State};

/// The id that a policy's text is stored under.
pub(super) fn policy_id(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..8])
}

/// The event without its type, as JSON. The type is serde's tag, which is always written first.
///
/// # Errors
///
/// One sentence: an event that can not be written down.
pub(super) fn event_body(event: &Event) -> Result<String, String> {
    let text = serde_json::to_string(event).map_err(|error| format!("event: {error}"))?;
    let tag = TAG.len() + event.name().len();
    match text.as_bytes().get(tag + 1) {
        Some(b',') => Ok(format!("{{{}", &text[tag + 2..])),
        Some(b'}') => Ok("{}".into()),
        _ => Err(format!("event {} does not begin with its type", event.name())),
    }
}

const TAG: &str = "{\"type\":\"";

/// The event of a type and a body.
pub(super) fn event(name: &str, body: &str) -> serde_json::Result<Event> {
    let members = body.strip_prefix('{').unwrap_or(body);
    let comma = if members == "}" { "" } else { "," };
    serde_json::from_str(&format!("{TAG}{name}\"{comma}{members}"))
}

/// Cuts between characters; an empty text is one empty piece.
pub(super) fn pieces(text: &str, chunk_bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        if text.len() <= chunk_bytes {
            rest = None;
            return Some(text);
        }
        // A character has at most four bytes: a limit below that still moves on.
        let mut cut = chunk_bytes.max(4);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let (piece, tail) = text.split_at(cut);
        rest = Some(tail);
        Some(piece)
    })
}

/// Where the index looks for executions that ran out of time; the rules decide whether one has.
pub(super) fn deadline_at_ms(head: &Head) -> Option<i64> {
    if !matches!(head.state, State::Ready | State::Scheduled) {
        return None;
    }
    let start_by_ms = head.ident.start_by_ms.filter(|_| head.fencing_token == 0);
    Some(start_by_ms.map_or(head.total_deadline_ms(), |at| at.min(head.total_deadline_ms())))
}

/// The stored name of a source.
pub(super) fn source_name(source: ResultSource) -> &'static str {
    match source {
        ResultSource::Result => "result",
        ResultSource::LateResult => "late_result",
        ResultSource::Reconcile => "reconcile",
        ResultSource::Resolve => "resolve",
    }
}

/// Reads it.
pub(super) fn source_of(name: &str) -> Option<ResultSource> {
    use ResultSource::{LateResult, Reconcile, Resolve, Result};
    [Result, LateResult, Reconcile, Resolve].into_iter().find(|source| source_name(*source) == name)
}

/// The stored name of an effect.
pub(super) fn effect_name(effect: Effect) -> &'static str {
    match effect {
        Effect::None => "none",
        Effect::Unknown => "unknown",
    }
}

/// Reads it.
pub(super) fn effect_of(name: &str) -> Option<Effect> {
    [Effect::None, Effect::Unknown].into_iter().find(|effect| effect_name(*effect) == name)
}

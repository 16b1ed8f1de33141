//! Answers of an upstream of one era for a client of the other, and of the same: result types, cache hints, error codes.
//! Everything else passes byte for byte. Asks nobody.

use serde_json::value::RawValue;

use super::answer::Reply;
use super::face::SERVER_INFO;
use super::going::error_code;
use super::reject::code;
use super::splice::{self, Additions, Edit};
use crate::model::json;
use crate::model::revision::Era;

#[cfg(test)]
mod tests;

/// Up to 2025-11-25: the resource does not exist.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// 2025-11-25: the client has to visit a URL first.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// The members that only 2026-07-28 has in results.
const MODERN_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// Whose answer for whom.
#[derive(Clone, Copy, Debug)]
pub struct Bridge<'b> {
    /// What was asked.
    pub method: &'b str,
    /// The era of the upstream, where it is known.
    pub upstream: Option<Era>,
    /// The era of the client.
    pub client: Era,
}

/// The value of a result's `resultType`, if it has one.
pub fn result_type(result: &str) -> Option<String> {
    let members = json::members(result)?;
    let kind = members.iter().rev().find(|(name, _)| name == "resultType").map(|(_, value)| *value)?;
    json::text(kind).map(|kind| kind.into_owned())
}

fn whole(result: &str) -> Reply {
    Reply::Result(result.to_owned().into())
}

/// A complete result, as its client reads it.
pub fn result(result: &str, bridge: Bridge<'_>) -> Reply {
    match bridge.client {
        // What has such a name there is the upstream's own.
        Era::Legacy if bridge.upstream == Some(Era::Legacy) => whole(result),
        Era::Legacy => {
            splice::without(result, &MODERN_MEMBERS).map_or_else(|| whole(result), |text| Reply::Result(text.into()))
        }
        Era::Modern => {
            let Ok(raw) = serde_json::from_str::<&RawValue>(result) else { return whole(result) };
            let additions = Additions { server_info: Some(SERVER_INFO), result_type: true, ..Additions::default() };
            let added = splice::result(raw, &additions).into_owned();
            if bridge.method != "resources/read" {
                return Reply::Result(added.into());
            }
            // Who says nothing about keeping it may have meant anything.
            let hints = [Edit::Default("ttlMs", "0".into()), Edit::Default("cacheScope", "\"private\"".into())];
            Reply::Result(splice::edited(&added, &hints).unwrap_or(added).into())
        }
    }
}

/// An error, as its client reads it.
pub fn error(error: &str, bridge: Bridge<'_>) -> Reply {
    let new = match (bridge.client, error_code(error)) {
        (Era::Modern, Some(RESOURCE_NOT_FOUND)) => code::INVALID_PARAMS,
        // The revision gives a missing resource no code of its own; its data names it (SEP-2164).
        (Era::Legacy, Some(code::INVALID_PARAMS))
            if bridge.method == "resources/read" && bridge.upstream == Some(Era::Modern) && names_uri(error) =>
        {
            RESOURCE_NOT_FOUND
        }
        _ => return Reply::RawError(error.to_owned()),
    };
    let edit = [Edit::Set("code", new.to_string().into())];
    Reply::RawError(splice::edited(error, &edit).unwrap_or_else(|| error.to_owned()))
}

/// True when an error says that its upstream has no such thing, so that another one may have it.
pub fn is_not_found(error: &str) -> bool {
    matches!(error_code(error), Some(RESOURCE_NOT_FOUND | code::INVALID_PARAMS | code::METHOD_NOT_FOUND))
}

/// The questions of an error that asks the client to visit URLs, as the value of `inputRequests`.
pub fn url_questions(error: &str) -> Option<String> {
    if error_code(error) != Some(URL_ELICITATION_REQUIRED) {
        return None;
    }
    let members = json::members(error)?;
    let data = members.into_iter().rev().find(|(name, _)| name == "data")?.1;
    let elicitations = json::members(data.get())?.into_iter().rev().find(|(name, _)| name == "elicitations")?.1;
    let elicitations: Vec<&RawValue> = serde_json::from_str(elicitations.get()).ok()?;
    let mut questions = String::from("{");
    for (at, elicitation) in elicitations.iter().enumerate() {
        let params = splice::edited(elicitation.get(), &[Edit::Default("mode", "\"url\"".into())])?;
        let comma = if at > 0 { "," } else { "" };
        questions.push_str(&format!("{comma}\"url{at}\":{{\"method\":\"elicitation/create\",\"params\":{params}}}"));
    }
    questions.push('}');
    (!elicitations.is_empty()).then_some(questions)
}

fn names_uri(error: &str) -> bool {
    let data = json::members(error).and_then(|members| members.into_iter().rev().find(|(name, _)| name == "data"));
    let members = data.and_then(|(_, data)| json::members(data.get()));
    members.is_some_and(|members| members.iter().any(|(name, _)| name == "uri"))
}

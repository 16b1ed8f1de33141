//! Members spliced into raw JSON objects: everything that is not added or replaced keeps its bytes, its order and its
//! spelling. Never parses a foreign value into a tree, and removes only what it is told to.

use std::borrow::Cow;
use std::ops::Range;

use axum::body::Bytes;
use serde_json::value::RawValue;

use super::reject::push_json_string;
use crate::model::json;
use crate::model::payload::Payload;

#[cfg(test)]
mod tests;

/// The `_meta` member with what is known about the execution behind an answer.
pub const EXECUTION_MEMBER: &str = "durable-mcp/execution";
/// The `_meta` member that names the server (2026-07-28).
pub const SERVER_INFO_MEMBER: &str = "io.modelcontextprotocol/serverInfo";

/// One change to an object. Values are JSON texts.
#[derive(Debug, Clone)]
pub enum Edit<'e> {
    /// The member gets this value, whether it was there or not.
    Set(&'e str, Cow<'e, str>),
    /// The member gets this value if it was not there.
    Default(&'e str, Cow<'e, str>),
    /// The members of this member's object are edited; an absent object is made, anything but an object is left alone.
    Within(&'e str, &'e [Edit<'e>]),
}

impl<'e> Edit<'e> {
    fn name(&self) -> &'e str {
        match self {
            Edit::Set(name, _) | Edit::Default(name, _) | Edit::Within(name, _) => name,
        }
    }
}

/// Edits the object `text`; `None` when it is no object. New members come last, in the order of `edits`. Of two members
/// with one name the later counts, as every parser in use reads them.
pub fn edited(text: &str, edits: &[Edit<'_>]) -> Option<String> {
    let patches = patches(text, edits)?;
    let growth: usize = patches.iter().map(|(_, new)| new.len()).sum();
    let mut out = String::with_capacity(text.len() + growth);
    let mut copied = 0;
    for (place, new) in &patches {
        out.push_str(&text[copied..place.start]);
        out.push_str(new);
        copied = place.end;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// The same of a text that is shared, in pieces that share it.
pub fn shared(text: &Payload, edits: &[Edit<'_>]) -> Option<Vec<Bytes>> {
    let patches = patches(text, edits)?;
    let bytes = text.bytes();
    let mut pieces = Vec::with_capacity(2 * patches.len() + 1);
    let mut taken = 0;
    for (place, new) in patches {
        pieces.push(bytes.slice(taken..place.start));
        pieces.push(Bytes::from(new.into_owned()));
        taken = place.end;
    }
    pieces.push(bytes.slice(taken..));
    Some(pieces)
}

/// A place in a text, and what takes it.
type Patch<'e> = (Range<usize>, Cow<'e, str>);

/// What `edits` change in the object `text`, in the order of the places.
fn patches<'e>(text: &str, edits: &'e [Edit<'_>]) -> Option<Vec<Patch<'e>>> {
    let members = json::members(text)?;
    let start_of = |value: &RawValue| value.get().as_ptr() as usize - text.as_ptr() as usize;
    let mut patches: Vec<Patch<'e>> = Vec::with_capacity(edits.len() + 1);
    let mut added = String::new();
    for edit in edits {
        let found = members.iter().rev().find(|(name, _)| name == edit.name()).map(|(_, value)| *value);
        let new = match (edit, found) {
            (Edit::Set(_, value), _) | (Edit::Default(_, value), None) => Cow::Borrowed(&**value),
            (Edit::Default(..), Some(_)) => continue,
            (Edit::Within(_, inner), found) => match edited(found.map_or("{}", RawValue::get), inner) {
                Some(object) if found.is_some() || object != "{}" => Cow::Owned(object),
                _ => continue,
            },
        };
        match found {
            Some(value) => patches.push((start_of(value)..start_of(value) + value.get().len(), new)),
            None => {
                if !(members.is_empty() && added.is_empty()) {
                    added.push(',');
                }
                push_json_string(&mut added, edit.name());
                added.push(':');
                added.push_str(&new);
            }
        }
    }
    patches.sort_unstable_by_key(|(place, _)| place.start);
    let end = match members.last() {
        Some((_, value)) => start_of(value) + value.get().len(),
        None => text.find('{')? + 1,
    };
    if !added.is_empty() {
        patches.push((end..end, added.into()));
    }
    Some(patches)
}

/// The object `text` without the members of these names; `None` when it is no object. What stays keeps its bytes.
pub fn without(text: &str, names: &[&str]) -> Option<String> {
    let members = json::members(text)?;
    if members.iter().all(|(name, _)| !names.contains(&&**name)) {
        return Some(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = text.find('{')? + 1;
    out.push_str(&text[..copied]);
    let mut is_first = true;
    for (name, value) in &members {
        let end = value.get().as_ptr() as usize - text.as_ptr() as usize + value.get().len();
        let piece = &text[copied..end];
        copied = end;
        if names.contains(&&**name) {
            continue;
        }
        // The comma in front of what comes first now belonged to what is gone.
        out.push_str(if is_first { piece.trim_start_matches([' ', '\t', '\n', '\r', ',']) } else { piece });
        is_first = false;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// Whether a list may be cached by whom (2026-07-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    Public,
    Private,
}

impl CacheScope {
    /// Its name in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        }
    }
}

/// Cache hints of a list result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHints {
    pub ttl_ms: u64,
    pub scope: CacheScope,
}

/// What is added to a result on its way out. All texts are JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct Additions<'a> {
    /// Set as `_meta["durable-mcp/execution"]`, in place of one that an inner DurableMCP set.
    pub execution: Option<&'a str>,
    /// `_meta["io.modelcontextprotocol/serverInfo"]`, if the result has none.
    pub server_info: Option<&'a str>,
    /// `resultType: "complete"`, if the result has none.
    pub result_type: bool,
    /// Set as `ttlMs` and `cacheScope`, but never on a result that is not complete.
    pub cache: Option<CacheHints>,
}

/// Adds to a result. A result that is no object, or needs nothing, stays as it is; a `_meta` that is no object is left
/// alone and what belongs into it is dropped.
pub fn result<'r>(raw: &'r RawValue, additions: &Additions<'_>) -> Cow<'r, str> {
    let added = with_edits(raw, additions, |edits| match edits.is_empty() {
        true => None,
        false => edited(raw.get(), edits),
    });
    added.map_or(Cow::Borrowed(raw.get()), Cow::Owned)
}

/// The same of a long result, in pieces that share it. `raw` is what `result` says.
pub fn long_result(result: &Payload, raw: &RawValue, additions: &Additions<'_>) -> Vec<Bytes> {
    with_edits(raw, additions, |edits| shared(result, edits)).unwrap_or_else(|| vec![result.bytes()])
}

fn with_edits<T>(raw: &RawValue, additions: &Additions<'_>, edit: impl FnOnce(&[Edit<'_>]) -> T) -> T {
    let mut meta = Vec::with_capacity(2);
    if let Some(execution) = additions.execution {
        meta.push(Edit::Set(EXECUTION_MEMBER, execution.into()));
    }
    if let Some(server_info) = additions.server_info {
        meta.push(Edit::Default(SERVER_INFO_MEMBER, server_info.into()));
    }
    let mut edits = Vec::with_capacity(4);
    if additions.result_type {
        edits.push(Edit::Default("resultType", "\"complete\"".into()));
    }
    if let Some(cache) = additions.cache.filter(|_| is_complete(raw)) {
        let scope = format!("\"{}\"", cache.scope.as_str());
        edits.push(Edit::Set("ttlMs", cache.ttl_ms.to_string().into()));
        edits.push(Edit::Set("cacheScope", scope.into()));
    }
    if !meta.is_empty() {
        edits.push(Edit::Within("_meta", &meta));
    }
    edit(&edits)
}

/// Gives a tool definition another name; everything else keeps its bytes. `None` when it is no object.
pub fn renamed_tool(tool: &RawValue, name: &str) -> Option<Box<RawValue>> {
    let mut quoted = String::with_capacity(name.len() + 2);
    push_json_string(&mut quoted, name);
    let text = edited(tool.get(), &[Edit::Set("name", quoted.into())])?;
    RawValue::from_string(text).ok()
}

fn is_complete(result: &RawValue) -> bool {
    let members = json::members(result.get()).unwrap_or_default();
    let kind = members.into_iter().rev().find(|(name, _)| name == "resultType");
    kind.is_none_or(|(_, kind)| json::text(kind).as_deref() == Some("complete"))
}

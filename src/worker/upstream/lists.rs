//! The lists of a server, read page by page: tools, resources, their templates, prompts. Bounded in pages and entries.
//! Keeps nothing and decides nothing about what is listed.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::call::Answer;
use super::handshake;
use super::leg::Leg;
use super::message;
use super::request::Request;
use super::settings::LegLimits;
use super::snapshot::{Items, Keeping, Tool};
use crate::model::json;

/// One kind of list.
pub(super) struct Kind {
    method: &'static str,
    member: &'static str,
    capability: &'static str,
    noun: &'static str,
}

pub(super) const TOOLS: Kind = Kind { method: "tools/list", member: "tools", capability: "tools", noun: "tools" };
pub(super) const RESOURCES: Kind =
    Kind { method: "resources/list", member: "resources", capability: "resources", noun: "resources" };
pub(super) const TEMPLATES: Kind = Kind {
    method: "resources/templates/list",
    member: "resourceTemplates",
    capability: "resources",
    noun: "resource templates",
};
pub(super) const PROMPTS: Kind =
    Kind { method: "prompts/list", member: "prompts", capability: "prompts", noun: "prompts" };

/// A whole list.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub items: Vec<Box<RawValue>>,
    pub keeping: Option<Keeping>,
}

impl From<Read> for Items {
    fn from(read: Read) -> Self {
        Self { items: Arc::from(read.items), keeping: read.keeping }
    }
}

/// Reads a whole list; one that the server does not declare is empty.
///
/// # Errors
/// Says what went wrong.
pub(super) async fn read(leg: &Leg, kind: &Kind, limits: &LegLimits) -> Result<Read, String> {
    let declared = handshake::declares(&leg.facts(), &[kind.capability]);
    // Servers of before 2025 may have tools that they never declared.
    if !declared && kind.member != TOOLS.member {
        return Ok(Read::default());
    }
    let noun = kind.noun;
    let mut whole = Read::default();
    let mut cursor: Option<String> = None;
    for page in 0..limits.max_pages {
        let request = match &cursor {
            Some(cursor) => Request::new(kind.method).with("cursor", &json::quoted(cursor)),
            None => Request::new(kind.method),
        };
        let answer = leg.ask(&request).await.map_err(|error| format!("its list of {noun} was not read: {error}"))?;
        let result = match answer {
            Answer::Result(result) => result,
            Answer::Error(_) if !declared => return Ok(Read::default()),
            // Many servers with resources have no templates, and say so.
            Answer::Error(error)
                if kind.member == TEMPLATES.member
                    && message::error_parts(&error).0 == Some(message::METHOD_NOT_FOUND) =>
            {
                return Ok(Read::default());
            }
            Answer::Error(error) => {
                let (code, text) = message::error_parts(&error);
                let code = code.map(|code| code.to_string()).unwrap_or_default();
                return Err(format!("it refused to list its {noun}: {code} {}", handshake::bounded(&text)));
            }
        };
        let read = read_page(&result, kind.member).ok_or_else(|| format!("its list of {noun} cannot be read"))?;
        whole.items.extend(read.items);
        if whole.items.len() > limits.max_tools {
            return Err(format!("it lists more than {} {noun}", limits.max_tools));
        }
        if page == 0 {
            whole.keeping = read.keeping;
        }
        match read.next {
            None => return Ok(whole),
            next if next == cursor => return Err(format!("its list of {noun} repeats a cursor")),
            next => cursor = next,
        }
    }
    Err(format!("its list of {noun} has more than {} pages", limits.max_pages))
}

/// The tools among the entries of their list: one that nobody can name must not hide the others.
pub(super) fn tools(items: Vec<Box<RawValue>>) -> Vec<Tool> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let tool = |raw: Box<RawValue>| {
        let name = serde_json::from_str::<Named>(raw.get()).ok()?.name;
        Some(Tool { name, raw })
    };
    items.into_iter().filter_map(tool).collect()
}

struct Page {
    items: Vec<Box<RawValue>>,
    next: Option<String>,
    keeping: Option<Keeping>,
}

fn read_page(result: &str, member: &str) -> Option<Page> {
    let mut items = None;
    let (mut next, mut ttl_ms, mut scope) = (None, None, None);
    for (name, value) in json::members(result)? {
        match name.as_ref() {
            name if name == member => items = Some(serde_json::from_str(value.get()).ok()?),
            "nextCursor" => next = json::text(value).map(Cow::into_owned),
            "ttlMs" => ttl_ms = serde_json::from_str::<i64>(value.get()).ok().filter(|ttl_ms| *ttl_ms >= 0),
            "cacheScope" => scope = json::text(value),
            _ => {}
        }
    }
    // Without a word it is taken for the asker's own.
    let keeping = ttl_ms.map(|ttl_ms| Keeping { ttl_ms, is_private: scope.as_deref() != Some("public") });
    Some(Page { items: items?, next, keeping })
}

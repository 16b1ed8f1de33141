//! Opening a conversation: the params of `initialize` and `server/discover`, how their answers are read, and the paged
//! list of tools. Sends nothing itself; the legs do.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::{self, Meta};
use super::snapshot::{ServerFacts, Tool};
use crate::model::revision::Revision;

/// Builds the `params` of `initialize`; we declare no capabilities, so that a server asks nothing back.
pub(super) fn initialize_params() -> String {
    let version = message::quote(Revision::LATEST_LEGACY.name());
    let client = message::client_info();
    let members = [("protocolVersion", version.as_str()), ("capabilities", "{}"), ("clientInfo", client.as_str())];
    message::params(Revision::LATEST_LEGACY, &members, Meta::default())
}

/// Builds the `params` of `server/discover`.
pub(super) fn discover_params() -> String {
    message::params(Revision::MODERN, &[], Meta::default())
}

/// Reads the result of `initialize`.
///
/// # Errors
/// Says why the conversation cannot go on: unreadable, or a revision that is none of ours.
pub(super) fn read_initialize(result: &RawValue) -> Result<ServerFacts, String> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow, rename = "protocolVersion")]
        version: Cow<'a, str>,
        #[serde(borrow, default, rename = "serverInfo")]
        server_info: Option<&'a RawValue>,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(default)]
        instructions: Option<String>,
    }
    let wire: Wire = serde_json::from_str(result.get()).map_err(|_| "its answer to initialize cannot be read")?;
    match Revision::find(&wire.version) {
        Some(revision) if !revision.is_modern() => Ok(ServerFacts {
            revision,
            server_info: wire.server_info.map(ToOwned::to_owned),
            capabilities: wire.capabilities.map(ToOwned::to_owned),
            instructions: wire.instructions,
        }),
        _ => Err(format!("it wants protocol revision {:?}, which we do not speak", bounded(&wire.version))),
    }
}

/// Reads the result of `server/discover`; `None` if it shares no modern revision with us.
pub(super) fn read_discover(result: &RawValue) -> Option<ServerFacts> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(rename = "supportedVersions")]
        versions: Vec<String>,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(default)]
        instructions: Option<String>,
        #[serde(borrow, default, rename = "_meta")]
        meta: Option<DiscoverMeta<'a>>,
    }
    #[derive(Deserialize)]
    struct DiscoverMeta<'a> {
        #[serde(borrow, default, rename = "io.modelcontextprotocol/serverInfo")]
        server_info: Option<&'a RawValue>,
    }
    let wire: Wire = serde_json::from_str(result.get()).ok()?;
    wire.versions.iter().any(|version| version == Revision::MODERN.name()).then(|| ServerFacts {
        revision: Revision::MODERN,
        server_info: wire.meta.and_then(|meta| meta.server_info).map(ToOwned::to_owned),
        capabilities: wire.capabilities.map(ToOwned::to_owned),
        instructions: wire.instructions,
    })
}

/// Whether the server declared a capability, given as a path of member names.
pub(super) fn declares(facts: &ServerFacts, path: &[&str]) -> bool {
    let Some(capabilities) = &facts.capabilities else { return false };
    let Ok(value) = serde_json::from_str::<serde_json::Value>(capabilities.get()) else { return false };
    let found = path.iter().try_fold(&value, |at, member| at.get(member));
    !matches!(found, None | Some(serde_json::Value::Null | serde_json::Value::Bool(false)))
}

/// Builds the `params` of `tools/list`.
pub(super) fn list_params(revision: Revision, cursor: Option<&str>) -> String {
    let cursor = cursor.map(message::quote);
    let members: Vec<_> = cursor.iter().map(|cursor| ("cursor", cursor.as_str())).collect();
    message::params(revision, &members, Meta::default())
}

/// Reads one page of `tools/list`: its tools and the cursor of the next page.
///
/// # Errors
/// Says that the page cannot be read.
pub(super) fn read_tools_page(result: &RawValue) -> Result<(Vec<Tool>, Option<String>), String> {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
        #[serde(default, rename = "nextCursor")]
        next: Option<String>,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let page: Page = serde_json::from_str(result.get()).map_err(|_| "its list of tools cannot be read")?;
    let mut tools = Vec::with_capacity(page.tools.len());
    for raw in page.tools {
        // One tool that nobody can name must not hide the others.
        if let Ok(named) = serde_json::from_str::<Named>(raw.get()) {
            tools.push(Tool { name: named.name, raw: raw.to_owned() });
        }
    }
    Ok((tools, page.next))
}

/// A foreign text for a reason of ours, cut to a readable length.
pub(super) fn bounded(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let mut out: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_CHARS).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        out.push('…');
    }
    out
}

/// Builds the `params` of `subscriptions/listen` (2026-07-28): only changes of the list of tools.
pub(super) fn listen_params() -> String {
    message::params(Revision::MODERN, &[("notifications", r#"{"toolsListChanged":true}"#)], Meta::default())
}

/// Says that the server refused a request of ours, in its words.
pub(super) fn refused(method: &str, error: &RawValue) -> String {
    let (code, text) = message::error_parts(error);
    format!("it refused {method}: {} {}", code.map(|code| code.to_string()).unwrap_or_default(), bounded(&text))
}

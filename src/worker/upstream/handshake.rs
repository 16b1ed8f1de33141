//! Opening a conversation: the params of `initialize`, `server/discover` and `subscriptions/listen`, and how their answers
//! are read. Sends nothing itself; the legs do.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::{self, Meta};
use super::snapshot::ServerFacts;
use crate::engine::client::declared;
use crate::model::json;
use crate::model::revision::Revision;

/// The capabilities of a client by which a server may ask it something.
pub const ASKING: [&str; 3] = ["elicitation", "roots", "sampling"];

/// Builds the `params` of `initialize`. Of the client's capabilities only those are declared that we can serve: without
/// them the server asks nothing back.
pub(super) fn initialize_params(declared: Option<&RawValue>) -> String {
    let members = declared.and_then(|declared| json::members(declared.get())).unwrap_or_default();
    let served = members.iter().filter(|(name, _)| ASKING.contains(&name.as_ref()));
    let mut capabilities = "{}".to_owned();
    for (name, value) in served {
        capabilities = json::with_member(&capabilities, name, value.get()).into_owned();
    }
    let version = json::quoted(Revision::LATEST_LEGACY.name());
    let client = message::client_info();
    let members = [
        ("protocolVersion", version.as_str()),
        ("capabilities", capabilities.as_str()),
        ("clientInfo", client.as_str()),
    ];
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
pub(super) fn read_initialize(result: &str) -> Result<ServerFacts, String> {
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
    let wire: Wire = serde_json::from_str(result).map_err(|_| "its answer to initialize cannot be read")?;
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
pub(super) fn read_discover(result: &str) -> Option<ServerFacts> {
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
    let wire: Wire = serde_json::from_str(result).ok()?;
    wire.versions.iter().any(|version| version == Revision::MODERN.name()).then(|| ServerFacts {
        revision: Revision::MODERN,
        server_info: wire.meta.and_then(|meta| meta.server_info).map(ToOwned::to_owned),
        capabilities: wire.capabilities.map(ToOwned::to_owned),
        instructions: wire.instructions,
    })
}

/// Whether the server declared a capability, given as a path of member names.
pub(super) fn declares(facts: &ServerFacts, path: &[&str]) -> bool {
    facts.capabilities.as_deref().is_some_and(|capabilities| declared(capabilities, path))
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

/// Builds the `params` of `subscriptions/listen` (2026-07-28): changes of the lists that the server declares to tell, and
/// of these resources. `None`: there is nothing to listen for.
pub(super) fn listen_params(facts: &ServerFacts, uris: &[String]) -> Option<String> {
    let lists =
        [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];
    let mut wanted = serde_json::Map::new();
    for (capability, member) in lists {
        if declares(facts, &[capability, "listChanged"]) {
            wanted.insert(member.to_owned(), true.into());
        }
    }
    if !uris.is_empty() {
        wanted.insert("resourceSubscriptions".to_owned(), uris.into());
    }
    let wanted = (!wanted.is_empty()).then(|| serde_json::Value::Object(wanted).to_string())?;
    Some(message::params(Revision::MODERN, &[("notifications", &wanted)], Meta::default()))
}

/// Says that the server refused a request of ours, in its words.
pub(super) fn refused(method: &str, error: &RawValue) -> String {
    let (code, text) = message::error_parts(error);
    format!("it refused {method}: {} {}", code.map(|code| code.to_string()).unwrap_or_default(), bounded(&text))
}

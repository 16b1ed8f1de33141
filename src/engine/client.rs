//! What an upstream may need to know of the client of a call: revision, capabilities, session, log level. Carried inside
//! the call's stored `_meta`, so that any process has it after a restart. Knows no transport and asks nobody.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{broadcast, watch};

use super::Engine;
use crate::model::json::{is_null, members, text};
use crate::model::revision::Revision;

/// The member of a call's stored `_meta` that carries the context. Members with our prefix are never passed upstream.
pub const MEMBER: &str = "durable-mcp/client";
/// Sessions that have ended and are not yet looked at by a follower; whoever lags lets idle time end what was theirs.
const ENDED_QUEUE: usize = 1_024;

/// The client of a call, as far as an upstream may need to know it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ClientContext {
    /// The revision it speaks; absent where nobody told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Its session, or the fixed id of its stdio connection; absent for clients without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its `capabilities` object, byte for byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Box<RawValue>>,
    /// The least level of log messages it asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<String>,
}

impl ClientContext {
    /// The context inside a stored `_meta`; the empty one where there is none.
    pub fn of_meta(meta: Option<&str>) -> ClientContext {
        let found = meta.and_then(members).unwrap_or_default().into_iter().find(|(name, _)| name == MEMBER);
        found.and_then(|(_, value)| serde_json::from_str(value.get()).ok()).unwrap_or_default()
    }

    /// The context as the value of [`MEMBER`].
    pub fn to_json(&self) -> String {
        // Strings and raw JSON always serialise.
        serde_json::to_string(self).expect("a client's context is always JSON")
    }

    /// True when the client speaks revision 2026-07-28 or a later one.
    pub fn is_modern(&self) -> bool {
        self.revision.as_deref().and_then(Revision::find).is_some_and(Revision::is_modern)
    }

    fn can_the_same(&self, other: &ClientContext) -> bool {
        let text = |client: &ClientContext| client.capabilities.as_ref().map(|raw| raw.get().to_owned());
        self.revision == other.revision && text(self) == text(other)
    }

    /// True when the client declared a capability, given as a path of member names.
    pub fn declares(&self, path: &[&str]) -> bool {
        let Some(capabilities) = &self.capabilities else { return false };
        declared(capabilities, path)
    }
}

/// True when a capabilities object has a member at `path` that is neither `null` nor `false`.
pub fn declared(capabilities: &RawValue, path: &[&str]) -> bool {
    let mut at = capabilities;
    for name in path {
        let Some(found) = members(at.get()) else { return false };
        match found.into_iter().find(|(member, _)| member == name) {
            Some((_, value)) => at = value,
            None => return false,
        }
    }
    !is_null(at) && at.get() != "false"
}

/// The string member `name` of an object.
pub fn string_member(object: &str, name: &str) -> Option<String> {
    let found = members(object)?.into_iter().find(|(member, _)| member == name)?;
    text(found.1).map(|text| text.into_owned())
}

/// What is known of clients apart from their calls.
#[derive(Debug)]
pub struct Clients {
    only: watch::Sender<Option<Arc<ClientContext>>>,
    ended: broadcast::Sender<String>,
}

impl Default for Clients {
    fn default() -> Self {
        Self { only: watch::Sender::new(None), ended: broadcast::channel(ENDED_QUEUE).0 }
    }
}

impl Engine {
    /// The one client of a process that serves no other (`wrap`) has said who it is; the newest word counts.
    pub fn only_client(&self, client: Arc<ClientContext>) {
        self.clients.only.send_if_modified(|known| {
            let differs = known.as_ref().is_none_or(|known| !known.can_the_same(&client));
            if differs {
                *known = Some(client);
            }
            differs
        });
    }

    /// The one client of this process, once it has said who it is.
    pub fn follow_only_client(&self) -> watch::Receiver<Option<Arc<ClientContext>>> {
        self.clients.only.subscribe()
    }

    /// A session has ended: what belongs to it alone may end.
    pub fn session_ended(&self, session: &str) {
        // Nobody may be there to hear it.
        let _ = self.clients.ended.send(session.to_owned());
    }

    /// Follows the ends of sessions.
    pub fn ended_sessions(&self) -> broadcast::Receiver<String> {
        self.clients.ended.subscribe()
    }
}

//! What is known of a server: how it stands, and its lists as it last gave them, byte for byte. Reads nothing itself.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::model::revision::Revision;

/// What the handshake told about the server.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    pub revision: Revision,
    /// `serverInfo` as sent.
    pub server_info: Option<Box<RawValue>>,
    /// `capabilities` as sent.
    pub capabilities: Option<Box<RawValue>>,
    pub instructions: Option<String>,
}

/// One tool as listed.
#[derive(Clone, Debug)]
pub struct Tool {
    pub name: String,
    /// The whole object, byte for byte.
    pub raw: Box<RawValue>,
}

/// What a server of revision 2026-07-28 says about how long a list may be kept (server/utilities/caching).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    pub ttl_ms: i64,
    pub is_private: bool,
}

/// A list of the server other than that of its tools: whole objects byte for byte, in its order.
#[derive(Clone, Debug, Default)]
pub struct Items {
    pub items: Arc<[Box<RawValue>]>,
    pub keeping: Option<Keeping>,
}

/// All that the server lists.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// 0 before the server was ever up, then one more with each list read.
    pub generation: u64,
    pub facts: Option<ServerFacts>,
    pub tools: Vec<Tool>,
    pub tools_keeping: Option<Keeping>,
    pub resources: Items,
    pub templates: Items,
    pub prompts: Items,
    /// How often the server has said of each list that it changed: tools, resources, prompts.
    pub told: [u64; 3],
}

/// How the server stands.
#[derive(Clone, Debug)]
pub enum Status {
    /// The first start has not been decided yet.
    Starting,
    Ready(ServerFacts),
    /// Down for now; it is started again in `retry_in`.
    Down {
        reason: String,
        retry_in: Duration,
    },
    /// The settings cannot work; nothing is tried again.
    Failed {
        reason: String,
    },
    /// Ended on our request.
    Stopped,
}

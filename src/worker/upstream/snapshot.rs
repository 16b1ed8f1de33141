//! What is known of a server: how it stands, and its tools as it last listed them, byte for byte.

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

/// All tools of the server, in its order.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// 0 before the server was ever up, then one more with each list read.
    pub generation: u64,
    pub facts: Option<ServerFacts>,
    pub tools: Vec<Tool>,
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

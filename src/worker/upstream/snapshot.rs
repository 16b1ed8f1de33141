//! What is known of a server: how it stands, and its tools as it last listed them, byte for byte.

use std::time::Duration;

use serde_json::value::RawValue;

/// A protocol revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    /// The newest revision that opens with `initialize`; it is the one we offer.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;
    /// The revision without sessions.
    pub const MODERN: Self = Self::V2026_07_28;

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28]
            .into_iter()
            .find(|revision| revision.as_str() == text)
    }

    /// Whether the revision has per-request `_meta` instead of `initialize`.
    pub fn is_modern(self) -> bool {
        self == Self::MODERN
    }
}

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

//! Names of things: executions, processes, operations. Makes no randomness of its own: the bits come in.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Random bytes for one id, from the system's generator (a task id may not be guessable).
pub type Entropy = [u8; 10];

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Makes a UUIDv7 (RFC 9562): `now_ms` since the Unix epoch, every other bit random.
            pub fn new(now_ms: i64, entropy: &Entropy) -> Self {
                Self(uuid::Builder::from_unix_timestamp_millis(now_ms.max(0) as u64, entropy).into_uuid())
            }

            /// The id that is this UUID.
            pub fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The value as a UUID.
            pub fn as_uuid(&self) -> &Uuid {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::try_parse(text).map(Self)
            }
        }
    };
}

uuid_id! {
    /// One durable run of one tool call; also the MCP task id.
    ExecutionId
}
impl ExecutionId {
    /// The id whose halves these are.
    pub fn from_u64_pair(high: u64, low: u64) -> Self {
        Self(Uuid::from_u64_pair(high, low))
    }

    /// The lowest id that can be made at `at_ms` (milliseconds since the epoch): a border for a search by time.
    pub fn first_at(at_ms: i64) -> Self {
        Self::new(at_ms.clamp(0, (1 << 48) - 1), &Entropy::default())
    }
}

uuid_id! {
    /// One operating-system process of ours while it lives: it owns leases and waits for executions.
    ProcessId
}
uuid_id! {
    /// One write that may have to be repeated after an ambiguous commit; kept in the events it made.
    OperationId
}

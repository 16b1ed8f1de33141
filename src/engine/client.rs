//! What an upstream may need to know of the client of a call. Stored with the execution inside its meta payload, so that
//! any process has it after a restart; never passed upstream as it is.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The member of the meta payload that holds a [`ClientContext`].
pub const CLIENT_MEMBER: &str = "durable-mcp/client";

/// The client of a call, as it described itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClientContext {
    /// The revision it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Its session, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The capabilities it declared, as it wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Box<RawValue>>,
    /// The least severe log messages it wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<String>,
}

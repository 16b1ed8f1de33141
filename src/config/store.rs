//! What some settings of the store can say. The settings themselves are in `settings.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far transactions of a PostgreSQL store are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    Serializable,
    ReadCommitted,
}

/// What a start does with the schema of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Migrate {
    Auto,
    Check,
}

//! How long ended executions are kept, as it is written: for all, by their state, and by their namespace.

use super::units::Millis;
use schemars::JsonSchema;
use serde::Deserialize;

/// How long ended executions are kept. An `unknown` one is kept until somebody resolves it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Arguments and results, counted from the end of the execution.
    #[schemars(extend("x-min-ms" = 1))]
    pub payloads: Millis,
    /// Whole executions with their events, counted from the end.
    #[schemars(extend("x-min-ms" = 1))]
    pub executions: Millis,
    /// How often old data is deleted.
    #[schemars(extend("x-min-ms" = 1))]
    pub interval: Millis,
    /// The most executions that one commit deletes; whoever else writes has its turn after each. On
    /// PostgreSQL, where nobody waits for it, five times as many go at a time, in commits of at most 100.
    #[schemars(range(min = 1, max = 10_000))]
    pub batch: u32,
    /// The part of the time that deleting may take, in percent; the rest is left to calls.
    #[schemars(range(min = 1, max = 100))]
    pub share: u32,
    /// Executions that completed.
    pub completed: KeptSpans,
    /// Executions that failed.
    pub failed: KeptSpans,
    /// Executions that were cancelled.
    pub cancelled: KeptSpans,
}

/// Spans of their own; what is left out is as one level further out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeptSpans {
    /// Arguments and results, counted from the end of the execution.
    #[schemars(extend("x-min-ms" = 1, "x-inherits" = "retention.payloads"))]
    pub payloads: Option<Millis>,
    /// Whole executions with their events, counted from the end.
    #[schemars(extend("x-min-ms" = 1, "x-inherits" = "retention.executions"))]
    pub executions: Option<Millis>,
}

/// How long the ended executions of one namespace are kept; what is left out is as in `retention`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OwnRetention {
    /// Arguments and results, counted from the end of the execution.
    #[schemars(extend("x-min-ms" = 1, "x-inherits" = "retention.payloads"))]
    pub payloads: Option<Millis>,
    /// Whole executions with their events, counted from the end.
    #[schemars(extend("x-min-ms" = 1, "x-inherits" = "retention.executions"))]
    pub executions: Option<Millis>,
    /// Executions that completed.
    pub completed: KeptSpans,
    /// Executions that failed.
    pub failed: KeptSpans,
    /// Executions that were cancelled.
    pub cancelled: KeptSpans,
}

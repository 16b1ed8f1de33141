//! What is told of this process to others: metrics, traces, faults. Holds values only.

use schemars::JsonSchema;
use serde::Deserialize;

use super::secret::Secret;

/// What is told of this process to others.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Whether `/metrics` is served, to credentials with the scope `read` that see every tenant.
    pub metrics: bool,
    /// Tools whose calls are counted under their own name; those beyond it are counted together, as `other`.
    #[schemars(range(min = 1, max = 10_000))]
    pub metric_tools: u32,
    /// Where traces go: the address of an OTLP collector (HTTP, protobuf), to which `/v1/traces` is added. Without it
    /// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`; without those no traces are made.
    #[schemars(extend("x-format" = "http-url", "x-secret" = false, "x-url" = true))]
    pub otlp_endpoint: Option<Secret>,
    /// Spans that wait for the collector; when it is slower than that, spans are dropped and counted, and no call waits.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_spans: u32,
    /// Where faults of ours go: a Sentry DSN. They carry ids and places in our code, never arguments or results.
    #[schemars(extend("x-format" = "http-url"))]
    pub sentry_dsn: Option<Secret>,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { metrics: true, metric_tools: 100, otlp_endpoint: None, max_spans: 8_192, sentry_dsn: None }
    }
}

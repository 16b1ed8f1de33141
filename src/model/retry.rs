//! When a lost attempt runs again: exponential back-off with a jitter that is a function of id and attempt,
//! so that the same history always gives the same schedule. Decides no delivery question.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::id::ExecutionId;

/// How often and how soon an execution is tried again. Durations in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; at least 1.
    pub max_attempts: u32,
    /// Wait before the second attempt.
    pub initial_interval_ms: i64,
    /// Growth of the wait from one attempt to the next; at least 1.
    pub backoff_coefficient: f64,
    /// The longest wait.
    pub max_interval_ms: i64,
    /// Share of the wait by which it may be shorter or longer, 0..=1.
    pub jitter: f64,
    /// A tool's answer that is retried although it is an answer.
    #[serde(default, skip_serializing_if = "RetryOn::is_empty")]
    pub on: RetryOn,
}

/// Answers that a tool's configuration asks to retry; delivery still has to permit another run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryOn {
    /// A result with `isError: true`.
    #[serde(default)]
    pub tool_error: bool,
    /// A JSON-RPC error of the upstream.
    #[serde(default)]
    pub rpc_error: bool,
}

impl RetryOn {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_interval_ms: 500,
            backoff_coefficient: 2.0,
            max_interval_ms: 30_000,
            jitter: 0.2,
            on: RetryOn::default(),
        }
    }
}

impl RetryPolicy {
    /// The wait in milliseconds after `attempt` (1-based) was lost, before the next one may start.
    pub fn delay_ms(&self, id: ExecutionId, attempt: u32) -> i64 {
        let exponent = attempt.saturating_sub(1).min(1_000) as i32;
        let max_ms = self.max_interval_ms.max(0) as f64;
        // Nothing times an overflowing power is no number.
        let plain = match self.initial_interval_ms {
            ..=0 => 0.0,
            initial_ms => initial_ms as f64 * self.backoff_coefficient.max(1.0).powi(exponent),
        };
        let capped = plain.min(max_ms);
        let factor = 1.0 + self.jitter.clamp(0.0, 1.0) * signed_unit(id, attempt);
        let wait_ms = (capped * factor).round().clamp(0.0, max_ms) as i64;
        // Beyond 2^53 the bound as a float may lie above the bound itself.
        wait_ms.min(self.max_interval_ms.max(0))
    }
}

/// A number in -1..=1 that depends on nothing but id and attempt.
fn signed_unit(id: ExecutionId, attempt: u32) -> f64 {
    let mut hash = Sha256::new();
    hash.update(id.as_uuid().as_bytes());
    hash.update(attempt.to_be_bytes());
    let digest = hash.finalize();
    let word = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    f64::from(word) / f64::from(u32::MAX) * 2.0 - 1.0
}

//! Immutable facts about one execution, numbered 1..n without gaps, and their wire names. Holds digests and sizes,
//! never payloads.

use serde::{Deserialize, Serialize};

use super::execution::{Effect, ErrorInfo, ResultSource};
use super::id::{OperationId, ProcessId};

/// Digest of a payload that an event speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// SHA-256 of the exact text, lower-case hex.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
}

impl Digest {
    /// The digest of `text`.
    pub fn of(text: &str) -> Digest {
        use sha2::Digest as _;
        Digest { sha256: hex::encode(sha2::Sha256::digest(text.as_bytes())), bytes: text.len() as u64 }
    }
}

/// Why a lease ended without its worker saying so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryCause {
    /// Its time ran out.
    LeaseExpired,
    /// The process that held it is dead.
    ProcessDied,
}

/// The error codes of attempts that ended without a word of the tool: its worker, child or connection was lost, or it
/// was stopped. The codes of answers (`tool_error`, `rpc_error`) and of calls that never reached the tool are others.
pub const LOSS_CODES: [&str; 9] = [
    "lease_expired",
    "process_died",
    "child_died",
    "connection_lost",
    "attempt_timeout",
    "idle_timeout",
    "worker_stopped",
    "command_stopped",
    "cancelled",
];

/// What happened. The serde tag is the wire name of the event's type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The call was stored.
    Submitted {
        /// Earliest start, for a delayed call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_at_ms: Option<i64>,
        /// Who ordered it in the place of another execution, with the reason; absent for a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Order>,
    },
    /// Its time came.
    Promoted,
    /// A worker got the right to run it; under `at_most_once` this is the dispatch record.
    Leased {
        /// Who.
        worker: String,
        /// The process of that worker.
        process: ProcessId,
        /// The lease's number.
        fencing_token: i64,
        /// Which try this is.
        attempt: u32,
    },
    /// The worker gave it back unstarted.
    Released {
        /// The lease's number.
        fencing_token: i64,
    },
    /// It waits for input while the worker keeps its lease.
    Held,
    /// It waits for input and holds no lease.
    Parked,
    /// Input came.
    Resumed,
    /// It will run again.
    Retried {
        /// When.
        run_at_ms: i64,
        /// The try that was lost, or answered with an error.
        attempt: u32,
        /// That try may have had its effect.
        ran: bool,
        /// Why.
        error: ErrorInfo,
        /// Who ordered it, with the reason; absent when the policy did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Order>,
    },
    /// Dispatched, outcome never learnt, not run again.
    Lost {
        /// The try that was lost.
        attempt: u32,
        /// Why.
        error: ErrorInfo,
    },
    /// The tool's result was recorded.
    Completed {
        /// The lease that brought it; absent when a person or a reconcile rule did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fencing_token: Option<i64>,
        /// Where it came from.
        source: ResultSource,
        /// The result's `isError`.
        is_error: bool,
        /// The result.
        result: Digest,
        /// Who said so, for `resolve`, with the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Order>,
    },
    /// There is no result and there will be none.
    Failed {
        /// The try that failed; 0 when none was made.
        attempt: u32,
        /// That try may have had its effect.
        ran: bool,
        /// Why.
        error: ErrorInfo,
        /// Who said so, for `resolve`, with the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Order>,
    },
    /// It was cancelled.
    Cancelled {
        /// Whether the call may have had its effect.
        effect: Effect,
        /// Who, and why.
        by: Order,
    },
    /// A result or report came that may not count; nothing changed.
    Rejected {
        /// The token it came under.
        fencing_token: i64,
        /// Why it may not count: `stale_token` or `ended`.
        reason: String,
        /// The result, when there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Digest>,
    },
    /// A call came under the same key with other arguments or from another principal; nothing ran.
    Conflicted {
        /// Hash of the other arguments.
        arguments_hash: String,
        /// True when it came from another principal.
        foreign: bool,
    },
}

/// A person's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The principal.
    pub principal: String,
    /// Why.
    pub reason: String,
}

impl Event {
    /// Every wire name, in the order of docs/states.md.
    pub const NAMES: [&'static str; 14] = [
        "submitted",
        "promoted",
        "leased",
        "released",
        "held",
        "parked",
        "resumed",
        "retried",
        "lost",
        "completed",
        "failed",
        "cancelled",
        "rejected",
        "conflicted",
    ];

    /// The wire name.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Submitted { .. } => "submitted",
            Event::Promoted => "promoted",
            Event::Leased { .. } => "leased",
            Event::Released { .. } => "released",
            Event::Held => "held",
            Event::Parked => "parked",
            Event::Resumed => "resumed",
            Event::Retried { .. } => "retried",
            Event::Lost { .. } => "lost",
            Event::Completed { .. } => "completed",
            Event::Failed { .. } => "failed",
            Event::Cancelled { .. } => "cancelled",
            Event::Rejected { .. } => "rejected",
            Event::Conflicted { .. } => "conflicted",
        }
    }

    /// True when an attempt was lost: it was started, and nobody learnt how it went.
    pub fn is_loss(&self) -> bool {
        match self {
            Event::Lost { .. } => true,
            Event::Retried { error, .. } => LOSS_CODES.contains(&error.code.as_str()),
            _ => false,
        }
    }

    /// True for the one event that ends an execution.
    pub fn is_final(&self) -> bool {
        matches!(self, Event::Completed { .. } | Event::Failed { .. } | Event::Cancelled { .. })
    }
}

/// An event with its place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord {
    /// 1..n without gaps.
    pub seq: i64,
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// The write that made it.
    pub operation: OperationId,
    /// What happened.
    pub event: Event,
}

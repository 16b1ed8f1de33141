//! What can be asked of a stored execution. Commands are data: a driver may run one again after an ambiguous commit.
//! Decides nothing: see `decide.rs`.

use super::event::{Digest, ExpiryCause, Order};
use super::execution::ErrorInfo;
use super::id::ProcessId;

/// What somebody wants of an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A worker wants to run it.
    Lease(LeaseRequest),
    /// The worker still works; extends the lease and is no event.
    Heartbeat {
        /// The lease's number.
        fencing_token: i64,
        /// From now, in milliseconds.
        ttl_ms: i64,
    },
    /// The worker has the tool's result.
    Complete {
        /// The lease's number.
        fencing_token: i64,
        /// The result.
        result: Digest,
        /// The result's `isError`.
        is_error: bool,
    },
    /// The worker has no result.
    Fail {
        /// The lease's number.
        fencing_token: i64,
        /// What it knows.
        failure: Failure,
    },
    /// The worker gives it back; it provably never started.
    Release {
        /// The lease's number.
        fencing_token: i64,
    },
    /// It waits for input; the worker keeps the lease.
    Hold {
        /// The lease's number.
        fencing_token: i64,
    },
    /// It waits for input without a lease.
    Park {
        /// The lease's number.
        fencing_token: i64,
    },
    /// The input came.
    Resume,
    /// The scheduler found that a lease ended by itself.
    Expire {
        /// The lease's number as the scheduler saw it.
        fencing_token: i64,
        /// Why.
        cause: ExpiryCause,
    },
    /// The scheduler found a deadline passed: the total time, or the time in a queue.
    TimeOut {
        /// No living worker runs what the call is for.
        nobody_runs: bool,
    },
    /// Its time came.
    Promote,
    /// Somebody wants it to stop.
    Cancel(Order),
    /// A person orders one more attempt of an `unknown`.
    Retry(Order),
    /// A person says what became of an `unknown`.
    Resolve {
        /// Who and why.
        by: Order,
        /// What became of it.
        outcome: Outcome,
    },
    /// The reconcile rule asked the upstream about an `unknown`.
    Reconcile {
        /// The lease that was lost, as it was when the upstream was asked: an answer about an older attempt says nothing
        /// about a newer one.
        fencing_token: i64,
        /// The result to record, when the call took effect; absent: it did not, run it again while attempts are left.
        found: Option<Digest>,
    },
}

impl Command {
    /// True for what only the holder of a lease does, or whoever becomes it.
    pub fn is_of_holder(&self) -> bool {
        use Command::{Complete, Fail, Heartbeat, Hold, Lease, Park, Release};
        matches!(
            self,
            Lease(_) | Heartbeat { .. } | Complete { .. } | Fail { .. } | Release { .. } | Hold { .. } | Park { .. }
        )
    }
}

/// Who wants to run an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseRequest {
    /// The worker.
    pub worker: String,
    /// The process it lives in.
    pub process: ProcessId,
    /// How long the lease lasts without a heartbeat, in milliseconds.
    pub ttl_ms: i64,
    /// Another process whose bound executions may be taken: one that is dead, or that hands them out itself.
    pub takes_over: Option<ProcessId>,
}

/// What became of an execution, in a person's words.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It has this result.
    Completed {
        /// The result.
        result: Digest,
        /// The result's `isError`.
        is_error: bool,
    },
    /// It failed.
    Failed,
}

/// What a worker knows about an attempt without a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What it means for another run.
    pub kind: FailureKind,
    /// Why.
    pub error: ErrorInfo,
    /// The tool's own wish for the wait before another run, in milliseconds.
    pub retry_after_ms: Option<i64>,
}

/// What a failure means for another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The call provably never reached the tool.
    NotStarted,
    /// The call never reached the tool, and never can: what it was called with is not known any more.
    Unrunnable,
    /// The call may have run: the connection or the child was lost, or time ran out.
    Lost,
    /// The upstream answered with a JSON-RPC error.
    RpcError,
    /// A remote worker reported a failure of its own.
    Reported {
        /// Its word on whether another run makes sense.
        retryable: bool,
    },
}

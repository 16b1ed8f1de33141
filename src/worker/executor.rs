//! The seam between the worker loop and the code that runs one kind of tool. Knows no store.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::engine::waiters::Progress;
use crate::model::decide::{Failure, FailureKind};
use crate::model::execution::ErrorInfo;
use crate::model::id::ExecutionId;
use crate::store::Payload;

/// One attempt at one call.
#[derive(Clone, Debug)]
pub struct Job {
    /// The execution.
    pub id: ExecutionId,
    /// Which try, from 1.
    pub attempt: u32,
    /// The lease's number, for the tool's own external writes.
    pub fencing_token: i64,
    /// The key for the tool's own external writes: stable over attempts and ordered retries.
    pub effect_key: ExecutionId,
    /// The tool's own name.
    pub tool: String,
    /// The arguments' exact text, with the effect key filled in where the tool takes it as an argument.
    pub arguments: Payload,
    /// The caller's `_meta` members that go upstream, as one JSON object text.
    pub meta: Option<Payload>,
    /// Another run is permitted should this one fail although the tool was reached: by delivery, attempts and time.
    pub may_run_again: bool,
    /// Ends when the work should stop: cancelled, lease lost, out of time.
    pub cancel: CancellationToken,
}

/// What became of an attempt.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The tool's whole result object.
    Result(Payload),
    /// The upstream's whole JSON-RPC error object.
    RpcError(Payload),
    /// No answer; what is known about the call.
    Failed(Failure),
}

impl Outcome {
    /// The call provably never reached the tool.
    pub fn not_started(code: &str, message: impl Into<String>) -> Outcome {
        Outcome::failed(FailureKind::NotStarted, code, message)
    }

    /// The call may have run, and nobody will learn how it ended.
    pub fn lost(code: &str, message: impl Into<String>) -> Outcome {
        Outcome::failed(FailureKind::Lost, code, message)
    }

    fn failed(kind: FailureKind, code: &str, message: impl Into<String>) -> Outcome {
        let error = ErrorInfo { code: code.into(), message: message.into() };
        Outcome::Failed(Failure { kind, error, retry_after_ms: None })
    }
}

/// Where an executor tells how far it is.
pub type Report<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// Runs one kind of tool.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Runs one attempt. Ends soon after `job.cancel` does, and may be dropped then; whatever it started has to be told.
    async fn run(&self, job: Job, report: Report<'_>) -> Outcome;
}

//! The seam between the worker loop and the code that runs one kind of tool. Knows no store.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::engine::asking::{Asks, AsksNobody, Question};
use crate::engine::client::ClientContext;
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
    /// Where the tool asks the client.
    pub asks: Arc<dyn Asks>,
    /// The client of the call, as it described itself.
    pub client: Arc<ClientContext>,
    /// The tenant of the call.
    pub namespace: String,
    /// Who called.
    pub principal: String,
    /// What the client answered in an earlier round, where the attempt goes on after one.
    pub continuation: Option<Continuation>,
}

impl Job {
    /// A first attempt at a call that nobody's client waits for: it can ask nobody.
    pub fn of_nobody(id: ExecutionId, tool: impl Into<String>, arguments: impl Into<Payload>) -> Job {
        Job {
            id,
            attempt: 1,
            fencing_token: 1,
            effect_key: id,
            tool: tool.into(),
            arguments: arguments.into(),
            meta: None,
            may_run_again: false,
            cancel: CancellationToken::new(),
            asks: Arc::new(AsksNobody),
            client: Arc::default(),
            namespace: "default".into(),
            principal: "anonymous".into(),
            continuation: None,
        }
    }
}

/// What goes upstream with the call when it goes on after a round of questions (MCP `inputResponses`, `requestState`).
#[derive(Clone, Debug, PartialEq)]
pub struct Continuation {
    /// The tool's own state, as it gave it: a JSON value.
    pub state: Option<Payload>,
    /// The client's answers by the tool's own keys: result objects, byte for byte.
    pub responses: Vec<(String, Payload)>,
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
    /// The tool answered with questions and has ended for now (MCP `input_required`): it is run again, in the same
    /// attempt, once they are answered.
    InputRequired {
        /// What it asks; maybe nothing.
        questions: Vec<Question>,
        /// What it wants to see again: a JSON value.
        state: Option<Payload>,
    },
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

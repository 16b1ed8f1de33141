//! Why a remote worker is refused something. One mapping to codes; what they mean over HTTP is the caller's business.

use thiserror::Error;

use crate::engine;

/// Why a request of a remote worker is refused.
#[derive(Debug, Error)]
pub enum Refused {
    /// Nobody registered it, or it was forgotten.
    #[error("there is no such worker")]
    WorkerUnknown,
    /// Another principal or namespace registered it.
    #[error("the worker id was registered by somebody else")]
    WorkerForeign,
    /// The token was not granted to this worker.
    #[error("the lease token was not granted to this worker")]
    LeaseForeign,
    /// A newer lease exists.
    #[error("a newer lease of execution {0} exists")]
    LeaseStale(crate::model::id::ExecutionId),
    /// The lease ran out.
    #[error("the lease of execution {0} is not held any more")]
    LeaseLost(crate::model::id::ExecutionId),
    /// The execution has ended otherwise.
    #[error("execution {0} has ended")]
    ExecutionEnded(crate::model::id::ExecutionId),
    /// Something else offers a tool of this name.
    #[error("the tool name `{0}` is taken by another server or command")]
    ToolNameTaken(String),
    /// There are as many workers as there may be.
    #[error("{0} workers are registered already")]
    TooManyWorkers(usize),
    /// The execution has as many steps as it may have.
    #[error("the execution has {0} steps already")]
    TooManySteps(usize),
    /// A rule of redaction strikes what a later attempt would have to be given as it is.
    #[error("what was to be kept holds what a rule of redaction strikes, and is of no use without it")]
    Redacted,
    /// The server is going down.
    #[error("the server is going down")]
    Draining,
    /// The engine could not do it.
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

impl Refused {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Refused::WorkerUnknown => "worker_unknown",
            Refused::WorkerForeign => "worker_foreign",
            Refused::LeaseForeign => "lease_foreign",
            Refused::LeaseStale(_) => "lease_stale",
            Refused::LeaseLost(_) => "lease_lost",
            Refused::ExecutionEnded(_) => "execution_ended",
            Refused::ToolNameTaken(_) => "tool_name_taken",
            Refused::TooManyWorkers(_) => "too_many_workers",
            Refused::TooManySteps(_) => "too_many_steps",
            Refused::Redacted => "redacted",
            Refused::Draining => "draining",
            Refused::Engine(error) => error.code(),
        }
    }
}

impl From<crate::store::Error> for Refused {
    fn from(error: crate::store::Error) -> Refused {
        Refused::Engine(error.into())
    }
}

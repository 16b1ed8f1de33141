//! What the verbs answer when they cannot do what was asked. Mapped once to JSON-RPC, once to HTTP, once to exit codes.

use thiserror::Error;

use crate::model::arguments;
use crate::model::id::ExecutionId;
use crate::store;

/// Why a verb did nothing.
#[derive(Debug, Error)]
pub enum Error {
    /// The key stands for another call; the id is absent when another principal holds it.
    #[error("the idempotency key is already used for a different call")]
    Conflict(Option<ExecutionId>),
    /// Queues are full; nothing was stored or run.
    #[error("{0}")]
    Overloaded(String),
    /// There is no such execution, or it is not the caller's.
    #[error("there is no execution {0}")]
    NotFound(String),
    /// The state does not permit it.
    #[error("execution {id} is {state}; {verb} is not possible")]
    NotPermitted {
        /// Which.
        id: ExecutionId,
        /// Where it stands.
        state: &'static str,
        /// What was asked.
        verb: &'static str,
    },
    /// Another execution holds the key of the one that was to be repeated.
    #[error("the key of execution {id} belongs to execution {holder} now")]
    KeyTaken {
        /// Which was to be repeated.
        id: ExecutionId,
        /// Which holds the key.
        holder: String,
    },
    /// There is nothing left to run again.
    #[error("the arguments of execution {0} were deleted by retention")]
    ArgumentsDeleted(ExecutionId),
    /// What is stored of the arguments is not what the call was made with.
    #[error("the stored arguments of execution {0} are redacted, so it can not be run again; make the call anew")]
    ArgumentsRedacted(ExecutionId),
    /// The arguments have no canonical form.
    #[error("{0}")]
    Arguments(#[from] arguments::Error),
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Conflict(_) => "idempotency_key_conflict",
            Error::Overloaded(_) => "overloaded",
            Error::NotFound(_) => "not_found",
            Error::NotPermitted { .. } => "not_permitted",
            Error::KeyTaken { .. } => "key_taken",
            Error::ArgumentsDeleted(_) => "arguments_deleted",
            Error::ArgumentsRedacted(_) => "arguments_redacted",
            Error::Arguments(_) => "invalid_arguments",
            Error::Store(error) => error.code(),
        }
    }
}

/// A result of a verb.
pub type Result<T> = std::result::Result<T, Error>;

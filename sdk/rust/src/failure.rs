//! How a handler says that a call has no result. Decides nothing: what follows is the server's affair.

use std::error::Error;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The tool says no: the caller gets this text as a result with `isError`. It is not retried.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(String);

impl ToolError {
    pub fn new(message: impl Into<String>) -> ToolError {
        ToolError(message.into())
    }
}

/// No result this time: run the call again, if its delivery permits another attempt.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Retry {
    message: String,
    after: Option<Duration>,
    not_started: bool,
}

impl Retry {
    pub fn new(message: impl Into<String>) -> Retry {
        Retry { message: message.into(), after: None, not_started: false }
    }

    /// The earliest time of the next attempt, from now; without it the server's back-off decides.
    pub fn after(self, after: Duration) -> Retry {
        Retry { after: Some(after), ..self }
    }

    /// The effect provably was not begun: only then does an `at_most_once` call run again.
    pub fn not_started(self) -> Retry {
        Retry { not_started: true, ..self }
    }
}

/// Nobody wants a result any more: the call was cancelled, or its lease was lost.
#[derive(Debug, thiserror::Error)]
#[error("the call was cancelled or its lease was lost")]
pub struct Cancelled;

/// Why a handler has no result. Every error becomes one by `?`: [`ToolError`], [`Retry`] and [`Cancelled`] with their own
/// meaning, all others as failures that are not retried. Like other boxes of errors it is none itself.
#[derive(Debug)]
pub struct Failure(pub(crate) Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    ToolError(String),
    Retry { message: String, after: Option<Duration>, not_started: bool },
    Cancelled,
    Other { code: String, message: String },
}

impl Failure {
    /// A failure that is not retried, for what is no `Error`.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Failure {
        Failure(Kind::Other { code: code.into(), message: message.into() })
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        let error = match error.downcast::<ToolError>() {
            Ok(no) => return Failure(Kind::ToolError(no.0)),
            Err(error) => error,
        };
        let error = match error.downcast::<Retry>() {
            Ok(retry) => {
                let Retry { message, after, not_started } = *retry;
                return Failure(Kind::Retry { message, after, not_started });
            }
            Err(error) => error,
        };
        if error.is::<Cancelled>() {
            return Failure(Kind::Cancelled);
        }
        Failure(Kind::Other { code: short_name(std::any::type_name::<E>()), message: error.to_string() })
    }
}

/// The name of a type with its module, without the path there and without type parameters: most are called `Error`.
fn short_name(path: &str) -> String {
    let path = path.split('<').next().unwrap_or(path);
    let parts: Vec<&str> = path.split("::").collect();
    parts[parts.len().saturating_sub(2)..].join(".")
}

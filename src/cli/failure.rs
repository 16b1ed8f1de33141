//! How a command ends: the exit codes, and a failure with what is wrong and what to do next. One mapping for everything.

use std::fmt;

use crate::http::token;
use crate::serve;
use crate::store;

/// The exit codes (docs: exit codes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It worked.
    Ok = 0,
    /// It did not.
    Failure = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// There is no such thing, or it may not be seen.
    NotFound = 3,
    /// A credential is missing or permits too little.
    Auth = 4,
    /// The tool returned an error, or the execution failed.
    ToolError = 5,
    /// The idempotency key stands for another call, or something else is in the place.
    Conflict = 6,
    /// The server can not be reached.
    Unreachable = 7,
    /// The execution goes on.
    Running = 8,
    /// The outcome is unknown.
    Unknown = 9,
    /// Ctrl-C.
    Interrupted = 130,
}

/// Why a command could not do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code of the process.
    pub exit: u8,
    /// What is wrong, one line.
    pub error: String,
    /// What to do about it, one line.
    pub next: Option<String>,
}

impl Failure {
    /// A failure without advice.
    pub fn new(exit: Exit, error: impl Into<String>) -> Failure {
        Failure { exit: exit as u8, error: error.into(), next: None }
    }

    /// The same with advice.
    pub fn next(mut self, next: impl Into<String>) -> Failure {
        self.next = Some(next.into());
        self
    }

    /// The command line is wrong.
    pub fn usage(error: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, error)
    }

    /// Writes it to stderr; nothing at all when it has no text.
    pub fn print(&self) {
        if !self.error.is_empty() {
            eprintln!("{self}");
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.error)?;
        match &self.next {
            Some(next) => write!(f, "; {next}"),
            None => Ok(()),
        }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Failure {
        Failure::new(Exit::Failure, error.to_string())
    }
}

impl From<token::Error> for Failure {
    fn from(error: token::Error) -> Failure {
        match error {
            token::Error::Store(error) => error.into(),
            error => Failure::usage(error.to_string()),
        }
    }
}

impl From<serve::Failure> for Failure {
    fn from(failure: serve::Failure) -> Failure {
        Failure { exit: failure.exit, error: failure.line, next: None }
    }
}

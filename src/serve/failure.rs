//! Why a process could not do its work: one clear line and the exit code.

use std::fmt;

/// A failure to start, in one line.
#[derive(Debug)]
pub struct Failure {
    /// The process's exit code (docs: exit codes).
    pub exit: u8,
    /// What is wrong and what to do next.
    pub line: String,
}

impl Failure {
    /// Something is wrong with how the process was started.
    pub fn usage(line: impl Into<String>) -> Failure {
        Failure { exit: 2, line: line.into() }
    }

    /// Something is wrong with the world.
    pub fn new(line: impl Into<String>) -> Failure {
        Failure { exit: 1, line: line.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl std::error::Error for Failure {}

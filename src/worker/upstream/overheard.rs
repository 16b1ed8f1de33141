//! What a server's process printed that is no message: lines on stdout outside of the protocol, and its last words on
//! stderr. Bounded, and without the secrets that it was given. For people who ask why a server does not start; nothing is
//! decided by it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where a leg leaves what it hears.
#[derive(Debug, Default)]
pub(super) struct Overheard(Mutex<Heard>);

/// What was heard since the upstream was started, over all starts of its process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Lines on stdout that are no protocol message.
    pub stray_lines: u64,
    /// The first of them.
    pub first_stray_line: Option<String>,
    /// The last line on stderr that is not empty.
    pub last_stderr_line: Option<String>,
}

impl Overheard {
    /// A line on stdout that is no message; `line` makes it fit to be shown.
    pub fn stray(&self, line: impl FnOnce() -> String) {
        let mut heard = self.lock();
        heard.stray_lines += 1;
        heard.first_stray_line.get_or_insert_with(line);
    }

    /// A line on stderr, fit to be shown.
    pub fn stderr(&self, line: &str) {
        if !line.trim().is_empty() {
            self.lock().last_stderr_line = Some(line.trim_end().to_owned());
        }
    }

    pub fn heard(&self) -> Heard {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        // What is heard is whole at every moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

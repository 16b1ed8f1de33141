//! What is wrong with a configuration: exactly one line each, with the place, the reason and the next step. Never quotes a
//! value that may be secret.

use super::node::Place;
use std::fmt;

/// One thing that is wrong. Its `Display` is one line: `file:line:column: reason; next step`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}; {}", one_line(.at), one_line(.reason), one_line(.next))]
pub struct Error {
    pub kind: ErrorKind,
    /// Where: `file:line:column`, the file, a variable, or a flag.
    pub at: String,
    /// What is wrong, lower case, without a full stop.
    pub reason: String,
    /// What to do about it.
    pub next: String,
}

/// The kinds of things that can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The file cannot be read.
    File,
    /// The text is neither TOML nor JSON.
    Syntax,
    /// A key that does not exist, or stands twice.
    Key,
    /// A value of the wrong type, form or size.
    Value,
    /// A setting that is needed and absent, or settings that exclude each other.
    Conflict,
    /// A `${…}` that cannot be filled in.
    Variable,
}

impl Error {
    /// The stable code of the kind.
    pub fn code(&self) -> &'static str {
        match self.kind {
            ErrorKind::File => "config_file",
            ErrorKind::Syntax => "config_syntax",
            ErrorKind::Key => "config_key",
            ErrorKind::Value => "config_value",
            ErrorKind::Conflict => "config_conflict",
            ErrorKind::Variable => "config_variable",
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {self}", self.code())
    }
}

/// Collects what is wrong while a configuration is read, so that one run reports all of it.
pub(super) struct Problems {
    file: String,
    errors: Vec<((usize, usize), Error)>,
    pub warnings: Vec<String>,
}

/// The two halves of a message: what is wrong, and what to do.
pub(super) struct Message {
    pub reason: String,
    pub next: String,
}

impl Message {
    pub fn new(reason: impl Into<String>, next: impl Into<String>) -> Self {
        Self { reason: reason.into(), next: next.into() }
    }
}

impl Problems {
    pub fn new(file: &str) -> Self {
        Self { file: file.to_owned(), errors: Vec::new(), warnings: Vec::new() }
    }

    pub fn error(&mut self, kind: ErrorKind, place: &Place, message: Message) {
        let error = Error { kind, at: self.locate(place), reason: message.reason, next: message.next };
        let order = match place {
            Place::File { line, column } => (*line, *column),
            _ => (usize::MAX, 0),
        };
        if !self.errors.iter().any(|(_, known)| *known == error) {
            self.errors.push((order, error));
        }
    }

    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    pub fn has(&self, kind: ErrorKind) -> bool {
        self.errors.iter().any(|(_, error)| error.kind == kind)
    }

    /// The errors in the order of the file; those of variables and flags last.
    pub fn into_errors(mut self) -> Vec<Error> {
        self.errors.sort_by_key(|(order, _)| *order);
        self.errors.into_iter().map(|(_, error)| error).collect()
    }

    pub fn warn(&mut self, place: &Place, message: Message) {
        let at = self.locate(place);
        self.warnings.push(one_line(&format!("{at}: {}; {}", message.reason, message.next)));
    }

    fn locate(&self, place: &Place) -> String {
        match place {
            Place::File { line: 0, .. } => self.file.clone(),
            Place::File { line, column } => format!("{}:{line}:{column}", self.file),
            Place::Variable(name) | Place::Flag(name) => name.clone(),
            Place::Default => "configuration".to_owned(),
        }
    }
}

/// Returns the text without line breaks and other control characters: a hostile key must not forge a second line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns a name or value as messages quote it: one line, at most 60 characters.
pub(super) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{}`", one_line(&short))
}

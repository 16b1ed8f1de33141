//! One check: what was looked at, how it is, and the next step. Looks at nothing itself.

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::output::printable;

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, and may not for long or not as expected.
    Warn,
    /// It does not work.
    Fail,
}

/// A check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// What was looked at: `configuration`, `command`, `handshake`, `stdout`, `server`, `port`, `store`, `files`, `disk`,
    /// `clock` or `client`, of a database also `isolation`, `tls` and `log`; with `--ready` only `ready`.
    pub check: &'static str,
    /// Which of them, such as a server's name; null when there is one.
    pub subject: Option<String>,
    /// How it is.
    pub status: Status,
    /// What was found, one line.
    pub message: String,
    /// What to do about it, one line; null when all is well.
    pub next: Option<String>,
}

impl Check {
    /// All is well.
    pub fn ok(check: &'static str, subject: Option<&str>, message: impl Into<String>) -> Check {
        Check { check, subject: subject.map(str::to_owned), status: Status::Ok, message: message.into(), next: None }
    }

    /// It may not stay well.
    pub fn warn(self, message: impl Into<String>, next: impl Into<String>) -> Check {
        Check { status: Status::Warn, message: message.into(), next: Some(next.into()), ..self }
    }

    /// It is not well.
    pub fn fail(self, message: impl Into<String>, next: impl Into<String>) -> Check {
        Check { status: Status::Fail, message: message.into(), next: Some(next.into()), ..self }
    }

    /// Begins a check that is about to be judged.
    pub fn of(check: &'static str, subject: Option<&str>) -> Check {
        Check::ok(check, subject, "")
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let status = match self.status {
            Status::Ok => "ok  ",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        };
        let subject = self.subject.as_deref().map(|subject| format!(" {subject}")).unwrap_or_default();
        let next = self.next.as_deref().map(|next| format!("; {next}")).unwrap_or_default();
        printable(&format!("{status}  {}{subject}: {}{next}", self.check, self.message))
    }
}

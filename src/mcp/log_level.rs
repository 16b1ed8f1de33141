//! The eight levels of log notices (RFC 5424) and who hears which. Sends nothing.

use serde_json::value::RawValue;

use crate::engine::client::ClientContext;
use crate::engine::notices::{MESSAGE, Notice};
use crate::model::json;

#[cfg(test)]
mod tests;

/// How grave a log notice is; graver ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// All of them, the least grave first.
    pub const ALL: [LogLevel; 8] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];

    /// The level of this name.
    pub fn find(name: &str) -> Option<LogLevel> {
        LogLevel::ALL.into_iter().find(|level| level.as_str() == name)
    }

    /// Its name in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
            LogLevel::Alert => "alert",
            LogLevel::Emergency => "emergency",
        }
    }

    /// The level of a notice, from the parameters of `notifications/message`; `None` when it names none that is known.
    pub fn of_notice(params: &str) -> Option<LogLevel> {
        let members = json::members(params)?;
        let level: &RawValue = members.iter().rev().find(|(name, _)| name == "level").map(|(_, value)| *value)?;
        LogLevel::find(&json::text(level)?)
    }
}

/// True when who asked for `least` hears a notice with these parameters. A level that nobody knows passes: it was meant
/// to be told. Without a wish everything passes (2025-11-25, logging: the server decides).
pub fn passes(params: &str, least: Option<LogLevel>) -> bool {
    match (least, LogLevel::of_notice(params)) {
        (Some(least), Some(level)) => level >= least,
        _ => true,
    }
}

/// True when the client of a call hears what was told about it. In 2026-07-28 each request asks for its log notices, and
/// one that does not gets none; before, the session asks, and until it has all pass.
pub fn hears(client: &ClientContext, notice: &Notice) -> bool {
    if notice.method != MESSAGE {
        return true;
    }
    let least = client.log_level.as_deref().and_then(LogLevel::find);
    let asked = least.is_some() || !client.is_modern();
    asked && notice.params.as_deref().is_none_or(|params| passes(params, least))
}

//! Bounds how many lines a foreign process can put into our log, and keeps known secrets out of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::settings::{Secret, StdioSettings};
use crate::model::redact::{Known, Rules};

/// The longest line that reaches the log.
const MAX_LINE_BYTES: usize = 1024;
/// Shorter values would blank out ordinary words.
const MIN_SECRET_BYTES: usize = 6;

/// So many lines a second; the rest is counted.
pub(super) struct LogBudget {
    per_second: u32,
    window: Instant,
    used: u32,
    dropped: u64,
}

impl LogBudget {
    pub fn new(per_second: u32) -> Self {
        Self { per_second, window: Instant::now(), used: 0, dropped: 0 }
    }

    /// Asks for one line: `Some(n)` grants it, n lines having been dropped since the last one granted.
    pub fn take(&mut self) -> Option<u64> {
        if self.window.elapsed() >= Duration::from_secs(1) {
            self.window = Instant::now();
            self.used = 0;
        }
        if self.used >= self.per_second {
            self.dropped += 1;
            return None;
        }
        self.used += 1;
        Some(std::mem::take(&mut self.dropped))
    }
}

/// What of a foreign line does not belong into a log.
#[derive(Clone, Debug, Default)]
pub(super) struct Unloggable {
    /// Exact values.
    pub secrets: Vec<Secret>,
    /// The rules of redaction of the server's tools.
    pub rules: Arc<Rules>,
}

impl Unloggable {
    pub fn of(settings: &StdioSettings) -> Self {
        Self { secrets: settings.env.values().cloned().collect(), rules: settings.redact.clone() }
    }
}

/// Stands for a line of a server whose calls have values that are known by their place only: it may repeat one.
const UNTOLD: &str = "[a line that may repeat what is redacted]";

/// Makes a foreign line fit for the log: bounded, one line, without control characters and what is unloggable.
pub(super) fn loggable(line: &[u8], unloggable: &Unloggable) -> String {
    let Unloggable { secrets, rules } = unloggable;
    if rules.has_pointers() {
        return UNTOLD.to_owned();
    }
    let kept = &line[..line.len().min(4 * MAX_LINE_BYTES)];
    let mut text = String::from_utf8_lossy(kept).into_owned();
    let mut longest = 0;
    for secret in secrets.iter().filter(|secret| secret.expose().len() >= MIN_SECRET_BYTES) {
        longest = longest.max(secret.expose().len());
        text = text.replace(secret.expose(), "[secret]");
    }
    if kept.len() < line.len() {
        // A secret cut in two at the end is not found above.
        text.truncate(text.floor_char_boundary(text.len().saturating_sub(longest)));
    }
    if let Some(struck) = rules.strike_text(&text, &Known::default()) {
        text = struck;
    }
    text.truncate(text.floor_char_boundary(MAX_LINE_BYTES));
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

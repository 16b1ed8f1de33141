//! The level of log messages that a legacy server was told (`logging/setLevel`): an own leg gets its client's, a shared one
//! the most talkative that was asked for, since a server knows only one. Filters nothing; who passes messages on does.

use std::sync::atomic::{AtomicU8, Ordering};

use super::handshake;
use super::leg::Leg;
use super::request::Request;
use crate::model::json;

/// The levels of RFC 5424 as MCP spells them, from the most talkative.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The place of a level among all, 0 for the most talkative.
pub fn rank(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}

/// The level a server was told; [`Level::default`]: none yet.
#[derive(Debug)]
pub(super) struct Level(AtomicU8);

impl Default for Level {
    fn default() -> Self {
        Self(AtomicU8::new(u8::MAX))
    }
}

impl Level {
    /// Takes note of a wish; returns the level to be told to the server, if it is another one.
    fn wish(&self, wanted: usize, is_private: bool) -> Option<&'static str> {
        let wanted = u8::try_from(wanted).ok()?;
        let old = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            let other = if is_private { wanted != now } else { wanted < now };
            other.then_some(wanted)
        });
        old.ok().map(|_| LEVELS[usize::from(wanted)])
    }
}

impl Leg {
    /// Tells a legacy server the level that the caller of `request` asked for.
    pub(super) async fn set_level(&self, request: &Request) {
        let Some(wanted) = request.log_level.as_deref().and_then(rank) else { return };
        let facts = self.facts();
        if facts.revision.is_modern() || !handshake::declares(&facts, &["logging"]) {
            return;
        }
        if let Some(level) = self.level().wish(wanted, self.scope().is_private) {
            // Without it the server goes on as before, which costs log messages only.
            let _ = self.ask(&Request::new("logging/setLevel").with("level", &json::quoted(level))).await;
        }
    }
}

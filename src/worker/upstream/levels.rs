//! The level of log messages that a legacy server was told (`logging/setLevel`): an own leg gets its client's, a shared one
//! the most talkative that was asked for, since a server knows only one. Filters nothing; who passes messages on does.

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
#[derive(Debug, Default)]
pub(super) struct Level(Option<usize>);

impl Level {
    /// Takes note of a wish; returns the level to be told to the server, if it is another one.
    fn wish(&mut self, wanted: usize, is_private: bool) -> Option<&'static str> {
        if self.0.is_some_and(|now| if is_private { wanted == now } else { wanted >= now }) {
            return None;
        }
        self.0 = Some(wanted);
        LEVELS.get(wanted).copied()
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
        let news = self.told().level.wish(wanted, self.scope().is_private);
        if let Some(level) = news {
            // Without it the server goes on as before, which costs log messages only.
            let _ = self.ask(&Request::new("logging/setLevel").with("level", &json::quoted(level))).await;
        }
    }
}

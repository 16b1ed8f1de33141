//! Sessions between memory and store: any process takes one up on first sight, tells the store what it saw of it once
//! per heartbeat, forgets it when it is idle, and learns when another process ended it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::super::face::Face;
use super::{Lookup, Session};
use crate::engine::sessions::{FoundSession, NewSession};
use crate::engine::{Error, Result};
use crate::model::principal::Principal;
use crate::store::{SessionChange, SessionChanged, SessionKey};
use crate::telemetry::here;

/// The stream of a session that answers no request, as event ids name it.
pub(in crate::mcp) const LISTENING: &str = "get";

/// What is known of a session is trusted so long, in milliseconds: then another process may have ended or changed it.
const TRUSTED_MS: i64 = 250;
/// An idle session stays in memory so long, in milliseconds.
const REMEMBERED_MS: i64 = 300_000;
/// How often a process looks which sessions others have ended, in milliseconds.
const CLOSED_POLL_MS: i64 = 1_000;
/// How far it looks back each time: a commit may come later than its time says.
const CLOSED_LOOK_BACK_MS: i64 = 10_000;

impl Face {
    /// How many sessions are in memory here.
    pub fn sessions_in_memory(&self) -> usize {
        self.sessions.len()
    }

    /// Opens a session; its id and itself. `None` when the principal has too many.
    pub async fn open_session(&self, new: NewSession, principal: &Principal) -> Result<Option<(String, Arc<Session>)>> {
        let _span = here::child("session save");
        let Some((id, row)) = self.engine.open_session(new, principal).await? else { return Ok(None) };
        let session = Session::of(row, principal.clone(), self.engine.clock().now_ms());
        Ok(Some((id, self.sessions.adopt(session))))
    }

    /// Finds the caller's session and counts the request as a sign of life. Whose it is comes first: a foreign session
    /// lives no longer for being asked for.
    pub async fn find_session(&self, id: &str, principal: &Principal) -> Result<Lookup> {
        let span = here::child("session load");
        let here = self.sessions.get(SessionKey::of(id)).is_some();
        let found = self.look_for_session(id, principal).await;
        let (outcome, owner) = match &found {
            Ok(Lookup::Found(_)) if here => ("in_memory", Some(true)),
            Ok(Lookup::Found(_)) => ("restored", Some(true)),
            Ok(Lookup::Foreign) => ("refused", Some(false)),
            Ok(Lookup::Unknown) if here => ("stale_deleted", None),
            Ok(Lookup::Unknown) => ("unknown", None),
            Err(error) => {
                span.fail(error.code());
                ("failed", None)
            }
        };
        span.set("durable_mcp.session.outcome", outcome);
        if let Some(matches) = owner {
            span.set("durable_mcp.session.owner_matches", matches);
        }
        found
    }

    async fn look_for_session(&self, id: &str, principal: &Principal) -> Result<Lookup> {
        let key = SessionKey::of(id);
        let now_ms = self.engine.clock().now_ms();
        let here = self.sessions.get(key);
        if let Some(session) = &here {
            if session.principal.subject != principal.subject || session.principal.namespace != principal.namespace {
                return Ok(Lookup::Foreign);
            }
            let is_trusted = now_ms - session.checked_ms.load(Ordering::Relaxed) < TRUSTED_MS;
            if is_trusted && !session.closed.is_cancelled() {
                session.seen(now_ms);
                return Ok(Lookup::Found(session.clone()));
            }
        }
        let row = match self.engine.find_session(key, principal).await {
            Ok(FoundSession::Own(row)) => *row,
            Ok(FoundSession::Foreign) => return Ok(Lookup::Foreign),
            Ok(FoundSession::Ended | FoundSession::Unknown) => {
                self.end_session(key);
                return Ok(Lookup::Unknown);
            }
            // What is in memory was true a moment ago; whether the call itself can be stored is seen next.
            Err(error) => match here.filter(|session| !session.closed.is_cancelled()) {
                Some(session) => return Ok(Lookup::Found(session)),
                None => return Err(error),
            },
        };
        let session = match here.filter(|session| !session.closed.is_cancelled()) {
            Some(session) => {
                session.refresh(&row, now_ms);
                session
            }
            None => self.sessions.adopt(Session::of(row, principal.clone(), now_ms)),
        };
        session.seen(now_ms);
        Ok(Lookup::Found(session))
    }

    /// Ends a session for every process; it stays ended when it was already. False when it is somebody else's.
    pub async fn close_session(&self, id: &str, principal: &Principal) -> Result<bool> {
        let key = SessionKey::of(id);
        let span = here::child("session close");
        let outcome = match self.engine.find_session(key, principal).await? {
            FoundSession::Foreign => {
                span.set("durable_mcp.session.outcome", "refused");
                span.set("durable_mcp.session.owner_matches", false);
                return Ok(false);
            }
            FoundSession::Own(_) => {
                self.engine.change_session(key, SessionChange::Close).await?;
                span.set("durable_mcp.session.owner_matches", true);
                "closed"
            }
            FoundSession::Ended => "ended_before",
            FoundSession::Unknown => "unknown",
        };
        span.set("durable_mcp.session.outcome", outcome);
        self.end_session(key);
        Ok(true)
    }

    /// Sets the least level of log messages that the client of the session wants.
    pub async fn set_log_level(&self, session: &Session, level: &str) -> Result<SessionChanged> {
        self.change_session(session, SessionChange::LogLevel(level.to_owned())).await
    }

    /// Notes that the client of the session wants to hear about a resource.
    pub async fn subscribe(&self, session: &Session, uri: &str) -> Result<SessionChanged> {
        let max = self.engine.settings().sessions.subscriptions_max;
        self.change_session(session, SessionChange::Subscribe { uri: uri.to_owned(), max }).await
    }

    /// Notes that the client of the session wants to hear about a resource no more.
    pub async fn unsubscribe(&self, session: &Session, uri: &str) -> Result<SessionChanged> {
        self.change_session(session, SessionChange::Unsubscribe(uri.to_owned())).await
    }

    async fn change_session(&self, session: &Session, change: SessionChange) -> Result<SessionChanged> {
        let changed = self.engine.change_session(session.key, change).await?;
        let now_ms = self.engine.clock().now_ms();
        if let Some(row) = self.engine.store().session(session.key).await? {
            session.refresh(&row, now_ms);
        }
        Ok(changed)
    }

    fn end_session(&self, key: SessionKey) {
        if self.sessions.end(key) {
            self.engine.session_ended(&key.to_string());
        }
    }

    /// Tends the sessions of this process until the engine stops; what was seen last is written even then.
    pub async fn tend_sessions(self: Arc<Self>) {
        let beat_ms = self.engine.settings().sessions.beat_ms();
        let mut beat_at_ms = self.engine.clock().now_ms() + beat_ms;
        let mut looked_ms = self.engine.clock().now_ms();
        loop {
            let pause = Duration::from_millis(beat_ms.min(CLOSED_POLL_MS) as u64);
            tokio::select! {
                () = self.engine.stopping().cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
            let now_ms = self.engine.clock().now_ms();
            if let Err(error) = self.end_closed_elsewhere(looked_ms - CLOSED_LOOK_BACK_MS).await {
                tracing::debug!(code = error.code(), "ended sessions could not be read: {error}");
            } else {
                looked_ms = now_ms;
            }
            if now_ms >= beat_at_ms {
                beat_at_ms = now_ms + beat_ms;
                self.tend(now_ms).await;
            }
        }
        self.tend(self.engine.clock().now_ms()).await;
    }

    /// Ends the sessions of this process that another process has ended.
    async fn end_closed_elsewhere(&self, since_ms: i64) -> Result<()> {
        if self.sessions.is_empty() {
            return Ok(());
        }
        for key in self.engine.store().closed_sessions(since_ms).await.map_err(Error::from)? {
            self.end_session(key);
        }
        Ok(())
    }

    /// Writes down what was seen since the last time, in one write, and forgets what is idle.
    pub(in crate::mcp) async fn tend(&self, now_ms: i64) {
        let mut seen = Vec::new();
        for session in self.sessions.all() {
            if session.is_busy() {
                session.seen(now_ms);
            }
            let seen_ms = session.last_seen_ms.load(Ordering::Relaxed);
            if seen_ms > session.written_ms.load(Ordering::Relaxed) {
                seen.push((session, seen_ms));
            }
        }
        if !seen.is_empty() {
            let rows = seen.iter().map(|(session, seen_ms)| (session.key, *seen_ms)).collect();
            match self.engine.touch_sessions(rows).await {
                Ok(()) => {
                    for (session, seen_ms) in &seen {
                        session.written_ms.fetch_max(*seen_ms, Ordering::Relaxed);
                    }
                }
                // They stay in memory and are written the next time.
                Err(error) => {
                    tracing::warn!(code = error.code(), "the use of sessions could not be written: {error}");
                    return;
                }
            }
        }
        drop(seen);
        self.sessions.evict(now_ms - REMEMBERED_MS, self.settings.sessions_cached);
    }
}

//! Sessions of legacy clients (up to 2025-11-25): who may use one, when it has expired, what its streams wait for. Any
//! process may serve any session; this part keeps nothing in memory and speaks no protocol.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use utoipa::ToSchema;

use super::ticket::Ticket;
use super::view::Time;
use super::{Engine, Error, Result};
use crate::model::id::ExecutionId;
use crate::model::principal::Principal;
use crate::model::revision::Revision;
use crate::store::{
    self, Mark, Payload, SessionCap, SessionChange, SessionChanged, SessionKey, SessionQuery, SessionRetention,
    SessionRow, Store, StreamMessage, StreamRow,
};

#[cfg(test)]
mod tests;

/// How sessions are kept. Durations in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A session that nobody uses for so long ends, one heartbeat later at the latest.
    pub idle_ms: i64,
    /// The use of sessions is written down so often.
    pub heartbeat_ms: i64,
    /// Sessions of one principal at once.
    pub principal_max: usize,
    /// Resources one session may subscribe to.
    pub subscriptions_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { idle_ms: 86_400_000, heartbeat_ms: 30_000, principal_max: 10_000, subscriptions_max: 1_000 }
    }
}

/// A closed session is remembered so long, in milliseconds: a late DELETE is answered as the first one was.
const CLOSED_KEPT_MS: i64 = 86_400_000;
/// Rows of each kind that one write deletes.
const EXPIRE_BATCH: usize = 200;

impl Settings {
    /// How often use is really written down, in milliseconds: often enough that a short idle time means what it says.
    pub fn beat_ms(&self) -> i64 {
        self.heartbeat_ms.min(self.idle_ms / 4).max(1)
    }

    /// A session last used before then has expired, in milliseconds since the epoch. What was written may be one
    /// heartbeat behind what happened.
    pub fn expired_until_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(self.idle_ms).saturating_sub(self.beat_ms())
    }
}

/// What `initialize` says of a session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// What was negotiated.
    pub revision: Revision,
    /// `clientInfo.name`.
    pub client_name: Option<String>,
    /// `clientInfo`, as the client wrote it.
    pub client_info: Option<Payload>,
    /// `capabilities`, as the client wrote them.
    pub capabilities: Option<Payload>,
}

/// What became of a request for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundSession {
    /// The caller's.
    Own(Box<SessionRow>),
    /// The caller's, but it has ended.
    Ended,
    /// There is none.
    Unknown,
    /// Somebody else's, whether it has ended or not.
    Foreign,
}

impl Engine {
    /// Opens a session: one write. `None` when the principal has too many. The id is all that proves to be in the
    /// session besides the credential; it is random, and not stored.
    pub async fn open_session(&self, new: NewSession, principal: &Principal) -> Result<Option<(String, SessionRow)>> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).expect("the system's random generator works");
        let id = hex::encode(bytes);
        let now_ms = self.now_ms();
        let row = SessionRow {
            key: SessionKey::of(&id),
            namespace: principal.namespace.clone(),
            // A credential names its namespace by its name only.
            namespace_name: principal.namespace.clone(),
            principal: principal.subject.clone(),
            revision: new.revision,
            client_name: new.client_name,
            client_info: new.client_info,
            capabilities: new.capabilities,
            log_level: None,
            subscriptions: Vec::new(),
            created_at_ms: now_ms,
            last_seen_at_ms: now_ms,
            closed_at_ms: None,
        };
        let settings = &self.settings.sessions;
        let cap = SessionCap { max: settings.principal_max, seen_since_ms: settings.expired_until_ms(now_ms) };
        let opened = self.store.open_session(row.clone(), cap).await?;
        Ok(opened.then_some((id, row)))
    }

    /// The session under `key`. Whose it is comes before everything else; finding it is no sign of life.
    pub async fn find_session(&self, key: SessionKey, principal: &Principal) -> Result<FoundSession> {
        let Some(row) = self.store.session(key).await? else { return Ok(FoundSession::Unknown) };
        if !is_of(&row, principal) {
            return Ok(FoundSession::Foreign);
        }
        if row.closed_at_ms.is_some() {
            return Ok(FoundSession::Ended);
        }
        let has_expired = row.last_seen_at_ms <= self.settings.sessions.expired_until_ms(self.now_ms());
        // One with a running call is not idle, however long its client is away.
        if has_expired && !self.store.session_is_busy(key).await? {
            return Ok(FoundSession::Ended);
        }
        Ok(FoundSession::Own(Box::new(row)))
    }

    /// Changes a session that was found to be the caller's.
    pub async fn change_session(&self, key: SessionKey, change: SessionChange) -> Result<SessionChanged> {
        let closes = change == SessionChange::Close;
        let changed = self.store.change_session(key, change, self.now_ms()).await?;
        if closes {
            self.session_ended(&key.to_string());
        }
        Ok(changed)
    }

    /// Writes down when sessions were last used.
    pub async fn touch_sessions(&self, seen: Vec<(SessionKey, i64)>) -> Result<()> {
        Ok(self.store.touch_sessions(seen).await?)
    }

    /// Opens the stream of a call.
    pub async fn open_stream(&self, row: StreamRow) -> Result<()> {
        Ok(self.store.open_stream(row).await?)
    }

    /// Keeps a message for whoever resumes the stream; its number there.
    pub async fn push_message(&self, message: StreamMessage) -> Result<i64> {
        Ok(self.store.push_message(message).await?)
    }

    /// A hold on what a stream waits for, for its caller who came back: from here on it counts as waited for again.
    pub async fn resume(self: &Arc<Self>, id: ExecutionId, principal: &Principal) -> Result<Ticket> {
        let ticket = self.attach(id, principal).await?;
        if ticket.head.ident.key.is_none() && ticket.settled().is_none() {
            self.store.mark(id, Mark::Waiting(self.process), self.now_ms());
        }
        Ok(ticket)
    }

    /// True when somebody waits for the execution in this process.
    pub fn is_waited_here(&self, id: ExecutionId) -> bool {
        self.waiters.are_there(id)
    }

    /// Deletes sessions that have expired, closed ones after a day, and streams whose payloads are gone; in batches.
    pub async fn expire_sessions(&self) -> Result<usize> {
        let mut gone = 0;
        while !self.stop.is_cancelled() {
            let now_ms = self.now_ms();
            let retention = SessionRetention {
                seen_until_ms: self.settings.sessions.expired_until_ms(now_ms),
                closed_until_ms: now_ms.saturating_sub(CLOSED_KEPT_MS),
                messages_until_ms: now_ms.saturating_sub(self.settings.retention.payloads_ms),
                batch: EXPIRE_BATCH,
            };
            match self.store.prune_sessions(retention).await? {
                0 => break,
                more => gone += more,
            }
        }
        Ok(gone)
    }
}

fn is_of(row: &SessionRow, principal: &Principal) -> bool {
    row.namespace == principal.namespace && row.principal == principal.subject
}

/// A session as people and programs see it. Every member is always there; `null` says that it does not apply.
#[derive(Clone, Debug, Serialize, ToSchema, JsonSchema)]
#[schemars(rename = "Session")]
pub struct SessionView {
    /// What it is known by here: the SHA-256 of the id that its client sends.
    pub id: String,
    /// `open` or `closed`.
    pub state: &'static str,
    /// The tenant border.
    pub namespace: String,
    /// Who opened it.
    pub principal: String,
    /// The name its client gave.
    pub client_name: Option<String>,
    /// The protocol revision that was negotiated.
    pub revision: &'static str,
    /// The least level of log messages it asked for.
    pub log_level: Option<String>,
    /// Resources it wants to hear about.
    pub subscriptions: usize,
    /// When it was opened.
    pub created_at: Time,
    /// When it was last used; up to one heartbeat behind.
    pub last_seen_at: Time,
    /// When it was closed.
    pub closed_at: Option<Time>,
}

/// The view of a row.
pub fn view(row: &SessionRow) -> SessionView {
    SessionView {
        id: row.key.to_string(),
        state: if row.closed_at_ms.is_some() { "closed" } else { "open" },
        namespace: row.namespace.clone(),
        principal: row.principal.clone(),
        client_name: row.client_name.clone(),
        revision: row.revision.name(),
        log_level: row.log_level.clone(),
        subscriptions: row.subscriptions.len(),
        created_at: Time(row.created_at_ms),
        last_seen_at: Time(row.last_seen_at_ms),
        closed_at: row.closed_at_ms.map(Time),
    }
}

/// Why a session could not be closed by its handle.
#[derive(Debug, thiserror::Error)]
pub enum CloseRefused {
    /// There is none that the asker may see.
    #[error("there is no such session")]
    Missing,
    /// The start of the id is that of several.
    #[error("more than one session starts with this")]
    Ambiguous,
    /// The store.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<Error> for CloseRefused {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => CloseRefused::Store(error),
            other => CloseRefused::Store(store::Error::Internal(other.to_string())),
        }
    }
}

/// Closes the one session whose id starts with `start` and that lies in the namespace and is the principal's, where
/// these are given. Processes that serve it learn of it from the store, within a second.
pub async fn close(
    store: &dyn Store,
    start: &str,
    owner: (Option<&str>, Option<&str>),
    now_ms: i64,
) -> std::result::Result<SessionView, CloseRefused> {
    let query = SessionQuery {
        namespace: owner.0.map(str::to_owned),
        principal: owner.1.map(str::to_owned),
        closed: true,
        key_prefix: Some(start.to_ascii_lowercase()),
        limit: 2,
        ..SessionQuery::default()
    };
    let row = match store.sessions(query).await?.as_slice() {
        [] => return Err(CloseRefused::Missing),
        [row] if !start.is_empty() => row.clone(),
        _ => return Err(CloseRefused::Ambiguous),
    };
    store.change_session(row.key, SessionChange::Close, now_ms).await?;
    let closed_at_ms = row.closed_at_ms.or(Some(now_ms));
    Ok(view(&SessionRow { closed_at_ms, ..row }))
}

//! What the store keeps of sessions of legacy clients (up to 2025-11-25) and of the streams they can resume. Decides
//! nothing: who may use a session, and when it has expired, is the engine's.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::{Payload, Result};
use crate::model::id::ExecutionId;
use crate::model::revision::Revision;

/// What a session is stored under: the SHA-256 of its id. The id is all a client shows in its session, so it is kept
/// nowhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey(pub [u8; 32]);

impl SessionKey {
    /// The key of the session with this id.
    pub fn of(id: &str) -> SessionKey {
        SessionKey(Sha256::digest(id).into())
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKey({self})")
    }
}

impl FromStr for SessionKey {
    type Err = hex::FromHexError;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let mut key = [0; 32];
        hex::decode_to_slice(text, &mut key)?;
        Ok(SessionKey(key))
    }
}

/// A session. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// What it is stored under.
    pub key: SessionKey,
    /// The tenant border.
    pub namespace: String,
    /// What people call the namespace.
    pub namespace_name: String,
    /// Who opened it.
    pub principal: String,
    /// What was negotiated.
    pub revision: Revision,
    /// `clientInfo.name`.
    pub client_name: Option<String>,
    /// `clientInfo`, as the client wrote it.
    pub client_info: Option<Payload>,
    /// `capabilities`, as the client wrote them.
    pub capabilities: Option<Payload>,
    /// The level of `logging/setLevel`.
    pub log_level: Option<String>,
    /// Resources it wants to hear about, in order.
    pub subscriptions: Vec<String>,
    /// When it was opened.
    pub created_at_ms: i64,
    /// When it was last used, as far as somebody wrote it down.
    pub last_seen_at_ms: i64,
    /// When it was ended.
    pub closed_at_ms: Option<i64>,
}

/// How many sessions one principal may have.
#[derive(Clone, Copy, Debug)]
pub struct SessionCap {
    /// So many.
    pub max: usize,
    /// A session that was not used since counts for nothing.
    pub seen_since_ms: i64,
}

/// What happens to a session that is not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// It ends.
    Close,
    /// The level of log messages its client asks for.
    LogLevel(String),
    /// Its client wants to hear about a resource.
    Subscribe {
        /// Which.
        uri: String,
        /// So many at once.
        max: usize,
    },
    /// Its client does not want to hear about a resource any more.
    Unsubscribe(String),
}

/// What became of a [`SessionChange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChanged {
    /// It is so, or was before.
    Done,
    /// The session is not there, or closed.
    Missing,
    /// There are too many subscriptions.
    Full,
}

/// Which sessions a listing shows; all given conditions hold at once.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only this principal.
    pub principal: Option<String>,
    /// Closed ones too.
    pub closed: bool,
    /// Only those used after then.
    pub seen_since_ms: Option<i64>,
    /// Only keys after this one (keyset page).
    pub after: Option<SessionKey>,
    /// Only keys that start with this text.
    pub key_prefix: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// The stream of a call. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRow {
    /// Whose.
    pub session: SessionKey,
    /// Its name in the session.
    pub stream: String,
    /// The JSON-RPC id of the request it answers, as the client wrote it.
    pub request_id: String,
    /// What the request waits for.
    pub execution: ExecutionId,
    /// What the answer has to fit, as JSON.
    pub context: Payload,
    /// When it was opened.
    pub at_ms: i64,
}

/// A message for a stream.
#[derive(Clone, Debug)]
pub struct StreamMessage {
    /// Whose stream.
    pub session: SessionKey,
    /// Which.
    pub stream: String,
    /// What makes it one and the same, however often it is pushed.
    pub name: String,
    /// The JSON-RPC message.
    pub body: Payload,
    /// Its number is at least this.
    pub seq_min: i64,
    /// Milliseconds since the epoch.
    pub at_ms: i64,
}

/// What is stored of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamSeen {
    /// What it answers; absent for the stream that answers no request.
    pub opening: Option<StreamRow>,
    /// Its messages after the number asked for, in order.
    pub messages: Vec<(i64, Payload)>,
}

/// What is not kept of sessions. Milliseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct SessionRetention {
    /// Sessions last used by then go, unless a call of theirs runs.
    pub seen_until_ms: i64,
    /// Sessions closed by then go.
    pub closed_until_ms: i64,
    /// Messages and streams of then go.
    pub messages_until_ms: i64,
    /// So many rows of each kind at most.
    pub batch: usize,
}

/// The part of a driver that keeps sessions. A method that writes returns after its commit, and may run twice.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Stores a new session; false when its principal has too many.
    async fn open_session(&self, row: SessionRow, cap: SessionCap) -> Result<bool>;

    /// One session, closed ones included.
    async fn session(&self, key: SessionKey) -> Result<Option<SessionRow>>;

    /// True when an execution that a stream of the session waits for has not ended.
    async fn session_is_busy(&self, key: SessionKey) -> Result<bool>;

    /// Changes one session.
    async fn change_session(&self, key: SessionKey, change: SessionChange, now_ms: i64) -> Result<SessionChanged>;

    /// Notes when sessions were last used; a time only ever rises.
    async fn touch_sessions(&self, seen: Vec<(SessionKey, i64)>) -> Result<()>;

    /// Sessions closed after then (milliseconds since the epoch), whoever closed them.
    async fn closed_sessions(&self, since_ms: i64) -> Result<Vec<SessionKey>>;

    /// A page of sessions, by key.
    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionRow>>;

    /// Opens the stream of a call.
    async fn open_stream(&self, row: StreamRow) -> Result<()>;

    /// Keeps a message for whoever resumes the stream; its number. One that was pushed before keeps its number.
    async fn push_message(&self, message: StreamMessage) -> Result<i64>;

    /// A stream of a session, with the messages after number `after`; at most `limit`.
    async fn stream(&self, session: SessionKey, stream: &str, after: i64, limit: usize) -> Result<StreamSeen>;

    /// Deletes what is no longer kept, in one small batch; how many rows went.
    async fn prune_sessions(&self, retention: SessionRetention) -> Result<usize>;
}

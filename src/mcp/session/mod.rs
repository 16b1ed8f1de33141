//! Legacy sessions (up to 2025-11-25) that this process serves now. They are kept in the store; what is here is the part
//! that runs: requests in flight, open streams, what to tell. An idle session is not here at all.

mod in_flight;
mod keep;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

pub use self::in_flight::{Flight, InFlight, Place, is_timeout_reason};
pub(super) use self::keep::LISTENING;
use super::requests::Asker;
use super::wishes::Wishes;
use crate::engine::client::ClientContext;
use crate::model::principal::Principal;
use crate::model::revision::Revision;
use crate::store::{Payload, SessionKey, SessionRow};

/// One legacy session.
#[derive(Debug)]
pub struct Session {
    /// What it is stored under. As text it is what the rest of the program knows the session by.
    pub key: SessionKey,
    /// What was negotiated.
    pub revision: Revision,
    /// `clientInfo.name`, if the client has one.
    pub client_name: Option<String>,
    /// What the client has asked to hear, as far as it is heard here.
    pub wishes: Arc<Wishes>,
    /// Who uses it: the owner, with what its credential permits now.
    pub principal: Principal,
    /// What is in flight.
    pub in_flight: InFlight,
    /// Ends with the session.
    pub closed: CancellationToken,
    state: Mutex<State>,
    last_seen_ms: AtomicI64,
    written_ms: AtomicI64,
    checked_ms: AtomicI64,
}

#[derive(Debug)]
struct State {
    context: Arc<ClientContext>,
    subscriptions: Arc<[String]>,
    /// Streams that answer no request; the newest gets what there is to tell.
    listeners: Vec<Weak<Listener>>,
    /// Streams of calls by their name; a stream that is taken up again ends the one before.
    streams: HashMap<String, CancellationToken>,
}

/// An open stream for what concerns no request.
#[derive(Debug)]
pub struct Listener;

impl Session {
    /// A session as it is stored, for its owner.
    pub fn of(row: SessionRow, principal: Principal, now_ms: i64) -> Session {
        let context = context(&row);
        let wishes = Arc::<Wishes>::default();
        wishes.take_level(row.log_level.as_deref());
        Session {
            wishes,
            key: row.key,
            revision: row.revision,
            client_name: row.client_name,
            principal,
            in_flight: InFlight::default(),
            closed: CancellationToken::new(),
            state: Mutex::new(State {
                context,
                subscriptions: row.subscriptions.into(),
                listeners: Vec::new(),
                streams: HashMap::new(),
            }),
            last_seen_ms: AtomicI64::new(row.last_seen_at_ms),
            written_ms: AtomicI64::new(row.last_seen_at_ms),
            checked_ms: AtomicI64::new(now_ms),
        }
    }

    /// Counts a sign of life.
    pub fn seen(&self, now_ms: i64) {
        self.last_seen_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    /// What an upstream may need to know of the client.
    pub fn context(&self) -> Arc<ClientContext> {
        self.state().context.clone()
    }

    /// Who asks in it.
    pub fn asker(self: &Arc<Self>, principal: Principal, withdrawn: CancellationToken) -> Asker {
        let (client, wishes) = (self.context(), Some(self.wishes.clone()));
        Asker { principal, revision: self.revision, client, wishes, session: Some(self.clone()), withdrawn }
    }

    /// Resources the client wants to hear about, in order.
    pub fn subscriptions(&self) -> Arc<[String]> {
        self.state().subscriptions.clone()
    }

    /// Whether streams of calls start with an event that they can be resumed from.
    pub fn resumes(&self) -> bool {
        self.revision >= Revision::V2025_11_25
    }

    /// A new stream for what concerns no request.
    pub fn listen(&self) -> Arc<Listener> {
        let listener = Arc::new(Listener);
        let mut state = self.state();
        state.listeners.retain(|listener| listener.strong_count() > 0);
        state.listeners.push(Arc::downgrade(&listener));
        listener
    }

    /// True when `listener` is the newest stream for what concerns no request: a message goes to one stream only.
    pub fn is_newest(&self, listener: &Arc<Listener>) -> bool {
        let newest = self.state().listeners.iter().rev().find_map(Weak::upgrade);
        newest.is_some_and(|newest| Arc::ptr_eq(&newest, listener))
    }

    /// True while a stream for what concerns no request is open.
    pub fn is_listened_to(&self) -> bool {
        self.state().listeners.iter().any(|listener| listener.strong_count() > 0)
    }

    /// A stream of a call begins, or goes on: whoever wrote it before stops.
    pub fn take_stream(&self, name: &str) -> CancellationToken {
        let token = CancellationToken::new();
        if let Some(before) = self.state().streams.insert(name.to_owned(), token.clone()) {
            before.cancel();
        }
        token
    }

    /// A stream of a call has ended.
    pub fn leave_stream(&self, name: &str, token: &CancellationToken) {
        // One that was taken up again belongs to whoever did.
        if !token.is_cancelled() {
            self.state().streams.remove(name);
        }
    }

    /// True while a request is in flight or a stream is open.
    pub fn is_busy(&self) -> bool {
        if !self.in_flight.is_empty() {
            return true;
        }
        let state = self.state();
        !state.streams.is_empty() || state.listeners.iter().any(|listener| listener.strong_count() > 0)
    }

    /// Takes over what other processes may have changed.
    fn refresh(&self, row: &SessionRow, now_ms: i64) {
        self.checked_ms.store(now_ms, Ordering::Relaxed);
        self.written_ms.fetch_max(row.last_seen_at_ms, Ordering::Relaxed);
        self.seen(row.last_seen_at_ms);
        let mut state = self.state();
        if state.context.log_level != row.log_level {
            state.context = context(row);
            self.wishes.take_level(row.log_level.as_deref());
        }
        if *state.subscriptions != *row.subscriptions {
            state.subscriptions = row.subscriptions.clone().into();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn context(row: &SessionRow) -> Arc<ClientContext> {
    let raw = |text: &Payload| RawValue::from_string(text.to_string()).ok();
    Arc::new(ClientContext {
        revision: Some(row.revision.name().to_owned()),
        session: Some(row.key.to_string()),
        capabilities: row.capabilities.as_ref().and_then(raw),
        log_level: row.log_level.clone(),
    })
}

/// The legacy sessions that this process serves now.
#[derive(Debug, Default)]
pub struct Sessions {
    entries: Mutex<HashMap<SessionKey, Arc<Session>>>,
}

/// What a request with a session id finds.
#[derive(Debug)]
pub enum Lookup {
    /// The caller's session.
    Found(Arc<Session>),
    /// Unknown, ended or expired.
    Unknown,
    /// Somebody else's.
    Foreign,
}

impl Sessions {
    /// The session with this key, when this process serves it.
    pub fn get(&self, key: SessionKey) -> Option<Arc<Session>> {
        self.entries().get(&key).cloned()
    }

    /// The session that the rest of the program knows by `name`, when this process serves it.
    pub fn named(&self, name: &str) -> Option<Arc<Session>> {
        self.get(name.parse().ok()?)
    }

    /// Every session that this process serves now.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.entries().values().cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Serves a session from now on; whoever came first with the same one is kept, unless it has ended.
    fn adopt(&self, session: Session) -> Arc<Session> {
        let mut entries = self.entries();
        if let Some(there) = entries.get(&session.key).filter(|there| !there.closed.is_cancelled()) {
            return there.clone();
        }
        let session = Arc::new(session);
        entries.insert(session.key, session.clone());
        session
    }

    /// Ends a session here.
    fn end(&self, key: SessionKey) -> bool {
        match self.entries().remove(&key) {
            Some(session) => {
                session.closed.cancel();
                true
            }
            None => false,
        }
    }

    /// Forgets sessions that nobody used since `since_ms`, and the longest unused ones beyond `limit`. They come back
    /// from the store when somebody does.
    fn evict(&self, since_ms: i64, limit: usize) {
        let mut entries = self.entries();
        let mut idle: Vec<(i64, SessionKey)> = entries
            .values()
            .filter(|session| Arc::strong_count(session) == 1 && !session.is_busy())
            .map(|session| (session.last_seen_ms.load(Ordering::Relaxed), session.key))
            .collect();
        idle.sort_unstable();
        let surplus = entries.len().saturating_sub(limit);
        for (number, (seen_ms, key)) in idle.into_iter().enumerate() {
            if number < surplus || seen_ms <= since_ms {
                entries.remove(&key);
            }
        }
        // The place of many that are gone is given back, and enough is kept for those that stay.
        if entries.len() < entries.capacity() / 4 {
            entries.shrink_to_fit();
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<Session>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Legacy sessions (up to 2025-11-25) of this process, and what is in flight in a session or a connection. They live in
//! memory and end with the process; executions do not depend on them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::id::Id;
use super::requests::Asker;
use super::wishes::Wishes;
use crate::engine::client::ClientContext;
use crate::model::id::ExecutionId;
use crate::model::principal::Principal;
use crate::model::revision::Revision;

/// One legacy session.
#[derive(Debug)]
pub struct Session {
    /// What was negotiated.
    pub revision: Revision,
    /// `clientInfo.name`, if the client has one.
    pub client_name: Option<String>,
    /// The client's `capabilities`, as it wrote them.
    pub capabilities: Option<Box<RawValue>>,
    /// What the client has asked to hear.
    pub wishes: Arc<Wishes>,
    /// Its id, once it is open.
    pub id: OnceLock<String>,
    /// Who opened it.
    pub principal: Principal,
    /// What is in flight.
    pub in_flight: InFlight,
    /// Ends with the session.
    pub closed: CancellationToken,
    last_seen_ms: AtomicI64,
}

impl Session {
    /// A session opened at `now_ms`.
    pub fn new(revision: Revision, client_name: Option<String>, principal: Principal, now_ms: i64) -> Session {
        Session {
            revision,
            client_name,
            capabilities: None,
            wishes: Arc::default(),
            id: OnceLock::new(),
            principal,
            in_flight: InFlight::default(),
            closed: CancellationToken::new(),
            last_seen_ms: AtomicI64::new(now_ms),
        }
    }

    /// What an upstream may need to know of its client.
    pub fn client(&self) -> ClientContext {
        ClientContext {
            revision: Some(self.revision.name().to_owned()),
            session: self.id.get().cloned(),
            capabilities: self.capabilities.clone(),
            log_level: self.wishes.level().map(|level| level.as_str().to_owned()),
        }
    }

    /// Who asks in it.
    pub fn asker(&self, principal: Principal, withdrawn: CancellationToken) -> Asker {
        let (client, wishes) = (Arc::new(self.client()), Some(self.wishes.clone()));
        Asker { principal, revision: self.revision, client, wishes, withdrawn }
    }

    /// Counts a sign of life.
    pub fn seen(&self, now_ms: i64) {
        self.last_seen_ms.store(now_ms, Ordering::Relaxed);
    }
}

/// The legacy sessions of this process.
#[derive(Debug)]
pub struct Sessions {
    entries: Mutex<HashMap<String, Arc<Session>>>,
    limit: usize,
    idle_ms: i64,
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
    /// At most `limit` at once; one that says nothing for `idle_ms` is gone.
    pub fn new(limit: usize, idle_ms: i64) -> Sessions {
        Sessions { entries: Mutex::default(), limit, idle_ms }
    }

    /// Opens a session; `None` when there are too many.
    pub fn open(&self, session: Session, now_ms: i64) -> Option<String> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).expect("the system's random generator works");
        let id = hex::encode(bytes);
        let mut entries = self.entries();
        if entries.len() >= self.limit {
            self.sweep(&mut entries, now_ms);
        }
        if entries.len() >= self.limit {
            return None;
        }
        // A session is opened once.
        let _ = session.id.set(id.clone());
        entries.insert(id.clone(), Arc::new(session));
        Some(id)
    }

    /// Finds the caller's session and counts the request as a sign of life. A foreign session's life is not extended.
    pub fn find(&self, id: &str, principal: &Principal, now_ms: i64) -> Lookup {
        let mut entries = self.entries();
        let Some(session) = entries.get(id) else { return Lookup::Unknown };
        if session.principal.subject != principal.subject || session.principal.namespace != principal.namespace {
            return Lookup::Foreign;
        }
        if self.is_idle(session, now_ms) {
            if let Some(session) = entries.remove(id) {
                session.closed.cancel();
            }
            return Lookup::Unknown;
        }
        session.seen(now_ms);
        Lookup::Found(session.clone())
    }

    /// Ends a session.
    pub fn close(&self, id: &str) {
        if let Some(session) = self.entries().remove(id) {
            session.closed.cancel();
        }
    }

    /// Drops what said nothing for too long.
    pub fn sweep_idle(&self, now_ms: i64) {
        self.sweep(&mut self.entries(), now_ms);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn sweep(&self, entries: &mut HashMap<String, Arc<Session>>, now_ms: i64) {
        entries.retain(|_, session| {
            let keep = !self.is_idle(session, now_ms);
            if !keep {
                session.closed.cancel();
            }
            keep
        });
        // The place of many that are gone is given back, and enough is kept for those that stay.
        if entries.len() < entries.capacity() / 4 {
            entries.shrink_to_fit();
        }
    }

    /// A session with a running call is not idle.
    fn is_idle(&self, session: &Session, now_ms: i64) -> bool {
        let silent_ms = now_ms - session.last_seen_ms.load(Ordering::Relaxed);
        silent_ms > self.idle_ms && session.in_flight.is_empty()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests in flight in one session or connection. A client may use one JSON-RPC id twice at once: each request
/// has its own entry, and a cancellation reaches every one of that id.
#[derive(Debug, Default)]
pub struct InFlight {
    entries: Mutex<HashMap<u64, (String, Arc<Flight>)>>,
    next: AtomicU64,
}

/// One request in flight.
#[derive(Debug, Default)]
pub struct Flight {
    /// The execution, once it is known.
    pub execution: OnceLock<ExecutionId>,
    /// Ends when the client takes the request back.
    pub withdrawn: CancellationToken,
    /// True when the client only gave up waiting.
    timed_out: OnceLock<bool>,
}

impl Flight {
    /// True when the client said that its own timer ran out.
    pub fn timed_out(&self) -> bool {
        self.timed_out.get().copied().unwrap_or(false)
    }
}

/// An entry's place; leaving it ends the entry.
#[derive(Debug)]
pub struct Place {
    number: u64,
    /// The request.
    pub flight: Arc<Flight>,
}

impl InFlight {
    /// Counts a request in; `None` when there are `limit` already.
    pub fn enter(&self, id: &Id<'_>, limit: usize) -> Option<Place> {
        let mut entries = self.entries();
        if entries.len() >= limit {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let flight = Arc::new(Flight::default());
        entries.insert(number, (id.canonical().to_owned(), flight.clone()));
        Some(Place { number, flight })
    }

    /// Counts a request out.
    pub fn leave(&self, place: &Place) {
        self.entries().remove(&place.number);
    }

    /// The client takes a request back.
    pub fn withdraw(&self, id: &Id<'_>, timed_out: bool) {
        for (canonical, flight) in self.entries().values() {
            if canonical == id.canonical() {
                // The first word counts.
                let _ = flight.timed_out.set(timed_out);
                flight.withdrawn.cancel();
            }
        }
    }

    /// True when nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<u64, (String, Arc<Flight>)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True when a cancellation's reason says that the client's own timer ran out. The official SDKs send these; they end
/// the waiting, not the work.
pub fn is_timeout_reason(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    reason.contains("timed out") || reason.contains("timeout")
}

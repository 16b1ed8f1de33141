//! The requests in flight in one session or connection, for cancellations and for knowing that a session is not idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio_util::sync::CancellationToken;

use super::super::id::Id;
use crate::model::id::ExecutionId;

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

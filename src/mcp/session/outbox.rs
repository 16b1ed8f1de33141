//! What waits to be written to a stream of a session that answers no request. Bounded: of a client that does not read,
//! the oldest messages are dropped and counted. Nobody who tells something ever waits.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::super::frame;

/// Messages that wait at most.
const MESSAGES_MAX: usize = 256;
/// Bytes that wait at most; the newest message is kept whatever its size.
const BYTES_MAX: usize = 1 << 20;

/// Events that wait to be written.
#[derive(Debug, Default)]
pub struct Outbox {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<String>,
    bytes: usize,
    dropped: u64,
}

impl Outbox {
    /// Adds a JSON-RPC message, as an event with an id where it can be asked for again.
    pub fn push(&self, event_id: Option<&str>, message: &str) {
        let mut event = String::new();
        frame::event(&mut event, event_id, message);
        let mut waiting = self.waiting();
        waiting.bytes += event.len();
        waiting.events.push_back(event);
        while waiting.events.len() > MESSAGES_MAX || (waiting.bytes > BYTES_MAX && waiting.events.len() > 1) {
            if let Some(oldest) = waiting.events.pop_front() {
                waiting.bytes -= oldest.len();
                waiting.dropped += 1;
            }
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Waits for events and takes all that are there, as they are written. Cancel safe.
    pub async fn take(&self) -> String {
        loop {
            {
                let mut waiting = self.waiting();
                if !waiting.events.is_empty() {
                    waiting.bytes = 0;
                    return waiting.events.drain(..).collect();
                }
            }
            self.arrived.notified().await;
        }
    }

    /// Messages that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.waiting().dropped
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

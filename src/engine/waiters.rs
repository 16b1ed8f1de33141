//! Who waits in this process, and for what: callers of executions, wherever these run. A lost wake-up costs one poll,
//! never a call: whoever waits also reads the store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::asking::Round;
use super::messages::{Messages, Reader};
use super::notices::Notice;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::{Payload, PayloadKind};

/// A settled execution with what its caller gets.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The row.
    pub head: Arc<Head>,
    /// The result of a completed execution, the JSON-RPC error of one that failed with one.
    pub payload: Option<Payload>,
}

impl Settled {
    /// What the caller of an execution in this state gets; nothing is stored of other ends.
    pub(super) fn kind(state: State) -> Option<PayloadKind> {
        match state {
            State::Completed => Some(PayloadKind::Result),
            State::Failed => Some(PayloadKind::Error),
            _ => None,
        }
    }
}

/// A progress report of a running tool (MCP `notifications/progress`).
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How far.
    pub progress: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// In words.
    pub message: Option<String>,
}

/// What a waiting caller sees.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// The end, once there is one.
    pub settled: Option<Settled>,
    /// The newest progress report.
    pub progress: Option<Progress>,
    /// The open questions to the client; absent before the first.
    pub asked: Option<Arc<Round>>,
}

/// What a waiting caller follows.
#[derive(Debug)]
pub struct Following {
    /// The end, progress, questions: the newest of each.
    pub sight: watch::Receiver<Sight>,
    /// Messages of the tool: each of them, the oldest first.
    pub messages: Reader,
}

impl Following {
    /// What follows nothing: the sight stays as it is.
    pub fn still(sight: Sight) -> Following {
        Following { sight: watch::channel(sight).1, messages: Arc::<Messages>::default().reader() }
    }
}

#[derive(Debug)]
struct Entry {
    callers: usize,
    sight: watch::Sender<Sight>,
    messages: Arc<Messages>,
    /// Told when the last caller leaves.
    left: Arc<Notify>,
    /// Held by whoever reads the end from the store.
    reading: Option<Arc<Turn>>,
}

/// One after the other.
type Turn = tokio::sync::Mutex<()>;

/// Every caller that waits in this process.
#[derive(Debug)]
pub struct Waiters {
    entries: Mutex<HashMap<ExecutionId, Entry>>,
    callers: AtomicUsize,
    arrived: Notify,
    limit: usize,
}

impl Waiters {
    /// At most `limit` callers may wait.
    pub fn new(limit: usize) -> Waiters {
        Waiters { entries: Mutex::default(), callers: AtomicUsize::new(0), arrived: Notify::new(), limit }
    }

    /// True when one more may wait.
    pub fn has_room(&self) -> bool {
        self.callers.load(Ordering::Relaxed) < self.limit
    }

    /// How many wait.
    pub fn callers(&self) -> usize {
        self.callers.load(Ordering::Relaxed)
    }

    /// Counts a caller in. `seen` is the row it found: an end that this row has overtaken (an `unknown` of which
    /// another attempt was ordered) is no news any more.
    pub fn enter(&self, id: ExecutionId, seen: Option<&Head>) -> Following {
        let mut entries = self.entries();
        let entry = entries.entry(id).or_insert_with(|| Entry {
            callers: 0,
            sight: watch::channel(Sight::default()).0,
            messages: Arc::default(),
            left: Arc::new(Notify::new()),
            reading: None,
        });
        entry.callers += 1;
        self.callers.fetch_add(1, Ordering::Relaxed);
        if let Some(seen) = seen.filter(|head| !head.state.is_settled()) {
            entry.sight.send_if_modified(|sight| {
                let overtaken = sight.settled.as_ref().is_some_and(|old| old.head.next_seq < seen.next_seq);
                if overtaken {
                    sight.settled = None;
                }
                overtaken
            });
        }
        let following = Following { sight: entry.sight.subscribe(), messages: entry.messages.reader() };
        drop(entries);
        self.arrived.notify_one();
        following
    }

    /// Counts a caller out. `told` learns whether it was the last, before anybody else does: what it queues in the store
    /// is ahead of whatever somebody who waited for the departure does.
    /// Answers the same.
    pub fn leave(&self, id: ExecutionId, told: impl FnOnce(bool)) -> bool {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&id) else {
            told(true);
            return true;
        };
        entry.callers -= 1;
        self.callers.fetch_sub(1, Ordering::Relaxed);
        let last = entry.callers == 0;
        told(last);
        if last && let Some(entry) = entries.remove(&id) {
            entry.left.notify_waiters();
        }
        last
    }

    /// True when somebody waits for `id`.
    pub fn are_there(&self, id: ExecutionId) -> bool {
        self.entries().contains_key(&id)
    }

    /// Resolves when the last caller of `id` leaves; `None` when nobody is there.
    pub fn departure(&self, id: ExecutionId) -> Option<Arc<Notify>> {
        self.entries().get(&id).map(|entry| entry.left.clone())
    }

    /// Held while the end of `id` is read from the store: who comes second finds it told. `None` when nobody waits.
    pub fn reading(&self, id: ExecutionId) -> Option<Arc<Turn>> {
        self.entries().get_mut(&id).map(|entry| entry.reading.get_or_insert_default().clone())
    }

    /// True when the callers of the execution were told of this end, or of a newer one.
    pub fn know(&self, end: &Head) -> bool {
        let entries = self.entries();
        let told = entries.get(&end.id()).map(|entry| entry.sight.borrow());
        told.is_some_and(|sight| sight.settled.as_ref().is_some_and(|told| told.head.next_seq >= end.next_seq))
    }

    /// Tells every caller of the execution that it has settled. What was read before something newer was told is dropped.
    pub fn settle(&self, settled: Settled) {
        if let Some(entry) = self.entries().get(&settled.head.id()) {
            entry.sight.send_if_modified(|sight| {
                let newer = sight.settled.as_ref().is_none_or(|old| old.head.next_seq < settled.head.next_seq);
                if newer {
                    sight.settled = Some(settled);
                }
                newer
            });
        }
    }

    /// Tells every caller of the execution how far it is.
    pub fn progress(&self, id: ExecutionId, progress: Progress) {
        if let Some(entry) = self.entries().get(&id) {
            entry.sight.send_modify(|sight| sight.progress = Some(progress));
        }
    }

    /// Passes a message of the tool on to every caller of the execution.
    pub fn message(&self, id: ExecutionId, notice: Notice) {
        if let Some(entry) = self.entries().get(&id) {
            // Nobody has to listen.
            entry.messages.push(notice);
            // Whoever waits looks again.
            entry.sight.send_modify(|_| {});
        }
    }

    /// Tells every caller of the execution which questions are open.
    pub fn asked(&self, id: ExecutionId, round: Round) {
        if let Some(entry) = self.entries().get(&id) {
            entry.sight.send_if_modified(|sight| {
                let known = sight.asked.as_deref().map_or(&[][..], |old| &old.questions);
                let changed = known != round.questions;
                if changed {
                    sight.asked = Some(Arc::new(round));
                }
                changed
            });
        }
    }

    /// True when somebody was told of an open question of `id`.
    pub fn knows_questions(&self, id: ExecutionId) -> bool {
        let entries = self.entries();
        let round = entries.get(&id).and_then(|entry| entry.sight.borrow().asked.clone());
        round.is_some_and(|round| !round.questions.is_empty())
    }

    /// What is waited for and has not settled.
    pub fn unsettled(&self) -> Vec<ExecutionId> {
        let entries = self.entries();
        entries.iter().filter(|(_, entry)| entry.sight.borrow().settled.is_none()).map(|(id, _)| *id).collect()
    }

    /// Lets whoever polls for callers look again.
    pub fn look_again(&self) {
        self.arrived.notify_one();
    }

    /// Resolves when somebody came.
    pub async fn arrival(&self) {
        self.arrived.notified().await;
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries().len()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ExecutionId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller's place before the execution is stored: an end that comes before the caller has its ticket is kept for it,
/// and so is what is told until then.
pub(super) struct Seat<'a> {
    waiters: &'a Waiters,
    id: ExecutionId,
    messages: Option<Reader>,
}

impl Seat<'_> {
    pub(super) fn take(waiters: &Waiters, id: ExecutionId) -> Seat<'_> {
        let messages = Some(waiters.enter(id, None).messages);
        Seat { waiters, id, messages }
    }

    /// What was told since the seat was taken, for a caller that follows the execution by now.
    pub(super) fn hand_over(&mut self, following: &mut Following) {
        if let Some(messages) = self.messages.take() {
            following.messages = messages;
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.waiters.leave(self.id, |_| ());
    }
}

//! How many calls run at once: in this process, and per upstream; and how many wait. Counts, announces that there may be
//! work for a free slot, and decides nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::model::id::ExecutionId;

/// The bounds of one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamLimits {
    /// Calls at once.
    pub concurrency: usize,
    /// Calls that may wait.
    pub queue: usize,
    /// How long a call may wait, in milliseconds.
    pub queue_timeout_ms: i64,
}

impl Default for UpstreamLimits {
    fn default() -> Self {
        Self { concurrency: 16, queue: 1_000, queue_timeout_ms: 30_000 }
    }
}

/// The right to run one call; given back when dropped, and then announced to those who wait for one.
#[derive(Debug)]
pub struct Slot {
    // Fields are dropped in this order: who hears of the freed slot can take it.
    _upstream: OwnedSemaphorePermit,
    _process: OwnedSemaphorePermit,
    _freed: Freed,
}

#[derive(Debug)]
struct Freed(Arc<Shared>);

impl Drop for Freed {
    fn drop(&mut self) {
        if self.0.lanes().values().any(|lane| lane.wanted || !lane.waiting.is_empty()) {
            self.0.work_available.notify_one();
        }
    }
}

/// What a call gets when it arrives.
#[derive(Debug)]
pub enum Admission {
    /// It may run now.
    Slot(Slot),
    /// It has to wait and has a place in the queue, until [`Slots::dequeue`]. Its time there is bounded.
    Queue {
        /// In milliseconds; absent when no worker of this process runs that upstream.
        queue_timeout_ms: Option<i64>,
    },
    /// The queue is full.
    Full {
        /// Calls that wait.
        waiting: usize,
    },
}

/// The slots of this process.
#[derive(Debug)]
pub struct Slots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    process: Arc<Semaphore>,
    /// This process runs no calls at all.
    none: bool,
    lanes: Mutex<HashMap<String, Lane>>,
    work_available: Notify,
}

#[derive(Debug)]
struct Lane {
    limits: UpstreamLimits,
    free: Arc<Semaphore>,
    /// Calls that arrived in this process and wait.
    waiting: HashSet<ExecutionId>,
    /// Work of any origin was announced, and no free slot has looked for it since.
    wanted: bool,
}

impl Slots {
    /// Slots for `process` calls at once; 0: this process runs none, and what is submitted here waits for another one.
    pub fn new(process: usize) -> Slots {
        let none = process == 0;
        let process = Arc::new(Semaphore::new(process));
        Slots(Arc::new(Shared { process, none, lanes: Mutex::default(), work_available: Notify::new() }))
    }

    /// Opens a lane: this process runs calls of `upstream`, if it runs any.
    pub fn open(&self, upstream: &str, limits: UpstreamLimits) {
        if self.0.none {
            return;
        }
        let free = Arc::new(Semaphore::new(limits.concurrency));
        let lane = Lane { limits, free, waiting: HashSet::new(), wanted: false };
        self.0.lanes().insert(upstream.to_owned(), lane);
    }

    /// From here on no slot is given any more; those given stay.
    pub fn close(&self) {
        self.0.process.close();
    }

    /// A slot when one is free and nobody waits; else a place in the queue for `id`, if there is one.
    pub fn admit(&self, upstream: &str, id: ExecutionId) -> Admission {
        let mut lanes = self.0.lanes();
        let Some(lane) = lanes.get_mut(upstream) else { return Admission::Queue { queue_timeout_ms: None } };
        let slot = if lane.waiting.is_empty() { self.take(lane) } else { None };
        if let Some(slot) = slot {
            return Admission::Slot(slot);
        }
        if lane.waiting.len() >= lane.limits.queue {
            return Admission::Full { waiting: lane.waiting.len() };
        }
        lane.waiting.insert(id);
        Admission::Queue { queue_timeout_ms: Some(lane.limits.queue_timeout_ms) }
    }

    /// A slot for work found in the store, whoever waits.
    pub fn try_take(&self, upstream: &str) -> Option<Slot> {
        let mut lanes = self.0.lanes();
        let lane = lanes.get_mut(upstream)?;
        let slot = self.take(lane);
        lane.wanted |= slot.is_none();
        slot
    }

    /// Upstreams of this process with a free slot. Whoever asks looks for work of these.
    pub fn free_upstreams(&self) -> Vec<String> {
        if self.0.process.is_closed() || self.0.process.available_permits() == 0 {
            return Vec::new();
        }
        let mut lanes = self.0.lanes();
        let free = lanes.iter_mut().filter(|(_, lane)| lane.free.available_permits() > 0);
        let looked_at = free.map(|(name, lane)| {
            lane.wanted = false;
            name.clone()
        });
        looked_at.collect()
    }

    /// The call does not wait any more: it runs, ended, somebody else took it, or it was not stored.
    pub fn dequeue(&self, upstream: &str, id: ExecutionId) {
        if let Some(lane) = self.0.lanes().get_mut(upstream) {
            lane.waiting.remove(&id);
        }
    }

    /// Calls of this process that wait, over all upstreams.
    pub fn waiting(&self) -> usize {
        self.0.lanes().values().map(|lane| lane.waiting.len()).sum()
    }

    /// Which calls of this process wait.
    pub fn waiting_ids(&self) -> Vec<ExecutionId> {
        self.0.lanes().values().flat_map(|lane| lane.waiting.iter().copied()).collect()
    }

    /// There may be work of `upstream` for a worker of this process.
    pub fn announce(&self, upstream: &str) {
        if let Some(lane) = self.0.lanes().get_mut(upstream) {
            lane.wanted = true;
            self.0.work_available.notify_one();
        }
    }

    /// Resolves when there may be work for a free slot.
    pub async fn work_available(&self) {
        self.0.work_available.notified().await;
    }

    fn take(&self, lane: &Lane) -> Option<Slot> {
        let upstream = lane.free.clone().try_acquire_owned().ok()?;
        let process = self.0.process.clone().try_acquire_owned().ok()?;
        Some(Slot { _upstream: upstream, _process: process, _freed: Freed(self.0.clone()) })
    }
}

impl Shared {
    fn lanes(&self) -> MutexGuard<'_, HashMap<String, Lane>> {
        // The map is whole whenever the lock is free: nothing panics while holding it.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! How many calls run at once: in this process, and per upstream; and how many wait. Counts, decides nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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

/// The right to run one call; given back when dropped.
#[derive(Debug)]
pub struct Slot {
    _process: OwnedSemaphorePermit,
    _upstream: OwnedSemaphorePermit,
}

/// What a call gets when it arrives.
#[derive(Debug)]
pub enum Admission {
    /// It may run now.
    Slot(Slot),
    /// It has to wait; its time in the queue is bounded.
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
pub struct Slots {
    process: Arc<Semaphore>,
    lanes: Mutex<HashMap<String, Lane>>,
}

#[derive(Debug)]
struct Lane {
    limits: UpstreamLimits,
    free: Arc<Semaphore>,
    waiting: HashSet<ExecutionId>,
}

impl Slots {
    /// Slots for `process` calls at once.
    pub fn new(process: usize) -> Slots {
        Slots { process: Arc::new(Semaphore::new(process)), lanes: Mutex::default() }
    }

    /// Opens a lane: this process runs calls of `upstream`.
    pub fn open(&self, upstream: &str, limits: UpstreamLimits) {
        let lane = Lane { limits, free: Arc::new(Semaphore::new(limits.concurrency)), waiting: HashSet::new() };
        self.lanes().insert(upstream.to_owned(), lane);
    }

    /// A slot when one is free and nobody waits; else a place in the queue, if there is one. The place is taken here,
    /// before the call is stored, so that calls that arrive together can not overfill the queue: [`Slots::dequeue`]
    /// gives it back.
    pub fn admit(&self, upstream: &str, id: ExecutionId) -> Admission {
        let mut lanes = self.lanes();
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
        self.lanes().get(upstream).and_then(|lane| self.take(lane))
    }

    /// Upstreams of this process with a free slot.
    pub fn free_upstreams(&self) -> Vec<String> {
        if self.process.available_permits() == 0 {
            return Vec::new();
        }
        let lanes = self.lanes();
        lanes.iter().filter(|(_, lane)| lane.free.available_permits() > 0).map(|(name, _)| name.clone()).collect()
    }

    /// True when a lane of this process has no room: what the store holds for it is not looked at.
    pub fn any_full(&self) -> bool {
        self.process.available_permits() == 0 || self.lanes().values().any(|lane| lane.free.available_permits() == 0)
    }

    /// The call does not wait any more: it runs, ended, somebody else took it, or it was not stored.
    pub fn dequeue(&self, upstream: &str, id: ExecutionId) {
        if let Some(lane) = self.lanes().get_mut(upstream) {
            lane.waiting.remove(&id);
        }
    }

    /// Calls of this process that wait, over all upstreams.
    pub fn waiting(&self) -> usize {
        self.lanes().values().map(|lane| lane.waiting.len()).sum()
    }

    fn take(&self, lane: &Lane) -> Option<Slot> {
        let upstream = lane.free.clone().try_acquire_owned().ok()?;
        let process = self.process.clone().try_acquire_owned().ok()?;
        Some(Slot { _process: process, _upstream: upstream })
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<String, Lane>> {
        // The map is whole whenever the lock is free: nothing panics while holding it.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

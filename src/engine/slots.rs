//! How many calls run at once: in this process, and per upstream; which claims of remote workers wait for calls; and how
//! many calls wait. Counts, announces that there may be work for whoever is free, and decides nothing else.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use std::time::Duration;

use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::parking::{Parked, Place};
use crate::model::id::ExecutionId;
use crate::store::Payload;

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
        let lanes = self.0.lanes();
        let mut local = lanes.values().filter(|lane| matches!(lane.takers, Takers::Slots(_)));
        if local.any(|lane| lane.wanted || !lane.waiting.is_empty()) {
            self.0.work_available.notify_one();
        }
    }
}

/// Who holds a lease, which is where the leased work goes.
#[derive(Debug)]
pub enum Holder {
    /// The worker of this process, with one of its slots.
    Local(Slot),
    /// A remote worker whose claim waits here for calls.
    Claim(Place),
}

/// What a call gets when it arrives.
#[derive(Debug)]
pub enum Admission {
    /// It may run now.
    Now(Holder),
    /// A remote worker took calls a moment ago and is about to ask for more: a call that waits as long as this is
    /// stored already leased. Resolves when a claim waits.
    Soon(OwnedNotified),
    /// It has to wait and has a place in the queue, until [`Slots::dequeue`]. Its time there is bounded.
    Queue {
        /// In milliseconds; absent when no worker that this process knows runs that upstream.
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
    size: usize,
    lanes: Mutex<HashMap<String, Lane>>,
    work_available: Notify,
}

#[derive(Debug)]
struct Lane {
    limits: UpstreamLimits,
    takers: Takers,
    /// Calls that arrived in this process and wait, with what runs them once they are stored.
    waiting: HashMap<ExecutionId, Waiting>,
    /// Those of them that no claim has set out to take.
    unsought: usize,
    /// Work of any origin was announced, and no free slot has looked for it since.
    wanted: bool,
    /// When a claim left with calls.
    served_at: Option<Instant>,
    /// Told when a claim begins to take calls.
    claimed: Arc<Notify>,
}

/// A call that waits.
#[derive(Debug, Default)]
struct Waiting {
    /// What runs it, once it is stored.
    call: Option<Call>,
    /// A claim has set out to take it: it stands in nobody's way.
    sought: bool,
}

/// A claim that left with calls so lately is followed by the next one.
const SERVED_LATELY: Duration = Duration::from_millis(50);

impl Lane {
    fn new(limits: UpstreamLimits, takers: Takers) -> Lane {
        let wanted = matches!(takers, Takers::Claims(_));
        // What an earlier life of this process left in the queue of remote workers was announced to nobody.
        Lane { limits, takers, waiting: HashMap::new(), unsought: 0, wanted, served_at: None, claimed: Arc::default() }
    }

    fn remove(&mut self, id: ExecutionId) {
        if self.waiting.remove(&id).is_some_and(|waiting| !waiting.sought) {
            self.unsought -= 1;
        }
    }

    fn is_served(&self) -> bool {
        matches!(self.takers, Takers::Claims(_)) && self.served_at.is_some_and(|at| at.elapsed() < SERVED_LATELY)
    }
}

/// Who takes the calls of a lane.
#[derive(Debug)]
enum Takers {
    /// The worker of this process, while a slot is free.
    Slots(Arc<Semaphore>),
    /// Remote workers, while their claims wait here. The one that was served longest ago comes first.
    Claims(VecDeque<Arc<Parked>>),
}

/// What a call brings: its arguments, and what else goes to the tool.
type Call = (Payload, Option<Payload>);

/// A call larger than this is read from the store again when its turn comes.
const KEPT_BYTES_MAX: usize = 16 << 10;

impl Slots {
    /// Slots for `process` calls at once; 0: this process runs none, and what is submitted here waits for another one.
    pub fn new(process: usize) -> Slots {
        let (none, size) = (process == 0, process);
        let process = Arc::new(Semaphore::new(process));
        Slots(Arc::new(Shared { process, none, size, lanes: Mutex::default(), work_available: Notify::new() }))
    }

    /// Opens a lane: this process runs calls of `upstream`, or queues them for others if it runs none.
    pub fn open(&self, upstream: &str, limits: UpstreamLimits) {
        if self.0.none {
            return self.open_elsewhere(upstream, limits);
        }
        let takers = Takers::Slots(Arc::new(Semaphore::new(limits.concurrency)));
        self.0.lanes().insert(upstream.to_owned(), Lane::new(limits, takers));
    }

    /// Opens a lane whose calls wait here for workers of other processes, unless it is open.
    pub fn open_elsewhere(&self, upstream: &str, limits: UpstreamLimits) {
        // No claim of a remote worker ever waits in it, so whatever arrives queues.
        self.open_claims(upstream, limits);
    }

    /// Opens a lane whose calls go to remote workers, unless it is open.
    pub fn open_claims(&self, upstream: &str, limits: UpstreamLimits) {
        let lane = || Lane::new(limits, Takers::Claims(VecDeque::new()));
        self.0.lanes().entry(upstream.to_owned()).or_insert_with(lane);
    }

    /// Lets a claim wait in these lanes, until [`Slots::unpark`].
    pub(super) fn park(&self, upstreams: &[String], parked: &Arc<Parked>) {
        let mut lanes = self.0.lanes();
        for upstream in upstreams {
            if let Some(Lane { takers: Takers::Claims(claims), .. }) = lanes.get_mut(upstream) {
                claims.push_back(parked.clone());
            }
        }
    }

    /// Takes a claim out of these lanes; `served`: it leaves with calls.
    pub(super) fn unpark(&self, upstreams: &[String], parked: &Arc<Parked>, served: bool) {
        let mut lanes = self.0.lanes();
        for upstream in upstreams {
            if let Some(lane) = lanes.get_mut(upstream)
                && let Takers::Claims(claims) = &mut lane.takers
            {
                claims.retain(|other| !Arc::ptr_eq(other, parked));
                lane.served_at = served.then(Instant::now).or(lane.served_at);
            }
        }
    }

    /// A claim in these lanes begins to take calls as they arrive.
    pub(super) fn claims_wait(&self, upstreams: &[String]) {
        let lanes = self.0.lanes();
        for upstream in upstreams {
            if let Some(lane) = lanes.get(upstream) {
                lane.claimed.notify_waiters();
            }
        }
    }

    /// Which of these lanes may have work in the store, and how many calls of this process, at most `room`, are known to
    /// wait there. Whoever asks takes them.
    pub(super) fn wanted(&self, upstreams: &[String], room: usize) -> (Vec<String>, usize) {
        let mut lanes = self.0.lanes();
        let (mut wanted, mut sought) = (Vec::new(), 0);
        for upstream in upstreams {
            let Some(lane) = lanes.get_mut(upstream).filter(|lane| lane.wanted || lane.unsought > 0) else { continue };
            lane.wanted = false;
            wanted.push(upstream.clone());
            let unsought = lane.waiting.values_mut().filter(|waiting| !waiting.sought);
            for waiting in unsought.take(room - sought) {
                waiting.sought = true;
                lane.unsought -= 1;
                sought += 1;
            }
        }
        (wanted, sought)
    }

    /// There may be work of this lane in the store; nobody is woken.
    pub(super) fn want(&self, upstream: &str) {
        if let Some(lane) = self.0.lanes().get_mut(upstream) {
            lane.wanted = true;
        }
    }

    /// True when nothing is known to wait in this lane.
    pub(super) fn is_quiet(&self, upstream: &str) -> bool {
        self.0.lanes().get(upstream).is_none_or(|lane| !lane.wanted && lane.unsought == 0)
    }

    /// Claims that take a call as it arrives.
    #[cfg(test)]
    pub(super) fn parked_claims(&self) -> usize {
        let lanes = self.0.lanes();
        let admitting = |lane: &Lane| match &lane.takers {
            Takers::Claims(claims) => claims.iter().filter(|claim| claim.admits()).count(),
            Takers::Slots(_) => 0,
        };
        lanes.values().map(admitting).sum()
    }

    /// Every lane in which claims wait.
    pub(super) fn claimed_lanes(&self) -> Vec<String> {
        let lanes = self.0.lanes();
        let claimed =
            lanes.iter().filter(|(_, lane)| matches!(&lane.takers, Takers::Claims(claims) if !claims.is_empty()));
        claimed.map(|(name, _)| name.clone()).collect()
    }

    /// True while this process could run one more call.
    pub fn has_room(&self) -> bool {
        !self.0.process.is_closed() && self.0.process.available_permits() > 0
    }

    /// How many are taken, and how many are free.
    pub fn standing(&self) -> (usize, usize) {
        let free = self.0.process.available_permits().min(self.0.size);
        (self.0.size - free, free)
    }

    /// True once no slot is given any more.
    pub fn is_closed(&self) -> bool {
        self.0.process.is_closed()
    }

    /// From here on no slot is given any more; those given stay.
    pub fn close(&self) {
        self.0.process.close();
    }

    /// A slot when one is free and nobody waits; else a place in the queue for `id`, if there is one. A call that has
    /// `time` is told when a claim is about to come instead.
    pub fn admit(&self, upstream: &str, id: ExecutionId, time: bool) -> Admission {
        let mut lanes = self.0.lanes();
        let Some(lane) = lanes.get_mut(upstream) else { return Admission::Queue { queue_timeout_ms: None } };
        let holder = if lane.unsought == 0 { self.take(lane) } else { None };
        if let Some(holder) = holder {
            return Admission::Now(holder);
        }
        if time && lane.unsought == 0 && lane.is_served() {
            return Admission::Soon(lane.claimed.clone().notified_owned());
        }
        if lane.waiting.len() >= lane.limits.queue {
            return Admission::Full { waiting: lane.waiting.len() };
        }
        lane.waiting.insert(id, Waiting::default());
        lane.unsought += 1;
        Admission::Queue { queue_timeout_ms: Some(lane.limits.queue_timeout_ms) }
    }

    /// A holder for work found in the store, whoever waits.
    pub fn try_take(&self, upstream: &str) -> Option<Holder> {
        let mut lanes = self.0.lanes();
        let lane = lanes.get_mut(upstream)?;
        let holder = self.take(lane);
        lane.wanted |= holder.is_none();
        holder
    }

    /// Upstreams that the worker of this process runs with a free slot. Whoever asks looks for work of these.
    pub fn free_upstreams(&self) -> Vec<String> {
        if self.0.process.is_closed() || self.0.process.available_permits() == 0 {
            return Vec::new();
        }
        let mut lanes = self.0.lanes();
        let is_free = |takers: &Takers| matches!(takers, Takers::Slots(free) if free.available_permits() > 0);
        let free = lanes.iter_mut().filter(|(_, lane)| is_free(&lane.takers));
        let looked_at = free.map(|(name, lane)| {
            lane.wanted = false;
            name.clone()
        });
        looked_at.collect()
    }

    /// The call does not wait any more: it runs, ended, somebody else took it, or it was not stored.
    pub fn dequeue(&self, upstream: &str, id: ExecutionId) {
        if let Some(lane) = self.0.lanes().get_mut(upstream) {
            lane.remove(id);
        }
    }

    /// A call that waits is stored: what runs it is kept for whoever claims it here, if it is small.
    pub(super) fn keep(&self, upstream: &str, id: ExecutionId, call: Call) {
        let bytes = call.0.len() + call.1.as_ref().map_or(0, |meta| meta.len());
        if bytes > KEPT_BYTES_MAX {
            return;
        }
        if let Some(place) = self.0.lanes().get_mut(upstream).and_then(|lane| lane.waiting.get_mut(&id)) {
            place.call = Some(call);
        }
    }

    /// What was kept of a call that waits.
    pub(super) fn kept(&self, upstream: &str, id: ExecutionId) -> Option<Call> {
        self.0.lanes().get(upstream)?.waiting.get(&id)?.call.clone()
    }

    /// Calls of this process that wait, over all upstreams.
    pub fn waiting(&self) -> usize {
        self.0.lanes().values().map(|lane| lane.waiting.len()).sum()
    }

    /// Which calls of this process wait.
    pub fn waiting_ids(&self) -> Vec<ExecutionId> {
        self.0.lanes().values().flat_map(|lane| lane.waiting.keys().copied()).collect()
    }

    /// There may be work of `upstream` for a worker that this process knows.
    pub fn announce(&self, upstream: &str) {
        let mut lanes = self.0.lanes();
        let Some(lane) = lanes.get_mut(upstream) else { return };
        lane.wanted = true;
        match &mut lane.takers {
            Takers::Slots(_) => self.0.work_available.notify_one(),
            Takers::Claims(claims) => {
                // One is enough: it tells the next one when it leaves something.
                if let Some(at) = claims.iter().position(|claim| claim.has_room()) {
                    claims[at].wake();
                    claims.rotate_left(at + 1);
                }
            }
        }
    }

    /// There may be work of any upstream that the worker of this process runs.
    pub fn announce_all(&self) {
        let mut lanes = self.0.lanes();
        let local = lanes.values_mut().filter(|lane| matches!(lane.takers, Takers::Slots(_)));
        local.for_each(|lane| lane.wanted = true);
        self.0.work_available.notify_one();
    }

    /// Resolves when there may be work for a free slot.
    pub async fn work_available(&self) {
        self.0.work_available.notified().await;
    }

    fn take(&self, lane: &mut Lane) -> Option<Holder> {
        match &mut lane.takers {
            Takers::Slots(free) => {
                let upstream = free.clone().try_acquire_owned().ok()?;
                let process = self.0.process.clone().try_acquire_owned().ok()?;
                Some(Holder::Local(Slot { _upstream: upstream, _process: process, _freed: Freed(self.0.clone()) }))
            }
            Takers::Claims(claims) => {
                let (at, place) = claims.iter().enumerate().find_map(|(at, claim)| Some((at, claim.admit()?)))?;
                claims.rotate_left(at + 1);
                Some(Holder::Claim(place))
            }
        }
    }
}

impl Shared {
    fn lanes(&self) -> MutexGuard<'_, HashMap<String, Lane>> {
        // The map is whole whenever the lock is free: nothing panics while holding it.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! A remote worker claims calls: those that wait in the store at once, else the next ones that arrive, leased to it as
//! they are stored. What does not reach the worker is given back unstarted.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::Refused;
use super::registry::RemoteWorker;
use crate::engine::Engine;
use crate::engine::finishing::Finishing;
use crate::engine::parking::{Leased, Parked};
use crate::engine::slots::Holder;
use crate::store::CandidateQuery;

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Only these of its tools.
    pub tools: Option<Vec<String>>,
    /// Calls it has room for.
    pub max: usize,
    /// How long it waits for the first, in milliseconds; bounded by [`crate::engine::Settings::claim_wait_max_ms`].
    pub wait_ms: i64,
}

/// Leased calls on their way to a worker. What was not [`Handed::sent`] when this is dropped is given back.
pub struct Handed {
    engine: Arc<Engine>,
    jobs: Vec<Leased>,
    draining: bool,
}

impl Handed {
    /// The worker is asked to finish what it has and to end.
    pub fn draining(&self) -> bool {
        self.draining
    }

    /// The calls.
    pub fn jobs(&self) -> &[Leased] {
        &self.jobs
    }

    /// They were written whole.
    pub fn sent(mut self) {
        self.jobs.clear();
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if !self.jobs.is_empty() {
            self.engine.give_back(std::mem::take(&mut self.jobs));
        }
    }
}

/// A claim in its lanes; leaves them when dropped, and gives back what it was given.
struct Stay {
    engine: Arc<Engine>,
    lanes: Vec<String>,
    parked: Arc<Parked>,
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.engine.slots.unpark(&self.lanes, &self.parked, self.parked.was_given());
        let left = self.parked.leave();
        if !left.is_empty() {
            self.engine.give_back(left);
        }
        // A wake-up that this claim got was for whoever can use it.
        for lane in &self.lanes {
            if !self.engine.slots.is_quiet(lane) {
                self.engine.slots.announce(lane);
            }
        }
    }
}

impl Engine {
    /// Calls for a worker, at once when there are any, else as soon as one comes within the time it waits.
    pub async fn claim_remote(self: &Arc<Self>, worker: &Arc<RemoteWorker>, ask: Ask) -> Result<Handed, Refused> {
        if self.draining.is_cancelled() {
            return Err(Refused::Draining);
        }
        let settings = &self.settings.remote;
        let room = ask.max.clamp(1, settings.claim_max);
        let wait = Duration::from_millis(ask.wait_ms.clamp(0, self.settings.claim_wait_max_ms()) as u64);
        let end = Instant::now() + wait;
        let lanes = worker.lanes(ask.tools.as_deref());
        let parked = Parked::new((worker.row.name.clone(), worker.row.id), room);
        self.slots.park(&lanes, &parked);
        // Calls for it may come from other processes.
        self.waiters.look_again();
        let stay = Stay { engine: self.clone(), lanes, parked: parked.clone() };
        loop {
            let changed = self.remote.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.is_current(worker) {
                break;
            }
            let told = parked.told();
            parked.set_admits(true);
            self.slots.claims_wait(&stay.lanes);
            let (engine, lanes, claim) = (self.clone(), stay.lanes.clone(), parked.clone());
            // What was leased is given, or given back, also when the worker leaves in the middle.
            let pulled = Finishing::new(async move { engine.pull(&lanes, &claim).await }, &self.tasks).await;
            if parked.was_given() {
                break;
            }
            pulled?;
            tokio::select! {
                () = told => {}
                () = changed => {}
                () = tokio::time::sleep_until(end) => break,
                () = self.draining.cancelled() => break,
            }
            if parked.was_given() {
                break;
            }
        }
        parked.set_admits(false);
        let jobs = loop {
            let told = parked.told();
            match parked.settled() {
                Some(jobs) => break jobs,
                // Calls that are being stored for this claim come with the next commit.
                None => told.await,
            }
        };
        let handed = Handed { engine: self.clone(), jobs, draining: self.is_drained(worker) };
        if !handed.jobs.is_empty() {
            // A worker that has just died is noticed when the system's events are looked at: let that happen first.
            tokio::task::yield_now().await;
            return Ok(handed);
        }
        if self.draining.is_cancelled() {
            return Err(Refused::Draining);
        }
        Ok(handed)
    }

    /// Leases what waits in the store, as far as there is room.
    pub(in crate::engine) async fn pull(
        self: &Arc<Self>,
        lanes: &[String],
        parked: &Arc<Parked>,
    ) -> Result<(), Refused> {
        loop {
            if lanes.iter().all(|lane| self.slots.is_quiet(lane)) {
                return Ok(());
            }
            // One claim after the other: two that look at once see the same calls, and one of them looks in vain.
            let _one = self.pulling.lock().await;
            let limit = parked.room();
            if limit == 0 {
                return Ok(());
            }
            let (upstreams, sought) = self.slots.wanted(lanes, limit);
            if upstreams.is_empty() {
                return Ok(());
            }
            // Calls that come while it looks get what room is left.
            let mut places: Vec<_> = std::iter::from_fn(|| parked.reserve()).take(sought).collect();
            let now_ms = self.now_ms();
            // What belongs to this process is handed out by it.
            let process = self.process;
            let query = CandidateQuery { upstreams: upstreams.clone(), process, dead: Vec::new(), now_ms, limit };
            let candidates = match self.store.candidates(query).await {
                Ok(candidates) => candidates,
                Err(error) => {
                    upstreams.iter().for_each(|lane| self.slots.want(lane));
                    return Err(error.into());
                }
            };
            let claims: Vec<_> = candidates
                .iter()
                .map_while(|candidate| {
                    let place = places.pop().or_else(|| parked.reserve())?;
                    Some(self.claim(candidate, Holder::Claim(place)))
                })
                .collect();
            drop(places);
            // There may be more than were asked for, or than calls that came meanwhile left room for.
            let more = candidates.len() >= limit || claims.len() < candidates.len();
            let claimed = join_all(claims).await;
            if more || claimed.iter().any(Result::is_err) {
                upstreams.iter().for_each(|lane| self.slots.announce(lane));
            }
            let mut any = false;
            for claimed in claimed {
                any |= claimed?;
            }
            if any || candidates.is_empty() {
                return Ok(());
            }
        }
    }

    /// Learns of workers that registered elsewhere, and wakes claims for which calls wait in the store.
    pub(in crate::engine) async fn look_for_remote(self: &Arc<Self>) -> Result<(), Refused> {
        self.refresh_workers().await?;
        // A worker that keeps the time itself reports it first.
        self.end_overdue(self.settings.stop_grace_ms as i64).await?;
        let upstreams = self.slots.claimed_lanes();
        if upstreams.is_empty() {
            return Ok(());
        }
        let limit = self.settings.remote.claim_max;
        let now_ms = self.now_ms();
        let query = CandidateQuery { upstreams, process: self.process, dead: Vec::new(), now_ms, limit };
        let mut lanes: Vec<String> =
            self.store.candidates(query).await?.into_iter().map(|head| head.ident.upstream).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes.iter().for_each(|lane| self.slots.announce(lane));
        Ok(())
    }

    /// Gives leased calls back that provably did not reach their holder.
    pub(in crate::engine) fn give_back(self: &Arc<Self>, leased: Vec<Leased>) {
        let engine = self.clone();
        self.spawn(async move {
            for leased in leased {
                engine.held.forget(leased.lease());
                let (lease, operation) = (leased.lease(), engine.new_operation());
                if let Err(error) = engine.release(lease, operation).await {
                    // It is settled as lost when the lease runs out.
                    tracing::warn!(execution = %lease.id, code = error.code(), "a call could not be given back: {error}");
                }
            }
        });
    }
}

//! What runs in this process right now, and the verbs of the one who runs it: lease, heartbeat, complete, fail, release.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::slots::Slot;
use super::waiters::{Progress, Settled};
use super::{Engine, Result};
use crate::model::decide::{Answer, Command, Failure, LeaseRequest};
use crate::model::event::Digest;
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::store::{Applied, Apply, LeaseRef, Payload, PayloadKind, crash};

/// A leased execution for this process to run.
#[derive(Debug)]
pub struct Work {
    /// The row, leased.
    pub head: Arc<Head>,
    /// The call's arguments.
    pub arguments: Payload,
    /// What else of the call goes upstream.
    pub meta: Option<Payload>,
    /// Ends when the work should stop; a result that comes anyway is still judged by its token.
    pub cancel: CancellationToken,
    /// Given back when the work is done.
    pub slot: Slot,
}

impl Work {
    /// The lease.
    pub fn lease(&self) -> LeaseRef {
        LeaseRef { id: self.head.id(), fencing_token: self.head.fencing_token }
    }
}

/// The leases of this process.
#[derive(Debug, Default)]
pub struct Running {
    entries: Mutex<HashMap<ExecutionId, Entry>>,
}

#[derive(Debug)]
struct Entry {
    fencing_token: i64,
    cancel: CancellationToken,
}

impl Running {
    fn insert(&self, lease: LeaseRef) -> CancellationToken {
        let cancel = CancellationToken::new();
        let entry = Entry { fencing_token: lease.fencing_token, cancel: cancel.clone() };
        self.entries().insert(lease.id, entry);
        cancel
    }

    fn remove(&self, lease: LeaseRef) {
        let mut entries = self.entries();
        if entries.get(&lease.id).is_some_and(|entry| entry.fencing_token == lease.fencing_token) {
            entries.remove(&lease.id);
        }
    }

    pub(super) fn contains(&self, id: ExecutionId) -> bool {
        self.entries().contains_key(&id)
    }

    /// Stops the work under this lease; work under a newer one goes on.
    pub(super) fn cancel(&self, lease: LeaseRef) {
        if let Some(entry) = self.entries().get(&lease.id).filter(|entry| entry.fencing_token == lease.fencing_token) {
            entry.cancel.cancel();
        }
    }

    pub(super) fn leases(&self) -> Vec<LeaseRef> {
        let entries = self.entries();
        entries.iter().map(|(id, entry)| LeaseRef { id: *id, fencing_token: entry.fencing_token }).collect()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ExecutionId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// What a worker of this process asks for when it wants to run something.
    pub(super) fn lease_request(&self) -> LeaseRequest {
        LeaseRequest {
            worker: self.worker_name.clone(),
            process: self.process,
            ttl_ms: self.settings.lease_ttl_ms,
            takes_over: None,
        }
    }

    /// Hands leased work to the worker of this process.
    pub(super) fn start(&self, head: Arc<Head>, arguments: Payload, meta: Option<Payload>, slot: Slot) {
        let lease = LeaseRef { id: head.id(), fencing_token: head.fencing_token };
        let cancel = self.running.insert(lease);
        if let Some(worker) = self.local.get() {
            worker.run(Work { head, arguments, meta, cancel, slot });
        }
    }

    /// Claims one candidate by compare-and-set and starts it; false when somebody else was faster.
    pub async fn claim(&self, candidate: &Head, slot: Slot) -> Result<bool> {
        let request = LeaseRequest { takes_over: candidate.ident.bound_to, ..self.lease_request() };
        let id = candidate.id();
        crash::point("before_claim");
        let applied = self.apply(id, Command::Lease(request), None, Some(candidate)).await?;
        self.slots.dequeue(&candidate.ident.upstream, id);
        let Some(Applied { head, answer: Answer::Leased { .. } }) = applied else { return Ok(false) };
        crash::point("leased");
        let arguments = self.store.payload(id, PayloadKind::Arguments).await?.unwrap_or_else(|| "{}".into());
        let meta = self.store.payload(id, PayloadKind::Meta).await?;
        self.start(Arc::new(head), arguments, meta, slot);
        Ok(true)
    }

    /// Records a result. The answer says whether it counts.
    pub async fn complete(&self, lease: LeaseRef, result: Payload, is_error: bool) -> Result<Answer> {
        crash::point("before_complete");
        let command = Command::Complete { fencing_token: lease.fencing_token, result: Digest::of(&result), is_error };
        let applied = self.apply(lease.id, command, Some((PayloadKind::Result, result)), None).await;
        crash::point("completed");
        self.finish(lease, applied)
    }

    /// Records that an attempt brought no result. `rpc_error` is the upstream's whole JSON-RPC error, if it sent one.
    pub async fn fail(&self, lease: LeaseRef, failure: Failure, rpc_error: Option<Payload>) -> Result<Answer> {
        let command = Command::Fail { fencing_token: lease.fencing_token, failure };
        let payload = rpc_error.map(|error| (PayloadKind::Error, error));
        crash::point("before_fail");
        let applied = self.apply(lease.id, command, payload, None).await;
        crash::point("fail_recorded");
        self.finish(lease, applied)
    }

    /// How much runs in this process right now.
    pub fn running_count(&self) -> usize {
        self.running.entries().len()
    }

    /// Forgets work that was told to stop: its end is decided already, or its lease is somebody else's.
    pub fn abandon(&self, lease: LeaseRef) {
        self.running.remove(lease);
    }

    /// Gives an unstarted execution back.
    pub async fn release(&self, lease: LeaseRef) -> Result<Answer> {
        let command = Command::Release { fencing_token: lease.fencing_token };
        let applied = self.apply(lease.id, command, None, None).await;
        self.finish(lease, applied)
    }

    /// Tells callers how far a running tool is.
    pub fn progress(&self, id: ExecutionId, progress: Progress) {
        self.waiters.progress(id, progress);
    }

    /// Extends every lease of this process in one write, and stops work that can not count any more. A lost lease alone
    /// is no reason: until another one is granted, a late result is taken.
    pub async fn heartbeat(&self) -> Result<()> {
        let leases = self.running.leases();
        if leases.is_empty() {
            return Ok(());
        }
        crash::point("before_heartbeat");
        let answers = self.store.heartbeat(leases.clone(), self.settings.lease_ttl_ms, self.now_ms()).await?;
        crash::point("heartbeat_written");
        let lost = leases.iter().zip(answers).filter(|(_, answer)| *answer != Answer::Extended);
        self.stop_in_vain(&lost.map(|(lease, _)| *lease).collect::<Vec<_>>()).await
    }

    /// Stops work whose execution has ended, is gone, or has a newer lease.
    pub(super) async fn stop_in_vain(&self, leases: &[LeaseRef]) -> Result<()> {
        if leases.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = leases.iter().map(|lease| lease.id).collect();
        let heads = self.store.heads(&ids).await?;
        for lease in leases {
            let head = heads.iter().find(|head| head.id() == lease.id);
            if head.is_none_or(|head| head.state.is_ended() || head.fencing_token != lease.fencing_token) {
                self.running.cancel(*lease);
            }
        }
        Ok(())
    }

    fn finish(&self, lease: LeaseRef, applied: Result<Option<Applied>>) -> Result<Answer> {
        self.running.remove(lease);
        Ok(applied?.map_or(Answer::Stale, |applied| applied.answer))
    }

    /// The one way a command reaches an execution: writes, then tells whoever waits and whoever schedules.
    pub(super) async fn apply(
        &self,
        id: ExecutionId,
        command: Command,
        payload: Option<(PayloadKind, Payload)>,
        seen: Option<&Head>,
    ) -> Result<Option<Applied>> {
        let apply = Apply {
            id,
            command,
            payload: payload.clone(),
            operation: self.new_operation(),
            now_ms: self.now_ms(),
            seen: seen.map(|head| Box::new(head.clone())),
        };
        let Some(applied) = self.store.apply(apply).await? else { return Ok(None) };
        self.told(&applied.head, payload.map(|(_, payload)| payload)).await?;
        Ok(Some(applied))
    }

    /// What follows from a row's new state inside this process.
    async fn told(&self, head: &Head, payload: Option<Payload>) -> Result<()> {
        use crate::model::execution::State;

        match head.state {
            // From here on another process may take it: whoever waits for it here has to look at the store.
            State::Scheduled => {
                self.scheduler_due.notify_one();
                self.waiters.look_again();
            }
            State::Ready => {
                self.work_available.notify_one();
                self.waiters.look_again();
            }
            State::Leased | State::Waiting => {}
            State::Completed | State::Failed | State::Cancelled | State::Unknown => {
                self.slots.dequeue(&head.ident.upstream, head.id());
                if self.waiters.departure(head.id()).is_some() {
                    self.settle(head.clone(), payload).await?;
                }
            }
        }
        if head.state == State::Unknown {
            // Nobody has to follow.
            let _ = self.unknown.send(head.id());
        }
        if head.state == State::Cancelled {
            self.running.cancel(LeaseRef { id: head.id(), fencing_token: head.fencing_token });
        }
        Ok(())
    }

    /// Tells the callers of a settled execution; reads its payload when it is not at hand.
    pub(super) async fn settle(&self, head: Head, payload: Option<Payload>) -> Result<Settled> {
        let settled = self.settled(head, payload).await?;
        self.waiters.settle(settled.clone());
        Ok(settled)
    }
}

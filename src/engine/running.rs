//! What runs in this process right now, and the verbs of the one who runs it: lease, heartbeat, complete, fail, release.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::parking::Leased;
use super::slots::{Holder, Slot};
use super::waiters::{Progress, Settled};
use super::{Engine, Error, Result, redaction};
use crate::model::decide::{Answer, Command, Failure, LeaseRequest};
use crate::model::event::Digest;
use crate::model::execution::{Head, State};
use crate::model::id::{ExecutionId, OperationId};
use crate::store::{self, Applied, Apply, LeaseRef, Payload, PayloadKind, crash};

/// A leased execution for this process to run. Dropping it ends the heartbeats.
#[derive(Debug)]
pub struct Work {
    /// The row, leased.
    pub head: Arc<Head>,
    /// The call's arguments.
    pub arguments: Payload,
    /// What else of the call goes upstream.
    pub meta: Option<Payload>,
    /// The write that records how the attempt ended; the same however often it has to be offered.
    pub operation: OperationId,
    /// Ends when the work should stop; a result that comes anyway is still judged by its token.
    pub cancel: CancellationToken,
    /// Given back as soon as the tool runs no more: a caller that has its answer finds the slot free for its next call.
    pub slot: Option<Slot>,
    _entered: Entered,
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
    emptied: Notify,
}

#[derive(Debug)]
struct Entry {
    fencing_token: i64,
    cancel: CancellationToken,
}

/// Forgets the lease when its work is gone, by whatever way: no heartbeat keeps a lease that nobody works on.
#[derive(Debug)]
struct Entered {
    running: Arc<Running>,
    lease: LeaseRef,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.running.remove(self.lease);
    }
}

impl Running {
    fn insert(&self, lease: LeaseRef) -> CancellationToken {
        let cancel = CancellationToken::new();
        let entry = Entry { fencing_token: lease.fencing_token, cancel: cancel.clone() };
        // An older attempt that is still at work here lost its lease.
        if let Some(older) = self.entries().insert(lease.id, entry) {
            older.cancel.cancel();
        }
        cancel
    }

    pub(super) fn remove(&self, lease: LeaseRef) {
        let mut entries = self.entries();
        if entries.get(&lease.id).is_some_and(|entry| entry.fencing_token == lease.fencing_token) {
            entries.remove(&lease.id);
        }
        if entries.is_empty() {
            self.emptied.notify_waiters();
        }
    }

    pub(super) fn contains(&self, id: ExecutionId) -> bool {
        self.entries().contains_key(&id)
    }

    pub(super) fn holds(&self, lease: LeaseRef) -> bool {
        self.entries().get(&lease.id).is_some_and(|entry| entry.fencing_token == lease.fencing_token)
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

    /// Resolves when nothing runs.
    pub(super) async fn idle(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.entries().is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ExecutionId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command for one execution, as the engine sends it.
pub(super) struct Write<'a> {
    pub(super) id: ExecutionId,
    pub(super) command: Command,
    pub(super) payload: Option<(PayloadKind, Payload)>,
    pub(super) operation: OperationId,
    pub(super) seen: Option<&'a Head>,
}

impl Engine {
    /// What a holder asks for when it wants to run something.
    pub(super) fn lease_request(&self, holder: &Holder) -> LeaseRequest {
        let (worker, process, takes_over) = match holder {
            Holder::Local(_) => (&self.worker_name, self.process, None),
            Holder::Claim(place) => {
                let (worker, process) = place.worker();
                // What belongs to this process is this process's to hand out.
                (worker, process, Some(self.process))
            }
        };
        LeaseRequest { worker: worker.clone(), process, ttl_ms: self.settings.lease_ttl_ms, takes_over }
    }

    /// Hands leased work to its holder.
    pub(super) fn start(
        self: &Arc<Self>,
        head: Arc<Head>,
        (arguments, meta): (Payload, Option<Payload>),
        holder: Holder,
    ) {
        let slot = match holder {
            Holder::Local(slot) => slot,
            Holder::Claim(place) => {
                self.held.note(&head, self.now_ms());
                // Whether it was cancelled or ended elsewhere is seen by whoever waits for it here.
                self.look_elsewhere();
                if let Err(leased) = place.give(Leased { head, arguments, meta }) {
                    self.give_back(vec![leased]);
                }
                return;
            }
        };
        let lease = LeaseRef { id: head.id(), fencing_token: head.fencing_token };
        let cancel = self.running.insert(lease);
        // Whether it is cancelled elsewhere is seen by looking.
        self.waiters.look_again();
        let _entered = Entered { running: self.running.clone(), lease };
        let operation = self.new_operation();
        if let Some(worker) = self.local.get() {
            let slot = Some(slot);
            worker.run(Work { head, arguments, meta, operation, cancel, slot, _entered });
        }
    }

    /// Claims one candidate by compare-and-set and starts it; false when somebody else was faster.
    ///
    /// # Errors
    ///
    /// When the store can not be read or written; then nothing was started.
    pub async fn claim(self: &Arc<Self>, candidate: &Head, holder: Holder) -> Result<bool> {
        let id = candidate.id();
        // What it needs comes first: a lease without the call's arguments would be a call lost.
        let held = self.unredacted.call(id).or_else(|| self.slots.kept(&candidate.ident.upstream, id));
        let is_lost = held.is_none() && candidate.ident.policy.arguments_redacted;
        let (arguments, meta) = match held {
            Some(kept) => kept,
            None => {
                let arguments = self.store.payload(id, PayloadKind::Arguments).await?;
                let missing = || store::Error::Damaged(format!("the arguments of execution {id} are missing"));
                (arguments.ok_or_else(missing)?, self.store.payload(id, PayloadKind::Meta).await?)
            }
        };
        // Whoever comes now waits for nobody: this one is on its way, to this holder or to a faster one.
        self.slots.dequeue(&candidate.ident.upstream, id);
        crash::point("before_claim");
        let write = self.write(id, Command::Lease(self.lease_request(&holder)));
        let operation = write.operation;
        crash::point("before_claim");
        let applied = self.apply(Write { seen: Some(candidate), ..write }).await;
        if matches!(applied, Err(Error::Store(store::Error::Unavailable(_)))) {
            self.doubt(id, operation);
        }
        let Some(Applied { head, answer: Answer::Leased { .. } }) = applied? else { return Ok(false) };
        crash::point("leased");
        if is_lost {
            // Nobody has what the tool would have to be given.
            let lease = LeaseRef { id, fencing_token: head.fencing_token };
            return self.fail(lease, self.new_operation(), redaction::unrunnable(), None).await.map(|_| true);
        }
        self.start(Arc::new(head), (arguments, meta), holder);
        Ok(true)
    }

    /// Records a result. The answer says whether it counts. `operation` is [`Work::operation`]: after an error the same
    /// may be offered again.
    pub async fn complete(
        &self,
        lease: LeaseRef,
        operation: OperationId,
        result: Payload,
        is_error: bool,
    ) -> Result<Answer> {
        crash::point("before_complete");
        let command = Command::Complete { fencing_token: lease.fencing_token, result: Digest::of(&result), is_error };
        let payload = Some((PayloadKind::Result, result));
        let recorded = self.record(lease, Write { id: lease.id, command, payload, operation, seen: None }).await;
        crash::point("completed");
        recorded
    }

    /// Records that an attempt brought no result. `rpc_error` is the upstream's whole JSON-RPC error, if it sent one.
    pub async fn fail(
        &self,
        lease: LeaseRef,
        operation: OperationId,
        failure: Failure,
        rpc_error: Option<Payload>,
    ) -> Result<Answer> {
        let command = Command::Fail { fencing_token: lease.fencing_token, failure };
        let payload = rpc_error.map(|error| (PayloadKind::Error, error));
        crash::point("before_fail");
        let recorded = self.record(lease, Write { id: lease.id, command, payload, operation, seen: None }).await;
        crash::point("fail_recorded");
        recorded
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
    pub async fn release(&self, lease: LeaseRef, operation: OperationId) -> Result<Answer> {
        let command = Command::Release { fencing_token: lease.fencing_token };
        self.record(lease, Write { id: lease.id, command, payload: None, operation, seen: None }).await
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

    /// Writes how an attempt ended. Until that has succeeded the lease is kept: whoever failed offers it again.
    async fn record(&self, lease: LeaseRef, write: Write<'_>) -> Result<Answer> {
        let applied = self.apply(write).await?;
        self.running.remove(lease);
        Ok(applied.map_or(Answer::Stale, |applied| applied.answer))
    }

    /// A command without a payload, under an operation of its own.
    pub(super) fn write(&self, id: ExecutionId, command: Command) -> Write<'static> {
        Write { id, command, payload: None, operation: self.new_operation(), seen: None }
    }

    /// The one way a command reaches an execution: writes, then tells whoever waits and whoever schedules.
    pub(super) async fn apply(&self, write: Write<'_>) -> Result<Option<Applied>> {
        let Write { id, command, payload, operation, seen } = write;
        let (command, kept) = match self.may_strike(&command) {
            // What is rare gets a box of its own: this future is part of every call.
            true => Box::pin(self.kept_of_write(id, command, payload.clone())).await?,
            false => (command, payload.clone()),
        };
        let flight = self.in_flight.begin(&self.clock);
        let seen = seen.map(|head| Box::new(head.clone()));
        let apply = Apply { id, command, payload: kept, operation, now_ms: flight.now_ms, seen };
        let Some(applied) = self.store.apply(apply).await? else { return Ok(None) };
        drop(flight);
        // A payload that was not accepted is not what the callers get.
        let recorded = payload.filter(|_| applied.answer == Answer::Accepted);
        self.told(&applied.head, recorded.map(|(_, payload)| payload)).await;
        Ok(Some(applied))
    }

    /// What follows from a row's new state inside this process. The write is done: nothing here makes it fail.
    async fn told(&self, head: &Head, payload: Option<Payload>) {
        self.watchers.tell(head.id());
        match head.state {
            State::Scheduled => {
                self.scheduler_due.notify_one();
                self.released(head);
            }
            State::Ready => {
                self.slots.announce(&head.ident.upstream);
                self.released(head);
            }
            State::Leased => {}
            State::Waiting => Box::pin(self.told_questions(head.id())).await,
            State::Completed | State::Failed | State::Cancelled | State::Unknown => {
                self.slots.dequeue(&head.ident.upstream, head.id());
                self.observers.tell(head.id());
                if self.waiters.are_there(head.id())
                    && let Err(error) = self.settle(head.clone(), payload).await
                {
                    let code = error.code();
                    tracing::warn!(execution = %head.id(), code, "an end could not be told at once: {error}");
                    self.waiters.look_again();
                }
            }
        }
        self.forget_unredacted(head);
        if head.state == State::Unknown {
            // Nobody has to follow.
            let _ = self.unknown.send(head.id());
        }
        if head.state == State::Cancelled {
            self.running.cancel(LeaseRef { id: head.id(), fencing_token: head.fencing_token });
        }
    }

    /// Tells the callers of a settled execution. Its payload is read when it is not at hand: once, however many wait.
    pub(super) async fn settle(&self, head: Head, payload: Option<Payload>) -> Result<()> {
        match payload {
            Some(payload) => {
                let payload = Settled::kind(head.state).map(|_| payload);
                self.waiters.settle(Settled { head: Arc::new(head), payload });
                Ok(())
            }
            None => Box::pin(self.settle_from_store(head)).await,
        }
    }

    async fn settle_from_store(&self, head: Head) -> Result<()> {
        let Some(turn) = self.waiters.reading(head.id()) else { return Ok(()) };
        let _turn = turn.lock().await;
        if !self.waiters.know(&head) {
            self.waiters.settle(self.settled(head).await?);
        }
        Ok(())
    }
}

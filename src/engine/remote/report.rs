//! What a remote worker tells about the calls it holds: it still works, how far it is, what came of it.

use std::sync::Arc;

use super::registry::RemoteWorker;
use super::{Refused, token};
use crate::engine::Engine;
use crate::engine::running::Write;
use crate::engine::waiters::Progress;
use crate::model::decide::{Answer, Command, Failure};
use crate::model::execution::{Head, State};
use crate::model::id::{Entropy, OperationId};
use crate::store::{Applied, Keep, KeepOutcome, Kept, LeaseRef, Payload, Progressed};

/// A worker still works on a call.
#[derive(Clone, Debug)]
pub struct Beat {
    /// The lease token.
    pub token: String,
    /// How far it is, for whoever waits.
    pub progress: Option<Progress>,
    /// How far it is, for later attempts.
    pub checkpoint: Option<Payload>,
}

/// What a worker should do about a call it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    /// Go on.
    Ok,
    /// Stop: somebody cancelled it.
    Cancel,
    /// Stop: the lease is another worker's or ran out.
    Lost,
}

/// A step's result.
#[derive(Clone, Debug)]
pub struct StepAnswer {
    /// What is stored; absent when it was asked for and there is none.
    pub result: Option<Payload>,
    /// It was stored by this request.
    pub stored: bool,
}

impl Engine {
    /// The lease of a token of this worker.
    pub fn lease_of(&self, worker: &RemoteWorker, token: &str) -> Result<LeaseRef, Refused> {
        token::verify(&worker.row.lease_key, token).ok_or(Refused::LeaseForeign)
    }

    /// Extends leases, in one write; passes progress on and keeps checkpoints.
    pub async fn beat(self: &Arc<Self>, worker: &RemoteWorker, beats: Vec<Beat>) -> Result<Vec<LeaseStatus>, Refused> {
        let leases: Vec<LeaseRef> =
            beats.iter().map(|beat| self.lease_of(worker, &beat.token)).collect::<Result<_, _>>()?;
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        // An attempt whose time is over is not extended.
        let heard: Vec<(LeaseRef, bool)> =
            leases.iter().zip(&beats).map(|(lease, beat)| (*lease, beat.progress.is_some())).collect();
        self.heard_of(&heard).await?;
        self.end_overdue(0).await?;
        let now_ms = self.now_ms();
        let answers = self.store.heartbeat(leases.clone(), self.settings.lease_ttl_ms, now_ms).await?;
        let mut statuses = Vec::with_capacity(leases.len());
        let mut ended = Vec::new();
        for ((lease, beat), answer) in leases.iter().zip(beats).zip(answers) {
            statuses.push(if answer == Answer::Extended { LeaseStatus::Ok } else { LeaseStatus::Lost });
            if answer != Answer::Extended {
                self.held.forget(*lease);
            }
            match answer {
                Answer::Extended => {
                    if let Some(progress) = beat.progress {
                        self.progress(lease.id, progress);
                    }
                    let checkpoint = match beat.checkpoint {
                        Some(checkpoint) if self.struck_of(lease.id, &checkpoint).await?.is_some() => {
                            tracing::warn!(execution = %lease.id, "a checkpoint was not kept: a rule of redaction strikes in it");
                            None
                        }
                        checkpoint => checkpoint,
                    };
                    if let Some(checkpoint) = checkpoint {
                        let what = Kept::Checkpoint(checkpoint);
                        // When the lease went in between, the next answer says so.
                        self.store.keep(Keep { lease: *lease, what, now_ms }).await?;
                    }
                }
                Answer::Ended => ended.push(*lease),
                _ => {}
            }
        }
        let ids: Vec<_> = ended.iter().map(|lease| lease.id).collect();
        let heads = if ids.is_empty() { Vec::new() } else { self.store.heads(&ids).await? };
        for head in heads.iter().filter(|head| head.state == State::Cancelled) {
            for (status, lease) in statuses.iter_mut().zip(&leases) {
                if lease.id == head.id() && lease.fencing_token == head.fencing_token {
                    *status = LeaseStatus::Cancel;
                }
            }
        }
        Ok(statuses)
    }

    /// Records a result. True when it was recorded before.
    pub async fn complete_remote(
        self: &Arc<Self>,
        lease: LeaseRef,
        result: Payload,
        is_error: bool,
    ) -> Result<bool, Refused> {
        // An error may be answered with another attempt; then the repeat of a request must not count as its result.
        let operation = if is_error { repeatable(lease, b"complete") } else { self.new_operation() };
        let answer = self.complete(lease, operation, result, is_error).await?;
        self.held.forget(lease);
        match answer {
            Answer::Accepted => Ok(false),
            Answer::AlreadyDone => Ok(true),
            answer => Err(refused(lease, &answer)),
        }
    }

    /// Records that an attempt brought no result; returns where the execution stands now.
    pub async fn fail_remote(self: &Arc<Self>, lease: LeaseRef, failure: Failure) -> Result<State, Refused> {
        let command = Command::Fail { fencing_token: lease.fencing_token, failure };
        self.report(lease, command, b"fail").await.map(|head| head.state)
    }

    /// Gives an execution back that was not begun.
    pub async fn release_remote(self: &Arc<Self>, lease: LeaseRef) -> Result<State, Refused> {
        let command = Command::Release { fencing_token: lease.fencing_token };
        self.report(lease, command, b"release").await.map(|head| head.state)
    }

    /// A command that needs the lease itself, under an operation that its repeat has too.
    async fn report(self: &Arc<Self>, lease: LeaseRef, command: Command, verb: &[u8]) -> Result<Head, Refused> {
        let write = Write { operation: repeatable(lease, verb), ..self.write(lease.id, command) };
        let applied = self.apply(write).await?;
        self.held.forget(lease);
        match applied {
            Some(Applied { head, answer: Answer::Accepted }) => Ok(head),
            Some(Applied { head, answer: Answer::Stale }) if head.fencing_token == lease.fencing_token => {
                Err(Refused::LeaseLost(lease.id))
            }
            Some(Applied { answer, .. }) => Err(refused(lease, &answer)),
            None => Err(Refused::LeaseStale(lease.id)),
        }
    }

    /// Stores the result of a named step, unless there is one; without a result it only asks.
    pub async fn step(
        self: &Arc<Self>,
        lease: LeaseRef,
        name: String,
        result: Option<Payload>,
    ) -> Result<StepAnswer, Refused> {
        let Some(result) = result else {
            let held = self
                .store
                .heads(&[lease.id])
                .await?
                .pop()
                .is_some_and(|head| head.fencing_token == lease.fencing_token && head.lease.is_some());
            if !held {
                return Err(self.why_not_held(lease).await?);
            }
            let kept = self.store.progressed(lease.id).await?;
            let found = kept.steps.into_iter().find(|(known, _)| *known == name);
            return Ok(StepAnswer { result: found.map(|(_, result)| result), stored: false });
        };
        if self.struck_of(lease.id, &result).await?.is_some() {
            return Err(Refused::Redacted);
        }
        let steps_max = self.settings.remote.steps_max;
        let what = Kept::Step { name, result: result.clone(), steps_max };
        match self.store.keep(Keep { lease, what, now_ms: self.now_ms() }).await? {
            KeepOutcome::Stored => Ok(StepAnswer { result: Some(result), stored: true }),
            KeepOutcome::Earlier(earlier) => Ok(StepAnswer { result: Some(earlier), stored: false }),
            KeepOutcome::Full => Err(Refused::TooManySteps(steps_max)),
            KeepOutcome::Refused(_) => Err(self.why_not_held(lease).await?),
        }
    }

    async fn why_not_held(&self, lease: LeaseRef) -> Result<Refused, Refused> {
        let head = self.store.heads(&[lease.id]).await?.pop();
        Ok(match head.filter(|head| head.fencing_token == lease.fencing_token) {
            Some(head) if head.state.is_ended() => Refused::ExecutionEnded(lease.id),
            Some(_) => Refused::LeaseLost(lease.id),
            None => Refused::LeaseStale(lease.id),
        })
    }

    /// What earlier attempts of a leased execution kept. A first lease has none, and costs no look.
    pub async fn kept_for(&self, head: &Head) -> Result<Progressed, Refused> {
        match head.fencing_token {
            ..=1 => Ok(Progressed::default()),
            _ => Ok(self.store.progressed(head.id()).await?),
        }
    }
}

fn refused(lease: LeaseRef, answer: &Answer) -> Refused {
    match answer {
        Answer::Ended => Refused::ExecutionEnded(lease.id),
        _ => Refused::LeaseStale(lease.id),
    }
}

/// The operation of a request that may be repeated after its answer was lost: the same lease and verb, the same write.
fn repeatable(lease: LeaseRef, verb: &[u8]) -> OperationId {
    use sha2::{Digest as _, Sha256};
    let mut hasher = Sha256::new();
    hasher.update(lease.id.as_uuid().as_bytes());
    hasher.update(lease.fencing_token.to_be_bytes());
    hasher.update(verb);
    let mut bits = Entropy::default();
    let length = bits.len();
    bits.copy_from_slice(&hasher.finalize()[..length]);
    OperationId::new(0, &bits)
}

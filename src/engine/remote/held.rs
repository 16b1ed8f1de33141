//! The leases of remote workers that this process has seen, with the times their attempts end. A worker keeps these
//! times itself; this is for one that does not. What is forgotten here is learnt again from the row.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::Engine;
use crate::model::decide::{Failure, FailureKind};
use crate::model::execution::{ErrorInfo, Head};
use crate::model::id::ExecutionId;
use crate::store::LeaseRef;

/// Leases by execution.
#[derive(Debug, Default)]
pub struct Held(Mutex<HashMap<ExecutionId, Attempt>>);

#[derive(Clone, Copy, Debug)]
struct Attempt {
    fencing_token: i64,
    /// The attempt's absolute time.
    attempt_end_ms: i64,
    /// The execution's whole time.
    total_end_ms: i64,
    /// No progress for so long ends it.
    idle_ms: Option<i64>,
    /// When it was leased, or reported progress.
    sign_at_ms: i64,
    /// When its worker was heard last.
    heard_at_ms: i64,
}

impl Attempt {
    /// Why its time is over at `now_ms`, if it is.
    fn over(&self, now_ms: i64) -> Option<(&'static str, &'static str)> {
        if now_ms >= self.total_end_ms {
            return Some(("total_timeout", "the total time for the call ran out"));
        }
        if now_ms >= self.attempt_end_ms {
            return Some(("attempt_timeout", "the attempt's absolute time ran out"));
        }
        let idle = self.idle_ms.is_some_and(|idle_ms| now_ms >= self.sign_at_ms.saturating_add(idle_ms));
        idle.then_some(("idle_timeout", "the tool reported no progress for too long"))
    }
}

impl Held {
    /// A leased row: it was given to its worker now, or its worker is heard of here for the first time.
    pub(in crate::engine) fn note(&self, head: &Head, now_ms: i64) {
        let timeouts = head.ident.policy.timeouts;
        // The newest event of a leased row is its lease, but for notes, of which there are few.
        let since_ms = head.updated_at_ms;
        let attempt = Attempt {
            fencing_token: head.fencing_token,
            attempt_end_ms: since_ms.saturating_add(timeouts.attempt_ms),
            total_end_ms: head.total_deadline_ms(),
            idle_ms: timeouts.idle_ms,
            sign_at_ms: now_ms,
            heard_at_ms: now_ms,
        };
        self.attempts().insert(head.id(), attempt);
    }

    /// The worker was heard; true when the lease was known.
    fn heard(&self, lease: LeaseRef, now_ms: i64, progressed: bool) -> bool {
        let mut attempts = self.attempts();
        let known = attempts.get_mut(&lease.id).filter(|attempt| attempt.fencing_token == lease.fencing_token);
        let Some(attempt) = known else { return false };
        attempt.heard_at_ms = now_ms;
        if progressed {
            attempt.sign_at_ms = now_ms;
        }
        true
    }

    /// The worker holds it no more.
    pub(super) fn forget(&self, lease: LeaseRef) {
        let mut attempts = self.attempts();
        if attempts.get(&lease.id).is_some_and(|attempt| attempt.fencing_token == lease.fencing_token) {
            attempts.remove(&lease.id);
        }
    }

    /// Attempts whose time was over at `now_ms`, with why. Forgets those of which nothing was heard for `ttl_ms`: their
    /// leases run out.
    fn overdue(&self, now_ms: i64, ttl_ms: i64) -> Vec<(LeaseRef, (&'static str, &'static str))> {
        let mut attempts = self.attempts();
        attempts.retain(|_, attempt| attempt.heard_at_ms.saturating_add(ttl_ms) > now_ms);
        let over = |(id, attempt): (&ExecutionId, &Attempt)| {
            Some((LeaseRef { id: *id, fencing_token: attempt.fencing_token }, attempt.over(now_ms)?))
        };
        attempts.iter().filter_map(over).collect()
    }

    fn attempts(&self) -> MutexGuard<'_, HashMap<ExecutionId, Attempt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Notes that workers were heard about these leases; the second says whether progress was reported.
    pub(super) async fn heard_of(&self, leases: &[(LeaseRef, bool)]) -> crate::engine::Result<()> {
        let now_ms = self.now_ms();
        let unknown: Vec<LeaseRef> = leases
            .iter()
            .filter(|(lease, progressed)| !self.held.heard(*lease, now_ms, *progressed))
            .map(|(lease, _)| *lease)
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        // Granted by another process, or by an earlier life of this one.
        let ids: Vec<ExecutionId> = unknown.iter().map(|lease| lease.id).collect();
        for head in self.store.heads(&ids).await? {
            let lease = LeaseRef { id: head.id(), fencing_token: head.fencing_token };
            if head.lease.is_some() && unknown.contains(&lease) {
                self.held.note(&head, now_ms);
            }
        }
        Ok(())
    }

    /// Records attempts of remote workers as lost whose time has been over for `grace_ms`.
    pub(in crate::engine) async fn end_overdue(self: &Arc<Self>, grace_ms: i64) -> crate::engine::Result<()> {
        let now_ms = self.now_ms();
        let overdue = self.held.overdue(now_ms.saturating_sub(grace_ms), self.settings.lease_ttl_ms + grace_ms);
        for (lease, (code, message)) in overdue {
            let error = ErrorInfo { code: code.into(), message: message.into() };
            let failure = Failure { kind: FailureKind::Lost, error, retry_after_ms: None };
            // When the lease went in between, it was recorded otherwise.
            self.fail(lease, self.new_operation(), failure, None).await?;
            self.held.forget(lease);
        }
        Ok(())
    }
}

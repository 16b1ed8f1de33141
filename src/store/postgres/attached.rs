//! Which twin took an unkeyed call in an earlier run of the same batch. An attachment leaves no event: a run that comes after
//! a commit of which nothing was heard could not tell its own attachment from somebody who waits, and would store the
//! call a second time. Remembers for the runs of one batch only.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::model::execution::Head;
use crate::model::id::{ExecutionId, OperationId};
use crate::store::Submit;

/// The attachments of earlier runs, by the operation of the call.
#[derive(Default)]
pub(super) struct Attached(Mutex<HashMap<OperationId, ExecutionId>>);

impl Attached {
    /// A run attaches the call to this twin.
    pub(super) fn note(&self, submit: &Submit, twin: ExecutionId) {
        self.twins().insert(submit.operation, twin);
    }

    /// The twin that an earlier run attached the call to.
    pub(super) fn twin_of(&self, submit: &Submit) -> Option<ExecutionId> {
        self.twins().get(&submit.operation).copied()
    }

    /// True when the row shows that attachment. Only this process writes that it waits, and of its batches only one at a
    /// time is about that: when nobody waited before, nobody else can have written it.
    pub(super) fn shows(head: &Head, submit: &Submit) -> bool {
        submit.submission.waiter.is_some() && head.waiter == submit.submission.waiter
    }

    fn twins(&self) -> std::sync::MutexGuard<'_, HashMap<OperationId, ExecutionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::execution::Identification;
    use crate::model::id::ProcessId;
    use crate::model::policy::Identity;
    use crate::model::submit::{IfWaited, Submission};

    fn process(number: u128) -> ProcessId {
        ProcessId::from_uuid(Uuid::from_u128(number))
    }

    /// A call with ids of this number, for which this process waits.
    fn call(number: u128, waiter: Option<ProcessId>) -> Submit {
        let id = ExecutionId::from_uuid(Uuid::from_u128(number));
        let ident = Identification {
            upstream: "files".into(),
            tool: "echo".into(),
            principal: "ann".into(),
            caller: "editor".into(),
            ..Identification::sample(id)
        };
        let identity = Identity::default();
        let submission =
            Submission { ident, identity, run_at_ms: None, by: None, lease: None, waiter, if_waited: IfWaited::New };
        let operation = OperationId::from_uuid(Uuid::from_u128(number));
        Submit { submission, arguments: "{}".into(), meta: None, operation, now_ms: 1 }
    }

    #[test]
    fn a_run_knows_what_an_earlier_run_of_the_same_call_attached_and_nothing_of_other_calls() {
        let [one, other] = [1, 2].map(|number| ExecutionId::from_uuid(Uuid::from_u128(number)));
        let (first, second) = (call(3, Some(process(1))), call(4, Some(process(1))));
        let attached = Attached::default();
        assert_eq!(attached.twin_of(&first), None);
        attached.note(&first, one);
        assert_eq!((attached.twin_of(&first), attached.twin_of(&second)), (Some(one), None));
        // What the newest run did counts: an earlier one that took effect would have been found by it.
        attached.note(&first, other);
        assert_eq!(attached.twin_of(&first), Some(other));
    }

    #[test]
    fn a_row_shows_an_attachment_when_the_process_of_the_call_waits_there() {
        let call = |waiter| call(3, waiter);
        let row = |waiter| Head { waiter, ..Head::new(call(None).submission.ident, 1) };
        assert!(Attached::shows(&row(Some(process(1))), &call(Some(process(1)))));
        assert!(!Attached::shows(&row(None), &call(Some(process(1)))), "nobody waits: that run took no effect");
        assert!(!Attached::shows(&row(Some(process(2))), &call(Some(process(1)))), "somebody else waits");
        assert!(!Attached::shows(&row(None), &call(None)), "a call that nobody waits for attaches nothing");
    }
}

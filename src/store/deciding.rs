//! What a command, a submission or a delivery mark makes of a row, for every driver: the rules' decision folded into the
//! row, with what there is to write. Pure: a driver reads before it and writes after it.

use super::{Apply, Mark, Submit};
use crate::model::decide::{Answer, Command, Limits, decide};
use crate::model::event::{Event, EventRecord};
use crate::model::execution::{Head, State};
use crate::model::id::OperationId;
use crate::model::policy::Unkeyed;
use crate::model::submit::{Found, Submitted, Twin, submit as decide_submission};

/// A row, and the operations that made its events: enough to decide a command and to recognise a repeated one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) head: Head,
    pub(super) operations: Vec<OperationId>,
}

/// The write an event comes from.
#[derive(Clone, Copy)]
pub(super) struct Write {
    pub(super) operation: OperationId,
    pub(super) now_ms: i64,
}

impl Write {
    /// Numbers events from `first_seq` on.
    pub(super) fn records(self, first_seq: i64, events: Vec<Event>) -> impl Iterator<Item = EventRecord> {
        let record = move |(seq, event)| EventRecord { seq, at_ms: self.now_ms, operation: self.operation, event };
        (first_seq..).zip(events).map(record)
    }
}

impl From<&Apply> for Write {
    fn from(apply: &Apply) -> Write {
        Write { operation: apply.operation, now_ms: apply.now_ms }
    }
}

impl From<&Submit> for Write {
    fn from(submit: &Submit) -> Write {
        Write { operation: submit.operation, now_ms: submit.now_ms }
    }
}

/// What changed in a row: the row itself is folded already, its version is the driver's.
pub(super) struct Change {
    /// Where the execution stood before.
    pub(super) was: State,
    /// To be appended to the log, from `first_seq` on. Without any, only the lease's expiry changed.
    pub(super) events: Vec<Event>,
    /// The number of the first one.
    pub(super) first_seq: i64,
    /// The payload that came with the command is to be stored: it belongs to the event that says how it ended.
    pub(super) records_payload: bool,
}

/// What a command makes of a row.
pub(super) enum Applying {
    /// Its operation is among the events: [`answer_of`] the newest of them was its answer.
    Repeated,
    /// What to write, if anything, and what to answer after that.
    Decided(Option<Change>, Answer),
}

/// Decides `apply` on the row and folds the decision into it.
pub(super) fn apply(entry: &mut Entry, apply: &Apply, limits: &Limits) -> Applying {
    if entry.operations.contains(&apply.operation) {
        return Applying::Repeated;
    }
    let decision = decide(&entry.head, &apply.command, apply.now_ms, limits);
    if decision.changes_nothing() {
        return Applying::Decided(None, decision.answer);
    }
    let records_payload =
        decision.events.iter().any(|event| matches!(event, Event::Completed { .. } | Event::Failed { .. }));
    let was = entry.head.state;
    let first_seq = fold(entry, &decision.events, apply.into());
    if let (Some(lease), Some(expires_at_ms)) = (&mut entry.head.lease, decision.lease_expires_at_ms) {
        lease.expires_at_ms = expires_at_ms;
    }
    Applying::Decided(Some(Change { was, events: decision.events, first_seq, records_payload }), decision.answer)
}

/// Extends the lease, if it is held; true when the row changed.
pub(super) fn heartbeat(
    head: &mut Head,
    (fencing_token, ttl_ms): (i64, i64),
    now_ms: i64,
    limits: &Limits,
) -> (bool, Answer) {
    let decision = decide(head, &Command::Heartbeat { fencing_token, ttl_ms }, now_ms, limits);
    match (&mut head.lease, decision.lease_expires_at_ms) {
        (Some(lease), Some(expires_at_ms)) => {
            lease.expires_at_ms = expires_at_ms;
            (true, decision.answer)
        }
        _ => (false, decision.answer),
    }
}

/// Folds events into the row; the number of the first one.
fn fold(entry: &mut Entry, events: &[Event], write: Write) -> i64 {
    let first_seq = entry.head.next_seq;
    for event in events {
        entry.head.apply(event, write.now_ms);
    }
    if !events.is_empty() {
        entry.operations.push(write.operation);
    }
    first_seq
}

/// What was answered to an operation, by the newest event it made.
pub(super) fn answer_of(event: &Event) -> Answer {
    match event {
        Event::Leased { fencing_token, attempt, .. } => {
            Answer::Leased { fencing_token: *fencing_token, attempt: *attempt }
        }
        Event::Rejected { reason, .. } if reason == "ended" => Answer::Ended,
        Event::Rejected { .. } => Answer::Stale,
        _ => Answer::Accepted,
    }
}

/// Whether unkeyed twins matter to a submission without a key.
pub(super) fn asks_for_twins(submit: &Submit) -> bool {
    submit.submission.ident.retry_of.is_none() && submit.submission.identity.unkeyed != Unkeyed::None
}

/// What becomes of a submission. The large variant is the common one: a box would cost every new call an allocation.
#[allow(clippy::large_enum_variant)]
pub(super) enum Settled {
    /// Its own row was among what was found: it ran before.
    Repeated(Box<Head>),
    /// A new row, folded, with its events from number 1 on.
    Start(Entry, Vec<Event>),
    /// The holder of the key takes it.
    Joined,
    /// The key stands for another call; the note belongs on the holder's log, see [`note`].
    Conflict {
        /// Another principal holds it.
        foreign: bool,
        /// Absent when the log is full.
        note: Option<Event>,
    },
    /// The twin at this index takes it, see [`attach`].
    Attached(usize),
    /// The twin at this index is waited for.
    Waited(usize),
}

/// Decides a submission on what was found: who holds its key, or the twins of one without a key.
pub(super) fn submission(submit: &Submit, found: Found<'_>, limits: &Limits) -> Settled {
    let id = submit.submission.ident.id;
    let heads = found.holder.into_iter().chain(found.twins.iter().map(|twin: &Twin<'_>| twin.head));
    if let Some(head) = heads.into_iter().find(|head| head.id() == id) {
        return Settled::Repeated(Box::new(head.clone()));
    }
    match decide_submission(&submit.submission, found, submit.now_ms, limits) {
        Submitted::New { events, lease_expires_at_ms } => {
            Settled::Start(start(submit, &events, lease_expires_at_ms), events)
        }
        Submitted::Joined => Settled::Joined,
        Submitted::Attached(index) => Settled::Attached(index),
        Submitted::Waited(index) => Settled::Waited(index),
        Submitted::Conflict { foreign, note } => Settled::Conflict { foreign, note },
    }
}

/// The row of a new execution.
fn start(submit: &Submit, events: &[Event], lease_expires_at_ms: Option<i64>) -> Entry {
    let submission = &submit.submission;
    let mut entry = Entry { head: Head::new(submission.ident.clone(), submit.now_ms), operations: Vec::new() };
    fold(&mut entry, events, submit.into());
    let head = &mut entry.head;
    if let (Some(lease), Some(expires_at_ms)) = (&mut head.lease, lease_expires_at_ms) {
        lease.expires_at_ms = expires_at_ms;
    }
    head.version = 1;
    // Who waits matters for unkeyed calls only: a key says by itself who may join.
    head.waiter = submission.waiter.filter(|_| head.ident.key.is_none());
    entry
}

/// Notes a conflict on the holder's log, once for each operation.
pub(super) fn note(holder: &mut Entry, note: Option<Event>, submit: &Submit) -> Option<Change> {
    let event = note.filter(|_| !holder.operations.contains(&submit.operation))?;
    let (was, events) = (holder.head.state, vec![event]);
    let first_seq = fold(holder, &events, submit.into());
    Some(Change { was, events, first_seq, records_payload: false })
}

/// The caller of a submission waits for the twin now; true when the row changed. Attaching to a settled execution writes
/// nothing: its answer can be read at once.
pub(super) fn attach(twin: &mut Head, submit: &Submit) -> bool {
    let process = submit.submission.waiter.filter(|_| !twin.state.is_settled());
    let changes = process.is_some() && twin.waiter != process;
    if changes {
        twin.waiter = process;
    }
    changes
}

/// Writes a delivery mark into the row; true when it changed. Kept for unkeyed calls only, since nothing else asks. A
/// process takes back only its own waiting.
pub(super) fn mark(head: &mut Head, mark: Mark, now_ms: i64) -> bool {
    if head.ident.key.is_some() {
        return false;
    }
    let delivered = head.delivered_at_ms.is_some();
    let leaves = |head: &mut Head, process| head.waiter = head.waiter.filter(|waiter| *waiter != process);
    match mark {
        Mark::Waiting(process) if !delivered && head.waiter != Some(process) => head.waiter = Some(process),
        Mark::Left(process) if head.waiter == Some(process) => head.waiter = None,
        Mark::HandleGiven(process) => {
            head.handle_given = true;
            leaves(head, process);
        }
        Mark::Delivered(process) if !delivered => {
            head.delivered_at_ms = Some(now_ms);
            leaves(head, process);
        }
        Mark::Waiting(_) | Mark::Left(_) | Mark::Delivered(_) => return false,
    }
    true
}

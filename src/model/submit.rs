//! What a submission becomes: a new execution, the one that exists, or a conflict. Pure; the store looks up who holds
//! the key and which unkeyed twins exist, in the transaction that writes.

use super::decide::{self, Command, LeaseRequest, Limits};
use super::event::{Event, Order};
use super::execution::{Head, Identification};
use super::id::ProcessId;
use super::policy::{Identity, Unkeyed};

/// A call to be stored.
#[derive(Clone, Debug)]
pub struct Submission {
    /// What is fixed for good.
    pub ident: Identification,
    /// How repeats are recognised.
    pub identity: Identity,
    /// Earliest start, in milliseconds since the epoch.
    pub run_at_ms: Option<i64>,
    /// Who ordered it in the place of `ident.retry_of`; absent for a call.
    pub by: Option<Order>,
    /// The free worker of this process that takes it at once.
    pub lease: Option<LeaseRequest>,
    /// The process in which the caller waits; absent when it does not wait.
    pub waiter: Option<ProcessId>,
    /// What to do when an equal unkeyed call is still waited for.
    pub if_waited: IfWaited,
}

/// What to do when an equal unkeyed call is still waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfWaited {
    /// Tell, and store nothing: the caller looks whether the other one is just leaving.
    Tell,
    /// Store a new execution.
    New,
}

/// An unkeyed execution with the same namespace, tool, principal, caller and arguments.
#[derive(Clone, Copy, Debug)]
pub struct Twin<'a> {
    /// The row.
    pub head: &'a Head,
    /// A live process waits for it.
    pub waited: bool,
}

/// What the store found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found<'a> {
    /// The execution that holds the key.
    pub holder: Option<&'a Head>,
    /// Unkeyed twins, oldest first.
    pub twins: &'a [Twin<'a>],
}

/// What becomes of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Submitted {
    /// A new execution; write these events.
    New {
        /// `submitted`, and `leased` when a worker takes it at once.
        events: Vec<Event>,
        /// The lease's expiry, in milliseconds since the epoch.
        lease_expires_at_ms: Option<i64>,
    },
    /// The execution that holds the key takes the call.
    Joined,
    /// The twin at this index takes the call.
    Attached(usize),
    /// Every twin is still waited for ([`IfWaited::Tell`]).
    Waited(usize),
    /// The key stands for another call; write this on its holder, if anything.
    Conflict {
        /// True when another principal holds it: name no id.
        foreign: bool,
        /// The note for the holder's log; absent when its log is full.
        note: Option<Event>,
    },
}

/// Decides what a submission becomes at `now_ms`.
pub fn submit(submission: &Submission, found: Found<'_>, now_ms: i64, limits: &Limits) -> Submitted {
    if let Some(holder) = found.holder.filter(|holder| holds_key(submission, holder, now_ms)) {
        return join(submission, holder, limits);
    }
    let unkeyed = submission.ident.key.is_none() && submission.ident.retry_of.is_none();
    if let Some(decided) = unkeyed.then(|| attach(submission, found.twins, now_ms)).flatten() {
        return decided;
    }
    start(submission, now_ms, limits)
}

/// The row, its events and the lease's expiry of a new execution, folded.
pub fn start(submission: &Submission, now_ms: i64, limits: &Limits) -> Submitted {
    let mut head = Head::new(submission.ident.clone(), now_ms);
    let submitted =
        Event::Submitted { run_at_ms: submission.run_at_ms.filter(|at| *at > now_ms), by: submission.by.clone() };
    head.apply(&submitted, now_ms);
    let mut events = vec![submitted];
    let mut lease_expires_at_ms = None;
    if let Some(request) = &submission.lease {
        let mut decision = decide::decide(&head, &Command::Lease(request.clone()), now_ms, limits);
        events.append(&mut decision.events);
        lease_expires_at_ms = decision.lease_expires_at_ms;
    }
    Submitted::New { events, lease_expires_at_ms }
}

/// A key lives until its TTL after the end, and never expires while its execution runs or is `unknown`. An ordered
/// retry takes the key over from the execution it repeats.
fn holds_key(submission: &Submission, holder: &Head, now_ms: i64) -> bool {
    if submission.ident.retry_of == Some(holder.id()) && holder.state.is_ended() {
        return false;
    }
    keeps_key(holder, submission.identity.key_ttl_ms, now_ms)
}

/// Whether an execution still holds its key. Durations and times in milliseconds.
pub fn keeps_key(holder: &Head, key_ttl_ms: i64, now_ms: i64) -> bool {
    match (holder.state.is_ended(), holder.ended_at_ms) {
        (true, Some(ended_at_ms)) => now_ms < ended_at_ms.saturating_add(key_ttl_ms),
        _ => true,
    }
}

/// Whether a call with the key of `holder` is the same call: by the same principal, with the same arguments.
pub fn is_same_call(holder: &Head, principal: &str, arguments_hash: &str) -> bool {
    holder.ident.principal == principal && holder.ident.arguments_hash == arguments_hash
}

fn join(submission: &Submission, holder: &Head, limits: &Limits) -> Submitted {
    let foreign = holder.ident.principal != submission.ident.principal;
    if is_same_call(holder, &submission.ident.principal, &submission.ident.arguments_hash) {
        return Submitted::Joined;
    }
    let note = (holder.notes < limits.notes_max)
        .then(|| Event::Conflicted { arguments_hash: submission.ident.arguments_hash.clone(), foreign });
    Submitted::Conflict { foreign, note }
}

fn attach(submission: &Submission, twins: &[Twin<'_>], now_ms: i64) -> Option<Submitted> {
    let identity = &submission.identity;
    if identity.unkeyed == Unkeyed::None {
        return None;
    }
    let fits = |twin: &Twin<'_>| may_take(identity, twin.head, now_ms);
    if let Some(index) = twins.iter().position(|twin| !twin.waited && fits(twin)) {
        return Some(Submitted::Attached(index));
    }
    let waited = twins.iter().position(|twin| twin.waited && fits(twin))?;
    if identity.unkeyed == Unkeyed::Coalesce {
        return Some(Submitted::Attached(waited));
    }
    (submission.if_waited == IfWaited::Tell).then_some(Submitted::Waited(waited))
}

/// Not ended; or ended lately with nobody told. A read-only tool is cheap to ask again and its answer ages, so it
/// takes a repeat after its end only for a caller that left with a handle.
fn may_take(identity: &Identity, head: &Head, now_ms: i64) -> bool {
    if head.delivered_at_ms.is_some() {
        return false;
    }
    match (head.state.is_settled(), head.ended_at_ms) {
        (false, _) => true,
        (true, Some(ended_at_ms)) => {
            now_ms < ended_at_ms.saturating_add(identity.reattach_window_ms)
                && (!identity.read_only || head.handle_given)
        }
        (true, None) => false,
    }
}

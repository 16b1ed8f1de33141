//! The execution as a row without payloads, and how an event changes it. `apply` is the only way a [`Head`] changes
//! apart from the lease's expiry, the version and the delivery marks. Decides nothing: see `decide.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::event::{Event, ExpiryCause};
use super::id::{ExecutionId, ProcessId};
use super::policy::{Delivery, Policy};

/// Where an execution stands (docs/states.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for its time: delayed start or retry back-off.
    Scheduled,
    /// May be leased now.
    Ready,
    /// A worker works on it.
    Leased,
    /// Needs input from the client or an approval.
    Waiting,
    /// The tool returned a result, `isError: true` included.
    Completed,
    /// No result and no attempt left, or an error that may not be retried.
    Failed,
    /// Cancelled before a result was recorded.
    Cancelled,
    /// Dispatched under `at_most_once`, outcome never learnt.
    Unknown,
}

impl State {
    /// Every state, in the order of docs/states.md.
    pub const ALL: [State; 8] = [
        State::Scheduled,
        State::Ready,
        State::Leased,
        State::Waiting,
        State::Completed,
        State::Failed,
        State::Cancelled,
        State::Unknown,
    ];

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Scheduled => "scheduled",
            State::Ready => "ready",
            State::Leased => "leased",
            State::Waiting => "waiting",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::Unknown => "unknown",
        }
    }

    /// Reads a wire name.
    pub fn parse(text: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// True for completed, failed and cancelled: nothing changes any more.
    pub fn is_ended(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Cancelled)
    }

    /// True when there is something final to tell a caller: ended, or `unknown`.
    pub fn is_settled(self) -> bool {
        self.is_ended() || self == State::Unknown
    }
}

/// Whether a cancelled call may have had its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It was never dispatched.
    None,
    /// It was dispatched; nobody knows.
    Unknown,
}

/// Where a result came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultSource {
    /// The attempt that held the lease.
    Result,
    /// The newest attempt, after its lease was gone.
    LateResult,
    /// A read tool of the upstream said that the call took effect.
    Reconcile,
    /// A person said so.
    Resolve,
}

/// A worker's timed right to work on an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The worker that holds it.
    pub worker: String,
    /// The process the worker lives in.
    pub process: ProcessId,
    /// Milliseconds since the epoch; not part of the fold.
    pub expires_at_ms: i64,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, JsonSchema)]
pub struct ErrorInfo {
    /// A stable name, such as `lease_expired`, `child_died`, `rpc_error`.
    pub code: String,
    /// One sentence for people; no secrets, no payload.
    pub message: String,
}

/// What a submission fixes for good.
#[derive(Clone, Debug, PartialEq)]
pub struct Identification {
    /// The id.
    pub id: ExecutionId,
    /// The tenant border.
    pub namespace: String,
    /// Whose tool: the upstream's name, or the executor's for tools of our own.
    pub upstream: String,
    /// The tool's own name there, without prefix.
    pub tool: String,
    /// The client's key; absent for an unkeyed call.
    pub key: Option<String>,
    /// The subject that called.
    pub principal: String,
    /// Without authentication: what tells one anonymous caller from another (session or client name).
    pub caller: String,
    /// Hash of the canonical arguments (`arguments.rs`), lower-case hex.
    pub arguments_hash: String,
    /// Delivery, retries and time-outs as promised at submission.
    pub policy: Policy,
    /// The id of the first execution of the chain: the key the tool gets for its own external writes.
    pub effect_key: ExecutionId,
    /// The execution this one was ordered to repeat.
    pub retry_of: Option<ExecutionId>,
    /// Only this process may lease it, until it is dead: a `wrap` whose child holds state, or the one that alone has the
    /// call's true arguments.
    pub bound_to: Option<ProcessId>,
    /// An execution that was not leased by then, and never was, fails: the limit on time in a queue.
    pub start_by_ms: Option<i64>,
}

#[cfg(test)]
impl Identification {
    /// A call without a key, for tests that say the rest.
    pub(crate) fn sample(id: ExecutionId) -> Identification {
        Identification {
            id,
            namespace: "default".into(),
            upstream: "crm".into(),
            tool: "echo".into(),
            key: None,
            principal: "ada".into(),
            caller: String::new(),
            arguments_hash: String::new(),
            policy: Policy::default(),
            effect_key: id,
            retry_of: None,
            bound_to: None,
            start_by_ms: None,
        }
    }
}

/// One execution, without payloads. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// What was fixed at submission.
    pub ident: Identification,
    /// Where it stands.
    pub state: State,
    /// Tries so far.
    pub attempt: u32,
    /// Tries permitted; a person may order one more.
    pub attempts_allowed: u32,
    /// The newest fencing token; 0 before the first lease.
    pub fencing_token: i64,
    /// The current lease.
    pub lease: Option<Lease>,
    /// An earlier attempt may have had its effect.
    pub effect_possible: bool,
    /// The attempt went through an input round without a lease: leases continue it instead of starting another.
    pub continues: bool,
    /// When a scheduled execution is due.
    pub run_at_ms: i64,
    /// When it was submitted.
    pub created_at_ms: i64,
    /// When the last event happened.
    pub updated_at_ms: i64,
    /// When it ended, or became `unknown`.
    pub ended_at_ms: Option<i64>,
    /// The number the next event gets; events are 1..next_seq without gaps.
    pub next_seq: i64,
    /// The result's `isError`, once completed.
    pub is_error: bool,
    /// Where the result came from, once completed.
    pub source: Option<ResultSource>,
    /// Why there is no result, or why the last attempt was lost.
    pub error: Option<ErrorInfo>,
    /// Whether a cancelled call may have had its effect.
    pub effect: Option<Effect>,
    /// Events that changed nothing (stale results, conflicts) so far; they are capped.
    pub notes: u32,
    /// How long it has waited for input, in milliseconds, all finished waits together: time that does not count as run
    /// time.
    pub waited_ms: i64,
    /// When the wait it is in began.
    pub waiting_since_ms: Option<i64>,
    /// Row version for compare-and-set; changes with every write. Not part of the fold.
    pub version: i64,
    /// The process somebody waits in. A delivery mark, not part of the fold.
    pub waiter: Option<ProcessId>,
    /// When an answer about the end was written whole. A delivery mark, not part of the fold.
    pub delivered_at_ms: Option<i64>,
    /// The earlier caller left with a handle only. A delivery mark, not part of the fold.
    pub handle_given: bool,
}

impl Head {
    /// The row before its first event.
    pub fn new(ident: Identification, now_ms: i64) -> Head {
        let attempts_allowed = ident.policy.retry.max_attempts.max(1);
        Head {
            ident,
            state: State::Ready,
            attempt: 0,
            attempts_allowed,
            fencing_token: 0,
            lease: None,
            effect_possible: false,
            continues: false,
            run_at_ms: now_ms,
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            ended_at_ms: None,
            next_seq: 1,
            is_error: false,
            source: None,
            error: None,
            effect: None,
            notes: 0,
            waited_ms: 0,
            waiting_since_ms: None,
            version: 0,
            waiter: None,
            delivered_at_ms: None,
            handle_given: false,
        }
    }

    /// The id.
    pub fn id(&self) -> ExecutionId {
        self.ident.id
    }

    /// When the whole execution runs out of time: its total time after the submission or, since an `unknown` may wait
    /// long for somebody to decide, after the newest order of another attempt. Waits for input put it off by as long as
    /// they last; while one lasts, the deadline is to be held against the time at which it began.
    pub fn total_deadline_ms(&self) -> i64 {
        // Under at_most_once an effect is possible only after the execution was `unknown`; what runs after that was ordered.
        let ordered = self.effect_possible && self.ident.policy.delivery == Delivery::AtMostOnce;
        let from_ms = if ordered { self.run_at_ms } else { self.created_at_ms };
        from_ms.saturating_add(self.ident.policy.timeouts.total_ms).saturating_add(self.waited_ms)
    }

    /// The time that counts at `now_ms`: it stands still while the execution waits for input.
    pub fn run_clock_ms(&self, now_ms: i64) -> i64 {
        self.waiting_since_ms.map_or(now_ms, |since_ms| since_ms.min(now_ms))
    }

    /// Whether policy and time permit another run after an attempt that may have had its effect (`ran`).
    pub fn may_run_again(&self, ran: bool, now_ms: i64) -> bool {
        let permitted = !ran || self.ident.policy.delivery == Delivery::AtLeastOnce;
        permitted && self.attempt < self.attempts_allowed && self.run_clock_ms(now_ms) < self.total_deadline_ms()
    }

    /// Folds one event into the row. Total: an event that does not fit still folds, since it is a fact.
    pub fn apply(&mut self, event: &Event, at_ms: i64) {
        self.next_seq += 1;
        self.updated_at_ms = at_ms;
        if !matches!(event, Event::Rejected { .. } | Event::Conflicted { .. })
            && let Some(since_ms) = self.waiting_since_ms.take()
        {
            self.waited_ms = self.waited_ms.saturating_add((at_ms - since_ms).max(0));
        }
        match event {
            Event::Submitted { run_at_ms, .. } => {
                self.created_at_ms = at_ms;
                self.run_at_ms = run_at_ms.unwrap_or(at_ms);
                self.state = if run_at_ms.is_some() { State::Scheduled } else { State::Ready };
            }
            Event::Promoted => self.state = State::Ready,
            Event::Leased { worker, process, fencing_token, attempt } => {
                self.state = State::Leased;
                self.fencing_token = *fencing_token;
                self.attempt = *attempt;
                self.ended_at_ms = None;
                self.lease = Some(Lease { worker: worker.clone(), process: *process, expires_at_ms: at_ms });
            }
            Event::Released { .. } => {
                self.state = State::Ready;
                // A round given back unstarted still belongs to an attempt that did start.
                self.attempt = self.attempt.saturating_sub(u32::from(!self.continues));
                self.lease = None;
            }
            Event::Parked => {
                self.state = State::Waiting;
                self.waiting_since_ms = Some(at_ms);
                self.lease = None;
            }
            Event::Held => {
                self.state = State::Waiting;
                self.waiting_since_ms = Some(at_ms);
            }
            Event::Resumed if self.lease.is_some() => self.state = State::Leased,
            Event::Resumed => {
                self.state = State::Ready;
                self.continues = true;
            }
            Event::Retried { run_at_ms, ran, by, error, .. } => {
                self.state = State::Scheduled;
                self.run_at_ms = *run_at_ms;
                self.continues = false;
                self.effect_possible |= ran;
                self.ended_at_ms = None;
                self.lease = None;
                self.error = Some(error.clone());
                if by.is_some() {
                    self.attempts_allowed = self.attempts_allowed.max(self.attempt + 1);
                    if self.ident.policy.delivery == Delivery::AtMostOnce {
                        // The total time begins anew; what was waited before is not a part of it.
                        self.waited_ms = 0;
                    }
                }
            }
            Event::Lost { error, .. } => {
                self.state = State::Unknown;
                self.effect_possible = true;
                self.error = Some(error.clone());
                self.end(at_ms);
            }
            Event::Completed { source, is_error, .. } => {
                self.state = State::Completed;
                self.is_error = *is_error;
                self.source = Some(*source);
                self.error = None;
                self.end(at_ms);
            }
            Event::Failed { error, ran, .. } => {
                self.state = State::Failed;
                self.effect_possible |= ran;
                self.error = Some(error.clone());
                self.end(at_ms);
            }
            Event::Cancelled { effect, .. } => {
                self.state = State::Cancelled;
                self.effect = Some(*effect);
                self.end(at_ms);
            }
            Event::Rejected { .. } | Event::Conflicted { .. } => self.notes += 1,
        }
    }

    fn end(&mut self, at_ms: i64) {
        self.ended_at_ms = Some(at_ms);
        self.lease = None;
    }

    /// The stable error code for a lease that ran out.
    pub fn expiry_code(cause: ExpiryCause) -> &'static str {
        match cause {
            ExpiryCause::LeaseExpired => "lease_expired",
            ExpiryCause::ProcessDied => "process_died",
        }
    }
}

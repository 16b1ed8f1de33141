//! Every transition of a stored execution: `decide(&Head, &Command, now, limits) -> Decision`. Pure and total: the same
//! row, command and time always give the same events. Whoever runs it writes the events and folds them with
//! [`Head::apply`]; nothing else changes an execution. Submission, which starts a row, is in `submit.rs`.

pub use super::command::{Command, Failure, FailureKind, LeaseRequest, Outcome};
use super::event::{Digest, Event, ExpiryCause, Order};
use super::execution::{Effect, ErrorInfo, Head, ResultSource, State};
use super::policy::Delivery;

/// Bounds on what may be recorded about one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Events that change nothing (stale results, conflicts) kept per execution.
    pub notes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { notes_max: 32 }
    }
}

/// What to tell whoever sent the command.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The lease is granted.
    Leased {
        /// Its number.
        fencing_token: i64,
        /// Which try it is.
        attempt: u32,
    },
    /// It may not be leased now, or not by this worker.
    NotLeasable,
    /// The lease goes on.
    Extended,
    /// The command took effect; the row says how.
    Accepted,
    /// The same was already recorded; nothing changed.
    AlreadyDone,
    /// The token is not the newest, or its lease is gone; nothing changed.
    Stale,
    /// The execution has ended; nothing changed.
    Ended,
    /// The state does not permit the command; nothing changed.
    NotPermitted,
    /// Nothing to do (any more).
    Nothing,
}

/// Events to write, and what to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// To be folded and stored, in order.
    pub events: Vec<Event>,
    /// The lease's new expiry, in milliseconds since the epoch.
    pub lease_expires_at_ms: Option<i64>,
    /// What to answer.
    pub answer: Answer,
}

impl Decision {
    fn answer(answer: Answer) -> Decision {
        Decision { events: Vec::new(), lease_expires_at_ms: None, answer }
    }

    fn event(event: Event) -> Decision {
        Decision { events: vec![event], lease_expires_at_ms: None, answer: Answer::Accepted }
    }

    /// True when the row does not change.
    pub fn changes_nothing(&self) -> bool {
        self.events.is_empty() && self.lease_expires_at_ms.is_none()
    }
}

/// Decides one command on the row as it stands at `now_ms` (milliseconds since the epoch).
pub fn decide(head: &Head, command: &Command, now_ms: i64, limits: &Limits) -> Decision {
    let case = Case { head, now_ms, limits };
    match command {
        Command::Lease(request) => case.lease(request),
        Command::Heartbeat { fencing_token, ttl_ms } => case.heartbeat(*fencing_token, *ttl_ms),
        Command::Complete { fencing_token, result, is_error } => case.complete(*fencing_token, result, *is_error),
        Command::Fail { fencing_token, failure } => case.fail(*fencing_token, failure),
        Command::Release { fencing_token } => {
            case.as_holder(*fencing_token, &[State::Leased], |_| Event::Released { fencing_token: *fencing_token })
        }
        Command::Hold { fencing_token } => case.as_holder(*fencing_token, &[State::Leased], |_| Event::Held),
        Command::Park { fencing_token } => case.as_holder(*fencing_token, &[State::Leased], |_| Event::Parked),
        Command::Resume if head.state == State::Waiting => Decision::event(Event::Resumed),
        Command::Resume => Decision::answer(case.refusal()),
        Command::Expire { fencing_token, cause } => case.expire(*fencing_token, *cause),
        Command::TimeOut { nobody_runs } => case.time_out(*nobody_runs),
        Command::Promote if head.state == State::Scheduled && head.run_at_ms <= now_ms => {
            Decision::event(Event::Promoted)
        }
        Command::Promote => Decision::answer(Answer::Nothing),
        Command::Cancel(order) => case.cancel(order),
        Command::Retry(order) => case.retry(order),
        Command::Resolve { by, outcome } => case.resolve(by, outcome),
        Command::Reconcile { fencing_token, found } => case.reconcile(*fencing_token, found.as_ref()),
    }
}

struct Case<'a> {
    head: &'a Head,
    now_ms: i64,
    limits: &'a Limits,
}

impl Case<'_> {
    fn lease(&self, request: &LeaseRequest) -> Decision {
        let head = self.head;
        let due = match head.state {
            State::Ready => true,
            State::Scheduled => head.run_at_ms <= self.now_ms,
            _ => false,
        };
        let bound_elsewhere =
            head.ident.bound_to.is_some_and(|owner| owner != request.process && Some(owner) != request.takes_over);
        if !due || bound_elsewhere || self.deadline().is_some() {
            return Decision::answer(Answer::NotLeasable);
        }
        let fencing_token = head.fencing_token + 1;
        let attempt = if head.continues { head.attempt } else { head.attempt + 1 };
        Decision {
            events: vec![Event::Leased {
                worker: request.worker.clone(),
                process: request.process,
                fencing_token,
                attempt,
            }],
            lease_expires_at_ms: Some(self.now_ms + request.ttl_ms),
            answer: Answer::Leased { fencing_token, attempt },
        }
    }

    fn heartbeat(&self, fencing_token: i64, ttl_ms: i64) -> Decision {
        if !self.holds_lease(fencing_token) {
            return Decision::answer(self.refusal_of_token(fencing_token));
        }
        Decision { events: Vec::new(), lease_expires_at_ms: Some(self.now_ms + ttl_ms), answer: Answer::Extended }
    }

    /// Evidence beats ignorance: the newest token may bring its result wherever the execution stands, until it ended.
    fn complete(&self, fencing_token: i64, result: &Digest, is_error: bool) -> Decision {
        let head = self.head;
        let repeated = head.state == State::Completed && fencing_token == head.fencing_token;
        if repeated && matches!(head.source, Some(ResultSource::Result | ResultSource::LateResult)) {
            return Decision::answer(Answer::AlreadyDone);
        }
        if head.state.is_ended() {
            return self.reject(fencing_token, "ended", Some(result), Answer::Ended);
        }
        if fencing_token != head.fencing_token || head.fencing_token == 0 {
            return self.reject(fencing_token, "stale_token", Some(result), Answer::Stale);
        }
        let retry = &head.ident.policy.retry;
        if is_error && retry.on.tool_error && head.lease.is_some() && self.may_run_again(true) {
            let error = error("tool_error", "the tool answered with isError");
            return Decision::event(self.retried(error, true, None));
        }
        let source = if head.lease.is_some() { ResultSource::Result } else { ResultSource::LateResult };
        Decision::event(Event::Completed {
            fencing_token: Some(fencing_token),
            source,
            is_error,
            result: result.clone(),
            by: None,
        })
    }

    fn fail(&self, fencing_token: i64, failure: &Failure) -> Decision {
        if !self.holds_lease(fencing_token) {
            let answer = self.refusal_of_token(fencing_token);
            let reason = if answer == Answer::Ended { "ended" } else { "stale_token" };
            return self.reject(fencing_token, reason, None, answer);
        }
        let policy = &self.head.ident.policy;
        let error = failure.error.clone();
        let wait = failure.retry_after_ms;
        Decision::event(match failure.kind {
            // An attempt that went through an input round had reached the tool before this round did not.
            FailureKind::NotStarted => self.after_loss(error, self.head.continues, wait),
            FailureKind::Unrunnable => self.given_up(error, self.head.continues),
            FailureKind::Lost => self.after_loss(error, true, wait),
            FailureKind::RpcError if policy.retry.on.rpc_error && self.may_run_again(true) => {
                self.retried(error, true, wait)
            }
            FailureKind::Reported { retryable: true } if self.may_run_again(true) => self.retried(error, true, wait),
            FailureKind::RpcError | FailureKind::Reported { .. } => self.failed(error, true),
        })
    }

    fn expire(&self, fencing_token: i64, cause: ExpiryCause) -> Decision {
        let Some(lease) = &self.head.lease else { return Decision::answer(Answer::Nothing) };
        let out_of_time = cause == ExpiryCause::LeaseExpired && lease.expires_at_ms > self.now_ms;
        if fencing_token != self.head.fencing_token || out_of_time {
            return Decision::answer(Answer::Nothing);
        }
        let message = match cause {
            ExpiryCause::LeaseExpired => "the worker sent no heartbeat before its lease ran out",
            ExpiryCause::ProcessDied => "the process that ran the call died",
        };
        Decision::event(self.after_loss(error(Head::expiry_code(cause), message), true, None))
    }

    fn time_out(&self, nobody_runs: bool) -> Decision {
        let deadline = self.deadline().map(|passed| match nobody_runs && passed.code == QUEUE_TIMEOUT {
            true => error(QUEUE_TIMEOUT, NOBODY_RUNS),
            false => passed,
        });
        match deadline {
            Some(error) if matches!(self.head.state, State::Ready | State::Scheduled) => {
                Decision::event(self.failed(error, false))
            }
            _ => Decision::answer(Answer::Nothing),
        }
    }

    fn cancel(&self, order: &Order) -> Decision {
        let head = self.head;
        if head.state.is_ended() {
            return Decision::answer(Answer::Ended);
        }
        if head.state == State::Unknown {
            return Decision::answer(Answer::NotPermitted);
        }
        let reached_tool = head.state == State::Waiting || head.continues;
        let dispatched = head.lease.is_some() || head.effect_possible || reached_tool;
        let effect = if dispatched { Effect::Unknown } else { Effect::None };
        Decision::event(Event::Cancelled { effect, by: order.clone() })
    }

    fn retry(&self, order: &Order) -> Decision {
        if self.head.state != State::Unknown {
            return Decision::answer(self.refusal());
        }
        let error = self.head.error.clone().unwrap_or_else(|| error("ordered", "another attempt was ordered"));
        Decision::event(Event::Retried {
            run_at_ms: self.now_ms,
            attempt: self.head.attempt,
            ran: true,
            error,
            by: Some(order.clone()),
        })
    }

    fn resolve(&self, by: &Order, outcome: &Outcome) -> Decision {
        if self.head.state != State::Unknown {
            return Decision::answer(self.refusal());
        }
        Decision::event(match outcome {
            Outcome::Completed { result, is_error } => Event::Completed {
                fencing_token: None,
                source: ResultSource::Resolve,
                is_error: *is_error,
                result: result.clone(),
                by: Some(by.clone()),
            },
            Outcome::Failed => Event::Failed {
                ran: true,
                attempt: self.head.attempt,
                error: error("resolved_failed", "resolved as failed"),
                by: Some(by.clone()),
            },
        })
    }

    fn reconcile(&self, fencing_token: i64, found: Option<&Digest>) -> Decision {
        if self.head.state != State::Unknown {
            return Decision::answer(self.refusal());
        }
        if self.head.fencing_token != fencing_token {
            return Decision::answer(Answer::NotPermitted);
        }
        // A rule is no person: it may order one attempt in any case, and else only up to the policy's number.
        if found.is_none() && self.head.attempt >= self.head.attempts_allowed.max(2) {
            return Decision::answer(Answer::NotPermitted);
        }
        Decision::event(match found {
            Some(result) => Event::Completed {
                fencing_token: None,
                source: ResultSource::Reconcile,
                is_error: false,
                result: result.clone(),
                by: None,
            },
            None => Event::Retried {
                run_at_ms: self.now_ms,
                attempt: self.head.attempt,
                ran: false,
                error: error("reconciled", "the upstream says that the call took no effect"),
                by: Some(Order {
                    principal: "reconcile".into(),
                    reason: "the upstream was asked, and said that the call took no effect".into(),
                }),
            },
        })
    }

    /// A change that only the holder of the newest lease may make.
    fn as_holder(&self, fencing_token: i64, states: &[State], event: impl Fn(&Head) -> Event) -> Decision {
        if !self.holds_lease(fencing_token) {
            return Decision::answer(self.refusal_of_token(fencing_token));
        }
        if !states.contains(&self.head.state) {
            return Decision::answer(Answer::NotPermitted);
        }
        Decision::event(event(self.head))
    }

    fn holds_lease(&self, fencing_token: i64) -> bool {
        self.head.lease.is_some() && self.head.fencing_token == fencing_token
    }

    fn refusal_of_token(&self, fencing_token: i64) -> Answer {
        match self.head.state.is_ended() && fencing_token == self.head.fencing_token {
            true => Answer::Ended,
            false => Answer::Stale,
        }
    }

    fn refusal(&self) -> Answer {
        if self.head.state.is_ended() { Answer::Ended } else { Answer::NotPermitted }
    }

    /// Nothing changes, but the log says that something came which may not count.
    fn reject(&self, fencing_token: i64, reason: &str, result: Option<&Digest>, answer: Answer) -> Decision {
        if self.head.notes >= self.limits.notes_max {
            return Decision::answer(answer);
        }
        let event = Event::Rejected { fencing_token, reason: reason.into(), result: result.cloned() };
        Decision { events: vec![event], lease_expires_at_ms: None, answer }
    }

    fn may_run_again(&self, ran: bool) -> bool {
        self.head.may_run_again(ran, self.now_ms)
    }

    fn after_loss(&self, error: ErrorInfo, ran: bool, retry_after_ms: Option<i64>) -> Event {
        if self.may_run_again(ran) {
            return self.retried(error, ran, retry_after_ms);
        }
        self.given_up(error, ran)
    }

    fn given_up(&self, error: ErrorInfo, ran: bool) -> Event {
        // Of an earlier, ordered-over attempt nothing is known still, however this one ended.
        let effect_possible = ran || self.head.effect_possible;
        if effect_possible && self.head.ident.policy.delivery == Delivery::AtMostOnce {
            return Event::Lost { attempt: self.head.attempt, error };
        }
        self.failed(error, ran)
    }

    fn retried(&self, error: ErrorInfo, ran: bool, retry_after_ms: Option<i64>) -> Event {
        let head = self.head;
        let delay_ms = retry_after_ms.unwrap_or_else(|| head.ident.policy.retry.delay_ms(head.id(), head.attempt));
        Event::Retried { run_at_ms: self.now_ms + delay_ms.max(0), attempt: head.attempt, ran, error, by: None }
    }

    fn failed(&self, error: ErrorInfo, ran: bool) -> Event {
        Event::Failed { attempt: self.head.attempt, ran, error, by: None }
    }

    /// The deadline that has passed, if one has.
    fn deadline(&self) -> Option<ErrorInfo> {
        let head = self.head;
        if head.run_clock_ms(self.now_ms) >= head.total_deadline_ms() {
            return Some(error("total_timeout", "the total time for the call ran out"));
        }
        let never_leased = head.fencing_token == 0;
        if never_leased && head.ident.start_by_ms.is_some_and(|start_by| self.now_ms >= start_by) {
            return Some(error(QUEUE_TIMEOUT, "the call waited too long in the queue and was never started"));
        }
        None
    }
}

/// The code of a call whose time in the queue ran out.
const QUEUE_TIMEOUT: &str = "queue_timeout";
/// What is said when waiting longer would not have helped.
const NOBODY_RUNS: &str = "no living worker runs the server of this tool, and the call waited for one as long as it may; \
    start a process with the role `worker` that has this server in its configuration";

fn error(code: &str, message: &str) -> ErrorInfo {
    ErrorInfo { code: code.into(), message: message.into() }
}

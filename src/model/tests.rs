//! The rules, proved: examples for each sentence of the design, properties over random histories, documents against
//! the code. This file holds what they share: a [`Story`] that runs commands written as text. Touches no store.

mod arguments;
mod documents;
mod lifecycle;
mod properties;
mod retry;
mod serialisation;
mod submission;
mod takeover;
mod waiting;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::decide::{self, Answer, Command, Failure, FailureKind, LeaseRequest, Limits, Outcome};
use super::event::{Digest, Event, ExpiryCause, Order};
use super::execution::{ErrorInfo, Head, Identification, State};
use super::id::{ExecutionId, ProcessId};
use super::policy::{Delivery, Policy};
use super::transitions;

/// When every story begins.
const START_MS: i64 = 1_700_000_000_000;
const LEASE_TTL_MS: i64 = 30_000;

fn execution_id(number: u8) -> ExecutionId {
    ExecutionId::new(START_MS, &[number; 10])
}

fn process_id(number: u8) -> ProcessId {
    ProcessId::new(START_MS, &[number; 10])
}

/// Reads a policy: the delivery, then any of `tool_error`, `rpc_error`, `max=N`, `total=MS`. Without jitter.
fn policy(text: &str) -> Policy {
    let mut policy = Policy::default();
    policy.retry.jitter = 0.0;
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some(("max", number)) => policy.retry.max_attempts = number.parse().unwrap(),
            Some(("total", number)) => policy.timeouts.total_ms = number.parse().unwrap(),
            None if word == "tool_error" => policy.retry.on.tool_error = true,
            None if word == "rpc_error" => policy.retry.on.rpc_error = true,
            _ => policy.delivery = Delivery::parse(word).unwrap(),
        }
    }
    policy
}

fn ident(policy: Policy) -> Identification {
    Identification {
        upstream: "github".into(),
        tool: "create_issue".into(),
        caller: "claude".into(),
        arguments_hash: "a".repeat(64),
        policy,
        ..Identification::sample(execution_id(1))
    }
}

fn order() -> Order {
    Order { principal: "ada".into(), reason: "looked it up".into() }
}

fn result(text: &str) -> Digest {
    Digest::of(text)
}

fn lease_request() -> LeaseRequest {
    LeaseRequest { worker: "w".into(), process: process_id(1), ttl_ms: LEASE_TTL_MS, takes_over: None }
}

/// One execution with its log and its clock.
#[derive(Clone, Debug)]
struct Story {
    ident: Identification,
    head: Head,
    log: Vec<(i64, Event)>,
    now_ms: i64,
    limits: Limits,
}

impl Story {
    /// Submitted now, ready at once.
    fn new(policy: Policy) -> Story {
        Story::submitted(ident(policy), None)
    }

    fn submitted(ident: Identification, run_at_ms: Option<i64>) -> Story {
        let head = Head::new(ident.clone(), START_MS);
        let mut story = Story { ident, head, log: Vec::new(), now_ms: START_MS, limits: Limits { notes_max: 4 } };
        let event = Event::Submitted { run_at_ms, by: None };
        story.head.apply(&event, START_MS);
        assert!(transitions::permits(None, event.name(), story.head.state));
        story.log.push((START_MS, event));
        story
    }

    /// What a driver does with a command: decide, fold, write.
    fn send(&mut self, command: &Command) -> Answer {
        let decision = decide::decide(&self.head, command, self.now_ms, &self.limits);
        for event in decision.events {
            let from = self.head.state;
            self.head.apply(&event, self.now_ms);
            let (name, to) = (event.name(), self.head.state);
            assert!(transitions::permits(Some(from), name, to), "{from:?} --{name}--> {to:?} is not in the table");
            self.log.push((self.now_ms, event));
        }
        if let (Some(lease), Some(expires_at_ms)) = (&mut self.head.lease, decision.lease_expires_at_ms) {
            lease.expires_at_ms = expires_at_ms;
        }
        decision.answer
    }

    /// Runs one step: `wait MS`, or a command as [`Story::command`] reads it.
    fn step(&mut self, text: &str) -> Option<Answer> {
        if let Some(wait_ms) = text.strip_prefix("wait ") {
            self.now_ms += wait_ms.parse::<i64>().unwrap();
            return None;
        }
        let command = self.command(text);
        Some(self.send(&command))
    }

    /// Reads `NAME[@TOKEN]`; the token is a number, `old`, `future`, or (absent) the newest.
    fn command(&self, text: &str) -> Command {
        let (name, token) = text.split_once('@').unwrap_or((text, "newest"));
        let fencing_token = match token {
            "newest" => self.head.fencing_token,
            "old" => self.head.fencing_token - 1,
            "future" => self.head.fencing_token + 1,
            number => number.parse().unwrap(),
        };
        let failed = |kind| {
            let error = ErrorInfo { code: "said_so".into(), message: "the worker said so".into() };
            Command::Fail { fencing_token, failure: Failure { kind, error, retry_after_ms: None } }
        };
        let resolved = |outcome| Command::Resolve { by: order(), outcome };
        match name {
            "lease" => Command::Lease(lease_request()),
            "heartbeat" => Command::Heartbeat { fencing_token, ttl_ms: LEASE_TTL_MS },
            "result" => Command::Complete { fencing_token, result: result("{}"), is_error: false },
            "error result" => Command::Complete { fencing_token, result: result("{\"isError\":true}"), is_error: true },
            "lose" => failed(FailureKind::Lost),
            "not started" => failed(FailureKind::NotStarted),
            "rpc error" => failed(FailureKind::RpcError),
            "report" => failed(FailureKind::Reported { retryable: false }),
            "report retryable" => failed(FailureKind::Reported { retryable: true }),
            "release" => Command::Release { fencing_token },
            "hold" => Command::Hold { fencing_token },
            "park" => Command::Park { fencing_token },
            "resume" => Command::Resume,
            "expire" => Command::Expire { fencing_token, cause: ExpiryCause::LeaseExpired },
            "die" => Command::Expire { fencing_token, cause: ExpiryCause::ProcessDied },
            "time out" => Command::TimeOut { nobody_runs: false },
            "promote" => Command::Promote,
            "cancel" => Command::Cancel(order()),
            "retry" => Command::Retry(order()),
            "resolve" => resolved(Outcome::Completed { result: result("{}"), is_error: false }),
            "resolve failed" => resolved(Outcome::Failed),
            "reconcile" => Command::Reconcile { fencing_token, found: Some(result("{}")) },
            "reconcile nothing" => Command::Reconcile { fencing_token, found: None },
            other => panic!("no command {other:?}"),
        }
    }

    /// `state(detail)`: where it stands and what is worth telling about that.
    fn state(&self) -> String {
        let head = &self.head;
        let code = || head.error.as_ref().map_or("", |error| error.code.as_str());
        let detail = match head.state {
            State::Leased => format!("attempt {} token {}", head.attempt, head.fencing_token),
            State::Scheduled => format!("+{}", head.run_at_ms - self.now_ms),
            State::Waiting if head.lease.is_some() => "held".into(),
            State::Waiting => "parked".into(),
            State::Ready => return "ready".into(),
            State::Completed => wire(&head.source),
            State::Cancelled => wire(&head.effect),
            State::Failed | State::Unknown => code().into(),
        };
        format!("{}({detail})", head.state.as_str())
    }

    fn event_names(&self) -> String {
        self.log.iter().map(|(_, event)| event.name()).collect::<Vec<_>>().join(" ")
    }

    /// The row that the log alone gives.
    fn folded(&self) -> Head {
        let mut head = Head::new(self.ident.clone(), START_MS);
        for (at_ms, event) in &self.log {
            head.apply(event, *at_ms);
        }
        head
    }
}

/// The wire name of a value that serialises as a string.
fn wire(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap_or("-").to_owned()
}

/// Runs `script` (steps with commas between) under `policy_text` and compares `answer; state; events`, where the
/// answer is the last step's and `submitted` is left out of the events.
#[track_caller]
fn check(policy_text: &str, script: &str, expect: &str) {
    check_story(Story::new(policy(policy_text)), script, expect);
}

#[track_caller]
fn check_story(mut story: Story, script: &str, expect: &str) {
    let mut answer = None;
    for text in script.split(", ").filter(|text| !text.is_empty()) {
        answer = story.step(text).or(answer);
    }
    let answer = answer.map_or("-".into(), |answer| match answer {
        Answer::Leased { .. } => "Leased".into(),
        other => format!("{other:?}"),
    });
    let events = story.event_names();
    let events = events.strip_prefix("submitted").unwrap().trim_start();
    assert_eq!(format!("{answer}; {}; {events}", story.state()), expect, "{script}");
}

/// Holds `test` against `cases` values (or as many as `DURABLE_MCP_TEST_HISTORIES` asks for): the same ones on every run.
#[track_caller]
fn holds<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value)) {
    let asked = std::env::var("DURABLE_MCP_TEST_HISTORIES").ok();
    let cases = asked.map_or(cases, |asked| asked.parse().expect("DURABLE_MCP_TEST_HISTORIES is a whole number"));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

//! The sentences, over every state and the histories that people ask about. The log is told as a script and folded by the
//! rules, so that no row stands here that could not be.

use super::*;
use crate::model::event::Digest;
use crate::model::execution::Identification;
use crate::model::id::{ExecutionId, OperationId, ProcessId};
use crate::model::policy::{DeliverySource, Policy};

const START_MS: i64 = 1_800_000_000_000;

fn ident(delivery: Delivery) -> Identification {
    let id = ExecutionId::new(START_MS, &[1; 10]);
    let (policy, source) = (Policy::default(), DeliverySource::Default);
    Identification {
        upstream: "github".into(),
        tool: "create_issue".into(),
        key: Some("release-1.4".into()),
        principal: "ann".into(),
        arguments_hash: "aa".into(),
        policy: Policy { delivery, delivery_source: source, ..policy },
        ..Identification::sample(id)
    }
}

/// The sentences after these events, each so many milliseconds after the call.
fn told(ident: Identification, script: &[(i64, Event)]) -> Why {
    let mut head = Head::new(ident, START_MS);
    let mut log = Vec::new();
    for (seq, (after_ms, event)) in (1..).zip(script) {
        let at_ms = START_MS + after_ms;
        head.apply(event, at_ms);
        log.push(EventRecord { seq, at_ms, operation: OperationId::new(0, &[0; 10]), event: event.clone() });
    }
    why(&head, &log)
}

fn once(script: &[(i64, Event)]) -> Why {
    told(ident(Delivery::AtMostOnce), script)
}

fn often(script: &[(i64, Event)]) -> Why {
    told(ident(Delivery::AtLeastOnce), script)
}

fn submitted() -> (i64, Event) {
    (0, Event::Submitted { run_at_ms: None, by: None })
}

fn leased(after_ms: i64, worker: &str, n: u32) -> (i64, Event) {
    let process = ProcessId::new(0, &[9; 10]);
    (after_ms, Event::Leased { worker: worker.into(), process, fencing_token: i64::from(n), attempt: n })
}

fn error(code: &str, message: &str) -> ErrorInfo {
    ErrorInfo { code: code.into(), message: message.into() }
}

fn died() -> ErrorInfo {
    error("process_died", "the process that ran the call died")
}

fn bob(reason: &str) -> Order {
    Order { principal: "bob".into(), reason: reason.into() }
}

fn retried(after_ms: i64, error: ErrorInfo, ran: bool, by: Option<Order>) -> (i64, Event) {
    (after_ms, Event::Retried { run_at_ms: START_MS + after_ms + 500, attempt: 1, ran, error, by })
}

fn completed(after_ms: i64, source: ResultSource, by: Option<Order>) -> (i64, Event) {
    let result = Digest::of("{}");
    (after_ms, Event::Completed { fencing_token: None, source, is_error: false, result, by })
}

fn failed(after_ms: i64, error: ErrorInfo, ran: bool, by: Option<Order>) -> (i64, Event) {
    (after_ms, Event::Failed { attempt: 1, ran, error, by })
}

#[track_caller]
fn has(sentence: &str, parts: &[&str]) {
    for part in parts {
        assert!(sentence.contains(part), "“{sentence}” has no “{part}”");
    }
}

#[test]
fn a_call_that_went_well_needs_nothing() {
    let why = once(&[submitted(), leased(12, "host.7", 1), completed(1_240, ResultSource::Result, None)]);
    assert_eq!(
        why.asked,
        "ann called create_issue of github at 2027-01-15T08:00:00.000Z, with the idempotency key “release-1.4”."
    );
    assert_eq!(why.ran, "It was started once: by worker host.7 12 ms after the call.");
    assert_eq!(why.lost, "No attempt was lost.");
    assert_eq!(why.decided, "The tool gave an answer, recorded 1.2 s after the call.");
    has(&why.next, &["Nothing has to be done", "executions result"]);
}

#[test]
fn every_state_has_its_words() {
    let start = || vec![submitted(), leased(0, "w", 1)];
    let with = |event: (i64, Event)| once(&[start(), vec![event]].concat());
    let delayed = Event::Submitted { run_at_ms: Some(START_MS + 90_000), by: None };
    for (why, state, ran, decided, next) in [
        (once(&[submitted()]), "ready", "Nobody has started it", "waits for a free worker", "executions cancel"),
        (once(&[(0, delayed)]), "scheduled", "Nobody", "start 1 min 30 s after the call", "executions wait"),
        (once(&start()), "leased", "It runs now", "a worker works on it", "it becomes unknown"),
        (often(&start()), "leased", "It runs now", "a worker works on it", "run again by itself"),
        (with((5, Event::Held)), "waiting", "its worker stays", "asked the client for input", "executions wait"),
        (with((5, Event::Parked)), "waiting", "no worker is bound", "asked the client for input", "cancel"),
        (with(completed(5, ResultSource::Result, None)), "completed", "once", "gave an answer", "Nothing"),
        (
            with(failed(5, error("rpc_error", "the upstream answered with error -32000."), true, None)),
            "failed",
            "once",
            "not run again: the upstream answered with error -32000 (rpc_error).",
            "Look at the tool",
        ),
        (
            with((5, Event::Cancelled { effect: Effect::Unknown, by: bob("wrong repository") })),
            "cancelled",
            "once",
            "bob (“wrong repository”) cancelled it 5 ms after the call; it had been started, so it may",
            "Look at the tool",
        ),
        (
            with((4_200, Event::Lost { attempt: 1, error: died() })),
            "unknown",
            "once",
            "at most once (nothing says that a repeat is safe), so the call was not run again",
            "resolve",
        ),
    ] {
        assert_eq!(why.state, state);
        has(&why.ran, &[ran]);
        has(&why.decided, &[decided]);
        has(&why.next, &[next]);
        for sentence in [&why.asked, &why.ran, &why.lost, &why.decided, &why.next] {
            assert!(sentence.ends_with('.') && !sentence.contains(".."), "{sentence}");
        }
    }
}

#[test]
fn a_retry_after_a_death_tells_who_was_lost_and_who_took_over() {
    let script = [
        submitted(),
        leased(10, "host-a.1", 1),
        retried(4_210, died(), true, None),
        leased(4_710, "host-b.2", 2),
        completed(5_000, ResultSource::Result, None),
    ];
    let why = often(&script);
    assert_eq!(
        why.ran,
        "It was started twice: by worker host-a.1 10 ms after the call and by worker host-b.2 4.7 s after that."
    );
    assert_eq!(
        why.lost,
        "Attempt 1 was lost 4.2 s after its start: the process that ran the call died (process_died)."
    );
    let back_off = often(&script[..3]);
    assert_eq!(
        back_off.decided,
        "The tool's policy permits another attempt (2 of 3), due 500 ms after the last one ended."
    );
}

#[test]
fn what_was_not_lost_is_not_called_lost() {
    let refused = error("not_started", "connection refused");
    let answered = error("tool_error", "the tool answered with isError");
    let why = often(&[submitted(), leased(0, "w", 1), retried(3, refused, false, None)]);
    assert_eq!(why.lost, "Attempt 1 never reached the tool: connection refused (not_started).");
    let why = often(&[submitted(), leased(0, "w", 1), retried(3, answered, true, None)]);
    has(&why.lost, &["Attempt 1 brought an error 3 ms after its start", "tool_error"]);
    let given_back = [submitted(), leased(0, "w", 1), (9, Event::Released { fencing_token: 1 })];
    assert_eq!(once(&given_back).ran, "Nobody has started it. It was given back unstarted once.");
}

#[test]
fn results_that_came_late_are_told_as_what_they_were() {
    let lost = [submitted(), leased(0, "w", 1), (4_000, Event::Lost { attempt: 1, error: died() })];
    let with = |event: (i64, Event)| once(&[&lost[..], &[event]].concat());
    let late = with(completed(9_000, ResultSource::LateResult, None));
    has(&late.decided, &["came after its lease was gone", "newest attempt", "9 s after the call"]);
    has(&late.lost, &["Attempt 1 was lost 4 s after its start"]);
    let reconciled = with(completed(9_000, ResultSource::Reconcile, None));
    has(&reconciled.decided, &["server of the tool was asked", "said that it took effect"]);
    let resolved = with(completed(9_000, ResultSource::Resolve, Some(bob("saw it in the tracker"))));
    assert_eq!(resolved.decided, "bob (“saw it in the tracker”) decided that it is completed, 9 s after the call.");
    let failed = with(failed(9_000, error("resolved_failed", "resolved as failed"), true, Some(bob("not there"))));
    assert_eq!(failed.decided, "bob (“not there”) decided that it failed, 9 s after the call.");
    let rejected = |reason: &str| Event::Rejected { fencing_token: 1, reason: reason.into(), result: None };
    let stale = often(&[
        submitted(),
        leased(0, "w", 1),
        retried(5, died(), true, None),
        leased(600, "v", 2),
        (700, rejected("stale_token")),
        completed(800, ResultSource::Result, None),
        (900, rejected("ended")),
    ]);
    has(&stale.lost, &["A report of an earlier attempt came too late", "A report came after the end"]);
}

#[test]
fn an_ordered_attempt_names_who_ordered_it() {
    let lost = [
        submitted(),
        leased(0, "w", 1),
        (4_000, Event::Lost { attempt: 1, error: died() }),
        retried(60_000, died(), true, Some(bob("it is not in the tracker"))),
    ];
    has(&once(&lost).decided, &["bob (“it is not in the tracker”) ordered another attempt"]);
    let again = [&lost[..], &[leased(61_000, "w", 2), (62_000, Event::Lost { attempt: 2, error: died() })]].concat();
    has(&once(&again).decided, &["unknown.", "bob (“it is not in the tracker”) had ordered that last attempt."]);
    let mut ident = ident(Delivery::AtMostOnce);
    ident.retry_of = Some(ExecutionId::new(5, &[2; 10]));
    let anew = told(ident, &[(0, Event::Submitted { run_at_ms: None, by: Some(bob("after all")) })]);
    has(&anew.asked, &["bob (“after all”) ordered execution 0000", "a call of create_issue of github by ann, again"]);
}

#[test]
fn what_never_ran_took_no_effect() {
    let timed_out = once(&[submitted(), failed(30_000, error("queue_timeout", "too long"), false, None)]);
    has(&timed_out.decided, &["waited too long in the queue", "30 s after the call, never started"]);
    has(&timed_out.next, &["It took no effect", "executions retry"]);
    let cancelled = once(&[submitted(), (5, Event::Cancelled { effect: Effect::None, by: bob("") })]);
    has(&cancelled.decided, &["bob cancelled it 5 ms after the call; it had not reached the tool"]);
    has(&cancelled.next, &["It took no effect"]);
    let total = error("total_timeout", "the total time for the call ran out");
    has(&once(&[submitted(), failed(3_600_000, total, false, None)]).decided, &["ran out", "1 h 0 min"]);
}

#[test]
fn the_last_permitted_attempt_that_is_lost_ends_it() {
    let mut script = vec![submitted()];
    for n in 1..=3 {
        script.push(leased(i64::from(n) * 1_000, "w", n));
        script.push(match n {
            3 => (3_500, Event::Failed { attempt: 3, ran: true, error: died(), by: None }),
            n => (i64::from(n) * 1_000 + 500, retried_event(n)),
        });
    }
    let why = often(&script);
    has(&why.decided, &["3 of 3 permitted attempts were used, so it failed 3.5 s after the call"]);
    has(&why.lost, &["Attempt 1 was lost 500 ms", "Attempt 2 was lost", "Attempt 3 was lost"]);
    has(&why.next, &["Look at the tool"]);
}

fn retried_event(attempt: u32) -> Event {
    Event::Retried { run_at_ms: START_MS, attempt, ran: true, error: died(), by: None }
}

#[test]
fn many_attempts_are_counted() {
    let mut script = vec![submitted()];
    for n in 1..=9 {
        script.push(leased(i64::from(n) * 1_000, &format!("w{n}"), n));
        script.push((i64::from(n) * 1_000 + 500, retried_event(n)));
    }
    let why = often(&script);
    has(&why.ran, &["It was started 9 times: by worker w1", "5 more and last by worker w9 1 s after that."]);
    has(&why.lost, &["Attempt 1 was lost", "Then 7 more were lost or repeated.", "Attempt 9 was lost"]);
    assert!(!why.ran.contains("w5"), "{}", why.ran);
}

#[test]
fn conflicts_are_told_with_what_was_asked() {
    let conflicted = |after_ms| (after_ms, Event::Conflicted { arguments_hash: "bb".into(), foreign: false });
    let one = once(&[submitted(), conflicted(5)]);
    has(&one.asked, &["Another call came under the same key", "nothing was run for it."]);
    let two = once(&[submitted(), conflicted(5), conflicted(6)]);
    has(&two.asked, &["2 other calls came under the same key", "nothing was run for them."]);
    let mut keyless = ident(Delivery::AtMostOnce);
    keyless.key = None;
    has(&told(keyless, &[submitted()]).asked, &["without an idempotency key."]);
}

#[test]
fn an_input_round_is_no_second_start() {
    let script = [
        submitted(),
        leased(0, "w", 1),
        (5, Event::Parked),
        (60_000, Event::Resumed),
        (
            60_001,
            Event::Leased { worker: "v".into(), process: ProcessId::new(0, &[9; 10]), fencing_token: 2, attempt: 1 },
        ),
    ];
    assert_eq!(once(&script).ran, "It was started once: by worker w 0 ms after the call. It runs now.");
    let back = [&script[..], &[(60_002, Event::Released { fencing_token: 2 })]].concat();
    assert_eq!(
        once(&back).ran,
        "It was started once: by worker w 0 ms after the call. It was given back unstarted once."
    );
}

#[test]
fn times_are_told_as_people_tell_them() {
    for (ms, text) in [
        (-5, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (4_210, "4.2 s"),
        (59_999, "59.9 s"),
        (185_000, "3 min 5 s"),
        (7_380_000, "2 h 3 min"),
        (180_000_000, "2 d 2 h"),
    ] {
        assert_eq!(span(ms), text);
    }
}

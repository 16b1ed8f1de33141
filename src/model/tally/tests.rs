//! The numbers: each event in its minute, losses once, quantiles no further off than said.

use super::*;
use crate::model::event::{Digest, Order};
use crate::model::execution::{Effect, ErrorInfo};
use crate::model::id::{OperationId, ProcessId};

const T0: i64 = 1_800_000_000_000;

fn log(events: Vec<(i64, Event)>) -> Vec<EventRecord> {
    let operation = OperationId::new(T0, &Default::default());
    let record = |(seq, (at_ms, event)): (usize, (i64, Event))| EventRecord {
        seq: seq as i64 + 1,
        at_ms: T0 + at_ms,
        operation,
        event,
    };
    events.into_iter().enumerate().map(record).collect()
}

fn submitted() -> Event {
    Event::Submitted { run_at_ms: None, by: None }
}

fn leased(fencing_token: i64, attempt: u32) -> Event {
    let process = ProcessId::new(T0, &Default::default());
    Event::Leased { worker: "w".into(), process, fencing_token, attempt }
}

fn completed(source: ResultSource) -> Event {
    Event::Completed { fencing_token: None, source, is_error: false, result: Digest::of("1"), by: None }
}

fn error(code: &str) -> ErrorInfo {
    ErrorInfo { code: code.into(), message: "x".into() }
}

fn retried(attempt: u32, code: &str, by: Option<Order>) -> Event {
    Event::Retried { run_at_ms: T0, attempt, ran: true, error: error(code), by }
}

fn order() -> Order {
    Order { principal: "op".into(), reason: "r".into() }
}

fn counted(events: Vec<(i64, Event)>) -> BTreeMap<i64, Tally> {
    let mut minutes = BTreeMap::new();
    count(&log(events), i64::MIN, i64::MAX, &mut minutes);
    minutes.into_iter().map(|(minute_ms, tally)| (minute_ms - T0, tally)).collect()
}

fn sum(events: Vec<(i64, Event)>) -> Tally {
    counted(events).values().fold(Tally::default(), |mut sum, tally| {
        sum.add(tally);
        sum
    })
}

#[test]
fn each_event_counts_in_its_own_minute_and_only_within_the_span() {
    let events = vec![(0, submitted()), (10, leased(1, 1)), (60_000, completed(ResultSource::Result))];
    let minutes = counted(events.clone());
    assert_eq!(minutes[&0], Tally { submitted: 1, attempts: 1, ..Tally::default() });
    assert_eq!((minutes[&60_000].completed, minutes[&60_000].latency.count()), (1, 1));
    let mut later = BTreeMap::new();
    count(&log(events), T0 + 10, T0 + 60_000, &mut later);
    assert_eq!(later, BTreeMap::from([(T0, Tally { attempts: 1, ..Tally::default() })]));
}

#[test]
fn an_attempt_that_was_lost_and_run_again_is_one_loss_and_one_recovery() {
    let tally = sum(vec![
        (0, submitted()),
        (1, leased(1, 1)),
        (2, retried(1, "process_died", None)),
        (3, leased(2, 2)),
        (4, completed(ResultSource::Result)),
    ]);
    let told = (tally.attempts, tally.lost, tally.retried, tally.recovered, tally.completed, tally.unknown);
    assert_eq!(told, (2, 1, 1, 1, 1, 0));
}

#[test]
fn an_unknown_that_is_ordered_again_was_lost_once() {
    let lost = Event::Lost { attempt: 1, error: error("process_died") };
    let again = retried(1, "process_died", Some(order()));
    let tally = sum(vec![(0, submitted()), (1, leased(1, 1)), (2, lost), (3, again), (4, leased(2, 2))]);
    assert_eq!((tally.attempts, tally.lost, tally.unknown, tally.retried), (2, 1, 1, 1));
}

#[test]
fn the_last_attempt_of_a_failed_call_may_have_been_lost_too() {
    let failed = |code: &str, by| Event::Failed { attempt: 2, ran: true, error: error(code), by };
    let before =
        || vec![(0, submitted()), (1, leased(1, 1)), (2, retried(1, "lease_expired", None)), (3, leased(2, 2))];
    let with = |event| sum([before(), vec![(4, event)]].concat());
    assert_eq!(with(failed("lease_expired", None)).lost, 2);
    assert_eq!(with(failed("tool_error", None)).lost, 1);
    assert_eq!(with(failed("lease_expired", Some(order()))).lost, 1);
}

#[test]
fn a_lease_given_back_unstarted_and_one_after_an_input_round_are_no_attempts() {
    let released = Event::Released { fencing_token: 1 };
    let tally = sum(vec![
        (0, submitted()),
        (1, leased(1, 1)),
        (2, released),
        (3, leased(2, 1)),
        (4, Event::Parked),
        (5, Event::Resumed),
        (6, leased(3, 1)),
        (7, completed(ResultSource::Result)),
    ]);
    assert_eq!((tally.attempts, tally.lost, tally.completed), (1, 0, 1));
}

#[test]
fn what_a_person_decided_has_no_latency_and_notes_are_counted() {
    let rejected = Event::Rejected { fencing_token: 1, reason: "stale_token".into(), result: None };
    let conflicted = Event::Conflicted { arguments_hash: "x".into(), foreign: false };
    let cancelled = Event::Cancelled { effect: Effect::None, by: order() };
    let tally = sum(vec![(0, submitted()), (1, completed(ResultSource::Resolve)), (2, rejected), (3, conflicted)]);
    assert_eq!((tally.completed, tally.latency.count(), tally.rejected, tally.conflicted), (1, 0, 1, 1));
    assert_eq!(sum(vec![(0, submitted()), (1, cancelled)]).cancelled, 1);
}

#[test]
fn a_delayed_call_counts_from_the_time_it_was_delayed_to() {
    let delayed = Event::Submitted { run_at_ms: Some(T0 + 5_000), by: None };
    let tally = sum(vec![(0, delayed), (5_001, leased(1, 1)), (5_010, completed(ResultSource::Result))]);
    assert_eq!(tally.latency.quantile(50), Some(10));
}

#[test]
fn a_quantile_is_never_further_off_than_said() {
    let mut numbers: Vec<u64> = (0..2_000).map(|n| n * n * 7 % 90_000).collect();
    let mut histogram = Histogram::default();
    numbers.iter().for_each(|number| histogram.record(*number));
    numbers.sort_unstable();
    for percent in [1, 50, 95, 99, 100] {
        let exact = numbers[(numbers.len() * percent as usize).div_ceil(100) - 1] as f64;
        let told = histogram.quantile(percent).unwrap() as f64;
        assert!((told - exact).abs() <= exact * 0.032 + 0.5, "{percent}: {told} for {exact}");
    }
    assert_eq!(Histogram::default().quantile(50), None);
}

#[test]
fn buckets_follow_each_other_without_gaps_up_to_the_largest_number() {
    let mut before = 0;
    for number in (0..5_000).chain((13..64).map(|bits| 1 << bits)).chain([u64::MAX]) {
        let bucket = bucket(number);
        assert!(bucket >= before && (number >= 5_000 || bucket - before <= 1), "{number}");
        before = bucket;
        let middle = middle(bucket);
        assert!(middle.abs_diff(number) as f64 <= number as f64 * 0.0625, "{number} is told as {middle}");
    }
    assert_eq!(before, 975);
    assert!(middle(u16::MAX) > 0);
}

#[test]
fn a_tally_is_written_short_and_read_again() {
    let mut tally = Tally { completed: 2, ..Tally::default() };
    [7, 7, 50].into_iter().for_each(|number| tally.latency.record(number));
    let text = serde_json::to_string(&tally).unwrap();
    assert_eq!(text, r#"{"completed":2,"latency":"7:2 41:1"}"#);
    assert_eq!(serde_json::from_str::<Tally>(&text).unwrap(), tally);
    assert_eq!(serde_json::from_str::<Tally>("{}").unwrap(), Tally::default());
    for damaged in ["7", "7:", "7:2,9:1", "x:1", "70000:1", "7:-1"] {
        assert!(serde_json::from_str::<Tally>(&format!(r#"{{"latency":"{damaged}"}}"#)).is_err(), "{damaged}");
    }
}

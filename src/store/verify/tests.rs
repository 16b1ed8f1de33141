//! Each rule bites: a sound history passes, and each way in which one can be wrong is found by its rule.

use super::{Audit, Finding, Rule};
use crate::model::event::Order;
use crate::model::event::{Digest, Event, EventRecord};
use crate::model::execution::{Effect, ErrorInfo, Head, Identification, ResultSource, State};
use crate::model::id::{Entropy, ExecutionId, OperationId, ProcessId};

const AT_MS: i64 = 1_800_000_000_000;

fn ident() -> Identification {
    let id = ExecutionId::new(AT_MS, &Entropy::default());
    Identification {
        upstream: "files".into(),
        tool: "write".into(),
        caller: "editor".into(),
        ..Identification::sample(id)
    }
}

fn leased(attempt: u32) -> Event {
    let process = ProcessId::new(AT_MS, &Entropy::default());
    Event::Leased { worker: "w".into(), process, fencing_token: i64::from(attempt), attempt }
}

fn completed() -> Event {
    let result = Digest::of("1");
    Event::Completed { fencing_token: Some(1), source: ResultSource::Result, is_error: false, result, by: None }
}

fn retried(attempt: u32, ran: bool, by: Option<Order>) -> Event {
    let error = ErrorInfo { code: "child_died".into(), message: "gone".into() };
    Event::Retried { run_at_ms: AT_MS, attempt, ran, error, by }
}

fn order() -> Order {
    Order { principal: "ada".into(), reason: "I looked".into() }
}

/// A history and the row that it makes.
fn history(events: &[Event]) -> (Head, Vec<EventRecord>) {
    let operation = OperationId::new(AT_MS, &Entropy::default());
    let mut head = Head::new(ident(), AT_MS);
    let mut records = Vec::new();
    for (seq, event) in (1..).zip(events) {
        head.apply(event, AT_MS + seq);
        records.push(EventRecord { seq, at_ms: AT_MS + seq, operation, event: event.clone() });
    }
    (head, records)
}

fn audit(head: &Head, records: &[EventRecord]) -> Vec<Finding> {
    let mut audit = Audit::of(head);
    records.iter().for_each(|record| audit.event(record));
    audit.end()
}

#[track_caller]
fn finds(head: &Head, records: &[EventRecord], expected: &[Rule]) {
    let found = audit(head, records);
    let rules: Vec<Rule> = found.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, expected, "{found:?}");
    assert!(found.iter().all(|finding| finding.execution == Some(head.id().to_string())));
}

fn submitted() -> Event {
    Event::Submitted { run_at_ms: None, by: None }
}

#[test]
fn sound_histories_pass() {
    let rejected = Event::Rejected { fencing_token: 1, reason: "ended".into(), result: None };
    let cancelled = Event::Cancelled { effect: Effect::None, by: order() };
    for events in [
        vec![submitted()],
        vec![submitted(), leased(1)],
        vec![submitted(), leased(1), completed(), rejected],
        vec![submitted(), cancelled],
        vec![submitted(), leased(1), retried(1, false, None), leased(1), completed()],
        vec![submitted(), leased(1), Event::Released { fencing_token: 1 }, leased(1), completed()],
        vec![submitted(), leased(1), retried(1, true, Some(order())), leased(2), completed()],
    ] {
        let (mut head, records) = history(&events);
        // What no event tells may be anything.
        (head.version, head.delivered_at_ms, head.handle_given) = (9, Some(1), true);
        if let Some(lease) = &mut head.lease {
            lease.expires_at_ms += 30_000;
        }
        finds(&head, &records, &[]);
    }
}

#[test]
fn a_gap_in_the_events_is_found() {
    let (head, mut records) = history(&[submitted(), leased(1), completed()]);
    records.remove(1);
    finds(&head, &records, &[Rule::Gapless, Rule::Fold]);
    let (head, mut records) = history(&[submitted(), leased(1)]);
    records.pop();
    finds(&head, &records, &[Rule::Gapless, Rule::Fold]);
    finds(&head, &[], &[Rule::Gapless, Rule::Fold]);
}

#[test]
fn a_row_that_is_not_the_fold_is_found_by_the_name_of_the_member() {
    type Change = (&'static str, fn(&mut Head));
    let changes: [Change; 6] = [
        ("attempt", |head| head.attempt = 7),
        ("fencing_token", |head| head.fencing_token = 7),
        ("is_error", |head| head.is_error = true),
        ("ended_at", |head| head.ended_at_ms = None),
        ("notes", |head| head.notes = 7),
        ("effect_possible", |head| head.effect_possible = true),
    ];
    for (name, change) in changes {
        let (mut head, records) = history(&[submitted(), leased(1), completed()]);
        change(&mut head);
        finds(&head, &records, &[Rule::Fold]);
        assert!(audit(&head, &records)[0].what.ends_with(&format!(": {name}")), "{name}");
    }
}

#[test]
fn two_ends_and_none_are_found() {
    let (head, records) = history(&[submitted(), leased(1), completed(), completed()]);
    finds(&head, &records, &[Rule::Final, Rule::Final]);
    let (mut head, records) = history(&[submitted(), leased(1)]);
    head.state = State::Completed;
    finds(&head, &records, &[Rule::Fold, Rule::Final]);
}

#[test]
fn an_attempt_too_many_is_found() {
    let (head, records) = history(&[submitted(), leased(1), retried(1, true, None), leased(2)]);
    finds(&head, &records, &[Rule::Attempts]);
}

#[test]
fn a_history_begins_with_its_submission() {
    let (head, records) = history(&[leased(1), completed()]);
    finds(&head, &records, &[Rule::Fold, Rule::Fold]);
    let (head, records) = history(&[submitted(), submitted()]);
    finds(&head, &records, &[Rule::Fold]);
}

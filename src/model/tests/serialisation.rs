//! What is stored and shown: events and their wire names, ids, states, scopes.

use std::collections::BTreeSet;

use super::*;
use crate::model::execution::{Effect, ResultSource};
use crate::model::id::OperationId;
use crate::model::principal::{Principal, Scope, Scopes};

/// At least one of each event, with every optional member there and missing.
fn events() -> Vec<Event> {
    let error = || ErrorInfo { code: "child_died".into(), message: "the child died".into() };
    vec![
        Event::Submitted { run_at_ms: None, by: None },
        Event::Submitted { run_at_ms: Some(START_MS), by: None },
        Event::Promoted,
        Event::Leased { worker: "w".into(), process: process_id(1), fencing_token: 1, attempt: 1 },
        Event::Released { fencing_token: 1 },
        Event::Held,
        Event::Parked,
        Event::Resumed,
        Event::Retried { run_at_ms: START_MS, attempt: 1, ran: true, error: error(), by: None },
        Event::Retried { run_at_ms: START_MS, attempt: 1, ran: false, error: error(), by: Some(order()) },
        Event::Lost { attempt: 1, error: error() },
        Event::Completed {
            fencing_token: Some(1),
            source: ResultSource::LateResult,
            is_error: true,
            result: result("{}"),
            by: None,
        },
        Event::Completed {
            fencing_token: None,
            source: ResultSource::Resolve,
            is_error: false,
            result: result("{}"),
            by: Some(order()),
        },
        Event::Failed { attempt: 1, ran: true, error: error(), by: None },
        Event::Failed { attempt: 1, ran: true, error: error(), by: Some(order()) },
        Event::Cancelled { effect: Effect::Unknown, by: order() },
        Event::Rejected { fencing_token: 1, reason: "stale_token".into(), result: None },
        Event::Rejected { fencing_token: 1, reason: "ended".into(), result: Some(result("{}")) },
        Event::Conflicted { arguments_hash: "a".repeat(64), foreign: true },
    ]
}

#[test]
fn every_event_reads_back_as_it_was_written_under_its_wire_name() {
    for event in events() {
        let text = serde_json::to_string(&event).unwrap();
        assert!(text.starts_with(&format!("{{\"type\":\"{}\"", event.name())), "{text}");
        assert!(!text.contains("null"), "an absent member is left out: {text}");
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }
}

#[test]
fn the_list_of_wire_names_is_complete_and_in_order() {
    let mut names: Vec<&str> = events().iter().map(Event::name).collect();
    names.dedup();
    assert_eq!(names, Event::NAMES);
    let in_table: BTreeSet<&str> =
        transitions::TRANSITIONS.iter().map(|(_, event, _)| *event).chain(transitions::NOTES.iter().copied()).collect();
    assert_eq!(in_table, BTreeSet::from(Event::NAMES), "each event has its place in the table of transitions");
}

#[test]
fn a_stored_event_keeps_its_form() {
    let text = r#"{"type":"leased","worker":"w","process":"018bcfe5-6800-7a0a-8a0a-0a0a0a0a0a0a","fencing_token":3,"attempt":2}"#;
    let event: Event = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&event).unwrap(), text);
    assert!(serde_json::from_str::<Event>(r#"{"type":"vanished"}"#).is_err());
}

#[test]
fn states_deliveries_and_scopes_read_back_by_name() {
    for state in State::ALL {
        assert_eq!(State::parse(state.as_str()), Some(state));
        assert_eq!(wire(&state), state.as_str());
    }
    assert_eq!(State::parse("Ready"), None);
    for delivery in [Delivery::AtLeastOnce, Delivery::AtMostOnce] {
        assert_eq!(Delivery::parse(delivery.as_str()), Some(delivery));
        assert_eq!(wire(&delivery), delivery.as_str());
    }
    for scope in Scope::ALL {
        assert_eq!(Scope::parse(scope.as_str()), Some(scope));
        assert_eq!(wire(&scope), scope.as_str());
    }
}

#[test]
fn a_policy_reads_back_as_it_was_promised() {
    for text in ["at_most_once", "at_least_once tool_error rpc_error max=7 total=5"] {
        let policy = policy(text);
        let stored = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&stored).unwrap(), policy);
    }
}

#[test]
fn an_id_is_a_uuid_of_version_7_that_reads_back() {
    let id = OperationId::new(START_MS, &[0xff; 10]);
    assert_eq!(id.as_uuid().get_version_num(), 7);
    assert_eq!(id.to_string().parse::<OperationId>().unwrap(), id);
    assert!(ExecutionId::new(START_MS + 1, &[0; 10]) > ExecutionId::new(START_MS, &[0xff; 10]), "ids sort by time");
    assert!("not an id".parse::<ExecutionId>().is_err());
    assert!(ExecutionId::new(-1, &[0; 10]) < ExecutionId::new(1, &[0; 10]), "a clock before 1970 still gives an id");
}

#[test]
fn scopes_permit_what_they_name_and_admin_permits_everything() {
    let some = Scopes::of(&[Scope::Call, Scope::Work]);
    let permitted: Vec<Scope> = Scope::ALL.into_iter().filter(|scope| some.permits(*scope)).collect();
    assert_eq!(permitted, [Scope::Call, Scope::Work]);
    assert_eq!(some.iter().collect::<Vec<_>>(), permitted);
    assert!(Scope::ALL.into_iter().all(|scope| Scopes::of(&[Scope::Admin]).permits(scope)));
    assert!(!Scope::ALL.into_iter().any(|scope| Scopes::default().permits(scope)));
    let anonymous = Principal::anonymous();
    assert!(anonymous.is_anonymous() && !anonymous.scopes.permits(Scope::Operate));
}

//! Examples for keys: a new call, a join, a conflict, the life of a key, an ordered retry.

use super::*;
use crate::model::submit::{self, Found, IfWaited, Submission, Submitted};

const KEY_TTL_MS: i64 = 86_400_000;

fn keyed() -> Submission {
    let mut ident = ident(policy("at_most_once"));
    ident.id = execution_id(2);
    ident.key = Some("order-17".into());
    Submission {
        ident,
        identity: Default::default(),
        run_at_ms: None,
        by: None,
        lease: None,
        waiter: Some(process_id(1)),
        if_waited: IfWaited::Tell,
    }
}

/// The execution that holds the key, after `script`.
fn holder(script: &str) -> Story {
    let mut ident = keyed().ident;
    ident.id = execution_id(1);
    let mut story = Story::submitted(ident, None);
    for text in script.split(", ").filter(|text| !text.is_empty()) {
        story.step(text);
    }
    story
}

/// What a submission becomes at `now_ms`, in a word.
fn outcome(submission: &Submission, holder: Option<&Head>, now_ms: i64) -> &'static str {
    let found = Found { holder, twins: &[] };
    match submit::submit(submission, found, now_ms, &Limits { notes_max: 4 }) {
        Submitted::New { .. } => "new",
        Submitted::Joined => "joined",
        Submitted::Attached(_) => "attached",
        Submitted::Waited(_) => "waited",
        Submitted::Conflict { foreign: false, .. } => "conflict",
        Submitted::Conflict { foreign: true, .. } => "foreign conflict",
    }
}

#[test]
fn a_call_nobody_made_before_is_new() {
    let expect =
        Submitted::New { events: vec![Event::Submitted { run_at_ms: None, by: None }], lease_expires_at_ms: None };
    assert_eq!(submit::submit(&keyed(), Found::default(), START_MS, &Limits::default()), expect);
}

#[test]
fn a_free_worker_of_the_same_process_takes_it_with_the_same_write() {
    let submission = Submission { lease: Some(lease_request()), ..keyed() };
    let leased = Event::Leased { worker: "w".into(), process: process_id(1), fencing_token: 1, attempt: 1 };
    let expect = Submitted::New {
        events: vec![Event::Submitted { run_at_ms: None, by: None }, leased],
        lease_expires_at_ms: Some(START_MS + LEASE_TTL_MS),
    };
    assert_eq!(submit::submit(&submission, Found::default(), START_MS, &Limits::default()), expect);
}

#[test]
fn a_delayed_call_is_scheduled_and_not_leased_before_its_time() {
    let start = |run_at_ms| {
        let submission = Submission { lease: Some(lease_request()), run_at_ms: Some(run_at_ms), ..keyed() };
        match submit::start(&submission, START_MS, &Limits::default()) {
            Submitted::New { events, .. } => events.iter().map(Event::name).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(start(START_MS + 1), ["submitted"]);
    assert_eq!(start(START_MS), ["submitted", "leased"]);
}

#[test]
fn the_same_key_and_arguments_join_wherever_the_execution_stands() {
    for script in
        ["", "lease", "lease, hold", "lease, park", "lease, result", "lease, lose", "lease, rpc error", "cancel"]
    {
        assert_eq!(outcome(&keyed(), Some(&holder(script).head), START_MS), "joined", "{script}");
    }
}

#[test]
fn the_same_key_with_other_arguments_is_a_conflict_and_noted() {
    let mut other = keyed();
    other.ident.arguments_hash = "b".repeat(64);
    for script in ["", "lease", "lease, result", "lease, lose"] {
        let story = holder(script);
        let note = Event::Conflicted { arguments_hash: "b".repeat(64), foreign: false };
        let expect = Submitted::Conflict { foreign: false, note: Some(note) };
        let found = Found { holder: Some(&story.head), twins: &[] };
        assert_eq!(submit::submit(&other, found, START_MS, &story.limits), expect, "{script}");
    }
    let mut full = holder("lease").head;
    full.notes = 4;
    let found = Found { holder: Some(&full), twins: &[] };
    let expect = Submitted::Conflict { foreign: false, note: None };
    assert_eq!(submit::submit(&other, found, START_MS, &Limits { notes_max: 4 }), expect);
}

#[test]
fn a_key_held_by_another_principal_is_a_foreign_conflict_even_with_equal_arguments() {
    let mut foreign = keyed();
    foreign.ident.principal = "eve".into();
    assert_eq!(outcome(&foreign, Some(&holder("lease").head), START_MS), "foreign conflict");
    foreign.ident.arguments_hash = "b".repeat(64);
    assert_eq!(outcome(&foreign, Some(&holder("lease, result").head), START_MS), "foreign conflict");
}

#[test]
fn a_key_lives_until_its_time_after_the_end() {
    for script in ["lease, result", "lease, rpc error", "cancel"] {
        let ended = holder(script).head;
        assert_eq!(outcome(&keyed(), Some(&ended), START_MS + KEY_TTL_MS - 1), "joined", "{script}");
        assert_eq!(outcome(&keyed(), Some(&ended), START_MS + KEY_TTL_MS), "new", "{script}");
    }
}

#[test]
fn a_key_never_expires_before_the_end_nor_while_the_outcome_is_unknown() {
    for script in ["", "lease", "lease, hold", "lease, park", "lease, not started", "lease, lose"] {
        assert_eq!(outcome(&keyed(), Some(&holder(script).head), START_MS + 1_000 * KEY_TTL_MS), "joined", "{script}");
    }
}

#[test]
fn an_ordered_retry_takes_the_key_over_from_the_ended_execution_it_repeats() {
    let mut retry = keyed();
    retry.ident.retry_of = Some(execution_id(1));
    assert_eq!(outcome(&retry, Some(&holder("lease, rpc error").head), START_MS), "new");
    assert_eq!(outcome(&retry, Some(&holder("cancel").head), START_MS), "new");
    assert_eq!(outcome(&retry, Some(&holder("lease").head), START_MS), "joined");
    assert_eq!(outcome(&retry, Some(&holder("lease, lose").head), START_MS), "joined");
    retry.ident.retry_of = Some(execution_id(9));
    assert_eq!(outcome(&retry, Some(&holder("lease, rpc error").head), START_MS), "joined", "a retry came first");
}

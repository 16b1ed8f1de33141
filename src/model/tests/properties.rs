//! Random histories: whatever comes in whatever order, the invariants of docs/guarantees.md hold after each command.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::model::execution::Effect;

const POLICIES: [&str; 8] = [
    "at_most_once",
    "at_most_once max=1",
    "at_most_once tool_error rpc_error total=60000",
    "at_least_once",
    "at_least_once max=1",
    "at_least_once tool_error max=2",
    "at_least_once rpc_error tool_error",
    "at_least_once total=60000",
];

/// Commands that carry a token.
const OF_A_WORKER: [&str; 13] = [
    "heartbeat",
    "result",
    "error result",
    "lose",
    "not started",
    "rpc error",
    "report",
    "report retryable",
    "release",
    "hold",
    "park",
    "expire",
    "die",
];

/// Steps, with the weights that let histories get somewhere.
const STEPS: [(u32, &str); 30] = [
    (30, "lease"),
    (6, "result"),
    (6, "error result"),
    (6, "lose"),
    (4, "not started"),
    (3, "rpc error"),
    (2, "report"),
    (3, "report retryable"),
    (4, "heartbeat"),
    (5, "release"),
    (8, "hold"),
    (8, "park"),
    (16, "resume"),
    (8, "expire"),
    (8, "die"),
    (6, "time out"),
    (8, "promote"),
    (3, "cancel"),
    (5, "retry"),
    (2, "resolve"),
    (2, "resolve failed"),
    (2, "reconcile"),
    (4, "reconcile nothing"),
    (4, "wait 0"),
    (4, "wait 1"),
    (4, "wait 499"),
    (4, "wait 500"),
    (4, "wait 1000"),
    (4, "wait 30000"),
    (4, "wait 61000"),
];

/// The step that a number stands for; some commands come under a token that is not the newest.
fn step(number: u32) -> String {
    let total: u32 = STEPS.iter().map(|(weight, _)| weight).sum();
    let mut rest = number % total;
    let name = STEPS.iter().find_map(|(weight, name)| {
        let found = rest < *weight;
        rest = rest.saturating_sub(*weight);
        found.then_some(*name)
    });
    let name = name.expect("the rest is below the sum of the weights");
    match (OF_A_WORKER.contains(&name), number / total % 14) {
        (true, 0) => format!("{name}@old"),
        (true, 1) => format!("{name}@future"),
        _ => name.into(),
    }
}

#[derive(Clone, Debug)]
struct History {
    policy: &'static str,
    delay_ms: Option<i64>,
    start_by_ms: Option<i64>,
    steps: Vec<String>,
}

fn history() -> impl Strategy<Value = History> {
    let times = (proptest::option::weighted(0.2, 1i64..2_000), proptest::option::weighted(0.1, 1i64..2_000));
    (proptest::sample::select(&POLICIES[..]), times, proptest::collection::vec(any::<u32>(), 1..60)).prop_map(
        |(policy, (delay_ms, start_by_ms), numbers)| History {
            policy,
            delay_ms,
            start_by_ms,
            steps: numbers.into_iter().map(step).collect(),
        },
    )
}

/// Runs the history; after each step every invariant holds. Gives the rows of the transition table that it used.
fn run(history: &History) -> BTreeSet<(Option<State>, &'static str, State)> {
    let mut ident = ident(policy(history.policy));
    ident.start_by_ms = history.start_by_ms.map(|after_ms| START_MS + after_ms);
    let mut story = Story::submitted(ident, history.delay_ms.map(|after_ms| START_MS + after_ms));
    let mut used = BTreeSet::from([(None, "submitted", story.head.state)]);
    for text in &history.steps {
        let before = story.clone();
        story.step(text);
        still_holds(&before, &story, text);
        let mut state = before.head.state;
        let mut head = before.head.clone();
        for (at_ms, event) in &story.log[before.log.len()..] {
            head.apply(event, *at_ms);
            used.insert((Some(state), event.name(), head.state));
            state = head.state;
        }
    }
    used
}

fn still_holds(before: &Story, after: &Story, text: &str) {
    let (old, new) = (&before.head, &after.head);
    let fresh: Vec<&Event> = after.log[before.log.len()..].iter().map(|(_, event)| event).collect();
    let only_notes = fresh.iter().all(|event| transitions::NOTES.contains(&event.name()));

    assert_eq!(new.next_seq, after.log.len() as i64 + 1, "events are numbered without gaps");
    let finals = after.log.iter().filter(|(_, event)| event.is_final()).count();
    assert_eq!(finals, usize::from(new.state.is_ended()), "an ended execution has one final event, others none");
    assert!(new.notes <= after.limits.notes_max);
    if fresh.is_empty() || only_notes {
        assert_eq!(substance(old), substance(new), "without an event nothing changes");
    }
    if old.state.is_ended() {
        assert!(only_notes, "ended is ended, but {text} gave {fresh:?}");
    }
    let (name, token) = text.split_once('@').unwrap_or((text, ""));
    if !token.is_empty() && OF_A_WORKER.contains(&name) {
        assert!(only_notes, "only the newest token changes anything, but {text} gave {fresh:?}");
        assert_eq!(old.lease, new.lease, "only the newest token keeps its lease alive");
    }
    for event in &fresh {
        if let Event::Leased { fencing_token, .. } = event {
            assert_eq!(*fencing_token, old.fencing_token + 1, "each lease has a new token");
            assert!(old.lease.is_none(), "never two leases at once");
        }
    }
    assert!(new.fencing_token >= old.fencing_token);
    assert!(new.attempt <= new.attempts_allowed, "attempt {} of {}", new.attempt, new.attempts_allowed);
    assert_eq!(new.lease.is_some(), new.state == State::Leased || new.state == State::Waiting && holds_on(after));
    assert_eq!(new.ended_at_ms.is_some(), new.state.is_settled());
    if new.state == State::Unknown {
        assert_eq!(new.ident.policy.delivery, Delivery::AtMostOnce);
    }
    if new.state == State::Cancelled && starts(after) > 0 {
        assert_eq!(new.effect, Some(Effect::Unknown), "a started call may have had its effect");
    }
    let orders = after.log.iter().filter(|(_, event)| matches!(event, Event::Retried { by: Some(_), .. })).count();
    if new.ident.policy.delivery == Delivery::AtMostOnce {
        assert!(starts(after) <= 1 + orders, "at most once, unless ordered: {}", after.event_names());
    } else {
        assert_eq!(orders, 0);
        assert!(starts(after) <= new.ident.policy.retry.max_attempts as usize);
    }
    if !fresh.is_empty() {
        assert_eq!(comparable(new), comparable(&after.folded()), "the row is the fold of its events");
    }
}

/// What has to stay when nothing happened: all but the notes and their time.
fn substance(head: &Head) -> Head {
    Head { notes: 0, next_seq: 0, updated_at_ms: 0, ..comparable(head) }
}

/// The row apart from what is not part of the fold.
fn comparable(head: &Head) -> Head {
    let lease = head.lease.clone().map(|lease| crate::model::execution::Lease { expires_at_ms: 0, ..lease });
    Head { lease, version: 0, waiter: None, delivered_at_ms: None, handle_given: false, ..head.clone() }
}

/// True when the newest wait is one that keeps its lease.
fn holds_on(story: &Story) -> bool {
    let wait = story.log.iter().rev().map(|(_, event)| event);
    matches!(wait.into_iter().find(|event| matches!(event, Event::Held | Event::Parked)), Some(Event::Held))
}

/// How many times the tool may have been started: attempts leased and not given back unstarted. A lease that goes on
/// with an attempt after an input round starts nothing.
fn starts(story: &Story) -> usize {
    let mut started = 0;
    let mut open_is_start = false;
    let mut parked = false;
    for (_, event) in &story.log {
        match event {
            Event::Leased { .. } => {
                open_is_start = !parked;
                started += usize::from(open_is_start);
            }
            Event::Parked => parked = true,
            Event::Released { .. } => started -= usize::from(open_is_start),
            Event::Retried { ran, by: None, .. } => {
                started -= usize::from(!ran && open_is_start);
                parked = false;
            }
            Event::Retried { by: Some(_), .. } => parked = false,
            _ => {}
        }
    }
    started
}

#[test]
fn every_history_keeps_the_invariants() {
    holds(10_000, history(), |history| {
        run(&history);
    });
}

#[test]
fn every_row_of_the_transition_table_is_reached() {
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let mut used = BTreeSet::new();
    for _ in 0..1_500 {
        used.extend(run(&history().new_tree(&mut runner).unwrap().current()));
    }
    let missing: Vec<_> = transitions::TRANSITIONS.iter().filter(|row| !used.contains(*row)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
}

#[test]
fn the_same_row_command_and_time_give_the_same_decision() {
    holds(300, (history(), any::<u32>()), |(history, number)| {
        let text = step(number);
        let mut story = Story::new(policy(history.policy));
        for step in &history.steps {
            story.step(step);
        }
        if !text.starts_with("wait") {
            let command = story.command(&text);
            let decide = || decide::decide(&story.head, &command, story.now_ms, &story.limits);
            assert_eq!(decide(), decide());
        }
    });
}

#[test]
fn whatever_happened_an_execution_settles_once_faults_stop() {
    holds(1_000, history(), |history| {
        let mut story = Story::new(policy(history.policy));
        for step in &history.steps {
            story.step(step);
        }
        for _ in 0..20 {
            for step in ["resume", "wait 31000", "lease", "result", "time out"] {
                story.step(step);
            }
        }
        assert!(story.head.state.is_settled(), "{:?} after {}", story.head.state, story.event_names());
    });
}

//! The judge and the verdict, with faults planted: a demo that can not fail proves nothing.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::judge::{Runs, compare};
use super::load::{Answered, ONCE, REPEATABLE};
use super::story::{Counts, Story};
use crate::cli::failure::Exit;
use crate::cli::output::Output;
use crate::model::execution::{Head, Identification, State};
use crate::model::id::ExecutionId;

type Written = Arc<Mutex<Vec<u8>>>;

fn story() -> (Story, Written) {
    let (out, written) = Output::in_memory(false);
    (Story::begin("crash", out, true), written)
}

fn report(written: &Written) -> Value {
    serde_json::from_slice(&written.lock().unwrap()).unwrap()
}

/// An execution in this state after so many attempts.
fn head(key: &str, state: State, attempt: u32) -> Head {
    let id = ExecutionId::new(1, &[1; 10]);
    let ident = Identification {
        upstream: "demo".into(),
        tool: String::new(),
        key: Some(key.to_owned()),
        principal: "anonymous".into(),
        ..Identification::sample(id)
    };
    Head { state, attempt, ..Head::new(ident, 0) }
}

fn told(key: &str, tool: &'static str, state: &str) -> Answered {
    Answered { key: key.to_owned(), tool, state: Some(state.to_owned()) }
}

fn ran(runs: &[(bool, &str, usize)]) -> Runs {
    runs.iter().map(|(once, key, count)| ((*once, (*key).to_owned()), *count)).collect()
}

/// Judges two calls, the first `at_most_once`; returns the counts, and how the demo ends.
fn verdict(runs: &[(bool, &str, usize)], heads: &[Head], answered: &[Answered]) -> (Counts, Exit, Vec<String>) {
    let (story, written) = story();
    let judged = compare(&ran(runs), heads, answered, &story);
    let exit = story.end(judged.counts, "all is well", json!({})).unwrap();
    let wrong = report(&written)["wrong"].as_array().unwrap().iter().map(Value::to_string).collect();
    (judged.counts, exit, wrong)
}

#[test]
fn what_fits_together_is_as_it_must_be() {
    let heads = [head("a", State::Unknown, 1), head("b", State::Completed, 2)];
    let answered = [told("a", ONCE, "unknown"), told("b", REPEATABLE, "completed")];
    for written in [0, 1] {
        let (counts, exit, wrong) = verdict(&[(true, "a", written), (false, "b", 2)], &heads, &answered);
        assert_eq!(counts, Counts { calls: 2, completed: 1, recovered: 1, unknown: 1, ..Counts::default() });
        assert_eq!((exit, wrong), (Exit::Ok, Vec::new()));
    }
}

#[test]
fn each_planted_fault_is_found() {
    let done = |tool| told("a", tool, "completed");
    let completed = head("a", State::Completed, 1);
    let cases: [(&str, Vec<Head>, usize, Answered); 8] = [
        ("no execution is stored", vec![], 1, done(ONCE)),
        ("its effect is missing", vec![completed.clone()], 0, done(ONCE)),
        ("it ran twice", vec![completed.clone()], 2, done(ONCE)),
        ("it ran more often than it was tried", vec![completed.clone()], 2, done(REPEATABLE)),
        ("it never ended", vec![head("a", State::Leased, 1)], 1, done(ONCE)),
        ("it may be repeated and is unknown", vec![head("a", State::Unknown, 1)], 1, told("a", REPEATABLE, "unknown")),
        ("its caller was told another thing", vec![head("a", State::Unknown, 1)], 1, done(ONCE)),
        ("its caller was never answered", vec![completed], 1, Answered { state: None, ..done(ONCE) }),
    ];
    for (what, heads, runs, answered) in cases {
        let once = answered.tool == ONCE;
        let (counts, exit, wrong) = verdict(&[(once, "a", runs)], &heads, &[answered]);
        assert_eq!(exit, Exit::Failure, "{what}: {counts:?}");
        assert!(!wrong.is_empty(), "{what}");
    }
}

#[test]
fn the_json_is_one_object_with_counts_lines_and_what_was_wrong() {
    let (story, written) = story();
    story.say("it begins").unwrap();
    story.must(false, || "it broke".to_owned());
    let counts = Counts { calls: 1, completed: 1, ..Counts::default() };
    assert_eq!(story.end(counts, "all is well", json!({ "kills": 0 })).unwrap(), Exit::Failure);
    let report = report(&written);
    assert_eq!((&report["demo"], &report["ok"]), (&json!("crash"), &json!(false)));
    assert_eq!(report["wrong"], json!(["it broke"]));
    assert_eq!(report["counts"]["completed"], 1);
    assert_eq!(report["lines"][0]["text"], "it begins");
    assert!(report["verdict"].as_str().unwrap().starts_with("NOT as it must be: it broke"));
}

#[test]
fn people_read_lines_with_times_the_counts_and_the_verdict() {
    let (out, written) = Output::in_memory(true);
    let story = Story::begin("crash", out, false);
    story.say_at(story.now_ms() + 1_500, "later").unwrap();
    assert_eq!(story.end(Counts::default(), "all is well", json!({})).unwrap(), Exit::Ok);
    let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    assert!(text.starts_with("  1.5"), "{text}");
    for part in ["lost          0", "duplicate     0", "unknown       0", "As it must be: all is well"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

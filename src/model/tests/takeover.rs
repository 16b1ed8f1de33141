//! Examples for unkeyed calls: which earlier execution takes a repeat, as one table.

use super::*;
use crate::model::policy::{Identity, Unkeyed};
use crate::model::submit::{self, Found, IfWaited, Submission, Submitted, Twin};

const WINDOW_MS: i64 = 600_000;

/// What the earlier execution was through, and what its caller was told.
fn twin(text: &str) -> Head {
    let (script, marks) = text.split_once(" + ").unwrap_or((text, ""));
    let mut story = Story::new(policy("at_most_once"));
    for step in script.split(", ").filter(|step| *step != "submitted") {
        story.step(step);
    }
    match marks {
        "delivered" => story.head.delivered_at_ms = Some(START_MS),
        "handle" => story.head.handle_given = true,
        "" => {}
        other => panic!("no mark {other:?}"),
    }
    story.head
}

fn submission(unkeyed: Unkeyed, read_only: bool, if_waited: IfWaited) -> Submission {
    let mut ident = ident(policy("at_most_once"));
    ident.id = execution_id(2);
    let identity = Identity { unkeyed, read_only, reattach_window_ms: WINDOW_MS, ..Identity::default() };
    Submission { ident, identity, run_at_ms: None, by: None, lease: None, waiter: Some(process_id(1)), if_waited }
}

fn outcome(submission: &Submission, twins: &[Twin<'_>], now_ms: i64) -> String {
    match submit::submit(submission, Found { holder: None, twins }, now_ms, &Limits::default()) {
        Submitted::New { .. } => "new".into(),
        Submitted::Attached(index) => format!("attached {index}"),
        Submitted::Waited(index) => format!("waited {index}"),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_twin(earlier: &str, waited: bool, call: (&str, i64), expect: &str) {
    let (mode, after_ms) = call;
    let unkeyed = match mode.split(' ').next() {
        Some("reattach") => Unkeyed::Reattach,
        Some("coalesce") => Unkeyed::Coalesce,
        _ => Unkeyed::None,
    };
    let if_waited = if mode.contains("insisting") { IfWaited::New } else { IfWaited::Tell };
    let submission = submission(unkeyed, mode.contains("read-only"), if_waited);
    let head = twin(earlier);
    let twins = [Twin { head: &head, waited }];
    assert_eq!(outcome(&submission, &twins, START_MS + after_ms), expect, "{earlier}, waited {waited}, {mode}");
}

const RUNNING: [&str; 5] = ["submitted", "lease", "lease, hold", "lease, park", "lease, not started"];
const SETTLED: [&str; 4] = ["lease, result", "lease, rpc error", "cancel", "lease, lose"];
const LATE_MS: i64 = 1_000 * WINDOW_MS;

#[test]
fn a_running_execution_nobody_waits_for_takes_the_repeat() {
    for earlier in RUNNING {
        for mode in ["reattach", "coalesce", "reattach read-only", "coalesce read-only", "reattach insisting"] {
            check_twin(earlier, false, (mode, LATE_MS), "attached 0");
        }
        check_twin(earlier, false, ("none", 0), "new");
    }
}

#[test]
fn two_callers_that_are_both_there_stay_two_executions() {
    for earlier in RUNNING.iter().chain(&SETTLED) {
        check_twin(earlier, true, ("reattach", 0), "waited 0");
        check_twin(earlier, true, ("reattach insisting", 0), "new");
        check_twin(earlier, true, ("coalesce", 0), "attached 0");
        check_twin(earlier, true, ("coalesce insisting", 0), "attached 0");
        check_twin(earlier, true, ("none", 0), "new");
    }
}

#[test]
fn an_end_nobody_was_told_takes_the_repeat_within_the_window() {
    for earlier in SETTLED {
        check_twin(earlier, false, ("reattach", 0), "attached 0");
        check_twin(earlier, false, ("reattach", WINDOW_MS - 1), "attached 0");
        check_twin(earlier, false, ("reattach", WINDOW_MS), "new");
        check_twin(earlier, false, ("coalesce", WINDOW_MS - 1), "attached 0");
        check_twin(earlier, false, ("none", 0), "new");
    }
}

#[test]
fn an_answer_written_whole_closes_the_execution_for_repeats() {
    // An `unknown` that was told counts; so does an execution id or a task that was asked for, even before the end.
    for earlier in SETTLED.iter().chain(&RUNNING) {
        let told = format!("{earlier} + delivered");
        for mode in ["reattach", "coalesce", "reattach read-only"] {
            check_twin(&told, false, (mode, 0), "new");
            check_twin(&told, true, (mode, 0), "new");
        }
    }
}

#[test]
fn a_handle_at_a_spent_budget_is_no_answer() {
    for earlier in SETTLED.iter().chain(&RUNNING) {
        check_twin(&format!("{earlier} + handle"), false, ("reattach", 0), "attached 0");
    }
    check_twin("lease, result + handle", false, ("reattach", WINDOW_MS), "new");
}

#[test]
fn a_read_only_tool_takes_a_repeat_after_its_end_only_for_a_handle() {
    for earlier in SETTLED {
        check_twin(earlier, false, ("reattach read-only", 0), "new");
        let with_handle = format!("{earlier} + handle");
        check_twin(&with_handle, false, ("reattach read-only", 0), "attached 0");
        check_twin(&with_handle, false, ("reattach read-only", WINDOW_MS), "new");
    }
}

#[test]
fn of_several_twins_the_oldest_that_nobody_waits_for_takes_the_call() {
    let (running, told) = (twin("lease"), twin("lease, result + delivered"));
    let call = |if_waited| submission(Unkeyed::Reattach, false, if_waited);
    let free = Twin { head: &running, waited: false };
    let waited = Twin { head: &running, waited: true };
    let closed = Twin { head: &told, waited: false };
    assert_eq!(outcome(&call(IfWaited::Tell), &[closed, waited, free, free], START_MS), "attached 2");
    assert_eq!(outcome(&call(IfWaited::Tell), &[closed, waited, waited], START_MS), "waited 1");
    assert_eq!(outcome(&call(IfWaited::New), &[closed, waited], START_MS), "new");
    assert_eq!(outcome(&call(IfWaited::Tell), &[closed], START_MS), "new");
    let coalesce = submission(Unkeyed::Coalesce, false, IfWaited::Tell);
    assert_eq!(outcome(&coalesce, &[waited, free], START_MS), "attached 1", "one nobody waits for comes first");
    assert_eq!(outcome(&coalesce, &[closed, waited], START_MS), "attached 1");
}

#[test]
fn a_keyed_call_and_an_ordered_retry_never_attach() {
    let running = twin("lease");
    let twins = [Twin { head: &running, waited: false }];
    let mut keyed = submission(Unkeyed::Coalesce, false, IfWaited::Tell);
    keyed.ident.key = Some("k".into());
    assert_eq!(outcome(&keyed, &twins, START_MS), "new");
    let mut retry = submission(Unkeyed::Coalesce, false, IfWaited::Tell);
    retry.ident.retry_of = Some(execution_id(1));
    assert_eq!(outcome(&retry, &twins, START_MS), "new");
}

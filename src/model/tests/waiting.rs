//! Waiting for input does not count as run time.

use super::{Answer, START_MS, State, Story, policy};
use crate::model::decide::Command;

fn after(policy_text: &str, steps: &str) -> Story {
    let mut story = Story::new(policy(policy_text));
    for step in steps.split(", ") {
        story.step(step);
    }
    story
}

#[test]
fn a_wait_puts_the_total_deadline_off_by_as_long_as_it_lasts() {
    for wait in ["hold", "park"] {
        let story = after("at_least_once total=10000", &format!("lease, wait 4000, {wait}, wait 60000, resume"));
        assert_eq!((story.head.waited_ms, story.head.waiting_since_ms), (60_000, None));
        assert_eq!(story.head.total_deadline_ms(), START_MS + 70_000);
    }
}

#[test]
fn the_total_time_stands_still_while_the_client_is_asked() {
    let mut story = after("at_least_once total=10000", "lease, wait 4000, hold, wait 20000");
    // 24 s have passed, of which 4 count: another attempt is permitted.
    assert_eq!(story.step("die"), Some(Answer::Accepted));
    assert_eq!(story.head.state, State::Scheduled);
    assert_eq!(story.head.waited_ms, 20_000);
    let mut late = after("at_least_once total=10000", "lease, wait 11000, hold, wait 20000");
    assert_eq!(late.step("die"), Some(Answer::Accepted));
    assert_eq!(late.head.state, State::Failed);
}

#[test]
fn several_waits_add_up_and_notes_do_not_end_one() {
    let mut story = after("at_most_once total=10000", "lease, hold, wait 1000, resume, wait 500, hold, wait 2000");
    let stale = Command::Complete { fencing_token: 7, result: super::result("x"), is_error: false };
    assert_eq!(story.send(&stale), Answer::Stale);
    assert_eq!(story.head.waiting_since_ms, Some(START_MS + 1_500));
    story.step("wait 3000");
    story.step("resume");
    assert_eq!(story.head.waited_ms, 6_000);
}

#[test]
fn an_ordered_attempt_has_the_whole_total_time_and_nothing_of_earlier_waits() {
    let story = after("at_most_once total=10000", "lease, hold, wait 30000, die, wait 1000, retry");
    assert_eq!((story.head.state, story.head.waited_ms), (State::Scheduled, 0));
    assert_eq!(story.head.total_deadline_ms(), START_MS + 41_000);
}

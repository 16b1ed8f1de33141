//! Examples for the states, late results, delivery, retries, cancel and orders (docs/states.md, docs/guarantees.md).

use super::*;

const MOST: &str = "at_most_once";
const LEAST: &str = "at_least_once";

#[test]
fn a_call_is_leased_completed_and_ended() {
    check(MOST, "", "-; ready; ");
    check(MOST, "lease", "Leased; leased(attempt 1 token 1); leased");
    check(MOST, "lease, result", "Accepted; completed(result); leased completed");
    check(MOST, "lease, error result", "Accepted; completed(result); leased completed");
    check(MOST, "lease, lease", "NotLeasable; leased(attempt 1 token 1); leased");
    check(MOST, "lease, result, lease", "NotLeasable; completed(result); leased completed");
}

#[test]
fn a_delayed_call_is_leased_only_when_due() {
    let delayed = || Story::submitted(ident(policy(MOST)), Some(START_MS + 1_000));
    check_story(delayed(), "", "-; scheduled(+1000); ");
    check_story(delayed(), "lease", "NotLeasable; scheduled(+1000); ");
    check_story(delayed(), "wait 999, promote", "Nothing; scheduled(+1); ");
    check_story(delayed(), "wait 1000, promote", "Accepted; ready; promoted");
    check_story(delayed(), "wait 1000, lease", "Leased; leased(attempt 1 token 1); leased");
    check_story(delayed(), "cancel", "Accepted; cancelled(none); cancelled");
}

#[test]
fn the_newest_token_may_bring_its_result_late() {
    let lost = "lease, wait 30000, expire";
    check(MOST, &format!("{lost}, result"), "Accepted; completed(late_result); leased lost completed");
    check(LEAST, &format!("{lost}, result"), "Accepted; completed(late_result); leased retried completed");
    let promoted = format!("{lost}, wait 500, promote, result");
    check(LEAST, &promoted, "Accepted; completed(late_result); leased retried promoted completed");
    check(MOST, "lease, release, result", "Accepted; completed(late_result); leased released completed");
    check(MOST, "lease, park, result", "Accepted; completed(late_result); leased parked completed");
    check(MOST, "lease, hold, result", "Accepted; completed(result); leased held completed");
    // The lease ran out, but nobody settled that yet: the worker is still the holder.
    check(MOST, "lease, wait 90000, result", "Accepted; completed(result); leased completed");
}

#[test]
fn an_older_token_changes_nothing() {
    let again = "lease, wait 30000, expire, wait 500, lease";
    let leased = "leased(attempt 2 token 2); leased retried leased";
    check(LEAST, &format!("{again}, result@1"), &format!("Stale; {leased} rejected"));
    check(LEAST, &format!("{again}, lose@1"), &format!("Stale; {leased} rejected"));
    check(LEAST, &format!("{again}, result@3"), &format!("Stale; {leased} rejected"));
    for name in ["heartbeat", "release", "hold", "park"] {
        check(LEAST, &format!("{again}, {name}@1"), &format!("Stale; {leased}"));
    }
    check(LEAST, &format!("{again}, wait 30000, expire@1"), &format!("Nothing; {leased}"));
    check(
        LEAST,
        &format!("{again}, result, result@1"),
        "Ended; completed(result); leased retried leased completed rejected",
    );
    check(MOST, "result@0", "Stale; ready; rejected");
}

#[test]
fn heartbeat_and_fail_need_the_lease_itself() {
    check(MOST, "lease, wait 29999, heartbeat, wait 29999, expire", "Nothing; leased(attempt 1 token 1); leased");
    check(MOST, "lease, wait 29999, heartbeat, wait 30000, expire", "Accepted; unknown(lease_expired); leased lost");
    check(MOST, "lease, die, heartbeat", "Stale; unknown(process_died); leased lost");
    check(MOST, "lease, die, lose", "Stale; unknown(process_died); leased lost rejected");
    check(LEAST, "lease, die, rpc error", "Stale; scheduled(+500); leased retried rejected");
    check(MOST, "lease, result, heartbeat", "Ended; completed(result); leased completed");
    check(MOST, "lease, result, lose", "Ended; completed(result); leased completed rejected");
}

#[test]
fn a_repeated_completion_is_told_so_and_writes_nothing() {
    check(MOST, "lease, result, result", "AlreadyDone; completed(result); leased completed");
    check(MOST, "lease, die, result, result", "AlreadyDone; completed(late_result); leased lost completed");
}

#[test]
fn a_released_attempt_does_not_count() {
    check(MOST, "lease, release", "Accepted; ready; leased released");
    check(MOST, "lease, release, lease", "Leased; leased(attempt 1 token 2); leased released leased");
    check(MOST, "lease, release, cancel", "Accepted; cancelled(none); leased released cancelled");
    check(MOST, "lease, hold, release", "NotPermitted; waiting(held); leased held");
}

#[test]
fn an_input_round_is_no_attempt() {
    check(MOST, "lease, hold, wait 29999, heartbeat", "Extended; waiting(held); leased held");
    check(MOST, "lease, hold, resume", "Accepted; leased(attempt 1 token 1); leased held resumed");
    check(MOST, "lease, park, resume", "Accepted; ready; leased parked resumed");
    check(MOST, "lease, park, resume, lease", "Leased; leased(attempt 1 token 2); leased parked resumed leased");
    check(MOST, "lease, park, heartbeat", "Stale; waiting(parked); leased parked");
    check(MOST, "resume", "NotPermitted; ready; ");
    check(MOST, "lease, result, resume", "Ended; completed(result); leased completed");
    check(MOST, "lease, hold, hold", "NotPermitted; waiting(held); leased held");
    check(MOST, "lease, hold, die", "Accepted; unknown(process_died); leased held lost");
    check(LEAST, "lease, hold, die", "Accepted; scheduled(+500); leased held retried");
    check(MOST, "lease, park, die", "Nothing; waiting(parked); leased parked");
    // Once answered, a later loss is a loss of the attempt as ever.
    let answered = "lease, park, resume, lease";
    check(
        LEAST,
        &format!("{answered}, die, wait 500, lease"),
        "Leased; leased(attempt 2 token 3); leased parked resumed leased retried leased",
    );
}

#[test]
fn a_round_given_back_unstarted_still_belongs_to_its_attempt() {
    let answered = "lease, park, resume, lease";
    check(
        MOST,
        &format!("{answered}, release, lease"),
        "Leased; leased(attempt 1 token 3); leased parked resumed leased released leased",
    );
    check(
        MOST,
        &format!("{answered}, release, cancel"),
        "Accepted; cancelled(unknown); leased parked resumed leased released cancelled",
    );
    // The round never reached the tool, but the attempt had: at most once means no second start.
    check(MOST, &format!("{answered}, not started"), "Accepted; unknown(said_so); leased parked resumed leased lost");
    check(
        LEAST,
        &format!("{answered}, not started"),
        "Accepted; scheduled(+500); leased parked resumed leased retried",
    );
}

#[test]
fn at_least_once_retries_a_lost_attempt_until_none_is_left() {
    for loss in ["lose", "die", "wait 30000, expire"] {
        check(LEAST, &format!("lease, {loss}"), "Accepted; scheduled(+500); leased retried");
    }
    check(LEAST, "lease, lose, wait 499, lease", "NotLeasable; scheduled(+1); leased retried");
    let twice = "lease, lose, wait 500, lease, lose";
    check(LEAST, twice, "Accepted; scheduled(+1000); leased retried leased retried");
    let thrice = format!("{twice}, wait 1000, lease, lose");
    check(LEAST, &thrice, "Accepted; failed(said_so); leased retried leased retried leased failed");
    check("at_least_once max=1", "lease, lose", "Accepted; failed(said_so); leased failed");
}

#[test]
fn at_most_once_is_unknown_after_a_loss_and_not_run_again() {
    check(MOST, "lease, lose", "Accepted; unknown(said_so); leased lost");
    check(MOST, "lease, die", "Accepted; unknown(process_died); leased lost");
    check(MOST, "lease, wait 29999, expire", "Nothing; leased(attempt 1 token 1); leased");
    check(MOST, "lease, wait 30000, expire", "Accepted; unknown(lease_expired); leased lost");
    check(MOST, "lease, die, wait 4000000, lease", "NotLeasable; unknown(process_died); leased lost");
    check(MOST, "lease, die, wait 4000000, time out", "Nothing; unknown(process_died); leased lost");
}

#[test]
fn a_call_that_never_reached_the_tool_is_retried_under_both() {
    for delivery in [MOST, LEAST] {
        check(delivery, "lease, not started", "Accepted; scheduled(+500); leased retried");
        check(delivery, "lease, not started, cancel", "Accepted; cancelled(none); leased retried cancelled");
    }
    check("at_most_once max=1", "lease, not started", "Accepted; failed(said_so); leased failed");
    // Of the ordered attempt it is known that it did not start; of the first one nothing is known, still.
    let ordered = "lease, die, retry, lease, not started";
    check("at_most_once max=1", ordered, "Accepted; unknown(said_so); leased lost retried leased lost");
}

#[test]
fn a_tool_error_is_a_result_unless_the_tool_says_otherwise() {
    check(LEAST, "lease, error result", "Accepted; completed(result); leased completed");
    check("at_least_once tool_error", "lease, error result", "Accepted; scheduled(+500); leased retried");
    check("at_least_once tool_error", "lease, result", "Accepted; completed(result); leased completed");
    check("at_most_once tool_error", "lease, error result", "Accepted; completed(result); leased completed");
    let exhausted = "lease, error result, wait 500, lease, error result";
    check("at_least_once tool_error max=2", exhausted, "Accepted; completed(result); leased retried leased completed");
    check(
        "at_least_once tool_error",
        "lease, die, error result",
        "Accepted; completed(late_result); leased retried completed",
    );
}

#[test]
fn an_rpc_error_fails_unless_the_tool_says_otherwise() {
    check(LEAST, "lease, rpc error", "Accepted; failed(said_so); leased failed");
    check("at_least_once rpc_error", "lease, rpc error", "Accepted; scheduled(+500); leased retried");
    check("at_most_once rpc_error", "lease, rpc error", "Accepted; failed(said_so); leased failed");
    check("at_least_once rpc_error max=1", "lease, rpc error", "Accepted; failed(said_so); leased failed");
}

#[test]
fn a_reported_failure_is_retried_only_where_delivery_permits() {
    check(LEAST, "lease, report retryable", "Accepted; scheduled(+500); leased retried");
    check(LEAST, "lease, report", "Accepted; failed(said_so); leased failed");
    check(MOST, "lease, report retryable", "Accepted; failed(said_so); leased failed");
    check("at_least_once max=1", "lease, report retryable", "Accepted; failed(said_so); leased failed");
}

#[test]
fn the_tools_wish_for_a_wait_is_honoured_but_never_negative() {
    for (wish_ms, expect) in [(7_000, "scheduled(+7000)"), (0, "scheduled(+0)"), (-5, "scheduled(+0)")] {
        let mut story = Story::new(policy(LEAST));
        story.step("lease");
        let Command::Fail { fencing_token, mut failure } = story.command("lose") else { unreachable!() };
        failure.retry_after_ms = Some(wish_ms);
        story.send(&Command::Fail { fencing_token, failure });
        assert_eq!(story.state(), expect);
    }
}

#[test]
fn the_total_time_bounds_queue_and_back_off() {
    let short = "at_least_once total=1000";
    check(short, "wait 999, time out", "Nothing; ready; ");
    check(short, "wait 1000, time out", "Accepted; failed(total_timeout); failed");
    check(short, "wait 1000, lease", "NotLeasable; ready; ");
    check(short, "lease, lose, wait 1000, time out", "Accepted; failed(total_timeout); leased retried failed");
    check(short, "lease, wait 1000, time out", "Nothing; leased(attempt 1 token 1); leased");
    check(short, "lease, wait 1000, lose", "Accepted; failed(said_so); leased failed");
    check("at_most_once total=1000", "lease, wait 1000, lose", "Accepted; unknown(said_so); leased lost");
    check("at_least_once total=1000", "lease, wait 1000, result", "Accepted; completed(result); leased completed");
}

#[test]
fn an_attempt_ordered_after_the_total_time_has_its_own_total_time() {
    let ordered = "lease, die, wait 5000, retry";
    check("at_most_once total=1000", &format!("{ordered}, time out"), "Nothing; scheduled(+0); leased lost retried");
    check(
        "at_most_once total=1000",
        &format!("{ordered}, lease"),
        "Leased; leased(attempt 2 token 2); leased lost retried leased",
    );
    check(
        "at_most_once total=1000",
        &format!("{ordered}, wait 1000, time out"),
        "Accepted; failed(total_timeout); leased lost retried failed",
    );
}

#[test]
fn the_time_in_a_queue_bounds_only_a_call_that_was_never_leased() {
    let queued = || {
        let mut ident = ident(policy(LEAST));
        ident.start_by_ms = Some(START_MS + 100);
        Story::submitted(ident, None)
    };
    check_story(queued(), "wait 99, time out", "Nothing; ready; ");
    check_story(queued(), "wait 100, time out", "Accepted; failed(queue_timeout); failed");
    check_story(queued(), "wait 100, lease", "NotLeasable; ready; ");
    check_story(queued(), "lease, lose, wait 600, time out", "Nothing; scheduled(+-100); leased retried");
    check_story(
        queued(),
        "lease, release, wait 600, lease",
        "Leased; leased(attempt 1 token 2); leased released leased",
    );
}

#[test]
fn cancel_wins_at_once_and_says_whether_the_call_may_have_had_its_effect() {
    check(MOST, "cancel", "Accepted; cancelled(none); cancelled");
    check(MOST, "lease, cancel", "Accepted; cancelled(unknown); leased cancelled");
    check(MOST, "lease, hold, cancel", "Accepted; cancelled(unknown); leased held cancelled");
    check(MOST, "lease, park, cancel", "Accepted; cancelled(unknown); leased parked cancelled");
    check(MOST, "lease, park, resume, cancel", "Accepted; cancelled(unknown); leased parked resumed cancelled");
    check(LEAST, "lease, lose, cancel", "Accepted; cancelled(unknown); leased retried cancelled");
    check(
        LEAST,
        "lease, lose, wait 500, promote, cancel",
        "Accepted; cancelled(unknown); leased retried promoted cancelled",
    );
    check(MOST, "lease, cancel, result", "Ended; cancelled(unknown); leased cancelled rejected");
    check(MOST, "lease, cancel, heartbeat", "Ended; cancelled(unknown); leased cancelled");
    check(MOST, "lease, cancel, cancel", "Ended; cancelled(unknown); leased cancelled");
    check(MOST, "lease, result, cancel", "Ended; completed(result); leased completed");
    check(MOST, "lease, die, cancel", "NotPermitted; unknown(process_died); leased lost");
}

#[test]
fn an_unknown_call_is_resolved_in_place() {
    check(MOST, "lease, die, resolve", "Accepted; completed(resolve); leased lost completed");
    check(MOST, "lease, die, resolve failed", "Accepted; failed(resolved_failed); leased lost failed");
    check(MOST, "lease, die, reconcile", "Accepted; completed(reconcile); leased lost completed");
    check(MOST, "lease, die, resolve, result", "Ended; completed(resolve); leased lost completed rejected");
    for ordered in ["retry", "resolve", "resolve failed", "reconcile", "reconcile nothing"] {
        check(MOST, ordered, "NotPermitted; ready; ");
        check(MOST, &format!("lease, {ordered}"), "NotPermitted; leased(attempt 1 token 1); leased");
        check(MOST, &format!("lease, result, {ordered}"), "Ended; completed(result); leased completed");
        check(MOST, &format!("cancel, {ordered}"), "Ended; cancelled(none); cancelled");
    }
}

#[test]
fn a_person_may_order_one_more_attempt_of_an_unknown_call() {
    check(MOST, "lease, die, retry", "Accepted; scheduled(+0); leased lost retried");
    let ordered = "lease, die, retry, lease";
    check("at_most_once max=1", ordered, "Leased; leased(attempt 2 token 2); leased lost retried leased");
    check(
        "at_most_once max=1",
        &format!("{ordered}, die"),
        "Accepted; unknown(process_died); leased lost retried leased lost",
    );
    check(
        MOST,
        &format!("{ordered}, result@1"),
        "Stale; leased(attempt 2 token 2); leased lost retried leased rejected",
    );
    check(MOST, "lease, die, retry, result", "Accepted; completed(late_result); leased lost retried completed");
    check(MOST, "lease, die, retry, cancel", "Accepted; cancelled(unknown); leased lost retried cancelled");
}

#[test]
fn a_reconcile_rule_orders_attempts_only_up_to_the_policys_number() {
    let again = "die, reconcile nothing, lease";
    let twice = format!("lease, {again}, {again}");
    check(MOST, &twice, "Leased; leased(attempt 3 token 3); leased lost retried leased lost retried leased");
    check(
        MOST,
        &format!("{twice}, die, reconcile nothing"),
        "NotPermitted; unknown(process_died); leased lost retried leased lost retried leased lost",
    );
    check(
        "at_most_once max=1",
        &format!("lease, {again}"),
        "Leased; leased(attempt 2 token 2); leased lost retried leased",
    );
    check(
        "at_most_once max=1",
        &format!("lease, {again}, die, reconcile nothing"),
        "NotPermitted; unknown(process_died); leased lost retried leased lost",
    );
}

#[test]
fn an_answer_about_an_older_attempt_reconciles_nothing() {
    let twice = "lease, die, retry, lease, die";
    let log = "leased lost retried leased lost";
    for stale in ["reconcile@old", "reconcile nothing@old"] {
        check(MOST, &format!("{twice}, {stale}"), &format!("NotPermitted; unknown(process_died); {log}"));
    }
}

#[test]
fn a_failure_says_whether_an_attempt_may_have_had_its_effect() {
    let ended = |commands: &str| {
        let mut story = Story::new(policy("at_least_once max=1"));
        for command in commands.split(", ") {
            story.step(command);
        }
        (story.head.state, story.head.effect_possible)
    };
    assert_eq!(ended("lease, not started"), (State::Failed, false));
    assert_eq!(ended("lease, lose"), (State::Failed, true));
    assert_eq!(ended("lease, rpc error"), (State::Failed, true));
}

#[test]
fn what_changes_nothing_is_noted_only_so_often() {
    let mut story = Story::new(policy(MOST));
    story.step("lease");
    for _ in 0..10 {
        assert_eq!(story.step("result@7"), Some(Answer::Stale));
    }
    assert_eq!(story.event_names(), "submitted leased rejected rejected rejected rejected");
    assert_eq!(story.head.notes, story.limits.notes_max);
    assert_eq!(story.step("result"), Some(Answer::Accepted));
}

#[test]
fn a_rejected_result_is_kept_as_a_digest() {
    let mut story = Story::new(policy(MOST));
    for text in ["lease", "cancel", "result"] {
        story.step(text);
    }
    let expect = Event::Rejected { fencing_token: 1, reason: "ended".into(), result: Some(result("{}")) };
    assert_eq!(story.log.last().map(|(_, event)| event), Some(&expect));
}

#[test]
fn an_execution_of_a_wrap_belongs_to_its_process_until_that_is_dead() {
    let mut ident = ident(policy(MOST));
    ident.bound_to = Some(process_id(2));
    let lease = |process, takes_over| {
        let request = LeaseRequest { process: process_id(process), takes_over, ..lease_request() };
        Story::submitted(ident.clone(), None).send(&Command::Lease(request))
    };
    let granted = Answer::Leased { fencing_token: 1, attempt: 1 };
    assert_eq!(lease(1, None), Answer::NotLeasable);
    assert_eq!(lease(1, Some(process_id(3))), Answer::NotLeasable);
    assert_eq!(lease(2, None), granted);
    assert_eq!(lease(1, Some(process_id(2))), granted);
}

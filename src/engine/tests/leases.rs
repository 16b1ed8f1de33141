//! Leases: kept by heartbeats, lost by time or death, fenced by their number; retries and time limits.

use super::rig::{
    Rig, at_least_once, at_once, call, candidates, claim_oldest, count, events, head, lost, names, rejected, result,
    soon,
};
use crate::engine::{Engine, Settings};
use crate::model::decide::Answer;
use crate::model::execution::{ResultSource, State};
use crate::model::id::ExecutionId;
use crate::model::policy::{Policy, Timeouts};

async fn expires_at_ms(engine: &Engine, id: ExecutionId) -> i64 {
    head(engine, id).await.lease.unwrap().expires_at_ms
}

#[tokio::test]
async fn a_heartbeat_extends_every_lease_of_the_process_and_is_no_event() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let ids = [
        engine.submit(call(Policy::default())).await.unwrap().id(),
        engine.submit(call(Policy::default())).await.unwrap().id(),
    ];
    let _works = (hands.next().await, hands.next().await);
    rig.time.advance(20_000);
    engine.heartbeat().await.unwrap();
    rig.time.advance(20_000);
    engine.settle_due().await.unwrap();
    for id in ids {
        assert_eq!(expires_at_ms(&engine, id).await, rig.clock.now_ms() + 10_000);
        assert_eq!(names(&engine, id).await, ["submitted", "leased"]);
    }
}

#[tokio::test]
async fn the_heartbeat_loop_follows_the_clock() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    engine.start_loops(true);
    let id = engine.submit(call(Policy::default())).await.unwrap().id();
    let _work = hands.next().await;
    for _ in 0..10 {
        rig.time.advance(10_000);
        // The loop may still be about to note the time of its last turn: then it is one turn behind, never two.
        let expected = rig.clock.now_ms() + 10_000;
        soon(async {
            while expires_at_ms(&engine, id).await < expected {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    assert_eq!(names(&engine, id).await, ["submitted", "leased"]);
}

#[tokio::test]
async fn a_worker_that_slept_past_its_lease_is_fenced_off() {
    let rig = Rig::new();
    let (sleeper, mut own) = rig.engine(at_once(1)).await;
    let (other, mut hands) = rig.engine(at_once(1)).await;
    let id = sleeper.submit(call(at_least_once())).await.unwrap().id();
    let first = own.next().await;
    rig.time.advance(30_000);
    other.settle_due().await.unwrap();
    assert_eq!(head(&other, id).await.state, State::Scheduled);
    rig.time.advance(5_000);
    assert!(claim_oldest(&other).await);
    let second = hands.next().await;
    assert_eq!((second.head.fencing_token, second.head.attempt), (2, 2));

    sleeper.heartbeat().await.unwrap();
    assert!(first.cancel.is_cancelled(), "the sleeper is told to stop");
    let answer = sleeper.complete(first.lease(), first.operation, result("late"), false).await.unwrap();
    assert_eq!(answer, Answer::Stale);
    assert_eq!(rejected(&other, id).await.as_deref(), Some("stale_token"));
    assert_eq!(head(&other, id).await.state, State::Leased);
    let answer = other.complete(second.lease(), second.operation, result("good"), false).await.unwrap();
    assert_eq!(answer, Answer::Accepted);
}

#[tokio::test]
async fn a_late_result_under_the_newest_token_ends_an_unknown() {
    let rig = Rig::new();
    let (sleeper, mut own) = rig.engine(at_once(1)).await;
    let (other, _hands) = rig.engine(at_once(1)).await;
    let mut ticket = sleeper.submit(call(Policy::default())).await.unwrap();
    let work = own.next().await;
    rig.time.advance(30_000);
    other.settle_due().await.unwrap();
    let row = head(&other, ticket.id()).await;
    assert_eq!((row.state, row.error.unwrap().code.as_str()), (State::Unknown, "lease_expired"));
    assert!(candidates(&other).await.is_empty(), "it is not run again");
    let answer = sleeper.complete(work.lease(), work.operation, result("late"), false).await.unwrap();
    assert_eq!(answer, Answer::Accepted);
    let end = soon(ticket.end()).await;
    assert_eq!((end.head.state, end.head.source), (State::Completed, Some(ResultSource::LateResult)));
    assert_eq!(end.payload, Some(result("late")));
}

#[tokio::test]
async fn a_process_that_lives_keeps_its_own_leases_however_late_it_is() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let id = engine.submit(call(Policy::default())).await.unwrap().id();
    let work = hands.next().await;
    // The machine slept; the scheduler wakes before the heartbeat does.
    rig.time.advance(3_000_000);
    engine.settle_due().await.unwrap();
    assert_eq!(expires_at_ms(&engine, id).await, rig.clock.now_ms() + 30_000);
    let answer = engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    assert_eq!(answer, Answer::Accepted);
}

#[tokio::test]
async fn what_a_dead_process_had_leased_is_settled_at_once() {
    let rig = Rig::new();
    let (dying, mut own) = rig.engine(at_once(2)).await;
    let (other, mut hands) = rig.engine(at_once(2)).await;
    let once = dying.submit(call(Policy::default())).await.unwrap().id();
    let again = dying.submit(call(at_least_once())).await.unwrap().id();
    let _works = (own.next().await, own.next().await);
    other.settle_due().await.unwrap();
    assert_eq!(head(&other, once).await.state, State::Leased, "it lives");
    // Closing gives up the lock that says that the process lives, and settles nothing.
    dying.store().close().await;
    other.settle_due().await.unwrap();
    for (id, state) in [(once, State::Unknown), (again, State::Scheduled)] {
        let row = head(&other, id).await;
        assert_eq!((row.state, row.error.unwrap().code.as_str()), (state, "process_died"));
    }
    assert!(other.store().dead_processes(0).await.unwrap().is_empty(), "it is buried");
    rig.time.advance(5_000);
    assert!(claim_oldest(&other).await);
    assert_eq!(hands.next().await.head.id(), again);
}

#[tokio::test]
async fn a_bound_execution_is_left_to_its_process_until_that_is_dead() {
    let rig = Rig::new();
    let settings = Settings { bound: true, ..Settings::default() };
    let (wrap, mut own) = rig.engine_with(settings.clone(), Some(at_once(1))).await;
    let (next, mut hands) = rig.engine_with(settings, Some(at_once(4))).await;
    let running = wrap.submit(call(at_least_once())).await.unwrap().id();
    let _work = own.next().await;
    let queued = wrap.submit(call(at_least_once())).await.unwrap().id();
    assert!(candidates(&next).await.is_empty());
    let row = head(&next, queued).await;
    let slot = next.slots().try_take(super::rig::UPSTREAM).unwrap();
    assert!(!next.claim(&row, slot).await.unwrap(), "nor by name");

    wrap.store().close().await;
    next.settle_due().await.unwrap();
    rig.time.advance(5_000);
    assert!(claim_oldest(&next).await);
    assert!(claim_oldest(&next).await);
    let mut taken = [hands.next().await, hands.next().await].map(|work| work.head.id());
    taken.sort();
    let mut expected = [running, queued];
    expected.sort();
    assert_eq!(taken, expected);
}

#[tokio::test]
async fn a_bound_unknown_of_a_dead_process_can_be_ordered_to_run_elsewhere() {
    let rig = Rig::new();
    let settings = Settings { bound: true, ..Settings::default() };
    let (wrap, mut own) = rig.engine_with(settings.clone(), Some(at_once(1))).await;
    let (next, mut hands) = rig.engine_with(settings, Some(at_once(4))).await;
    let id = wrap.submit(call(Policy::default())).await.unwrap().id();
    let _work = own.next().await;
    wrap.store().close().await;
    next.settle_due().await.unwrap();
    assert_eq!(head(&next, id).await.state, State::Unknown);
    next.retry_unknown(id, super::rig::order()).await.unwrap();
    assert!(claim_oldest(&next).await);
    assert_eq!(hands.next().await.head.id(), id);
}

#[tokio::test]
async fn a_released_execution_may_be_leased_again_and_counts_no_attempt() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let id = engine.submit(call(Policy::default())).await.unwrap().id();
    let work = hands.next().await;
    assert_eq!(engine.release(work.lease(), work.operation).await.unwrap(), Answer::Accepted);
    drop(work);
    assert_eq!(head(&engine, id).await.attempt, 0);
    assert!(engine.running.leases().is_empty());
    assert!(claim_oldest(&engine).await);
    assert_eq!(hands.next().await.head.attempt, 1);
}

#[tokio::test]
async fn a_retry_never_starts_early() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let id = engine.submit(call(at_least_once())).await.unwrap().id();
    for attempt in 1..=3 {
        let work = hands.next().await;
        assert_eq!(work.head.attempt, attempt);
        engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
        drop(work);
        if attempt == 3 {
            break;
        }
        let row = head(&engine, id).await;
        let wait_ms = row.run_at_ms - rig.clock.now_ms();
        assert!((400..=1_200).contains(&wait_ms), "{wait_ms} ms after attempt {attempt}");
        rig.time.advance(wait_ms - 1);
        assert_eq!(engine.settle_due().await.unwrap(), row.run_at_ms, "and looks again just then");
        let slot = engine.slots().try_take(super::rig::UPSTREAM).unwrap();
        assert!(candidates(&engine).await.is_empty());
        assert!(!engine.claim(&row, slot).await.unwrap());
        rig.time.advance(1);
        engine.settle_due().await.unwrap();
        assert_eq!(head(&engine, id).await.state, State::Ready);
        assert!(claim_oldest(&engine).await);
    }
    let row = head(&engine, id).await;
    assert_eq!((row.state, row.error.unwrap().code.as_str()), (State::Failed, "child_died"));
    assert_eq!(count(&engine, id, "leased").await, 3);
}

#[tokio::test]
async fn a_back_off_that_outlasts_the_total_time_fails_at_that_time() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let timeouts = Timeouts { total_ms: 300, ..Timeouts::default() };
    let mut ticket = engine.submit(call(Policy { timeouts, ..at_least_once() })).await.unwrap();
    let work = hands.next().await;
    rig.time.advance(100);
    engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
    assert_eq!(engine.settle_due().await.unwrap(), rig.clock.now_ms() + 200);
    rig.time.advance(200);
    engine.settle_due().await.unwrap();
    let end = soon(ticket.end()).await;
    assert_eq!((end.head.state, end.head.error.as_ref().unwrap().code.as_str()), (State::Failed, "total_timeout"));
}

#[tokio::test]
async fn an_older_attempt_in_the_same_process_is_told_to_stop() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(2)).await;
    let (other, _) = rig.engine(at_once(1)).await;
    engine.submit(call(at_least_once())).await.unwrap();
    let first = hands.next().await;
    rig.time.advance(30_000);
    other.settle_due().await.unwrap();
    rig.time.advance(5_000);
    assert!(claim_oldest(&engine).await);
    let second = hands.next().await;
    assert!(first.cancel.is_cancelled());
    assert!(!second.cancel.is_cancelled());
    engine.abandon(first.lease());
    engine.heartbeat().await.unwrap();
    assert!(!second.cancel.is_cancelled());
    assert_eq!(engine.running.leases(), [second.lease()]);
}

#[tokio::test]
async fn the_same_record_offered_twice_is_written_once() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let id = engine.submit(call(at_least_once())).await.unwrap().id();
    let work = hands.next().await;
    for _ in 0..2 {
        let answer = engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
        assert_eq!(answer, Answer::Accepted, "after an error of which nobody knows whether it was written");
    }
    assert_eq!(events(&engine, id).await.len(), 3);
}

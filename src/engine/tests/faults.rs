//! The store fails for a while: nothing is half done, nothing is lost, the loops go on.

use super::faulty::Faulty;
use super::rig::{Rig, at_least_once, at_once, call, candidates, head, lost, names, result, soon};
use crate::engine::submit::Call;
use crate::engine::{Error, Settings};
use crate::model::decide::{Answer, FailureKind};
use crate::model::execution::State;
use crate::model::policy::Policy;
use crate::store::ListQuery;

#[tokio::test]
async fn a_submission_that_could_not_be_stored_leaves_nothing_behind() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    let (engine, mut hands) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(1))).await;
    store.fail("submit", 1);
    let error = engine.submit(call(Policy::default())).await.err().unwrap();
    assert_eq!(error.code(), "store_unavailable");
    let _running = engine.submit(call(Policy::default())).await.unwrap();
    let _work = hands.next().await;
    store.fail("submit", 1);
    assert!(matches!(engine.submit(call(Policy::default())).await, Err(Error::Store(_))));
    assert_eq!(engine.slots().waiting(), 0, "the place in the queue is given back");
    assert_eq!(engine.store().list(ListQuery { limit: 9, ..ListQuery::default() }).await.unwrap().len(), 1);
    assert_eq!(engine.waiters.len(), 1);
}

#[tokio::test]
async fn a_call_whose_arguments_can_not_be_read_is_not_leased() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    let (engine, mut hands) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(1))).await;
    let _running = engine.submit(call(Policy::default())).await.unwrap();
    // Too large to be kept in memory while it waits.
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(20_000)).into();
    let waiting = engine.submit(Call { arguments: large, ..call(Policy::default()) }).await.unwrap().id();
    drop(hands.next().await);
    let candidate = candidates(&engine).await.into_iter().next().unwrap();
    store.fail("payload", 1);
    let slot = engine.slots().try_take(super::rig::UPSTREAM).unwrap();
    assert!(engine.claim(&candidate, slot).await.is_err());
    assert_eq!(head(&engine, waiting).await.state, State::Ready);
    let slot = engine.slots().try_take(super::rig::UPSTREAM).expect("the slot came back");
    assert!(engine.claim(&candidate, slot).await.unwrap());
    assert_eq!(hands.next().await.head.id(), waiting);
}

#[tokio::test]
async fn a_command_that_was_written_is_no_failure_because_its_payload_can_not_be_read() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    let (engine, mut hands) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(1))).await;
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    store.fail("payload", 1);
    let failure = crate::model::decide::Failure { kind: FailureKind::Reported { retryable: false }, ..lost() };
    let answer = engine.fail(work.lease(), work.operation, failure, None).await.unwrap();
    assert_eq!(answer, Answer::Accepted);
    assert_eq!(names(&engine, ticket.id()).await, ["submitted", "leased", "failed"]);
    engine.start_loops(false);
    assert_eq!(soon(ticket.end()).await.head.state, State::Failed, "the loop tells what could not be told at once");
}

#[tokio::test]
async fn a_lease_is_kept_while_its_record_can_not_be_written() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    let (engine, mut hands) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(1))).await;
    let id = engine.submit(call(Policy::default())).await.unwrap().id();
    let work = hands.next().await;
    store.fail("apply", 1);
    assert!(engine.complete(work.lease(), work.operation, result("done"), false).await.is_err());
    rig.time.advance(20_000);
    engine.heartbeat().await.unwrap();
    assert_eq!(head(&engine, id).await.lease.unwrap().expires_at_ms, rig.clock.now_ms() + 30_000);
    let answer = engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    assert_eq!(answer, Answer::Accepted);
    assert!(engine.running.leases().is_empty());
}

#[tokio::test]
async fn the_loops_survive_a_store_that_fails_for_a_while() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    let (engine, mut hands) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(2))).await;
    let (sleeper, _own) = rig.engine(at_once(1)).await;
    let kept = engine.submit(call(Policy::default())).await.unwrap().id();
    let _work = hands.next().await;
    let expiring = sleeper.submit(call(at_least_once())).await.unwrap().id();
    for method in ["heartbeat", "due", "heads", "prune"] {
        store.fail(method, 2);
    }
    engine.start_loops(true);
    soon(async {
        // Each turn of the clock lets each loop fail once more, or work.
        while store.faults_left("heartbeat") + store.faults_left("due") + store.faults_left("prune") > 0 {
            rig.time.advance(1_000);
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        }
        while head(&sleeper, expiring).await.state == State::Leased {
            rig.time.advance(1_000);
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(head(&sleeper, kept).await.state, State::Leased);
}

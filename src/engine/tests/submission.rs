//! A call arrives: stored and leased in one write, queued, refused. Every slot and every place comes back.

use futures_util::future::join_all;

use super::rig::{Rig, at_once, call, candidates, claim_oldest, events, head, keyed, names, order, result, soon};
use crate::engine::slots::UpstreamLimits;
use crate::engine::submit::Call;
use crate::engine::{Error, Settings};
use crate::model::execution::State;
use crate::model::policy::Policy;
use crate::store::ListQuery;

#[tokio::test]
async fn a_call_with_a_free_slot_is_stored_and_leased_in_one_write() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    assert_eq!(work.head.id(), ticket.id());
    assert_eq!(&*work.arguments, r#"{"text":"hello"}"#);
    let log = events(&engine, ticket.id()).await;
    assert_eq!(names(&engine, ticket.id()).await, ["submitted", "leased"]);
    assert_eq!(log[0].operation, log[1].operation, "one write");
    assert_eq!(head(&engine, ticket.id()).await.version, 1);
    let lease = head(&engine, ticket.id()).await.lease.unwrap();
    assert_eq!(lease.process, engine.process());
    assert_eq!(lease.expires_at_ms, rig.clock.now_ms() + engine.settings().lease_ttl_ms);
}

#[tokio::test]
async fn a_call_without_a_free_slot_waits_and_runs_when_one_is_free() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let _first = engine.submit(call(Policy::default())).await.unwrap();
    let running = hands.next().await;
    let mut second = engine.submit(call(Policy::default())).await.unwrap();
    assert_eq!(head(&engine, second.id()).await.state, State::Ready);
    assert!(hands.ready().is_none());
    assert!(!claim_oldest(&engine).await, "no slot is free");
    engine.complete(running.lease(), running.operation, result("one"), false).await.unwrap();
    drop(running);
    assert!(claim_oldest(&engine).await);
    let work = hands.next().await;
    assert_eq!(work.head.id(), second.id());
    assert_eq!(&*work.arguments, r#"{"text":"hello"}"#);
    engine.complete(work.lease(), work.operation, result("two"), false).await.unwrap();
    assert_eq!(soon(second.end()).await.payload, Some(result("two")));
    assert_eq!(engine.slots().waiting(), 0);
}

#[tokio::test]
async fn a_freed_slot_announces_work_although_nobody_asks() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let _first = engine.submit(call(Policy::default())).await.unwrap();
    let running = hands.next().await;
    let _second = engine.submit(call(Policy::default())).await.unwrap();
    // What was announced when the call was queued.
    soon(engine.slots().work_available()).await;
    drop(running);
    soon(engine.slots().work_available()).await;
}

/// Case A44: limit 2, queue 5, 20 calls at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_twenty_calls_at_once_two_run_five_wait_and_thirteen_are_refused() {
    let rig = Rig::new();
    let limits = UpstreamLimits { concurrency: 2, queue: 5, ..UpstreamLimits::default() };
    let (engine, mut hands) = rig.engine(limits).await;
    let submissions = (0..20).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.submit(call(Policy::default())).await })
    });
    let outcomes: Vec<_> = join_all(submissions).await.into_iter().map(|joined| joined.unwrap()).collect();
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, Err(Error::Overloaded(_)))).count();
    assert_eq!(refused, 13);
    assert_eq!(engine.slots().waiting(), 5);
    let mut running = 0;
    while hands.ready().is_some() {
        running += 1;
    }
    assert_eq!(running, 2);
    let stored = engine.store().list(ListQuery { limit: 100, ..ListQuery::default() }).await.unwrap();
    assert_eq!(stored.len(), 7, "a refused call is not stored");
}

#[tokio::test]
async fn queued_calls_run_in_the_order_of_their_arrival() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let mut tickets = Vec::new();
    for _ in 0..6 {
        tickets.push(engine.submit(call(Policy::default())).await.unwrap());
        rig.time.advance(1);
    }
    let mut order = vec![hands.next().await.head.id()];
    while claim_oldest(&engine).await {
        order.push(hands.next().await.head.id());
    }
    assert_eq!(order, tickets.iter().map(|ticket| ticket.id()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_newcomer_does_not_overtake_those_who_wait() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let _running = engine.submit(call(Policy::default())).await.unwrap();
    let waiting = engine.submit(call(Policy::default())).await.unwrap();
    drop(hands.next().await);
    rig.time.advance(1);
    let newcomer = engine.submit(call(Policy::default())).await.unwrap();
    assert_eq!(head(&engine, newcomer.id()).await.state, State::Ready);
    assert!(claim_oldest(&engine).await);
    assert_eq!(hands.next().await.head.id(), waiting.id());
}

#[tokio::test]
async fn a_call_that_waited_too_long_fails_as_never_started() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let _running = engine.submit(call(Policy::default())).await.unwrap();
    let _work = hands.next().await;
    let mut waiting = engine.submit(call(Policy::default())).await.unwrap();
    rig.time.advance(29_999);
    engine.heartbeat().await.unwrap();
    engine.settle_due().await.unwrap();
    assert_eq!(head(&engine, waiting.id()).await.state, State::Ready);
    rig.time.advance(1);
    engine.settle_due().await.unwrap();
    let end = soon(waiting.end()).await;
    assert_eq!(end.head.state, State::Failed);
    assert_eq!(end.head.error.as_ref().unwrap().code, "queue_timeout");
    assert_eq!((end.head.fencing_token, end.head.attempt), (0, 0));
    assert_eq!(engine.slots().waiting(), 0);
}

#[tokio::test]
async fn the_time_in_the_queue_no_longer_counts_once_a_call_was_started() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let _running = engine.submit(call(Policy::default())).await.unwrap();
    let waiting = engine.submit(call(Policy::default())).await.unwrap();
    drop(hands.next().await);
    assert!(claim_oldest(&engine).await);
    let work = hands.next().await;
    assert_eq!(work.head.id(), waiting.id());
    engine.release(work.lease(), work.operation).await.unwrap();
    rig.time.advance(60_000);
    engine.heartbeat().await.unwrap();
    engine.settle_due().await.unwrap();
    assert_eq!(head(&engine, waiting.id()).await.state, State::Ready);
}

#[tokio::test]
async fn a_caller_that_leaves_while_its_call_is_being_stored_stops_nothing() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let held = rig.held();
    let mut submission = Box::pin(engine.submit(call(Policy::default())));
    assert!(futures_util::poll!(&mut submission).is_pending());
    drop(submission);
    drop(held);
    let work = hands.next().await;
    assert_eq!(names(&engine, work.head.id()).await, ["submitted", "leased"]);
}

#[tokio::test]
async fn a_caller_that_leaves_while_its_call_is_being_stored_counts_as_gone() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let twin = super::rig::unkeyed(Policy::default(), Default::default());
    let held = rig.held();
    let mut submission = Box::pin(engine.submit(twin.clone()));
    assert!(futures_util::poll!(&mut submission).is_pending());
    drop(submission);
    drop(held);
    let work = hands.next().await;
    let repeat = engine.submit(twin).await.unwrap();
    assert!(repeat.attached);
    assert_eq!(repeat.id(), work.head.id());
}

#[tokio::test]
async fn a_repeat_of_a_running_call_joins_it_although_the_queue_is_full() {
    let rig = Rig::new();
    let limits = UpstreamLimits { concurrency: 1, queue: 0, ..UpstreamLimits::default() };
    let (engine, _hands) = rig.engine(limits).await;
    let first = engine.submit(keyed("a")).await.unwrap();
    let repeat = engine.submit(keyed("a")).await.unwrap();
    assert!(repeat.attached);
    assert_eq!(repeat.id(), first.id());
    assert!(matches!(engine.submit(keyed("b")).await, Err(Error::Overloaded(_))));
    let other: Call = Call { arguments: "{}".into(), ..keyed("a") };
    assert!(engine.submit(other).await.is_err(), "another call under the key is no repeat");
}

#[tokio::test]
async fn a_repeat_takes_no_place_in_the_queue() {
    let rig = Rig::new();
    let (engine, _hands) = rig.engine(at_once(1)).await;
    let _first = engine.submit(keyed("a")).await.unwrap();
    for _ in 0..3 {
        assert!(engine.submit(keyed("a")).await.unwrap().attached);
    }
    assert_eq!(engine.slots().waiting(), 0);
}

#[tokio::test]
async fn a_waiting_call_that_another_process_took_gives_its_place_back() {
    let rig = Rig::new();
    let (engine, _hands) = rig.engine(at_once(1)).await;
    let (other, mut others) = rig.engine(at_once(1)).await;
    let _running = engine.submit(call(Policy::default())).await.unwrap();
    // Nobody waits for it: only its place tells that it was queued here.
    drop(engine.submit(call(Policy::default())).await.unwrap());
    assert_eq!(engine.slots().waiting(), 1);
    assert!(claim_oldest(&other).await);
    let work = others.next().await;
    engine.start_loops(false);
    other.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    soon(async {
        while engine.slots().waiting() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_waiting_call_that_is_cancelled_gives_its_place_back() {
    let rig = Rig::new();
    let (engine, _hands) = rig.engine(at_once(1)).await;
    let _running = engine.submit(call(Policy::default())).await.unwrap();
    let mut waiting = engine.submit(call(Policy::default())).await.unwrap();
    engine.cancel(waiting.id(), order()).await.unwrap();
    assert_eq!(engine.slots().waiting(), 0);
    let end = soon(waiting.end()).await;
    assert_eq!(end.head.effect, Some(crate::model::execution::Effect::None));
}

#[tokio::test]
async fn no_more_callers_wait_than_are_permitted() {
    let rig = Rig::new();
    let settings = Settings { waiters_max: 2, ..Settings::default() };
    let (engine, _hands) = rig.engine_with(settings, Some(at_once(8))).await;
    let first = engine.submit(call(Policy::default())).await.unwrap();
    let _second = engine.submit(call(Policy::default())).await.unwrap();
    assert!(matches!(engine.submit(call(Policy::default())).await, Err(Error::Overloaded(_))));
    drop(first);
    assert!(engine.submit(call(Policy::default())).await.is_ok());
}

#[tokio::test]
async fn a_call_of_an_upstream_that_runs_elsewhere_waits_for_its_worker() {
    let rig = Rig::new();
    let (front, mut own) = rig.engine_with(Settings::default(), None).await;
    let (back, mut hands) = rig.engine(at_once(1)).await;
    let ticket = front.submit(call(Policy::default())).await.unwrap();
    assert!(own.ready().is_none());
    assert_eq!(candidates(&back).await.len(), 1);
    assert!(claim_oldest(&back).await);
    assert_eq!(hands.next().await.head.id(), ticket.id());
    assert_eq!(front.slots().waiting(), 0);
}

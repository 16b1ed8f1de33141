//! The engine closes: nothing new starts, what runs may end, and what does not end in time is given up; always in
//! bounded time.

use std::time::Duration;

use super::rig::{Rig, at_once, call, head, result, soon};
use crate::engine::Settings;
use crate::model::execution::State;
use crate::model::policy::Policy;

const LONG: Duration = Duration::from_secs(15);

#[tokio::test]
async fn closing_ends_the_loops_and_the_process_is_dead_to_others() {
    let rig = Rig::new();
    let (engine, _hands) = rig.engine(at_once(1)).await;
    let (other, _) = rig.engine(at_once(1)).await;
    engine.start_loops(true);
    soon(engine.close(Duration::ZERO)).await;
    assert_eq!(other.store().dead_processes(0).await.unwrap(), [engine.process()]);
    assert!(engine.submit(call(Policy::default())).await.is_err());
}

#[tokio::test]
async fn what_runs_may_end_within_the_grace_and_keeps_its_lease() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    engine.start_loops(true);
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let closing = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.close(LONG).await })
    };
    soon(engine.draining().cancelled()).await;
    for _ in 0..6 {
        rig.time.advance(10_000);
        soon(async {
            while head(&engine, ticket.id()).await.lease.unwrap().expires_at_ms < rig.clock.now_ms() + 10_000 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    assert!(!work.cancel.is_cancelled());
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    assert_eq!(soon(ticket.end()).await.payload, Some(result("done")));
    soon(closing).await.unwrap();
}

#[tokio::test]
async fn a_closing_engine_starts_nothing_new_but_stores_it_for_others() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(2)).await;
    let (other, _) = rig.engine(at_once(2)).await;
    let _running = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let closing = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.close(LONG).await })
    };
    soon(engine.draining().cancelled()).await;
    let late = engine.submit(call(Policy::default())).await.unwrap().id();
    assert!(hands.ready().is_none());
    assert!(engine.slots().try_take(super::rig::UPSTREAM).is_none());
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    soon(closing).await.unwrap();
    assert_eq!(head(&other, late).await.state, State::Ready);
}

#[tokio::test]
async fn closing_is_bounded_although_something_never_ends() {
    let rig = Rig::new();
    let settings = Settings { stop_grace_ms: 10, ..Settings::default() };
    let (engine, mut hands) = rig.engine_with(settings, Some(at_once(1))).await;
    let (other, _) = rig.engine(at_once(1)).await;
    engine.spawn(std::future::pending());
    let ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    soon(engine.close(Duration::ZERO)).await;
    assert!(engine.halting().is_cancelled());
    drop(work);
    other.settle_due().await.unwrap();
    let row = head(&other, ticket.id()).await;
    assert_eq!((row.state, row.error.unwrap().code.as_str()), (State::Unknown, "process_died"));
}

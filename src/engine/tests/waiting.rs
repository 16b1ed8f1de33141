//! Callers and what they learn: the end, progress, and nothing that was overtaken. Here and in another process.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::faulty::Faulty;
use super::rig::{
    Rig, UPSTREAM, at_least_once, at_once, call, candidates, claim_oldest, keyed, lost, order, rejected, result, soon,
};
use crate::engine::clock::Clock;
use crate::engine::notices::{Addressee, MESSAGE, Notice};
use crate::engine::ticket::News;
use crate::engine::waiters::Progress;
use crate::engine::{Engine, Error, Settings};
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::model::policy::Policy;
use crate::model::principal::Principal;

#[tokio::test]
async fn every_caller_learns_the_end_whether_it_came_before_or_after() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let mut first = engine.submit(call(Policy::default())).await.unwrap();
    let mut second = engine.attach(first.id(), &Principal::anonymous()).await.unwrap();
    let early = tokio::spawn(async move { soon(second.end()).await });
    tokio::task::yield_now().await;
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    let mut late = engine.attach(first.id(), &Principal::anonymous()).await.unwrap();
    assert_eq!(late.settled().unwrap().payload, Some(result("done")));
    for end in [soon(first.end()).await, early.await.unwrap(), soon(late.end()).await] {
        assert_eq!(end.head.state, State::Completed);
        assert_eq!(end.payload, Some(result("done")));
    }
}

#[tokio::test]
async fn an_end_is_read_once_however_many_come_for_it() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    let store = Faulty::around(rig.store().await);
    let (other, _hands) = rig.engine_on(store.clone(), Settings::default(), None).await;
    let ada = Principal::anonymous();
    let attached = join_all((0..16).map(|_| other.attach(ticket.id(), &ada))).await;
    for late in &attached {
        assert_eq!(late.as_ref().unwrap().settled().unwrap().payload, Some(result("done")));
    }
    assert_eq!(store.calls("payload"), 1);
}

#[tokio::test]
async fn progress_reaches_the_callers_until_the_end() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let half = Progress { progress: 0.5, total: Some(1.0), message: Some("half".into()) };
    engine.progress(work.head.id(), half.clone());
    assert!(matches!(soon(ticket.news()).await, News::Progress(progress) if progress == half));
    engine.progress(work.head.id(), half);
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    assert!(matches!(soon(ticket.news()).await, News::Settled(_)));
}

#[tokio::test]
async fn what_is_told_before_the_caller_of_a_queued_call_has_its_ticket_is_told_to_it() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    // No lane: the call waits for whoever leases it.
    let (engine, _hands) = rig.engine_on(store.clone(), Settings::default(), None).await;
    let teller = Arc::downgrade(&engine);
    store.on_submitted(move |id| {
        let notice =
            Notice { upstream: UPSTREAM.into(), to: Addressee::Execution(id), method: MESSAGE.into(), params: None };
        teller.upgrade().unwrap().tell(notice);
    });
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    assert!(matches!(soon(ticket.news()).await, News::Message(notice) if notice.method == MESSAGE));
}

#[tokio::test]
async fn a_foreign_execution_is_as_if_it_were_missing() {
    let rig = Rig::new();
    let (engine, _hands) = rig.engine(at_once(1)).await;
    let id = engine.submit(call(Policy::default())).await.unwrap().id();
    let eve = Principal { subject: "eve".into(), ..Principal::anonymous() };
    let acme = Principal { namespace: "acme".into(), ..Principal::anonymous() };
    let missing = ExecutionId::new(1, &[7; 10]);
    let text = |outcome: crate::engine::Result<crate::engine::ticket::Ticket>| match outcome {
        Err(Error::NotFound(id)) => format!("{}", Error::NotFound(id)),
        _ => panic!("it was found"),
    };
    let expected = text(engine.attach(missing, &Principal::anonymous()).await);
    for principal in [eve, acme] {
        let said = text(engine.attach(id, &principal).await);
        assert_eq!(said.replace(&id.to_string(), &missing.to_string()), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_among_many() {
    let rig = Rig::new();
    let settings = Settings { slots: 1_000, ..Settings::default() };
    let (engine, mut hands) = rig.engine_with(settings, Some(at_once(1_000))).await;
    let completer = {
        let engine = engine.clone();
        tokio::spawn(async move {
            for _ in 0..300 {
                let work = hands.next().await;
                let engine = engine.clone();
                tokio::spawn(async move {
                    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
                });
            }
        })
    };
    let callers = (0..600).map(|number| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let mut ticket = engine.submit(keyed(&format!("key-{}", number / 2))).await.unwrap();
            soon(ticket.end()).await.payload
        })
    });
    for payload in join_all(callers).await {
        assert_eq!(payload.unwrap(), Some(result("done")));
    }
    completer.await.unwrap();
    assert_eq!(engine.running.leases().len(), 0);
}

#[tokio::test]
async fn a_rejected_result_is_never_told_as_the_answer() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let mut ticket = engine.submit(call(at_least_once())).await.unwrap();
    let first = hands.next().await;
    engine.fail(first.lease(), first.operation, lost(), None).await.unwrap();
    rig.time.advance(5_000);
    assert!(claim_oldest(&engine).await);
    let second = hands.next().await;
    engine.complete(second.lease(), second.operation, result("second"), false).await.unwrap();
    engine.complete(first.lease(), engine.new_operation(), result("first"), false).await.unwrap();
    assert_eq!(rejected(&engine, ticket.id()).await.as_deref(), Some("ended"));
    assert_eq!(soon(ticket.end()).await.payload, Some(result("second")));
    let mut late = engine.attach(ticket.id(), &Principal::anonymous()).await.unwrap();
    assert_eq!(soon(late.end()).await.payload, Some(result("second")));
}

#[tokio::test]
async fn a_caller_that_comes_after_an_ordered_attempt_waits_for_that_one() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let mut first = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
    drop(work);
    assert_eq!(soon(first.end()).await.head.state, State::Unknown);
    // The first caller's answer is still being written.
    engine.retry_unknown(first.id(), order()).await.unwrap();
    let mut second = engine.attach(first.id(), &Principal::anonymous()).await.unwrap();
    assert!(second.settled().is_none());
    assert!(claim_oldest(&engine).await);
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("second"), false).await.unwrap();
    assert_eq!(soon(second.end()).await.payload, Some(result("second")));
}

#[tokio::test]
async fn the_upstreams_error_comes_with_the_end() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let failure = crate::model::decide::Failure { kind: crate::model::decide::FailureKind::RpcError, ..lost() };
    let error: crate::store::Payload = r#"{"code":-32000,"message":"no"}"#.into();
    engine.fail(work.lease(), work.operation, failure, Some(error.clone())).await.unwrap();
    let end = soon(ticket.end()).await;
    assert_eq!((end.head.state, end.payload), (State::Failed, Some(error)));
}

/// Two processes on one file, with the wall clock: what one does the other learns by looking.
async fn two() -> (Rig, std::sync::Arc<Engine>, std::sync::Arc<Engine>, super::rig::Hands) {
    let mut rig = Rig::new();
    rig.clock = Clock::System;
    let (front, _) = rig.engine_with(Settings::default(), None).await;
    let (back, hands) = rig.engine(at_once(4)).await;
    front.start_loops(false);
    back.start_loops(false);
    (rig, front, back, hands)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_learns_what_another_process_recorded() {
    let (_rig, front, back, mut hands) = two().await;
    let mut ticket = front.submit(call(Policy::default())).await.unwrap();
    assert_eq!(candidates(&back).await.len(), 1);
    assert!(claim_oldest(&back).await);
    let work = hands.next().await;
    back.complete(work.lease(), work.operation, result("elsewhere"), false).await.unwrap();
    let end = tokio::time::timeout(Duration::from_secs(2), ticket.end()).await.expect("told within 2 s");
    assert_eq!(end.payload, Some(result("elsewhere")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_in_one_process_stops_the_work_in_another_within_a_second() {
    let (_rig, front, back, mut hands) = two().await;
    let ticket = front.submit(call(Policy::default())).await.unwrap();
    assert!(claim_oldest(&back).await);
    let work = hands.next().await;
    // Whatever moment of the other process's rhythm it hits.
    for _ in 0..3 {
        back.store().check().await.unwrap();
    }
    front.cancel(ticket.id(), order()).await.unwrap();
    tokio::time::timeout(Duration::from_secs(1), work.cancel.cancelled()).await.expect("stopped within a second");
}

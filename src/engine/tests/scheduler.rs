//! The loops: whole batches, the next time to look, several schedulers on one file, retention.

use super::rig::{Rig, at_least_once, at_once, call, count, head, result, soon};
use crate::engine::{Roles, Settings};
use crate::model::execution::State;
use crate::model::policy::Policy;
use crate::store::PayloadKind;

#[tokio::test]
async fn what_does_not_fit_one_batch_is_settled_in_the_same_look() {
    let rig = Rig::new();
    let (sleeper, _own) = rig.engine(at_once(20)).await;
    let settings = Settings { scheduler_batch: 2, ..Settings::default() };
    let (engine, _hands) = rig.engine_with(settings, None).await;
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.push(sleeper.submit(call(Policy::default())).await.unwrap().id());
    }
    rig.time.advance(30_000);
    engine.settle_due().await.unwrap();
    for id in ids {
        assert_eq!(head(&engine, id).await.state, State::Unknown);
    }
}

#[tokio::test]
async fn the_next_look_is_when_something_is_due_and_at_most_an_interval_away() {
    let rig = Rig::new();
    let settings = Settings { scheduler_interval_ms: 60_000, ..Settings::default() };
    let (engine, _hands) = rig.engine_with(settings, Some(at_once(1))).await;
    let now_ms = rig.clock.now_ms();
    assert_eq!(engine.settle_due().await.unwrap(), now_ms + 60_000);
    engine.submit(call(Policy::default())).await.unwrap();
    assert_eq!(engine.settle_due().await.unwrap(), now_ms + 30_000, "the lease");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_schedulers_on_one_file_settle_everything_once() {
    let rig = Rig::new();
    let (sleeper, _own) = rig.engine(at_once(100)).await;
    let schedulers = [rig.engine(at_once(1)).await, rig.engine(at_once(1)).await, rig.engine(at_once(1)).await];
    let mut ids = Vec::new();
    for number in 0..30 {
        let policy = if number % 2 == 0 { Policy::default() } else { at_least_once() };
        ids.push(sleeper.submit(call(policy)).await.unwrap().id());
    }
    for _ in 0..2 {
        rig.time.advance(30_000);
        let looks = schedulers.iter().map(|(engine, _)| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.settle_due().await.unwrap() })
        });
        for look in futures_util::future::join_all(looks).await {
            look.unwrap();
        }
    }
    // 30 lost attempts and 15 promotions, each settled by one of them, whoever else had set out to.
    let counts: Vec<_> = schedulers.iter().map(|(engine, _)| engine.settling().counts()).collect();
    assert_eq!(counts.iter().map(|(settled, _)| settled).sum::<u64>(), 45, "{counts:?}");
    let engine = &schedulers[0].0;
    for (number, id) in ids.into_iter().enumerate() {
        let (state, name) = if number % 2 == 0 { (State::Unknown, "lost") } else { (State::Ready, "retried") };
        assert_eq!(head(engine, id).await.state, state);
        assert_eq!(count(engine, id, name).await, 1);
        assert_eq!(count(engine, id, "promoted").await, number % 2);
    }
}

#[tokio::test]
async fn schedulers_that_know_of_each_other_take_turns_and_the_first_one_leaves_nothing_over() {
    let rig = Rig::new();
    let (sleeper, _own) = rig.engine(at_once(100)).await;
    let schedulers = [rig.engine(at_once(1)).await.0, rig.engine(at_once(1)).await.0, rig.engine(at_once(1)).await.0];
    let roles = Roles { mcp: false, worker: false, scheduler: true };
    for engine in &schedulers {
        engine.clone().announce_process(roles, Vec::new()).await;
    }
    let mut order: Vec<_> = schedulers.iter().collect();
    order.sort_by_key(|engine| engine.process());
    for engine in &schedulers {
        engine.refresh_workers().await.unwrap();
    }
    let spreads: Vec<i64> = order.iter().map(|engine| engine.spread_ms()).collect();
    assert!(spreads[0] == 0 && spreads[0] < spreads[1] && spreads[1] < spreads[2], "{spreads:?}");
    for _ in 0..30 {
        sleeper.submit(call(Policy::default())).await.unwrap();
    }
    rig.time.advance(30_000);
    for engine in &order {
        engine.settle_due().await.unwrap();
    }
    let counts: Vec<_> = order.iter().map(|engine| engine.settling().counts()).collect();
    assert_eq!(counts, [(30, 0), (0, 0), (0, 0)]);
}

#[tokio::test]
async fn retention_takes_payloads_and_then_the_execution_but_never_an_unknown() {
    let rig = Rig::new();
    let settings = Settings { scheduler_interval_ms: 3_600_000, ..Settings::default() };
    let (engine, mut hands) = rig.engine_with(settings, Some(at_once(2))).await;
    let ended = engine.submit(call(Policy::default())).await.unwrap().id();
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    let unknown = engine.submit(call(Policy::default())).await.unwrap().id();
    let work = hands.next().await;
    engine.fail(work.lease(), work.operation, super::rig::lost(), None).await.unwrap();
    engine.start_loops(true);
    tokio::task::yield_now().await;
    rig.time.advance(7 * 86_400_000);
    soon(async {
        while engine.store().payload(ended, PayloadKind::Result).await.unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(head(&engine, ended).await.state, State::Completed);
    rig.time.advance(30 * 86_400_000);
    soon(async {
        while !engine.store().heads(&[ended]).await.unwrap().is_empty() {
            // The loop may have noted the time of its last turn only now.
            rig.time.advance(60_000);
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(head(&engine, unknown).await.state, State::Unknown);
}

#[tokio::test]
async fn the_scheduler_loop_settles_what_falls_due_when_the_clock_moves() {
    let rig = Rig::new();
    let (sleeper, _own) = rig.engine(at_once(1)).await;
    let (engine, _hands) = rig.engine_with(Settings::default(), None).await;
    engine.start_loops(true);
    let id = sleeper.submit(call(Policy::default())).await.unwrap().id();
    rig.time.advance(30_000);
    soon(async {
        while head(&engine, id).await.state != State::Unknown {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

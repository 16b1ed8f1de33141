//! Tasks: whose they are, the end that was shown first, and what the end of their time means for work that still runs.

use super::*;
use crate::engine::Settings;
use crate::engine::tests::rig::{Hands, Rig, at_once, call, head, keyed, lost, order, result, soon};
use crate::model::policy::Policy;

const HOUR_MS: i64 = 3_600_000;

fn wish(ttl_ms: i64) -> Wish {
    Wish { variant: TaskVariant::Extension, ttl_ms, on_expiry: OnTaskExpiry::Cancel, progress_token: None }
}

fn anonymous() -> Principal {
    Principal::anonymous()
}

/// An execution whose caller left with a task.
async fn task(engine: &Arc<Engine>, hands: &mut Hands, wish: &Wish) -> (ExecutionId, crate::engine::running::Work) {
    let ticket = engine.submit(keyed("k")).await.unwrap();
    let id = ticket.id();
    engine.open_task(id, wish).await.unwrap();
    ticket.answered();
    (id, hands.next().await)
}

#[tokio::test]
async fn a_task_is_its_owners_and_only_while_its_time_lasts() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let (id, _work) = task(&engine, &mut hands, &wish(1_000)).await;
    let (elsewhere, _hands) = rig.engine_with(Settings::default(), None).await;
    let seen = elsewhere.task(id, &anonymous()).await.unwrap().unwrap();
    assert_eq!((seen.row.ttl_ms, seen.head.state, seen.payload), (1_000, State::Leased, None));
    for foreign in
        [Principal { subject: "bob".into(), ..anonymous() }, Principal { namespace: "other".into(), ..anonymous() }]
    {
        assert!(engine.task(id, &foreign).await.unwrap().is_none());
        assert!(engine.tasks(&foreign, None, 10).await.unwrap().is_empty());
    }
    // An execution that nobody sees as a task is none.
    let other = engine.submit(call(Policy::default())).await.unwrap();
    assert!(engine.task(other.id(), &anonymous()).await.unwrap().is_none());
    assert_eq!(engine.tasks(&anonymous(), None, 10).await.unwrap().len(), 1);
    rig.time.advance(1_000);
    assert!(engine.task(id, &anonymous()).await.unwrap().is_none());
    assert!(engine.tasks(&anonymous(), None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_task_is_readable_no_longer_than_its_result_is_kept() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let (id, _work) = task(&engine, &mut hands, &wish(i64::MAX)).await;
    let kept_ms = engine.settings().retention.payloads_ms;
    assert_eq!(engine.task(id, &anonymous()).await.unwrap().unwrap().row.ttl_ms, kept_ms);
}

#[tokio::test]
async fn a_result_is_read_by_any_process() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let (id, work) = task(&engine, &mut hands, &wish(HOUR_MS)).await;
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    let (elsewhere, _hands) = rig.engine_with(Settings::default(), None).await;
    let seen = elsewhere.task(id, &anonymous()).await.unwrap().unwrap();
    assert_eq!((seen.head.state, seen.payload), (State::Completed, Some(result("done"))));
}

#[tokio::test]
async fn the_end_that_was_shown_first_stays_whatever_becomes_of_the_execution() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let (id, work) = task(&engine, &mut hands, &wish(HOUR_MS)).await;
    engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
    let first = engine.task(id, &anonymous()).await.unwrap().unwrap();
    assert_eq!(first.head.state, State::Unknown);
    rig.time.advance(5_000);
    engine.resolve(id, order(), Some((result("it took effect"), false))).await.unwrap();
    assert_eq!(head(&engine, id).await.state, State::Completed);
    let later = engine.task(id, &anonymous()).await.unwrap().unwrap();
    assert_eq!((later.payload, later.row), (None, first.row));
    let (later, first) = (&later.head, &first.head);
    assert_eq!((later.state, &later.error, later.updated_at_ms), (first.state, &first.error, first.updated_at_ms));
    assert_eq!(engine.tasks(&anonymous(), None, 10).await.unwrap()[0].head.state, State::Unknown);
}

#[tokio::test]
async fn an_unknown_that_nobody_was_shown_may_still_become_a_result() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let (id, work) = task(&engine, &mut hands, &wish(HOUR_MS)).await;
    engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
    engine.resolve(id, order(), Some((result("it took effect"), false))).await.unwrap();
    let seen = engine.task(id, &anonymous()).await.unwrap().unwrap();
    assert_eq!((seen.head.state, seen.row.shown_seq), (State::Completed, None));
}

#[tokio::test]
async fn when_its_time_is_over_work_that_still_runs_stops_and_the_task_is_forgotten() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let (id, work) = task(&engine, &mut hands, &wish(1_000)).await;
    rig.time.advance(999);
    engine.settle_due().await.unwrap();
    assert_eq!(head(&engine, id).await.state, State::Leased);
    rig.time.advance(1);
    engine.settle_due().await.unwrap();
    assert_eq!(head(&engine, id).await.state, State::Cancelled);
    assert!(work.cancel.is_cancelled());
    assert_eq!(engine.store().task(id).await.unwrap(), None);
}

#[tokio::test]
async fn a_policy_may_let_the_work_go_on_and_so_does_somebody_who_waits_for_it() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let detached = Wish { on_expiry: OnTaskExpiry::Detach, ..wish(1_000) };
    let (id, _work) = task(&engine, &mut hands, &detached).await;
    let ticket = engine.submit(call(Policy::default())).await.unwrap();
    let waited = ticket.id();
    engine.open_task(waited, &wish(1_000)).await.unwrap();
    rig.time.advance(1_000);
    engine.settle_due().await.unwrap();
    assert_eq!(head(&engine, id).await.state, State::Leased);
    assert_eq!(engine.store().task(id).await.unwrap(), None);
    assert_eq!(head(&engine, waited).await.state, State::Leased);
    assert!(engine.task(waited, &anonymous()).await.unwrap().is_none());
    ticket.answered();
    // The mark of who waited is written with the next write.
    engine.store().check().await.unwrap();
    engine.settle_due().await.unwrap();
    assert_eq!(head(&engine, waited).await.state, State::Cancelled);
}

#[tokio::test]
async fn tasks_that_are_waited_for_do_not_stand_in_the_way_of_others() {
    let rig = Rig::new();
    let settings = Settings { scheduler_batch: 1, ..Settings::default() };
    let (engine, mut hands) = rig.engine_with(settings, Some(at_once(4))).await;
    let ticket = engine.submit(call(Policy::default())).await.unwrap();
    engine.open_task(ticket.id(), &wish(1_000)).await.unwrap();
    let _waited = hands.next().await;
    rig.time.advance(1);
    let (id, _work) = task(&engine, &mut hands, &wish(1_000)).await;
    rig.time.advance(1_000);
    soon(engine.settle_due()).await.unwrap();
    assert_eq!(head(&engine, id).await.state, State::Cancelled);
    assert_eq!(head(&engine, ticket.id()).await.state, State::Leased);
}

#[tokio::test]
async fn who_follows_an_execution_hears_of_changes_here_and_in_another_process() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let (id, work) = task(&engine, &mut hands, &wish(HOUR_MS)).await;
    let (elsewhere, _hands) = rig.engine_with(Settings::default(), None).await;
    let (here, there) = (engine.follow(vec![id]), elsewhere.follow(vec![id]));
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    soon(here.change()).await;
    soon(async {
        while head(&elsewhere, id).await.state != State::Completed {
            there.change().await;
        }
    })
    .await;
}

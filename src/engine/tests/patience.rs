//! A scheduler that was kept from its database, could not say that it lives, or has just begun, leaves alone what others
//! hold until they had the time to say that they live. Only where a database has the clock: a file tells by itself who
//! lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::ready;

use super::faulty::Faulty;
use super::rig::{Rig, at_least_once, at_once, call, head};
use crate::engine::clock::{Clock, wall};
use crate::engine::scheduler::Settling;
use crate::engine::{Engine, Settings};
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::model::policy::Policy;

#[test]
fn patience_lasts_until_its_time_and_is_never_cut_short() {
    let settling = Settling::default();
    assert!(!settling.is_patient(0));
    settling.be_patient(5_000);
    settling.be_patient(3_000);
    assert!(settling.is_patient(4_999));
    assert!(!settling.is_patient(5_000));
    settling.be_patient(8_000);
    assert!(settling.is_patient(7_999));
}

/// A scheduler whose clock is that of its store, and what another process holds beside it under a lease that has run out.
async fn beside_an_expired_lease(rig: &mut Rig) -> (Arc<Faulty>, Arc<Engine>, ExecutionId) {
    let ask = || ready(Ok(Some(wall().as_millis() as i64))).boxed();
    rig.clock = Clock::aligned(&ask).await.unwrap();
    let settings = Settings { lease_ttl_ms: 1, ..Settings::default() };
    let (holder, _hands) = rig.engine_with(settings, Some(at_once(1))).await;
    let id = holder.submit(call(Policy::default())).await.unwrap().id();
    let store = Faulty::around(rig.store().await);
    let (scheduler, _own) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(1))).await;
    let expires_at_ms = head(&scheduler, id).await.lease.unwrap().expires_at_ms;
    rig.clock.sleep_until(expires_at_ms + 1).await;
    (store, scheduler, id)
}

/// Sooner than which every database answers.
fn in_time() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(3_600))
}

#[tokio::test]
async fn a_scheduler_that_hears_late_from_its_database_takes_nothing_from_others_for_a_while() {
    let mut rig = Rig::new();
    let (_, scheduler, id) = beside_an_expired_lease(&mut rig).await;
    let due = scheduler.submit(call(at_least_once())).await.unwrap().id();
    // It had wanted to know sooner.
    let looked_ms = rig.clock.now_ms();
    let next_ms = scheduler.settle_due_by(Some(Instant::now() - Duration::from_millis(1))).await.unwrap();
    assert_eq!(head(&scheduler, id).await.state, State::Leased, "whoever holds it may live");
    assert!(next_ms >= looked_ms + Settings::default().scheduler_interval_ms, "it looks again after a while");
    // Not at the next look either, although that one is answered at once.
    scheduler.settle_due_by(in_time()).await.unwrap();
    assert_eq!(head(&scheduler, id).await.state, State::Leased);
    assert_eq!(head(&scheduler, due).await.state, State::Leased, "it runs here");
    assert_eq!(scheduler.settling().counts(), (0, 0));
}

#[tokio::test]
async fn a_scheduler_that_could_not_say_that_it_lives_takes_nothing_from_others_for_a_while() {
    let mut rig = Rig::new();
    let (store, scheduler, id) = beside_an_expired_lease(&mut rig).await;
    for ago in [Duration::ZERO, Duration::from_millis(2_999)] {
        store.was_silent(ago);
        scheduler.settle_due_by(in_time()).await.unwrap();
        assert_eq!(head(&scheduler, id).await.state, State::Leased, "nobody could, and the others may a moment later");
    }
    store.was_silent(Duration::from_secs(3));
    scheduler.settle_due_by(in_time()).await.unwrap();
    assert_eq!(head(&scheduler, id).await.state, State::Unknown);
}

#[tokio::test]
async fn a_scheduler_that_hears_in_time_settles_at_once() {
    let mut rig = Rig::new();
    let (_, scheduler, id) = beside_an_expired_lease(&mut rig).await;
    scheduler.settle_due_by(in_time()).await.unwrap();
    assert_eq!(head(&scheduler, id).await.state, State::Unknown);
}

#[tokio::test]
async fn on_a_file_nobody_has_to_wait() {
    let rig = Rig::new();
    let (holder, _hands) = rig.engine(at_once(1)).await;
    let id = holder.submit(call(Policy::default())).await.unwrap().id();
    let (scheduler, _own) = rig.engine(at_once(1)).await;
    rig.time.advance(30_000);
    scheduler.settle_due_by(Some(Instant::now() - Duration::from_millis(1))).await.unwrap();
    assert_eq!(head(&scheduler, id).await.state, State::Unknown);
}

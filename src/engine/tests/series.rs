//! Numbers over time against the log: before a minute is kept and after, for whom, and what leaves no event.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::faulty::Faulty;
use super::rig::{Hands, Rig, at_least_once, at_once, call, claim_oldest, keyed, lost, result};
use crate::engine::series::{Range, Series};
use crate::engine::submit::Call;
use crate::engine::{Engine, Settings};
use crate::model::policy::Policy;
use crate::model::principal::Principal;
use crate::model::tally::{MINUTE_MS, Tally, count};
use crate::store::ListQuery;
use crate::store::series::Whose;

fn by(subject: &str, namespace: &str, call: Call) -> Call {
    let principal = Principal { subject: subject.into(), namespace: namespace.into(), ..Principal::anonymous() };
    Call { principal, ..call }
}

fn whose(namespace: Option<&str>, principal: Option<&str>) -> Whose {
    Whose { namespace: namespace.map(str::to_owned), principal: principal.map(str::to_owned) }
}

/// What the log says of everything, added up.
async fn log(engine: &Engine) -> Tally {
    let heads = engine.store().list(ListQuery { limit: 1_000, ..ListQuery::default() }).await.unwrap();
    let mut minutes = BTreeMap::new();
    for head in heads {
        let log = engine.store().events(head.id(), 0, 1_000).await.unwrap();
        count(&log, i64::MIN, i64::MAX, &mut minutes);
    }
    minutes.values().fold(Tally::default(), |mut sum, tally| {
        sum.add(tally);
        sum
    })
}

/// A call that completes, one that is lost and recovered, one that becomes unknown, each in a minute of its own.
async fn three_calls(rig: &Rig, engine: &Arc<Engine>, hands: &mut Hands) {
    engine.submit(by("ann", "acme", call(Policy::default()))).await.unwrap();
    let work = hands.next().await;
    rig.time.advance(250);
    engine.complete(work.lease(), work.operation, result("made"), false).await.unwrap();
    rig.time.advance(MINUTE_MS);
    engine.submit(by("bob", "acme", call(at_least_once()))).await.unwrap();
    let work = hands.next().await;
    engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
    rig.time.advance(MINUTE_MS);
    engine.settle_due().await.unwrap();
    assert!(claim_oldest(engine).await);
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("made"), false).await.unwrap();
    rig.time.advance(MINUTE_MS);
    engine.submit(by("eve", "other", call(Policy::default()))).await.unwrap();
    let work = hands.next().await;
    engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
    rig.time.advance(1_000);
}

async fn series(engine: &Engine, range: Range, whose: &Whose) -> Series {
    engine.series(range, whose).await.unwrap()
}

#[tokio::test]
async fn numbers_are_those_of_the_log_before_and_after_their_minutes_are_kept() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(8)).await;
    three_calls(&rig, &engine, &mut hands).await;
    let all = Whose::default();
    let before = series(&engine, Range::QuarterHour, &all).await;
    assert_eq!(before.sum, log(&engine).await);
    let sum = &before.sum;
    assert_eq!((sum.submitted, sum.attempts, sum.lost, sum.recovered, sum.unknown), (3, 4, 2, 1, 1));
    assert_eq!(sum.latency.count(), 2);
    assert_eq!(before.steps.iter().filter(|step| !step.is_empty()).count(), 4);
    rig.time.advance(2 * MINUTE_MS);
    engine.close_minutes().await.unwrap();
    assert!(engine.store().series_closed_until().await.unwrap() > rig.clock.now_ms() - 2 * MINUTE_MS);
    for range in Range::ALL {
        let after = series(&engine, range, &all).await;
        assert_eq!(after.sum, before.sum, "{range:?}");
        let mut added = Tally::default();
        after.steps.iter().for_each(|step| added.add(step));
        assert_eq!(added, after.sum);
    }
    // A result that comes later lies in a later minute, of an execution from an earlier one.
    let unknown = engine.store().list(ListQuery { limit: 1, ..ListQuery::default() }).await.unwrap();
    let lease = crate::store::LeaseRef { id: unknown[0].id(), fencing_token: unknown[0].fencing_token };
    engine.complete(lease, engine.new_operation(), result("late"), false).await.unwrap();
    rig.time.advance(1_000);
    let late = series(&engine, Range::QuarterHour, &all).await;
    assert_eq!((late.sum.completed, late.sum.recovered), (3, 2));
    assert_eq!(late.sum, log(&engine).await);
}

#[tokio::test]
async fn everybody_sees_the_numbers_of_what_one_may_see() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(8)).await;
    three_calls(&rig, &engine, &mut hands).await;
    for kept in [false, true] {
        if kept {
            rig.time.advance(2 * MINUTE_MS);
            engine.close_minutes().await.unwrap();
        }
        for (namespace, principal, submitted, lost) in [
            (None, None, 3, 2),
            (Some("acme"), None, 2, 1),
            (Some("other"), None, 1, 1),
            (Some("acme"), Some("ann"), 1, 0),
            (Some("acme"), Some("bob"), 1, 1),
            (Some("other"), Some("ann"), 0, 0),
            (Some("nowhere"), None, 0, 0),
        ] {
            let sum = series(&engine, Range::Hour, &whose(namespace, principal)).await.sum;
            assert_eq!((sum.submitted, sum.lost), (submitted, lost), "{namespace:?} {principal:?} {kept}");
        }
    }
}

#[tokio::test]
async fn repeats_are_counted_where_they_are_answered_and_written_down() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    let (engine, mut hands) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(8))).await;
    let (other, _) = rig.engine(at_once(8)).await;
    let ticket = engine.submit(by("ann", "acme", keyed("k"))).await.unwrap();
    let work = hands.next().await;
    engine.submit(by("ann", "acme", keyed("k"))).await.unwrap();
    engine.complete(work.lease(), work.operation, result("made"), false).await.unwrap();
    for asked in [&engine, &engine, &other] {
        assert_eq!(asked.submit(by("ann", "acme", keyed("k"))).await.unwrap().id(), ticket.id());
    }
    // Another process has not written its own down yet; and what could not be written is written later.
    store.fail("put_series", 1);
    assert!(engine.series(Range::Hour, &Whose::default()).await.is_err());
    assert_eq!(series(&engine, Range::Hour, &Whose::default()).await.sum.repeats, 3);
    series(&other, Range::Hour, &Whose::default()).await;
    for whose in [Whose::default(), whose(Some("acme"), Some("ann"))] {
        assert_eq!(series(&engine, Range::Hour, &whose).await.sum.repeats, 4);
    }
    assert_eq!(series(&engine, Range::Hour, &whose(Some("acme"), Some("bob"))).await.sum.repeats, 0);
    rig.time.advance(3 * MINUTE_MS);
    engine.close_minutes().await.unwrap();
    engine.submit(by("ann", "acme", keyed("k"))).await.unwrap();
    assert_eq!(series(&other, Range::Hour, &Whose::default()).await.sum.repeats, 4);
    assert_eq!(series(&engine, Range::Hour, &Whose::default()).await.sum.repeats, 5);
}

#[tokio::test]
async fn two_schedulers_and_a_long_pause_count_every_minute_once() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(8)).await;
    let (other, _) = rig.engine(at_once(8)).await;
    three_calls(&rig, &engine, &mut hands).await;
    rig.time.advance(20 * 60 * MINUTE_MS);
    let (one, two) = tokio::join!(engine.close_minutes(), other.close_minutes());
    one.and(two).unwrap();
    for asked in [&engine, &other] {
        assert_eq!(series(asked, Range::Day, &Whose::default()).await.sum, log(&engine).await);
    }
    // After a day nothing of it is told, and nothing of it is kept.
    rig.time.advance(6 * 60 * MINUTE_MS);
    engine.close_minutes().await.unwrap();
    assert!(series(&engine, Range::Day, &Whose::default()).await.sum.is_empty());
    let query = crate::store::series::SeriesQuery { until_ms: i64::MAX, ..Default::default() };
    assert_eq!(engine.store().series(query).await.unwrap(), []);
}

#[tokio::test]
async fn whoever_asks_again_pays_for_what_is_new_only() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    let (engine, mut hands) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(8))).await;
    three_calls(&rig, &engine, &mut hands).await;
    let all = Whose::default();
    let begun_ms = rig.clock.now_ms();
    assert_eq!(series(&engine, Range::Hour, &all).await.sum, log(&engine).await);
    assert!(
        store.counted_from().iter().any(|since_ms| *since_ms < begun_ms - 2 * MINUTE_MS),
        "the first look is whole"
    );
    for _ in 0..5 {
        rig.time.advance(1_500);
        engine.submit(by("ann", "acme", call(Policy::default()))).await.unwrap();
        let work = hands.next().await;
        rig.time.advance(20);
        engine.complete(work.lease(), work.operation, result("made"), false).await.unwrap();
        assert_eq!(series(&engine, Range::Hour, &all).await.sum, log(&engine).await);
        let from = store.counted_from();
        assert!(!from.is_empty() && from.iter().all(|since_ms| *since_ms >= rig.clock.now_ms() - 3_000), "{from:?}");
    }
    // A look that fails leaves nothing half counted; and a minute that is kept meanwhile is not told twice.
    rig.time.advance(1_500);
    store.fail("ended_in", 1);
    assert!(engine.series(Range::Hour, &all).await.is_err());
    assert_eq!(series(&engine, Range::Hour, &all).await.sum, log(&engine).await);
    rig.time.advance(MINUTE_MS + 45_000);
    engine.close_minutes().await.unwrap();
    store.counted_from();
    assert_eq!(series(&engine, Range::Hour, &all).await.sum, log(&engine).await);
    let (from, closed_ms) = (store.counted_from(), engine.store().series_closed_until().await.unwrap());
    assert!(from.iter().all(|since_ms| *since_ms >= closed_ms), "{from:?} after {closed_ms}");
}

#[tokio::test]
async fn counting_rests_in_proportion_to_its_work_and_less_when_it_lags() {
    for (keeps_up, rests) in [(true, 9), (false, 1)] {
        let rig = Rig::new();
        let store = Faulty::around(rig.store().await);
        let (engine, mut hands) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(8))).await;
        // The day before is counted.
        engine.close_minutes().await.unwrap();
        three_calls(&rig, &engine, &mut hands).await;
        rig.time.advance(2 * MINUTE_MS);
        store.reads_take(rig.time.clone(), 10);
        let (begun_ms, reads) = (rig.clock.now_ms(), store.calls("ended_in"));
        let counting = tokio::spawn({
            let engine = engine.clone();
            async move { engine.close_with_rests(keeps_up).await }
        });
        while !counting.is_finished() {
            rig.time.advance(1);
            tokio::task::yield_now().await;
        }
        counting.await.unwrap().unwrap();
        let reads = (store.calls("ended_in") - reads) as i64;
        let took_ms = rig.clock.now_ms() - begun_ms;
        assert!(reads >= 5 && took_ms >= reads * 10 * (1 + rests), "{reads} reads took {took_ms} ms");
        rig.time.advance(1_000);
        assert_eq!(series(&engine, Range::Hour, &Whose::default()).await.sum, log(&engine).await);
        // Whoever stops waits for no rest.
        engine.stopping().cancel();
        engine.close_with_rests(true).await.unwrap();
    }
}

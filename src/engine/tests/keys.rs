//! Idempotency keys: one execution per key, conflicts, repeats from a reader.

use futures_util::future::join_all;

use super::faulty::Faulty;
use super::rig::{Rig, at_once, count, events, keyed, result, soon};
use crate::engine::submit::Call;
use crate::engine::{Error, Settings};
use crate::model::principal::Principal;
use crate::store::ListQuery;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_callers_of_one_key_get_one_run_and_equal_answers() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(8)).await;
    let callers = (0..64).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let mut ticket = engine.submit(keyed("order-1")).await.unwrap();
            let end = soon(ticket.end()).await;
            (ticket.id(), end.payload, ticket.attached)
        })
    });
    let callers: Vec<_> = callers.collect();
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("made"), false).await.unwrap();
    let answers: Vec<_> = join_all(callers).await.into_iter().map(|joined| joined.unwrap()).collect();
    assert!(answers.iter().all(|(id, payload, _)| *id == work.head.id() && *payload == Some(result("made"))));
    assert_eq!(answers.iter().filter(|(.., attached)| !attached).count(), 1);
    assert!(hands.ready().is_none());
    let stored = engine.store().list(ListQuery { limit: 100, ..ListQuery::default() }).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(count(&engine, work.head.id(), "leased").await, 1);
}

#[tokio::test]
async fn a_key_stands_for_one_call_and_one_principal() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(8)).await;
    let first = engine.submit(keyed("k")).await.unwrap();
    let work = hands.next().await;
    let other = Call { arguments: r#"{"text":"bye"}"#.into(), ..keyed("k") };
    let foreign = Call { principal: Principal { subject: "eve".into(), ..Principal::anonymous() }, ..keyed("k") };
    for _ in 0..2 {
        let conflict = engine.submit(other.clone()).await.err().unwrap();
        assert!(matches!(conflict, Error::Conflict(Some(id)) if id == first.id()));
        assert!(matches!(engine.submit(foreign.clone()).await, Err(Error::Conflict(None))));
        // Once more after the end, when plain repeats are answered by a reader.
        engine.complete(work.lease(), work.operation, result("made"), false).await.unwrap();
    }
    // And when they are answered from memory.
    for _ in 0..2 {
        assert_eq!(engine.submit(keyed("k")).await.unwrap().id(), first.id());
    }
    assert!(matches!(engine.submit(other).await, Err(Error::Conflict(Some(id))) if id == first.id()));
    assert!(matches!(engine.submit(foreign).await, Err(Error::Conflict(None))));
    assert!(hands.ready().is_none());
    assert_eq!(engine.slots().waiting(), 0);
}

#[tokio::test]
async fn a_key_in_another_namespace_is_another_key() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(8)).await;
    let first = engine.submit(keyed("k")).await.unwrap();
    let principal = Principal { namespace: "acme".into(), ..Principal::anonymous() };
    let second = engine.submit(Call { principal, ..keyed("k") }).await.unwrap();
    assert_ne!(first.id(), second.id());
    assert_eq!((hands.next().await.head.id(), hands.next().await.head.id()), (first.id(), second.id()));
}

#[tokio::test]
async fn a_repeat_after_the_end_is_answered_by_a_reader() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    let (engine, mut hands) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(1))).await;
    let first = engine.submit(keyed("k")).await.unwrap();
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("made"), false).await.unwrap();
    drop(first);
    let before = events(&engine, work.head.id()).await;
    let mut repeat = engine.submit(keyed("k")).await.unwrap();
    assert!(repeat.attached);
    assert_eq!(soon(repeat.end()).await.payload, Some(result("made")));
    assert_eq!(store.calls("submit"), 1, "the repeat wrote nothing");
    assert_eq!(events(&engine, work.head.id()).await, before);
}

#[tokio::test]
async fn a_key_is_free_again_after_its_time() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let first = engine.submit(keyed("k")).await.unwrap();
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("made"), false).await.unwrap();
    drop(work);
    rig.time.advance(86_400_000 - 1);
    assert_eq!(engine.submit(keyed("k")).await.unwrap().id(), first.id());
    rig.time.advance(1);
    let again = engine.submit(keyed("k")).await.unwrap();
    assert!(!again.attached);
    assert_ne!(again.id(), first.id());
}

#[tokio::test]
async fn how_many_keys_are_remembered_changes_no_outcome() {
    for known_keys_max in [0, 1, 1_000] {
        let rig = Rig::new();
        let settings = Settings { known_keys_max, ..Settings::default() };
        let (engine, mut hands) = rig.engine_with(settings, Some(at_once(8))).await;
        for round in 0..3 {
            for key in ["a", "b", "c"] {
                let mut ticket = engine.submit(keyed(key)).await.unwrap();
                assert_eq!(ticket.attached, round > 0, "{known_keys_max} remembered, round {round}, key {key}");
                if round == 0 {
                    let work = hands.next().await;
                    engine.complete(work.lease(), work.operation, result(key), false).await.unwrap();
                }
                assert_eq!(soon(ticket.end()).await.payload, Some(result(key)));
            }
        }
        assert!(hands.ready().is_none());
    }
}

//! Calls without a key: who takes a repeat, by who waits and what was told.

use std::sync::Arc;

use super::rig::{Hands, Rig, at_once, result, soon, unkeyed};
use crate::engine::submit::Call;
use crate::engine::ticket::Ticket;
use crate::engine::{Engine, Settings};
use crate::model::policy::{Identity, Policy, Unkeyed};
use crate::model::principal::Principal;

struct Scene {
    rig: Rig,
    engine: Arc<Engine>,
    hands: Hands,
}

impl Scene {
    async fn new() -> Scene {
        Scene::with(Settings { departure_grace_ms: 1, ..Settings::default() }).await
    }

    async fn with(settings: Settings) -> Scene {
        let rig = Rig::new();
        let (engine, hands) = rig.engine_with(settings, Some(at_once(16))).await;
        Scene { rig, engine, hands }
    }

    async fn submit(&self, call: &Call) -> Ticket {
        self.engine.submit(call.clone()).await.unwrap()
    }

    async fn end_one(&mut self, text: &str) {
        let work = self.hands.next().await;
        self.engine.complete(work.lease(), work.operation, result(text), false).await.unwrap();
    }
}

fn note() -> Call {
    unkeyed(Policy::default(), Identity::default())
}

fn with(identity: Identity) -> Call {
    unkeyed(Policy::default(), identity)
}

#[tokio::test]
async fn two_callers_that_stay_have_two_runs() {
    let mut scene = Scene::new().await;
    let first = scene.submit(&note()).await;
    let second = scene.submit(&note()).await;
    assert_ne!(first.id(), second.id());
    assert!(!second.attached);
    let runs = [scene.hands.next().await.head.id(), scene.hands.next().await.head.id()];
    assert_eq!(runs, [first.id(), second.id()]);
}

#[tokio::test]
async fn a_repeat_attaches_to_the_call_its_caller_left() {
    let mut scene = Scene::new().await;
    let first = scene.submit(&note()).await.id();
    let mut repeat = scene.submit(&note()).await;
    assert!(repeat.attached);
    assert_eq!(repeat.id(), first);
    scene.end_one("once").await;
    assert_eq!(soon(repeat.end()).await.payload, Some(result("once")));
    assert!(scene.hands.ready().is_none());
}

#[tokio::test]
async fn an_end_that_nobody_was_told_goes_to_the_repeat_within_the_window() {
    let mut scene = Scene::new().await;
    let first = scene.submit(&note()).await.id();
    scene.end_one("once").await;
    scene.rig.time.advance(599_999);
    let mut repeat = scene.submit(&note()).await;
    assert_eq!(repeat.id(), first);
    assert_eq!(soon(repeat.end()).await.payload, Some(result("once")));
    drop(repeat);
    scene.rig.time.advance(1);
    assert_ne!(scene.submit(&note()).await.id(), first);
}

#[tokio::test]
async fn a_call_whose_end_was_told_is_new_when_it_comes_again() {
    let mut scene = Scene::new().await;
    let mut first = scene.submit(&note()).await;
    scene.end_one("once").await;
    soon(first.end()).await;
    let id = first.id();
    first.answered();
    let again = scene.submit(&note()).await;
    assert!(!again.attached);
    assert_ne!(again.id(), id);
}

#[tokio::test]
async fn a_told_unknown_is_not_taken_over_either() {
    let mut scene = Scene::new().await;
    let mut first = scene.submit(&note()).await;
    let work = scene.hands.next().await;
    scene.engine.fail(work.lease(), work.operation, super::rig::lost(), None).await.unwrap();
    soon(first.end()).await;
    let id = first.id();
    first.answered();
    assert_ne!(scene.submit(&note()).await.id(), id);
}

#[tokio::test]
async fn a_handle_leads_the_repeat_back_while_it_runs_and_after_its_end() {
    let mut scene = Scene::new().await;
    let first = scene.submit(&note()).await;
    let id = first.id();
    first.handle_given();
    let repeat = scene.submit(&note()).await;
    assert_eq!(repeat.id(), id);
    repeat.handle_given();
    scene.end_one("once").await;
    assert_eq!(scene.submit(&note()).await.id(), id);
}

#[tokio::test]
async fn an_answer_that_was_asked_for_counts_as_told() {
    let scene = Scene::new().await;
    let first = scene.submit(&note()).await;
    let id = first.id();
    // The caller wanted the id at once, and has it.
    first.answered();
    assert_ne!(scene.submit(&note()).await.id(), id);
}

#[tokio::test]
async fn a_read_only_call_is_taken_over_while_it_runs_or_when_a_handle_was_given() {
    let mut scene = Scene::new().await;
    let call = with(Identity { read_only: true, ..Identity::default() });
    let first = scene.submit(&call).await.id();
    let repeat = scene.submit(&call).await;
    assert_eq!(repeat.id(), first, "running");
    drop(repeat);
    scene.end_one("old").await;
    let second = scene.submit(&call).await;
    assert_ne!(second.id(), first, "an answer ages");
    let id = second.id();
    second.handle_given();
    scene.end_one("new").await;
    assert_eq!(scene.submit(&call).await.id(), id, "a handle was given");
}

#[tokio::test]
async fn coalesced_calls_share_a_run_although_both_callers_stay() {
    let mut scene = Scene::new().await;
    let call = with(Identity { unkeyed: Unkeyed::Coalesce, ..Identity::default() });
    let mut first = scene.submit(&call).await;
    let mut second = scene.submit(&call).await;
    assert_eq!(first.id(), second.id());
    scene.end_one("once").await;
    assert_eq!(soon(first.end()).await.payload, soon(second.end()).await.payload);
    assert!(scene.hands.ready().is_none());
}

#[tokio::test]
async fn without_recognition_every_call_is_new() {
    let scene = Scene::new().await;
    let call = with(Identity { unkeyed: Unkeyed::None, ..Identity::default() });
    let first = scene.submit(&call).await.id();
    assert_ne!(scene.submit(&call).await.id(), first);
}

#[tokio::test]
async fn only_the_same_caller_with_the_same_arguments_attaches() {
    let scene = Scene::new().await;
    let first = scene.submit(&note()).await.id();
    let eve = Principal { subject: "eve".into(), ..Principal::anonymous() };
    let acme = Principal { namespace: "acme".into(), ..Principal::anonymous() };
    let others = [
        Call { caller: "session-2".into(), ..note() },
        Call { arguments: "{}".into(), ..note() },
        Call { principal: eve, ..note() },
        Call { principal: acme, ..note() },
        Call { key: Some("k".into()), ..note() },
    ];
    for call in others {
        let ticket = scene.submit(&call).await;
        assert_ne!(ticket.id(), first);
        // The next one may not attach to this one for want of a twin either.
        ticket.answered();
    }
}

#[tokio::test]
async fn a_repeat_that_comes_just_before_its_caller_leaves_attaches() {
    let scene = Scene::with(Settings { departure_grace_ms: 15_000, ..Settings::default() }).await;
    let first = scene.submit(&note()).await;
    let id = first.id();
    let engine = scene.engine.clone();
    let repeat = tokio::spawn(async move { engine.submit(note()).await.unwrap() });
    tokio::task::yield_now().await;
    drop(first);
    assert_eq!(soon(repeat).await.unwrap().id(), id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_caller_that_leaves_is_always_followed() {
    let mut scene = Scene::with(Settings { departure_grace_ms: 15_000, ..Settings::default() }).await;
    for round in 0..200 {
        let call = Call { arguments: format!(r#"{{"round":{round}}}"#).into(), ..note() };
        let first = scene.submit(&call).await;
        let (id, engine) = (first.id(), scene.engine.clone());
        let repeat = tokio::spawn(async move { engine.submit(call).await.unwrap() });
        let departure = tokio::spawn(async move { drop(first) });
        let repeat = soon(repeat).await.unwrap();
        departure.await.unwrap();
        assert_eq!(repeat.id(), id, "round {round}");
        scene.end_one("once").await;
        repeat.answered();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_repeats_after_one_departure_one_attaches_and_one_is_new() {
    let scene = Scene::with(Settings { departure_grace_ms: 100, ..Settings::default() }).await;
    for round in 0..20 {
        let call = Call { arguments: format!(r#"{{"round":{round}}}"#).into(), ..note() };
        let first = scene.submit(&call).await;
        let id = first.id();
        let repeat = || {
            let (engine, call) = (scene.engine.clone(), call.clone());
            tokio::spawn(async move { engine.submit(call).await.unwrap() })
        };
        let repeats = (repeat(), repeat());
        drop(first);
        let (one, two) = (soon(repeats.0).await.unwrap(), soon(repeats.1).await.unwrap());
        let attached = [&one, &two].into_iter().filter(|ticket| ticket.id() == id).count();
        assert_eq!(attached, 1, "round {round}");
        assert_ne!(one.id(), two.id());
        one.answered();
        two.answered();
    }
}

#[tokio::test]
async fn a_dead_process_waits_for_nobody() {
    let rig = Rig::new();
    let settings = Settings { departure_grace_ms: 1, ..Settings::default() };
    let (front, _) = rig.engine_with(settings.clone(), None).await;
    let (other, _hands) = rig.engine_with(settings, Some(at_once(4))).await;
    let first = front.submit(note()).await.unwrap();
    let second = other.submit(note()).await.unwrap();
    assert_ne!(second.id(), first.id(), "its process lives");
    front.store().close().await;
    assert_eq!(other.submit(note()).await.unwrap().id(), first.id());
}

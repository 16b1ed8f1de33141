//! Leases of which nobody said that they were granted: given back where they are there, forgotten where they are not, left
//! alone where somebody else holds the execution by now.

use std::sync::Arc;

use super::faulty::Faulty;
use super::rig::{Hands, Rig, at_once, call, claim_oldest, head, keyed, names, result};
use crate::engine::{Engine, Settings};
use crate::model::decide::Answer;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::model::policy::Policy;
use crate::store::ListQuery;

struct Scene {
    rig: Rig,
    store: Arc<Faulty>,
    engine: Arc<Engine>,
    hands: Hands,
}

impl Scene {
    async fn new() -> Scene {
        let rig = Rig::new();
        let store = Faulty::around(rig.store().await);
        let (engine, hands) = rig.engine_on(store.clone(), Settings::default(), Some(at_once(1))).await;
        Scene { rig, store, engine, hands }
    }

    /// A call that is stored and leased, of which its caller and this process hear nothing.
    async fn unheard(&self, key: &str) -> ExecutionId {
        self.store.leave_unheard("submit", 1);
        let error = self.engine.submit(keyed(key)).await.err().expect("nobody heard of it");
        assert_eq!(error.code(), "store_unavailable");
        let head = self.newest().await;
        assert_eq!((head.state, head.lease.map(|lease| lease.process)), (State::Leased, Some(self.engine.process())));
        head.ident.id
    }

    async fn newest(&self) -> Head {
        let query = ListQuery { limit: 1, ..ListQuery::default() };
        self.engine.store().list(query).await.unwrap().pop().expect("an execution")
    }
}

#[tokio::test]
async fn a_lease_of_which_nobody_heard_is_given_back_unstarted_and_the_call_runs_once() {
    let mut scene = Scene::new().await;
    let id = scene.unheard("one").await;
    assert!(scene.hands.ready().is_none(), "what nobody heard of is not started");
    assert!(!scene.engine.doubts.are_settled());
    scene.engine.settle_doubts().await.unwrap();
    assert!(scene.engine.doubts.are_settled());
    assert_eq!(head(&scene.engine, id).await.state, State::Ready);
    assert_eq!(names(&scene.engine, id).await, ["submitted", "leased", "released"]);
    // Looked for once more, nothing is given back that is somebody's.
    scene.engine.settle_doubts().await.unwrap();
    assert!(claim_oldest(&scene.engine).await);
    let work = scene.hands.next().await;
    let answer = scene.engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    assert_eq!((answer, work.head.id()), (Answer::Accepted, id));
    assert_eq!(names(&scene.engine, id).await, ["submitted", "leased", "released", "leased", "completed"]);
}

#[tokio::test]
async fn a_claim_of_which_nobody_heard_is_given_back_too() {
    let mut scene = Scene::new().await;
    let id = scene.unheard("one").await;
    scene.engine.settle_doubts().await.unwrap();
    scene.store.leave_unheard("apply", 1);
    let candidate = super::rig::candidates(&scene.engine).await.pop().unwrap();
    let slot = scene.engine.slots().try_take(super::rig::UPSTREAM).unwrap();
    assert!(scene.engine.claim(&candidate, slot).await.is_err());
    assert_eq!(head(&scene.engine, id).await.state, State::Leased);
    assert!(!scene.engine.doubts.are_settled() && scene.hands.ready().is_none());
    scene.engine.settle_doubts().await.unwrap();
    assert_eq!(head(&scene.engine, id).await.state, State::Ready);
    assert!(scene.engine.slots().try_take(super::rig::UPSTREAM).is_some(), "its slot came back");
}

#[tokio::test]
async fn a_write_that_never_happened_is_looked_for_as_long_as_it_may_come() {
    let scene = Scene::new().await;
    scene.store.fail("submit", 1);
    assert!(scene.engine.submit(call(Policy::default())).await.is_err());
    let ttl_ms = Settings::default().lease_ttl_ms;
    for past_ms in [0, ttl_ms, ttl_ms - 1] {
        scene.rig.time.advance(past_ms);
        scene.engine.settle_doubts().await.unwrap();
        assert!(!scene.engine.doubts.are_settled(), "a commit that waits may come still");
    }
    scene.rig.time.advance(1);
    scene.engine.settle_doubts().await.unwrap();
    assert!(scene.engine.doubts.are_settled());
}

#[tokio::test]
async fn a_lease_that_ran_out_and_is_somebody_elses_now_is_left_to_them() {
    let scene = Scene::new().await;
    let id = scene.unheard("one").await;
    let (other, _hands) = scene.rig.engine(at_once(1)).await;
    // It took so long that somebody else settled it.
    scene.rig.time.advance(30_000);
    other.settle_due().await.unwrap();
    assert_eq!(head(&other, id).await.state, State::Unknown);
    scene.engine.settle_doubts().await.unwrap();
    assert!(scene.engine.doubts.are_settled());
    assert_eq!(names(&scene.engine, id).await, ["submitted", "leased", "lost"]);
}

#[tokio::test]
async fn doubts_stay_while_the_store_can_not_be_asked() {
    let scene = Scene::new().await;
    let id = scene.unheard("one").await;
    for method in ["heads", "apply"] {
        scene.store.fail(method, 1);
        assert!(scene.engine.settle_doubts().await.is_err(), "{method}");
        assert!(!scene.engine.doubts.are_settled(), "{method}");
    }
    assert_eq!(head(&scene.engine, id).await.state, State::Leased);
    scene.engine.settle_doubts().await.unwrap();
    assert!(scene.engine.doubts.are_settled());
    assert_eq!(head(&scene.engine, id).await.state, State::Ready);
}

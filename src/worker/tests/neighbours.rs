//! Two processes on one PostgreSQL: each hears what concerns it, at once and without a look that nobody asked for.
//! Nothing is found by polling here: each store looks once an hour.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Run, Scene, Stage, UPSTREAM};
use crate::engine::tests::faulty::Faulty;
use crate::engine::tests::rig::{Rig, at_once, call, order, result, soon};
use crate::engine::{Roles, Settings};
use crate::model::execution::State;
use crate::model::policy::Policy;
use crate::model::principal::Principal;
use crate::store::postgres::tests::cluster::Cluster;
use crate::store::postgres::{PostgresSettings, PostgresStore};
use crate::store::{Store, WorkerChange};
use crate::worker::Worker;
use crate::worker::executor::Executor;

const NEVER_MS: u64 = 3_600_000;

/// A process with one slot.
async fn process(cluster: &Cluster) -> Scene {
    let settings = PostgresSettings { poll_interval_ms: NEVER_MS, ..PostgresSettings::for_tests() };
    let store = Faulty::around(Arc::new(PostgresStore::open(&cluster.url(), &settings).await.unwrap()));
    let settings = Settings { worker_poll_ms: NEVER_MS, ..Settings::default() };
    let rig = Rig::new();
    let engine = rig.bare_engine(store.clone(), settings, Some(at_once(1))).await;
    let roles = Roles { mcp: true, worker: true, scheduler: false };
    engine.clone().announce_process(roles, vec![UPSTREAM.into()]).await;
    let (sender, runs) = mpsc::unbounded_channel();
    let executor: Arc<dyn Executor> = Arc::new(Stage { runs: sender, stubborn: false });
    Worker::new(engine.clone(), HashMap::from([(UPSTREAM.to_owned(), executor)])).start();
    Scene { rig, engine, store, runs }
}

/// Waits until `one` hears what `other` says.
async fn hears(one: &Scene, other: &Scene) {
    let heard = async {
        loop {
            other.store.change_workers(Vec::new(), WorkerChange::Gone, 0).await.unwrap();
            if one.store.news(50).await.workers {
                return;
            }
        }
    };
    soon(heard).await;
}

/// Two that know and hear each other, and have looked for what was there before.
async fn neighbours() -> Option<(Cluster, Scene, Scene)> {
    let cluster = Cluster::start().await?;
    let (one, other) = (process(&cluster).await, process(&cluster).await);
    hears(&one, &other).await;
    hears(&other, &one).await;
    for scene in [&one, &other] {
        scene.engine.refresh_workers().await.unwrap();
        assert!(scene.engine.has_peers());
        scene.engine.start_loops(false);
    }
    Some((cluster, one, other))
}

impl Scene {
    /// A call that this process runs and answers.
    async fn serves_one(&mut self) {
        let mut ticket = self.submit(call(Policy::default())).await;
        self.run().await.end("done");
        assert_eq!(soon(ticket.end()).await.payload, Some(result("done")));
    }

    async fn close(self) {
        soon(self.engine.close(Duration::ZERO)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_one_process_runs_and_answers_make_no_other_look_and_work_for_it_makes_it_look_once() {
    let Some((_cluster, mut one, mut other)) = neighbours().await else { return };
    // Each has looked once when it began.
    soon(async {
        while other.store.calls("candidates") == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let looks = other.store.calls("candidates");
    for _ in 0..50 {
        one.serves_one().await;
    }
    // It has no slot for the second of these.
    let running = one.submit(call(Policy::default())).await;
    let first: Run = one.run().await;
    let mut queued = one.submit(call(Policy::default())).await;
    let second = other.run().await;
    assert_eq!((first.job.id, second.job.id), (running.id(), queued.id()));
    assert_eq!(other.store.calls("candidates") - looks, 1, "only for what it took");
    second.end("elsewhere");
    assert_eq!(
        soon(queued.end()).await.payload,
        Some(result("elsewhere")),
        "whoever has queued a call waits for its end"
    );
    first.end("here");
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_elsewhere_hears_of_the_end_and_whoever_runs_a_call_of_its_cancelling() {
    let Some((_cluster, mut one, other)) = neighbours().await else { return };
    for round in 0..3 {
        let here = one.submit(call(Policy::default())).await;
        let run = one.run().await;
        let mut there = other.engine.attach(here.id(), &Principal::anonymous()).await.unwrap();
        let observing = other.engine.observe(here.id(), Duration::from_secs(60));
        let ending = async {
            if round < 2 {
                run.end("done");
                return State::Completed;
            }
            other.engine.cancel(here.id(), order()).await.unwrap();
            soon(run.job.cancel.cancelled()).await;
            State::Cancelled
        };
        let (observed, state) = tokio::join!(async { soon(observing).await.unwrap().unwrap() }, ending);
        assert_eq!(observed.state, state);
        assert_eq!(soon(there.end()).await.head.state, state);
    }
    one.close().await;
    other.close().await;
}

//! Cases about who is told of commits: everything that is in the log, once, in its order, and nothing else.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Ground;
use super::scene::{Failure, Scene, Verdict, holds, same};
use crate::model::decide::Command;
use crate::model::event::Event;
use crate::model::execution::State;
use crate::model::id::{ExecutionId, OperationId};
use crate::store::{Committed, Observer, SubmitOutcome};

/// Keeps what it is told.
#[derive(Default)]
struct Told {
    committed: Mutex<Vec<Committed>>,
    writes: Mutex<usize>,
}

impl Observer for Told {
    fn committed(&self, all: &[Committed]) {
        self.committed.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(all);
    }

    fn transaction(&self, writes: usize, _: Duration) {
        *self.writes.lock().unwrap_or_else(PoisonError::into_inner) += writes;
    }
}

impl Told {
    /// What was told of an execution, each event with its write.
    fn of(&self, id: ExecutionId) -> Vec<(OperationId, i64, Event)> {
        let committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner);
        let of = committed.iter().filter(|committed| committed.id == id);
        of.flat_map(|one| one.events.iter().map(|event| (one.operation, one.at_ms, event.clone()))).collect()
    }

    fn was(&self, id: ExecutionId) -> Vec<Option<State>> {
        let committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner);
        committed.iter().filter(|committed| committed.id == id).map(|committed| committed.was).collect()
    }
}

async fn same_as_logged(scene: &Scene, told: &Told, id: ExecutionId) -> Verdict {
    let logged = scene.events(id).await?;
    let logged: Vec<_> = logged.into_iter().map(|record| (record.operation, record.at_ms, record.event)).collect();
    same!(told.of(id), logged);
    Ok(())
}

pub(super) async fn what_is_committed_is_told_once_in_its_order(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "observing").await?;
    let told = Arc::new(Told::default());
    scene.store.observe(told.clone());
    scene.store.observe(Arc::new(Told::default()));

    // A call that is leased at once, completes, and is completed again by a worker that heard nothing.
    let mut submit = scene.keyed("k", "{}");
    submit.submission.lease = Some(scene.lease_request());
    let id = scene.new_execution(submit.clone()).await?.id();
    scene.store.submit(submit).await?;
    scene.now_ms += 5;
    let complete = scene.apply(id, Command::Release { fencing_token: 1 });
    scene.run_apply(complete.clone()).await?;
    scene.run_apply(complete).await?;
    scene.lease(id).await?;
    scene.complete(id, 2, "{}").await?;
    scene.complete(id, 2, "{}").await?;
    // Too late, another call under its key, and the same call: an event, an event, none.
    scene.complete(id, 1, "{}").await?;
    let other = scene.keyed("k", r#"{"other": 1}"#);
    holds!(matches!(scene.store.submit(other).await?, SubmitOutcome::Conflict(_)));
    let same = scene.keyed("k", "{}");
    holds!(matches!(scene.store.submit(same).await?, SubmitOutcome::Existing(_)));
    same_as_logged(&scene, &told, id).await?;
    let was = [None, Some(State::Leased), Some(State::Ready), Some(State::Leased)];
    same!(told.was(id)[..4], was[..]);

    // Many at once share commits, and each is told of.
    let calls: Vec<_> = (0..20).map(|number| scene.call(&format!(r#"{{"n": {number}}}"#))).collect();
    let ids: Vec<ExecutionId> = calls.iter().map(|call| call.submission.ident.id).collect();
    let stored = futures_util::future::join_all(calls.into_iter().map(|call| scene.store.submit(call))).await;
    for (id, stored) in ids.iter().zip(stored) {
        stored?;
        same_as_logged(&scene, &told, *id).await?;
    }
    let writes = *told.writes.lock().unwrap_or_else(PoisonError::into_inner);
    if writes < 29 {
        return Err(Failure(format!("{writes} writes were told of")));
    }

    // What another process commits, that one hears of.
    let mut another = scene.another(ground).await?;
    let before = told.of(ids[0]).len();
    another.run(ids[0], Command::Lease(another.lease_request())).await?;
    same!(told.of(ids[0]).len(), before);
    Ok(())
}

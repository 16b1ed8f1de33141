//! Cases about workers: their rows, when a remote one counts as dead, and what its tools keep between attempts.

use super::Ground;
use super::scene::{Failure, Scene, Verdict, form, holds, same};
use crate::model::decide::{Answer, Command, LeaseRequest};
use crate::model::event::ExpiryCause;
use crate::model::execution::State;
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::{
    Keep, KeepOutcome, Kept, LeaseKey, LeaseRef, Progressed, Retention, WorkerChange, WorkerKind, WorkerRow,
};

const TTL_MS: i64 = 30_000;

/// A remote worker that is heard of now.
fn remote(scene: &mut Scene) -> WorkerRow {
    WorkerRow {
        id: scene.process_id(),
        name: "billing-7".into(),
        namespace: scene.namespace.clone(),
        principal: "ann".into(),
        kind: WorkerKind::Remote,
        slots: 8,
        sdk: Some("python/0.1.0".into()),
        tools: r#"[{"name":"charge", "definition":{"name":"charge","inputSchema":{}}}]"#.into(),
        lease_key: LeaseKey([7; 32]),
        registered_at_ms: scene.now_ms,
        last_seen_at_ms: scene.now_ms,
        silent_at_ms: scene.now_ms + TTL_MS,
        draining: false,
        gone_at_ms: None,
    }
}

/// The rows of this case alone: other cases may share the database.
async fn rows(scene: &Scene) -> Result<Vec<WorkerRow>, Failure> {
    let seen = scene.store.workers(None).await?;
    let rows = seen.map(|seen| seen.rows).unwrap_or_default();
    Ok(rows.into_iter().filter(|row| row.namespace == scene.namespace).collect())
}

async fn leased_by(scene: &mut Scene, worker: ProcessId) -> Result<ExecutionId, Failure> {
    let mut submit = scene.repeatable("{}");
    submit.submission.lease =
        Some(LeaseRequest { worker: "billing-7".into(), process: worker, ttl_ms: TTL_MS, takes_over: None });
    Ok(scene.new_execution(submit).await?.id())
}

async fn is_dead(scene: &Scene, worker: ProcessId) -> Result<bool, Failure> {
    Ok(scene.store.dead_processes(scene.now_ms).await?.contains(&worker))
}

pub(super) async fn a_worker_registers_again_under_its_first_key(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "register").await?;
    let first = remote(&mut scene);
    same!(scene.store.put_worker(first.clone()).await?, Some(first.clone()));
    scene.now_ms += 5;
    let again = WorkerRow {
        name: "billing-8".into(),
        slots: 2,
        tools: "[]".into(),
        lease_key: LeaseKey([9; 32]),
        registered_at_ms: scene.now_ms,
        last_seen_at_ms: scene.now_ms,
        silent_at_ms: scene.now_ms + TTL_MS,
        ..first.clone()
    };
    let stored = WorkerRow { lease_key: first.lease_key.clone(), ..again.clone() };
    same!(scene.store.put_worker(again.clone()).await?, Some(stored.clone()));
    // Neither another principal nor another namespace gets the row.
    same!(scene.store.put_worker(WorkerRow { principal: "bob".into(), ..again.clone() }).await?, None);
    same!(scene.store.put_worker(WorkerRow { namespace: "elsewhere".into(), ..again }).await?, None);
    same!(rows(&scene).await?, [stored]);
    Ok(())
}

pub(super) async fn workers_are_read_again_only_when_something_changed(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "changes").await?;
    let worker = remote(&mut scene);
    scene.store.put_worker(worker.clone()).await?;
    let seen = form!(scene.store.workers(None).await?, Some(seen) => seen);
    let alive = WorkerChange::Seen { silent_at_ms: scene.now_ms + 2 * TTL_MS };
    let nobody = scene.process_id();
    same!(scene.store.change_workers(vec![worker.id, nobody], alive, scene.now_ms + 1).await?, 1);
    holds!(scene.store.workers(Some(seen.change)).await?.is_none());
    same!(scene.store.change_workers(vec![worker.id], WorkerChange::Draining, scene.now_ms + 2).await?, 1);
    let drained = form!(scene.store.workers(Some(seen.change)).await?, Some(seen) => seen);
    holds!(drained.change > seen.change);
    let row = form!(rows(&scene).await?.pop(), Some(row) => row);
    same!((row.draining, row.last_seen_at_ms), (true, scene.now_ms + 1));
    same!(row.silent_at_ms, scene.now_ms + 2 * TTL_MS);
    same!(scene.store.change_workers(vec![worker.id], WorkerChange::Gone, scene.now_ms + 3).await?, 1);
    // What is gone is not changed any more, and offers nothing.
    same!(scene.store.change_workers(vec![worker.id], alive, scene.now_ms + 4).await?, 0);
    same!(scene.store.change_workers(vec![worker.id], WorkerChange::Gone, scene.now_ms + 5).await?, 0);
    let row = form!(rows(&scene).await?.pop(), Some(row) => row);
    same!((row.gone_at_ms, &*row.tools), (Some(scene.now_ms + 3), "[]"));
    // Another process of the database sees the same.
    let other = scene.another(ground).await?;
    same!(rows(&other).await?, [row]);
    Ok(())
}

pub(super) async fn a_silent_remote_worker_is_dead_and_remembered_for_a_day(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "silent").await?;
    let worker = remote(&mut scene);
    scene.store.put_worker(worker.clone()).await?;
    let id = leased_by(&mut scene, worker.id).await?;
    scene.now_ms += TTL_MS - 1;
    holds!(!is_dead(&scene, worker.id).await?);
    let alive = WorkerChange::Seen { silent_at_ms: scene.now_ms + TTL_MS };
    scene.store.change_workers(vec![worker.id], alive, scene.now_ms).await?;
    scene.now_ms += TTL_MS - 1;
    holds!(!is_dead(&scene, worker.id).await?);
    scene.now_ms += 1;
    holds!(is_dead(&scene, worker.id).await?);
    let due = scene.store.due(&[worker.id], scene.now_ms, 100).await?;
    holds!(due.expired.iter().any(|head| head.id() == id));
    let died = Command::Expire { fencing_token: 1, cause: ExpiryCause::ProcessDied };
    same!(scene.run(id, died).await?.head.state, State::Scheduled);
    scene.store.bury_process(worker.id).await?;
    holds!(!is_dead(&scene, worker.id).await?);
    let row = form!(rows(&scene).await?.pop(), Some(row) => row);
    same!((row.gone_at_ms, &row.tools), (Some(scene.now_ms), &worker.tools));
    let retention = Retention { payloads_ms: i64::MAX / 4, executions_ms: i64::MAX / 4, batch: 10 };
    scene.store.prune(retention, scene.now_ms + 86_399_999).await?;
    same!(rows(&scene).await?.len(), 1);
    scene.store.prune(retention, scene.now_ms + 86_400_000).await?;
    same!(rows(&scene).await?.len(), 0);
    scene.check_row(id).await
}

pub(super) async fn a_worker_that_left_is_dead_while_it_holds_leases(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "left").await?;
    let worker = remote(&mut scene);
    scene.store.put_worker(worker.clone()).await?;
    let id = leased_by(&mut scene, worker.id).await?;
    scene.store.change_workers(vec![worker.id], WorkerChange::Gone, scene.now_ms).await?;
    holds!(is_dead(&scene, worker.id).await?);
    let died = Command::Expire { fencing_token: 1, cause: ExpiryCause::ProcessDied };
    scene.run(id, died).await?;
    holds!(!is_dead(&scene, worker.id).await?);
    // It may come back.
    scene.store.put_worker(worker.clone()).await?;
    let row = form!(rows(&scene).await?.pop(), Some(row) => row);
    same!(row.gone_at_ms, None);
    Ok(())
}

fn step(id: ExecutionId, fencing_token: i64, name: &str, result: &str) -> Keep {
    let what = Kept::Step { name: name.into(), result: result.into(), steps_max: 2 };
    Keep { lease: LeaseRef { id, fencing_token }, what, now_ms: 0 }
}

pub(super) async fn a_step_is_stored_once_by_whoever_holds_the_lease(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "steps").await?;
    let worker = remote(&mut scene);
    let id = leased_by(&mut scene, worker.id).await?;
    let exact = r#"{"id": 7.0, "big":12345678901234567890}"#;
    same!(scene.store.keep(step(id, 1, "reserve", exact)).await?, KeepOutcome::Stored);
    same!(scene.store.keep(step(id, 1, "reserve", "2")).await?, KeepOutcome::Earlier(exact.into()));
    same!(scene.store.keep(step(id, 2, "pay", "2")).await?, KeepOutcome::Refused(Answer::Stale));
    let died = Command::Expire { fencing_token: 1, cause: ExpiryCause::ProcessDied };
    scene.run(id, died).await?;
    same!(scene.store.keep(step(id, 1, "pay", "2")).await?, KeepOutcome::Refused(Answer::Stale));
    scene.now_ms += 60_000;
    same!(scene.lease(id).await?.fencing_token, 2);
    same!(scene.store.keep(step(id, 1, "pay", "2")).await?, KeepOutcome::Refused(Answer::Stale));
    same!(scene.store.keep(step(id, 2, "reserve", "3")).await?, KeepOutcome::Earlier(exact.into()));
    same!(scene.store.keep(step(id, 2, "pay", "null")).await?, KeepOutcome::Stored);
    same!(scene.store.keep(step(id, 2, "third", "4")).await?, KeepOutcome::Full);
    let mut steps = scene.store.progressed(id).await?.steps;
    steps.sort_by(|(one, _), (other, _)| one.cmp(other));
    same!(steps, [("pay".to_owned(), "null".into()), ("reserve".to_owned(), exact.into())]);
    scene.complete(id, 2, "1").await?;
    same!(scene.store.keep(step(id, 2, "pay", "2")).await?, KeepOutcome::Refused(Answer::Ended));
    let unknown = scene.execution_id();
    same!(scene.store.keep(step(unknown, 1, "pay", "2")).await?, KeepOutcome::Refused(Answer::Stale));
    // No step is an event.
    scene.check_row(id).await
}

pub(super) async fn the_newest_checkpoint_is_kept_and_goes_with_the_payloads(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "checkpoint").await?;
    let worker = remote(&mut scene);
    let id = leased_by(&mut scene, worker.id).await?;
    let keep = |body: &str, fencing_token| {
        let what = Kept::Checkpoint(body.into());
        Keep { lease: LeaseRef { id, fencing_token }, what, now_ms: 0 }
    };
    same!(scene.store.keep(keep(r#"{"row": 1}"#, 1)).await?, KeepOutcome::Stored);
    same!(scene.store.keep(keep(r#"{"row": 2}"#, 1)).await?, KeepOutcome::Stored);
    same!(scene.store.keep(keep("3", 9)).await?, KeepOutcome::Refused(Answer::Stale));
    same!(scene.store.keep(step(id, 1, "reserve", "1")).await?, KeepOutcome::Stored);
    let kept = scene.store.progressed(id).await?;
    same!((kept.checkpoint.as_deref(), kept.steps.len()), (Some(r#"{"row": 2}"#), 1));
    scene.complete(id, 1, "1").await?;
    scene.now_ms += 1_000;
    let retention = Retention { payloads_ms: 1_000, executions_ms: 10_000, batch: 10 };
    scene.store.prune(retention, scene.now_ms).await?;
    same!(scene.store.progressed(id).await?, Progressed::default());
    scene.check_row(id).await
}

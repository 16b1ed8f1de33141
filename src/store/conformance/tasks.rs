//! Cases about executions that are seen as tasks: their time, the end that was shown first, whose they are.

use super::Ground;
use super::scene::{Failure, Scene, Verdict, holds, same};
use crate::model::decide::Command;
use crate::model::event::ExpiryCause;
use crate::model::execution::{Head, State};
use crate::model::policy::OnTaskExpiry;
use crate::store::{Retention, TaskQuery, TaskRow, TaskVariant};

fn row(scene: &Scene, head: &Head, ttl_ms: i64) -> TaskRow {
    TaskRow {
        id: head.id(),
        namespace: head.ident.namespace.clone(),
        principal: head.ident.principal.clone(),
        variant: TaskVariant::Extension,
        ttl_ms,
        created_at_ms: scene.now_ms,
        on_expiry: OnTaskExpiry::Cancel,
        shown_seq: None,
        progress_token: None,
    }
}

async fn execution(scene: &mut Scene, arguments: &str) -> Result<Head, Failure> {
    let submit = scene.call(arguments);
    scene.new_execution(submit).await
}

async fn unknown(scene: &mut Scene) -> Result<Head, Failure> {
    let head = execution(scene, "{}").await?;
    scene.lease(head.id()).await?;
    let lost = Command::Expire { fencing_token: 1, cause: ExpiryCause::ProcessDied };
    let head = scene.run(head.id(), lost).await?.head;
    same!(head.state, State::Unknown);
    Ok(head)
}

pub(super) async fn a_task_is_kept_with_its_time(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "task").await?;
    let head = execution(&mut scene, "{}").await?;
    same!(scene.store.task(head.id()).await?, None);
    let mut task = row(&scene, &head, 1_000);
    task.variant = TaskVariant::Experimental;
    task.on_expiry = OnTaskExpiry::Detach;
    task.progress_token = Some("\"p\"".into());
    same!(scene.store.open_task(task.clone()).await?, task);
    let other = scene.another(ground).await?;
    same!(other.store.task(head.id()).await?, Some(task));
    scene.check_row(head.id()).await
}

pub(super) async fn a_task_asked_for_again_lives_longer_and_one_that_is_over_starts_anew(
    ground: &dyn Ground,
) -> Verdict {
    let mut scene = Scene::open(ground, "task-again").await?;
    let head = execution(&mut scene, "{}").await?;
    let first = scene.store.open_task(row(&scene, &head, 1_000)).await?;
    // A shorter wish takes nothing away, a longer one counts from now.
    scene.now_ms += 400;
    same!(scene.store.open_task(row(&scene, &head, 100)).await?, first);
    let longer = scene.store.open_task(row(&scene, &head, 1_000)).await?;
    same!(longer, TaskRow { ttl_ms: 1_400, ..first });
    scene.now_ms += 1_000;
    let anew = TaskRow { on_expiry: OnTaskExpiry::Detach, ..row(&scene, &head, 500) };
    same!(scene.store.open_task(anew.clone()).await?, anew);
    Ok(())
}

pub(super) async fn the_end_that_was_shown_first_is_kept(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "task-shown").await?;
    let head = unknown(&mut scene).await?;
    let (id, seq) = (head.id(), head.next_seq - 1);
    same!(scene.store.show_task(id, seq).await?, None);
    scene.store.open_task(row(&scene, &head, 1_000)).await?;
    same!(scene.store.show_task(id, seq).await?.and_then(|task| task.shown_seq), Some(seq));
    // A late result changes the execution, not what was shown.
    scene.complete(id, 1, "{}").await?;
    same!(scene.head(id).await?.state, State::Completed);
    same!(scene.store.show_task(id, seq + 1).await?.and_then(|task| task.shown_seq), Some(seq));
    let again = scene.store.open_task(row(&scene, &head, 1_000)).await?;
    same!(again.shown_seq, Some(seq));
    scene.now_ms += 1_000;
    let anew = scene.store.open_task(row(&scene, &head, 1_000)).await?;
    same!(anew.shown_seq, None);
    scene.check_row(id).await
}

pub(super) async fn an_end_that_has_moved_on_is_not_kept(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "task-moved").await?;
    let head = unknown(&mut scene).await?;
    scene.store.open_task(row(&scene, &head, 1_000)).await?;
    scene.complete(head.id(), 1, "{}").await?;
    let shown = scene.store.show_task(head.id(), head.next_seq - 1).await?;
    same!(shown.map(|task| task.shown_seq), Some(None));
    Ok(())
}

pub(super) async fn tasks_are_listed_by_owner_newest_first(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "task-list").await?;
    let mut ids = Vec::new();
    for n in 0..5 {
        scene.now_ms += 1;
        let head = execution(&mut scene, &format!(r#"{{"n":{n}}}"#)).await?;
        scene.store.open_task(row(&scene, &head, 1_000)).await?;
        ids.insert(0, head.id());
    }
    let foreign = execution(&mut scene, "{}").await?;
    scene.store.open_task(TaskRow { principal: "bob".into(), ..row(&scene, &foreign, 1_000) }).await?;
    let query = TaskQuery {
        namespace: scene.namespace.clone(),
        principal: "ann".into(),
        before: None,
        now_ms: scene.now_ms,
        limit: 3,
    };
    let list = |rows: Vec<TaskRow>| rows.into_iter().map(|task| task.id).collect::<Vec<_>>();
    same!(list(scene.store.tasks(query.clone()).await?), ids[..3]);
    let next = TaskQuery { before: Some(ids[2]), ..query.clone() };
    same!(list(scene.store.tasks(next).await?), ids[3..]);
    // The oldest is over a millisecond before the next.
    let later = TaskQuery { now_ms: scene.now_ms - 4 + 1_000, limit: 10, ..query.clone() };
    same!(list(scene.store.tasks(later).await?), ids[..4]);
    let elsewhere = TaskQuery { namespace: "elsewhere".into(), ..query };
    holds!(scene.store.tasks(elsewhere).await?.is_empty());
    Ok(())
}

pub(super) async fn tasks_that_are_over_are_found_and_forgotten(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "task-over").await?;
    let short = execution(&mut scene, r#"{"n":1}"#).await?;
    let long = execution(&mut scene, r#"{"n":2}"#).await?;
    scene.store.open_task(row(&scene, &short, 1_000)).await?;
    scene.store.open_task(row(&scene, &long, 2_000)).await?;
    let namespace = scene.namespace.clone();
    let own = |rows: Vec<TaskRow>| -> Vec<_> {
        rows.into_iter().filter(|task| task.namespace == namespace).map(|task| task.id).collect()
    };
    holds!(own(scene.store.expired_tasks(scene.now_ms + 999, 100).await?).is_empty());
    scene.now_ms += 1_000;
    same!(own(scene.store.expired_tasks(scene.now_ms, 100).await?), vec![short.id()]);
    same!(own(scene.store.expired_tasks(scene.now_ms + 1_000, 100).await?), vec![short.id(), long.id()]);
    holds!(!scene.store.close_task(long.id(), scene.now_ms).await?);
    holds!(scene.store.close_task(short.id(), scene.now_ms).await?);
    holds!(!scene.store.close_task(short.id(), scene.now_ms).await?);
    same!(scene.store.task(short.id()).await?, None);
    holds!(scene.store.task(long.id()).await?.is_some());
    Ok(())
}

pub(super) async fn a_task_goes_with_its_execution(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "task-pruned").await?;
    let submit = scene.call("{}");
    let head = scene.completed(submit, "1").await?;
    scene.store.open_task(row(&scene, &head, 1_000_000)).await?;
    scene.now_ms += 1_000;
    let retention = Retention { payloads_ms: 1, executions_ms: 1, batch: 100 };
    scene.store.prune(retention, scene.now_ms).await?;
    holds!(scene.store.heads(&[head.id()]).await?.is_empty());
    same!(scene.store.task(head.id()).await?, None);
    Ok(())
}

//! Cases about commands on one execution: each one's effect on the row and the log, fencing, repetition.

use super::Ground;
use super::scene::{Scene, Verdict, form, holds, same};
use crate::model::decide::{Answer, Command};
use crate::model::execution::State;
use crate::store::PayloadKind;

pub(super) async fn a_lease_and_its_result_are_recorded(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "complete").await?;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    let leased = scene.lease(id).await?;
    same!((leased.state, leased.fencing_token, leased.attempt), (State::Leased, 1, 1));
    same!(scene.head(id).await?, leased);
    scene.now_ms += 5;
    let applied = scene.complete(id, 1, r#"{"content": []}"#).await?;
    same!(applied.answer, Answer::Accepted);
    same!((applied.head.state, applied.head.ended_at_ms), (State::Completed, Some(scene.now_ms)));
    same!(scene.head(id).await?, applied.head);
    same!(scene.event_names(id).await?, ["submitted", "leased", "completed"]);
    let result = scene.store.payload(id, PayloadKind::Result).await?;
    same!(result.as_deref(), Some(r#"{"content": []}"#));
    scene.check_row(id).await
}

pub(super) async fn an_unknown_execution_answers_nothing(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "missing").await?;
    let id = scene.execution_id();
    let apply = scene.apply(id, Command::Resume);
    holds!(scene.store.apply(apply).await?.is_none());
    holds!(scene.store.heads(&[id]).await?.is_empty());
    holds!(scene.events(id).await?.is_empty());
    same!(scene.store.payload(id, PayloadKind::Arguments).await?, None);
    Ok(())
}

pub(super) async fn a_command_repeated_by_its_operation_answers_as_applied(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "repeated-apply").await?;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    let request = scene.lease_request();
    let apply = scene.apply(id, Command::Lease(request));
    let first = scene.run_apply(apply.clone()).await?;
    let again = scene.run_apply(apply).await?;
    form!(again.answer, Answer::Leased { fencing_token: 1, attempt: 1 } => ());
    same!(again.head, first.head);
    let release = scene.apply(id, Command::Release { fencing_token: 1 });
    scene.run_apply(release.clone()).await?;
    let again = scene.run_apply(release).await?;
    same!(again.answer, Answer::Accepted);
    same!(scene.event_names(id).await?, ["submitted", "leased", "released"]);
    scene.check_row(id).await
}

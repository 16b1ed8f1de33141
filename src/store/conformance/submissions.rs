//! Cases about storing a call: new, leased at once, delayed; keys, conflicts, repetition.

use super::Ground;
use super::scene::{Scene, Verdict, form, holds, same};
use crate::model::execution::State;
use crate::store::{KeyScope, PayloadKind, SubmitOutcome};

pub(super) async fn a_new_call_is_stored_with_its_events_and_payloads(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "new-call").await?;
    let mut submit = scene.call(r#"{"b": 1.0, "a":"\u00e9"}"#);
    submit.meta = Some(r#"{"x/y": null}"#.into());
    let (ident, operation) = (submit.submission.ident.clone(), submit.operation);
    let head = scene.new_execution(submit).await?;
    same!(head.ident, ident);
    same!(head.state, State::Ready);
    same!(head.waiter, Some(scene.process));
    same!(scene.head(ident.id).await?, head);
    same!(scene.event_names(ident.id).await?, ["submitted"]);
    same!(scene.events(ident.id).await?[0].operation, operation);
    let arguments = scene.store.payload(ident.id, PayloadKind::Arguments).await?;
    same!(arguments.as_deref(), Some(r#"{"b": 1.0, "a":"\u00e9"}"#));
    let meta = scene.store.payload(ident.id, PayloadKind::Meta).await?;
    same!(meta.as_deref(), Some(r#"{"x/y": null}"#));
    same!(scene.store.payload(ident.id, PayloadKind::Result).await?, None);
    scene.check_row(ident.id).await
}

pub(super) async fn a_call_can_be_stored_already_leased(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "submit-and-lease").await?;
    let mut submit = scene.call("{}");
    submit.submission.lease = Some(scene.lease_request());
    let head = scene.new_execution(submit).await?;
    same!(head.state, State::Leased);
    same!((head.fencing_token, head.attempt), (1, 1));
    same!(head.lease.as_ref().map(|lease| lease.expires_at_ms), Some(scene.now_ms + 30_000));
    same!(scene.head(head.id()).await?, head);
    same!(scene.event_names(head.id()).await?, ["submitted", "leased"]);
    scene.check_row(head.id()).await
}

pub(super) async fn a_delayed_call_is_scheduled(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "delayed").await?;
    let mut submit = scene.call("{}");
    submit.submission.run_at_ms = Some(scene.now_ms + 1_000);
    submit.submission.lease = Some(scene.lease_request());
    let head = scene.new_execution(submit).await?;
    same!((head.state, head.run_at_ms), (State::Scheduled, scene.now_ms + 1_000));
    same!(scene.event_names(head.id()).await?, ["submitted"]);
    scene.check_row(head.id()).await
}

pub(super) async fn the_same_key_and_arguments_find_the_same_execution(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "join").await?;
    let submit = scene.keyed("k", r#"{"n":1}"#);
    let first = scene.new_execution(submit).await?;
    let submit = scene.keyed("k", r#"{ "n": 1.0 }"#);
    let again = form!(scene.store.submit(submit).await?, SubmitOutcome::Existing(head) => head);
    same!(*again, first);
    let token = scene.lease(first.id()).await?.fencing_token;
    let ended = scene.complete(first.id(), token, r#"{"ok":true}"#).await?.head;
    let submit = scene.keyed("k", r#"{"n":1}"#);
    let after = form!(scene.store.submit(submit).await?, SubmitOutcome::Existing(head) => head);
    same!(*after, ended);
    same!(scene.event_names(first.id()).await?, ["submitted", "leased", "completed"]);
    scene.check_row(first.id()).await
}

pub(super) async fn the_same_key_with_other_arguments_is_a_conflict(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "conflict").await?;
    let submit = scene.keyed("k", r#"{"n":9007199254740992}"#);
    let first = scene.new_execution(submit).await?;
    let submit = scene.keyed("k", r#"{"n":9007199254740993}"#);
    let other = submit.submission.ident.id;
    let id = form!(scene.store.submit(submit.clone()).await?, SubmitOutcome::Conflict(id) => id);
    same!(id, Some(first.id()));
    let id = form!(scene.store.submit(submit).await?, SubmitOutcome::Conflict(id) => id);
    same!(id, Some(first.id()));
    holds!(scene.store.heads(&[other]).await?.is_empty());
    same!(scene.store.payload(other, PayloadKind::Arguments).await?, None);
    // The second submission repeated the operation of the first: one note.
    same!(scene.event_names(first.id()).await?, ["submitted", "conflicted"]);
    scene.check_row(first.id()).await
}

pub(super) async fn another_principals_key_is_a_conflict_without_its_id(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "foreign").await?;
    let submit = scene.keyed("k", "{}");
    let first = scene.new_execution(submit).await?;
    let mut submit = scene.keyed("k", "{}");
    submit.submission.ident.principal = "bob".into();
    let id = form!(scene.store.submit(submit).await?, SubmitOutcome::Conflict(id) => id);
    same!(id, None);
    same!(scene.event_names(first.id()).await?, ["submitted", "conflicted"]);
    scene.check_row(first.id()).await
}

pub(super) async fn a_key_is_found_by_its_scope(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "scope").await?;
    let submit = scene.keyed("k", "{}");
    let first = scene.new_execution(submit).await?;
    let mut submit = scene.keyed("k", "{}");
    submit.submission.ident.tool = "other".into();
    let second = scene.new_execution(submit).await?;
    let scope = |tool: &str, key: &str| KeyScope {
        namespace: scene.namespace.clone(),
        upstream: "files".into(),
        tool: tool.into(),
        key: key.into(),
    };
    same!(scene.store.by_key(scope("echo", "k")).await?, Some(first));
    same!(scene.store.by_key(scope("other", "k")).await?, Some(second));
    same!(scene.store.by_key(scope("echo", "K")).await?, None);
    Ok(())
}

pub(super) async fn a_submission_repeated_by_its_operation_changes_nothing(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "repeated-submit").await?;
    for submit in [scene.call(r#"{"n":1}"#), scene.keyed("k", r#"{"n":2}"#)] {
        let first = scene.new_execution(submit.clone()).await?;
        let again = scene.new_execution(submit).await?;
        same!(again, first);
        same!(scene.event_names(first.id()).await?, ["submitted"]);
    }
    Ok(())
}

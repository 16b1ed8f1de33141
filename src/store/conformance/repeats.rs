//! Cases about repeated calls: when a key lives and when it is free again, ordered retries, and unkeyed twins with the
//! delivery marks that decide about them.

use super::Ground;
use super::scene::{Scene, Verdict, form, holds, same};
use crate::model::decide::Command;
use crate::model::event::Order;
use crate::model::execution::State;
use crate::model::policy::Unkeyed;
use crate::model::submit::IfWaited;
use crate::store::{KeyScope, Mark, Submit, SubmitOutcome};

pub(super) async fn a_key_is_free_again_after_its_time(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "key-ttl").await?;
    let ttl_ms = scene.keyed("k", "{}").submission.identity.key_ttl_ms;
    let submit = scene.keyed("k", "{}");
    let first = scene.completed(submit, "1").await?;
    scene.now_ms += ttl_ms - 1;
    let submit = scene.keyed("k", "{}");
    let joined = form!(scene.store.submit(submit).await?, SubmitOutcome::Existing(head) => head);
    same!(joined.id(), first.id());
    scene.now_ms += 1;
    let submit = scene.keyed("k", r#"{"other":true}"#);
    let second = scene.new_execution(submit).await?;
    let scope = key_scope(&scene, "k");
    same!(scene.store.by_key(scope).await?.map(|head| head.id()), Some(second.id()));
    same!(scene.head(first.id()).await?.state, State::Completed);
    Ok(())
}

pub(super) async fn a_key_lives_while_its_execution_runs_or_is_unknown(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "key-lives").await?;
    let mut submit = scene.keyed("k", "{}");
    submit.submission.ident.policy.timeouts.total_ms = i64::MAX / 4;
    let id = scene.new_execution(submit).await?.id();
    let token = scene.lease(id).await?.fencing_token;
    for unknown in [false, true] {
        if unknown {
            let died = Command::Expire { fencing_token: token, cause: crate::model::event::ExpiryCause::ProcessDied };
            same!(scene.run(id, died).await?.head.state, State::Unknown);
        }
        scene.now_ms += 10 * 86_400_000;
        let submit = scene.keyed("k", "{}");
        let joined = form!(scene.store.submit(submit).await?, SubmitOutcome::Existing(head) => head);
        same!(joined.id(), id);
    }
    Ok(())
}

pub(super) async fn an_ordered_retry_takes_over_the_key(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "retry-of").await?;
    let submit = scene.keyed("k", "{}");
    let first = scene.new_execution(submit).await?;
    let order = Order { principal: "op".into(), reason: "stuck".into() };
    scene.run(first.id(), Command::Cancel(order)).await?;
    let mut submit = scene.keyed("k", "{}");
    submit.submission.ident.retry_of = Some(first.id());
    submit.submission.ident.effect_key = first.ident.effect_key;
    let second = scene.new_execution(submit.clone()).await?;
    same!(second.ident.effect_key, first.id());
    same!(scene.head(second.id()).await?, second);
    let again = scene.keyed("k", "{}");
    let joined = form!(scene.store.submit(again).await?, SubmitOutcome::Existing(head) => head);
    same!(joined.id(), second.id());
    // The first run of the same order, answered again.
    same!(scene.new_execution(submit).await?.id(), second.id());
    Ok(())
}

pub(super) async fn an_unkeyed_repeat_takes_the_call_nobody_waits_for(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "reattach").await?;
    let submit = scene.call(r#"{"n":1}"#);
    let first = scene.new_execution(submit).await?;
    // Both callers are there: two executions.
    let submit = scene.call(r#"{"n":1}"#);
    let second = scene.new_execution(submit).await?;
    scene.store.mark(first.id(), Mark::Left(scene.process), scene.now_ms);
    let submit = scene.call(r#"{"n":1.0}"#);
    let attached = attached(&scene, submit).await?;
    same!(attached.id(), first.id());
    same!(attached.waiter, Some(scene.process));
    same!(scene.head(first.id()).await?, *attached);
    // Now somebody waits again, and a third caller gets its own.
    let submit = scene.call(r#"{"n":1}"#);
    let third = scene.new_execution(submit).await?;
    holds!(third.id() != first.id() && third.id() != second.id());
    scene.check_row(first.id()).await
}

pub(super) async fn an_undelivered_end_is_taken_within_the_window(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "window").await?;
    let submit = scene.call("{}");
    let window_ms = submit.submission.identity.reattach_window_ms;
    let first = scene.completed(submit, "1").await?;
    scene.store.mark(first.id(), Mark::Left(scene.process), scene.now_ms);
    scene.now_ms += window_ms - 1;
    let submit = scene.call("{}");
    let taken = attached(&scene, submit).await?;
    same!(taken.id(), first.id());
    // Attaching to an ended execution writes nothing.
    same!(taken.waiter, None);
    scene.now_ms += 1;
    let submit = scene.call("{}");
    scene.new_execution(submit).await?;
    Ok(())
}

pub(super) async fn a_delivered_end_is_taken_by_nobody(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "delivered").await?;
    let submit = scene.call("{}");
    let first = scene.completed(submit, "1").await?;
    scene.store.mark(first.id(), Mark::Delivered(scene.process), scene.now_ms);
    let submit = scene.call("{}");
    let second = scene.new_execution(submit).await?;
    let head = scene.head(first.id()).await?;
    same!((head.waiter, head.delivered_at_ms), (None, Some(scene.now_ms)));
    holds!(second.id() != first.id());
    scene.check_row(first.id()).await
}

pub(super) async fn a_read_only_call_is_taken_after_its_end_only_with_a_handle(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "read-only").await?;
    let read_only = |scene: &mut Scene| {
        let mut submit = scene.call("{}");
        submit.submission.identity.read_only = true;
        submit
    };
    let submit = read_only(&mut scene);
    let first = scene.completed(submit, "1").await?;
    scene.store.mark(first.id(), Mark::Left(scene.process), scene.now_ms);
    let submit = read_only(&mut scene);
    let second = scene.new_execution(submit).await?;
    scene.store.mark(second.id(), Mark::HandleGiven(scene.process), scene.now_ms);
    let token = scene.lease(second.id()).await?.fencing_token;
    let ended = scene.complete(second.id(), token, "2").await?.head;
    holds!(ended.handle_given && ended.waiter.is_none());
    let submit = read_only(&mut scene);
    same!(attached(&scene, submit).await?.id(), second.id());
    Ok(())
}

pub(super) async fn coalescing_attaches_to_a_call_that_is_waited_for(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "coalesce").await?;
    let submit = scene.call("{}");
    let first = scene.new_execution(submit).await?;
    let mut submit = scene.call("{}");
    submit.submission.identity.unkeyed = Unkeyed::Coalesce;
    same!(attached(&scene, submit).await?.id(), first.id());
    let mut submit = scene.call("{}");
    submit.submission.identity.unkeyed = Unkeyed::None;
    scene.store.mark(first.id(), Mark::Left(scene.process), scene.now_ms);
    scene.new_execution(submit).await?;
    Ok(())
}

pub(super) async fn a_waited_call_is_told_when_asked(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "tell").await?;
    let submit = scene.call("{}");
    let first = scene.new_execution(submit).await?;
    let mut submit = scene.call("{}");
    submit.submission.if_waited = IfWaited::Tell;
    let refused = submit.submission.ident.id;
    let waited = form!(scene.store.submit(submit).await?, SubmitOutcome::Waited(id) => id);
    same!(waited, first.id());
    holds!(scene.store.heads(&[refused]).await?.is_empty());
    Ok(())
}

pub(super) async fn twins_are_equal_in_everything_that_tells_callers_apart(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "twins").await?;
    let mut submit = scene.call("{}");
    submit.submission.waiter = None;
    scene.new_execution(submit).await?;
    type Change = fn(&mut Submit);
    let changes: [Change; 5] = [
        |submit| submit.submission.ident.principal = "bob".into(),
        |submit| submit.submission.ident.caller = "terminal".into(),
        |submit| submit.submission.ident.tool = "other".into(),
        |submit| submit.submission.ident.upstream = "other".into(),
        |submit| submit.submission.ident.key = Some("k".into()),
    ];
    for change in changes {
        let mut submit = scene.call("{}");
        submit.submission.waiter = None;
        change(&mut submit);
        scene.new_execution(submit).await?;
    }
    Ok(())
}

pub(super) async fn a_process_takes_back_only_its_own_waiting(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "own-waiting").await?;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    let stranger = scene.process_id();
    scene.store.mark(id, Mark::Left(stranger), scene.now_ms);
    scene.store.check().await?;
    same!(scene.head(id).await?.waiter, Some(scene.process));
    scene.store.mark(id, Mark::Left(scene.process), scene.now_ms);
    scene.store.mark(id, Mark::Waiting(stranger), scene.now_ms);
    scene.store.check().await?;
    same!(scene.head(id).await?.waiter, Some(stranger));
    Ok(())
}

pub(super) async fn a_dead_process_waits_for_nobody(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "dead-waiter").await?;
    let mut other = scene.another(ground).await?;
    let submit = other.call("{}");
    let first = other.new_execution(submit).await?;
    let mut submit = scene.call("{}");
    submit.submission.if_waited = IfWaited::Tell;
    form!(scene.store.submit(submit.clone()).await?, SubmitOutcome::Waited(_) => ());
    other.store.close().await;
    drop(other);
    same!(attached(&scene, submit).await?.id(), first.id());
    Ok(())
}

async fn attached(scene: &Scene, submit: Submit) -> Result<Box<crate::model::execution::Head>, super::Failure> {
    Ok(form!(scene.store.submit(submit).await?, SubmitOutcome::Existing(head) => head))
}

fn key_scope(scene: &Scene, key: &str) -> KeyScope {
    KeyScope { namespace: scene.namespace.clone(), upstream: "files".into(), tool: "echo".into(), key: key.into() }
}

//! Cases about retention: what goes, and what never does.

use super::Ground;
use super::scene::{Scene, Verdict, holds, same};
use crate::model::decide::Command;
use crate::model::event::{ExpiryCause, Order};
use crate::model::execution::State;
use crate::store::{PayloadKind, Pruned, Retention, Slice};

const RETENTION: Retention = Retention { payloads_ms: 1_000, executions_ms: 10_000, batch: 100 };

pub(super) async fn payloads_go_before_the_history(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "prune").await?;
    let submit = scene.call("{}");
    let id = scene.completed(submit, "1").await?.id();
    scene.now_ms += 999;
    same!(scene.store.prune(RETENTION, scene.now_ms).await?, Pruned::default());
    scene.now_ms += 1;
    let pruned = scene.store.prune(RETENTION, scene.now_ms).await?;
    same!(pruned, Pruned { payloads: 1, executions: 0, keys: 0 });
    same!(scene.store.payload(id, PayloadKind::Arguments).await?, None);
    same!(scene.store.payload(id, PayloadKind::Result).await?, None);
    scene.check_row(id).await?;
    same!(scene.store.prune(RETENTION, scene.now_ms).await?, Pruned::default());
    scene.now_ms += 9_000;
    let pruned = scene.store.prune(RETENTION, scene.now_ms).await?;
    same!(pruned, Pruned { payloads: 0, executions: 1, keys: 0 });
    holds!(scene.store.heads(&[id]).await?.is_empty());
    holds!(scene.events(id).await?.is_empty());
    Ok(())
}

pub(super) async fn each_slice_goes_by_its_own_time(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "slices").await?;
    let mut ids = Vec::new();
    for (namespace, n) in [("acme", 1), ("default", 2), ("other", 3)] {
        let mut submit = scene.call(&format!("{{\"n\":{n}}}"));
        submit.submission.ident.namespace = namespace.into();
        ids.push(scene.completed(submit, "1").await?.id());
    }
    let submit = scene.call(r#"{"n":4}"#);
    let cancelled = scene.new_execution(submit).await?.id();
    let by = Order { principal: "ada".into(), reason: "why not".into() };
    scene.run(cancelled, Command::Cancel(by)).await?;
    scene.now_ms += 20_000;
    let now_ms = scene.now_ms;
    let of = |namespace: Option<&str>, state: Option<State>, but: &[&str]| Slice {
        namespace: namespace.map(str::to_owned),
        state,
        but: but.iter().map(|name| name.to_string()).collect(),
    };
    let whole = Pruned { payloads: 0, executions: 1, keys: 0 };
    // What is told apart is told apart by both: a namespace, a state, and all others.
    same!(scene.store.prune_slice(of(Some("nobody"), None, &[]), RETENTION, now_ms).await?, Pruned::default());
    same!(scene.store.prune_slice(of(None, Some(State::Failed), &[]), RETENTION, now_ms).await?, Pruned::default());
    same!(scene.store.prune_slice(of(Some("acme"), Some(State::Completed), &[]), RETENTION, now_ms).await?, whole);
    holds!(scene.store.heads(&[ids[0]]).await?.is_empty());
    same!(scene.store.prune_slice(of(None, Some(State::Cancelled), &["acme"]), RETENTION, now_ms).await?, whole);
    holds!(scene.store.heads(&[cancelled]).await?.is_empty());
    same!(scene.store.prune_slice(of(None, None, &["acme", "other"]), RETENTION, now_ms).await?, whole);
    holds!(scene.store.heads(&[ids[1]]).await?.is_empty());
    same!(scene.store.heads(&[ids[2]]).await?.len(), 1);
    Ok(())
}

pub(super) async fn a_living_execution_and_an_unknown_one_are_kept(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "kept").await?;
    let submit = scene.call(r#"{"n":1}"#);
    let ready = scene.new_execution(submit).await?.id();
    let mut submit = scene.call(r#"{"n":2}"#);
    submit.submission.lease = Some(scene.lease_request());
    let unknown = scene.new_execution(submit).await?.id();
    let cause = ExpiryCause::ProcessDied;
    same!(scene.run(unknown, Command::Expire { fencing_token: 1, cause }).await?.head.state, State::Unknown);
    scene.now_ms += 1_000_000_000;
    same!(scene.store.prune(RETENTION, scene.now_ms).await?, Pruned::default());
    for id in [ready, unknown] {
        holds!(scene.store.payload(id, PayloadKind::Arguments).await?.is_some());
        scene.check_row(id).await?;
    }
    Ok(())
}

pub(super) async fn an_execution_is_kept_while_its_key_lives(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "keys").await?;
    let mut submit = scene.keyed("k", "{}");
    submit.submission.identity.key_ttl_ms = 50_000;
    let id = scene.completed(submit, "1").await?.id();
    let submit = scene.call("{}");
    let unkeyed = scene.completed(submit, "1").await?.id();
    scene.now_ms += 20_000;
    // A batch of one: what is kept stands in nobody's way.
    let small = Retention { batch: 1, ..RETENTION };
    let mut pruned = Pruned::default();
    for _ in 0..4 {
        let batch = scene.store.prune(small, scene.now_ms).await?;
        pruned.executions += batch.executions;
        pruned.keys += batch.keys;
    }
    same!(pruned, Pruned { payloads: 0, executions: 1, keys: 0 });
    holds!(scene.store.heads(&[unkeyed]).await?.is_empty());
    same!(scene.head(id).await?.state, State::Completed);
    scene.now_ms += 30_000;
    let pruned = scene.store.prune(RETENTION, scene.now_ms).await?;
    same!(pruned, Pruned { payloads: 0, executions: 1, keys: 1 });
    holds!(scene.store.heads(&[id]).await?.is_empty());
    let mut submit = scene.keyed("k", r#"{"other":1}"#);
    submit.submission.identity.key_ttl_ms = 50_000;
    scene.new_execution(submit).await?;
    Ok(())
}

pub(super) async fn a_key_taken_over_outlives_its_first_execution(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "taken-over").await?;
    let submit = scene.keyed("k", "{}");
    let first = scene.completed(submit, "1").await?.id();
    let mut submit = scene.keyed("k", "{}");
    submit.submission.ident.retry_of = Some(first);
    let second = scene.completed(submit, "2").await?.id();
    scene.now_ms += 10_000;
    let pruned = scene.store.prune(RETENTION, scene.now_ms).await?;
    same!(pruned, Pruned { payloads: 1, executions: 1, keys: 0 });
    holds!(scene.store.heads(&[first]).await?.is_empty());
    same!(scene.head(second).await?.state, State::Completed);
    Ok(())
}

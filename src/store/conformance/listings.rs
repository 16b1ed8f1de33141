//! Cases about what people read: pages and their filters, totals, tokens, pictures of upstreams, reopening.

use std::collections::BTreeMap;

use super::Ground;
use super::scene::{Scene, Verdict, holds, same};
use crate::model::decide::Command;
use crate::model::event::{ExpiryCause, Order};
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::store::{ListQuery, PayloadKind, TokenRow, TouchedQuery, UpstreamRow};

pub(super) async fn pages_are_newest_first_and_meet_without_gaps(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "pages").await?;
    let mut ids = Vec::new();
    for n in 0..7 {
        scene.now_ms += 1;
        let submit = scene.call(&format!("{{\"n\":{n}}}"));
        ids.insert(0, scene.new_execution(submit).await?.id());
    }
    let mut found = Vec::new();
    let mut query = ListQuery { namespace: Some(scene.namespace.clone()), limit: 3, ..ListQuery::default() };
    loop {
        let page = list(&scene, &query).await?;
        let Some(last) = page.last() else { break };
        query.before = Some(*last);
        found.extend(page);
    }
    same!(found, ids);
    Ok(())
}

pub(super) async fn filters_hold_all_at_once(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "filters").await?;
    let mut all = BTreeMap::new();
    for state in State::ALL {
        scene.now_ms += 1;
        all.insert(state, in_state(&mut scene, state).await?);
    }
    let in_namespace = ListQuery { namespace: Some(scene.namespace.clone()), limit: 100, ..ListQuery::default() };
    same!(list(&scene, &in_namespace).await?.len(), State::ALL.len());
    for (state, id) in &all {
        let query = ListQuery { states: vec![*state], ..in_namespace.clone() };
        same!(list(&scene, &query).await?, [*id]);
        let prefix = id.to_string();
        let query = ListQuery { id_prefix: Some(prefix[..30].to_uppercase()), ..in_namespace.clone() };
        same!(list(&scene, &query).await?, [*id]);
    }
    let unfinished = vec![State::Scheduled, State::Ready, State::Leased, State::Waiting];
    let mut expected: Vec<_> = unfinished.iter().map(|state| all[state]).collect();
    expected.sort_by(|left, right| right.cmp(left));
    let query = ListQuery { states: unfinished, ..in_namespace.clone() };
    same!(list(&scene, &query).await?, expected);
    let query = ListQuery { states: vec![State::Completed, State::Failed], limit: 1, ..in_namespace.clone() };
    same!(list(&scene, &query).await?, [all[&State::Completed].max(all[&State::Failed])]);
    type Change = fn(&mut ListQuery, &str);
    let changes: [Change; 4] = [
        |query, value| query.principal = Some(value.into()),
        |query, value| query.caller = Some(value.into()),
        |query, value| query.upstream = Some(value.into()),
        |query, value| query.tool = Some(value.into()),
    ];
    for (change, right) in changes.into_iter().zip(["ann", "editor", "files", "echo"]) {
        for (value, expected) in [(right, 8), ("other", 0), ("' OR 1 --", 0)] {
            let mut query = in_namespace.clone();
            change(&mut query, value);
            same!(list(&scene, &query).await?.len(), expected);
        }
    }
    Ok(())
}

pub(super) async fn executions_are_found_by_key_time_attempts_and_error(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "more_filters").await?;
    let submit = scene.keyed("order-17", "{}");
    let keyed = scene.new_execution(submit).await?.id();
    scene.now_ms += 10_000;
    let mut submit = scene.repeatable(r#"{"n":2}"#);
    submit.submission.lease = Some(scene.lease_request());
    let twice = scene.new_execution(submit).await?.id();
    let lost = Command::Expire { fencing_token: 1, cause: ExpiryCause::ProcessDied };
    let retried = scene.run(twice, lost).await?.head;
    scene.now_ms = retried.run_at_ms;
    scene.lease(twice).await?;
    let later_ms = scene.now_ms;
    let in_namespace = ListQuery { namespace: Some(scene.namespace.clone()), limit: 100, ..ListQuery::default() };
    let with = |change: &dyn Fn(&mut ListQuery)| {
        let mut query = in_namespace.clone();
        change(&mut query);
        query
    };
    let created_ms = scene.head(twice).await?.created_at_ms;
    for (query, expected) in [
        (with(&|query| query.key = Some("order-17".into())), vec![keyed]),
        (with(&|query| query.key = Some("order".into())), vec![]),
        (with(&|query| query.attempts_over = Some(1)), vec![twice]),
        (with(&|query| query.attempts_over = Some(0)), vec![twice]),
        (with(&|query| query.attempts_over = Some(2)), vec![]),
        (with(&|query| query.error_code = Some("process_died".into())), vec![twice]),
        (with(&|query| query.error_code = Some("lease_expired".into())), vec![]),
        (
            with(&|query| (query.error_code, query.states) = (Some("process_died".into()), vec![State::Leased])),
            vec![twice],
        ),
        (with(&|query| (query.error_code, query.states) = (Some("process_died".into()), vec![State::Failed])), vec![]),
        (
            with(&|query| (query.attempts_over, query.states) = (Some(1), vec![State::Leased, State::Failed])),
            vec![twice],
        ),
        (with(&|query| (query.attempts_over, query.states) = (Some(1), vec![State::Ready])), vec![]),
        (with(&|query| query.since_ms = Some(created_ms)), vec![twice]),
        (with(&|query| query.since_ms = Some(created_ms + 1)), vec![]),
        (with(&|query| query.until_ms = Some(created_ms)), vec![keyed]),
        (with(&|query| query.until_ms = Some(created_ms + 1)), vec![twice, keyed]),
        (with(&|query| query.until_ms = Some(i64::MAX)), vec![twice, keyed]),
        (with(&|query| query.since_ms = Some(i64::MIN)), vec![twice, keyed]),
        (
            with(&|query| {
                query.states = vec![State::Leased];
                query.since_ms = Some(0);
                query.until_ms = Some(later_ms + 1);
            }),
            vec![twice],
        ),
    ] {
        same!(list(&scene, &query).await?, expected);
    }
    Ok(())
}

pub(super) async fn a_recovered_execution_lost_an_attempt_and_completed(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "recovered").await?;
    let lost = |token| Command::Expire { fencing_token: token, cause: ExpiryCause::ProcessDied };
    let submit = scene.call("1");
    scene.completed(submit, "1").await?;
    let submit = scene.call("2");
    let given_back = scene.new_execution(submit).await?.id();
    scene.lease(given_back).await?;
    scene.run(given_back, Command::Release { fencing_token: 1 }).await?;
    scene.lease(given_back).await?;
    scene.complete(given_back, 2, "2").await?;
    let submit = scene.repeatable("3");
    let ran_twice = scene.new_execution(submit).await?.id();
    scene.lease(ran_twice).await?;
    scene.now_ms = scene.run(ran_twice, lost(1)).await?.head.run_at_ms;
    scene.lease(ran_twice).await?;
    let query =
        ListQuery { namespace: Some(scene.namespace.clone()), recovered: true, limit: 100, ..ListQuery::default() };
    same!(list(&scene, &query).await?, []);
    scene.complete(ran_twice, 2, "3").await?;
    scene.now_ms += 1;
    let submit = scene.call("4");
    let late = scene.new_execution(submit).await?.id();
    scene.lease(late).await?;
    scene.run(late, lost(1)).await?;
    scene.complete(late, 1, "4").await?;
    same!(list(&scene, &query).await?, [late, ran_twice]);
    same!(list(&scene, &ListQuery { states: vec![State::Failed], ..query }).await?, []);
    Ok(())
}

pub(super) async fn what_may_have_new_events_is_found(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "touched").await?;
    let mut old = Vec::new();
    for state in State::ALL {
        scene.now_ms += 1;
        old.push(in_state(&mut scene, state).await?);
    }
    let before_ms = scene.now_ms + 1;
    scene.now_ms += 5_000;
    let since_ms = scene.now_ms;
    let filter = ListQuery { namespace: Some(scene.namespace.clone()), ..ListQuery::default() };
    let query =
        |after, limit| TouchedQuery { filter: filter.clone(), since_ms, until_ms: since_ms + 100, after, limit };
    let touched = async |scene: &Scene, query: TouchedQuery| -> Result<Vec<ExecutionId>, super::Failure> {
        Ok(scene.store.touched(query).await?.iter().map(|head| head.id()).collect())
    };
    same!(touched(&scene, query(None, 100)).await?, []);
    // One change for each that can have one, one new execution, and a note on one that ended long ago.
    let [scheduled, ready, leased, waiting, completed, failed, cancelled, unknown] = old[..] else {
        return Err(super::Failure("eight states".into()));
    };
    let order = || Order { principal: "op".into(), reason: "test".into() };
    scene.run(scheduled, Command::Cancel(order())).await?;
    scene.lease(ready).await?;
    scene.complete(leased, 1, "1").await?;
    scene.run(waiting, Command::Resume).await?;
    scene.run(unknown, Command::Retry(order())).await?;
    scene.complete(completed, 7, "stale").await?;
    let submit = scene.call("{}");
    let new = scene.new_execution(submit).await?.id();
    scene.now_ms += 200;
    let submit = scene.call(r#"{"later":1}"#);
    scene.new_execution(submit).await?;
    let mut expected = vec![scheduled, ready, leased, waiting, completed, unknown, new];
    expected.sort();
    same!(touched(&scene, query(None, 100)).await?, expected);
    holds!(!expected.contains(&failed) && !expected.contains(&cancelled));
    let mut found = touched(&scene, query(None, 3)).await?;
    while let Some(last) = found.last().copied() {
        let page = touched(&scene, query(Some(last), 3)).await?;
        if page.is_empty() {
            break;
        }
        holds!(page.len() <= 3);
        found.extend(page);
    }
    same!(found, expected);
    holds!(before_ms < since_ms);
    Ok(())
}

pub(super) async fn totals_count_every_state(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "totals").await?;
    let before = scene.store.totals().await?;
    for state in State::ALL {
        in_state(&mut scene, state).await?;
    }
    let after = scene.store.totals().await?;
    for state in State::ALL {
        same!(after.get(&state).copied(), Some(before.get(&state).copied().unwrap_or(0) + 1));
    }
    Ok(())
}

pub(super) async fn tokens_are_added_listed_and_revoked_once(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "tokens").await?;
    let salt = scene.random().next();
    let token = TokenRow {
        prefix: format!("dmcp_{salt:x}"),
        sha256: format!("{salt:064x}"),
        principal: "ann".into(),
        namespace: scene.namespace.clone(),
        scopes: "call read".into(),
        created_at_ms: scene.now_ms,
        expires_at_ms: Some(scene.now_ms + 1),
        revoked_at_ms: None,
    };
    scene.store.put_token(token.clone()).await?;
    holds!(scene.store.put_token(token.clone()).await.is_err());
    holds!(scene.store.tokens().await?.contains(&token));
    holds!(!scene.store.revoke_token("nobody", scene.now_ms).await?);
    holds!(scene.store.revoke_token(&token.prefix, scene.now_ms + 5).await?);
    holds!(scene.store.revoke_token(&token.prefix, scene.now_ms + 9).await?);
    let revoked = TokenRow { revoked_at_ms: Some(scene.now_ms + 5), ..token };
    holds!(scene.store.tokens().await?.contains(&revoked));
    Ok(())
}

pub(super) async fn the_last_picture_of_an_upstream_is_kept(ground: &dyn Ground) -> Verdict {
    let scene = Scene::open(ground, "upstreams").await?;
    let name = format!("{}-files", scene.namespace);
    for (at, snapshot) in [(1, r#"{"tools":[]}"#), (2, r#"{"tools": [1.0]}"#)] {
        let row = UpstreamRow { name: name.clone(), snapshot: snapshot.into(), updated_at_ms: at };
        scene.store.put_upstream(row.clone()).await?;
        let rows = scene.store.upstreams().await?;
        same!(rows.iter().filter(|row| row.name == name).collect::<Vec<_>>(), [&row]);
    }
    Ok(())
}

pub(super) async fn everything_is_there_after_a_reopening(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "reopen").await?;
    let submit = scene.keyed("k", r#"{"a": 1.0}"#);
    let completed = scene.completed(submit, "[1]").await?;
    let mut submit = scene.call("{}");
    submit.submission.lease = Some(scene.lease_request());
    let leased = scene.new_execution(submit).await?;
    let events = scene.events(completed.id()).await?;
    scene.store.close().await;
    holds!(scene.store.check().await.is_err());
    holds!(scene.store.heads(&[completed.id()]).await.is_err());
    scene.store = ground.open().await?;
    same!(scene.head(completed.id()).await?, completed);
    same!(scene.head(leased.id()).await?, leased);
    same!(scene.events(completed.id()).await?, events);
    same!(scene.store.payload(completed.id(), PayloadKind::Result).await?.as_deref(), Some("[1]"));
    same!(scene.complete(leased.id(), 1, "2").await?.head.state, State::Completed);
    scene.store.check().await?;
    Ok(())
}

async fn list(scene: &Scene, query: &ListQuery) -> Result<Vec<ExecutionId>, super::Failure> {
    Ok(scene.store.list(query.clone()).await?.iter().map(|head| head.id()).collect())
}

async fn in_state(scene: &mut Scene, state: State) -> Result<ExecutionId, super::Failure> {
    let mut submit = scene.call(&format!("{{\"state\":\"{}\"}}", state.as_str()));
    submit.submission.run_at_ms = (state == State::Scheduled).then_some(scene.now_ms + 60_000);
    let started = !matches!(state, State::Scheduled | State::Ready | State::Cancelled);
    submit.submission.lease = started.then(|| scene.lease_request());
    let id = scene.new_execution(submit).await?.id();
    let order = || Order { principal: "op".into(), reason: "test".into() };
    let lost = Command::Expire { fencing_token: 1, cause: ExpiryCause::ProcessDied };
    match state {
        State::Scheduled | State::Ready | State::Leased => {}
        State::Waiting => drop(scene.run(id, Command::Park { fencing_token: 1 }).await?),
        State::Completed => drop(scene.complete(id, 1, "1").await?),
        State::Cancelled => drop(scene.run(id, Command::Cancel(order())).await?),
        State::Unknown => drop(scene.run(id, lost).await?),
        State::Failed => {
            scene.run(id, lost).await?;
            let outcome = crate::model::decide::Outcome::Failed;
            scene.run(id, Command::Resolve { by: order(), outcome }).await?;
        }
    }
    Ok(id)
}

//! Cases about numbers: what stands, whole logs, and minutes that were counted.

use std::collections::BTreeMap;

use super::scene::{Scene, Verdict, holds, same};
use super::storms::random_step;
use super::{Failure, Ground};
use crate::model::decide::Command;
use crate::model::event::{Digest, ExpiryCause};
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::model::tally::{MINUTE_MS, Tally, count};
use crate::store::counting::{Unpaced, count_span};
use crate::store::series::{Counted, EndedQuery, PutSeries, SeriesQuery, SeriesRow, Whose};
use crate::store::{PayloadKind, Retention};

fn whose(scene: &Scene, principal: Option<&str>) -> Whose {
    Whose { namespace: Some(scene.namespace.clone()), principal: principal.map(str::to_owned) }
}

pub(super) async fn what_stands_is_told_of_those_one_asks_for(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "standing").await?;
    let everybody = scene.store.standing(Whose::default(), scene.now_ms).await?;
    let submit = scene.call("1");
    scene.completed(submit, "1").await?;
    let submit = scene.repeatable("2");
    let ready = scene.new_execution(submit).await?;
    scene.now_ms += 1_000;
    let mut submit = scene.call("3");
    submit.submission.ident.principal = "bob".into();
    scene.new_execution(submit).await?;
    let mut delayed = scene.call("4");
    delayed.submission.run_at_ms = Some(scene.now_ms + 60_000);
    scene.new_execution(delayed).await?;
    let of_all = scene.store.standing(whose(&scene, None), scene.now_ms).await?;
    same!((of_all.queued, of_all.oldest_ms), (2, Some(ready.run_at_ms)));
    let told = |state: &State| of_all.states.get(state).copied();
    same!(State::ALL.iter().map(|state| told(state).unwrap_or(9)).sum::<u64>(), 4);
    same!((told(&State::Completed), told(&State::Ready), told(&State::Scheduled)), (Some(1), Some(2), Some(1)));
    let of_bob = scene.store.standing(whose(&scene, Some("bob")), scene.now_ms).await?;
    same!((of_bob.queued, of_bob.oldest_ms), (1, Some(scene.now_ms)));
    same!((of_bob.states[&State::Ready], of_bob.states[&State::Completed]), (1, 0));
    let of_nobody = scene.store.standing(whose(&scene, Some("' OR 1 --")), scene.now_ms).await?;
    same!((of_nobody.queued, of_nobody.oldest_ms, of_nobody.states.values().sum::<u64>()), (0, None, 0));
    // A minute later the delayed one waits, too.
    same!(scene.store.standing(whose(&scene, None), scene.now_ms + 60_000).await?.queued, 3);
    let after = scene.store.standing(Whose::default(), scene.now_ms).await?;
    same!(after.states.values().sum::<u64>(), everybody.states.values().sum::<u64>() + 4);
    Ok(())
}

pub(super) async fn logs_come_whole_and_in_the_order_they_were_asked_for(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "logs").await?;
    let mut ids = Vec::new();
    for n in 0..5 {
        scene.now_ms += 1;
        let submit = scene.repeatable(&format!("{{\"n\":{n}}}"));
        let id = scene.new_execution(submit).await?.id();
        if n % 2 == 0 {
            scene.lease(id).await?;
            scene.run(id, Command::Expire { fencing_token: 1, cause: ExpiryCause::ProcessDied }).await?;
        }
        ids.push(id);
    }
    ids.insert(2, scene.execution_id());
    ids.reverse();
    let logs = scene.store.logs(ids.clone()).await?;
    same!(logs.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
    for (id, log) in &logs {
        same!(log, &scene.events(*id).await?);
    }
    same!(logs.iter().map(|(_, log)| log.len()).collect::<Vec<_>>(), [3, 1, 3, 0, 1, 3]);
    same!(scene.store.logs(Vec::new()).await?.len(), 0);
    Ok(())
}

pub(super) async fn minutes_are_kept_replaced_and_forgotten(ground: &dyn Ground) -> Verdict {
    let scene = Scene::open(ground, "minutes").await?;
    let row = |minute_ms: i64, principal: &str, counted: Counted, completed: u64| SeriesRow {
        minute_ms,
        namespace: scene.namespace.clone(),
        principal: principal.into(),
        counted,
        tally: Tally { completed, ..Tally::default() },
    };
    let minute_ms = scene.now_ms;
    let own = Counted::Process(scene.process);
    let rows = vec![
        row(minute_ms, "ann", Counted::Log, 1),
        row(minute_ms, "bob", Counted::Log, 2),
        row(minute_ms, "", Counted::LogOfAll, 3),
        row(minute_ms + 60_000, "ann", own, 4),
    ];
    let put = |rows, closed_until_ms| PutSeries { rows, closed_until_ms, keep_since_ms: minute_ms };
    scene.store.put_series(put(rows, None)).await?;
    let query = |principal, until_ms| SeriesQuery { whose: whose(&scene, principal), since_ms: minute_ms, until_ms };
    let numbers = async |query: SeriesQuery| -> Result<Vec<u64>, super::Failure> {
        Ok(scene.store.series(query).await?.iter().map(|row| row.tally.completed).collect())
    };
    same!(numbers(query(None, minute_ms + 60_001)).await?, [3, 4]);
    same!(numbers(query(None, minute_ms + 60_000)).await?, [3]);
    same!(numbers(query(Some("ann"), minute_ms + 60_001)).await?, [1, 4]);
    same!(numbers(query(Some("bob"), minute_ms + 60_001)).await?, [2]);
    // Another look counted more; the rows are the same.
    let again = vec![row(minute_ms, "", Counted::LogOfAll, 5), row(minute_ms + 60_000, "ann", own, 6)];
    scene.store.put_series(put(again, Some(minute_ms))).await?;
    same!(numbers(query(None, i64::MAX)).await?, [5, 6]);
    same!(scene.store.series_closed_until().await?, minute_ms);
    scene.store.put_series(put(Vec::new(), Some(minute_ms - 60_000))).await?;
    same!(scene.store.series_closed_until().await?, minute_ms);
    // More than one write takes, from two processes.
    let many: Vec<SeriesRow> = (0..450).map(|n| row(minute_ms + 60_000, &format!("p{n}"), Counted::Log, 1)).collect();
    let (one, two) = tokio::join!(
        scene.store.put_series(put(many.clone(), Some(minute_ms + 60_000))),
        scene.store.put_series(put(many, Some(minute_ms + 60_000))),
    );
    one.and(two)?;
    same!(numbers(query(Some("p449"), i64::MAX)).await?, [1]);
    let keep_since_ms = minute_ms + 60_000;
    scene.store.put_series(PutSeries { rows: Vec::new(), closed_until_ms: None, keep_since_ms }).await?;
    same!(numbers(query(None, i64::MAX)).await?, [6]);
    holds!(scene.store.series_closed_until().await? == minute_ms + 60_000);
    Ok(())
}

/// Calls of every kind over some minutes: most complete at once, some are leased later, are delayed or end with `isError`,
/// some meet a storm of commands, some are still open.
async fn histories(scene: &mut Scene) -> Result<BTreeMap<ExecutionId, String>, Failure> {
    let mut made = BTreeMap::new();
    let mut moved = Vec::new();
    for n in 0..160_u64 {
        scene.now_ms += scene.random().below(2_500) as i64;
        let mut submit = if n % 2 == 0 { scene.repeatable("{}") } else { scene.call("{}") };
        let principal = if n % 3 == 0 { "ann" } else { "bob" };
        submit.submission.ident.principal = principal.into();
        submit.submission.ident.arguments_hash = format!("{n}");
        let at_once = n % 4 != 0;
        submit.submission.lease = at_once.then(|| scene.lease_request());
        if n % 16 == 4 {
            submit.submission.run_at_ms = Some(scene.now_ms + 400);
        }
        let id = scene.new_execution(submit).await?.id();
        made.insert(id, principal.to_owned());
        if scene.random().below(3) == 0 {
            moved.push(id);
        } else {
            scene.now_ms += scene.random().below(900) as i64;
            if !at_once {
                scene.now_ms += 400;
                scene.lease(id).await?;
                scene.now_ms += scene.random().below(900) as i64;
            }
            let command = Command::Complete { fencing_token: 1, result: Digest::of("1"), is_error: n % 5 == 0 };
            let mut complete = scene.apply(id, command);
            complete.payload = Some((PayloadKind::Result, "1".into()));
            scene.run_apply(complete).await?;
        }
        for step in 0..3 {
            if let Some(id) = moved.get(scene.random().below(moved.len() as u64) as usize).copied() {
                let seen = scene.head(id).await?;
                random_step(scene, id, &seen, n * 3 + step).await?;
            }
        }
    }
    Ok(made)
}

pub(super) async fn what_rows_tell_of_a_span_is_what_the_logs_say(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "spans").await?;
    let begun_ms = scene.now_ms;
    let made = histories(&mut scene).await?;
    let over_ms = scene.now_ms + 1;
    let length = (over_ms - begun_ms).unsigned_abs();
    let mut spans = vec![(begun_ms, over_ms), (begun_ms, begun_ms + MINUTE_MS), (over_ms, over_ms + MINUTE_MS)];
    for _ in 0..30 {
        let one = begun_ms + scene.random().below(length) as i64;
        let other = begun_ms + scene.random().below(length) as i64;
        spans.push((one.min(other), one.max(other)));
        spans.push((one, one + scene.random().below(3_000) as i64));
    }
    let mut logs = Vec::new();
    for (id, principal) in &made {
        logs.push((principal.as_str(), scene.events(*id).await?));
    }
    for payloads_are_kept in [true, false] {
        if !payloads_are_kept {
            let retention = Retention { payloads_ms: 0, executions_ms: i64::MAX, batch: 10_000 };
            scene.store.prune(retention, over_ms).await?;
        }
        for (since_ms, until_ms) in &spans {
            let (since_ms, until_ms) = (*since_ms, *until_ms);
            let told = count_span(&*scene.store, (since_ms, until_ms), over_ms, &mut Unpaced).await?;
            for principal in ["ann", "bob"] {
                let mut said = BTreeMap::new();
                for (_, log) in logs.iter().filter(|(whose, _)| *whose == principal) {
                    count(log, since_ms, until_ms, &mut said);
                }
                let told = told.get(&(scene.namespace.clone(), principal.to_owned())).cloned().unwrap_or_default();
                same!((since_ms, until_ms, told), (since_ms, until_ms, said));
            }
        }
    }
    // The rows do tell of most.
    let query = EndedQuery { since_ms: begun_ms, until_ms: over_ms, from_ms: begun_ms, to_ms: i64::MAX };
    let ended = scene.store.ended_in(query).await?;
    let plain: u64 = ended.plain.iter().filter(|it| it.namespace == scene.namespace).map(|it| it.executions).sum();
    holds!(plain > 50 && plain < 150);
    Ok(())
}

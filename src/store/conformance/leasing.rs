//! Cases about work and time: heartbeats, what a worker may take, what the scheduler has to settle, dead processes.

use super::Ground;
use super::scene::{Scene, Verdict, form, holds, same};
use crate::model::decide::{Answer, Command};
use crate::model::event::ExpiryCause;
use crate::model::execution::State;
use crate::model::id::ProcessId;
use crate::store::{CandidateQuery, LeaseRef, Mark, SubmitOutcome};

pub(super) async fn heartbeats_extend_many_leases_and_make_no_event(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "heartbeat").await?;
    let mut leases = Vec::new();
    for n in 0..3 {
        let mut submit = scene.call(&format!("{{\"n\":{n}}}"));
        submit.submission.lease = Some(scene.lease_request());
        leases.push(LeaseRef { id: scene.new_execution(submit).await?.id(), fencing_token: 1 });
    }
    scene.complete(leases[1].id, 1, "1").await?;
    leases[2].fencing_token = 7;
    leases.push(LeaseRef { id: scene.execution_id(), fencing_token: 1 });
    scene.now_ms += 10_000;
    let answers = scene.store.heartbeat(leases.clone(), 30_000, scene.now_ms).await?;
    same!(answers, [Answer::Extended, Answer::Ended, Answer::Stale, Answer::Stale]);
    let head = scene.head(leases[0].id).await?;
    same!(head.lease.as_ref().map(|lease| lease.expires_at_ms), Some(scene.now_ms + 30_000));
    same!(scene.event_names(leases[0].id).await?, ["submitted", "leased"]);
    let untouched = scene.head(leases[2].id).await?;
    same!(untouched.lease.as_ref().map(|lease| lease.expires_at_ms), Some(scene.now_ms + 20_000));
    // The next command sees what the heartbeat wrote.
    let expire = Command::Expire { fencing_token: 1, cause: ExpiryCause::LeaseExpired };
    scene.now_ms += 20_000;
    same!(scene.run(leases[0].id, expire).await?.answer, Answer::Nothing);
    scene.check_row(leases[0].id).await
}

pub(super) async fn candidates_come_oldest_first_from_the_upstreams_asked_for(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "candidates").await?;
    let mut ids = Vec::new();
    for (n, upstream) in ["a", "b", "a", "c"].into_iter().enumerate() {
        scene.now_ms += 1;
        let mut submit = scene.call(&format!("{{\"n\":{n}}}"));
        submit.submission.ident.upstream = own(&scene, upstream);
        ids.push(scene.new_execution(submit).await?.id());
    }
    let mut submit = scene.call("{}");
    submit.submission.ident.upstream = own(&scene, "a");
    submit.submission.run_at_ms = Some(scene.now_ms + 10);
    let later = scene.new_execution(submit).await?.id();
    let query = |scene: &Scene, upstreams: &[&str], limit: usize| CandidateQuery {
        upstreams: upstreams.iter().map(|upstream| own(scene, upstream)).collect(),
        process: scene.process,
        dead: Vec::new(),
        now_ms: scene.now_ms,
        limit,
    };
    let found = |heads: Vec<crate::model::execution::Head>| heads.iter().map(|head| head.id()).collect::<Vec<_>>();
    let heads = scene.store.candidates(query(&scene, &["b", "a"], 10)).await?;
    same!(found(heads), [ids[0], ids[1], ids[2]]);
    let heads = scene.store.candidates(query(&scene, &["a", "b"], 2)).await?;
    same!(found(heads), [ids[0], ids[1]]);
    scene.now_ms += 10;
    let heads = scene.store.candidates(query(&scene, &["a"], 10)).await?;
    same!(found(heads), [ids[0], ids[2], later]);
    scene.lease(ids[0]).await?;
    let heads = scene.store.candidates(query(&scene, &["a"], 10)).await?;
    same!(found(heads), [ids[2], later]);
    Ok(())
}

pub(super) async fn a_bound_execution_is_a_candidate_of_its_process_only(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "bound").await?;
    let upstream = own(&scene, "child");
    let owner = scene.process_id();
    let mut submit = scene.call("{}");
    submit.submission.ident.upstream = upstream.clone();
    submit.submission.ident.bound_to = Some(owner);
    let id = scene.new_execution(submit).await?.id();
    let query = |process: ProcessId, dead: &[ProcessId]| CandidateQuery {
        upstreams: vec![upstream.clone()],
        process,
        dead: dead.to_vec(),
        now_ms: scene.now_ms,
        limit: 10,
    };
    same!(scene.store.candidates(query(scene.process, &[])).await?.len(), 0);
    same!(scene.store.candidates(query(owner, &[])).await?.len(), 1);
    same!(scene.store.candidates(query(scene.process, &[owner])).await?.len(), 1);
    let mut request = scene.lease_request();
    same!(scene.run(id, Command::Lease(request.clone())).await?.answer, Answer::NotLeasable);
    request.takes_over = Some(owner);
    form!(scene.run(id, Command::Lease(request)).await?.answer, Answer::Leased { .. } => ());
    Ok(())
}

pub(super) async fn what_is_due_is_found_and_the_next_time_is_told(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "due").await?;
    let start = scene.now_ms;
    let mut submit = scene.call(r#"{"n":1}"#);
    submit.submission.lease = Some(scene.lease_request());
    let leased = scene.new_execution(submit).await?.id();
    let mut submit = scene.call(r#"{"n":2}"#);
    submit.submission.run_at_ms = Some(start + 40_000);
    let scheduled = scene.new_execution(submit).await?.id();
    let mut submit = scene.call(r#"{"n":3}"#);
    submit.submission.ident.start_by_ms = Some(start + 50_000);
    let queued = scene.new_execution(submit).await?.id();
    let due = scene.store.due(&[], start, 100).await?;
    holds!(due.expired.is_empty() && due.promotable.is_empty() && due.timed_out.is_empty());
    same!(due.next_at_ms, Some(start + 30_000));
    let due = scene.store.due(&[], start + 30_000, 100).await?;
    same!(due.expired.iter().map(|head| head.id()).collect::<Vec<_>>(), [leased]);
    same!(due.next_at_ms, Some(start + 40_000));
    let due = scene.store.due(&[], start + 40_000, 100).await?;
    same!(due.promotable, [scheduled]);
    same!(due.next_at_ms, Some(start + 50_000));
    let due = scene.store.due(&[], start + 50_000, 100).await?;
    same!(due.timed_out, [queued]);
    let due = scene.store.due(&[], start + 3_600_000, 1).await?;
    same!(due.next_at_ms, Some(start + 3_600_000));
    scene.now_ms = start + 50_000;
    let failed = scene.run(queued, Command::TimeOut { nobody_runs: false }).await?.head;
    same!(failed.error.as_ref().map(|error| error.code.as_str()), Some("queue_timeout"));
    let due = scene.store.due(&[], start + 50_000, 100).await?;
    holds!(due.timed_out.is_empty());
    scene.check_row(queued).await
}

pub(super) async fn a_lease_ends_the_time_in_the_queue(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "start-by").await?;
    let mut submit = scene.call("{}");
    submit.submission.ident.start_by_ms = Some(scene.now_ms + 10);
    let id = scene.new_execution(submit).await?.id();
    scene.lease(id).await?;
    scene.run(id, Command::Release { fencing_token: 1 }).await?;
    scene.now_ms += 10;
    let due = scene.store.due(&[], scene.now_ms, 100).await?;
    holds!(!due.timed_out.contains(&id));
    scene.now_ms += 3_600_000;
    let due = scene.store.due(&[], scene.now_ms, 100).await?;
    holds!(due.timed_out.contains(&id));
    Ok(())
}

pub(super) async fn a_dead_process_is_found_settled_and_forgotten(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "dead").await?;
    let mut other = scene.another(ground).await?;
    let mut submit = other.call(r#"{"n":1}"#);
    submit.submission.lease = Some(other.lease_request());
    let leased = other.new_execution(submit).await?.id();
    let submit = other.call(r#"{"n":2}"#);
    let waited = other.new_execution(submit).await?.id();
    same!(scene.store.dead_processes(scene.now_ms).await?, []);
    same!(other.store.dead_processes(scene.now_ms).await?, []);
    let dead = other.process;
    other.store.close().await;
    drop(other);
    same!(scene.store.dead_processes(scene.now_ms).await?, [dead]);
    let due = scene.store.due(&[dead], scene.now_ms, 100).await?;
    same!(due.expired.iter().map(|head| head.id()).collect::<Vec<_>>(), [leased]);
    let died = Command::Expire { fencing_token: 1, cause: ExpiryCause::ProcessDied };
    same!(scene.run(leased, died).await?.head.state, State::Unknown);
    same!(scene.head(waited).await?.waiter, Some(dead));
    scene.store.bury_process(dead).await?;
    same!(scene.store.dead_processes(scene.now_ms).await?, []);
    same!(scene.head(waited).await?.waiter, None);
    let submit = scene.call(r#"{"n":2}"#);
    let attached = form!(scene.store.submit(submit).await?, SubmitOutcome::Existing(head) => head);
    same!(attached.id(), waited);
    scene.check_row(leased).await
}

pub(super) async fn another_process_sees_what_one_wrote(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "shared").await?;
    let mut other = scene.another(ground).await?;
    let submit = scene.repeatable("{}");
    let id = scene.new_execution(submit).await?.id();
    // Commands alternate, so that each process decides on what the other wrote last.
    for round in 1..=3_i64 {
        let leaser = if round % 2 == 0 { &mut scene } else { &mut other };
        same!(leaser.lease(id).await?.fencing_token, round);
        let releaser = if round % 2 == 0 { &mut other } else { &mut scene };
        same!(releaser.run(id, Command::Release { fencing_token: round }).await?.answer, Answer::Accepted);
    }
    other.store.mark(id, Mark::HandleGiven(other.process), other.now_ms);
    other.store.check().await?;
    let head = scene.lease(id).await?;
    holds!(head.handle_given);
    same!(head.fencing_token, 4);
    same!(other.complete(id, 4, "1").await?.answer, Answer::Accepted);
    scene.check_row(id).await
}

pub(super) async fn a_change_by_another_process_wakes_who_waits_for_it(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "changed").await?;
    let mut other = scene.another(ground).await?;
    // What the announcement of the other process left behind.
    scene.store.changed(200).await;
    let submit = other.call("{}");
    let waiting = scene.store.changed(60_000);
    let (_, stored) = tokio::join!(waiting, other.new_execution(submit));
    stored.map(drop)
}

/// Candidates have no namespace: on a shared database a case keeps to upstreams of its own.
fn own(scene: &Scene, upstream: &str) -> String {
    format!("{}-{upstream}", scene.namespace)
}

//! Cases with many at once: one key for all, one result for an execution, and random commands from several processes.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::scene::{Random, Scene, Verdict, holds, same};
use super::{Failure, Ground};
use crate::model::decide::{Answer, Command, Failure as Reported, FailureKind, Outcome};
use crate::model::event::{Digest, ExpiryCause, Order};
use crate::model::execution::{ErrorInfo, Head, State};
use crate::model::id::ExecutionId;
use crate::store::{LeaseRef, Mark, PayloadKind, SubmitOutcome};

pub(super) async fn sixty_four_calls_with_one_key_are_one_execution(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "one-key").await?;
    let mut other = scene.another(ground).await?;
    let mut calls = Vec::new();
    for n in 0..64 {
        let scene = if n % 2 == 0 { &mut scene } else { &mut other };
        let submit = scene.keyed("k", r#"{"n":1}"#);
        let store = scene.store.clone();
        calls.push(async move { store.submit(submit).await });
    }
    let mut ids = BTreeSet::new();
    let mut new = 0;
    for outcome in join_all(calls).await {
        match outcome? {
            SubmitOutcome::New(head) => {
                new += 1;
                ids.insert(head.id());
            }
            SubmitOutcome::Existing(head) => drop(ids.insert(head.id())),
            other => return Err(Failure(format!("a call of the storm became {other:?}"))),
        }
    }
    same!((new, ids.len()), (1, 1));
    let id = ids.into_iter().next().ok_or_else(|| Failure("no id".into()))?;
    same!(scene.event_names(id).await?, ["submitted"]);
    Ok(())
}

pub(super) async fn many_workers_get_one_lease_and_one_result(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "one-lease").await?;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    let mut commands = Vec::new();
    for _ in 0..32 {
        let request = scene.lease_request();
        commands.push(scene.apply(id, Command::Lease(request)));
    }
    let answers = join_all(commands.into_iter().map(|apply| scene.store.apply(apply))).await;
    let mut leased = 0;
    for answer in answers {
        match answer?.map(|applied| applied.answer) {
            Some(Answer::Leased { fencing_token: 1, attempt: 1 }) => leased += 1,
            Some(Answer::NotLeasable) => {}
            other => return Err(Failure(format!("a lease was answered with {other:?}"))),
        }
    }
    same!(leased, 1);
    let mut commands = Vec::new();
    for n in 0..32 {
        let result = n.to_string();
        let command = Command::Complete { fencing_token: 1, result: Digest::of(&result), is_error: false };
        let mut apply = scene.apply(id, command);
        apply.payload = Some((PayloadKind::Result, result.into()));
        commands.push(apply);
    }
    let mut accepted = 0;
    for answer in join_all(commands.into_iter().map(|apply| scene.store.apply(apply))).await {
        accepted += usize::from(answer?.map(|applied| applied.answer) == Some(Answer::Accepted));
    }
    same!(accepted, 1);
    scene.check_row(id).await
}

pub(super) async fn random_commands_of_two_processes_leave_every_row_the_fold_of_its_events(
    ground: &dyn Ground,
) -> Verdict {
    let mut first = Scene::open(ground, "storm").await?;
    let mut second = first.another(ground).await?;
    let mut ids = Vec::new();
    for n in 0..12 {
        let mut submit = if n % 2 == 0 {
            first.repeatable(&format!("{{\"n\":{n}}}"))
        } else {
            first.call(&format!("{{\"n\":{n}}}"))
        };
        submit.submission.ident.policy.retry.on.tool_error = n % 4 == 0;
        submit.submission.lease = (n % 3 == 0).then(|| first.lease_request());
        ids.push(first.new_execution(submit).await?.id());
    }
    let mut states = BTreeSet::new();
    for step in 0..600_u64 {
        let scene = if first.random().below(4) == 0 { &mut second } else { &mut first };
        scene.now_ms += 37;
        let id = ids[scene.random().below(ids.len() as u64) as usize];
        let seen = scene.head(id).await?;
        states.insert(seen.state);
        random_step(scene, id, &seen, step).await?;
    }
    for id in &ids {
        first.check_row(*id).await?;
        second.check_row(*id).await?;
    }
    // A storm that met few states proves little.
    holds!(states.len() >= 6);
    Ok(())
}

pub(super) async fn random_step(scene: &mut Scene, id: ExecutionId, seen: &Head, step: u64) -> Verdict {
    let token = match scene.random().below(8) {
        0 => seen.fencing_token - 1,
        _ => seen.fencing_token,
    };
    match scene.random().below(24) {
        0 => {
            let lease = LeaseRef { id, fencing_token: token };
            scene.store.heartbeat(vec![lease], 30_000, scene.now_ms).await?;
        }
        1 => scene.store.mark(id, Mark::HandleGiven(scene.process), scene.now_ms),
        2 => scene.store.mark(id, Mark::Left(scene.process), scene.now_ms),
        3 => scene.store.mark(id, Mark::Waiting(scene.process), scene.now_ms),
        _ => {
            let result = format!("{{\"step\":{step}}}");
            let request = scene.lease_request();
            let command = random_command(scene.random(), token, &result).unwrap_or(Command::Lease(request));
            let mut apply = scene.apply(id, command);
            apply.payload = Some((PayloadKind::Result, result.into()));
            scene.run_apply(apply).await?;
        }
    }
    Ok(())
}

/// A command of any kind, mostly one that keeps the execution alive; `None` stands for a lease.
fn random_command(random: &mut Random, fencing_token: i64, result: &str) -> Option<Command> {
    let by = Order { principal: "op".into(), reason: "storm".into() };
    let digest = Digest::of(result);
    let error = ErrorInfo { code: "lost".into(), message: "the storm".into() };
    Some(match random.below(60) {
        0 => Command::Complete { fencing_token, result: digest, is_error: false },
        1..=3 => Command::Complete { fencing_token, result: digest, is_error: true },
        4..=9 => {
            let kind = [FailureKind::NotStarted, FailureKind::Lost, FailureKind::Reported { retryable: true }]
                [random.below(3) as usize];
            let failure = Reported { kind, error, retry_after_ms: Some(50) };
            Command::Fail { fencing_token, failure }
        }
        10..=13 => Command::Release { fencing_token },
        14..=17 => Command::Hold { fencing_token },
        18..=21 => Command::Park { fencing_token },
        22..=29 => Command::Resume,
        30..=33 => Command::Expire { fencing_token, cause: ExpiryCause::ProcessDied },
        34 => Command::TimeOut { nobody_runs: false },
        35..=37 => Command::Promote,
        38 => Command::Cancel(by),
        39..=42 => Command::Retry(by),
        43 => Command::Resolve { by, outcome: Outcome::Failed },
        44..=45 => Command::Reconcile { fencing_token, found: None },
        46 => Command::Reconcile { fencing_token, found: Some(digest) },
        47 => Command::Heartbeat { fencing_token, ttl_ms: 10_000 },
        _ => return None,
    })
}

pub(super) async fn a_batch_decides_on_what_it_wrote_itself(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "one-batch").await?;
    // Sent at once, they share a transaction wherever writes share one: each must see the one before.
    let mut submit = scene.call("{}");
    submit.submission.lease = Some(scene.lease_request());
    let id = submit.submission.ident.id;
    let complete = Command::Complete { fencing_token: 1, result: Digest::of("1"), is_error: false };
    let mut complete = scene.apply(id, complete);
    complete.payload = Some((PayloadKind::Result, "1".into()));
    let late = scene.apply(id, Command::Release { fencing_token: 1 });
    let repeat = scene.call("{}");
    let store = &scene.store;
    let marked = async {
        store.mark(id, Mark::Delivered(scene.process), scene.now_ms);
        store.submit(repeat).await
    };
    let (stored, completed, late, repeated) =
        tokio::join!(biased; store.submit(submit), store.apply(complete), store.apply(late), marked);
    holds!(matches!(stored?, SubmitOutcome::New(_)));
    same!(completed?.map(|applied| applied.answer), Some(Answer::Accepted));
    same!(late?.map(|applied| (applied.answer, applied.head.state)), Some((Answer::Ended, State::Completed)));
    holds!(matches!(repeated?, SubmitOutcome::New(head) if head.id() != id));
    scene.check_row(id).await
}

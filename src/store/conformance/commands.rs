//! Cases about commands on one execution: each one's effect on the row and the log, fencing, late results, repetition.

use super::Ground;
use super::scene::{Scene, Verdict, form, holds, same};
use crate::model::decide::{Answer, Command, Failure as Reported, FailureKind, Outcome};
use crate::model::event::{Digest, Event, ExpiryCause, Order};
use crate::model::execution::{Effect, ErrorInfo, ResultSource, State};
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
    let again = scene.complete(id, 1, r#"{"content": []}"#).await?;
    same!(again.answer, Answer::AlreadyDone);
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

pub(super) async fn a_repeated_command_is_known_after_a_reopening(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "repeated-later").await?;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    let token = scene.lease(id).await?.fencing_token;
    let command = Command::Complete { fencing_token: token, result: Digest::of("1"), is_error: false };
    let mut apply = scene.apply(id, command);
    apply.payload = Some((PayloadKind::Result, "1".into()));
    scene.run_apply(apply.clone()).await?;
    scene.store.close().await;
    scene.store = ground.open().await?;
    same!(scene.run_apply(apply).await?.answer, Answer::Accepted);
    same!(scene.event_names(id).await?, ["submitted", "leased", "completed"]);
    Ok(())
}

pub(super) async fn a_stale_token_changes_nothing_and_leaves_a_note(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "stale").await?;
    let submit = scene.repeatable("{}");
    let id = scene.new_execution(submit).await?.id();
    scene.lease(id).await?;
    let cause = ExpiryCause::ProcessDied;
    let retried = scene.run(id, Command::Expire { fencing_token: 1, cause }).await?.head;
    same!(retried.state, State::Scheduled);
    scene.now_ms = retried.run_at_ms;
    same!(scene.lease(id).await?.fencing_token, 2);
    let late = scene.complete(id, 1, "old").await?;
    same!(late.answer, Answer::Stale);
    same!(late.head.state, State::Leased);
    same!(scene.store.payload(id, PayloadKind::Result).await?, None);
    let records = scene.events(id).await?;
    let note =
        form!(records.last().map(|record| &record.event), Some(Event::Rejected { result, .. }) => result.clone());
    same!(note, Some(Digest::of("old")));
    same!(scene.run(id, Command::Heartbeat { fencing_token: 1, ttl_ms: 1 }).await?.answer, Answer::Stale);
    scene.complete(id, 2, "new").await?;
    same!(scene.store.payload(id, PayloadKind::Result).await?.as_deref(), Some("new"));
    let ended = scene.complete(id, 1, "old").await?;
    same!(ended.answer, Answer::Ended);
    same!(scene.store.payload(id, PayloadKind::Result).await?.as_deref(), Some("new"));
    scene.check_row(id).await
}

pub(super) async fn notes_are_capped(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "notes").await?;
    let submit = scene.call("{}");
    let head = scene.completed(submit, "1").await?;
    for _ in 0..200 {
        same!(scene.complete(head.id(), 7, "2").await?.answer, Answer::Ended);
    }
    let records = scene.events(head.id()).await?;
    holds!(records.len() < 100);
    scene.check_row(head.id()).await
}

pub(super) async fn a_lost_attempt_is_unknown_and_a_late_result_completes_it(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "late").await?;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    scene.lease(id).await?;
    scene.now_ms += 30_000;
    let expire = Command::Expire { fencing_token: 1, cause: ExpiryCause::LeaseExpired };
    let lost = scene.run(id, expire).await?.head;
    same!((lost.state, lost.effect_possible), (State::Unknown, true));
    same!(lost.error.as_ref().map(|error| error.code.as_str()), Some("lease_expired"));
    let late = scene.complete(id, 1, "late").await?;
    same!((late.head.state, late.head.source), (State::Completed, Some(ResultSource::LateResult)));
    same!(scene.store.payload(id, PayloadKind::Result).await?.as_deref(), Some("late"));
    same!(scene.event_names(id).await?, ["submitted", "leased", "lost", "completed"]);
    scene.check_row(id).await
}

pub(super) async fn an_error_that_ends_the_call_is_kept_with_its_payload(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "rpc-error").await?;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    scene.lease(id).await?;
    let error = ErrorInfo { code: "rpc_error".into(), message: "the upstream refused".into() };
    let failure = Reported { kind: FailureKind::RpcError, error: error.clone(), retry_after_ms: None };
    let mut apply = scene.apply(id, Command::Fail { fencing_token: 1, failure });
    apply.payload = Some((PayloadKind::Error, r#"{"code":-32000}"#.into()));
    let failed = scene.run_apply(apply).await?.head;
    same!((failed.state, &failed.error), (State::Failed, &Some(error)));
    same!(scene.store.payload(id, PayloadKind::Error).await?.as_deref(), Some(r#"{"code":-32000}"#));
    scene.check_row(id).await
}

pub(super) async fn an_error_that_is_retried_keeps_no_payload(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "retried").await?;
    let submit = scene.repeatable("{}");
    let id = scene.new_execution(submit).await?.id();
    scene.lease(id).await?;
    let error = ErrorInfo { code: "child_died".into(), message: "the child died".into() };
    let failure = Reported { kind: FailureKind::Lost, error, retry_after_ms: Some(70) };
    let mut apply = scene.apply(id, Command::Fail { fencing_token: 1, failure });
    apply.payload = Some((PayloadKind::Error, "{}".into()));
    let retried = scene.run_apply(apply).await?.head;
    same!((retried.state, retried.run_at_ms), (State::Scheduled, scene.now_ms + 70));
    same!(scene.store.payload(id, PayloadKind::Error).await?, None);
    same!(scene.run(id, Command::Promote).await?.answer, Answer::Nothing);
    scene.now_ms += 70;
    same!(scene.run(id, Command::Promote).await?.head.state, State::Ready);
    same!(scene.lease(id).await?.attempt, 2);
    scene.check_row(id).await
}

pub(super) async fn input_rounds_keep_or_give_back_the_lease(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "input").await?;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    scene.lease(id).await?;
    let held = scene.run(id, Command::Hold { fencing_token: 1 }).await?.head;
    same!((held.state, held.lease.is_some()), (State::Waiting, true));
    let resumed = scene.run(id, Command::Resume).await?.head;
    same!((resumed.state, resumed.lease.is_some()), (State::Leased, true));
    let parked = scene.run(id, Command::Park { fencing_token: 1 }).await?.head;
    same!((parked.state, parked.lease.is_some()), (State::Waiting, false));
    let resumed = scene.run(id, Command::Resume).await?.head;
    same!((resumed.state, resumed.continues), (State::Ready, true));
    let leased = scene.lease(id).await?;
    same!((leased.fencing_token, leased.attempt), (2, 1));
    same!(scene.head(id).await?, leased);
    scene.check_row(id).await
}

pub(super) async fn cancelling_says_whether_the_call_may_have_run(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "cancel").await?;
    let order = Order { principal: "ann".into(), reason: "enough".into() };
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    let cancelled = scene.run(id, Command::Cancel(order.clone())).await?.head;
    same!((cancelled.state, cancelled.effect), (State::Cancelled, Some(Effect::None)));
    let mut submit = scene.call("{}");
    submit.submission.lease = Some(scene.lease_request());
    let id = scene.new_execution(submit).await?.id();
    let cancelled = scene.run(id, Command::Cancel(order)).await?.head;
    same!((cancelled.state, cancelled.effect), (State::Cancelled, Some(Effect::Unknown)));
    same!(scene.head(id).await?, cancelled);
    same!(scene.complete(id, 1, "1").await?.answer, Answer::Ended);
    same!(scene.event_names(id).await?, ["submitted", "leased", "cancelled", "rejected"]);
    scene.check_row(id).await
}

pub(super) async fn a_person_decides_about_an_unknown(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "resolve").await?;
    let by = Order { principal: "op".into(), reason: "looked".into() };
    for path in 0..4 {
        let submit = scene.call(&format!("{{\"path\":{path}}}"));
        let id = scene.new_execution(submit).await?.id();
        scene.lease(id).await?;
        let cause = ExpiryCause::ProcessDied;
        scene.run(id, Command::Expire { fencing_token: 1, cause }).await?;
        let (command, state) = match path {
            0 => {
                let outcome = Outcome::Completed { result: Digest::of("1"), is_error: false };
                (Command::Resolve { by: by.clone(), outcome }, State::Completed)
            }
            1 => (Command::Resolve { by: by.clone(), outcome: Outcome::Failed }, State::Failed),
            2 => (Command::Reconcile { fencing_token: 1, found: Some(Digest::of("1")) }, State::Completed),
            _ => (Command::Retry(by.clone()), State::Scheduled),
        };
        let mut apply = scene.apply(id, command);
        apply.payload = Some((PayloadKind::Result, "1".into())).filter(|_| path != 1);
        let head = scene.run_apply(apply).await?.head;
        same!((head.state, head.attempts_allowed >= head.attempt), (state, true));
        let stored = scene.store.payload(id, PayloadKind::Result).await?;
        same!(stored.as_deref(), (state == State::Completed).then_some("1"));
        scene.check_row(id).await?;
    }
    Ok(())
}

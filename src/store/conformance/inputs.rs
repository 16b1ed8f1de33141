//! Questions to clients: stored with the wait they mean, answered once, kept for later attempts.

use futures_util::future::join_all;

use super::Ground;
use super::scene::{Scene, Verdict, form, holds, same};
use crate::model::decide::{Answer, Command};
use crate::model::event::ExpiryCause;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::{
    AnswerInputs, AnsweredInputs, Ask, Asked, Fate, InputOutcome, InputRow, LeaseRef, NewAnswer, NewQuestion,
    Retention, WantedKeys,
};

fn ask(scene: &mut Scene, head: &Head, names: &[&str]) -> Ask {
    let question = |name: &&str| NewQuestion {
        name: (*name).to_owned(),
        method: "elicitation/create".into(),
        params: format!("{{\"message\": \"{name}?\"}}").as_str().into(),
        params_hash: format!("hash of {name}"),
    };
    Ask {
        lease: LeaseRef { id: head.id(), fencing_token: head.fencing_token },
        questions: names.iter().map(question).collect(),
        parked: false,
        state: None,
        operation: scene.operation(),
        now_ms: scene.now_ms,
    }
}

async fn leased(scene: &mut Scene, repeatable: bool) -> Result<Head, super::Failure> {
    let submit = if repeatable { scene.repeatable("{}") } else { scene.call("{}") };
    let id = scene.new_execution(submit).await?.id();
    scene.lease(id).await
}

async fn stored(scene: &Scene, ask: Ask) -> Result<(Head, Vec<InputRow>), super::Failure> {
    Ok(form!(scene.store.ask(ask).await?, Asked::Stored { head, rows } => (*head, rows)))
}

fn answering(scene: &mut Scene, id: ExecutionId, (number, outcome, text): (u32, InputOutcome, &str)) -> AnswerInputs {
    let is_answer = outcome.is_answer();
    let answer = NewAnswer {
        number,
        outcome,
        text: is_answer.then(|| text.into()),
        hash: is_answer.then(|| format!("hash of {text}")),
    };
    let operation = scene.operation();
    AnswerInputs { id, answers: vec![answer], by: "ann".into(), operation, now_ms: scene.now_ms }
}

async fn answer(
    scene: &mut Scene,
    id: ExecutionId,
    told: (u32, InputOutcome, &str),
) -> Result<AnsweredInputs, super::Failure> {
    let answers = answering(scene, id, told);
    scene.store.answer(answers).await?.ok_or_else(|| super::Failure(format!("execution {id} is missing")))
}

pub(super) async fn a_question_is_stored_with_its_wait_and_answered_once(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "question").await?;
    let head = leased(&mut scene, false).await?;
    let id = head.id();
    let first = ask(&mut scene, &head, &["a"]);
    let (held, rows) = stored(&scene, first).await?;
    same!((held.state, held.lease.is_some(), held.waiting_since_ms), (State::Waiting, true, Some(scene.now_ms)));
    same!((rows.len(), rows[0].number, rows[0].round, &*rows[0].key), (1, 1, 1, "a"));
    // Another one while the first is open: the same wait, a key of its own.
    let second = ask(&mut scene, &held, &["a"]);
    let (still, rows) = stored(&scene, second).await?;
    same!((still.next_seq, rows[0].number, rows[0].round, &*rows[0].key), (held.next_seq, 2, 1, "a-2"));
    scene.now_ms += 5_000;
    let one = answer(&mut scene, id, (1, InputOutcome::Result, "{\"a\": 1.0}")).await?;
    same!((one.fates, one.head.state), (vec![Fate::Taken], State::Waiting));
    let both = answer(&mut scene, id, (2, InputOutcome::Error, "{}")).await?;
    same!((both.fates, both.head.state, both.head.waited_ms), (vec![Fate::Taken], State::Leased, 5_000));
    same!(both.rows[0].answer.as_deref(), Some("{\"a\": 1.0}"));
    same!(answer(&mut scene, id, (1, InputOutcome::Result, "{\"a\": 1.0}")).await?.fates, [Fate::Same]);
    same!(answer(&mut scene, id, (1, InputOutcome::Result, "{}")).await?.fates, [Fate::Other]);
    same!(answer(&mut scene, id, (2, InputOutcome::Result, "{}")).await?.fates, [Fate::Other]);
    same!(answer(&mut scene, id, (3, InputOutcome::Result, "{}")).await?.fates, [Fate::Unknown]);
    same!(scene.event_names(id).await?, ["submitted", "leased", "held", "resumed"]);
    same!(scene.store.inputs(id).await?.len(), 2);
    let missing = scene.execution_id();
    let operation = scene.operation();
    let answers = AnswerInputs { id: missing, answers: vec![], by: "ann".into(), operation, now_ms: scene.now_ms };
    holds!(scene.store.answer(answers).await?.is_none());
    scene.check_row(id).await
}

pub(super) async fn many_executions_ask_at_once_and_each_is_answered(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "questions").await?;
    let other = scene.another(ground).await?;
    let mut heads = Vec::new();
    for _ in 0..64 {
        heads.push(leased(&mut scene, false).await?);
    }
    // Half of them are in the other process, as are the answers to the first half.
    let stores = [&scene.store, &other.store].map(std::sync::Arc::clone);
    let asks: Vec<_> = heads.iter().map(|head| ask(&mut scene, head, &["a"])).collect();
    let asked = asks.into_iter().enumerate().map(|(n, ask)| stores[n % 2].ask(ask));
    for asked in join_all(asked).await {
        same!(form!(asked?, Asked::Stored { rows, .. } => rows).len(), 1);
    }
    let answers: Vec<_> =
        heads.iter().map(|head| answering(&mut scene, head.id(), (1, InputOutcome::Result, "{}"))).collect();
    let answered = answers.into_iter().enumerate().map(|(n, answers)| stores[(n + 1) % 2].answer(answers));
    for answered in join_all(answered).await {
        same!(answered?.map(|answered| answered.fates), Some(vec![Fate::Taken]));
    }
    for head in heads {
        scene.check_row(head.id()).await?;
    }
    Ok(())
}

pub(super) async fn a_question_needs_the_lease(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "question-lease").await?;
    let head = leased(&mut scene, false).await?;
    let mut stale = ask(&mut scene, &head, &["a"]);
    stale.lease.fencing_token = 9;
    form!(scene.store.ask(stale).await?, Asked::Refused(Answer::Stale) => ());
    scene.complete(head.id(), 1, "1").await?;
    let late = ask(&mut scene, &head, &["a"]);
    form!(scene.store.ask(late).await?, Asked::Refused(Answer::Ended) => ());
    same!(scene.store.inputs(head.id()).await?, []);
    scene.check_row(head.id()).await
}

pub(super) async fn a_question_of_a_lost_attempt_keeps_its_answer_for_the_next(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "question-again").await?;
    let head = leased(&mut scene, true).await?;
    let id = head.id();
    let first = ask(&mut scene, &head, &["a", "b"]);
    stored(&scene, first).await?;
    scene.run(id, Command::Expire { fencing_token: 1, cause: ExpiryCause::ProcessDied }).await?;
    // Nobody runs it now, and the answer counts all the same.
    let told = answer(&mut scene, id, (1, InputOutcome::Result, "{}")).await?;
    same!((told.fates, told.head.state), (vec![Fate::Taken], State::Scheduled));
    answer(&mut scene, id, (2, InputOutcome::Withdrawn, "")).await?;
    scene.now_ms += 60_000;
    let head = scene.lease(id).await?;
    let known = ask(&mut scene, &head, &["a"]);
    let (head, rows) = stored(&scene, known).await?;
    same!((head.state, rows[0].number, rows[0].outcome), (State::Leased, 1, Some(InputOutcome::Result)));
    let open = ask(&mut scene, &head, &["b", "a"]);
    let (head, rows) = stored(&scene, open).await?;
    same!((head.state, rows[0].number, rows[0].outcome), (State::Waiting, 2, None));
    // The second "a" of this attempt was never asked before.
    same!((rows[1].number, rows[1].outcome), (3, None));
    scene.check_row(id).await
}

pub(super) async fn a_parked_round_gives_its_lease_up_and_keeps_its_state(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "question-parked").await?;
    let head = leased(&mut scene, false).await?;
    let id = head.id();
    let mut parked = ask(&mut scene, &head, &["a"]);
    (parked.parked, parked.state) = (true, Some("\"s\"".into()));
    let (head, rows) = stored(&scene, parked).await?;
    same!((head.state, head.lease, rows[0].state.as_deref()), (State::Waiting, None, Some("\"s\"")));
    same!(scene.store.inputs_due(scene.now_ms - 1, 10).await?.iter().any(|due| due.0 == id), false);
    same!(scene.store.inputs_due(scene.now_ms, 1_000).await?.contains(&(id, 1)), true);
    let expired = answer(&mut scene, id, (1, InputOutcome::Expired, "")).await?;
    same!((expired.fates, expired.head.state), (vec![Fate::Taken], State::Ready));
    same!(answer(&mut scene, id, (1, InputOutcome::Result, "{}")).await?.fates, [Fate::Other]);
    same!(scene.store.inputs_due(scene.now_ms, 1_000).await?.contains(&(id, 1)), false);
    scene.check_row(id).await
}

pub(super) async fn questions_of_what_has_ended_are_withdrawn_and_go_with_the_payloads(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "question-ended").await?;
    let head = leased(&mut scene, false).await?;
    let id = head.id();
    let asked = ask(&mut scene, &head, &["a"]);
    stored(&scene, asked).await?;
    scene.complete(id, 1, "1").await?;
    same!(answer(&mut scene, id, (1, InputOutcome::Result, "{}")).await?.fates, [Fate::Unknown]);
    let expired = answer(&mut scene, id, (1, InputOutcome::Expired, "")).await?;
    same!((expired.rows[0].outcome, expired.head.state), (Some(InputOutcome::Withdrawn), State::Completed));
    scene.now_ms += 2_000;
    let retention = Retention { payloads_ms: 1_000, executions_ms: 10_000, batch: 10 };
    scene.store.prune(retention, scene.now_ms).await?;
    same!(scene.store.inputs(id).await?, []);
    scene.check_row(id).await
}

pub(super) async fn sealing_keys_rotate_and_the_one_before_is_kept(ground: &dyn Ground) -> Verdict {
    let scene = Scene::open(ground, "sealing").await?;
    let wanted = |byte: u8, due_before_ms: i64, now_ms: i64| WantedKeys { fresh: [byte; 32], due_before_ms, now_ms };
    let now_ms = scene.now_ms;
    let before = scene.store.sealing_keys(wanted(1, now_ms, now_ms)).await?;
    let same_again = scene.store.sealing_keys(wanted(2, now_ms, now_ms)).await?;
    same!(same_again, before);
    let rotated = scene.store.sealing_keys(wanted(3, now_ms + 1, now_ms + 1)).await?;
    same!((rotated.len(), rotated[0].key, &rotated[1]), (2, [3; 32], &before[0]));
    let again = scene.store.sealing_keys(wanted(4, now_ms + 2, now_ms + 2)).await?;
    same!((again.len(), again[0].key, again[1].key), (2, [4; 32], [3; 32]));
    Ok(())
}

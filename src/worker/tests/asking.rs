//! Tools that ask their client: what stands still meanwhile, what they are run again with, and what they are told when
//! nobody answers.

use super::*;
use crate::engine::asking::{Question, Told};
use crate::model::principal::Principal;
use crate::store::Payload;
use crate::worker::executor::Continuation;

const CLIENT: &str = r#"{"durable-mcp/client":{"capabilities":{"elicitation":{},"sampling":{}}}}"#;

fn asking_call(policy: Policy) -> Call {
    Call { meta: Some(CLIENT.into()), ..call(policy) }
}

fn question(method: &str) -> Question {
    Question { key: "sure".into(), method: method.into(), params: r#"{"message":"Sure?"}"#.into() }
}

fn form() -> Question {
    question("elicitation/create")
}

fn yes() -> Payload {
    r#"{"action":"accept"}"#.into()
}

fn asks(questions: Vec<Question>, state: Option<&str>) -> Act {
    Act::End(Outcome::InputRequired { questions, state: state.map(Into::into) })
}

impl Scene {
    /// Waits until so many questions are open.
    async fn open(&self, id: crate::model::id::ExecutionId, count: usize) {
        soon(async {
            while self.engine.questions(id).await.unwrap().len() != count {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    async fn says_yes(&self, id: crate::model::id::ExecutionId, key: &str) {
        let answers = vec![(key.to_owned(), Told::Result(yes()))];
        self.engine.answer(id, answers, &Principal::anonymous()).await.unwrap();
    }
}

#[tokio::test]
async fn no_time_limit_runs_while_the_client_is_asked() {
    let mut scene = Scene::new(at_once(1)).await;
    let limits = Timeouts { attempt_ms: 400, total_ms: 500, idle_ms: Some(300) };
    let mut ticket = scene.submit(asking_call(timeouts(limits))).await;
    let run = scene.run().await;
    let client = run.job.asks.clone();
    let asking = tokio::spawn(async move { client.ask(form()).await });
    scene.open(ticket.id(), 1).await;
    // Longer than any of the limits.
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    assert!(!run.job.cancel.is_cancelled());
    scene.says_yes(ticket.id(), "sure").await;
    assert_eq!(soon(asking).await.unwrap(), Ok(Told::Result(yes())));
    run.end("done");
    assert_eq!(soon(ticket.end()).await.payload, Some(result("done")));
}

#[tokio::test]
async fn after_the_answer_the_limits_run_on() {
    let mut scene = Scene::new(at_once(1)).await;
    let limits = Timeouts { attempt_ms: 200, ..Timeouts::default() };
    let mut ticket = scene.submit(asking_call(timeouts(limits))).await;
    let run = scene.run().await;
    let client = run.job.asks.clone();
    let asking = tokio::spawn(async move { client.ask(form()).await });
    scene.open(ticket.id(), 1).await;
    scene.says_yes(ticket.id(), "sure").await;
    soon(asking).await.unwrap().unwrap();
    assert_eq!(soon(ticket.end()).await.head.error.as_ref().unwrap().code, "attempt_timeout");
}

#[tokio::test]
async fn a_tool_that_ends_with_a_question_frees_its_slot_and_is_run_again_with_the_answer() {
    let mut scene = Scene::new(at_once(1)).await;
    let mut ticket = scene.submit(asking_call(Policy::default())).await;
    let id = ticket.id();
    scene.run().await.act(asks(vec![form()], Some(r#""s""#)));
    scene.open(id, 1).await;
    scene.works_on().await;
    scene.says_yes(id, "sure").await;
    let run = scene.run().await;
    let expected = Continuation { state: Some(r#""s""#.into()), responses: vec![("sure".into(), yes())] };
    assert_eq!((run.job.attempt, &run.job.continuation), (1, &Some(expected)));
    run.end("done");
    assert_eq!(soon(ticket.end()).await.payload, Some(result("done")));
    assert_eq!(names(&scene.engine, id).await, ["submitted", "leased", "parked", "resumed", "leased", "completed"]);
}

#[tokio::test]
async fn a_tool_that_asks_nothing_goes_on_at_once_with_its_state() {
    let mut scene = Scene::new(at_once(1)).await;
    let mut ticket = scene.submit(asking_call(Policy::default())).await;
    scene.run().await.act(asks(Vec::new(), Some("7")));
    let run = scene.run().await;
    assert_eq!(run.job.continuation, Some(Continuation { state: Some("7".into()), responses: Vec::new() }));
    run.end("done");
    soon(ticket.end()).await;
    assert_eq!(names(&scene.engine, ticket.id()).await, ["submitted", "leased", "completed"]);
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_fails_the_call_with_what_it_lacks() {
    let mut scene = Scene::new(at_once(1)).await;
    let mut ticket = scene.submit(asking_call(Policy::default())).await;
    scene.run().await.act(asks(vec![form(), question("roots/list")], None));
    let end = soon(ticket.end()).await;
    assert_eq!(end.head.state, State::Failed);
    let error: serde_json::Value = serde_json::from_str(&end.payload.unwrap()).unwrap();
    assert_eq!(error["code"], -32021);
    assert_eq!(error["data"]["requiredCapabilities"], serde_json::json!({"roots": {}}));
}

#[tokio::test]
async fn a_round_is_offered_until_the_store_takes_it() {
    let mut scene = Scene::new(at_once(1)).await;
    let ticket = scene.submit(asking_call(Policy::default())).await;
    let run = scene.run().await;
    scene.store.fail("ask", 2);
    run.act(asks(vec![form()], None));
    scene.open(ticket.id(), 1).await;
    assert_eq!(scene.store.faults_left("ask"), 0);
}

#[tokio::test]
async fn answers_that_come_with_a_call_go_to_its_tool() {
    let mut scene = Scene::new(at_once(1)).await;
    let meta = r#"{"durable-mcp/inputResponses":{"a":{"action":"decline"}}}"#;
    let mut ticket = scene.submit(Call { meta: Some(meta.into()), ..call(Policy::default()) }).await;
    let run = scene.run().await;
    let responses = vec![("a".to_owned(), r#"{"action":"decline"}"#.into())];
    assert_eq!(run.job.continuation, Some(Continuation { state: None, responses }));
    run.end("done");
    soon(ticket.end()).await;
}

#[tokio::test]
async fn what_nobody_answers_is_turned_away_or_fails_the_call() {
    let mut scene = Scene::new(at_once(2)).await;
    let timeout_ms = scene.engine.settings().input_timeout_ms;
    let mut turned = scene.submit(asking_call(Policy::default())).await;
    scene.run().await.act(asks(vec![form()], None));
    scene.open(turned.id(), 1).await;
    let mut failed = scene.submit(asking_call(Policy::default())).await;
    scene.run().await.act(asks(vec![question("sampling/createMessage")], None));
    scene.open(failed.id(), 1).await;
    scene.rig.time.advance(timeout_ms);
    scene.engine.settle_due().await.unwrap();
    let run = scene.run().await;
    assert_eq!(run.job.id, turned.id());
    assert_eq!(&*run.job.continuation.as_ref().unwrap().responses[0].1, r#"{"action":"cancel"}"#);
    run.end("done");
    assert_eq!(soon(turned.end()).await.payload, Some(result("done")));
    let end = soon(failed.end()).await;
    assert_eq!((end.head.state, &*end.head.error.as_ref().unwrap().code), (State::Failed, "input_timeout"));
}

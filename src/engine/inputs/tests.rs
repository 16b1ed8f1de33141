//! Questions from a tool to its client and back: held and parked, over two processes, lost and asked again.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::task::JoinHandle;

use super::super::tests::rig::*;
use super::{Answered, Parked};
use crate::engine::asking::{AskError, Pauses, Question, Told};
use crate::engine::client::ClientContext;
use crate::engine::running::Work;
use crate::engine::ticket::News;
use crate::engine::{Engine, Error, Settings};
use crate::model::decide::Answer;
use crate::model::execution::State;
use crate::model::policy::Policy;
use crate::model::principal::Principal;
use crate::store::{Fate, Payload};

fn client() -> Arc<ClientContext> {
    let capabilities = r#"{"elicitation":{},"sampling":{}}"#.to_owned();
    let capabilities = serde_json::value::RawValue::from_string(capabilities).unwrap();
    Arc::new(ClientContext { capabilities: Some(capabilities), ..ClientContext::default() })
}

fn question(text: &str) -> Question {
    let params = format!(r#"{{"message":"{text}","requestedSchema":{{"type":"object","properties":{{}}}}}}"#);
    Question { key: "confirm".into(), method: "elicitation/create".into(), params: params.into() }
}

fn yes() -> Payload {
    r#"{"action":"accept","content":{"ok":true}}"#.into()
}

fn ask(engine: &Arc<Engine>, work: &Work, question: Question) -> JoinHandle<Result<Told, AskError>> {
    let asks = engine.asks(work, client(), Arc::new(Pauses::default()));
    tokio::spawn(async move { asks.ask(question).await })
}

async fn asked(ticket: &mut crate::engine::ticket::Ticket) -> Vec<crate::engine::asking::OpenQuestion> {
    loop {
        if let News::Asked(round) = soon(ticket.news()).await {
            return round.questions.clone();
        }
    }
}

async fn open_after(engine: &Engine, id: crate::model::id::ExecutionId, count: usize) {
    soon(async {
        while engine.questions(id).await.unwrap().len() != count {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn me() -> Principal {
    Principal::anonymous()
}

#[tokio::test]
async fn a_held_question_keeps_the_lease_and_is_answered_once() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let id = ticket.id();
    let asking = ask(&engine, &work, question("Sure?"));
    let open = asked(&mut ticket).await;
    assert_eq!((open.len(), open[0].number, &*open[0].key), (1, 1, "confirm"));
    let row = head(&engine, id).await;
    assert_eq!((row.state, row.lease.is_some()), (State::Waiting, true));
    let beat = engine.store().heartbeat(vec![work.lease()], 30_000, engine.clock().now_ms()).await.unwrap();
    assert_eq!(beat, [Answer::Extended]);
    let said = engine.answer(id, vec![("confirm".into(), Told::Result(yes()))], &me()).await.unwrap();
    assert_eq!((said.fates, said.open.len()), (vec![Fate::Taken], 0));
    assert_eq!(soon(asking).await.unwrap(), Ok(Told::Result(yes())));
    assert!(asked(&mut ticket).await.is_empty());
    assert_eq!(head(&engine, id).await.state, State::Leased);
    let respelled: Payload = r#"{"content":{"ok":true},"action":"accept"}"#.into();
    let again = engine.answer_numbered(id, vec![(1, Told::Result(respelled))], &me()).await.unwrap();
    assert_eq!(again.fates, [Fate::Same]);
    let other: Payload = r#"{"action":"decline"}"#.into();
    let other = engine.answer(id, vec![("confirm".into(), Told::Result(other))], &me()).await.unwrap();
    assert_eq!(other.fates, [Fate::Other]);
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    assert_eq!(names(&engine, id).await, ["submitted", "leased", "held", "resumed", "completed"]);
}

#[tokio::test]
async fn only_the_owner_may_answer_and_a_foreign_execution_is_as_if_missing() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let asking = ask(&engine, &work, question("Sure?"));
    asked(&mut ticket).await;
    for eve in [
        Principal { subject: "eve".into(), ..Principal::anonymous() },
        Principal { namespace: "acme".into(), ..Principal::anonymous() },
    ] {
        let said = engine.answer_numbered(ticket.id(), vec![(1, Told::Result(yes()))], &eve).await;
        assert!(matches!(said, Err(Error::NotFound(_))));
    }
    assert!(!asking.is_finished());
    engine.answer_numbered(ticket.id(), vec![(1, Told::Result(yes()))], &me()).await.unwrap();
    assert_eq!(soon(asking).await.unwrap(), Ok(Told::Result(yes())));
}

#[tokio::test]
async fn an_answer_taken_by_another_process_reaches_the_tool() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    engine.start_loops(false);
    let other = rig.bare_engine(rig.store().await, Settings::default(), None).await;
    other.start_loops(false);
    let ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let mut elsewhere = other.attach(ticket.id(), &me()).await.unwrap();
    let asking = ask(&engine, &work, question("Sure?"));
    let open = asked(&mut elsewhere).await;
    assert_eq!(open.len(), 1);
    other.answer_numbered(ticket.id(), vec![(open[0].number, Told::Result(yes()))], &me()).await.unwrap();
    assert_eq!(soon(asking).await.unwrap(), Ok(Told::Result(yes())));
}

#[tokio::test]
async fn the_same_question_of_a_later_attempt_is_answered_from_the_store() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let mut ticket = engine.submit(call(at_least_once())).await.unwrap();
    let id = ticket.id();
    let work = hands.next().await;
    let asking = ask(&engine, &work, question("Sure?"));
    asked(&mut ticket).await;
    let other = rig.bare_engine(rig.store().await, Settings::default(), None).await;
    // The process is killed: nobody withdraws anything.
    rig.time.advance(31_000);
    other.settle_due().await.unwrap();
    assert_eq!(head(&engine, id).await.state, State::Scheduled);
    let said = other.answer_numbered(id, vec![(1, Told::Result(yes()))], &me()).await.unwrap();
    assert_eq!((said.fates, said.head.state), (vec![Fate::Taken], State::Scheduled));
    asking.abort();
    drop(work);
    rig.time.advance(5_000);
    let (second, mut hands) = rig.engine(at_once(1)).await;
    assert!(claim_oldest(&second).await);
    let work = hands.next().await;
    assert_eq!(work.head.attempt, 2);
    assert_eq!(soon(ask(&second, &work, question("Sure?"))).await.unwrap(), Ok(Told::Result(yes())));
    assert_eq!(count(&second, id, "held").await, 1);
    // Another question is another one.
    let asking = ask(&second, &work, question("Really?"));
    open_after(&second, id, 1).await;
    let open = second.questions(id).await.unwrap();
    assert_eq!((open[0].number, &*open[0].key), (2, "confirm-2"));
    asking.abort();
}

#[tokio::test]
async fn under_at_most_once_a_lost_leg_withdraws_its_question() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let id = ticket.id();
    let work = hands.next().await;
    let _asking = ask(&engine, &work, question("Sure?"));
    asked(&mut ticket).await;
    engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
    assert_eq!(head(&engine, id).await.state, State::Unknown);
    assert!(engine.questions(id).await.unwrap().is_empty());
    let said = engine.answer_numbered(id, vec![(1, Told::Result(yes()))], &me()).await.unwrap();
    assert_eq!(said.fates, [Fate::Unknown]);
}

#[tokio::test]
async fn a_cancel_ends_the_waiting_and_a_tool_that_gives_up_withdraws() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(2)).await;
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let asking = ask(&engine, &work, question("Sure?"));
    asked(&mut ticket).await;
    engine.cancel(ticket.id(), order()).await.unwrap();
    assert_eq!(soon(asking).await.unwrap(), Err(AskError::Withdrawn));
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let asking = ask(&engine, &work, question("Sure?"));
    asked(&mut ticket).await;
    asking.abort();
    assert!(asked(&mut ticket).await.is_empty());
    assert_eq!(head(&engine, ticket.id()).await.state, State::Leased);
    drop(work);
}

#[tokio::test]
async fn a_tool_that_gives_up_while_its_question_is_stored_withdraws_it_too() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let asks = engine.asks(&work, client(), Arc::new(Pauses::default()));
    // Begun and dropped at once: the write is on its way.
    assert!(asks.ask(question("Sure?")).now_or_never().is_none());
    soon(async {
        while names(&engine, ticket.id()).await != ["submitted", "leased", "held", "resumed"] {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_nobody_answers_in_time_is_turned_away() {
    let rig = Rig::new();
    let settings = Settings { input_timeout_ms: 1_000, lease_ttl_ms: 600_000, ..Settings::default() };
    let (engine, mut hands) = rig.engine_with(settings, Some(at_once(2))).await;
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let form = ask(&engine, &work, question("Sure?"));
    asked(&mut ticket).await;
    let sampling = Question { method: "sampling/createMessage".into(), ..question("Think") };
    let sampling = ask(&engine, &work, sampling);
    open_after(&engine, ticket.id(), 2).await;
    engine.settle_due().await.unwrap();
    assert!(!form.is_finished());
    rig.time.advance(1_000);
    engine.settle_due().await.unwrap();
    assert_eq!(soon(form).await.unwrap(), Ok(Told::Result(r#"{"action":"cancel"}"#.into())));
    assert_eq!(soon(sampling).await.unwrap(), Err(AskError::TimedOut));
    assert_eq!(head(&engine, ticket.id()).await.state, State::Leased);
    let late = engine.answer_numbered(ticket.id(), vec![(1, Told::Result(yes()))], &me()).await.unwrap();
    assert_eq!(late.fates, [Fate::Other]);
}

#[tokio::test]
async fn a_client_without_the_capability_is_not_asked() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let ticket = engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    let link = Question { params: r#"{"mode":"url","message":"m","url":"https://a.example"}"#.into(), ..question("") };
    let roots = Question { method: "roots/list".into(), params: "{}".into(), key: "r".into() };
    for (question, lacking) in [(link, "elicitation.url"), (roots, "roots")] {
        assert_eq!(soon(ask(&engine, &work, question.clone())).await.unwrap(), Err(AskError::NotCapable(lacking)));
        let parked = engine.park(&work, &client(), (&[question], None)).await.unwrap();
        assert_eq!(parked, Parked::NotCapable(lacking));
    }
    assert_eq!(names(&engine, ticket.id()).await, ["submitted", "leased"]);
}

#[tokio::test]
async fn a_parked_round_survives_its_process_and_goes_on_in_the_same_attempt() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    let id = ticket.id();
    let work = hands.next().await;
    let state: Payload = r#""opaque""#.into();
    let two = [question("Sure?"), Question { key: "name".into(), ..question("Who?") }];
    assert_eq!(engine.park(&work, &client(), (&two, Some(&state))).await.unwrap(), Parked::Waiting);
    drop(work);
    let open = asked(&mut ticket).await;
    assert_eq!(open.iter().map(|question| &*question.key).collect::<Vec<_>>(), ["confirm", "name"]);
    drop(ticket);
    let (second, mut hands) = rig.engine(at_once(1)).await;
    rig.time.advance(600_000);
    second.settle_due().await.unwrap();
    let partial = second.answer(id, vec![("name".into(), Told::Result(yes()))], &me()).await.unwrap();
    assert_eq!((partial.open.len(), partial.head.state), (1, State::Waiting));
    let whole = second.answer(id, vec![("confirm".into(), Told::Result(yes()))], &me()).await.unwrap();
    assert_eq!((whole.open.len(), whole.head.state), (0, State::Ready));
    assert!(claim_oldest(&second).await);
    let work = hands.next().await;
    assert_eq!((work.head.attempt, work.head.fencing_token), (1, 2));
    let responses = vec![("confirm".to_owned(), yes()), ("name".to_owned(), yes())];
    let known = Answered { state: Some(state.clone()), responses, lacks: None };
    assert_eq!(second.answered_round(&work.head).await.unwrap(), Some(known));
    // The next round's question has a key of its own, and the tool gets it under its own name.
    let again = [Question { params: "{}".into(), ..question("") }];
    assert_eq!(second.park(&work, &client(), (&again, None)).await.unwrap(), Parked::Waiting);
    let open = second.questions(id).await.unwrap();
    assert_eq!((open.len(), &*open[0].key, open[0].round), (1, "confirm-3", 2));
    second.answer(id, vec![("confirm-3".into(), Told::Result(yes()))], &me()).await.unwrap();
    drop(work);
    assert!(claim_oldest(&second).await);
    let work = hands.next().await;
    let known = Answered { state: None, responses: vec![("confirm".to_owned(), yes())], lacks: None };
    assert_eq!(second.answered_round(&work.head).await.unwrap(), Some(known));
}

#[tokio::test]
async fn a_round_that_an_earlier_attempt_asked_goes_on_at_once() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let ticket = engine.submit(call(at_least_once())).await.unwrap();
    let id = ticket.id();
    let work = hands.next().await;
    engine.park(&work, &client(), (&[question("Sure?")], None)).await.unwrap();
    drop(work);
    engine.answer(id, vec![("confirm".into(), Told::Result(yes()))], &me()).await.unwrap();
    assert!(claim_oldest(&engine).await);
    let work = hands.next().await;
    engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
    drop(work);
    rig.time.advance(5_000);
    assert!(claim_oldest(&engine).await);
    let work = hands.next().await;
    assert_eq!(engine.answered_round(&work.head).await.unwrap(), None);
    let state: Payload = r#""new""#.into();
    let parked = engine.park(&work, &client(), (&[question("Sure?")], Some(&state))).await.unwrap();
    let known = Answered { state: Some(state), responses: vec![("confirm".to_owned(), yes())], lacks: None };
    assert_eq!(parked, Parked::Known(known));
    assert_eq!(head(&engine, id).await.state, State::Leased);
}

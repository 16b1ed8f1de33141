//! Orders of operators: what they do in each state, that repeats are harmless, who holds the key afterwards, and what many
//! at once make of it.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::*;
use crate::engine::Settings;
use crate::engine::bulk::{self, MATCHING_MAX};
use crate::engine::tests::rig::{
    Hands, Rig, at_once, call, claim_oldest, events, head, keyed, lost, names, rejected, result,
};
use crate::model::execution::Effect;
use crate::model::policy::Policy;
use crate::store::ListQuery;

fn by(reason: &str) -> Order {
    Order { principal: "bob".into(), reason: reason.into() }
}

fn completed(text: &str) -> Action {
    Action::Resolve(Resolution::Completed { result: result(text), is_error: false })
}

async fn unknown(engine: &Arc<Engine>, hands: &mut Hands) -> ExecutionId {
    let id = engine.submit(call(Policy::default())).await.unwrap().id();
    let work = hands.next().await;
    engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
    assert_eq!(head(engine, id).await.state, State::Unknown);
    id
}

async fn cancelled(engine: &Arc<Engine>, hands: &mut Hands, key: Option<&str>) -> ExecutionId {
    let call = key.map_or_else(|| call(Policy::default()), keyed);
    let id = engine.submit(call).await.unwrap().id();
    drop(hands.next().await);
    engine.act(id, &Action::Cancel, by("wrong")).await.unwrap();
    id
}

#[tokio::test]
async fn a_cancel_is_final_recorded_with_its_reason_and_harmless_when_repeated() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let id = engine.submit(call(Policy::default())).await.unwrap().id();
    let work = hands.next().await;
    let acted = engine.act(id, &Action::Cancel, by("wrong")).await.unwrap();
    assert!(!acted.repeated && acted.head.effect == Some(Effect::Unknown));
    assert!(work.cancel.is_cancelled(), "what runs here is told to stop");
    assert!(engine.act(id, &Action::Cancel, by("again")).await.unwrap().repeated);
    let log = events(&engine, id).await;
    let Event::Cancelled { by: order, .. } = &log.last().unwrap().event else { panic!("{log:?}") };
    assert_eq!(*order, by("wrong"));
    // The tool answers all the same: the log keeps that, the end stays.
    let answer = engine.complete(work.lease(), work.operation, result("late"), false).await.unwrap();
    assert_eq!((answer, rejected(&engine, id).await.as_deref()), (Answer::Ended, Some("ended")));
    let missing = engine.new_execution_id();
    assert!(matches!(engine.act(missing, &Action::Cancel, by("")).await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn whoever_is_first_wins_between_a_cancel_and_a_result() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(64)).await;
    for _ in 0..40 {
        let id = engine.submit(call(Policy::default())).await.unwrap().id();
        let work = hands.next().await;
        let (cancelled, answer) = tokio::join!(
            engine.act(id, &Action::Cancel, by("stop")),
            engine.complete(work.lease(), work.operation, result("done"), false)
        );
        match head(&engine, id).await.state {
            State::Completed => {
                assert!(matches!(cancelled, Err(Error::NotPermitted { state: "completed", .. })));
                assert_eq!(answer.unwrap(), Answer::Accepted);
            }
            State::Cancelled => {
                assert!(!cancelled.unwrap().repeated);
                assert_eq!(answer.unwrap(), Answer::Ended);
            }
            state => panic!("{state:?}"),
        }
        let finals = events(&engine, id).await.iter().filter(|record| record.event.is_final()).count();
        assert_eq!(finals, 1);
    }
}

#[tokio::test]
async fn each_order_is_refused_where_it_does_nothing() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(64)).await;
    let unknown = unknown(&engine, &mut hands).await;
    let leased = engine.submit(call(Policy::default())).await.unwrap().id();
    let _work = hands.next().await;
    let done = engine.submit(call(Policy::default())).await.unwrap().id();
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    for (id, action, state) in [
        (unknown, Action::Cancel, "unknown"),
        (leased, Action::Retry, "leased"),
        (leased, completed("x"), "leased"),
        (done, Action::Cancel, "completed"),
        (done, Action::Retry, "completed"),
        (done, completed("x"), "completed"),
        (done, Action::Resolve(Resolution::Failed), "completed"),
    ] {
        let before = names(&engine, id).await;
        match engine.act(id, &action, by("no")).await {
            Err(Error::NotPermitted { state: found, verb, .. }) => assert_eq!((found, verb), (state, action.verb())),
            other => panic!("{} of {state}: {other:?}", action.verb()),
        }
        assert_eq!(names(&engine, id).await, before);
    }
}

#[tokio::test]
async fn an_unknown_runs_once_more_in_place_and_a_repeated_order_does_not_run_it_twice() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let id = unknown(&engine, &mut hands).await;
    let acted = engine.act(id, &Action::Retry, by("not there")).await.unwrap();
    assert!(!acted.repeated && acted.head.id() == id && acted.head.state == State::Scheduled);
    assert!(engine.act(id, &Action::Retry, by("not there")).await.unwrap().repeated);
    // Another reason is another order, and comes at the wrong time.
    let other = engine.act(id, &Action::Retry, by("once more")).await;
    assert!(matches!(other, Err(Error::NotPermitted { state: "scheduled", .. })), "{other:?}");
    assert!(claim_oldest(&engine).await);
    let work = hands.next().await;
    assert!(engine.act(id, &Action::Retry, by("not there")).await.unwrap().repeated);
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    assert_eq!(names(&engine, id).await, ["submitted", "leased", "lost", "retried", "leased", "completed"]);
}

#[tokio::test]
async fn an_unknown_is_resolved_once() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let id = unknown(&engine, &mut hands).await;
    let acted = engine.act(id, &completed("seen"), by("it is there")).await.unwrap();
    assert_eq!((acted.repeated, acted.head.source), (false, Some(ResultSource::Resolve)));
    assert!(engine.act(id, &completed("seen"), by("it is there")).await.unwrap().repeated);
    assert!(engine.act(id, &completed("another"), by("it is there")).await.is_err());
    assert!(engine.act(id, &Action::Resolve(Resolution::Failed), by("no")).await.is_err());
    let failed = unknown(&engine, &mut hands).await;
    let action = Action::Resolve(Resolution::Failed);
    assert!(!engine.act(failed, &action, by("it is not there")).await.unwrap().repeated);
    assert!(engine.act(failed, &action, by("it is not there")).await.unwrap().repeated);
    assert!(engine.act(failed, &completed("seen"), by("it is there")).await.is_err());
}

#[tokio::test]
async fn what_ended_runs_again_as_a_new_execution_that_takes_the_key_over() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let old = cancelled(&engine, &mut hands, Some("order-17")).await;
    let before = head(&engine, old).await;
    let acted = engine.act(old, &Action::Retry, by("after all")).await.unwrap();
    let new = &acted.head;
    assert!(!acted.repeated && new.id() != old && new.state == State::Ready);
    let ident = &new.ident;
    assert_eq!((ident.retry_of, ident.effect_key, ident.key.as_deref()), (Some(old), old, Some("order-17")));
    assert_eq!((&ident.principal, &ident.arguments_hash), (&before.ident.principal, &before.ident.arguments_hash));
    let log = events(&engine, new.id()).await;
    assert_eq!(log[0].event, Event::Submitted { run_at_ms: None, by: Some(by("after all")) });
    // Ended is ended.
    assert_eq!(head(&engine, old).await, before);
    // A second order finds what the first one made, also while it runs and after it.
    let again = engine.act(old, &Action::Retry, by("impatient")).await.unwrap();
    assert_eq!((again.repeated, again.head.id()), (true, new.id()));
    // The next call with that key joins the new execution.
    let mut ticket = engine.submit(keyed("order-17")).await.unwrap();
    assert_eq!((ticket.id(), ticket.attached), (new.id(), true));
    assert!(claim_oldest(&engine).await);
    let work = hands.next().await;
    assert_eq!(work.arguments, keyed("").arguments);
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    assert_eq!(ticket.end().await.head.state, State::Completed);
    let again = engine.act(old, &Action::Retry, by("impatient")).await.unwrap();
    assert_eq!((again.repeated, again.head.id(), again.head.state), (true, new.id(), State::Completed));
}

#[tokio::test]
async fn a_chain_of_retries_keeps_its_first_effect_key() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let first = cancelled(&engine, &mut hands, None).await;
    let second = engine.act(first, &Action::Retry, by("again")).await.unwrap().head;
    assert_eq!(second.ident.key, Some(first.to_string()), "a call without a key has its id for one");
    assert!(engine.act(first, &Action::Retry, by("again")).await.unwrap().repeated, "without a key too");
    engine.act(second.id(), &Action::Cancel, by("no")).await.unwrap();
    let third = engine.act(second.id(), &Action::Retry, by("yes")).await.unwrap().head;
    assert_eq!((third.ident.retry_of, third.ident.effect_key), (Some(second.id()), first));
    assert_ne!(third.id(), second.id());
    // The key is the third one's now: the first can not be run again beside it.
    let stale = engine.act(first, &Action::Retry, by("again")).await;
    assert!(matches!(&stale, Err(Error::KeyTaken { holder, .. }) if *holder == third.id().to_string()), "{stale:?}");
}

#[tokio::test]
async fn many_who_order_the_same_at_once_make_one_new_execution() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let other = rig.bare_engine(rig.store().await, Settings::default(), None).await;
    for key in [None, Some("order-18")] {
        let old = cancelled(&engine, &mut hands, key).await;
        let orders = (0..16).map(|n| {
            let engine = if n % 2 == 0 { engine.clone() } else { other.clone() };
            async move { engine.act(old, &Action::Retry, by("at once")).await.unwrap() }
        });
        let acted = futures_util::future::join_all(orders).await;
        assert_eq!(acted.iter().filter(|acted| !acted.repeated).count(), 1);
        assert!(acted.iter().all(|one| one.head.id() == acted[0].head.id()));
    }
}

#[tokio::test]
async fn without_its_arguments_nothing_can_run_again() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(4)).await;
    let id = cancelled(&engine, &mut hands, None).await;
    let retention = crate::store::Retention { payloads_ms: 1, executions_ms: i64::MAX / 2, batch: 10 };
    engine.store().prune(retention, rig.clock.now_ms() + 10).await.unwrap();
    let gone = engine.act(id, &Action::Retry, by("again")).await;
    assert!(matches!(gone, Err(Error::ArgumentsDeleted(_))), "{gone:?}");
}

#[tokio::test]
async fn an_order_by_filter_finds_what_it_can_do_something_with() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(64)).await;
    let unknown_id = unknown(&engine, &mut hands).await;
    let cancelled_id = cancelled(&engine, &mut hands, None).await;
    let leased = engine.submit(call(Policy::default())).await.unwrap().id();
    let _work = hands.next().await;
    let all = ListQuery::default();
    let only = |states: &[State]| ListQuery { states: states.to_vec(), ..ListQuery::default() };
    for (action, filter, expect) in [
        (Action::Cancel, all.clone(), vec![leased]),
        (Action::Cancel, only(&[State::Unknown]), vec![]),
        (Action::Retry, all.clone(), vec![cancelled_id, unknown_id]),
        (Action::Retry, only(&[State::Unknown, State::Leased]), vec![unknown_id]),
        (completed("x"), all.clone(), vec![unknown_id]),
    ] {
        let mut found = bulk::matching(&**engine.store(), &action, filter).await.unwrap();
        found.ids.sort_by(|left, right| right.cmp(left));
        assert!(!found.more && found.ids.len() <= MATCHING_MAX);
        let mut expect = expect;
        expect.sort_by(|left, right| right.cmp(left));
        assert_eq!(found.ids, expect, "{}", action.verb());
    }
    let missing = engine.new_execution_id();
    let ids = vec![unknown_id, leased, cancelled_id, missing];
    let outcomes = bulk::act(&engine, ids, Action::Retry, by("all of them")).await;
    let seen: Vec<_> = outcomes.iter().map(|outcome| (outcome.ok, outcome.state, outcome.code)).collect();
    assert_eq!(
        seen,
        [
            (true, Some("scheduled"), None),
            (false, None, Some("not_permitted")),
            (true, Some("ready"), None),
            (false, None, Some("not_found"))
        ]
    );
    assert!(outcomes[0].retried_as.is_none() && outcomes[2].retried_as.is_some());
}

#[test]
fn a_result_that_a_person_gives_is_kept_byte_for_byte() {
    let raw = |text: &str| RawValue::from_string(text.into()).unwrap();
    let given = raw(r#"{"content":[], "n": 1.0, "isError": true}"#);
    let Ok(Resolution::Completed { result, is_error }) = Resolution::completed(Some(&given), None) else { panic!() };
    assert_eq!((&*result, is_error), (given.get(), true));
    for (text, is_error) in [
        ("[]", None),
        ("{}", None),
        (r#"{"content":{}}"#, None),
        (r#"{"content":[],"isError":1}"#, None),
        (r#"{"content":[],"isError":true}"#, Some(false)),
        (r#"{"content":[]}"#, Some(true)),
    ] {
        assert!(Resolution::completed(Some(&raw(text)), is_error).is_err(), "{text}");
    }
    let Ok(Resolution::Completed { result, is_error }) = Resolution::completed(None, Some(true)) else { panic!() };
    assert!(is_error && result.contains(r#""isError":true"#) && result.contains("A person confirmed"));
}

//! What is kept of calls and for how long, against a real store with a manual clock: struck arguments and who may run them,
//! true answers for who waits, and retention by slices.

use std::sync::Arc;

use super::rig::{
    Rig, at_least_once, at_once, call, candidates, claim_oldest, count, head, keyed, lost, order, result, soon,
};
use crate::engine::catalog::Tool;
use crate::engine::redaction::{self, ARGUMENTS_REDACTED};
use crate::engine::submit::Call;
use crate::engine::{Engine, Error, Settings};
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::model::policy::Policy;
use crate::model::redact::Rules;
use crate::store::{PayloadKind, Pruned, Retention, Slice};

const SECRET: &str = "hunter-4711";

fn redacts(held_bytes_max: usize) -> Settings {
    let redaction = redaction::Settings { is_on: true, held_bytes_max, ..redaction::Settings::default() };
    Settings { redaction, ..Settings::default() }
}

/// A call with a secret under a rule.
fn secret(call: Call) -> Call {
    let redact = Arc::new(Rules::parse([], ["/text"], []).unwrap());
    let tool = Arc::new(Tool { redact, ..(*call.tool).clone() });
    Call { tool, arguments: format!(r#"{{"text":"{SECRET}"}}"#).into(), ..call }
}

async fn stored(engine: &Engine, id: ExecutionId, kind: PayloadKind) -> String {
    engine.store().payload(id, kind).await.unwrap().unwrap().to_string()
}

#[tokio::test]
async fn the_process_that_took_a_call_in_repeats_it_with_its_true_arguments() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine_with(redacts(1 << 20), Some(at_once(1))).await;
    let (other, _) = rig.engine_with(redacts(1 << 20), Some(at_once(1))).await;
    let mut ticket = engine.submit(secret(call(at_least_once()))).await.unwrap();
    let id = ticket.id();
    assert_eq!(stored(&engine, id, PayloadKind::Arguments).await, r#"{"text":"[redacted]"}"#);
    let work = hands.next().await;
    assert!(work.arguments.contains(SECRET));
    engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
    drop(work);
    rig.time.advance(60_000);
    engine.settle_due().await.unwrap();
    assert!(candidates(&other).await.is_empty(), "it is nobody else's");
    assert!(claim_oldest(&engine).await);
    let work = hands.next().await;
    assert!(work.arguments.contains(SECRET));
    let said = result(&format!("it was {SECRET}"));
    engine.complete(work.lease(), work.operation, said.clone(), false).await.unwrap();
    assert_eq!(soon(ticket.end()).await.payload, Some(said), "who waits gets what the tool said");
    assert!(!stored(&engine, id, PayloadKind::Result).await.contains(SECRET), "the tool repeated what it was given");
}

#[tokio::test]
async fn nobody_runs_a_call_with_other_arguments_and_nobody_can_order_it() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine_with(redacts(1 << 20), Some(at_once(1))).await;
    let runs = engine.submit(secret(call(at_least_once()))).await.unwrap().id();
    let waits = engine.submit(secret(call(Policy::default()))).await.unwrap().id();
    let _work = hands.next().await;
    // Closing gives up the lock that says that the process lives, and settles nothing.
    engine.store().close().await;
    let (next, mut own) = rig.engine_with(redacts(1 << 20), Some(at_once(4))).await;
    next.settle_due().await.unwrap();
    rig.time.advance(10_000);
    next.settle_due().await.unwrap();
    while claim_oldest(&next).await {}
    assert!(own.ready().is_none(), "it was not run");
    for id in [runs, waits] {
        let head = head(&next, id).await;
        assert_eq!((head.state, head.error.unwrap().code.as_str()), (State::Failed, ARGUMENTS_REDACTED));
        let again = next.act(id, &crate::engine::operate::Action::Retry, order()).await;
        assert!(matches!(again, Err(Error::ArgumentsRedacted(_))), "{again:?}");
    }
    assert!(head(&next, runs).await.effect_possible, "it had been started");
    assert_eq!(count(&next, waits, "failed").await, 1);
}

#[tokio::test]
async fn true_arguments_have_a_bound() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine_with(redacts(30), Some(at_once(1))).await;
    let first = engine.submit(secret(call(Policy::default()))).await.unwrap().id();
    let refused = engine.submit(secret(call(Policy::default()))).await;
    assert!(matches!(refused.map(|ticket| ticket.id()), Err(Error::Overloaded(_))));
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("x"), false).await.unwrap();
    drop(work);
    assert_eq!(head(&engine, first).await.state, State::Completed);
    engine.submit(secret(call(Policy::default()))).await.unwrap();
}

#[tokio::test]
async fn retention_goes_by_state_batch_after_batch() {
    let rig = Rig::new();
    let spans = |executions_ms| Retention { payloads_ms: i64::MAX, executions_ms, batch: 2 };
    let of = |state| Slice { state: Some(state), ..Slice::default() };
    let rules = [(State::Completed, 1_000), (State::Failed, 5_000), (State::Cancelled, 9_000)];
    let settings = Settings {
        retention_rules: rules.map(|(state, ms)| (of(state), spans(ms))).to_vec(),
        retention_share: 100,
        ..Settings::default()
    };
    let (engine, mut hands) = rig.engine_with(settings, Some(at_once(1))).await;
    for _ in 0..5 {
        engine.submit(call(Policy::default())).await.unwrap();
        let work = hands.next().await;
        engine.complete(work.lease(), work.operation, result("x"), false).await.unwrap();
    }
    let kept = engine.submit(call(Policy::default())).await.unwrap().id();
    let work = hands.next().await;
    engine.cancel(kept, order()).await.unwrap();
    drop(work);
    rig.time.advance(999);
    assert_eq!(engine.apply_retention().await.unwrap(), Pruned::default());
    rig.time.advance(1);
    let gone = engine.apply_retention().await.unwrap();
    assert_eq!((gone.executions, gone.payloads), (5, 0), "in batches of two");
    rig.time.advance(7_999);
    assert_eq!(engine.apply_retention().await.unwrap(), Pruned::default());
    rig.time.advance(1);
    assert_eq!(engine.apply_retention().await.unwrap().executions, 1);
    // A key that lives keeps its execution.
    engine.submit(keyed("k")).await.unwrap();
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("x"), false).await.unwrap();
    rig.time.advance(60_000);
    assert_eq!(engine.apply_retention().await.unwrap(), Pruned::default());
}

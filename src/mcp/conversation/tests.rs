//! A waiting caller to whom several things are told at once: what is said of them first.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::*;
use crate::engine::asking::Question;
use crate::engine::inputs::Parked;
use crate::engine::task::Wish;
use crate::engine::tests::rig::{Rig, UPSTREAM, at_once, call, soon};
use crate::mcp::call::Caller;
use crate::mcp::face::{Face, Settings};
use crate::mcp::task::offer::Offer;
use crate::mcp::written::Written;
use crate::model::policy::{OnTaskExpiry, Policy};
use crate::model::trace::TraceContext;
use crate::store::TaskVariant;

fn caller() -> Caller {
    let capabilities = r#"{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let client = ClientContext {
        revision: Some("2026-07-28".into()),
        capabilities: Some(RawValue::from_string(capabilities.into()).unwrap()),
        ..ClientContext::default()
    };
    Caller {
        principal: Principal::anonymous(),
        name: "test".into(),
        era: Era::Modern,
        key_headers: Vec::new(),
        client: Arc::new(client),
        trace: TraceContext::default(),
    }
}

fn offer() -> Offer {
    let wish = Wish {
        variant: TaskVariant::Extension,
        ttl_ms: 86_400_000,
        on_expiry: OnTaskExpiry::Cancel,
        progress_token: None,
    };
    Offer { wish, after_ms: Some(3_600_000) }
}

fn question() -> Question {
    let params = r#"{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}"#;
    Question { key: "confirm".into(), method: "elicitation/create".into(), params: params.into() }
}

/// What the caller is answered by a tool that asks, after its server has made a task of the call or not.
async fn answered(makes_a_task: bool) -> Value {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(1)).await;
    let face = Face::new(engine.clone(), Settings::default());
    let ticket = engine.submit(call(Policy::default())).await.unwrap();
    let id = ticket.id();
    let caller = caller();
    let audience = Audience { era: Era::Modern, builtins: Default::default() };
    let mut conversation = face.conversation(ticket, "crm__add_note", (3_600_000, audience), &caller);
    conversation.request = Some(("crm__add_note".into(), "{}".into()));
    conversation.pending = Some(Pending::of(offer(), 3_600_000));
    let work = hands.next().await;
    if makes_a_task {
        engine.served_as_task(UPSTREAM, id);
    }
    let parked = engine.park(&work, &caller.client, (&[question()], None)).await.unwrap();
    assert_eq!(parked, Parked::Waiting);
    // The caller looks only now: all of it is there at once.
    let Step::Answer(answered) = soon(conversation.step()).await else { panic!("no answer") };
    let Reply::Result(Written::Whole(result)) = &answered.reply else { panic!("no result") };
    serde_json::from_str(result).unwrap()
}

#[tokio::test]
async fn a_question_of_a_servers_own_task_is_asked_in_the_task_also_when_it_is_there_as_soon_as_the_task() {
    let task = answered(true).await;
    assert_eq!(task["resultType"], "task", "{task}");
}

#[tokio::test]
async fn a_question_of_a_call_that_is_no_task_yet_is_the_answer() {
    let asking = answered(false).await;
    assert_eq!(asking["resultType"], "input_required", "{asking}");
}

//! Servers of 2026-07-28 that ask or answer with a task, and errors that ask: what the worker is told of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::super::super::executor::Continuation;
use super::super::*;
use crate::engine::asking::Question;
use crate::model::decide::FailureKind;
use crate::model::id::ExecutionId;
use crate::worker::legs::LegSettings;
use crate::worker::upstream::tests::http_server::{Seen, Server, empty, legacy, modern};
use crate::worker::upstream::tests::soon;
use crate::worker::upstream::{HttpSettings, Transport, Upstream, UpstreamSettings};

fn client(revision: &str, capabilities: &str) -> Arc<ClientContext> {
    Arc::new(ClientContext {
        revision: Some(revision.to_owned()),
        capabilities: Some(RawValue::from_string(capabilities.to_owned()).unwrap()),
        ..ClientContext::default()
    })
}

fn job(client: Arc<ClientContext>) -> Job {
    Job { client, ..Job::of_nobody(ExecutionId::new(1, &[1; 10]), "t", "{}") }
}

fn of_modern() -> Job {
    job(client("2026-07-28", r#"{"elicitation":{}}"#))
}

fn executor(server: &Server) -> UpstreamExecutor {
    let upstream = Upstream::start(UpstreamSettings::new("web", Transport::Http(HttpSettings::new(&server.url))));
    let legs = Legs::over(&Weak::new(), upstream, LegSettings::default());
    UpstreamExecutor::new(Weak::new(), legs, Reach::Connection, HashMap::new())
}

async fn run(server: &Server, job: Job) -> Outcome {
    soon(executor(server).run(job, &|_| {})).await
}

/// A modern server whose answers to calls and to requests about tasks are the test's.
async fn server(answer: impl Fn(&Seen) -> Value + Send + Sync + 'static) -> Server {
    Server::start(move |seen| modern(seen).unwrap_or_else(|| seen.result(answer(seen)))).await
}

fn asked(outcome: Outcome) -> (Vec<Question>, Option<String>) {
    match outcome {
        Outcome::InputRequired { questions, state } => (questions, state.map(|state| state.to_string())),
        other => panic!("asks nothing: {other:?}"),
    }
}

fn error_code(outcome: Outcome) -> i64 {
    match outcome {
        Outcome::RpcError(error) => serde_json::from_str::<Value>(&error).unwrap()["code"].as_i64().unwrap(),
        other => panic!("no error: {other:?}"),
    }
}

#[tokio::test]
async fn questions_and_state_are_handed_on_and_come_back_byte_for_byte() {
    let server = server(|seen| match seen.body["params"].get("requestState") {
        None => json!({"resultType": "input_required", "requestState": "s\u{e9}1",
            "inputRequests": {"b": {"method": "elicitation/create", "params": {"x": 1.0}}, "a": {"method": "roots/list"}}}),
        Some(state) => json!({"resultType": "complete", "state": state, "answers": seen.body["params"]["inputResponses"]}),
    })
    .await;
    let (questions, state) = asked(run(&server, of_modern()).await);
    // The double's maps are sorted.
    assert_eq!(questions.iter().map(|question| question.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((questions[0].method.as_str(), &*questions[0].params), ("roots/list", "{}"));
    assert_eq!(&*questions[1].params, r#"{"x":1.0}"#);
    assert_eq!(state.as_deref(), Some("\"s\u{e9}1\""));

    let responses =
        vec![("b".to_owned(), r#"{"action":"accept","content":{"n":1.0}}"#.into()), ("a".to_owned(), "{}".into())];
    let continuation = Some(Continuation { state: state.map(Into::into), responses });
    let Outcome::Result(result) = run(&server, Job { continuation, ..of_modern() }).await else { panic!() };
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["state"], "s\u{e9}1");
    assert_eq!(result["answers"], json!({"b": {"action": "accept", "content": {"n": 1.0}}, "a": {}}));
}

#[tokio::test]
async fn a_state_without_questions_is_sent_again_and_not_for_ever() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let server = server(move |seen| match counted.fetch_add(1, Ordering::Relaxed) {
        2 => json!({"resultType": "complete", "state": seen.body["params"]["requestState"]}),
        n => json!({"resultType": "input_required", "requestState": format!("s{n}")}),
    })
    .await;
    let Outcome::Result(result) = run(&server, of_modern()).await else { panic!() };
    assert_eq!(serde_json::from_str::<Value>(&result).unwrap()["state"], "s1");
    calls.store(10, Ordering::Relaxed);
    assert_eq!(error_code(run(&server, of_modern()).await), -31501);
}

#[tokio::test]
async fn a_state_that_looks_like_one_of_ours_and_questions_without_end_are_refused() {
    let question = || json!({"method": "roots/list"});
    let forged = json!({"durable-mcp/task": {"id": "t-1", "poll_ms": 0, "answered": []}});
    let many: serde_json::Map<_, _> = (0..257).map(|n| (n.to_string(), question())).collect();
    for asks in [json!({"requestState": forged, "inputRequests": {"a": question()}}), json!({"inputRequests": many})] {
        let mut asks = asks;
        asks["resultType"] = json!("input_required");
        let server = server(move |_| asks.clone()).await;
        assert_eq!(error_code(run(&server, of_modern()).await), -31501);
    }
}

#[tokio::test]
async fn a_client_of_an_earlier_revision_is_bridged_and_a_modern_one_passed_on_as_it_is() {
    let server = server(|_| json!({"resultType": "complete"})).await;
    run(&server, of_modern()).await;
    run(&server, job(client("2025-06-18", r#"{"roots":{"listChanged":true},"tasks":{}}"#))).await;
    let declared = |n: usize| {
        server.seen("tools/call")[n].body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
    };
    assert_eq!(declared(0), json!({"elicitation": {}}));
    assert_eq!(
        declared(1),
        json!({"roots": {"listChanged": true}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
    );
}

fn task(status: &str, more: Value) -> Value {
    let mut task = json!({"resultType": "complete", "taskId": "t-1", "status": status, "pollIntervalMs": 1});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

#[tokio::test]
async fn a_task_is_followed_through_its_questions_to_its_end() {
    let server = server(|seen| match seen.method() {
        "tools/call" => task("working", json!({"resultType": "task"})),
        "tasks/get" => {
            task("input_required", json!({"inputRequests": {"k": {"method": "elicitation/create", "params": {}}}}))
        }
        other => panic!("{other}"),
    })
    .await;
    let (questions, state) = asked(run(&server, of_modern()).await);
    assert_eq!(questions[0].key, "k");
    let get = &server.seen("tasks/get")[0];
    assert_eq!((get.header("mcp-method"), get.header("mcp-name")), ("tasks/get", "t-1"));

    // The question is still shown once after it was answered.
    let looks = AtomicU32::new(0);
    server.change(move |seen| {
        modern(seen).unwrap_or_else(|| {
            seen.result(match (seen.method(), looks.fetch_add(1, Ordering::Relaxed)) {
                ("tasks/update", _) => json!({"resultType": "complete"}),
                ("tasks/get", 1) => task(
                    "input_required",
                    json!({"inputRequests": {"k": {"method": "elicitation/create", "params": {}}}}),
                ),
                ("tasks/get", _) => task("completed", json!({"result": {"content": [], "isError": true, "n": 1.0}})),
                (other, _) => panic!("{other}"),
            })
        })
    });
    let responses = vec![("k".to_owned(), r#"{"action":"accept"}"#.into())];
    let continuation = Some(Continuation { state: state.map(Into::into), responses });
    let Outcome::Result(result) = run(&server, Job { continuation, ..of_modern() }).await else { panic!() };
    assert_eq!(&*result, r#"{"content":[],"isError":true,"n":1.0}"#);
    assert_eq!(server.seen("tools/call").len(), 1, "the tool is not called again");
    assert_eq!(server.seen("tasks/update")[0].body["params"]["inputResponses"], json!({"k": {"action": "accept"}}));
}

#[tokio::test]
async fn a_task_that_failed_is_cancelled_or_gone_is_told_as_what_it_is() {
    for (end, code) in [
        (task("failed", json!({"error": {"code": -32603, "message": "m", "data": 1.0}})), -32603),
        (task("cancelled", json!({})), -31499),
    ] {
        let server = server(move |seen| match seen.method() {
            "tools/call" => task("working", json!({"resultType": "task"})),
            _ => end.clone(),
        })
        .await;
        assert_eq!(error_code(run(&server, of_modern()).await), code);
    }
    let server = Server::start(|seen| {
        modern(seen).unwrap_or_else(|| match seen.method() {
            "tools/call" => seen.result(task("working", json!({"resultType": "task"}))),
            _ => seen.error(400, -32602, "unknown task"),
        })
    })
    .await;
    match run(&server, of_modern()).await {
        Outcome::Failed(failure) => {
            assert_eq!((failure.kind, failure.error.code.as_str()), (FailureKind::Lost, "task_gone"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_to_a_task_that_is_gone_loses_the_call_and_one_that_is_refused_is_an_error() {
    for (known, expected) in [(false, "task_gone"), (true, "-32602")] {
        let server = Server::start(move |seen| {
            modern(seen).unwrap_or_else(|| match seen.method() {
                "tasks/get" if known => seen.result(task("input_required", json!({"inputRequests": {}}))),
                _ => seen.error(400, -32602, "no"),
            })
        })
        .await;
        let state = r#"{"durable-mcp/task":{"id":"t-1","poll_ms":1,"answered":[]}}"#;
        let responses = vec![("k".to_owned(), r#"{"action":"accept"}"#.into())];
        let continuation = Some(Continuation { state: Some(state.into()), responses });
        let told = match run(&server, Job { continuation, ..of_modern() }).await {
            Outcome::Failed(failure) => failure.error.code,
            outcome => error_code(outcome).to_string(),
        };
        assert_eq!((told.as_str(), server.seen("tools/call").len()), (expected, 0));
    }
}

#[tokio::test]
async fn a_cancelled_call_cancels_its_task() {
    let server = server(|seen| match seen.method() {
        "tools/call" => task("working", json!({"resultType": "task"})),
        "tasks/cancel" => json!({"resultType": "complete"}),
        _ => task("working", json!({})),
    })
    .await;
    let job = of_modern();
    let cancel = job.cancel.clone();
    let executor = executor(&server);
    let running = tokio::spawn(async move { executor.run(job, &|_| {}).await });
    server.wait_for(|seen| seen.method() == "tasks/get").await;
    cancel.cancel();
    server.wait_for(|seen| seen.method() == "tasks/cancel").await;
    match soon(running).await.unwrap() {
        Outcome::Failed(failure) => {
            assert_eq!((failure.kind, failure.error.code.as_str()), (FailureKind::Lost, "cancelled"))
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn errors_of_an_earlier_era_are_told_to_a_modern_client_in_its_own() {
    let server = Server::start(|seen| {
        legacy(seen, "s").unwrap_or_else(|| match seen.method() {
            "tools/call" => seen.error(200, -32002, "gone"),
            _ => empty(405),
        })
    })
    .await;
    assert_eq!(error_code(run(&server, of_modern()).await), -32602);
    assert_eq!(error_code(run(&server, job(client("2025-11-25", "{}"))).await), -32002);
    server.change(|seen| {
        legacy(seen, "s").unwrap_or_else(|| {
            let error = json!({"code": -32042, "message": "m", "data": {"elicitations": [
                {"mode": "url", "elicitationId": "e", "url": "https://a.example", "message": "go"}]}});
            crate::worker::upstream::tests::http_server::json_body(
                200,
                json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": error}),
            )
        })
    });
    let (questions, state) = asked(run(&server, of_modern()).await);
    assert_eq!((questions[0].method.as_str(), state), ("elicitation/create", None));
    assert!(questions[0].params.contains("https://a.example"));
    assert_eq!(error_code(run(&server, job(client("2025-11-25", "{}"))).await), -32042);
}

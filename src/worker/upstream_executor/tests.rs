//! What goes to a server with a call, and what its answers mean; with a real leg where that matters.

mod asking;
mod children;

use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::engine::waiters::Progress;
use crate::model::decide::FailureKind;
use crate::model::id::ExecutionId;
use crate::worker::legs::LegSettings;
use crate::worker::upstream::tests::unguarded;
use crate::worker::upstream::{Upstream, UpstreamSettings};

/// A server in sh: it answers the handshake, lists one tool, and answers a call by quoting its line as text.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"tools/list"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}' ;;
    *'"name":"die"'*) exit 1 ;;
    *'"name":"refuse"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32602,"message":"no","data":1.0}}' ;;
    *'"tools/call"'*)
      printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'$id',"progress":1,"total":2}}'
      text=$(printf '%s' "$line" | sed 's/\\/\\\\/g; s/"/\\"/g')
      printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'"$text"'"}],"n":1.0}}' ;;
  esac
done
"#;

fn job(tool: &str, arguments: &str, meta: Option<&str>) -> Job {
    Job {
        fencing_token: 9,
        effect_key: ExecutionId::new(1, &[2; 10]),
        meta: meta.map(Into::into),
        ..Job::of_nobody(ExecutionId::new(1, &[1; 10]), tool, arguments)
    }
}

fn settings(program: &str, args: &[&str]) -> UpstreamSettings {
    let mut settings = unguarded("s", program, args);
    settings.limits.start_timeout = std::time::Duration::from_millis(300);
    settings
}

fn executor(settings: UpstreamSettings) -> UpstreamExecutor {
    let key_arguments = HashMap::from([("keyed".to_owned(), "request_id".to_owned())]);
    let legs = Legs::over(&Weak::new(), Upstream::start(settings), LegSettings::default());
    UpstreamExecutor::new(Weak::new(), legs, Reach::Child, key_arguments)
}

fn server() -> UpstreamExecutor {
    let mut settings = settings("sh", &["-c", SERVER]);
    settings.limits.start_timeout = std::time::Duration::from_secs(20);
    executor(settings)
}

async fn sent(executor: &UpstreamExecutor, job: Job) -> String {
    match executor.run(job, &|_| {}).await {
        Outcome::Result(result) => {
            let result: Value = serde_json::from_str(&result).unwrap();
            result["content"][0]["text"].as_str().unwrap().to_owned()
        }
        other => panic!("no result: {other:?}"),
    }
}

#[tokio::test]
async fn a_call_carries_the_callers_bytes_and_both_of_our_keys() {
    let arguments = r#"{"n":1.0,"big":123456789012345678901234567890,"e":"\u00e9"}"#;
    let meta = r#"{"a":1.0,"durable-mcp/idempotencyKey":"forged","durable-mcp/wait":5,"b":{"c":[1e2]}}"#;
    let job = job("t", arguments, Some(meta));
    let key = job.effect_key;
    let sent = sent(&server(), job).await;
    assert!(sent.contains(&format!(r#""arguments":{arguments}"#)), "{sent}");
    assert!(sent.contains(r#""a":1.0,"b":{"c":[1e2]}"#), "{sent}");
    assert!(!sent.contains("forged") && !sent.contains("durable-mcp/wait"), "{sent}");
    let meta = serde_json::from_str::<Value>(&sent).unwrap()["params"]["_meta"].clone();
    assert_eq!(meta[KEY_MEMBER], json!(key.to_string()));
    assert_eq!(meta[TOKEN_MEMBER], json!(9));
}

#[tokio::test]
async fn the_key_argument_is_filled_in_and_a_given_one_is_kept() {
    let executor = server();
    let absent = job("keyed", r#"{"n":1.0}"#, None);
    let key = absent.effect_key;
    let line = sent(&executor, absent).await;
    assert!(line.contains(&format!(r#""arguments":{{"n":1.0,"request_id":"{key}"}}"#)), "{line}");
    let line = sent(&executor, job("keyed", r#"{"request_id":null}"#, None)).await;
    assert!(line.contains(r#""arguments":{"request_id":null}"#), "{line}");
}

#[tokio::test]
async fn results_errors_and_progress_pass_as_they_came() {
    let executor = server();
    let seen = Mutex::new(Vec::new());
    let report = |progress: Progress| seen.lock().unwrap().push((progress.progress, progress.total));
    let outcome = executor.run(job("t", "{}", None), &report).await;
    let Outcome::Result(result) = outcome else { panic!("{outcome:?}") };
    assert!(result.ends_with(r#","n":1.0}"#), "{result}");
    assert_eq!(seen.into_inner().unwrap(), [(1.0, Some(2.0))]);
    let outcome = executor.run(job("refuse", "{}", None), &|_| {}).await;
    let Outcome::RpcError(error) = outcome else { panic!("{outcome:?}") };
    assert_eq!(&*error, r#"{"code":-32602,"message":"no","data":1.0}"#);
}

fn failure(outcome: Outcome) -> (FailureKind, String) {
    match outcome {
        Outcome::Failed(failure) => (failure.kind, failure.error.code),
        other => panic!("an answer: {other:?}"),
    }
}

#[tokio::test]
async fn a_child_that_dies_in_a_call_loses_it() {
    let outcome = server().run(job("die", "{}", None), &|_| {}).await;
    assert_eq!(failure(outcome), (FailureKind::Lost, "child_died".into()));
}

#[tokio::test]
async fn a_server_that_never_comes_up_never_started_the_call() {
    let outcome = executor(settings("/no/such/server", &[])).run(job("t", "{}", None), &|_| {}).await;
    assert_eq!(failure(outcome), (FailureKind::NotStarted, "not_started".into()));
}

#[test]
fn each_thing_a_leg_may_know_has_its_meaning() {
    let lost = || CallError::Lost { reason: "r".into() };
    for (error, reach, expected) in [
        (CallError::NotStarted { reason: "r".into() }, Reach::Connection, (FailureKind::NotStarted, "not_started")),
        (lost(), Reach::Child, (FailureKind::Lost, "child_died")),
        (lost(), Reach::Connection, (FailureKind::Lost, "connection_lost")),
        (CallError::Cancelled { dispatched: false }, Reach::Child, (FailureKind::NotStarted, "cancelled")),
        (CallError::Cancelled { dispatched: true }, Reach::Child, (FailureKind::Lost, "cancelled")),
        (CallError::TimedOut { kind: TimeoutKind::Attempt }, Reach::Child, (FailureKind::Lost, "attempt_timeout")),
        (CallError::TimedOut { kind: TimeoutKind::Idle }, Reach::Child, (FailureKind::Lost, "idle_timeout")),
    ] {
        let (kind, code) = failure(super::failure(error, reach));
        assert_eq!((kind, code.as_str()), expected);
    }
}

#[test]
fn an_answer_is_put_on_one_line() {
    let Outcome::Result(result) = of_answer(Answer::Result("{\n  \"content\": []\r\n}".into())) else { panic!() };
    assert_eq!(&*result, r#"{   "content": []  }"#);
}

#[test]
fn unreadable_meta_starts_nothing() {
    assert!(meta(&job("t", "{}", Some("[]"))).is_none());
}

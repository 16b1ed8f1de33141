//! The demo tools, attempt by attempt.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::model::decide::FailureKind;
use crate::model::id::ExecutionId;
use crate::model::policy::Delivery;
use crate::worker::executor::Continuation;
use crate::worker::rules::{Rules, offered};

fn job(tool: &str, arguments: &str) -> Job {
    Job {
        fencing_token: 4,
        effect_key: ExecutionId::new(1, &[2; 10]),
        ..Job::of_nobody(ExecutionId::new(1, &[1; 10]), tool, arguments)
    }
}

async fn run(demo: &Demo, job: Job) -> Outcome {
    demo.run(job, &|_| {}).await
}

async fn result(demo: &Demo, job: Job) -> Value {
    match run(demo, job).await {
        Outcome::Result(result) => serde_json::from_str(&result).unwrap(),
        other => panic!("no result: {other:?}"),
    }
}

#[test]
fn the_definitions_are_json_and_their_hints_make_the_promised_delivery() {
    let delivery: Vec<_> = Demo::definitions()
        .iter()
        .map(|definition| {
            let tool = offered(definition, UPSTREAM, String::new(), &Rules::default()).unwrap();
            (tool.name, tool.policy.delivery)
        })
        .collect();
    let expected = [
        ("demo_echo", Delivery::AtLeastOnce),
        ("demo_sleep", Delivery::AtLeastOnce),
        ("demo_flaky", Delivery::AtLeastOnce),
        ("demo_append", Delivery::AtMostOnce),
        ("demo_crash", Delivery::AtLeastOnce),
        ("demo_ask", Delivery::AtLeastOnce),
    ];
    assert_eq!(delivery, expected.map(|(name, delivery)| (name.to_owned(), delivery)));
}

#[tokio::test]
async fn echo_answers_the_message_as_it_was_written() {
    let demo = Demo::new(Path::new("/nowhere"));
    let Outcome::Result(result) = run(&demo, job("demo_echo", r#"{ "message" : "a\u00e9\n\"" }"#)).await else {
        panic!("no result")
    };
    assert_eq!(&*result, r#"{"content":[{"type":"text","text":"a\u00e9\n\""}]}"#);
}

#[tokio::test]
async fn wrong_arguments_are_an_error_result_and_not_a_failure() {
    let demo = Demo::new(Path::new("/nowhere"));
    for (tool, arguments) in [
        ("demo_echo", "{}"),
        ("demo_echo", r#"{"message":1}"#),
        ("demo_sleep", r#"{"seconds":-1}"#),
        ("demo_sleep", r#"{"seconds":1e300}"#),
        ("demo_sleep", r#"{"seconds":"1"}"#),
        ("demo_flaky", r#"{"name":"n"}"#),
        ("demo_append", "{}"),
        ("demo_append", r#"{"text":"no such folder"}"#),
    ] {
        assert_eq!(result(&demo, job(tool, arguments)).await["isError"], json!(true), "{tool} {arguments}");
    }
}

#[tokio::test]
async fn sleep_reports_growing_progress_until_it_answers() {
    let demo = Demo::new(Path::new("/nowhere"));
    let seen = Mutex::new(Vec::new());
    let report = |progress: Progress| seen.lock().unwrap().push((progress.progress, progress.total));
    let outcome = demo.run(job("demo_sleep", r#"{"seconds":0.1}"#), &report).await;
    assert!(matches!(outcome, Outcome::Result(_)));
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), 9);
    assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0), "{seen:?}");
    assert!(seen.iter().all(|(progress, total)| *progress < 0.1 && *total == Some(0.1)));
}

#[tokio::test]
async fn sleep_of_nothing_answers_and_a_cancelled_sleep_ends() {
    let demo = Demo::new(Path::new("/nowhere"));
    assert!(matches!(run(&demo, job("demo_sleep", r#"{"seconds":0}"#)).await, Outcome::Result(_)));
    let long = job("demo_sleep", r#"{"seconds":86400}"#);
    long.cancel.cancel();
    assert!(matches!(run(&demo, long).await, Outcome::Failed(_)));
}

#[tokio::test]
async fn flaky_loses_its_first_attempts_by_name_also_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    for expected_loss in [true, true, false, false] {
        // A new executor each time: what counts is the ledger.
        let demo = Demo::new(folder.path());
        let outcome = run(&demo, job("demo_flaky", r#"{"name":"a\nb","failures":2}"#)).await;
        match outcome {
            Outcome::Failed(failure) => {
                assert!(expected_loss);
                assert_eq!(failure.kind, FailureKind::Lost);
            }
            _ => assert!(!expected_loss),
        }
    }
    let demo = Demo::new(folder.path());
    assert!(matches!(run(&demo, job("demo_flaky", r#"{"name":"a","failures":1}"#)).await, Outcome::Failed(_)));
}

#[tokio::test]
async fn append_writes_one_line_per_run_with_key_and_token() {
    let folder = tempfile::tempdir().unwrap();
    let demo = Demo::new(folder.path());
    let first = job("demo_append", r#"{"text":"one\ntwo"}"#);
    let key = first.effect_key;
    assert_eq!(result(&demo, first).await["isError"], Value::Null);
    result(&demo, job("demo_append", r#"{"text":"three"}"#)).await;
    let ledger = std::fs::read_to_string(folder.path().join(LEDGER)).unwrap();
    assert_eq!(ledger, format!("one\\ntwo key={key} token=4\nthree key={key} token=4\n"));
}

#[tokio::test]
async fn crash_answers_after_its_first_attempt() {
    let demo = Demo::new(Path::new("/nowhere"));
    let again = Job { attempt: 2, ..job("demo_crash", "{}") };
    assert_eq!(result(&demo, again).await["content"][0]["text"], json!("Recovered on attempt 2."));
}

#[tokio::test]
async fn ask_says_that_a_client_cannot_be_asked_and_goes_on_with_answers() {
    let demo = Demo::new(Path::new("/nowhere"));
    let refused = result(&demo, job("demo_ask", r#"{"question":"Sure?"}"#)).await;
    assert_eq!(refused["isError"], true);
    let parked = job("demo_ask", r#"{"question":"Sure?","parked":true,"times":2}"#);
    let Outcome::InputRequired { questions, state } = run(&demo, parked.clone()).await else { panic!("no question") };
    assert_eq!((questions.len(), &*questions[0].method), (1, "elicitation/create"));
    let responses = vec![("answer".to_owned(), r#"{"action":"accept","content":{"answer":"yes"}}"#.into())];
    let second = Job { continuation: Some(Continuation { state, responses }), ..parked.clone() };
    let Outcome::InputRequired { state, .. } = run(&demo, second).await else { panic!("no question") };
    let responses = vec![("answer".to_owned(), r#"{"action":"decline"}"#.into())];
    let third = Job { continuation: Some(Continuation { state, responses }), ..parked };
    let text = result(&demo, third).await["content"][0]["text"].clone();
    assert_eq!(text, json!("The answer is: yes, (decline). Attempt 1."));
}

#[tokio::test]
async fn an_unknown_tool_never_started() {
    let demo = Demo::new(Path::new("/nowhere"));
    let Outcome::Failed(failure) = run(&demo, job("demo_x", "{}")).await else { panic!("an answer") };
    assert_eq!(failure.kind, FailureKind::NotStarted);
}

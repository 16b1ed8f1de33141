//! The worker SDKs before the real server: each plays the scenes of `sdk/vectors`, with a worker of another language as
//! its successor. How a scene is played is in `sdk_scene`.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::sdk_scene::{Language, Stage};
use crate::skip_loudly;
use crate::support::process::Process;
use crate::support::{self, DEADLINE};

macro_rules! each_language {
    ($($scene:ident)*) => {
        each_language! { @ python Language::Python; $($scene)* }
        each_language! { @ typescript Language::TypeScript; $($scene)* }
        each_language! { @ rust Language::Rust; $($scene)* }

        const SCENES: &[&str] = &[$(stringify!($scene)),*];
    };
    (@ $name:ident $language:expr; $($scene:ident)*) => {
        mod $name {
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scene() {
                    skip_loudly!(support::sdks_are_set_up());
                    Stage::play($language, stringify!($scene)).await;
                }
            )*

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn results_and_arguments() {
                skip_loudly!(support::sdks_are_set_up());
                check_results_and_arguments($language).await;
            }
        }
    };
}

each_language! {
    answers
    blocked
    cancel
    drain
    grace_is_over
    killed_in_step_two
    lost_lease
    repeated_complete
    result_while_away
    second_signal
    server_restart
    stale_result
}

#[test]
fn every_scene_is_played() {
    let folder = fs::read_dir(support::sdk_folder().join("vectors/scenes")).unwrap();
    let mut files: Vec<String> = folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".json").unwrap_or(&name).to_owned())
        .collect();
    files.sort();
    assert_eq!(files, SCENES);
}

#[derive(Deserialize)]
struct Arguments {
    fit: Vec<Fitting>,
    do_not_fit: Vec<Value>,
}

#[derive(Deserialize)]
struct Fitting {
    arguments: Value,
    gives: Value,
}

async fn check_results_and_arguments(language: Language) {
    let mut stage = Stage::set("30s").await;
    stage.start("a", language, &[]).await;
    let results: BTreeMap<String, Value> = vectors("results.json");
    for (kind, expected) in results {
        let result = stage.call_now("returns", json!({"kind": kind})).await;
        check_result(&kind, &result, &expected);
    }
    let Arguments { fit, do_not_fit } = vectors("arguments.json");
    let schema = stage.tool("typed").await["inputSchema"].clone();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for Fitting { arguments, gives } in fit {
        assert!(schema.is_valid(&arguments), "the schema refuses {arguments}");
        let result = stage.call_now("typed", arguments.clone()).await;
        check_same(&result["structuredContent"], &gives, &arguments.to_string());
    }
    for arguments in do_not_fit {
        assert!(!schema.is_valid(&arguments), "the schema takes {arguments}");
        let result = stage.call_now("typed", arguments.clone()).await;
        assert_eq!(result["isError"], true, "{arguments}: {result}");
    }
}

fn vectors<T: serde::de::DeserializeOwned>(name: &str) -> T {
    serde_json::from_str(&fs::read_to_string(support::sdk_folder().join("vectors").join(name)).unwrap()).unwrap()
}

fn check_result(kind: &str, result: &Value, expected: &Value) {
    let (content, wanted) = (result["content"].as_array().unwrap(), expected["content"].as_array().unwrap());
    assert_eq!(content.len(), wanted.len(), "{kind}: {result}");
    for (block, wanted) in content.iter().zip(wanted) {
        assert_eq!(block["type"], wanted["type"], "{kind}: {result}");
        match wanted.get("json") {
            Some(value) => check_same(&serde_json::from_str(block["text"].as_str().unwrap()).unwrap(), value, kind),
            None => assert_eq!(block["text"], wanted["text"], "{kind}: {result}"),
        }
    }
    assert_eq!(result.get("structuredContent"), expected.get("structuredContent"), "{kind}: {result}");
    assert_ne!(result["isError"], true, "{kind}: {result}");
}

/// Numbers by value: 1 and 1.0 are the same.
fn check_same(value: &Value, expected: &Value, what: &str) {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => {
            assert!(value.keys().eq(expected.keys()), "{what}: {value:?}");
            expected.iter().for_each(|(name, expected)| check_same(&value[name], expected, what));
        }
        (Value::Number(value), Value::Number(expected)) => assert_eq!(value.as_f64(), expected.as_f64(), "{what}"),
        _ => assert_eq!(value, expected, "{what}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_or_stale_worker_changes_nothing() {
    let mut stage = Stage::set("400ms").await;
    for id in ["a", "b"] {
        assert_eq!(stage.post("register", id, json!({"name": id, "slots": 4, "tools": [tool()]})).await.0, 200);
    }
    let call = stage.call("c", "held", json!({}), None);
    call.await;
    let first = stage.claim("a").await;
    let result = json!({"content": [{"type": "text", "text": "stolen"}]});
    let leased = json!({"lease_token": first["lease_token"]});
    let completes = json!({"lease_token": first["lease_token"], "result": result});
    let refused = |(status, body): (u16, Value)| (status, body["code"].as_str().unwrap_or_default().to_owned());

    let foreign = refused(stage.post("complete", "b", completes.clone()).await);
    assert_eq!(foreign, (403, "lease_foreign".to_owned()));
    assert_eq!(refused(stage.post("release", "b", leased.clone()).await), (403, "lease_foreign".to_owned()));
    assert_eq!(refused(stage.post("claim", "nobody", json!({"max": 1, "wait_ms": 0})).await).0, 404);

    // The lease runs out unless somebody beats for it; the other worker gets the call.
    let second = stage.claim("b").await;
    assert_eq!((&second["attempt"], &second["fencing_token"]), (&json!(2), &json!(2)));
    // Nothing was heard of the first one for so long that it counts as dead. It comes back as SDKs do.
    let again = json!({"name": "a", "slots": 4, "tools": [tool()]});
    assert_eq!(stage.post("register", "a", again).await.0, 200);
    assert_eq!(refused(stage.post("complete", "a", completes).await), (409, "lease_stale".to_owned()));
    assert_eq!(refused(stage.post("release", "a", leased).await), (409, "lease_stale".to_owned()));
    let steps = json!({"lease_token": first["lease_token"], "name": "one", "result": 1});
    assert_eq!(refused(stage.post("step", "a", steps).await), (409, "lease_stale".to_owned()));

    let mine = json!({"lease_token": second["lease_token"], "result": {"content": [{"type": "text", "text": "mine"}]}});
    let (status, body) = stage.post("complete", "b", mine.clone()).await;
    assert_eq!((status, &body["status"]), (200, &json!("accepted")));
    assert_eq!(stage.post("complete", "b", mine).await.1["status"], "already_done");
    assert_eq!(stage.answer("c").await["content"][0]["text"], "mine");
}

fn tool() -> Value {
    json!({"name": "held", "inputSchema": {"type": "object"}, "delivery": "at_least_once", "max_attempts": 5})
}

/// Runs a program in a folder of the SDKs and waits for its success.
async fn passes(folder: &str, program: &str, arguments: &[&str]) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(support::sdk_folder().join(folder));
    let mut process = Process::start_command(command);
    let status = process.exit(DEADLINE).await;
    assert!(status.success(), "{program} {arguments:?}:\n{}\n{}", process.stdout(), process.stderr());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_sdk_passes_its_own_tests() {
    skip_loudly!(support::sdks_are_set_up());
    let python = support::sdk_folder().join("python/.venv/bin/python");
    passes("python", python.to_str().unwrap(), &["-m", "unittest", "discover", "-q", "-s", "tests", "-t", "."]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_typescript_sdk_passes_its_own_tests() {
    skip_loudly!(support::sdks_are_set_up());
    passes("typescript", "npm", &["test", "--silent"]).await;
}

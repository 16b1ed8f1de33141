//! The official clients of tasks against the program: that of the extension for TypeScript, of the Rust SDK, and the
//! experimental API of the TypeScript SDK 1.x. What the letter says is in `tasks` and `tasks_experimental`.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, ClientConfig, GetTaskParams,
    Implementation, InputRequest, ProtocolVersion, TaskPayload, TaskStatus, UpdateTaskParams,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};

use crate::cases_scene::Scene;
use crate::skip_loudly;
use crate::support::process::Process;
use crate::support::program::{Setup, server_table};
use crate::support::servers::fixture_stdio;
use crate::support::{self, DEADLINE, clients_folder, eventually_async};
use crate::tasks_scene::Gate;

/// A client script, run to its end; everything it said.
async fn run(script: &str, arguments: &[&str]) -> Vec<Value> {
    let script = clients_folder().join(script);
    let mut argv = vec![script.to_str().unwrap()];
    argv.extend(arguments);
    let mut process = Process::start("node", &argv, &[]);
    let status = process.exit(DEADLINE).await;
    let said: Vec<Value> = process.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(status.success(), "{said:?} {}", process.stderr());
    said
}

fn member<'s>(said: &'s [Value], name: &str) -> &'s Value {
    said.iter().rev().find_map(|line| line.get(name)).unwrap_or_else(|| panic!("no {name}: {said:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_extensions_client_calls_settles_resumes_and_cancels() {
    skip_loudly!(support::clients_are_set_up());
    let scene = Scene::start("[defaults]\ntask_after = \"100ms\"\n", "").await;
    let url = scene.url().to_owned();
    let quick = run("tasks_ext.mjs", &["--url", &url, "--name", "echo", "--arguments", r#"{"a":1}"#]).await;
    assert_eq!(
        (member(&quick, "kind"), &member(&quick, "outcome")["status"]),
        (&json!("immediate"), &json!("completed"))
    );

    let slow = json!({"seconds": 0.7, "text": "one"}).to_string();
    let said = run("tasks_ext.mjs", &["--url", &url, "--name", "slow", "--arguments", &slow]).await;
    assert_eq!(member(&said, "kind"), "task", "{said:?}");
    let outcome = member(&said, "outcome");
    assert_eq!(outcome["status"], "completed", "{said:?}");
    assert!(outcome["result"]["content"][0]["text"].is_string(), "{outcome}");

    // The process ends; another one takes the task up by its reference.
    let gate = Gate::new(&scene.program.setup, "two");
    let arguments = gate.arguments("two").to_string();
    let said = run("tasks_ext.mjs", &["--url", &url, "--name", "slow", "--arguments", &arguments, "--detach"]).await;
    let reference = member(&said, "reference").to_string();
    gate.open();
    let said = run("tasks_ext.mjs", &["--url", &url, "--resume", &reference]).await;
    assert_eq!(member(&said, "outcome")["status"], "completed", "{said:?}");
    assert_eq!(scene.ledger.starts("two").len(), 1);

    let slow = json!({"seconds": 60, "text": "three"}).to_string();
    let said = run("tasks_ext.mjs", &["--url", &url, "--name", "slow", "--arguments", &slow, "--cancel"]).await;
    assert_eq!(member(&said, "outcome")["status"], "cancelled", "{said:?}");
    support::eventually("the tool is told", DEADLINE, || scene.ledger.cancels("three") == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_extensions_client_is_asked_through_its_task() {
    skip_loudly!(support::clients_are_set_up());
    let program = Setup::new(&server_table("fixture", &fixture_stdio(), "")).serve().await;
    let (file, yes) = (r#"{"filename":"a.txt"}"#, r#"{"confirm":true}"#);
    let arguments = ["--url", program.url(), "--name", "confirm_delete", "--arguments", file, "--content", yes];
    let said = run("tasks_ext.mjs", &arguments).await;
    assert!(member(&said, "asked").to_string().contains("Delete a.txt?"), "{said:?}");
    let outcome = member(&said, "outcome");
    assert_eq!(outcome["result"]["content"][0]["text"], "Delete a.txt: true", "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_extensions_client_speaks_the_older_variant_too() {
    skip_loudly!(support::clients_are_set_up());
    let scene = Scene::start("", "").await;
    let slow = json!({"seconds": 0.3, "text": "one"}).to_string();
    let arguments = ["--url", scene.url(), "--mode", "legacy", "--name", "slow", "--arguments", &slow];
    let said = run("tasks_ext.mjs", &arguments).await;
    assert_eq!((member(&said, "kind"), member(&said, "protocol")), (&json!("task"), &json!("2025-11-25")), "{said:?}");
    assert_eq!(member(&said, "outcome")["status"], "completed", "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_experimental_api_of_the_older_sdk_creates_streams_and_cancels() {
    skip_loudly!(support::clients_are_set_up());
    let scene = Scene::start("", "").await;
    let url = scene.url().to_owned();
    let slow = json!({"seconds": 0.3, "text": "one"}).to_string();
    let said = run("tasks_sdk1.mjs", &["--url", &url, "--name", "slow", "--arguments", &slow, "--ttl", "60000"]).await;
    let tools = member(&said, "tools").as_array().unwrap();
    let support =
        |name: &str| tools.iter().find(|tool| tool["name"] == name).map(|tool| &tool["execution"]["taskSupport"]);
    assert_eq!(support("slow"), Some(&json!("optional")));
    let messages: Vec<&Value> = said.iter().filter_map(|line| line.get("message")).collect();
    assert_eq!(messages[0]["type"], "taskCreated", "{said:?}");
    assert_eq!((&messages[0]["task"]["status"], &messages[0]["task"]["ttl"]), (&json!("working"), &json!(60_000)));
    let last = messages.last().unwrap();
    assert_eq!(last["type"], "result", "{said:?}");
    assert_eq!(
        last["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
        messages[0]["task"]["taskId"]
    );

    let slow = json!({"seconds": 60, "text": "two"}).to_string();
    let said = run("tasks_sdk1.mjs", &["--url", &url, "--name", "slow", "--arguments", &slow, "--detach"]).await;
    let id = member(&said, "message")["task"]["taskId"].as_str().unwrap().to_owned();
    let said = run("tasks_sdk1.mjs", &["--url", &url, "--task", &id, "--cancel"]).await;
    assert_eq!(member(&said, "cancelled")["status"], "cancelled", "{said:?}");
    assert_eq!(member(&said, "task")["status"], "cancelled", "{said:?}");
    support::eventually("the tool is told", DEADLINE, || scene.ledger.cancels("two") == 1).await;
}

#[derive(Clone)]
struct Rust;

impl ClientHandler for Rust {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_tasks().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("rmcp", "1"))
    }
}

async fn rust_client(url: &str) -> RunningService<RoleClient, Rust> {
    // The SDK's HTTP client asks for one even where nothing is encrypted; a second installation is refused, rightly.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    Rust.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), lifecycle).await.unwrap()
}

async fn rust_task(client: &RunningService<RoleClient, Rust>, arguments: Value) -> String {
    let params = CallToolRequestParams::new("slow").with_arguments(arguments.as_object().unwrap().clone());
    match client.call_tool_once(params).await.unwrap() {
        CallToolResponse::Task(created) => {
            assert_eq!(created.task.status, TaskStatus::Working);
            created.task.task_id
        }
        other => panic!("no task: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rust_client_polls_and_cancels() {
    let scene = Scene::start("[defaults]\ntask_after = \"100ms\"\n", "").await;
    let client = rust_client(scene.url()).await;
    let quick = client.call_tool_once(CallToolRequestParams::new("echo")).await.unwrap();
    assert!(matches!(quick, CallToolResponse::Complete(_)), "{quick:?}");

    let gate = Gate::new(&scene.program.setup, "one");
    let id = rust_task(&client, gate.arguments("one")).await;
    assert_eq!(client.get_task(GetTaskParams::new(&id)).await.unwrap().task.status(), TaskStatus::Working);
    gate.open();
    eventually_async("the task is completed", DEADLINE, async || {
        let seen = client.get_task(GetTaskParams::new(&id)).await.unwrap().task;
        match seen.payload {
            TaskPayload::Completed { result } => result["content"][0]["text"].is_string(),
            TaskPayload::Working => false,
            other => panic!("{other:?}"),
        }
    })
    .await;

    let id = rust_task(&client, json!({"seconds": 60, "text": "two"})).await;
    client.cancel_task(CancelTaskParams::new(&id)).await.unwrap();
    assert_eq!(client.get_task(GetTaskParams::new(&id)).await.unwrap().task.status(), TaskStatus::Cancelled);
    client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rust_client_is_asked_through_its_task() {
    let config = format!("[defaults]\ntasks = \"always\"\n{}", server_table("fixture", &fixture_stdio(), ""));
    let program = Setup::new(&config).serve().await;
    let client = rust_client(program.url()).await;
    // A server's own task, and a tool that knows none.
    for (tool, arguments, content, told) in [
        ("confirm_delete", json!({"filename": "a.txt"}), json!({"confirm": true}), "Delete a.txt: true"),
        ("test_input_required_result_elicitation", json!({}), json!({"name": "Ann"}), "Ann"),
    ] {
        let params = CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone());
        let id = match client.call_tool_once(params).await.unwrap() {
            CallToolResponse::Task(created) => created.task.task_id,
            other => panic!("no task of {tool}: {other:?}"),
        };
        let mut asked = None;
        eventually_async(&format!("{tool} asks"), DEADLINE, async || {
            if let TaskPayload::InputRequired { input_requests } =
                client.get_task(GetTaskParams::new(&id)).await.unwrap().task.payload
            {
                asked = input_requests.into_iter().next();
            }
            asked.is_some()
        })
        .await;
        let (key, request) = asked.unwrap();
        assert!(matches!(request, InputRequest::Elicitation(_)), "{request:?}");
        let answer = json!({"action": "accept", "content": content});
        client.update_task(UpdateTaskParams::new(&id, [(key, answer)].into())).await.unwrap();
        eventually_async(&format!("{tool} is completed"), DEADLINE, async || {
            match client.get_task(GetTaskParams::new(&id)).await.unwrap().task.payload {
                TaskPayload::Completed { result } => {
                    let text = result["content"][0]["text"].as_str().unwrap();
                    assert!(text.contains(told), "{text}");
                    true
                }
                // The answer may be on its way for a moment.
                TaskPayload::Working | TaskPayload::InputRequired { .. } => false,
                other => panic!("{other:?}"),
            }
        })
        .await;
    }
    client.cancel().await.unwrap();
}

//! Calls as tasks of the experimental feature of 2025-11-25, by hand over HTTP.

use serde_json::{Value, json};

use crate::cases_scene::{Scene, gap};
use crate::support::raw_http::{Connection, Request, open_session};
use crate::support::{self, DEADLINE};
use crate::tasks_scene::{Gate, Legacy, task_id, token};
use std::time::Duration;

const RELATED: &str = "io.modelcontextprotocol/related-task";

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

async fn capabilities(url: &str, revision: &str, headers: &[(String, String)]) -> Value {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let request = Request::legacy(url, None, &hello.to_string());
    let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    request.exchange(url).await.answer()["result"]["capabilities"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_the_revision_are_told_what_may_be_a_task_and_others_are_not() {
    let scene = Scene::start("", "tools.append.tasks = \"never\"").await;
    let tasks = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
    assert_eq!(capabilities(scene.url(), "2025-11-25", &[]).await["tasks"], tasks);
    assert!(capabilities(scene.url(), "2025-06-18", &[]).await.get("tasks").is_none());
    for revision in ["2025-11-25", "2025-06-18"] {
        let session = open_session(scene.url(), revision).await.unwrap();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let request = Request::legacy(scene.url(), Some(&session), &message).with("MCP-Protocol-Version", revision);
        let listed = request.exchange(scene.url()).await.answer();
        let support = |name: &str| {
            let tools = listed["result"]["tools"].as_array().unwrap();
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}"));
            tool.get("execution").map(|execution| execution["taskSupport"].clone())
        };
        let wanted = (revision == "2025-11-25").then(|| json!("optional"));
        assert_eq!(support("slow"), wanted, "{revision}");
        assert_eq!((support("append"), support("durable_result")), (None, None), "{revision}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_asks_for_a_task_gets_one_at_once_and_its_result_later() {
    let scene = Scene::start("", "").await;
    let client = Legacy::open(scene.url()).await;
    let gate = Gate::new(&scene.program.setup, "slow");
    let task = client.task("slow", gate.arguments("one"), json!({"ttl": 60_000})).await;
    assert_eq!(
        (&task["status"], &task["ttl"], &task["pollInterval"]),
        (&json!("working"), &json!(60_000), &json!(500))
    );
    let id = task_id(&task);
    let shown = client.get(&id).await["result"].clone();
    assert_eq!(
        (&shown["taskId"], &shown["status"], shown.get("task")),
        (&json!(id), &json!("working"), None),
        "{shown}"
    );
    assert!(shown["_meta"].get(RELATED).is_none());

    let waiting = {
        let client = client.clone();
        let params = json!({"taskId": id});
        tokio::spawn(async move { client.ask("tasks/result", params).await })
    };
    gap(Duration::from_millis(200)).await;
    assert!(!waiting.is_finished(), "it waits for the end");
    gate.open();
    let result = waiting.await.unwrap()["result"].clone();
    assert_eq!(result["_meta"][RELATED], json!({"taskId": id}), "{result}");
    assert!(result["content"][0]["text"].is_string() && result.get("resultType").is_none(), "{result}");
    assert_eq!(client.get(&id).await["result"]["status"], "completed");
    let again = client.ask("tasks/result", json!({"taskId": id})).await;
    assert_eq!(again["result"]["content"], result["content"]);
    // A plain call is answered as ever.
    assert!(client.ask("tools/call", json!({"name": "echo", "arguments": {}})).await["result"]["content"].is_array());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_but_a_good_result_has_failed_and_its_result_says_how() {
    let scene = Scene::start("", "tools.append.tasks = \"never\"").await;
    let client = Legacy::open(scene.url()).await;
    let failed = task_id(&client.task("slow", json!({}), json!({})).await);
    let result = client.ask("tasks/result", json!({"taskId": failed})).await["result"].clone();
    assert_eq!((&result["isError"], &result["_meta"][RELATED]["taskId"]), (&json!(true), &json!(failed)));
    assert_eq!(client.get(&failed).await["result"]["status"], "failed");
    let refused = task_id(&client.task("rpc_error", json!({"code": -31999, "message": "no"}), json!({})).await);
    let error = client.ask("tasks/result", json!({"taskId": refused})).await;
    assert_eq!(error["error"], json!({"code": -31999, "message": "no"}), "{error}");
    assert_eq!(client.get(&refused).await["result"]["status"], "failed");
    let forbidden = client.ask("tools/call", json!({"name": "append", "arguments": {"text": "x"}, "task": {}})).await;
    assert_eq!(code(&forbidden), -32601);
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let missing = client.ask(method, json!({"taskId": "01938c5e-0000-7000-8000-000000000000"})).await;
        assert_eq!(code(&missing), -32602, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_task_is_cancelled_before_the_reply_and_once() {
    let scene = Scene::start("", "").await;
    let client = Legacy::open(scene.url()).await;
    let id = task_id(&client.task("slow", json!({"seconds": 60, "text": "one"}), json!({})).await);
    let waiting = {
        let client = client.clone();
        let params = json!({"taskId": id});
        tokio::spawn(async move { client.ask("tasks/result", params).await })
    };
    scene.ledger.wait_for_start("one", DEADLINE).await;
    let cancelled = client.ask("tasks/cancel", json!({"taskId": id})).await["result"].clone();
    assert_eq!((&cancelled["taskId"], &cancelled["status"]), (&json!(id), &json!("cancelled")), "{cancelled}");
    assert_eq!(code(&client.ask("tasks/cancel", json!({"taskId": id})).await), -32602);
    assert_eq!(waiting.await.unwrap()["result"]["isError"], true);
    support::eventually("the tool is told", DEADLINE, || scene.ledger.cancels("one") == 1).await;
}

// A37: a client that lost its ids cannot find its tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_listed_to_whoever_proved_who_they_are() {
    let scene = Scene::start("[auth]\nmode = \"token\"\n", "").await;
    let (ann, bob) = (token(&scene.program.setup, "ann").await, token(&scene.program.setup, "bob").await);
    let (ann, bob) = (Legacy::open_as(scene.url(), &ann).await, Legacy::open_as(scene.url(), &bob).await);
    assert_eq!(capabilities(scene.url(), "2025-11-25", &ann.headers).await["tasks"]["list"], json!({}));
    let mut ids = Vec::new();
    for n in 0..103 {
        ids.insert(0, task_id(&ann.task("echo", json!({"n": n}), json!({})).await));
    }
    let listed = |page: &Value| -> Vec<String> { page["tasks"].as_array().unwrap().iter().map(task_id).collect() };
    let first = ann.ask("tasks/list", json!({})).await["result"].clone();
    let cursor = first["nextCursor"].as_str().unwrap().to_owned();
    let second = ann.ask("tasks/list", json!({"cursor": cursor})).await["result"].clone();
    assert_eq!([listed(&first), listed(&second)].concat(), ids);
    assert!(second.get("nextCursor").is_none(), "{second}");
    let wrong = format!("{}x", cursor);
    for (client, cursor) in [(&ann, wrong.as_str()), (&bob, cursor.as_str())] {
        assert_eq!(code(&client.ask("tasks/list", json!({"cursor": cursor})).await), -32602);
    }
    assert_eq!(bob.ask("tasks/list", json!({})).await["result"], json!({"tasks": []}));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(code(&bob.ask(method, json!({"taskId": ids[0]})).await), -32602, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nameless_caller_has_no_list_and_an_older_session_no_tasks() {
    let scene = Scene::start("", "").await;
    let client = Legacy::open(scene.url()).await;
    assert_eq!(code(&client.ask("tasks/list", json!({})).await), -32601);
    let session = open_session(scene.url(), "2025-06-18").await.unwrap();
    let older = Legacy { session, ..client };
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {}, "task": {}}});
    let request = Request::legacy(scene.url(), Some(&older.session), &message.to_string());
    let answer = request.with("MCP-Protocol-Version", "2025-06-18").exchange(scene.url()).await.answer();
    assert!(answer["result"]["content"].is_array(), "{answer}");
}

// A36: another process, another session, the same task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_the_result_is_waited_for_at_another_process() {
    let scene = Scene::start("", "delivery = \"at_least_once\"").await;
    let client = Legacy::open(scene.url()).await;
    let gate = Gate::new(&scene.program.setup, "slow");
    let id = task_id(&client.task("slow", gate.arguments("one"), json!({})).await);
    let setup = scene.program.setup.clone();
    let mut first = scene.program;
    first.kill_9().await;
    gate.open();
    let second = setup.serve().await;
    let client = Legacy::open(second.url()).await;
    let result = client.ask("tasks/result", json!({"taskId": id})).await["result"].clone();
    assert_eq!(result["_meta"][RELATED]["taskId"], json!(id), "{result}");
    assert_ne!(result["isError"], true, "{result}");
    second.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_is_waited_for_on_a_stream_taken_up_again_still_names_its_task() {
    let scene = Scene::start("[server]\njson_within = \"50ms\"", "").await;
    let client = Legacy::open(scene.url()).await;
    let gate = Gate::new(&scene.program.setup, "slow");
    let id = task_id(&client.task("slow", gate.arguments("one"), json!({})).await);
    let mut stream = Connection::open(scene.url()).await;
    stream.send(&client.request("tasks/result", json!({"taskId": id})).bytes()).await;
    assert_eq!(stream.response_head().await.status, 200);
    let first = stream.event().await.unwrap().id.expect("an id to go on from");
    stream.cut();
    let get = Request::new("GET", scene.url())
        .header("Accept", "text/event-stream")
        .header("Mcp-Session-Id", &client.session)
        .header("Last-Event-ID", &first);
    let mut stream = Connection::open(scene.url()).await;
    stream.send(&get.bytes()).await;
    assert_eq!(stream.response_head().await.status, 200);
    gate.open();
    let answer: Value = loop {
        let event = tokio::time::timeout(DEADLINE, stream.event()).await.expect("an event").expect("an answer");
        if !event.data.is_empty() {
            break serde_json::from_str(&event.data).unwrap();
        }
    };
    assert_eq!(answer["result"]["_meta"][RELATED], json!({"taskId": id}), "{answer}");
}

/// The stream of a session for what concerns no request.
async fn listen(url: &str, client: &Legacy) -> Connection {
    let get = Request::new("GET", url)
        .header("Accept", "text/event-stream")
        .header("Mcp-Session-Id", &client.session)
        .header("MCP-Protocol-Version", "2025-11-25");
    let mut stream = Connection::open(url).await;
    stream.send(&get.bytes()).await;
    assert_eq!(stream.response_head().await.status, 200);
    stream
}

/// What the next message on it says of a task.
async fn told(stream: &mut Connection) -> Value {
    let told: Value = serde_json::from_str(&stream.message().await.expect("a message").data).unwrap();
    assert_eq!(told["method"], "notifications/tasks/status", "{told}");
    told["params"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_told_when_the_status_of_its_task_changes_and_no_other_is() {
    let scene = Scene::start("", "").await;
    let (one, two) = (Legacy::open(scene.url()).await, Legacy::open(scene.url()).await);
    let (mut hears_one, mut hears_two) = (listen(scene.url(), &one).await, listen(scene.url(), &two).await);
    let gate = Gate::new(&scene.program.setup, "first");
    let first = task_id(&one.task("slow", gate.arguments("first"), json!({})).await);
    gate.open();
    let status = told(&mut hears_one).await;
    assert_eq!((&status["taskId"], &status["status"]), (&json!(first), &json!("completed")), "{status}");
    assert_eq!((status["createdAt"].is_string(), status["ttl"].is_number(), status.get("_meta")), (true, true, None));
    // The first thing that the other one hears is of its own.
    let second = task_id(&two.task("slow", json!({"seconds": 60, "text": "second"}), json!({})).await);
    two.ask("tasks/cancel", json!({"taskId": second})).await;
    let status = told(&mut hears_two).await;
    assert_eq!((&status["taskId"], &status["status"]), (&json!(second), &json!("cancelled")), "{status}");

    // After a kill whoever asks once is told from then on.
    let gate = Gate::new(&scene.program.setup, "third");
    let third = task_id(&one.task("slow_idempotent", gate.arguments("third"), json!({})).await);
    let program = scene.program.restart().await;
    let mut hears_one = listen(program.url(), &one).await;
    assert_eq!(one.get(&third).await["result"]["status"], "working");
    gate.open();
    let status = told(&mut hears_one).await;
    assert_eq!((&status["taskId"], &status["status"]), (&json!(third), &json!("completed")), "{status}");
}

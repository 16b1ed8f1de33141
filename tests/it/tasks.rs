//! Calls as tasks of the extension `io.modelcontextprotocol/tasks` (2026-07-28), by hand over HTTP and stdio: when one is
//! made, what it shows, whose it is, how it ends, and that any process can answer for it.

use serde_json::{Value, json};

use crate::cases_scene::{Scene, gap};
use crate::on_every_store;
use crate::support::raw_http::Connection;
use crate::support::raw_stdio::RawStdio;
use crate::support::stores::On;
use crate::support::{self, DEADLINE};
use crate::tasks_scene::{EXTENSION, Gate, Modern, task_id, token};
use std::time::Duration;

on_every_store! {
    after_a_kill_right_after_the_answer_another_process_answers_for_the_task;
    other_processes_of_the_same_store_read_and_cancel_the_task_of_the_first;
}

const SOON: &str = "[defaults]\ntask_after = \"100ms\"\n";

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quick_call_is_answered_and_a_longer_one_becomes_a_task() {
    let scene = Scene::start(SOON, "").await;
    let client = Modern::new(scene.url());
    let quick = client.call("echo", json!({"a": 1})).await;
    assert_eq!((&quick["result"]["resultType"], quick["result"].get("taskId")), (&json!("complete"), None), "{quick}");

    let gate = Gate::new(&scene.program.setup, "slow");
    let task = client.task("slow", gate.arguments("one")).await;
    assert_eq!(
        (&task["status"], &task["ttlMs"], &task["pollIntervalMs"]),
        (&json!("working"), &json!(86_400_000), &json!(500))
    );
    for renamed in ["ttl", "pollInterval", "task", "result", "requestState", "content"] {
        assert!(task.get(renamed).is_none(), "{renamed}: {task}");
    }
    let id = task_id(&task);
    assert_eq!(scene.execution_of("one"), id, "the execution's id is the task's");
    let working = client.get(&id).await;
    assert_eq!(
        (&working["result"]["resultType"], &working["result"]["status"]),
        (&json!("complete"), &json!("working"))
    );
    assert_eq!(working["result"]["createdAt"], task["createdAt"]);

    gate.open();
    let done = client.until(&id, "completed").await;
    assert_eq!((&done["resultType"], &done["result"]["resultType"]), (&json!("complete"), &json!("complete")));
    assert!(done["result"]["content"][0]["text"].is_string() && done["result"]["isError"] != true, "{done}");
    assert!(done.get("pollIntervalMs").is_none() && done.get("error").is_none(), "{done}");
    let (created, updated) = (done["createdAt"].as_str().unwrap(), done["lastUpdatedAt"].as_str().unwrap());
    assert!(created < updated && updated.ends_with('Z'), "{done}");
    // Whoever knows the id reads the same result without tasks.
    let result = client.call("durable_result", json!({"execution_id": id})).await;
    assert_eq!(result["result"]["content"], done["result"]["content"]);
    scene.program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_of_nothing_makes_a_task_at_once() {
    let scene = Scene::start("[defaults]\ntask_after = \"1h\"\n", "").await;
    let client = Modern::new(scene.url());
    let gate = Gate::new(&scene.program.setup, "slow");
    let params = json!({"name": "slow", "arguments": gate.arguments("one"), "_meta": {"durable-mcp/wait": 0}});
    let answer = client.ask("tools/call", params.clone()).await;
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    // Without the extension the same gets the id in another way.
    let plain = client.clone().without_tasks().ask("tools/call", params).await;
    assert!(plain["result"]["structuredContent"]["execution_id"].is_string(), "{plain}");
    gate.open();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tools_policy_decides_who_gets_a_task() {
    let tools = "tools.echo.tasks = \"always\"\ntools.append.tasks = \"required\"\ntools.slow = { tasks = \"never\", wait = \"300ms\" }";
    let scene = Scene::start("", tools).await;
    let (client, plain) = (Modern::new(scene.url()), Modern::new(scene.url()).without_tasks());
    let task = client.task("echo", json!({"a": 1})).await;
    client.until(&task_id(&task), "completed").await;
    assert_eq!(plain.call("echo", json!({"a": 2})).await["result"]["resultType"], "complete");

    client.until(&task_id(&client.task("append", json!({"text": "one"})).await), "completed").await;
    let refused = plain.send("tools/call", json!({"name": "append", "arguments": {"text": "two"}})).await;
    let error = refused.answer();
    assert_eq!((refused.status, code(&error)), (400, -32021), "{error}");
    assert_eq!(error["error"]["data"]["requiredCapabilities"], json!({"extensions": {EXTENSION: {}}}));
    assert!(scene.ledger.starts("two").is_empty(), "nothing ran");
    // Clients that can not declare an extension are served as ever.
    let legacy = scene.legacy().await.call("append", json!({"text": "three"})).await;
    assert!(legacy["result"]["content"].is_array(), "{legacy}");

    let never = client.call("slow", json!({"seconds": 60, "text": "never"})).await;
    assert_eq!((&never["result"]["resultType"], &never["result"]["isError"]), (&json!("complete"), &json!(true)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_about_tasks_follow_the_letter() {
    let scene = Scene::start(SOON, "").await;
    let client = Modern::new(scene.url());
    let discovered = client.ask("server/discover", json!({})).await;
    assert_eq!(discovered["result"]["capabilities"]["extensions"][EXTENSION], json!({}), "{discovered}");
    assert!(discovered["result"]["capabilities"].get("tasks").is_none());
    let gate = Gate::new(&scene.program.setup, "slow");
    // The member of an earlier revision says nothing here.
    let params = json!({"name": "slow", "arguments": gate.arguments("one"), "task": {"ttl": 5}});
    let task = client.ask("tools/call", params).await["result"].clone();
    assert_eq!((&task["resultType"], &task["ttlMs"]), (&json!("task"), &json!(86_400_000)), "{task}");
    let id = task_id(&task);

    for method in ["tasks/list", "tasks/result"] {
        let response = client.send(method, json!({"taskId": id})).await;
        assert_eq!((response.status, code(&response.answer())), (404, -32601), "{method}");
    }
    for (method, more) in
        [("tasks/get", json!({})), ("tasks/update", json!({"inputResponses": {}})), ("tasks/cancel", json!({}))]
    {
        let with = |id: Value| {
            let mut params = more.clone();
            params["taskId"] = id;
            params
        };
        let undeclared = client.clone().without_tasks().send(method, with(json!(id))).await;
        assert_eq!((undeclared.status, code(&undeclared.answer())), (400, -32021), "{method}");
        let other = client.request(method, with(json!(id))).with("Mcp-Name", "another").exchange(&client.url).await;
        assert_eq!((other.status, code(&other.answer())), (400, -32020), "{method}");
        for wrong in [json!("01938c5e-0000-7000-8000-000000000000"), json!("nonsense"), json!(7), Value::Null] {
            let answer = client.request(method, with(wrong.clone())).without("Mcp-Name").exchange(&client.url).await;
            assert_eq!(code(&answer.answer()), -32602, "{method} {wrong}");
        }
    }
    let unnamed = client.request("tasks/get", json!({"taskId": id})).without("Mcp-Name").exchange(&client.url).await;
    assert_eq!(unnamed.answer()["result"]["status"], "working", "a missing Mcp-Name is tolerated");
    // Keys that nobody asked about are passed over.
    let answers = json!({"taskId": id, "inputResponses": {"k": {"action": "accept"}}});
    let updated = client.ask("tasks/update", answers).await;
    assert_eq!((&updated["result"]["resultType"], updated["result"].get("taskId")), (&json!("complete"), None));
    let bad = client.ask("tasks/update", json!({"taskId": id, "inputResponses": {"k": 1}})).await;
    assert_eq!(code(&bad), -32602);
    gate.open();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_tool_is_a_result_and_one_of_json_rpc_is_a_failure() {
    let scene = Scene::start("[defaults]\ntasks = \"always\"\n", "").await;
    let client = Modern::new(scene.url());
    let task = client.task("rpc_error", json!({"code": -31999, "message": "no", "data": {"n": 1.5}})).await;
    let failed = client.until(&task_id(&task), "failed").await;
    assert_eq!(failed["error"], json!({"code": -31999, "message": "no", "data": {"n": 1.5}}));
    assert!(failed["statusMessage"].is_string() && failed.get("result").is_none(), "{failed}");
    let task = client.task("slow", json!({})).await;
    let done = client.until(&task_id(&task), "completed").await;
    assert_eq!(done["result"]["isError"], true, "{done}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_key_gets_the_same_task_and_so_does_a_call_whose_answer_was_lost() {
    let scene = Scene::start("[defaults]\ntasks = \"always\"\n", "").await;
    let client = Modern::new(scene.url());
    let gate = Gate::new(&scene.program.setup, "slow");
    let meta = json!({"durable-mcp/idempotencyKey": "k-1"});
    let params = json!({"name": "slow", "arguments": gate.arguments("one"), "_meta": meta});
    let first = client.ask("tools/call", params.clone()).await["result"].clone();
    let again = client.ask("tools/call", params.clone()).await["result"].clone();
    assert_eq!((&again["resultType"], &again["taskId"]), (&json!("task"), &first["taskId"]));
    gate.open();
    client.until(&task_id(&first), "completed").await;
    let after = client.ask("tools/call", params).await["result"].clone();
    assert_eq!((&after["taskId"], &after["status"]), (&first["taskId"], &json!("completed")), "{after}");
    assert_eq!(scene.ledger.starts("one").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_is_acknowledged_stops_the_work_and_is_acknowledged_again() {
    let scene = Scene::start(SOON, "").await;
    let client = Modern::new(scene.url());
    let task = client.task("slow", json!({"seconds": 60, "text": "one"})).await;
    let id = task_id(&task);
    let ack = client.ask("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!((&ack["result"]["resultType"], ack["result"].get("status")), (&json!("complete"), None), "{ack}");
    // It was recorded before the reply.
    let cancelled = client.get(&id).await["result"].clone();
    assert_eq!(cancelled["status"], "cancelled");
    assert!(cancelled["statusMessage"].as_str().unwrap().contains("may have taken effect"), "{cancelled}");
    assert!(cancelled.get("result").is_none() && cancelled.get("error").is_none(), "{cancelled}");
    support::eventually("the tool is told", DEADLINE, || scene.ledger.cancels("one") == 1).await;
    assert_eq!(client.ask("tasks/cancel", json!({"taskId": id})).await["result"]["resultType"], "complete");
}

// A36: the task is kept, but not found because the session is another.
async fn after_a_kill_right_after_the_answer_another_process_answers_for_the_task(on: On) {
    let scene = Scene::start_on(on, "[defaults]\ntasks = \"always\"\n", "").await;
    let client = Modern::new(scene.url());
    let task = client.task("slow", json!({"seconds": 60, "text": "one"})).await;
    let id = task_id(&task);
    let setup = scene.program.setup.clone();
    let mut first = scene.program;
    first.kill_9().await;

    let second = setup.serve().await;
    let client = Modern::new(second.url());
    // It was dispatched at most once, and nobody knows what became of it.
    let shown = client.until(&id, "completed").await;
    assert_eq!(shown["result"]["isError"], true, "{shown}");
    assert_eq!((&shown["createdAt"], &shown["ttlMs"]), (&task["createdAt"], &task["ttlMs"]));
    assert_eq!(shown["_meta"]["durable-mcp/execution"]["state"], "unknown");

    // A person's word comes later: the task shows what it showed first, the execution the truth.
    let ran =
        setup.cli(&["executions", "resolve", &id, "--failed", "--reason", "looked", "--url", &second.at("")]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    assert_eq!(client.get(&id).await["result"], shown);
    let truth = client.call("durable_result", json!({"execution_id": id})).await;
    assert_eq!(truth["result"]["_meta"]["durable-mcp/execution"]["state"], "failed", "{truth}");
    second.check_store().await;
}

// A20, A34: begun at one process, looked at at another, cancelled at a third; the server behind is told.
async fn other_processes_of_the_same_store_read_and_cancel_the_task_of_the_first(on: On) {
    let scene = Scene::start_on(on, SOON, "").await;
    let (other, third) = (scene.program.setup.serve().await, scene.program.setup.serve().await);
    let (here, there) = (Modern::new(scene.url()), Modern::new(other.url()));
    let elsewhere = Modern::new(third.url());
    let gate = Gate::new(&scene.program.setup, "slow");
    let id = task_id(&here.task("slow", gate.arguments("one")).await);
    assert_eq!(there.get(&id).await["result"]["status"], "working");
    gate.open();
    there.until(&id, "completed").await;
    let id = task_id(&here.task("slow", json!({"seconds": 60, "text": "two"})).await);
    scene.ledger.wait_for_start("two", DEADLINE).await;
    assert_eq!(there.get(&id).await["result"]["status"], "working");
    elsewhere.ask("tasks/cancel", json!({"taskId": id})).await;
    for process in [&here, &there] {
        assert_eq!(process.get(&id).await["result"]["status"], "cancelled");
    }
    support::eventually("the tool is told", DEADLINE, || scene.ledger.cancels("two") == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_task_is_as_if_it_were_missing() {
    let scene = Scene::start(&format!("[auth]\nmode = \"token\"\n{SOON}"), "").await;
    let (ann, bob) = (token(&scene.program.setup, "ann").await, token(&scene.program.setup, "bob").await);
    let (ann, bob) = (Modern::new(scene.url()).bearer(&ann), Modern::new(scene.url()).bearer(&bob));
    let gate = Gate::new(&scene.program.setup, "slow");
    let id = task_id(&ann.task("slow", gate.arguments("one")).await);
    let missing = "01938c5e-0000-7000-8000-000000000000";
    for (method, more) in
        [("tasks/get", json!({})), ("tasks/update", json!({"inputResponses": {}})), ("tasks/cancel", json!({}))]
    {
        let mut answers = Vec::new();
        for id in [id.as_str(), missing] {
            let mut params = more.clone();
            params["taskId"] = json!(id);
            answers.push(bob.ask(method, params).await);
        }
        assert_eq!((code(&answers[0]), &answers[0]), (-32602, &answers[1]), "{method}");
    }
    gate.open();
    ann.until(&id, "completed").await;
}

// A37: nobody stops stale tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_its_time_is_over_a_task_is_gone_and_its_work_stops_as_the_policy_says() {
    let head = "[defaults]\ntask_after = \"50ms\"\ntask_ttl = \"700ms\"\n[scheduler]\ninterval = \"50ms\"\n";
    let scene = Scene::start(head, "tools.slow_structured.on_task_expiry = \"detach\"").await;
    let client = Modern::new(scene.url());
    let stopped = client.task("slow", json!({"seconds": 60, "text": "stopped"})).await;
    let goes_on = client.task("slow_structured", json!({"seconds": 1.5, "n": 1, "text": "goes on"})).await;
    assert_eq!(stopped["ttlMs"], 700);
    gap(Duration::from_millis(700)).await;
    for task in [&stopped, &goes_on] {
        assert_eq!(code(&client.get(&task_id(task)).await), -32602);
        assert_eq!(code(&client.ask("tasks/cancel", json!({"taskId": task_id(task)})).await), -32602);
    }
    scene.wait_for_state(&task_id(&stopped), "cancelled").await;
    support::eventually("the tool is told", DEADLINE, || scene.ledger.cancels("stopped") == 1).await;
    scene.wait_for_state(&task_id(&goes_on), "completed").await;
    scene.program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stdio_speaks_both_variants() {
    let setup = crate::support::program::Setup::new(SOON);
    let mut wrap = RawStdio::start(&setup.wrap(&crate::cases_scene::kit(setup.folder())));
    let declared = json!({"extensions": {EXTENSION: {}}});
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": declared});
    let gate = Gate::new(&setup, "modern");
    let call = json!({"name": "slow", "arguments": gate.arguments("modern"), "_meta": meta});
    let task = wrap.request(json!(1), "tools/call", call).await["result"].clone();
    assert_eq!(task["resultType"], "task", "{task}");
    let get = json!({"taskId": task["taskId"], "_meta": meta});
    assert_eq!(wrap.request(json!(2), "tasks/get", get).await["result"]["status"], "working");
    gate.open();

    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
    wrap.request(json!(3), "initialize", hello).await;
    let gate = Gate::new(&setup, "legacy");
    let call = json!({"name": "slow", "arguments": gate.arguments("legacy"), "task": {"ttl": 60_000}});
    let task = wrap.request(json!(4), "tools/call", call).await["result"]["task"].clone();
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)), "{task}");
    gate.open();
    let result = wrap.request(json!(5), "tasks/result", json!({"taskId": task["taskId"]})).await["result"].clone();
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task["taskId"], "{result}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listening_stream_tells_how_its_tasks_stand_and_how_they_change() {
    let scene = Scene::start(SOON, "").await;
    let other = scene.program.setup.serve().await;
    let client = Modern::new(scene.url());
    let gate = Gate::new(&scene.program.setup, "slow");
    let id = task_id(&client.task("slow", gate.arguments("one")).await);
    let foreign = "01938c5e-0000-7000-8000-000000000000";
    let filter = json!({"notifications": {"taskIds": [id, foreign]}});
    let undeclared = client.clone().without_tasks().send("subscriptions/listen", filter.clone()).await;
    assert_eq!((undeclared.status, code(&undeclared.answer())), (400, -32021));
    // One stream where the work runs, one at another process.
    for url in [scene.url(), other.url()] {
        let listener = Modern::new(url);
        let mut stream = Connection::open(url).await;
        stream.send(&listener.request("subscriptions/listen", filter.clone()).bytes()).await;
        assert_eq!(stream.response_head().await.status, 200);
        let mut next =
            async || -> Value { serde_json::from_str(&stream.event().await.expect("an event").data).unwrap() };
        let acknowledged = next().await;
        assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([id]), "{acknowledged}");
        let first = next().await;
        assert_eq!(
            (&first["method"], &first["params"]["taskId"]),
            (&json!("notifications/tasks"), &json!(id)),
            "{first}"
        );
        if url == other.url() {
            gate.open();
        } else {
            assert_eq!(first["params"]["status"], "working", "{first}");
            continue;
        }
        let mut told = first;
        while told["params"]["status"] == "working" {
            told = next().await;
        }
        let params = &told["params"];
        assert_eq!((&params["status"], params.get("resultType")), (&json!("completed"), None), "{told}");
        assert!(
            params["result"]["content"].is_array() && params["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1
        );
    }
}

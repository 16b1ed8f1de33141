//! Field cases about finding out afterwards: a client that lost the ids of its calls, and an auditor who asks who ran what.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cases_scene::{Caller, Scene, execution, gap, id_of, text};
use crate::support::program::Program;
use crate::support::raw_http::Request;
use crate::support::{self, DEADLINE};
use crate::tasks_scene::Modern;

async fn token(program: &Program, principal: &str, scopes: &str) -> String {
    let arguments = ["token", "create", "--principal", principal, "--scope", scopes];
    let ran = program.setup.cli(&arguments).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

fn bearer(url: &str, token: &str) -> Caller {
    Caller::modern(url).header("Authorization", &format!("Bearer {token}"))
}

async fn listed(program: &Program, token: &str, query: &str) -> Vec<Value> {
    let url = program.at(&format!("/api/v1/executions?{query}"));
    let request = Request::new("GET", &url).header("Authorization", &format!("Bearer {token}"));
    let answer = request.exchange(&url).await.answer();
    answer["executions"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

// A37: no list of tasks: a client that lost its ids cannot find its tasks, and nobody stops stale ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_lost_its_ids_finds_its_calls_and_what_is_stale_is_stopped() {
    let head = "[auth]\nmode = \"token\"\n[defaults]\ntask_after = \"50ms\"\n[scheduler]\ninterval = \"50ms\"\n\
        [builtin]\ndurable_list = true\n";
    let scene = Scene::start(head, "tools.slow_structured.task_ttl = \"700ms\"").await;
    let program = &scene.program;
    let before = jiff::Timestamp::now();
    let (ann, bob) = (token(program, "ann", "call,read").await, token(program, "bob", "call,read").await);
    let (client, foreign) = (bearer(program.url(), &ann), bearer(program.url(), &bob));
    // The gate never opens: what is found still runs.
    let gate = program.setup.folder().join("gate");
    let arguments = json!({"seconds": 0, "text": "lost", "gate": gate});
    let meta = json!({"durable-mcp/idempotencyKey": "order-17", "durable-mcp/wait": 0});
    let lost = id_of(&client.ask(json!({"name": "slow", "arguments": arguments, "_meta": meta})).await);
    let done = id_of(&client.call("append", json!({"text": "done"})).await);

    // The API, by key, by tool and by time; to nobody else.
    for query in ["key=order-17", "tool=slow", "state=leased", &format!("since={before}&tool=slow&key=order-17")] {
        assert_eq!(ids(&listed(program, &ann, query).await), [lost.as_str()], "{query}");
        assert_eq!(ids(&listed(program, &bob, query).await), [""; 0], "{query}");
    }
    assert_eq!(ids(&listed(program, &ann, &format!("since={before}")).await), [done.as_str(), lost.as_str()]);
    assert_eq!(ids(&listed(program, &ann, &format!("until={before}")).await), [""; 0]);
    // The command line.
    for filter in [["--key", "order-17"], ["--tool", "slow"], ["--state", "leased"]] {
        let more = ["executions", "list", "--json", "--since", "1h", filter[0], filter[1]];
        let ran = program.setup.cli(&more).await;
        let rows: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(ids(&rows), [lost.as_str()], "{filter:?}: {}", ran.stderr);
    }
    // The tools, and the key itself.
    for tool in ["durable_list", "durable_result"] {
        let words = client.call(tool, json!({})).await;
        let line = text(&words).lines().find(|line| line.contains(&lost)).unwrap_or_else(|| panic!("{words}"));
        // By tool, time and key.
        assert!(line.contains("  slow  ") && line.contains("Z  ") && line.ends_with("order-17"), "{line}");
        assert!(!text(&words).contains(&done), "{words}");
        let none = foreign.call(tool, json!({})).await;
        assert!(!text(&none).contains(&lost), "{none}");
    }
    let again = json!({"name": "slow", "arguments": {"seconds": 0, "text": "lost", "gate": gate},
        "_meta": {"durable-mcp/idempotencyKey": "order-17", "durable-mcp/wait": 0}});
    let again = client.ask(again).await;
    assert_eq!((id_of(&again), &execution(&again)["attached"]), (lost.clone(), &json!(true)));

    // A task whose time is over is stopped, as its policy says, and marked.
    let tasks = Modern::new(program.url()).bearer(&ann);
    let task = tasks.task("slow_structured", json!({"seconds": 600, "n": 1, "text": "stale"})).await;
    assert_eq!((&task["resultType"], &task["ttlMs"]), (&json!("task"), &json!(700)), "{task}");
    gap(Duration::from_millis(700)).await;
    let id = task["taskId"].as_str().unwrap();
    scene.wait_for_state(id, "cancelled").await;
    support::eventually("the tool is told", DEADLINE, || scene.ledger.cancels("stale") == 1).await;
    let last = program.events(id).await.pop().unwrap();
    assert_eq!((&last["type"], last["by"]["reason"].as_str().is_some()), (&json!("cancelled"), true), "{last}");
    assert_eq!(ids(&listed(program, &ann, "state=cancelled").await), [id]);
    std::fs::write(gate, "").unwrap();
    scene.wait_for_state(&lost, "completed").await;
    program.check_store().await;
}

// A49: who ran which tool with which arguments?
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_auditor_finds_who_ran_which_tool_with_which_arguments() {
    let scene = Scene::start("[auth]\nmode = \"token\"\n", "").await;
    let program = &scene.program;
    let begun = jiff::Timestamp::now();
    let mut middle = begun;
    for (round, principal) in ["ann", "bob", "eve"].into_iter().enumerate() {
        let token = token(program, principal, "call,read").await;
        let client = bearer(program.url(), &token);
        let own = format!("{principal}-1");
        assert_eq!(execution(&client.call("append", json!({"text": own})).await)["state"], "completed");
        let found = client.call("lookup", json!({"text": own})).await;
        assert_eq!(execution(&found)["state"], "completed", "{found}");
        // One that ends with the tool's own error.
        assert_eq!(client.call("append", json!({"text": round})).await["result"]["isError"], true);
        if round == 1 {
            gap(Duration::from_millis(5)).await;
            middle = jiff::Timestamp::now();
            gap(Duration::from_millis(5)).await;
        }
    }
    let export = async |filter: &[&str]| -> Vec<Value> {
        let ran = program.setup.cli(&[&["executions", "export"], filter].concat()).await;
        assert!(ran.status.success(), "{}", ran.stderr);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = export(&[]).await;
    assert_eq!(all.len(), 9, "{all:?}");
    for (number, row) in all.iter().enumerate() {
        assert!(row["principal"].is_string() && row["tool"].is_string(), "{row}");
        assert_ne!(row["arguments"]["text"], Value::Null, "{number}: {row}");
        assert_eq!(row["events"].as_array().map(Vec::len), Some(3), "{row}");
    }
    let whole = |row: &Value| row.to_string();
    for principal in ["ann", "bob", "eve"] {
        let own = export(&["--principal", principal]).await;
        assert_eq!(own.len(), 3, "{own:?}");
        assert!(own.iter().all(|row| row["principal"] == principal), "{own:?}");
        let marked = own.iter().filter(|row| whole(row).contains(&format!("{principal}-1"))).count();
        assert_eq!(marked, 2, "{own:?}");
    }
    let (begun, middle) = (begun.to_string(), middle.to_string());
    for (filter, number) in [
        (vec!["--tool", "append"], 6),
        (vec!["--tool", "lookup"], 3),
        (vec!["--tool", "lookup", "--principal", "bob"], 1),
        (vec!["--state", "completed"], 9),
        (vec!["--state", "failed,unknown,cancelled"], 0),
        (vec!["--since", &begun, "--until", &middle], 6),
        (vec!["--since", &middle, "--tool", "append"], 2),
        (vec!["--principal", "nobody"], 0),
    ] {
        assert_eq!(export(&filter).await.len(), number, "{filter:?}");
    }
    // The same over HTTP, for a credential that may see everybody's.
    let auditor = token(program, "auditor", "read,operate").await;
    for (query, number) in [("principal=bob", 3), ("principal=bob&tool=append", 2), ("tool=lookup", 3)] {
        assert_eq!(listed(program, &auditor, query).await.len(), number, "{query}");
        let url = program.at(&format!("/api/v1/executions/export?{query}"));
        let request = Request::new("GET", &url).header("Authorization", &format!("Bearer {auditor}"));
        let response = request.exchange(&url).await;
        let lines = response.text().lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count();
        assert_eq!((response.status, lines), (200, number), "{query}: {}", response.text());
    }
    program.check_store().await;
}

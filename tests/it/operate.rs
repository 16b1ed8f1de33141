//! What operators order and watch, over HTTP and on the command line, against a real server: who may do what, repeats,
//! races, orders by filter, a retry that takes a key over, watchers that leave and return, exports, tools.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::on_every_store;
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Ran, Setup, server_table};
use crate::support::raw_http::{Connection, Request, Response};
use crate::support::servers::kit_stdio;
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually_async};

on_every_store! {
    orders_reach_a_store_with_and_without_a_running_process;
}

async fn token(setup: &Setup, more: &[&str]) -> String {
    let ran = setup.cli(&[&["token", "create", "--principal"], more].concat()).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

fn local_token(program: &Program) -> String {
    let file = program.setup.data_dir().join("servers").join(format!("127.0.0.1_{}.token", program.port()));
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

async fn get(program: &Program, path: &str, bearer: &str) -> Response {
    let url = program.at(path);
    with_bearer(Request::new("GET", &url), bearer).exchange(&url).await
}

async fn post(program: &Program, path: &str, (bearer, body): (&str, Value)) -> Response {
    let url = program.at(path);
    with_bearer(Request::post(&url, body.to_string()), bearer).exchange(&url).await
}

fn with_bearer(request: Request, bearer: &str) -> Request {
    match bearer {
        "" => request,
        bearer => request.header("Authorization", &format!("Bearer {bearer}")),
    }
}

/// Calls a tool and wants its execution's id only.
async fn begin(program: &Program, bearer: &str, (tool, arguments, key): (&str, Value, Option<&str>)) -> String {
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": {"durable-mcp/wait": 0}});
    if let Some(key) = key {
        params["_meta"]["durable-mcp/idempotencyKey"] = json!(key);
    }
    let request = Request::modern(program.url(), json!(1), "tools/call", params);
    let answer = with_bearer(request, bearer).exchange(program.url()).await.answer();
    let id = answer["result"]["_meta"]["durable-mcp/execution"]["id"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn sleeping(program: &Program, bearer: &str) -> String {
    begin(program, bearer, ("demo_sleep", json!({"seconds": 600}), None)).await
}

#[track_caller]
fn assert_code(response: &Response, status: u16, code: &str) {
    assert_eq!(response.status, status, "{response:?}");
    assert_eq!(response.answer()["code"], code, "{response:?}");
    assert!(response.answer()["next"].is_string(), "{response:?}");
}

#[track_caller]
fn assert_exit(ran: &Ran, exit: i32) {
    assert_eq!(ran.status.code(), Some(exit), "stdout: {}\nstderr: {}", ran.stdout, ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}

fn lines(ran: &Ran) -> Vec<Value> {
    assert!(ran.status.success(), "{}", ran.stderr);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn orders(id: &str) -> [(String, Value); 3] {
    let path = |verb: &str| format!("/api/v1/executions/{id}/{verb}");
    [
        (path("cancel"), json!({"reason": "why not"})),
        (path("retry"), json!({"reason": "why not"})),
        (path("resolve"), json!({"reason": "why not", "outcome": "failed"})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_needs_its_scope_and_a_foreign_execution_is_missing() {
    let setup = Setup::new("[auth]\nmode = \"token\"\n[namespaces.blue]\n").flag("--demo");
    let program = setup.serve_on(0).await;
    let ann = token(&setup, &["ann", "--scope", "call,read,cancel"]).await;
    let bob = token(&setup, &["bob", "--scope", "call,read,cancel"]).await;
    let caller = token(&setup, &["ann", "--scope", "call,read"]).await;
    let chief = token(&setup, &["eve", "--scope", "read,operate"]).await;
    let blue = token(&setup, &["eve", "--namespace", "blue", "--scope", "read,operate,cancel"]).await;
    let id = sleeping(&program, &ann).await;
    let before = setup.events(&id).await;

    let missing = "01a22950-c388-79b8-af05-916208103fdc";
    for (path, body) in orders(&id) {
        assert_code(&post(&program, &path, ("", body.clone())).await, 401, "unauthorized");
        assert_code(&post(&program, &path, (&caller, body.clone())).await, 403, "insufficient_scope");
        let foreign = post(&program, &path, (&blue, body.clone())).await;
        assert_code(&foreign, 404, "not_found");
        let gone = post(&program, &path.replace(&id, missing), (&chief, body.clone())).await;
        assert_eq!(gone.text(), foreign.text(), "foreign and missing look the same");
        let stranger = post(&program, &path, (&bob, body.clone())).await;
        match path.ends_with("cancel") {
            true => assert_code(&stranger, 404, "not_found"),
            false => assert_code(&stranger, 403, "insufficient_scope"),
        }
    }
    for path in ["", "/why", "/wait?wait_ms=1", "/events"] {
        let path = format!("/api/v1/executions/{id}{path}");
        assert_eq!(get(&program, &path, &bob).await.status, 404, "{path}");
        assert_eq!(get(&program, &path, &blue).await.status, 404, "{path}");
        assert_eq!(get(&program, &path, &chief).await.status, 200, "{path}");
    }
    for bearer in [&bob, &blue] {
        let events = get(&program, "/api/v1/events?from=2026-01-01T00:00:00Z", bearer).await.answer();
        assert_eq!(events["events"], json!([]), "events of others are not shown");
    }
    assert_eq!(setup.events(&id).await, before, "nothing of this changed anything");

    // The owner cancels its own; who operates orders the rest.
    let cancelled = post(&program, &orders(&id)[0].0, (&ann, json!({"reason": "  wrong input "}))).await.answer();
    assert_eq!((&cancelled["execution"]["state"], &cancelled["repeated"]), (&json!("cancelled"), &json!(false)));
    let again = post(&program, &orders(&id)[0].0, (&chief, json!({}))).await.answer();
    assert_eq!(again["repeated"], true, "{again}");
    let event = setup.events(&id).await.last().unwrap().clone();
    assert_eq!(event["by"], json!({"principal": "ann", "reason": "wrong input"}));
    let retried = post(&program, &orders(&id)[1].0, (&chief, json!({"reason": "after all"}))).await.answer();
    let new = retried["execution"]["id"].as_str().unwrap().to_owned();
    assert_eq!((&retried["execution"]["retry_of"], &retried["execution"]["principal"]), (&json!(id), &json!("ann")));
    assert_eq!(setup.events(&new).await[0]["by"], json!({"principal": "eve", "reason": "after all"}));
    let repeated = post(&program, &orders(&id)[1].0, (&chief, json!({"reason": "after all"}))).await.answer();
    assert_eq!((&repeated["execution"]["id"], &repeated["repeated"]), (&json!(new), &json!(true)));
    assert_code(&post(&program, &orders(&new)[1].0, (&chief, json!({"reason": "x"}))).await, 409, "not_permitted");
    assert_code(&post(&program, &orders(&new)[2].0, (&chief, orders(&new)[2].1.clone())).await, 409, "not_permitted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_read_strictly_and_without_authentication_an_order_needs_the_local_token() {
    let program = Setup::new("").flag("--demo").serve().await;
    let owner = local_token(&program);
    let id = sleeping(&program, "").await;
    for (path, body) in orders(&id) {
        assert_code(&post(&program, &path, ("", body)).await, 401, "local_token_needed");
    }
    assert_code(&post(&program, "/api/v1/executions/actions", ("", json!({}))).await, 401, "local_token_needed");
    let [(cancel, _), (retry, _), (resolve, _)] = orders(&id);
    for (path, body) in [
        (&retry, r#"{}"#),
        (&retry, r#"{"reason":" "}"#),
        (&retry, r#"{"reason":"x","reason":"y"}"#),
        (&retry, r#"{"reason":"x","more":1}"#),
        (&retry, r#"{"reason":"x""#),
        (&cancel, r#"[]"#),
        (&cancel, &format!(r#"{{"reason":{}1{}}}"#, "[".repeat(70), "]".repeat(70))),
        (&cancel, &format!(r#"{{"reason":"{}"}}"#, "x".repeat(1_001))),
        (&resolve, r#"{"reason":"x"}"#),
        (&resolve, r#"{"reason":"x","outcome":"maybe"}"#),
        (&resolve, r#"{"reason":"x","outcome":"failed","result":{}}"#),
        (&resolve, r#"{"reason":"x","outcome":"completed","result":{}}"#),
        (&resolve, r#"{"reason":"x","outcome":"completed","result":{"content":[]},"is_error":true}"#),
    ] {
        let url = program.at(path);
        let answer = with_bearer(Request::post(&url, body), &owner).exchange(&url).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(["invalid_body", "invalid_parameter"].contains(&answer.answer()["code"].as_str().unwrap()), "{body}");
    }
    let url = program.at(&cancel);
    let text = with_bearer(Request::post(&url, "{}").with("Content-Type", "text/plain"), &owner);
    assert_code(&text.exchange(&url).await, 415, "unsupported_media_type");
    for query in ["?nonsense=1", "?attempts_over=x", "?since=yesterday", "?recovered=maybe", "?key=a&key=b"] {
        for path in ["/api/v1/executions", "/api/v1/events", "/api/v1/executions/export"] {
            assert_eq!(get(&program, &format!("{path}{query}"), &owner).await.status, 400, "{path}{query}");
        }
    }
    for query in ["after=x", "wait_ms=60000", "limit=0", "from=soon"] {
        assert_eq!(get(&program, &format!("/api/v1/events?{query}"), &owner).await.status, 400, "{query}");
    }
    // An empty body is no reason, and a cancel needs none.
    let bare = with_bearer(Request::new("POST", &url).header("Content-Length", "0"), &owner).exchange(&url).await;
    assert_eq!(bare.answer()["execution"]["state"], "cancelled", "{bare:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_what_was_cancelled_takes_the_key_over() {
    let program = Setup::new("").flag("--demo").serve().await;
    let setup = program.setup.clone().env("DURABLE_MCP_URL", program.url());
    let call = ("demo_sleep", json!({"seconds": 1.5}), Some("release-1.4"));
    let id = begin(&program, "", call.clone()).await;
    assert_eq!(begin(&program, "", call.clone()).await, id);
    let short = &id[..30];
    let cancelled = setup.cli(&["executions", "cancel", short, "--json"]).await;
    assert_eq!(lines(&cancelled)[0]["state"], "cancelled");
    // The cancelled one still holds the key.
    assert_eq!(begin(&program, "", call.clone()).await, id);
    let why = setup.cli(&["executions", "why", short]).await;
    assert!(why.stdout.contains("operator cancelled it") && why.stdout.lines().count() == 5, "{}", why.stdout);
    assert_exit(&setup.cli(&["executions", "retry", short]).await, 2);
    let retried = lines(&setup.cli(&["executions", "retry", short, "--reason", "needed", "--json"]).await);
    let new = retried[0]["retried_as"].as_str().unwrap().to_owned();
    assert_eq!(begin(&program, "", call.clone()).await, new, "the next call with the key joins the new execution");
    let waited = setup.cli(&["executions", "wait", &new, "--timeout", "20s"]).await;
    assert_exit(&waited, 0);
    assert_eq!(waited.stdout, format!("{new}  completed\n"));
    assert_eq!(begin(&program, "", call).await, new);
    let rows = program.executions().await;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["key"] == "release-1.4" && row["effect_key"] == json!(id)), "{rows:?}");
    assert_exit(&setup.cli(&["executions", "retry", &new, "--reason", "again"]).await, 6);
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_is_explained_and_resolved_or_run_once_more() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--era", "both", "--ledger", ledger.path()]);
    let program = setup.config(&server_table("kit", &kit, "")).serve().await;
    let setup = program.setup.clone().env("DURABLE_MCP_URL", program.url());
    let owner = local_token(&program);
    let mut ids = Vec::new();
    for n in 0..3 {
        let id = begin(&program, "", ("crash_after_write", json!({"text": format!("n{n}")}), None)).await;
        assert_exit(&setup.cli(&["executions", "wait", &id]).await, 9);
        ids.push(id);
    }
    let by_http = get(&program, &format!("/api/v1/executions/{}/why", ids[0]), &owner).await;
    let by_cli = setup.cli(&["executions", "why", &ids[0], "--json"]).await.stdout;
    let store = program.setup.store_url();
    let by_store = program.setup.cli(&["executions", "why", &ids[0], "--json", "--store", &store]).await.stdout;
    assert_eq!((by_http.text() + "\n", &by_cli), (by_cli.clone(), &by_store), "one text everywhere");
    let why: Value = serde_json::from_str(&by_cli).unwrap();
    assert!(why["lost"].as_str().unwrap().contains("child_died"), "{why}");
    assert!(why["next"].as_str().unwrap().contains("executions resolve"), "{why}");

    assert_exit(&setup.cli(&["executions", "cancel", &ids[0]]).await, 6);
    let resolve = ["executions", "resolve", &ids[0], "--reason", "it is in the ledger"];
    assert_exit(&setup.cli(&resolve).await, 2);
    let result = r#"{"content":[{"type":"text","text":"seen"}], "n": 1.0}"#;
    let completed = [&resolve[..], &["--completed", "--result", result]].concat();
    assert_exit(&setup.cli(&completed).await, 0);
    assert_exit(&setup.cli(&completed).await, 0);
    let stored = setup.cli(&["executions", "result", &ids[0]]).await;
    assert_eq!(stored.stdout, format!("{result}\n"), "byte for byte");
    assert_exit(&setup.cli(&["executions", "resolve", &ids[1], "--failed", "--reason", "not there"]).await, 0);
    assert_exit(&setup.cli(&["executions", "wait", &ids[1]]).await, 5);
    assert_exit(&setup.cli(&["executions", "retry", &ids[2], "--reason", "once more"]).await, 0);
    let end = async || program.events(&ids[2]).await.iter().filter(|event| event["type"] == "lost").count() == 2;
    eventually_async("the second attempt is lost too", DEADLINE, end).await;
    assert_eq!(ledger.starts("n2").len(), 2);
    let why = setup.cli(&["executions", "why", &ids[2]]).await.stdout;
    assert!(why.contains("It was started twice") && why.contains("once more"), "{why}");
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_by_filter_is_shown_first_and_done_for_exactly_what_was_shown() {
    let program = Setup::new("").flag("--demo").serve().await;
    let setup = program.setup.clone().env("DURABLE_MCP_URL", program.url());
    let owner = local_token(&program);
    let ask = async |body: Value| post(&program, "/api/v1/executions/actions", (&owner, body)).await;
    for _ in 0..5 {
        sleeping(&program, "").await;
    }
    begin(&program, "", ("demo_echo", json!({"message": "x"}), None)).await;
    let filter = json!({"tool": "demo_sleep", "state": ["leased", "completed"]});
    let preview = ask(json!({"action": "cancel", "filter": filter, "preview": true})).await.answer();
    assert_eq!((&preview["matching"], preview["ids"].as_array().unwrap().len()), (&json!(5), 5));
    let order = |expected: Value| json!({"action": "cancel", "filter": filter, "expected": expected, "reason": "all"});
    assert_code(&ask(order(json!(4))).await, 409, "matching_changed");
    assert_code(&ask(order(Value::Null)).await, 400, "invalid_parameter");
    assert_code(&ask(json!({"action": "retry", "filter": filter, "expected": 0})).await, 400, "invalid_parameter");
    assert_code(&ask(json!({"action": "resolve", "filter": filter, "preview": true})).await, 400, "invalid_parameter");
    assert_code(&ask(json!({"action": "cancel", "filter": {"toll": "x"}})).await, 400, "invalid_body");
    let done = ask(order(json!(5))).await.answer();
    let outcomes = done["outcomes"].as_array().unwrap();
    assert!(outcomes.len() == 5 && outcomes.iter().all(|one| one["ok"] == true), "{done}");

    for _ in 0..3 {
        sleeping(&program, "").await;
    }
    let cancel = ["executions", "cancel", "--tool", "demo_sleep", "--json"];
    let shown = setup.cli(&cancel).await;
    assert_exit(&shown, 2);
    assert!(shown.stderr.contains("cancel 3 executions") && shown.stderr.contains("--yes"), "{}", shown.stderr);
    assert_eq!(program.executions().await.iter().filter(|row| row["state"] == "leased").count(), 3);
    assert_eq!(lines(&setup.cli(&[&cancel[..], &["--yes"]].concat()).await).len(), 3);
    assert_exit(&setup.cli(&[&cancel[..], &["--yes"]].concat()).await, 0);
    assert_exit(&setup.cli(&["executions", "cancel"]).await, 2);
    let rerun = ["executions", "retry", "--state", "cancelled", "--yes", "--reason", "again", "--json"];
    assert_eq!(lines(&setup.cli(&rerun).await).len(), 8);
    // A second time everything was done already: the keys are those of the new executions.
    assert_eq!(lines(&setup.cli(&rerun).await).len(), 8);
    assert_eq!(program.executions().await.len(), 17);
}

// A34: nobody but the client can stop a long call. The store without its server: the process that runs the call notices, and a dead server's calls can be ordered about.
async fn orders_reach_a_store_with_and_without_a_running_process(on: On) {
    let mut program = Setup::new("").flag("--demo").on(on).await.serve().await;
    let (setup, store) = (program.setup.clone(), program.setup.store_url());
    let on_store = async |arguments: &[&str]| setup.cli(&[arguments, &["--store", &store]].concat()).await;
    let id = sleeping(&program, "").await;
    let path = format!("/api/v1/executions/{id}/wait?wait_ms=20000");
    let cancel = ["executions", "cancel", &id, "--reason", "by file"];
    let (waited, cancelled) = tokio::join!(get(&program, &path, ""), on_store(&cancel));
    assert_exit(&cancelled, 0);
    assert_eq!(waited.answer()["state"], "cancelled");
    // The slot is free again only when the work was told to stop.
    let retried = lines(&on_store(&["executions", "retry", &id, "--reason", "again", "--json"]).await);
    let new = retried[0]["retried_as"].as_str().unwrap().to_owned();
    let leased =
        async || program.executions().await.iter().any(|row| row["id"] == json!(new) && row["state"] == "leased");
    eventually_async("the server runs what was ordered beside it", DEADLINE, leased).await;
    program.kill_9().await;
    let ran = on_store(&["executions", "cancel", "--state", "leased", "--yes", "--json"]).await;
    assert_eq!(lines(&ran)[0]["id"], json!(new));
    assert_exit(&on_store(&["executions", "wait", &new]).await, 1);
    let tail = on_store(&["executions", "tail", "--json"]).await;
    let types: Vec<String> = lines(&tail).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(types, ["submitted", "leased", "cancelled", "submitted", "leased", "cancelled"]);
    setup.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_races_with_a_result_leaves_one_end() {
    let program = Setup::new("").flag("--demo").serve().await;
    let owner = local_token(&program);
    let race = async |n: u64| {
        let id = begin(&program, "", ("demo_sleep", json!({"seconds": 0.05, "n": n}), None)).await;
        let path = format!("/api/v1/executions/{id}/cancel");
        // Spread around the end of the sleep.
        tokio::time::timeout(Duration::from_millis(20 + n * 3), std::future::pending::<()>()).await.unwrap_err();
        (id, post(&program, &path, (&owner, json!({}))).await)
    };
    let mut states = BTreeMap::new();
    for (id, answer) in join_all((0..24).map(race)).await {
        let waited = get(&program, &format!("/api/v1/executions/{id}/wait"), &owner).await.answer();
        let state = waited["state"].as_str().unwrap().to_owned();
        match state.as_str() {
            "cancelled" => assert_eq!(answer.status, 200, "{answer:?}"),
            "completed" => assert_code(&answer, 409, "not_permitted"),
            other => panic!("{other}"),
        }
        let ends = ["completed", "cancelled", "failed"];
        let events = program.events(&id).await;
        assert_eq!(events.iter().filter(|event| ends.contains(&event["type"].as_str().unwrap())).count(), 1);
        *states.entry(state).or_insert(0) += 1;
    }
    assert_eq!(states.values().sum::<i32>(), 24);
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_with_the_execution_or_with_the_time() {
    let program = Setup::new("").flag("--demo").serve().await;
    let setup = program.setup.clone().env("DURABLE_MCP_URL", program.url());
    let long = sleeping(&program, "").await;
    let early = get(&program, &format!("/api/v1/executions/{long}/wait?wait_ms=50"), "").await.answer();
    assert_eq!(early["state"], "leased");
    let running = setup.cli(&["executions", "wait", &long, "--timeout", "200ms", "--json"]).await;
    assert_exit(&running, 8);
    assert_eq!(serde_json::from_str::<Value>(&running.stdout).unwrap()["id"], json!(long));
    assert_eq!(running.stderr, "", "with --json the row tells, and there is no terminal to show progress at");
    let short = begin(&program, "", ("demo_sleep", json!({"seconds": 0.4}), None)).await;
    assert_exit(&setup.cli(&["executions", "wait", &short]).await, 0);
    let refused = begin(&program, "", ("demo_sleep", json!({}), None)).await;
    assert_exit(&setup.cli(&["executions", "wait", &refused]).await, 5);
    assert_exit(&setup.cli(&["executions", "wait", "ffff"]).await, 3);
    assert_eq!(get(&program, &format!("/api/v1/executions/{long}/wait?wait_ms=55001"), "").await.status, 400);
}

/// Every event of every execution, as the logs have them.
async fn all_events(program: &Program) -> BTreeMap<(String, i64), usize> {
    let mut all = BTreeMap::new();
    for row in program.executions().await {
        let id = row["id"].as_str().unwrap();
        for event in program.events(id).await {
            all.insert((id.to_owned(), event["seq"].as_i64().unwrap()), 1);
        }
    }
    all
}

fn note(seen: &mut BTreeMap<(String, i64), usize>, event: &Value) {
    let id = event["execution"].as_str().unwrap_or_else(|| panic!("{event}")).to_owned();
    *seen.entry((id, event["seq"].as_i64().unwrap())).or_insert(0) += 1;
}

/// Opens the stream after `last`.
async fn watch(program: &Program, last: &str) -> Connection {
    let url = program.at("/api/v1/events?from=2026-01-01T00:00:00Z");
    let request = Request::new("GET", &url).header("Accept", "text/event-stream");
    let request = if last.is_empty() { request } else { request.header("Last-Event-ID", last) };
    let mut connection = Connection::open(&url).await;
    connection.send(&request.bytes()).await;
    let head = connection.response_head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    connection
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_that_leaves_and_returns_misses_nothing_and_sees_nothing_twice() {
    let program = Setup::new("").flag("--demo").serve().await;
    let load = async {
        for round in 0..12 {
            let calls = (0..8).map(|n| {
                let arguments = match n {
                    0..6 => ("demo_echo", json!({"message": format!("{round} {n}")}), None),
                    _ => ("demo_sleep", json!({"seconds": 0.2, "n": round * 8 + n}), None),
                };
                begin(&program, "", arguments)
            });
            join_all(calls).await;
        }
    };
    let watcher = async |stay: usize| {
        let (mut seen, mut last) = (BTreeMap::new(), String::new());
        // The slow ones end after the load; three events for each of the 96 calls.
        while seen.values().sum::<usize>() < 288 {
            let mut connection = watch(&program, &last).await;
            for _ in 0..stay {
                let Some(event) = connection.event().await else { break };
                last = event.id.unwrap_or(last);
                if !event.data.is_empty() {
                    note(&mut seen, &serde_json::from_str(&event.data).unwrap());
                }
                if seen.values().sum::<usize>() >= 288 {
                    break;
                }
            }
            connection.cut();
        }
        seen
    };
    let ((), one, few, many) = tokio::join!(load, watcher(9), watcher(40), watcher(1_000));
    let all = all_events(&program).await;
    assert_eq!(all.len(), 288);
    for seen in [one, few, many] {
        assert_eq!(seen, all);
    }
    // And again from the beginning in pages, to its end.
    let (mut seen, mut after) = (BTreeMap::new(), String::new());
    loop {
        let query = if after.is_empty() { "from=2026-01-01T00:00:00Z".to_owned() } else { format!("after={after}") };
        let page = get(&program, &format!("/api/v1/events?limit=31&{query}"), "").await.answer();
        for event in page["events"].as_array().unwrap() {
            note(&mut seen, event);
        }
        after = page["next_after"].as_str().unwrap().to_owned();
        if page["more"] == false {
            break;
        }
    }
    assert_eq!(seen, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_makes_nobody_wait_and_a_draining_server_ends_the_stream() {
    let mut program = Setup::new("").flag("--demo").serve().await;
    // It takes the head and then nothing.
    let mut slow = watch(&program, "").await;
    let calls = (0..64).map(|n| begin(&program, "", ("demo_echo", json!({"message": "x".repeat(n)}), None)));
    join_all(calls).await;
    assert_eq!(program.executions().await.len(), 64);
    let mut brisk = watch(&program, "").await;
    for _ in 0..192 {
        assert!(brisk.event().await.is_some_and(|event| !event.data.is_empty()));
    }
    let (status, ()) = tokio::join!(program.sigterm(), slow.ended(DEADLINE));
    assert!(status.success());
    brisk.ended(DEADLINE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_goes_on_over_a_restart_of_the_server() {
    let mut program = Setup::new("").flag("--demo").serve().await;
    let setup = program.setup.clone().env("DURABLE_MCP_URL", program.url());
    let tail = setup.start(&["executions", "tail", "--follow", "--json", "--from", "1h"]);
    for n in 0..20 {
        begin(&program, "", ("demo_echo", json!({"message": n.to_string()}), None)).await;
    }
    begin(&program, "", ("demo_sleep", json!({"seconds": 0.3}), None)).await;
    sleeping(&program, "").await;
    eventually_async("the tail has begun", DEADLINE, async || !tail.stdout().is_empty()).await;
    program.kill_9().await;
    eventually_async("the tail noticed", DEADLINE, async || tail.stderr().contains("does not answer")).await;
    let program = program.restart().await;
    for n in 20..40 {
        begin(&program, "", ("demo_echo", json!({"message": n.to_string()}), None)).await;
    }
    let settled = async || {
        let rows = program.executions().await;
        // What was running when the server died runs again.
        rows.iter().filter(|row| row["state"] == "completed").count() == 41
            && rows.iter().any(|row| row["attempt"] == 2)
    };
    eventually_async("everything settled", DEADLINE, settled).await;
    let all = all_events(&program).await;
    let whole = async || {
        let mut seen = BTreeMap::new();
        let text = tail.stdout();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .for_each(|event: Value| note(&mut seen, &event));
        assert!(seen.values().all(|count| *count == 1), "none twice");
        seen == all
    };
    eventually_async("the tail has every event", DEADLINE, whole).await;
    assert!(tail.stderr().contains("answers again"), "{}", tail.stderr());
    // For people, and for a script that goes on from a cursor.
    let first = tail.stdout().lines().next().unwrap().to_owned();
    let cursor = serde_json::from_str::<Value>(&first).unwrap()["cursor"].as_str().unwrap().to_owned();
    let rest = setup.cli(&["executions", "tail", "--json", "--after", &cursor]).await;
    assert_eq!(lines(&rest).len(), all.len() - 1);
    let shown = setup.cli(&["executions", "tail", "--tool", "demo_sleep"]).await;
    assert!(shown.stdout.contains("demo/demo_sleep") && !shown.stdout.contains("demo_echo"), "{}", shown.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_a_line_for_each_listed_execution_with_everything() {
    let program = Setup::new("[auth]\nmode = \"none\"\n").flag("--demo").serve().await;
    let setup = program.setup.clone().env("DURABLE_MCP_URL", program.url());
    for n in 0..230 {
        begin(&program, "", ("demo_echo", json!({"message": n}), None)).await;
    }
    let open = begin(&program, "", ("demo_echo", json!({"message": "two\nlines"}), None)).await;
    assert_exit(&setup.cli(&["executions", "wait", &open]).await, 0);
    let done = async || program.executions().await.iter().all(|row| row["ended_at"].is_string());
    eventually_async("all ended", DEADLINE, done).await;
    let listed = setup.cli(&["executions", "list", "--json"]).await;
    let exported = setup.cli(&["executions", "export"]).await;
    assert_exit(&exported, 0);
    assert_eq!(exported.stdout.lines().count(), listed.stdout.lines().count());
    assert_eq!(exported.stderr, "", "progress is for terminals");
    let store = program.setup.store_url();
    let from_store = program.setup.cli(&["executions", "export", "--store", &store]).await;
    assert!(from_store.stdout == exported.stdout, "one shape from the server and from its store");
    let first: Value = serde_json::from_str(exported.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&first["id"], &first["arguments"]["message"]), (&json!(open), &json!("two\nlines")));
    assert_eq!(first["events"].as_array().unwrap().len(), 3);
    assert_eq!(first["result"]["content"][0]["text"], "two\nlines");
    assert_eq!(get(&program, "/api/v1/executions/export", "").await.status, 401, "payloads need the local token");
    let filtered = setup.cli(&["executions", "export", "--state", "failed,cancelled"]).await;
    assert_eq!(filtered.stdout, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_told_with_who_said_what_by_a_server_and_without_one() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--era", "both", "--ledger", ledger.path()]);
    let more = "wait = \"7s\"\n[servers.kit.tools.write]\ndelivery = \"at_least_once\"\n\
                [defaults.timeout]\ntotal = \"2h\"\n[tools.upper]\ncommand = [\"tr\", \"a-z\", \"A-Z\"]";
    let mut program = setup.config(&server_table("kit", &kit, more)).serve().await;
    let on_server = program.setup.clone().env("DURABLE_MCP_URL", program.url());
    let offered = async || lines(&on_server.cli(&["tools", "list", "--json"]).await).len() > 1;
    eventually_async("the server offers its tools", DEADLINE, offered).await;
    let tools = lines(&on_server.cli(&["tools", "list", "--json"]).await);
    let known = async || lines(&program.setup.cli(&["tools", "list", "--json"]).await).len() == tools.len();
    eventually_async("they are known without it", DEADLINE, known).await;
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["policy"]["delivery"]["source"].is_string() && tool.get("definition").is_none(), "{tool}");
        assert_eq!(tool["policy"]["timeout.total"], json!({"value_ms": 7_200_000, "source": "defaults"}));
        let mut there: Value = lines(&on_server.cli(&["tools", "show", name, "--json"]).await).remove(0);
        let mut here: Value = lines(&program.setup.cli(&["tools", "show", name, "--json"]).await).remove(0);
        assert_eq!((&there["upstream_state"], &here["upstream_state"]), (&json!("up"), &json!("known")));
        (there["upstream_state"], here["upstream_state"]) = (Value::Null, Value::Null);
        assert_eq!(there, here);
        assert!(there["definition"]["inputSchema"].is_object(), "{there}");
        let wait = if tool["upstream"] == "kit" { json!([7_000, "server"]) } else { json!([50_000, "built_in"]) };
        assert_eq!(json!([tool["policy"]["wait"]["value_ms"], tool["policy"]["wait"]["source"]]), wait);
    }
    let shown = on_server.cli(&["tools", "show", "upper"]).await;
    assert!(shown.stdout.contains("timeout.total") && shown.stdout.contains("2h  "), "{}", shown.stdout);
    assert_exit(&on_server.cli(&["tools", "show", "nobody"]).await, 3);
    program.kill_9().await;
    assert_exit(&program.setup.cli(&["tools", "show", "nobody"]).await, 3);
    assert!(program.setup.cli(&["tools", "list"]).await.stdout.starts_with("NAME "));
}

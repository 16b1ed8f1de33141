//! Processes with some of the roles only: who lists, who runs, who settles; calls that start at one process, run at a second
//! one and are cancelled at a third; hosts that run only what they were given; draining; calls that nobody runs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::crash_scene::{Call, Told, call, call_with, pass};
use crate::on_every_store;
use crate::replicas_scene::{Fleet, offers, tools, worker_of, workers};
use crate::support::process_tree::descendants;
use crate::support::program::{Program, server_table};
use crate::support::raw_http::Request;
use crate::support::servers::kit_stdio;
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually, eventually_async};

on_every_store! {
    a_call_starts_at_one_process_runs_at_another_and_is_cancelled_at_a_third;
    a_host_runs_only_what_it_was_given;
    a_call_that_no_living_worker_runs_waits_its_time_and_says_so;
    a_local_worker_is_drained_from_another_process_and_finishes_what_it_has;
}

/// True when the run with this text happened in a child of that process.
fn ran_below(fleet: &Fleet, text: &str, program: &Program) -> bool {
    let pids = descendants(program.process.pid());
    fleet.ledger.starts(text).iter().all(|start| pids.contains(&start.pid)) && fleet.ledger.starts(text).len() == 1
}

async fn get(program: &Program, path: &str) -> (u16, Value) {
    let url = program.at(path);
    let response = Request::new("GET", &url).exchange(&url).await;
    (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
}

async fn a_call_starts_at_one_process_runs_at_another_and_is_cancelled_at_a_third(on: On) {
    let fleet = Fleet::new(on, "", "").await;
    let a = fleet.start("mcp").await;
    assert!(descendants(a.process.pid()).is_empty(), "a process without the role `worker` starts no child");
    let worker = fleet.start("worker").await;
    let scheduler = fleet.start("scheduler").await;
    let (b, c) = (fleet.start("mcp").await, fleet.start("mcp,scheduler").await);
    offers(&a, "slow").await;

    // Work that came to A runs below the one worker, soon after it came.
    let answer = call(a.url(), &Call::slow("slow", "one", 0.01)).await.answer();
    assert_eq!(answer.state, "completed");
    assert!(ran_below(&fleet, "one", &worker));
    assert!(descendants(a.process.pid()).is_empty());

    // Started on A, watched on B, cancelled on C.
    let long = Call::slow("slow", "long", 60.0);
    let (url, asked) = (a.url().to_owned(), long.clone());
    let asking = tokio::spawn(async move { call(&url, &asked).await });
    fleet.ledger.wait_for_start("long", DEADLINE).await;
    let id = a.executions().await[0]["id"].as_str().unwrap().to_owned();
    let watching = b.setup.start(&["executions", "tail", "--follow", "--tool", "slow", "--url", &b.at("")]);
    watching.line_with(&id).await;
    let waiting = b.setup.start(&["executions", "wait", &id, "--json", "--url", &b.at("")]);
    let ran = c.setup.cli(&["executions", "cancel", &id, "--reason", "enough", "--url", &c.at("")]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    eventually("the tool is told", DEADLINE, || fleet.ledger.cancels("long") == 1).await;
    assert_eq!(asking.await.unwrap().answer().state, "cancelled");
    watching.line_with("cancelled").await;
    waiting.line_with("\"cancelled\"").await;

    // Nobody but those with the role has the endpoint; everybody has health.
    for (program, status) in [(&a, 200), (&worker, 404), (&scheduler, 404)] {
        let url = program.at("/mcp");
        let asked = Request::modern(&url, json!(1), "tools/list", json!({})).exchange(&url).await;
        assert_eq!(asked.status, status, "{}", asked.text());
        assert_eq!(get(program, "/healthz").await.0, 200);
        assert_eq!(get(program, "/readyz").await.0, 200);
    }
    let rows = workers(&b).await;
    assert_eq!(rows.len(), 5, "{rows:?}");
    let row = worker_of(&c, &worker).await;
    assert_eq!((&row["roles"], &row["upstreams"]), (&json!(["worker"]), &json!(["kit"])), "{row}");
    assert_eq!((&row["slots"], &row["state"]), (&json!(64), &json!("running")), "{row}");
    assert!(row["last_seen_at"].is_string(), "{row}");
    let row = worker_of(&c, &a).await;
    assert_eq!((&row["roles"], &row["upstreams"], &row["slots"]), (&json!(["mcp"]), &json!([]), &json!(0)), "{row}");
    fleet.setup.check_store().await;
}

async fn a_host_runs_only_what_it_was_given(on: On) {
    let fleet = Fleet::new(on, "", "").await;
    let other =
        server_table("other", &kit_stdio(&["--ledger", fleet.ledger.path()]), "").replace("prefix = \"\"\n", "");
    let kit = server_table("kit", &kit_stdio(&["--ledger", fleet.ledger.path()]), "").replace("prefix = \"\"\n", "");
    let setup = fleet.setup.clone().config(&format!("{kit}\n{other}"));
    let host = |runs: &str| setup.clone().env("DURABLE_MCP_WORKER_RUNS", runs);
    let (w, v) = (host("kit").serve().await, host("other").serve().await);
    let a = setup.clone().env("DURABLE_MCP_ROLES", "mcp").serve().await;
    for program in [&w, &v, &a] {
        offers(program, "kit__slow").await;
        offers(program, "other__slow").await;
    }
    let mut n = 0;
    for asked in [&w, &v, &a] {
        for (server, host) in [("kit__slow", &w), ("other__slow", &v)] {
            n += 1;
            let text = format!("call-{n}");
            let wanted = Call { tool: server, ..Call::slow("slow", &text, 0.01) };
            assert_eq!(call(asked.url(), &wanted).await.answer().state, "completed");
            assert!(ran_below(&fleet, &text, host), "{text} of {server}: {:?}", fleet.ledger.starts(&text));
        }
    }
    let refused = setup.clone().env("DURABLE_MCP_WORKER_RUNS", "kitt").cli(&["config", "check"]).await;
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("kitt"), "{}", refused.stderr);
}

async fn a_call_that_no_living_worker_runs_waits_its_time_and_says_so(on: On) {
    let fleet = Fleet::new(on, "", "queue_timeout = \"400ms\"").await;
    let a = fleet.start("mcp").await;
    let scheduler = fleet.start("scheduler").await;
    let unknown = call(a.url(), &Call::slow("slow", "early", 0.01)).await;
    assert!(matches!(&unknown, Told::Error(-32602, words) if words.contains("unknown tool")), "{unknown:?}");
    let mut worker = fleet.start("worker").await;
    offers(&a, "slow").await;
    assert!(worker.sigterm().await.success());
    let refused = call(a.url(), &Call::slow("slow", "lonely", 0.01)).await;
    assert!(matches!(&refused, Told::Error(-31429, words) if words.contains("no living worker runs")), "{refused:?}");
    assert!(fleet.ledger.starts("lonely").is_empty());
    // One that comes in time takes it.
    let wanted = Call::slow("slow", "patient", 0.01);
    let waits = call_with(a.url(), &wanted, json!({"durable-mcp/wait": 0, "durable-mcp/idempotencyKey": wanted.key}));
    let handle = waits.await.answer();
    assert_eq!(handle.state, "ready");
    let _worker = fleet.start("worker").await;
    let ended = async || {
        let rows = scheduler.executions().await;
        let row = rows.iter().find(|row| row["id"] == *handle.id).unwrap().clone();
        ["completed", "failed"].contains(&row["state"].as_str().unwrap())
    };
    eventually_async("it ends either way", DEADLINE, ended).await;
    fleet.setup.check_store().await;
}

async fn a_local_worker_is_drained_from_another_process_and_finishes_what_it_has(on: On) {
    let fleet = Fleet::new(on, "", "").await;
    let a = fleet.start("mcp,scheduler").await;
    let w = fleet.start("worker").await;
    offers(&a, "slow").await;
    let running = Call::slow("slow", "running", 1.5);
    let (url, asked) = (a.url().to_owned(), running.clone());
    let asking = tokio::spawn(async move { call(&url, &asked).await });
    fleet.ledger.wait_for_start("running", DEADLINE).await;
    let id = worker_of(&a, &w).await["id"].as_str().unwrap().to_owned();
    let ran = a.setup.cli(&["workers", "drain", &id, "--url", &a.at("")]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    assert_eq!(worker_of(&a, &w).await["state"], "draining");
    // It hears of it within a second, and this only asks a process that has read its rows since.
    pass(Duration::from_millis(1_500)).await;
    let v = fleet.start("worker").await;
    for n in 0..8 {
        let text = format!("after-{n}");
        assert_eq!(call(a.url(), &Call::slow("slow", &text, 0.01)).await.answer().state, "completed");
        assert!(ran_below(&fleet, &text, &v), "{text} ran at the drained worker");
    }
    assert_eq!(asking.await.unwrap().answer().state, "completed");
    assert!(tools(&a).await.iter().any(|tool| tool == "slow"));
}

//! A result of thirty megabytes on its way from its server to its caller: how much more memory the program ever had than
//! for a small call, each way in a process of its own. The figures are in docs/performance.md.

use serde_json::{Value, json};

use crate::cases_scene::{Caller, Scene, kit};
use crate::support::DEADLINE;
use crate::support::eventually;
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup, server_table};
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::kit_http;
use crate::support::stores::On;

const BYTES: usize = 30_000_000;
/// By how much the peak may grow, in hundredths of the result: it is there once, beside what a store has whatever it stores.
const ONCE: usize = 170;
const LIMITS: &str = "[limits]\nresult_bytes = \"64MiB\"\n";

/// The most memory that the process ever had, in bytes.
fn peak(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1_024
}

/// By how much the peak may grow, in hundredths of the result.
fn check(what: &str, grown: usize, hundredths: usize) {
    let of_result = grown * 100 / BYTES;
    println!("{what}: {grown} bytes, {of_result} hundredths of the result");
    assert!(of_result <= hundredths, "{what}: {grown} bytes more, {of_result} hundredths of the result");
}

/// Calls over HTTP, small and then large; the growth of the peak, and how long the answer's text is. The large one has
/// a key, and runs once however often this is done.
async fn over_http(program: &Program) -> (usize, usize) {
    let caller = Caller::modern(program.url());
    for text in ["a", "b", "c"] {
        caller.call("echo", json!({"text": text})).await;
    }
    let before = peak(program.pid());
    let meta = json!({"durable-mcp/idempotencyKey": "big"});
    let params = json!({"name": "big", "arguments": {"size": BYTES}, "_meta": meta});
    let response = caller.request(json!(1), params).exchange(caller.url()).await;
    let grown = peak(program.pid()) - before;
    assert_eq!(response.status, 200);
    let whole = response.messages().pop().unwrap();
    let sums = whole.matches("0123456789abcdef").count();
    assert!(whole.ends_with('}') && sums <= BYTES / 16, "{sums}");
    (grown, sums * 16)
}

/// What the result takes in a process that reads it back for a repeated call.
async fn read_back(on: On) {
    let scene = Scene::start_on(on, LIMITS, "").await;
    over_http(&scene.program).await;
    let program = scene.program.restart().await;
    let (grown, sent) = over_http(&program).await;
    assert_eq!(sent, BYTES);
    let big = program.executions().await.into_iter().filter(|row| row["tool"] == "big").count();
    assert_eq!(big, 1, "it ran once");
    check(&format!("read back, {on:?}"), grown, ONCE);
}

/// From a child of a tool with this setting to a caller over HTTP; how long the answer's text is.
async fn from_a_child(setting: &str, what: &str) -> usize {
    let scene = Scene::start(LIMITS, setting).await;
    let (grown, sent) = over_http(&scene.program).await;
    check(what, grown, ONCE);
    sent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_is_in_memory_once_on_its_way_from_a_child_to_a_json_answer() {
    assert_eq!(from_a_child("", "stdio, JSON").await, BYTES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_is_in_memory_once_on_its_way_to_an_answer_that_is_a_stream() {
    assert_eq!(from_a_child("response = \"sse\"\n", "stdio, SSE").await, BYTES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_that_is_cut_is_in_memory_once() {
    let sent = from_a_child("answer_bytes = \"50KB\"\n", "stdio, cut").await;
    assert!((40_000..50_000).contains(&sent), "{sent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_of_a_server_over_http_is_in_memory_once() {
    for how in ["json", "sse"] {
        let setup = Setup::new("");
        let ledger = Ledger::in_folder(setup.folder());
        let server = kit_http(&["--era", "both", "--response", how, "--ledger", ledger.path()]).await;
        let config = format!("{LIMITS}\n{}", server_table("kit", &server.target, ""));
        let program = setup.config(&config).serve().await;
        let (grown, sent) = over_http(&program).await;
        assert_eq!(sent, BYTES);
        check(&format!("HTTP ({how}), JSON"), grown, ONCE);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_is_in_memory_once_on_its_way_to_a_client_over_stdio() {
    let setup = Setup::new(LIMITS);
    let mut client = RawStdio::open(&setup.wrap(&kit(setup.folder())), "2025-11-25").await;
    for n in 0..3 {
        client.call(json!(n), "echo", json!({"text": n.to_string()})).await;
    }
    let before = peak(client.process.pid());
    let params = json!({"name": "big", "arguments": {"size": BYTES}});
    client.send(&json!({"jsonrpc": "2.0", "id": "big", "method": "tools/call", "params": params}).to_string()).await;
    eventually("the answer", DEADLINE, || client.process.stdout().len() > BYTES).await;
    let grown = peak(client.process.pid()) - before;
    let answer: Value = serde_json::from_str(&client.answer(&json!("big")).await).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), BYTES);
    check("stdio, stdio", grown, ONCE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_that_is_read_back_is_in_memory_once() {
    read_back(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_that_is_read_back_from_postgresql_is_in_memory_once() {
    crate::skip_loudly!(On::Postgres.is_set_up());
    read_back(On::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_on_its_way_into_postgresql_is_in_memory_once() {
    crate::skip_loudly!(On::Postgres.is_set_up());
    let scene = Scene::start_on(On::Postgres, LIMITS, "").await;
    let (grown, sent) = over_http(&scene.program).await;
    assert_eq!(sent, BYTES);
    check("stdio, JSON, PostgreSQL", grown, ONCE);
}

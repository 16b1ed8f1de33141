//! The fixture server keeps its own promises, and the helpers see what happens: a test that trusts a broken fixture
//! proves nothing. No real client and not the program here.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::client::{Call, Client, Kind, Mode, Target};
use crate::support::ledger::Ledger;
use crate::support::process::Process;
use crate::support::raw_http::{Connection, Request, open_session};
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::{kit_http, kit_stdio};
use crate::support::{DEADLINE, kit_binary, process_tree, scratch};

const BOTH: [&str; 2] = ["--era", "both"];

/// Name and exact text of every corpus case.
fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let cases = std::fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), text.trim_end().to_owned())
    });
    cases.collect()
}

fn ledger_flags(ledger: &Ledger) -> [&str; 4] {
    ["--ledger", ledger.path(), "--era", "both"]
}

fn legacy_call(id: u32, name: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
    )
}

#[tokio::test]
async fn the_corpus_is_one_line_a_case_and_passes_stdio_byte_for_byte() {
    let mut server = RawStdio::open(&kit_stdio(&[]), "2025-11-25").await;
    let cases = corpus();
    assert!(cases.len() >= 16, "{}", cases.len());
    for (id, (name, text)) in cases.iter().enumerate() {
        assert!(!text.contains('\n'), "{name} has more than one line");
        server.send(&legacy_call(id as u32, "corpus", &format!(r#"{{"case":"{name}"}}"#))).await;
        let answer = server.answer(&json!(id)).await;
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{text}}}"#));
    }
}

#[tokio::test]
async fn the_corpus_passes_http_byte_for_byte_as_json_and_as_a_stream() {
    for response in ["json", "sse"] {
        let server = kit_http(&[&["--response", response], &BOTH[..]].concat()).await;
        let session = open_session(server.url(), "2025-06-18").await;
        for (name, text) in corpus() {
            let call = legacy_call(1, "corpus", &format!(r#"{{"case":"{name}"}}"#));
            let answer = Request::legacy(server.url(), session.as_deref(), &call).exchange(server.url()).await;
            assert_eq!(answer.result_text(), text, "{name} as {response}");

            let params = json!({"name": "corpus", "arguments": {"case": name}});
            let answer = Request::modern(server.url(), json!(1), "tools/call", params).exchange(server.url()).await;
            let whole = answer.result_text();
            let rest = whole.strip_prefix(r#"{"resultType":"complete","#).unwrap();
            assert_eq!(rest.trim_start(), text[1..].trim_start(), "{name} as {response}, modern");
        }
    }
}

#[tokio::test]
async fn echo_answers_the_exact_text_of_its_arguments() {
    let mut server = RawStdio::open(&kit_stdio(&[]), "2024-11-05").await;
    let arguments = r#"{ "b":1.0, "a" : [1e2,"\u0041"],"long":123456789012345678901234567890 }"#;
    server.send(&legacy_call(7, "echo", arguments)).await;
    let answer: Value = serde_json::from_str(&server.answer(&json!(7)).await).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], arguments);
}

#[tokio::test]
async fn sessions_are_asked_for_and_end() {
    let server = kit_http(&[]).await;
    let url = server.url();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(Request::legacy(url, None, ping).exchange(url).await.status, 400);
    assert_eq!(Request::legacy(url, Some("unknown"), ping).exchange(url).await.status, 404);
    let session = open_session(url, "2025-11-25").await;
    assert_eq!(Request::legacy(url, session.as_deref(), ping).exchange(url).await.answer()["result"], json!({}));
    let end = Request::new("DELETE", url).header("Mcp-Session-Id", session.as_deref().unwrap());
    assert_eq!(end.exchange(url).await.status, 200);
    assert_eq!(Request::legacy(url, session.as_deref(), ping).exchange(url).await.status, 404);

    let sessionless = kit_http(&["--sessionless"]).await;
    assert_eq!(open_session(sessionless.url(), "2025-11-25").await, None);
}

#[tokio::test]
async fn a_server_restarted_on_its_port_knows_no_old_session() {
    let mut first = kit_http(&[]).await;
    let session = open_session(first.url(), "2025-11-25").await;
    first.process.as_mut().unwrap().kill().await;
    let second = kit_http(&["--port", &first.port().to_string()]).await;
    let ping = Request::legacy(second.url(), session.as_deref(), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(ping.exchange(second.url()).await.status, 404);
}

#[tokio::test]
async fn a_modern_request_is_checked_against_its_headers() {
    let server = kit_http(&BOTH).await;
    let url = server.url();
    let call = Request::modern(url, json!(1), "tools/call", json!({"name": "echo", "arguments": {}}));
    assert_eq!(call.exchange(url).await.status, 200);
    let code = async |request: Request| {
        let response = request.exchange(url).await;
        (response.status, response.answer()["error"]["code"].as_i64().unwrap())
    };
    assert_eq!(code(call.clone().without("Mcp-Method")).await, (400, -32020));
    assert_eq!(code(call.clone().with("Mcp-Name", "append")).await, (400, -32020));
    assert_eq!(code(call.clone().with("MCP-Protocol-Version", "2025-11-25")).await, (400, -32020));
    assert_eq!(code(Request::modern(url, json!(1), "ping", json!({}))).await, (404, -32601));
    let unknown = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01"}}}"#;
    let unknown = Request::modern_text(url, "tools/list", None, unknown).with("MCP-Protocol-Version", "1900-01-01");
    assert_eq!(code(unknown).await, (400, -32022));
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    assert_eq!(code(Request::modern_text(url, "tools/list", None, bare)).await, (400, -32602));
    assert_eq!(code(Request::post(url, "{\"jsonrpc\":")).await, (400, -32700));
}

#[tokio::test]
async fn a_crash_leaves_one_line_and_a_dead_process() {
    let folder = scratch();
    let ledger = Ledger::in_folder(folder.path());
    for (run, survives) in [(1, false), (2, true)] {
        let mut server = RawStdio::open(&kit_stdio(&ledger_flags(&ledger)), "2025-11-25").await;
        server.send(&legacy_call(1, "crash_after_write", r#"{"text":"boom key=x","once":true}"#)).await;
        if survives {
            server.answer(&json!(1)).await;
        } else {
            use std::os::unix::process::ExitStatusExt;
            assert_eq!(server.process.exit(DEADLINE).await.signal(), Some(Signal::KILL.as_raw()));
            assert!(!server.has_answered(&json!(1)));
        }
        assert_eq!(ledger.starts("boom key=x").len(), run);
    }
    assert_eq!(ledger.dones("boom key=x"), 1);
}

#[tokio::test]
async fn failures_are_counted_over_restarts() {
    let folder = scratch();
    let ledger = Ledger::in_folder(folder.path());
    let mut errors = Vec::new();
    for _ in 0..3 {
        let mut server = RawStdio::open(&kit_stdio(&ledger_flags(&ledger)), "2025-11-25").await;
        let answer = server.call(json!(1), "flaky", json!({"name": "f", "failures": 2})).await;
        errors.push(answer["result"]["isError"] == true);
    }
    assert_eq!(errors, [true, true, false]);
    assert_eq!((ledger.starts("f").len(), ledger.dones("f")), (3, 1));
}

#[tokio::test]
async fn a_cancelled_run_is_written_down_and_never_answered() {
    let folder = scratch();
    let ledger = Ledger::in_folder(folder.path());
    let mut server = RawStdio::open(&kit_stdio(&ledger_flags(&ledger)), "2025-11-25").await;
    // Both lines in one write: the cancellation must not miss a call that has hardly begun.
    let call = legacy_call(1, "slow", r#"{"seconds":60,"text":"long"}"#);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    server.send(&format!("{call}\n{cancel}")).await;
    crate::support::eventually("the cancellation", DEADLINE, || ledger.cancels("long") == 1).await;
    server.request(json!(2), "ping", json!({})).await;
    assert!(!server.has_answered(&json!(1)));
    assert_eq!(ledger.dones("long"), 0);
}

#[tokio::test]
async fn a_cut_stream_cancels_a_modern_call_and_no_legacy_one() {
    let folder = scratch();
    let ledger = Ledger::in_folder(folder.path());
    let server = kit_http(&ledger_flags(&ledger)).await;
    let url = server.url();
    let params = json!({"name": "slow", "arguments": {"seconds": 60, "text": "modern"}});
    let mut connection = Connection::open(url).await;
    connection.send(&Request::modern(url, json!(1), "tools/call", params).bytes()).await;
    ledger.wait_for_start("modern", DEADLINE).await;
    connection.cut();
    crate::support::eventually("the cancellation", DEADLINE, || ledger.cancels("modern") == 1).await;

    let session = open_session(url, "2025-11-25").await;
    let call = legacy_call(1, "slow", r#"{"seconds":0.3,"text":"legacy"}"#);
    let mut connection = Connection::open(url).await;
    connection.send(&Request::legacy(url, session.as_deref(), &call).bytes()).await;
    ledger.wait_for_start("legacy", DEADLINE).await;
    connection.cut();
    ledger.wait_for_done("legacy", DEADLINE).await;
}

#[tokio::test]
async fn progress_comes_as_events_before_the_answer() {
    let folder = scratch();
    let ledger = Ledger::in_folder(folder.path());
    let server = kit_http(&ledger_flags(&ledger)).await;
    let url = server.url();
    let params =
        json!({"name": "slow", "arguments": {"seconds": 0.3, "text": "p"}, "_meta": {"progressToken": "token"}});
    let mut connection = Connection::open(url).await;
    connection.send(&Request::modern(url, json!("one"), "tools/call", params).bytes()).await;
    let head = connection.response_head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let mut seen = Vec::new();
    while let Some(event) = connection.event().await {
        seen.push(serde_json::from_str::<Value>(&event.data).unwrap());
    }
    assert!(seen.len() >= 3, "{seen:?}");
    assert_eq!(seen[0]["params"]["progressToken"], "token");
    assert_eq!(seen.last().unwrap()["id"], "one");
}

#[tokio::test]
async fn a_half_request_and_a_cut_connection_harm_nobody_else() {
    let server = kit_http(&BOTH).await;
    let url = server.url();
    let whole = Request::modern(url, json!(1), "tools/call", json!({"name": "echo", "arguments": {}}));
    let mut half = Connection::open(url).await;
    half.send(&whole.head()).await;
    half.send(&whole.body[..whole.body.len() / 2]).await;
    let mut garbage = Connection::open(url).await;
    garbage.send(b"\x00\xff not http at all\r\n\r\n").await;
    assert_eq!(garbage.response().await.status, 400);
    garbage.closed(DEADLINE).await;
    half.cut();
    assert_eq!(whole.exchange(url).await.status, 200);
    // One connection takes several requests.
    let mut kept = Connection::open(url).await;
    for _ in 0..3 {
        kept.send(&whole.bytes()).await;
        assert_eq!(kept.response().await.status, 200);
    }
}

#[tokio::test]
async fn it_misbehaves_on_order() {
    let mut garbage = RawStdio::open(&kit_stdio(&["--garbage"]), "2025-11-25").await;
    garbage.request(json!(1), "ping", json!({})).await;
    assert!(garbage.process.stdout().contains("{not json}"));

    let mut hanging = RawStdio::start(&kit_stdio(&["--hang-handshake"]));
    hanging.send(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#).await;
    hanging.request(json!(2), "ping", json!({})).await;
    assert!(!hanging.has_answered(&json!(1)));

    let mut failing = Process::start(kit_binary(), &["stdio", "--fail-start", "7"], &[]);
    assert_eq!(failing.exit(DEADLINE).await.code(), Some(7));
    assert_eq!(failing.stderr(), "kit: told to fail at the start");

    let mut old = RawStdio::start(&kit_stdio(&["--revision", "2025-03-26", "--instructions", "be kind"]));
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let answer = old.request(json!(1), "initialize", hello).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(answer["result"]["instructions"], "be kind");

    let mut without_ledger = RawStdio::open(&kit_stdio(&[]), "2025-11-25").await;
    let answer = without_ledger.call(json!(1), "append", json!({"text": "uncounted"})).await;
    assert_eq!(answer["result"]["isError"], true);
}

#[tokio::test]
async fn lists_are_paged_and_change() {
    let flags = ["--list-page", "5", "--change-tools-after", "2", "--era", "both"];
    for kind in [Kind::Rmcp(Mode::Legacy), Kind::Rmcp(Mode::Modern)] {
        let client = Client::connect(kind, &kit_stdio(&flags)).await;
        let before = client.list().await;
        assert_eq!(before.len(), 19);
        client.call("echo", json!({})).await.unwrap();
        client.call("late", json!({})).await.unwrap_err();
        if kind == Kind::Rmcp(Mode::Legacy) {
            client.notification("notifications/tools/list_changed").await;
            assert_eq!(client.list().await.last().unwrap()["name"], "late");
        }
        client.call("late", json!({})).await.unwrap();
        client.close().await;
    }
}

#[tokio::test]
async fn a_listener_of_2026_07_28_hears_of_changed_tools() {
    let server = kit_http(&["--change-tools-after", "1", "--era", "both"]).await;
    let url = server.url();
    let mut listening = Connection::open(url).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    listening.send(&Request::modern(url, json!("sub"), "subscriptions/listen", wanted).bytes()).await;
    assert_eq!(listening.response_head().await.status, 200);
    let first: Value = serde_json::from_str(&listening.event().await.unwrap().data).unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let call = Request::modern(url, json!(1), "tools/call", json!({"name": "echo", "arguments": {}}));
    assert_eq!(call.exchange(url).await.status, 200);
    let second: Value = serde_json::from_str(&listening.event().await.unwrap().data).unwrap();
    assert_eq!(second["method"], "notifications/tools/list_changed");
    assert_eq!(second["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
}

#[tokio::test]
async fn grandchildren_outlive_a_killed_server_until_somebody_ends_them() {
    let mut server = RawStdio::open(&kit_stdio(&[]), "2025-11-25").await;
    let answer = server.call(json!(1), "grandchild", json!({"orphan": true})).await;
    let pids = &answer["result"]["structuredContent"];
    let pids: Vec<u32> =
        pids.as_object().unwrap().values().filter_map(|pid| pid.as_u64()).map(|pid| pid as u32).collect();
    assert!(pids.len() >= 2, "{answer}");
    let descendants = process_tree::descendants(server.process.pid());
    assert!(descendants.contains(&pids[0]), "{descendants:?} {pids:?}");
    server.process.kill().await;
    assert!(pids.iter().all(|pid| process_tree::is_alive(*pid)));
    pids.iter().for_each(|pid| process_tree::end(*pid));
    process_tree::wait_gone(&pids, DEADLINE).await;
}

#[tokio::test]
async fn the_client_here_sees_headers_meta_and_environment_arrive() {
    let folder = scratch();
    let ledger = Ledger::in_folder(folder.path());
    let server = kit_http(&BOTH).await;
    let target = server.target.clone().header("X-Test", "seen").named("someone");
    let client = Client::connect(Kind::Rmcp(Mode::Modern), &target).await;
    let call = Call::new("received", json!({})).meta(json!({"kit.example/n": 1.5}));
    let result = client.start(call).await.answer_within(Duration::from_secs(5)).await.unwrap();
    let params: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    let headers: Value = serde_json::from_str(result["content"][1]["text"].as_str().unwrap()).unwrap();
    assert_eq!(params["_meta"]["kit.example/n"], 1.5);
    assert_eq!(params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "someone");
    assert_eq!(headers["x-test"], "seen");
    assert_eq!(headers["mcp-name"], "received");
    client.close().await;

    let target = Target::command([kit_binary().to_str().unwrap(), "stdio"]).env("KIT_LEDGER", ledger.path());
    let client = Client::connect(Kind::Rmcp(Mode::Legacy), &target).await;
    client.call("append", json!({"text": "by environment"})).await.unwrap();
    assert_eq!(ledger.starts("by environment").len(), 1);
    client.kill().await;
}

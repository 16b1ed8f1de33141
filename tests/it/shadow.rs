//! `wrap --shadow` around real processes: not a byte changes, nothing is stored or run twice, the server ends as it would,
//! and the report says what would have been done. What a report makes of conversations is tested where it is made.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::support::answers::{answers_at, direct_answers};
use crate::support::bytes;
use crate::support::client::{self, Mode, Target};
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::{self, Server, kit_stdio};
use crate::support::{DEADLINE, eventually, scratch};

/// The shadow of this command, with its report in the setup's folder.
fn shadow(setup: &Setup, server: &Target) -> Target {
    let report = report_path(setup);
    setup.clone().flag("--shadow").flag("--shadow-report").flag(report.to_str().unwrap()).wrap(server)
}

fn report_path(setup: &Setup) -> std::path::PathBuf {
    setup.folder().join("report.json")
}

fn report(setup: &Setup) -> Value {
    serde_json::from_str(&std::fs::read_to_string(report_path(setup)).unwrap()).unwrap()
}

/// A process whose streams are bytes and not lines.
struct Bytes {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Bytes {
    fn start(target: &Target) -> Bytes {
        let (child, stdin, stdout) = bytes::start(target);
        Bytes { child, stdin, stdout }
    }

    /// Sends these and ends the input; what came out until the end.
    async fn exchange(mut self, sent: Vec<u8>) -> (Vec<u8>, ExitStatus) {
        let (mut stdin, mut got) = (self.stdin, Vec::new());
        let send = async move {
            stdin.write_all(&sent).await.unwrap();
            drop(stdin);
        };
        let both = async { tokio::join!(send, self.stdout.read_to_end(&mut got)) };
        timeout(DEADLINE, both).await.expect("it ends").1.unwrap();
        (got, timeout(DEADLINE, self.child.wait()).await.expect("it exits").unwrap())
    }

    async fn read(&mut self, count: usize) -> Vec<u8> {
        let mut got = vec![0; count];
        timeout(DEADLINE, self.stdout.read_exact(&mut got)).await.expect("in time").unwrap();
        got
    }
}

/// Frames as clients and servers write them, and what neither should.
fn frames() -> Vec<u8> {
    let mut frames = Vec::new();
    let mut files: Vec<_> =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")).unwrap().collect();
    files.sort_by_key(|file| file.as_ref().unwrap().file_name());
    for file in files {
        frames.extend(std::fs::read(file.unwrap().path()).unwrap());
        frames.push(b'\n');
    }
    frames.extend(b"Starting up...\r\n\r\n\n\x00\xff\xfe not UTF-8\n{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2\n[]\n");
    let big = "x".repeat(20 << 20);
    frames.extend(format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"big\":\"{big}\"}}}}\n").as_bytes());
    frames.extend((0..100_000_u32).flat_map(u32::to_le_bytes));
    frames.extend(b"\n{\"half\": \"a frame without its end");
    frames
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_passes_in_both_directions() {
    let setup = Setup::new("");
    // It gives back what it gets, so that one conversation has the same bytes in both directions.
    let sent = frames();
    let (got, status) = Bytes::start(&shadow(&setup, &Target::command(["cat"]))).exchange(sent.clone()).await;
    assert_eq!(got.len(), sent.len());
    assert!(got == sent);
    assert_eq!(status.code(), Some(0));
    let report = report(&setup);
    assert_eq!(report["end"], "client_left");
    assert!(report["wire"]["stdout_pollution"].as_u64().unwrap() >= 3, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_frame_does_not_wait_for_the_other_half() {
    let setup = Setup::new("");
    let mut shadow = Bytes::start(&shadow(&setup, &Target::command(["cat"])));
    for piece in ["{\"jsonrpc\":", "\"2.0\"", ",", "\"method\":\"ping\"}\n", "x"] {
        shadow.stdin.write_all(piece.as_bytes()).await.unwrap();
        assert_eq!(shadow.read(piece.len()).await, piece.as_bytes());
    }
    drop(shadow.stdin);
    assert_eq!(timeout(DEADLINE, shadow.child.wait()).await.unwrap().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_the_same_answers_and_nothing_is_stored() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let client = client::Kind::Rmcp(mode);
        let setup = Setup::new("");
        let server = Server::start(servers::Kind::KitStdio, setup.folder()).await;
        let watched = answers_at(client, &shadow(&setup, &server.target), servers::Kind::KitStdio).await;
        assert_eq!(watched, direct_answers(client, servers::Kind::KitStdio).await);
        eventually("the final report", DEADLINE, || report_path(&setup).exists() && report(&setup)["interim"] == false)
            .await;
        let report = report(&setup);
        assert_eq!(report["total"]["calls"], report["total"]["answered"], "{report}");
        assert!(report["total"]["calls"].as_u64().unwrap() > 10, "{report}");
        assert!(!setup.data_dir().exists(), "no store, no salt, no folder");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_re_issued_call_runs_twice_and_the_report_says_that_it_need_not() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--ledger", ledger.path()]);
    let setup = setup.config(&server_table("wrapped", &kit, "wait = \"100ms\""));
    let mut client = RawStdio::open(&shadow(&setup, &kit), "2025-06-18").await;
    client.request(json!("list"), "tools/list", json!({})).await;
    let slow = json!({"name": "slow", "arguments": {"seconds": 0.4, "text": "again"}});
    let call = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": slow}).to_string();
    client.send(&call(1)).await;
    let cancelled = json!({"requestId": 1, "reason": "Request timed out"});
    eventually("the first run", DEADLINE, || !ledger.starts("again").is_empty()).await;
    client.send(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{cancelled}}}"#)).await;
    client.send(&call(2)).await;
    client.answer(&json!(2)).await;
    assert_eq!(ledger.starts("again").len(), 2, "a shadow keeps nobody from running twice");
    let mut process = client.close_stdin();
    assert_eq!(process.exit(DEADLINE).await.code(), Some(0));
    let report = report(&setup);
    assert_eq!(report["total"]["deduplicated_unkeyed"], 1, "{report}");
    assert_eq!(report["total"]["handles"], 1, "{report}");
    assert_eq!(report["client"], "raw");
    let stderr = process.stderr();
    assert!(stderr.contains("re-issued calls that would not have run twice"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_death_of_the_server_passes_through_and_its_calls_are_settled_in_the_report() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let mut client = RawStdio::open(&shadow(&setup, &kit_stdio(&["--ledger", ledger.path()])), "2025-06-18").await;
    client.request(json!("list"), "tools/list", json!({})).await;
    let call = |id: i64, name: &str, text: &str| {
        let params = json!({"name": name, "arguments": {"seconds": 30, "text": text}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    client.send(&call(1, "slow", "a")).await;
    client.send(&call(2, "slow_idempotent", "b")).await;
    eventually("both run", DEADLINE, || !ledger.starts("a").is_empty() && !ledger.starts("b").is_empty()).await;
    client.send(&call(3, "crash_after_write", "c")).await;
    // As a client would see it without us: the streams end, and the exit code is that of a death by signal 9.
    assert_eq!(client.process.exit(DEADLINE).await.code(), Some(137));
    let report = report(&setup);
    assert_eq!(report["end"], "server_ended");
    let total = &report["total"];
    assert_eq!((&total["unanswered"], &total["unknown"], &total["retried"]), (&json!(3), &json!(2), &json!(1)));
    assert_eq!(report["tools"]["slow_idempotent"]["delivery_source"], "idempotent_hint");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_reaches_the_server_and_the_report_comes_all_the_same() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let mut client = RawStdio::open(&shadow(&setup, &kit_stdio(&["--ledger", ledger.path()])), "2025-06-18").await;
    let params = json!({"name": "slow", "arguments": {"seconds": 30, "text": "s"}});
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()).await;
    eventually("it runs", DEADLINE, || !ledger.starts("s").is_empty()).await;
    client.process.signal(Signal::TERM);
    let status = client.process.exit(Duration::from_secs(5)).await;
    assert_eq!(status.code(), Some(143));
    assert_eq!((&report(&setup)["end"], &report(&setup)["total"]["unknown"]), (&json!("signal"), &json!(1)));
    let pid: i32 = ledger.starts("s")[0].pid.try_into().unwrap();
    eventually("the server is gone", DEADLINE, || {
        rustix::process::test_kill_process(Pid::from_raw(pid).unwrap()).is_err()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_watched_is_said_at_once() {
    let folder = scratch();
    let setup = Setup::new("");
    let report = folder.path().join("r.json").to_str().unwrap().to_owned();
    for (arguments, exit, says) in [
        (vec!["wrap", "--shadow", "--url", "http://127.0.0.1:1/mcp"], 2, "cannot be used with"),
        (vec!["wrap", "--shadow-report", &report, "--", "cat"], 2, "--shadow"),
        (vec!["wrap", "--shadow", "--", "/no/such/program"], 127, "cannot start /no/such/program"),
    ] {
        let ran = setup.cli(&arguments).await;
        assert_eq!(ran.status.code(), Some(exit), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

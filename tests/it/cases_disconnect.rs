//! The client leaves, or takes its request back: per era, transport and `on_disconnect`, what becomes of the work, and
//! what the server behind is told.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::cases_scene::{Scene, execution, id_of, kit, text};
use crate::support::client::Place;
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};
use crate::support::raw_stdio::RawStdio;
use crate::support::{DEADLINE, eventually};

/// `slow` goes on without its client, `slow_structured` does not.
const POLICIES: &str = "[servers.kit.tools.slow]\non_disconnect = \"detach\"\n[servers.kit.tools.slow_structured]\non_disconnect = \"cancel\"\n";
const SOON: &str = "[server]\njson_within = \"50ms\"\nkeep_alive = \"100ms\"\n";
const TIMED_OUT: &str = "McpError: MCP error -32001: Request timed out";

fn detached(text: &str) -> Value {
    json!({"name": "slow", "arguments": {"seconds": 1.0, "text": text}})
}

fn cancelled(text: &str) -> Value {
    json!({"name": "slow_structured", "arguments": {"seconds": 30, "text": text, "n": 1}})
}

/// The server was told, the log says why, and the row that the call may have had its effect.
async fn ends_cancelled(scene: &Scene, text: &str, reason: &str) {
    eventually(&format!("{text} is cancelled at the server"), DEADLINE, || scene.ledger.cancels(text) == 1).await;
    let id = scene.execution_of(text);
    let row = scene.wait_for_state(&id, "cancelled").await;
    assert_eq!(row["effect"], "unknown");
    let events = scene.program.events(&id).await;
    assert_eq!(events.last().unwrap()["by"]["reason"], reason, "{events:?}");
    assert_eq!(scene.ledger.dones(text), 0);
}

async fn goes_on(scene: &Scene, text: &str) {
    scene.ledger.wait_for_done(text, DEADLINE).await;
    scene.wait_for_state(&scene.execution_of(text), "completed").await;
    assert_eq!(scene.ledger.cancels(text), 0);
}

// A35: in 2026-07-28 a closed stream takes the request back, in older revisions it says nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_disconnects_detaches_or_cancels_as_the_tool_is_configured() {
    let scene = Scene::start(SOON, POLICIES).await;
    for caller in scene.of_each_era().await {
        let era = if caller.is_modern() { "modern" } else { "legacy" };
        let scene = &scene;
        let leave = async |call: Value, in_stream: bool| {
            let text = call["arguments"]["text"].as_str().unwrap().to_owned();
            let mut connection = caller.send(call).await;
            if in_stream {
                connection.response_head().await;
            }
            scene.ledger.wait_for_start(&text, DEADLINE).await;
            connection.cut();
            text
        };
        tokio::join!(
            async { goes_on(scene, &leave(detached(&format!("{era} detached in the stream")), true).await).await },
            async { goes_on(scene, &leave(detached(&format!("{era} detached early")), false).await).await },
            async {
                let text = leave(cancelled(&format!("{era} cancelled in the stream")), true).await;
                ends_cancelled(scene, &text, "the client disconnected").await;
            },
            async {
                let text = leave(cancelled(&format!("{era} cancelled early")), false).await;
                ends_cancelled(scene, &text, "the client disconnected").await;
            },
        );
    }
    scene.program.check_store().await;
}

// A33: what was cancelled never ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_legacy_client_that_takes_a_request_back_cancels_the_work_unless_its_timer_ran_out() {
    let scene = Scene::start(SOON, POLICIES).await;
    let caller = scene.legacy().await;
    let take_back = async |n: u32, call: Value, reason: Option<&str>| {
        let text = call["arguments"]["text"].as_str().unwrap().to_owned();
        let id = json!(format!("request {n}"));
        let mut connection = caller.send_as(id.clone(), call).await;
        connection.response_head().await;
        scene.ledger.wait_for_start(&text, DEADLINE).await;
        let params = match reason {
            Some(reason) => json!({"requestId": id, "reason": reason}),
            None => json!({"requestId": id}),
        };
        caller.notify("notifications/cancelled", params).await;
        let rest = String::from_utf8(connection.rest().await).unwrap();
        assert!(!rest.contains("\"result\"") && !rest.contains("\"error\""), "nothing more is sent for it: {rest}");
        text
    };
    let long = |text: &str| json!({"name": "slow", "arguments": {"seconds": 30, "text": text}});
    let scene = &scene;
    tokio::join!(
        async {
            let text = take_back(1, long("the user cancelled"), Some("AbortError: the user cancelled")).await;
            ends_cancelled(scene, &text, "cancelled by the client").await;
        },
        async {
            let text = take_back(2, long("no reason"), None).await;
            ends_cancelled(scene, &text, "cancelled by the client").await;
        },
        async { goes_on(scene, &take_back(3, detached("timed out"), Some(TIMED_OUT)).await).await },
        async {
            let text = take_back(4, cancelled("timed out and cancelled"), Some(TIMED_OUT)).await;
            ends_cancelled(scene, &text, "the client gave up waiting").await;
        },
    );
    scene.program.check_store().await;
}

// The user stops a call and asks for the same a moment later: that is a new wish, and not answered with "cancelled".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_the_user_cancelled_runs_when_it_is_asked_for_again() {
    let scene = Scene::start(SOON, POLICIES).await;
    let caller = scene.legacy().await;
    let call = json!({"name": "slow", "arguments": {"seconds": 1.5, "text": "second thoughts"}});
    let mut first = caller.send_as(json!("first"), call.clone()).await;
    scene.ledger.wait_for_start("second thoughts", DEADLINE).await;
    let params = json!({"requestId": "first", "reason": "AbortError: the user cancelled"});
    caller.notify("notifications/cancelled", params).await;
    first.rest().await;
    ends_cancelled(&scene, "second thoughts", "cancelled by the client").await;
    let again = caller.ask(call).await;
    assert_eq!(text(&again), "slept second thoughts");
    assert_eq!(scene.ledger.starts("second thoughts").len(), 2);
    scene.program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_about_a_call_that_is_taken_back_stops_no_work() {
    let scene = Scene::start(SOON, POLICIES).await;
    let caller = scene.legacy().await;
    let mut running = caller.send(json!({"name": "slow", "arguments": {"seconds": 2, "text": "asked about"}})).await;
    scene.ledger.wait_for_start("asked about", DEADLINE).await;
    let id = scene.execution_of("asked about");
    let question = json!({"name": "durable_result", "arguments": {"execution_id": id}});
    let mut asking = caller.send_as(json!("question"), question).await;
    asking.response_head().await;
    caller.notify("notifications/cancelled", json!({"requestId": "question", "reason": "the user stopped"})).await;
    asking.rest().await;
    assert_eq!(text(&running.response().await.answer()), "slept asked about");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_stdio_a_request_taken_back_follows_the_same_rules() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let config = server_table("wrapped", &kit(setup.folder()), &POLICIES.replace(".kit.", ".wrapped."));
    let setup = setup.config(&config);
    let mut pipe = RawStdio::open(&setup.wrap(&kit(setup.folder())), "2025-11-25").await;
    let long = |text: &str| json!({"name": "slow", "arguments": {"seconds": 30, "text": text}});
    let calls = [
        ("user", long("user"), "the user cancelled"),
        ("timer", detached("timer"), TIMED_OUT),
        ("timer and policy", cancelled("timer and policy"), TIMED_OUT),
    ];
    for (id, call, _) in &calls {
        pipe.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}).to_string()).await;
        ledger.wait_for_start(id, DEADLINE).await;
    }
    for (id, _, reason) in &calls {
        let params = json!({"requestId": id, "reason": reason});
        pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string()).await;
    }
    ledger.wait_for_done("timer", DEADLINE).await;
    eventually("both cancellations", DEADLINE, || {
        ledger.cancels("user") == 1 && ledger.cancels("timer and policy") == 1
    })
    .await;
    assert_eq!((ledger.cancels("timer"), ledger.dones("user")), (0, 0));
    let probe = pipe.call(json!("probe"), "append", json!({"text": "probe"})).await;
    assert_eq!(text(&probe), "appended probe");
    assert!(calls.iter().all(|(id, ..)| !pipe.has_answered(&json!(id))), "nothing more is sent for them");
    setup.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_stdio_the_work_goes_on_when_the_client_leaves_and_the_next_one_finds_it() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let params = json!({"name": "slow", "arguments": {"seconds": 1.0, "text": "left"}});
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
    let lines = [("initialize", &hello), ("tools/call", &params)]
        .map(|(method, params)| json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
    let target = setup.wrap(&kit(setup.folder()));
    let Place::Command(argv) = &target.place else { unreachable!("wrap is a command") };
    let mut client_side = Command::new(&argv[0]);
    client_side.args(&argv[1..]).envs(target.env.clone()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut wrap = client_side.kill_on_drop(true).spawn().unwrap();
    let mut stdin = wrap.stdin.take().unwrap();
    stdin.write_all(format!("{}\n{}\n", lines[0], lines[1]).as_bytes()).await.unwrap();
    ledger.wait_for_start("left", DEADLINE).await;
    // A client that died: both of its ends are closed.
    drop((stdin, wrap.stdout.take()));
    let status = tokio::time::timeout(DEADLINE, wrap.wait()).await.expect("it ends with its work").unwrap();
    assert!(status.success(), "{status}");
    assert_eq!((ledger.dones("left"), ledger.cancels("left")), (1, 0));
    let mut next = RawStdio::open(&setup.wrap(&kit(setup.folder())), "2025-11-25").await;
    let again = next.request(json!(1), "tools/call", params).await;
    assert_eq!(text(&again), "slept left");
    assert_eq!(execution(&again)["attached"], true, "{again}");
    assert_eq!(ledger.starts("left").len(), 1);
    assert_eq!(id_of(&again), ledger.starts("left")[0].key.clone().unwrap());
}

// A33, A34 in this era: a modern client over stdio takes its request back by a notification.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_stdio_a_modern_client_cancels_by_notification() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let mut pipe = RawStdio::start(&setup.wrap(&kit(setup.folder())));
    let mut params = json!({"name": "slow", "arguments": {"seconds": 30, "text": "modern"}});
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"}});
    pipe.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string()).await;
    ledger.wait_for_start("modern", DEADLINE).await;
    let cancel = json!({"requestId": 7, "_meta": params["_meta"]});
    pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}).to_string()).await;
    eventually("the cancellation", DEADLINE, || ledger.cancels("modern") == 1).await;
    assert!(!pipe.has_answered(&json!(7)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_a_call_to_which_another_one_stays_stops_no_work() {
    let scene = Scene::start(SOON, POLICIES).await;
    let caller = scene.modern();
    let call = |text: &str| {
        let mut call = cancelled(text);
        call["arguments"]["seconds"] = json!(1.5);
        call["_meta"] = json!({"durable-mcp/idempotencyKey": text});
        call
    };
    let mut stays = caller.send(call("shared")).await;
    scene.ledger.wait_for_start("shared", DEADLINE).await;
    let mut leaves = caller.send(call("shared")).await;
    leaves.response_head().await;
    leaves.cut();
    let answer = stays.response().await.answer();
    assert_eq!(answer["result"]["structuredContent"]["n"], 1, "{answer}");
    assert_eq!(scene.ledger.cancels("shared"), 0);
}

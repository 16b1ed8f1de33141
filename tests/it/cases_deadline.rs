//! Field cases of kinds K1, K2 and K6: clients with deadlines, lines that must be kept, limits that must be told apart.
//! The seconds of the reports are scaled down.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cases_proxy::idle_cut;
use crate::cases_scene::{Caller, Scene, execution, id_of, kit, text};
use crate::skip_loudly;
use crate::support::client::{Call, Client, Kind, Mode};
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};
use crate::support::raw_http::{Event, Request};
use crate::support::raw_stdio::RawStdio;
use crate::support::{self, DEADLINE};

// A01: the client gives up although the work is done a moment later; its user repeats the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_came_after_the_client_gave_up_is_handed_to_the_repeat_and_by_id() {
    let scene = Scene::start("", "").await;
    for caller in scene.of_each_era().await {
        let wanted = if caller.is_modern() { "modern" } else { "legacy" };
        let arguments = json!({"seconds": 0.8, "text": wanted});
        let call = json!({"name": "slow", "arguments": arguments, "_meta": {"durable-mcp/idempotencyKey": wanted}});
        let gives_up = caller.send(call.clone()).await;
        scene.ledger.wait_for_start(wanted, DEADLINE).await;
        gives_up.cut();
        scene.ledger.wait_for_done(wanted, DEADLINE).await;
        let by_key = caller.ask(call).await;
        let by_id = caller.call("durable_result", json!({"execution_id": id_of(&by_key)})).await;
        assert_eq!(text(&by_key), format!("slept {wanted}"));
        assert_eq!(text(&by_id), text(&by_key));
        assert_eq!(scene.ledger.starts(wanted).len(), 1);
    }
}

// A02, A03: a client that gives up early and knows nothing of tasks gets a handle in time, and the result by the tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_a_short_deadline_gets_a_handle_in_time_and_the_result_by_the_built_in_tool() {
    skip_loudly!(support::clients_are_set_up());
    let scene = Scene::start("", "wait = \"500ms\"").await;
    let kinds = [Kind::Sdk1, Kind::Client2(Mode::Modern), Kind::Rmcp(Mode::Legacy)];
    let each = kinds.map(|kind| {
        let target = scene.program.target().named(&format!("{kind:?}"));
        let ledger = Ledger::in_folder(scene.program.setup.folder());
        async move {
            let client = Client::connect(kind, &target).await;
            let wanted = format!("{kind:?}");
            let call = Call::new("slow", json!({"seconds": 2, "text": wanted})).timeout_ms(1_500);
            let handle = client.start(call).await.answer().await.unwrap();
            assert_eq!(handle["isError"], true, "{handle}");
            assert_eq!(handle.get("structuredContent"), None);
            let told = handle["content"][0]["text"].as_str().unwrap();
            assert!(told.contains("Nothing failed") && told.contains("durable_result"), "{told}");
            let id = handle["_meta"]["durable-mcp/execution"]["id"].as_str().unwrap();
            let result = client.call("durable_result", json!({"execution_id": id, "wait_ms": 20_000})).await.unwrap();
            assert_eq!(result["content"][0]["text"], format!("slept {wanted}"));
            assert_eq!(ledger.starts(&wanted).len(), 1);
            client.close().await;
        }
    });
    futures_util::future::join_all(each).await;
    scene.program.check_store().await;
}

// A04: calls that were given up on one server take nothing away from another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoned_calls_on_one_server_do_not_hold_up_another() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit(setup.folder());
    let tool = |name: &str| {
        server_table(name, &kit, "concurrency = 4").replace("prefix = \"\"", &format!("prefix = \"{name}_\""))
    };
    let program = setup.config(&format!("{}{}", tool("x"), tool("y"))).serve().await;
    let caller = Caller::modern(program.url());
    assert_eq!(text(&caller.call("x_append", json!({"text": "warm"})).await), "appended warm");
    for n in 0..8 {
        let wanted = format!("abandoned {n}");
        let abandoned = caller.send(json!({"name": "x_slow", "arguments": {"seconds": 30, "text": wanted}})).await;
        if n < 4 {
            ledger.wait_for_start(&wanted, DEADLINE).await;
        }
        abandoned.cut();
    }
    let begun = Instant::now();
    assert_eq!(text(&caller.call("y_append", json!({"text": "other"})).await), "appended other");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

// A05, A24: a proxy cuts what is silent; comments keep the line of a client that asked for no progress.
// A26: where nothing can keep the line, the work goes on and the result comes later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_line_is_kept_by_comments_or_the_result_comes_later() {
    let (kept, cut) = tokio::join!(
        Scene::start("[server]\nkeep_alive = \"300ms\"\njson_within = \"200ms\"\n", ""),
        Scene::start("[server]\nresponse = \"json\"\n", ""),
    );
    let through = idle_cut(kept.url(), Duration::from_millis(1_000)).await;
    let quiet = async |caller: Caller| {
        let wanted = format!("kept {}", caller.is_modern());
        let mut connection = caller.send(json!({"name": "slow", "arguments": {"seconds": 3, "text": wanted}})).await;
        connection.response_head().await;
        let (mut comments, mut answer) = (0, Value::Null);
        while let Some(block) = connection.block().await {
            match block.lines().find_map(|line| line.strip_prefix("data: ")) {
                Some(data) => {
                    assert!(answer.is_null(), "without a token there is the answer only: {data}");
                    answer = serde_json::from_str(data).unwrap();
                }
                None => comments += usize::from(block.starts_with(':')),
            }
        }
        assert_eq!(text(&answer), format!("slept {wanted}"));
        assert!(comments >= 5, "{comments} comments");
        assert_eq!(kept.ledger.starts(&wanted).len(), 1);
    };
    // The stream of a session is kept too.
    let session = async {
        let session = support::raw_http::open_session(&through, "2025-11-25").await.unwrap();
        let mut request = Request::new("GET", &through).header("Accept", "text/event-stream");
        request = request.header("Mcp-Session-Id", &session).header("MCP-Protocol-Version", "2025-11-25");
        let mut connection = support::raw_http::Connection::open(&through).await;
        connection.send(&request.bytes()).await;
        assert_eq!(connection.response_head().await.status, 200);
        let first = connection.event().await.expect("the event that a resumption starts from");
        assert!(first.data.is_empty(), "{first:?}");
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(2_500) {
            assert!(
                connection.block().await.is_some_and(|block| block.starts_with(':')),
                "cut after {:?}",
                begun.elapsed()
            );
        }
    };
    let cut_off = async {
        let through = idle_cut(cut.url(), Duration::from_millis(500)).await;
        let call = json!({"name": "slow", "arguments": {"seconds": 1.5, "text": "cut off"}});
        let mut connection = Caller::modern(&through).send(call.clone()).await;
        connection.closed(DEADLINE).await;
        let later = cut.modern().ask(call).await;
        assert_eq!(text(&later), "slept cut off");
        assert_eq!(cut.ledger.starts("cut off").len(), 1);
    };
    let legacy = Caller::legacy(&through).await;
    tokio::join!(quiet(Caller::modern(&through)), quiet(legacy), session, cut_off);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_rises_over_the_whole_call_and_fills_the_silence_for_whoever_asked_for_it() {
    let head = "[server]\nkeep_alive = \"200ms\"\njson_within = \"100ms\"\n";
    let scene = Scene::start(head, "").await;
    let follow = async |caller: Caller| {
        let call = json!({"name": "slow", "arguments": {"seconds": 3}, "_meta": {"progressToken": "t-1"}});
        let mut connection = caller.send(call).await;
        connection.response_head().await;
        let mut values = Vec::new();
        let mut answer = Value::Null;
        while let Some(Event { data, .. }) = connection.message().await {
            let message: Value = serde_json::from_str(&data).unwrap();
            if message["method"] == "notifications/progress" {
                assert_eq!(message["params"]["progressToken"], "t-1");
                values.push(message["params"]["progress"].as_f64().unwrap());
            } else {
                answer = message;
            }
        }
        assert_eq!(text(&answer), "slept slow");
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
        let told = [1.0, 2.0].iter().all(|tick| values.contains(tick));
        assert!(told, "the tool's own reports are passed on: {values:?}");
        assert!(values.len() >= 8, "signs of life between them: {values:?}");
    };
    tokio::join!(follow(scene.modern()), follow(scene.legacy().await));

    // Over a pipe, too.
    let setup = Setup::new("[server]\nkeep_alive = \"200ms\"\n");
    let mut pipe = RawStdio::open(&setup.wrap(&kit(setup.folder())), "2025-11-25").await;
    let params = json!({"name": "slow", "arguments": {"seconds": 2.5}, "_meta": {"progressToken": 7}});
    pipe.request(json!(1), "tools/call", params).await;
    let messages = pipe.messages().into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let values: Vec<f64> = messages.filter_map(|message| message["params"]["progress"].as_f64()).collect();
    assert!(values.len() >= 6 && values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
}

// A06: the limit on silence is reset by progress, the limit on the whole attempt is not, and the record names which.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_idle_limit_and_the_absolute_limit_are_told_apart() {
    let limits = "[servers.kit.tools.slow]\ntimeout = { idle = \"1500ms\", attempt = \"20s\" }\n\
        [servers.kit.tools.slow_structured]\ntimeout = { idle = \"1500ms\", attempt = \"2500ms\" }\n\
        [servers.kit.tools.slow_idempotent]\ntimeout = { idle = \"100ms\", attempt = \"20s\" }\nretry = { max_attempts = 1 }\n";
    let scene = Scene::start("", limits).await;
    // Progress each second: longer than the idle limit in all, never silent for so long. Nobody asked for progress.
    let lives = async {
        let answer = scene.modern().call("slow", json!({"seconds": 4, "text": "lives"})).await;
        assert_eq!(text(&answer), "slept lives");
    };
    let absolute = async {
        let arguments = json!({"seconds": 8, "text": "absolute", "n": 1});
        let answer = scene.modern().call("slow_structured", arguments).await;
        assert_eq!(execution(&answer)["state"], "unknown");
        assert!(text(&answer).contains("(attempt_timeout)"), "{answer}");
        scene.wait_for_state(&id_of(&answer), "unknown").await["error"]["code"].clone()
    };
    // Says nothing for its first second.
    let idle = async {
        let answer = scene.modern().call("slow_idempotent", json!({"seconds": 8, "text": "idle"})).await;
        assert_eq!(execution(&answer)["state"], "failed");
        assert!(text(&answer).contains("(idle_timeout)"), "{answer}");
        scene.wait_for_state(&id_of(&answer), "failed").await["error"]["code"].clone()
    };
    let ((), absolute, idle) = tokio::join!(lives, absolute, idle);
    assert_eq!((absolute, idle), (json!("attempt_timeout"), json!("idle_timeout")));
    support::eventually("the server is told to stop", DEADLINE, || {
        scene.ledger.cancels("absolute") == 1 && scene.ledger.cancels("idle") == 1
    })
    .await;
    scene.program.check_store().await;
}

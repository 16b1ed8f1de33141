//! Which calls are one execution: keys in every spelling, conflicts, principals, re-issues after a cut, callers that
//! stay, ids used twice. What became of a lost call is in `cases_unknown`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cases_scene::{Caller, Scene, execution, gap, id_of, kit, stored_members, text};
use crate::skip_loudly;
use crate::support::client::{Call, Client, Kind};
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};
use crate::support::raw_stdio::RawStdio;
use crate::support::{self, DEADLINE, eventually, eventually_async};

const CONFLICT: i64 = -31409;
const INVALID_PARAMS: i64 = -32602;

/// Streams begin soon and show signs of life.
const SOON: &str = "[server]\njson_within = \"50ms\"\nkeep_alive = \"100ms\"\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_clients_with_one_key_get_one_run_and_equal_bytes() {
    let scene = Scene::start("", "").await;
    let call = json!({"name": "slow", "arguments": {"seconds": 0.5, "text": "storm"},
        "_meta": {"durable-mcp/idempotencyKey": "k"}});
    let mut callers = Vec::new();
    for n in 0..64 {
        callers.push(if n % 2 == 0 { scene.modern() } else { scene.legacy().await });
    }
    let url = scene.url();
    let answers = callers.iter().enumerate().map(|(n, caller)| {
        let request = caller.request(json!(n), call.clone());
        async move { request.exchange(url).await }
    });
    let answers = futures_util::future::join_all(answers).await;
    let first = stored_members(&answers[0].result_text());
    assert_eq!(first, [("content".to_owned(), r#"[{"type":"text","text":"slept storm"}]"#.to_owned())]);
    for answer in &answers {
        assert_eq!(stored_members(&answer.result_text()), first);
    }
    let late = scene.modern().request(json!("late"), call).exchange(scene.url()).await;
    assert_eq!(stored_members(&late.result_text()), first);
    assert_eq!(execution(&late.answer())["attached"], true);
    let fresh = answers.iter().filter(|answer| execution(&answer.answer())["attached"] == false).count();
    assert_eq!(fresh, 1, "one of them started it");
    assert_eq!(scene.ledger.starts("storm").len(), 1);
    let checked = scene.program.check_store().await;
    assert_eq!(checked.executions.len(), 1);
    assert_eq!(checked.executions[0].possible_runs().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_with_other_arguments_is_a_conflict_and_runs_nothing() {
    let scene = Scene::start("", "").await;
    let caller = scene.modern();
    // A13: the key of one call never stands for another; spelling the same arguments otherwise is no other call.
    let first = caller.keyed("k1", "append", json!({"text": "a"})).await;
    let other = caller.keyed("k1", "append", json!({"text": "b"})).await;
    assert_eq!(other["error"]["code"], CONFLICT, "{other}");
    assert_eq!(other["error"]["data"]["type"], "idempotency_key_conflict");
    assert_eq!(other["error"]["data"]["execution_id"], json!(id_of(&first)), "the caller's own id helps");
    assert_eq!(other["error"]["data"]["retryable"], false);
    assert!(scene.ledger.starts("b").is_empty());
    let events = scene.program.events(&id_of(&first)).await;
    assert!(events.iter().any(|event| event["type"] == "conflicted" && event["foreign"] == false), "{events:?}");

    let body = |arguments: &str, key: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{arguments},"_meta":{{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},
            "io.modelcontextprotocol/clientInfo":{{"name":"raw","version":"1"}},"durable-mcp/idempotencyKey":"{key}"}}}}}}"#
        )
    };
    let send = async |arguments: &str, key: &str| {
        let body = body(arguments, key);
        let request = support::raw_http::Request::modern_text(scene.url(), "tools/call", Some("echo"), &body);
        request.exchange(scene.url()).await.answer()
    };
    let same = [
        (r#"{"n":9007199254740992}"#, r#"{ "n" : 9007199254740992.0 }"#),
        (r#"{"n":1}"#, r#"{"n":1.0}"#),
        (r#"{"n":1e2,"m":[]}"#, r#"{"m":[],"n":100}"#),
        (r#"{"s":"é"}"#, r#"{"s":"\u00e9"}"#),
    ];
    for (n, (one, two)) in same.into_iter().enumerate() {
        let key = format!("same-{n}");
        let (one, two) = (send(one, &key).await, send(two, &key).await);
        assert_eq!(id_of(&one), id_of(&two));
        assert_eq!(text(&one), text(&two), "the first spelling was run");
    }
    let different = [
        (r#"{"n":9007199254740992}"#, r#"{"n":9007199254740993}"#),
        (r#"{"n":0.1}"#, r#"{"n":0.10000000000000001}"#),
        (r#"{"n":1}"#, r#"{"n":"1"}"#),
        (r#"{"n":null}"#, r#"{}"#),
        (r#"{"l":[1,2]}"#, r#"{"l":[2,1]}"#),
    ];
    for (n, (one, two)) in different.into_iter().enumerate() {
        let key = format!("other-{n}");
        let (one, two) = (send(one, &key).await, send(two, &key).await);
        assert_eq!(one["result"]["isError"], Value::Null, "{one}");
        assert_eq!(two["error"]["code"], CONFLICT, "{two}");
    }
    assert_eq!(scene.program.check_store().await.executions.len(), 1 + same.len() + different.len());
}

/// Every place where a key may stand, put into a call.
const SPELLINGS: [&str; 5] = ["vendor", "plain", "params", "header", "argument"];

async fn spelled(caller: &Caller, text: &str, keys: &[(&str, &str)]) -> Value {
    let mut params = json!({"name": "append", "arguments": {"text": text}, "_meta": {}});
    let mut caller = caller.clone();
    for (spelling, key) in keys {
        match *spelling {
            "vendor" => params["_meta"]["durable-mcp/idempotencyKey"] = json!(key),
            "plain" => params["_meta"]["idempotencyKey"] = json!(key),
            "params" => params["idempotencyKey"] = json!(key),
            "header" => caller = caller.header("Idempotency-Key", key),
            _ => params["arguments"]["request_id"] = json!(key),
        }
    }
    caller.ask(params).await
}

// A15: clients invent their own conventions; all of them mean one thing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_spelling_of_a_key_means_the_same_key_and_two_that_disagree_are_refused() {
    let scene = Scene::start("", "[servers.kit.tools.append]\nkey_argument = \"request_id\"").await;
    for caller in scene.of_each_era().await {
        let era = if caller.is_modern() { "modern" } else { "legacy" };
        let mut ids = Vec::new();
        for spelling in SPELLINGS {
            ids.push(id_of(&spelled(&caller, era, &[(spelling, era)]).await));
        }
        ids.push(id_of(&spelled(&caller, era, &SPELLINGS.map(|spelling| (spelling, era))).await));
        ids.dedup();
        assert_eq!(ids.len(), 1, "{ids:?}");
        assert_eq!(scene.ledger.starts(era).len(), 1);
        for (n, one) in SPELLINGS.iter().enumerate() {
            for two in &SPELLINGS[n + 1..] {
                let answer = spelled(&caller, "disagree", &[(one, "k-1"), (two, "k-2")]).await;
                assert_eq!(answer["error"]["code"], INVALID_PARAMS, "{one} and {two}: {answer}");
                assert!(!answer.to_string().contains("k-1"), "a key is not echoed: {answer}");
            }
        }
        for bad in ["", "with space", "ünïcode", &"k".repeat(256)] {
            let answer = spelled(&caller, "bad", &[("vendor", bad)]).await;
            assert_eq!(answer["error"]["code"], INVALID_PARAMS, "{bad}: {answer}");
        }
    }
    assert!(scene.ledger.starts("disagree").is_empty() && scene.ledger.starts("bad").is_empty());
    assert_eq!(scene.program.check_store().await.executions.len(), 2, "nothing else was stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_belongs_to_its_principal_and_its_tenant() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let server = server_table("kit", &kit(setup.folder()), "");
    let setup = setup.config(&format!("[auth]\nmode = \"token\"\n[namespaces.other]\n{server}"));
    let program = setup.serve().await;
    let caller = async |principal: &str, namespace: &str| {
        let flags = ["token", "create", "--principal", principal, "--namespace", namespace, "--scope", "call"];
        let made = setup.cli(&flags).await;
        assert!(made.status.success(), "{}", made.stderr);
        Caller::modern(program.url()).header("Authorization", &format!("Bearer {}", made.stdout.trim()))
    };
    let (ada, bob, eve) =
        (caller("ada", "default").await, caller("bob", "default").await, caller("ada", "other").await);
    let call = async |caller: &Caller| caller.keyed("k", "append", json!({"text": "mine"})).await;

    let first = call(&ada).await;
    let foreign = call(&bob).await;
    assert_eq!(foreign["error"]["code"], CONFLICT, "{foreign}");
    assert!(!foreign.to_string().contains(&id_of(&first)), "a foreign id is named: {foreign}");
    assert_eq!(foreign["error"]["data"].get("execution_id"), None, "{foreign}");
    assert_eq!(ledger.starts("mine").len(), 1);
    assert_eq!(id_of(&call(&ada).await), id_of(&first), "the owner goes on");

    let elsewhere = call(&eve).await;
    assert_ne!(id_of(&elsewhere), id_of(&first), "a key of another tenant is another key");
    assert_eq!(ledger.starts("mine").len(), 2);
    program.check_store().await;
}

// A09, A22: a stream that is cut, or a connection cut before any byte, and the client that asks the same again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_and_a_reissue_are_one_run() {
    let scene = Scene::start(SOON, "").await;
    for caller in scene.of_each_era().await {
        let era = if caller.is_modern() { "modern" } else { "legacy" };
        let in_stream = async {
            let text = format!("{era} in the stream");
            let call = json!({"name": "slow", "arguments": {"seconds": 1.5, "text": text}});
            let mut cut = caller.send(call.clone()).await;
            assert_eq!(cut.response_head().await.header("content-type"), Some("text/event-stream"));
            // The empty event of a legacy stream comes before the first sign of life.
            while !cut.block().await.expect("a sign of life").starts_with(':') {}
            cut.cut();
            let again = caller.ask(call).await;
            (again, text)
        };
        let before_any_byte = async {
            let text = format!("{era} before any byte");
            let call = json!({"name": "slow", "arguments": {"seconds": 1.0, "text": text}, "_meta": {"durable-mcp/wait": 20000}});
            let cut = caller.send(call.clone()).await;
            scene.ledger.wait_for_start(&text, DEADLINE).await;
            cut.cut();
            let again = caller.ask(call).await;
            (again, text)
        };
        let after_the_end = async {
            let text = format!("{era} after the end");
            let call = json!({"name": "slow", "arguments": {"seconds": 0.4, "text": text}});
            let mut cut = caller.send(call.clone()).await;
            cut.response_head().await;
            cut.cut();
            scene.ledger.wait_for_done(&text, DEADLINE).await;
            scene.wait_for_state(&scene.execution_of(&text), "completed").await;
            let again = caller.ask(call).await;
            (again, text)
        };
        let (one, two, three) = tokio::join!(in_stream, before_any_byte, after_the_end);
        for (again, wanted) in [one, two, three] {
            assert_eq!(text(&again), format!("slept {wanted}"));
            assert_eq!(execution(&again)["attached"], true, "{again}");
            assert_eq!(scene.ledger.starts(&wanted).len(), 1, "{wanted}");
        }
    }
    scene.program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_while_the_call_is_stored_leaves_no_call_behind() {
    let scene = Scene::start("", "").await;
    let caller = scene.modern();
    for round in 0..40 {
        let wanted = format!("cut-{round}");
        let call =
            json!({"name": "append", "arguments": {"text": wanted}, "_meta": {"durable-mcp/idempotencyKey": wanted}});
        let cut = caller.send(call.clone()).await;
        // Somewhere between the arrival and the answer.
        gap(Duration::from_micros(150 * (round % 20))).await;
        cut.cut();
        if round % 2 == 0 {
            assert_eq!(text(&caller.ask(call).await), format!("appended {wanted}"));
            assert_eq!(scene.ledger.starts(&wanted).len(), 1, "{wanted}");
        }
    }
    // Whatever was stored comes to its end at once, long before its lease would run out.
    eventually_async("somebody works on everything", Duration::from_secs(10), async || {
        scene.program.executions().await.iter().all(|row| row["state"] == "completed")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_answer_that_was_cut_in_the_middle_was_not_delivered() {
    let head = "[server]\nresponse = \"json\"\nmax_body_bytes = \"64MB\"\n[limits]\nargument_bytes = \"64MB\"\n";
    let scene = Scene::start(head, "").await;
    // More than what fits into the buffers between the program and a client that reads nothing.
    let wanted = "x".repeat(6_000_000);
    let caller = scene.modern();
    let call = json!({"name": "append", "arguments": {"text": wanted}});
    let mut cut = caller.send(call.clone()).await;
    cut.response_head().await;
    cut.cut();
    let again = caller.ask(call).await;
    assert_eq!(text(&again).len(), wanted.len() + "appended ".len());
    assert_eq!(scene.ledger.starts(&wanted).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reissue_after_a_kill_of_the_server_is_one_run() {
    let mut scene = Scene::start(SOON, "").await;
    let ended = |era: &str| json!({"name": "slow", "arguments": {"seconds": 0.3, "text": format!("{era} ended")}});
    let running = |era: &str| json!({"name": "slow", "arguments": {"seconds": 60, "text": format!("{era} running")}});
    for caller in scene.of_each_era().await {
        let era = if caller.is_modern() { "modern" } else { "legacy" };
        let mut cut = caller.send(ended(era)).await;
        cut.response_head().await;
        cut.cut();
        scene.ledger.wait_for_done(&format!("{era} ended"), DEADLINE).await;
        scene.wait_for_state(&scene.execution_of(&format!("{era} ended")), "completed").await;
    }
    let mut streams = Vec::new();
    for caller in scene.of_each_era().await {
        let era = if caller.is_modern() { "modern" } else { "legacy" };
        let mut stream = caller.send(running(era)).await;
        stream.response_head().await;
        scene.ledger.wait_for_start(&format!("{era} running"), DEADLINE).await;
        streams.push(stream);
    }
    scene.program = scene.program.restart().await;
    drop(streams);
    for caller in scene.of_each_era().await {
        let era = if caller.is_modern() { "modern" } else { "legacy" };
        let stored = caller.ask(ended(era)).await;
        assert_eq!(text(&stored), format!("slept {era} ended"));
        assert_eq!(execution(&stored)["attached"], true);
        assert_eq!(scene.ledger.starts(&format!("{era} ended")).len(), 1);
        let lost = caller.ask(running(era)).await;
        assert_eq!(execution(&lost)["state"], "unknown", "{lost}");
        assert_eq!(execution(&lost)["attached"], true);
        assert_eq!(scene.ledger.starts(&format!("{era} running")).len(), 1);
    }
    scene.program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_callers_that_stay_are_two_runs() {
    let scene = Scene::start("", "").await;
    for caller in scene.of_each_era().await {
        let wanted = if caller.is_modern() { "modern" } else { "legacy" };
        let call = || caller.call("slow", json!({"seconds": 0.6, "text": wanted}));
        let (one, two) = tokio::join!(call(), call());
        assert_ne!(id_of(&one), id_of(&two));
        assert_eq!((&execution(&one)["attached"], &execution(&two)["attached"]), (&json!(false), &json!(false)));
        assert_eq!(scene.ledger.starts(wanted).len(), 2);
        // One after the other, each answered: two calls that the caller meant.
        assert_ne!(id_of(&call().await), id_of(&one));
        assert_eq!(scene.ledger.starts(wanted).len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_official_client_that_times_out_and_calls_again_gets_one_run() {
    skip_loudly!(support::clients_are_set_up());
    let (served, wrapped) = (Scene::start("", "").await, Setup::new(""));
    let (http, stdio) = (served.program.target(), wrapped.wrap(&kit(wrapped.folder())));
    let wrapped_ledger = Ledger::in_folder(wrapped.folder());
    tokio::join!(times_out_and_calls_again(&http, &served.ledger), times_out_and_calls_again(&stdio, &wrapped_ledger));
    served.program.check_store().await;
    wrapped.check_store().await;

    async fn times_out_and_calls_again(target: &support::client::Target, ledger: &Ledger) {
        let client = Client::connect(Kind::Sdk1, target).await;
        let call = Call::new("slow", json!({"seconds": 3, "text": "impatient"}));
        let hasty = client.start(call.clone().timeout_ms(1_000)).await.answer().await.unwrap_err();
        assert_eq!(hasty.code, -32001, "{hasty:?}");
        let answer = client.start(call.timeout_ms(20_000)).await.answer().await.unwrap();
        assert_eq!(answer["content"][0]["text"], "slept impatient");
        assert_eq!((ledger.starts("impatient").len(), ledger.dones("impatient")), (1, 1));
        assert_eq!(ledger.cancels("impatient"), 0);
        client.close().await;
    }
}

// A50: a client that numbers every call 1 and shares one session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_calls_with_one_id_in_one_session_each_get_their_own_answer() {
    let scene = Scene::start("", "").await;
    for caller in scene.of_each_era().await {
        let era = if caller.is_modern() { "modern" } else { "legacy" };
        for round in 0..100 {
            let call = async |which: &str| {
                let wanted = format!("{era} {round} {which}");
                let answer = caller.call("slow", json!({"seconds": 0.005, "text": wanted})).await;
                assert_eq!(answer["id"], 1);
                assert_eq!(text(&answer), format!("slept {wanted}"));
            };
            tokio::join!(call("one"), call("two"));
        }
    }
    assert_eq!(scene.ledger.all_starts().len(), 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_calls_with_one_id_over_one_pipe_each_get_their_own_answer() {
    let setup = Setup::new("");
    let mut pipe = RawStdio::open(&setup.wrap(&kit(setup.folder())), "2025-11-25").await;
    let answers = |pipe: &RawStdio| -> Vec<Value> {
        let messages = pipe.messages().into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        messages.filter(|message| message["id"] == 1).collect()
    };
    for round in 0..100 {
        for which in ["one", "two"] {
            let params = json!({"name": "slow", "arguments": {"seconds": 0.005, "text": format!("{round} {which}")}});
            pipe.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()).await;
        }
        eventually("both answers", DEADLINE, || answers(&pipe).len() == 2 * (round + 1)).await;
        let all = answers(&pipe);
        let mut texts: Vec<&str> = all[2 * round..].iter().map(text).collect();
        texts.sort_unstable();
        assert_eq!(texts, [format!("slept {round} one"), format!("slept {round} two")]);
    }
}

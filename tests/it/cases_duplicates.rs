//! Field cases of kind K3 and A07: calls sent twice, resent after a loss, dispatched twice, told apart too little or too
//! much, and a client whose frame breaks in the middle. Keys and re-issues as such are in `identity`.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cases_scene::{Scene, execution, gap, id_of, text};
use crate::support::ledger::Ledger;
use crate::support::program::Setup;
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::kit_stdio;
use crate::support::{DEADLINE, eventually_async};

// A07: half a frame is dropped alone; the next call is answered at once. So is noise of the server behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_frame_is_refused_and_the_next_call_is_answered() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let noisy = kit_stdio(&["--garbage", "--ledger", ledger.path()]);
    let mut pipe = RawStdio::open(&setup.wrap(&noisy), "2025-11-25").await;
    pipe.call(json!("warm"), "append", json!({"text": "warm"})).await;
    let broken = [
        &br#"{"jsonrpc":"2.0","id":1,"method":"tools/ca"#[..],
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append","arguments":{"text":"half"#,
        b"\xff\xfe\x00{",
        br#"}{"#,
    ];
    for (n, half) in broken.iter().enumerate() {
        let begun = Instant::now();
        pipe.send_bytes(half).await;
        pipe.send_bytes(b"\n").await;
        let good = pipe.call(json!(format!("good {n}")), "append", json!({"text": format!("good {n}")})).await;
        assert_eq!(text(&good), format!("appended good {n}"));
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
    let refusals = pipe.messages().iter().filter(|line| line.contains("-32700")).count();
    assert_eq!(refusals, broken.len(), "each is refused once: {:?}", pipe.messages());
    assert!(ledger.starts("half").is_empty());
}

// A08: a client that sends every call twice, a few milliseconds apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_sent_twice_at_once_is_one_run_where_the_tool_coalesces() {
    let policy = "[servers.kit.tools.slow]\nresponse = \"sse\"\nidempotency = { unkeyed = \"coalesce\" }\n\
        [servers.kit.tools.append]\nidempotency = { unkeyed = \"coalesce\" }\n";
    let scene = Scene::start("", policy).await;
    let one_run = |one: &Value, two: &Value, wanted: &str| {
        assert_eq!(id_of(one), id_of(two));
        assert_eq!(text(one), text(two));
        let attached = [one, two].map(|answer| execution(answer)["attached"] == true);
        assert!(attached[0] != attached[1], "one of them is told that it is the duplicate");
        assert_eq!(scene.ledger.starts(wanted).len(), 1);
    };
    for caller in scene.of_each_era().await {
        // The twin arrives while the tool runs.
        for round in 0..10 {
            let wanted = format!("{} {round}", caller.is_modern());
            let gate = scene.program.setup.folder().join(&wanted);
            let call = json!({"name": "slow", "arguments": {"seconds": 0, "text": wanted, "gate": gate}});
            let mut twins = [caller.send(call.clone()).await, {
                gap(Duration::from_millis(round % 5)).await;
                caller.send(call).await
            }];
            let mut answers = Vec::new();
            for twin in &mut twins {
                // The stream of an answer opens once the call is stored or has found the one that is.
                assert_eq!(twin.response_head().await.status, 200);
            }
            std::fs::write(&gate, "").unwrap();
            for twin in &mut twins {
                let answer = twin.message().await.expect("an answer");
                answers.push(serde_json::from_str(&answer.data).unwrap());
            }
            one_run(&answers[0], &answers[1], &wanted);
        }
        // The twin arrives when the first has mostly been answered, which is a duplicate for 100 ms. A machine that
        // took longer for both showed nothing.
        let (mut rounds, end) = (0, Instant::now() + DEADLINE);
        for nth in 0.. {
            let wanted = format!("{} at once {nth}", caller.is_modern());
            let call = json!({"name": "append", "arguments": {"text": wanted}});
            let begun = Instant::now();
            let (one, two) = tokio::join!(caller.ask(call.clone()), async {
                gap(Duration::from_millis(nth % 5)).await;
                caller.ask(call.clone()).await
            });
            if begun.elapsed() < Duration::from_millis(100) {
                one_run(&one, &two, &wanted);
                rounds += 1;
            }
            if rounds == 10 {
                break;
            }
            assert!(Instant::now() < end, "{rounds} rounds were quick enough to show anything");
        }
    }
    // A call that is meant again comes later, and runs.
    let call = json!({"name": "append", "arguments": {"text": "meant"}});
    let first = id_of(&scene.modern().ask(call.clone()).await);
    eventually_async("it runs again", DEADLINE, async || id_of(&scene.modern().ask(call.clone()).await) != first).await;
    assert_eq!(scene.ledger.starts("meant").len(), 2);
}

// A09: the connection is lost after the commit, and the client sends the call up to four times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_resent_after_a_lost_answer_gets_the_stored_outcome() {
    let scene = Scene::start("", "").await;
    for caller in scene.of_each_era().await {
        let wanted = format!("resent-{}", caller.is_modern());
        let call = json!({"name": "append", "arguments": {"text": wanted}, "idempotencyKey": wanted});
        let lost = caller.send(call.clone()).await;
        scene.ledger.wait_for_done(&wanted, DEADLINE).await;
        lost.cut();
        for _ in 0..3 {
            let again = caller.ask(call.clone()).await;
            assert_eq!(text(&again), format!("appended {wanted}"));
            assert_eq!(execution(&again)["attached"], true);
        }
        assert_eq!(scene.ledger.starts(&wanted).len(), 1);

        // Without a key, and with an outcome that nobody knows: told, never run blindly again.
        let wanted = format!("lost {}", caller.is_modern());
        let call = json!({"name": "crash_after_write", "arguments": {"text": wanted}});
        let answer = caller.ask(call).await;
        assert_eq!(execution(&answer)["state"], "unknown");
        assert_eq!(scene.ledger.starts(&wanted).len(), 1);
    }
}

// A10: an error of the tool is its answer; it is not dispatched again, by no other way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_committed_and_answered_an_error_is_dispatched_once() {
    let scene = Scene::start("", "").await;
    for tool in ["flaky", "flaky_idempotent"] {
        let answer = scene.modern().call(tool, json!({"name": tool, "failures": 5})).await;
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(text(&answer), format!("{tool} failed 1 of 5 times"));
        assert_eq!(execution(&answer)["state"], "completed");
        assert_eq!(scene.ledger.starts(tool).len(), 1);
    }
    // A call that can not be routed is told apart from one that failed: nothing is stored for it.
    let unrouted = scene.modern().call("flakey", json!({"name": "x", "failures": 0})).await;
    assert_eq!(unrouted["error"]["code"], -32602, "{unrouted}");
    assert_eq!(scene.program.check_store().await.executions.len(), 2);
}

// A12: the tool gets a key of its own for what it writes elsewhere, the same on each attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_argument_reaches_the_tool_alike_on_every_attempt() {
    // The fixture writes its argument `name` into the ledger, so that is the argument that carries the key here.
    let policy = "[servers.kit.tools.flaky_idempotent]\nkey_argument = \"name\"\n\
        retry = { initial_interval = \"10ms\", on = [\"tool_error\"] }\n";
    let scene = Scene::start("", policy).await;
    let filled = scene.modern().call("flaky_idempotent", json!({"failures": 2})).await;
    let id = id_of(&filled);
    assert_eq!(text(&filled), format!("{id} succeeded at run 3"), "an absent key is filled with the effect key");
    let starts = scene.ledger.starts(&id);
    assert_eq!(starts.len(), 3);
    assert!(starts.iter().all(|start| start.key.as_deref() == Some(&id)), "{starts:?}");
    let tokens: Vec<_> = starts.iter().filter_map(|start| start.token.as_deref()).collect();
    assert_eq!(tokens, ["1", "2", "3"], "each attempt has its own fencing token");

    let given = scene.modern().call("flaky_idempotent", json!({"name": "pay-7", "failures": 2})).await;
    assert_eq!(text(&given), "pay-7 succeeded at run 3", "a caller's key passes unchanged");
    assert_eq!(scene.ledger.starts("pay-7").len(), 3);
    let again = scene.modern().keyed("pay-7", "flaky_idempotent", json!({"failures": 2})).await;
    assert_eq!(id_of(&again), id_of(&given), "the argument is the key");
    assert_eq!(scene.ledger.starts("pay-7").len(), 3);
}

// A14: what looks alike is told apart, and what is meant twice is done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_lives_for_its_time_and_an_intended_repeat_runs() {
    let policy = "[servers.kit.tools.append]\nidempotency = { ttl = \"700ms\" }\n";
    let scene = Scene::start("", policy).await;
    let caller = scene.modern();
    let call = async |key: &str, text: &str| id_of(&caller.keyed(key, "append", json!({"text": text})).await);
    let first = call("k-1", "pay 10").await;
    assert_eq!(call("k-1", "pay 10").await, first, "within its time a key stands for its call");
    assert_ne!(call("k-2", "pay 10.00").await, first, "nearly the same is another call");
    let forced = call("k-3", "pay 10").await;
    assert_ne!(forced, first, "a new key orders the same once more");
    assert_eq!(scene.ledger.starts("pay 10").len(), 2);

    let mut later = first.clone();
    eventually_async("the key expires", DEADLINE, async || {
        later = call("k-1", "pay 10").await;
        later != first
    })
    .await;
    assert_eq!(scene.ledger.starts("pay 10").len(), 3);
    let starts: Vec<Value> = scene.program.executions().await;
    let ended = |id: &str| starts.iter().find(|row| row["id"] == id).unwrap();
    assert!(ended(&later)["created_at"].as_str() > ended(&first)["ended_at"].as_str());
    scene.program.check_store().await;
}

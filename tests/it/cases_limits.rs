//! Field cases A44 and A51: bursts before a server that takes two calls at once, and tenants that ask for each other's
//! results.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::cases_scene::{Caller, Scene, execution, id_of, kit, text};
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};

const OVERLOAD: i64 = -31429;
/// Rounds of A51, as the case asks for, and so many of them at once: every call has the JSON-RPC id 1.
const ROUNDS: usize = 1_000;
const ROUNDS_AT_ONCE: usize = 8;

// A44: two run, five wait, the rest is told to come again; nothing of the rest was stored or started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_runs_up_to_the_limit_waits_up_to_the_queue_and_is_refused_beyond() {
    let limits = "concurrency = 2\nqueue = 5\n";
    let (scene, hurried) = tokio::join!(
        Scene::start("", limits),
        Scene::start("", "concurrency = 1\nqueue = 5\nqueue_timeout = \"200ms\"\n"),
    );
    let caller = scene.modern();
    let calls = (0..20).map(|n| {
        let caller = caller.clone();
        async move { caller.call("slow", json!({"seconds": 1, "text": format!("burst {n}")})).await }
    });
    let answers = futures_util::future::join_all(calls).await;
    let refused: Vec<&Value> = answers.iter().filter(|answer| answer["error"].is_object()).collect();
    for refusal in &refused {
        assert_eq!(refusal["error"]["code"], OVERLOAD, "{refusal}");
        assert_eq!(refusal["error"]["data"]["retryable"], true, "{refusal}");
    }
    assert_eq!((answers.len() - refused.len(), refused.len()), (7, 13));
    assert_eq!(scene.ledger.all_starts().len(), 7);
    let (mut at_once, mut most) = (0, 0);
    for line in scene.ledger.lines() {
        at_once = if line.starts_with("start ") { at_once + 1 } else { at_once - 1 };
        most = most.max(at_once);
    }
    assert_eq!(most, 2, "in flight at the server");
    assert_eq!(scene.program.check_store().await.executions.len(), 7);
    // The places are free again.
    let after = (0..7).map(|n| {
        let caller = caller.clone();
        async move { caller.call("append", json!({"text": format!("after {n}")})).await }
    });
    for answer in futures_util::future::join_all(after).await {
        assert!(text(&answer).starts_with("appended after"));
    }

    // Who waits too long is told so, and was not started.
    let caller = hurried.modern();
    let running = async { caller.call("slow", json!({"seconds": 1.5, "text": "holds the slot"})).await };
    let waiting = async {
        hurried.ledger.wait_for_start("holds the slot", Duration::from_secs(20)).await;
        caller.call("append", json!({"text": "waits"})).await
    };
    let (running, waiting) = tokio::join!(running, waiting);
    assert_eq!(text(&running), "slept holds the slot");
    assert_eq!(waiting["error"]["code"], OVERLOAD, "{waiting}");
    assert!(hurried.ledger.starts("waits").is_empty());
}

// A51: two credentials, the same JSON-RPC ids, the same arguments, many rounds; and an id that is somebody else's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_sees_the_results_of_another_principal() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let policy = "wait = \"20s\"\n[servers.kit.tools.append]\nidempotency = { unkeyed = \"coalesce\" }\n";
    let server = server_table("kit", &kit(setup.folder()), policy);
    let setup = setup
        .config(&format!("[auth]\nmode = \"token\"\n[builtin]\ndurable_cancel = true\ndurable_list = true\n{server}"));
    let program = setup.serve().await;
    let token = async |principal: &str| {
        let made = setup.cli(&["token", "create", "--principal", principal]).await;
        assert!(made.status.success(), "{}", made.stderr);
        Caller::modern(program.url()).header("Authorization", &format!("Bearer {}", made.stdout.trim()))
    };
    let (ada, bob) = (token("ada").await, token("bob").await);
    let rounds = futures_util::stream::iter(0..ROUNDS).for_each_concurrent(ROUNDS_AT_ONCE, async |round| {
        // The same arguments from both: two executions, never one.
        let shared = format!("round {round}");
        let own = |who: &str| json!({"name": "echo", "arguments": {"who": who, "round": round}});
        let (a, b, own_a, own_b) = tokio::join!(
            ada.call("append", json!({"text": shared})),
            bob.call("append", json!({"text": shared})),
            ada.ask(own("ada")),
            bob.ask(own("bob")),
        );
        assert_ne!(id_of(&a), id_of(&b));
        assert_eq!(
            (text(&a), text(&b)),
            (format!("appended {shared}").as_str(), format!("appended {shared}").as_str())
        );
        for (answer, who) in [(&own_a, "ada"), (&own_b, "bob")] {
            assert_eq!(text(answer), json!({"who": who, "round": round}).to_string());
        }
        if round % 10 == 0 {
            let foreign = bob.call("durable_result", json!({"execution_id": id_of(&a)})).await;
            assert!(foreign["error"].is_object(), "{foreign}");
        }
    });
    let since = std::time::Instant::now();
    rounds.await;
    eprintln!("{ROUNDS} rounds of two principals took {:?}", since.elapsed());
    assert_eq!(ledger.all_starts().len(), 2 * ROUNDS);

    let done = id_of(&ada.call("append", json!({"text": "ada's"})).await);
    let mut running = ada.send(json!({"name": "slow", "arguments": {"seconds": 1.5, "text": "running"}})).await;
    ledger.wait_for_start("running", Duration::from_secs(20)).await;
    let runs = ledger.starts("running")[0].key.clone().unwrap();
    let missing = "01938c5e-0000-7000-8000-000000000000";
    for tool in ["durable_result", "durable_cancel"] {
        let about_missing = bob.call(tool, json!({"execution_id": missing})).await;
        assert!(about_missing["error"].is_object(), "{about_missing}");
        for foreign in [&done, &runs] {
            let about_foreign = bob.call(tool, json!({"execution_id": foreign})).await;
            let as_missing = about_foreign.to_string().replace(foreign.as_str(), missing);
            assert_eq!(as_missing, about_missing.to_string(), "{tool}: a foreign id is as if it were missing");
        }
    }
    for list in ["durable_list", "durable_result"] {
        let listed = bob.call(list, json!({})).await;
        assert!(!text(&listed).contains(&runs) && !text(&listed).contains(&done), "{listed}");
        assert!(text(&ada.call(list, json!({})).await).contains(&runs), "the owner sees it");
    }
    let answer = running.response().await.answer();
    assert_eq!(execution(&answer)["state"], "completed", "nobody else stopped it");
    let nobody = Caller::modern(program.url());
    let refused = nobody.request(json!(1), json!({"name": "echo", "arguments": {}})).exchange(program.url()).await;
    assert_eq!(refused.status, 401);
    program.check_store().await;
}

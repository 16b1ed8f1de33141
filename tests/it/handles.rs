//! Calls longer than their caller waits: the handle, the work that goes on, the stored result; and callers that ask for
//! the id at once. In every SDK, also for a tool whose `outputSchema` the SDK enforces.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::skip_loudly;
use crate::support::client::{Call, Client, Kind, Mode, Target};
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup, server_table};
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::kit_stdio;
use crate::support::{self, DEADLINE};

/// One of each SDK and each era.
const SDKS: [Kind; 6] = [
    Kind::Sdk1,
    Kind::Client2(Mode::Legacy),
    Kind::Client2(Mode::Auto),
    Kind::Python(Mode::Legacy),
    Kind::Python(Mode::Auto),
    Kind::Rmcp(Mode::Auto),
];

struct Scene {
    setup: Setup,
    ledger: Ledger,
}

/// `kit` over stdio behind a program with this configuration.
fn scene(defaults: &str, server: &str) -> Scene {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--era", "both", "--ledger", ledger.path()]);
    let setup = setup.config(&format!("{defaults}\n{}", server_table("kit", &kit, server)));
    Scene { setup, ledger }
}

/// A client that has read the list, as all do: from then on the SDKs hold results against the output schemas.
async fn connected(kind: Kind, target: &Target) -> Client {
    let client = Client::connect(kind, &target.clone().named(&format!("{kind:?}"))).await;
    assert!(client.list().await.iter().any(|tool| tool["name"] == "slow_structured"));
    client
}

fn execution(result: &Value) -> &Value {
    &result["_meta"]["durable-mcp/execution"]
}

/// What cannot be taken for the tool's result, by a script or by a model.
fn check_handle(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none_or(Value::is_null), "{result}");
    assert_eq!(execution(result)["state"], "leased", "{result}");
    let id = execution(result)["id"].as_str().unwrap().to_owned();
    let text = result["content"][0]["text"].as_str().unwrap();
    for part in ["Nothing failed", "still running", &id, "durable_result", "repeat exactly the same call"] {
        assert!(text.contains(part), "no {part:?} in {text:?}");
    }
    id
}

fn check_structured(result: &Value, n: u32, id: &str) {
    assert_eq!(result["structuredContent"]["n"].as_f64(), Some(f64::from(n)), "{result}");
    assert_ne!(result["isError"], true, "{result}");
    assert_eq!((&execution(result)["id"], &execution(result)["state"]), (&json!(id), &json!("completed")), "{result}");
}

async fn result_of(client: &Client, id: &str) -> Value {
    client.call("durable_result", json!({"execution_id": id})).await.unwrap()
}

/// Two calls over the budget: the first is fetched and repeated, the second waits for what happens to the server.
async fn spends_its_budget(client: &Client, ledger: &Ledger, name: &str) -> (Value, String) {
    let arguments = |text: &str| json!({"seconds": 1.2, "n": 4, "text": text});
    let (first, second) = (arguments(&format!("{name} one")), arguments(&format!("{name} two")));
    let calls = [client.call("slow_structured", first.clone()), client.call("slow_structured", second.clone())];
    let ids: Vec<String> = join_all(calls).await.into_iter().map(|answer| check_handle(&answer.unwrap())).collect();

    // Waits for the end on its own budget, which is longer than what is left.
    let fetched = client.call("durable_result", json!({"execution_id": ids[0], "wait_ms": 20_000})).await.unwrap();
    check_structured(&fetched, 4, &ids[0]);
    ledger.wait_for_done(&format!("{name} two"), DEADLINE).await;
    (second, ids[1].clone())
}

async fn repeats(client: &Client, ledger: &Ledger, (name, arguments, id): (&str, &Value, &str)) {
    // The repeat first: once an answer about the end is written whole, the same call is a new one.
    let repeated = client.call("slow_structured", arguments.clone()).await.unwrap();
    check_structured(&repeated, 4, id);
    assert_eq!(execution(&repeated)["attached"], true);
    check_structured(&result_of(client, id).await, 4, id);
    for text in [format!("{name} one"), format!("{name} two")] {
        assert_eq!((ledger.starts(&text).len(), ledger.dones(&text)), (1, 1), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spent_budget_gives_every_sdk_a_handle_and_later_the_result_also_after_a_kill() {
    skip_loudly!(support::clients_are_set_up());
    let Scene { setup, ledger } = scene("[defaults]\nwait = \"300ms\"", "");
    let program = setup.serve().await;
    let (target, ledger) = (program.target(), &ledger);
    let before = SDKS.map(|kind| {
        let target = &target;
        async move {
            let client = connected(kind, target).await;
            let (arguments, id) = spends_its_budget(&client, ledger, &format!("{kind:?}")).await;
            client.kill().await;
            (kind, arguments, id)
        }
    });
    let before = join_all(before).await;
    // What the tool wrote last may still be on its way into the store.
    support::eventually_async("all results are stored", DEADLINE, async || {
        program.executions().await.iter().all(|row| row["state"] == "completed")
    })
    .await;
    let program = program.restart().await;
    let again = before.iter().map(|(kind, arguments, id)| {
        let target = program.target();
        async move {
            let client = connected(*kind, &target).await;
            repeats(&client, ledger, (&format!("{kind:?}"), arguments, id)).await;
            client.close().await;
        }
    });
    join_all(again).await;
    let checked = program.check_store().await;
    assert_eq!(checked.executions.len(), 2 * SDKS.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spent_budget_in_wrap_gives_a_handle_and_the_next_wrap_has_the_result() {
    let Scene { setup, ledger } = scene("[defaults]\nwait = \"200ms\"", "");
    let target = setup.wrap(&kit_stdio(&["--ledger", ledger.path()]));
    let arguments = json!({"seconds": 0.8, "n": 4, "text": "wrapped"});
    let mut first = RawStdio::open(&target, "2025-11-25").await;
    let handle = first.call(json!(1), "slow_structured", arguments.clone()).await;
    let id = check_handle(&handle["result"]);
    let unfinished = first.call(json!(2), "durable_result", json!({})).await;
    assert!(unfinished["result"]["content"][0]["text"].as_str().unwrap().contains(&id), "{unfinished}");
    let fetched = first.call(json!(3), "durable_result", json!({"execution_id": id, "wait_ms": 0})).await;
    assert_eq!(check_handle(&fetched["result"]), id);
    let repeated = first.call(json!(4), "slow_structured", arguments.clone()).await;
    assert_eq!(check_handle(&repeated["result"]), id);
    support::eventually_async("the result is stored", DEADLINE, async || {
        setup.executions().await[0]["state"] == "completed"
    })
    .await;
    first.process.kill().await;

    let mut second = RawStdio::open(&target, "2025-11-25").await;
    let repeated = second.call(json!(1), "slow_structured", arguments).await;
    check_structured(&repeated["result"], 4, &id);
    let fetched = second.call(json!(2), "durable_result", json!({"execution_id": id})).await;
    check_structured(&fetched["result"], 4, &id);
    assert_eq!(ledger.starts("wrapped").len(), 1);
    assert_eq!(setup.check_store().await.executions.len(), 1);
}

/// The id at once: what it looks like, and that the work goes on to a result that can be fetched.
async fn answers_at_once(client: &Client, ledger: &Ledger, meta: Option<Value>) {
    for (tool, has_output_schema) in [("slow", false), ("slow_structured", true)] {
        let text = format!("{:?} {tool}", client.kind());
        let mut call = Call::new(tool, json!({"seconds": 0.5, "n": 4, "text": text}));
        call.meta = meta.clone();
        let accepted = client.start(call).await.answer_within(DEADLINE).await;
        let accepted = accepted.unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let id = execution(&accepted)["id"].as_str().unwrap().to_owned();
        assert_ne!(execution(&accepted)["state"], "completed", "{accepted}");
        assert!(accepted["content"][0]["text"].as_str().unwrap().contains(&id), "{accepted}");
        if has_output_schema {
            // The SDKs refuse any other result without structured content.
            assert_eq!(accepted["isError"], true, "{accepted}");
            assert!(accepted.get("structuredContent").is_none_or(Value::is_null), "{accepted}");
            assert!(accepted["content"][0]["text"].as_str().unwrap().contains("Nothing failed"), "{accepted}");
        } else {
            assert_ne!(accepted["isError"], true, "{accepted}");
            assert_eq!(accepted["structuredContent"]["execution_id"], json!(id), "{accepted}");
        }
        ledger.wait_for_done(&text, DEADLINE).await;
        let fetched = result_of(client, &id).await;
        assert_eq!(execution(&fetched)["state"], "completed", "{fetched}");
        assert_eq!(fetched["structuredContent"]["n"].as_f64(), has_output_schema.then_some(4.0), "{fetched}");
        assert_eq!(ledger.starts(&text).len(), 1);
    }
}

async fn every_sdk_gets_the_id_at_once(program: &Program, ledger: &Ledger, meta: Option<Value>) {
    join_all(SDKS.map(|kind| {
        let meta = meta.clone();
        async move {
            let client = connected(kind, &program.target()).await;
            answers_at_once(&client, ledger, meta).await;
            client.close().await;
        }
    }))
    .await;
    let checked = program.check_store().await;
    assert_eq!(checked.executions.len(), 2 * SDKS.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_of_zero_in_meta_is_answered_with_the_id_at_once() {
    skip_loudly!(support::clients_are_set_up());
    let Scene { setup, ledger } = scene("", "");
    let program = setup.serve().await;
    every_sdk_gets_the_id_at_once(&program, &ledger, Some(json!({"durable-mcp/wait": 0}))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_of_zero_by_configuration_gives_stock_clients_the_id_at_once() {
    skip_loudly!(support::clients_are_set_up());
    let zero = "tools.slow.wait = \"0s\"\ntools.slow_structured.wait = \"0s\"";
    let Scene { setup, ledger } = scene("", zero);
    let program = setup.serve().await;
    every_sdk_gets_the_id_at_once(&program, &ledger, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_in_meta_wins_over_the_configured_one() {
    let Scene { setup, ledger } = scene("", "tools.slow.wait = \"0s\"");
    let program = setup.serve().await;
    let client = Client::connect(Kind::Rmcp(Mode::Auto), &program.target()).await;
    let call = |text: &str, wait_ms: u32| {
        let call = Call::new("slow", json!({"seconds": 0.3, "text": text}));
        call.meta(json!({"durable-mcp/wait": wait_ms}))
    };
    let answer = client.start(call("long", 20_000)).await.answer().await.unwrap();
    assert_eq!(answer["content"][0]["text"], "slept long");
    let handle = client.start(call("short", 50)).await.answer_within(Duration::from_secs(20)).await.unwrap();
    check_handle(&handle);
    ledger.wait_for_done("short", DEADLINE).await;
    client.close().await;
}

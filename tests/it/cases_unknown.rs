//! Calls whose outcome was never learnt: what the answer leads its reader to, the late result, the rule that asks the
//! server, the one more attempt that a person orders. How calls get lost is in the crash tests.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cases_scene::{Caller, Scene, execution, id_of, kit, text};
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};
use crate::support::raw_stdio::RawStdio;
use crate::support::{DEADLINE, eventually_async};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_about_an_unknown_outcome_leads_to_a_check_and_to_the_right_next_step() {
    let scene = Scene::start("", "").await;
    for caller in scene.of_each_era().await {
        let wanted = if caller.is_modern() { "modern" } else { "legacy" };
        let unkeyed = caller.call("crash_after_write", json!({"text": wanted})).await;
        assert_eq!(unkeyed["result"]["isError"], true, "{unkeyed}");
        assert_eq!(unkeyed["result"].get("structuredContent"), None);
        assert_eq!(execution(&unkeyed)["state"], "unknown");
        let told = text(&unkeyed);
        let next = [
            "not known",
            "may or may not have taken effect",
            "NOT run again",
            "Check first",
            "call again",
            "durable_result",
        ];
        for part in next.iter().copied().chain([id_of(&unkeyed).as_str()]) {
            assert!(told.contains(part), "{part:?} is missing: {told}");
        }
        assert!(!told.contains("durable_retry"), "a tool that is not offered: {told}");

        let keyed = caller.keyed(wanted, "crash_after_write", json!({"text": format!("{wanted} keyed")})).await;
        assert!(text(&keyed).contains("call again with a new idempotency key"), "{keyed}");
        // Asked again, the same honest answer; nothing runs.
        let again = caller.keyed(wanted, "crash_after_write", json!({"text": format!("{wanted} keyed")})).await;
        assert_eq!(text(&again), text(&keyed));
        let asked = caller.call("durable_result", json!({"execution_id": id_of(&keyed)})).await;
        assert_eq!(text(&asked), text(&keyed));
        assert_eq!(scene.ledger.starts(wanted).len(), 1);
        assert_eq!(scene.ledger.starts(&format!("{wanted} keyed")).len(), 1);
    }
    let refused = scene.modern().call("durable_retry", json!({"execution_id": "x", "reason": "y"})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    scene.program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_result_under_the_newest_token_completes_an_unknown_call() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let head = "[lease]\nttl = \"800ms\"\n[scheduler]\ninterval = \"100ms\"\n";
    let server = server_table("kit", &kit(setup.folder()), "");
    let setup = setup.config(&format!("{head}{server}"));
    let stopped = setup.serve().await;
    let other = setup.serve().await;
    let gate = setup.folder().join("gate");
    let call = json!({"text": "late", "seconds": 0, "gate": gate});
    let waiting = Caller::modern(stopped.url());
    let mut waiting = waiting.send(json!({"name": "slow", "arguments": call})).await;
    ledger.wait_for_start("late", DEADLINE).await;
    let id = ledger.starts("late")[0].key.clone().unwrap();
    stopped.stop_outside_of_transactions().await;
    let asking = Caller::modern(other.url());
    let unknown = asking.call("durable_result", json!({"execution_id": id})).await;
    assert_eq!(execution(&unknown)["state"], "unknown", "{unknown}");
    assert!(text(&unknown).contains("A late result is still accepted"), "{unknown}");
    std::fs::write(&gate, "").unwrap();
    ledger.wait_for_done("late", DEADLINE).await;
    stopped.process.signal(Signal::CONT);
    // The caller that stayed is told, and so is whoever asks elsewhere.
    let told = waiting.response().await.answer();
    let mut late = Value::Null;
    eventually_async("the late result counts", DEADLINE, async || {
        late = asking.call("durable_result", json!({"execution_id": id})).await;
        execution(&late)["state"] == "completed"
    })
    .await;
    assert_eq!(text(&late), "slept late");
    assert!(["slept late", text(&unknown)].contains(&text(&told)), "{told}");
    assert_eq!(ledger.starts("late").len(), 1);
    let events = setup.events(&id).await;
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(kinds, ["submitted", "leased", "lost", "completed"]);
    assert_eq!(events[3]["source"], "late_result");
    setup.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconcile_rule_completes_a_lost_call_or_runs_it_again() {
    let rule = |matches: &str| {
        format!(
            r#"reconcile = {{ tool = "lookup", arguments = {{ text = "{{{{arguments.text}}}}" }}, match = "{matches}" }}"#
        )
    };
    let found = format!("[servers.kit.tools.crash_after_write]\n{}", rule("/found == true"));
    let done = format!("[servers.kit.tools.crash_after_write]\n{}", rule("/done == 1"));
    let (completes, runs_again) = tokio::join!(Scene::start("", &found), Scene::start("", &done));

    // Written, then killed: the server says that the line is there.
    let answer = completes.modern().keyed("k", "crash_after_write", json!({"text": "took effect"})).await;
    let id = id_of(&answer);
    let row = completes.wait_for_state(&id, "completed").await;
    assert_eq!(row["source"], "reconcile");
    let again = completes.modern().keyed("k", "crash_after_write", json!({"text": "took effect"})).await;
    assert_eq!(execution(&again)["state"], "completed", "{again}");
    assert_ne!(again["result"]["isError"], true, "{again}");
    assert_eq!(completes.ledger.starts("took effect").len(), 1);

    // Nothing was finished: one more attempt, which survives.
    let answer = runs_again.modern().keyed("k", "crash_after_write", json!({"text": "none", "once": true})).await;
    runs_again.wait_for_state(&id_of(&answer), "completed").await;
    let again = runs_again.modern().keyed("k", "crash_after_write", json!({"text": "none", "once": true})).await;
    assert_eq!(text(&again), "survived none");
    assert_eq!(runs_again.ledger.starts("none").len(), 2);
    let events = runs_again.program.events(&id_of(&answer)).await;
    let retried = events.iter().find(|event| event["type"] == "retried").unwrap();
    assert_eq!(retried["by"]["principal"], "reconcile", "{retried}");
    completes.program.check_store().await;
    runs_again.program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_orders_one_more_attempt_in_wrap_and_the_log_says_who_and_why() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let mut pipe = RawStdio::open(&setup.wrap(&kit(setup.folder())), "2025-11-25").await;
    let lost = pipe.call(json!(1), "crash_after_write", json!({"text": "again", "once": true})).await;
    let id = id_of(&lost);
    assert!(text(&lost).contains("durable_retry") && text(&lost).contains(&id), "{lost}");

    let tools = pipe.request(json!(2), "tools/list", json!({})).await;
    let names: Vec<&str> =
        tools["result"]["tools"].as_array().unwrap().iter().filter_map(|t| t["name"].as_str()).collect();
    assert!(names.contains(&"durable_retry"), "{names:?}");
    assert_eq!(names.last(), Some(&"durable_result"));
    for bad in [json!({"execution_id": id}), json!({"execution_id": id, "reason": " "}), json!({"reason": "checked"})] {
        let refused = pipe.call(json!(format!("bad {bad}")), "durable_retry", bad).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert_eq!(ledger.starts("again").len(), 1);

    let order = json!({"execution_id": id, "reason": "looked: it is not there"});
    let retried = pipe.call(json!(3), "durable_retry", order.clone()).await;
    assert_eq!(text(&retried), "survived again");
    assert_eq!((id_of(&retried), execution(&retried)["attempt"].clone()), (id.clone(), json!(2)));
    let twice = pipe.call(json!(4), "durable_retry", order).await;
    assert_eq!(twice["error"]["data"]["type"], "not_permitted", "{twice}");
    assert_eq!(ledger.starts("again").len(), 2);
    let keys: Vec<Option<String>> = ledger.starts("again").into_iter().map(|start| start.key).collect();
    assert_eq!(keys, [Some(id.clone()), Some(id.clone())], "the same effect key on each attempt");

    let events = setup.events(&id).await;
    let retried: Vec<&Value> = events.iter().filter(|event| event["type"] == "retried").collect();
    assert_eq!(retried.len(), 1);
    assert_eq!(retried[0]["by"], json!({"principal": "anonymous", "reason": "looked: it is not there"}));
    setup.check_store().await;
}

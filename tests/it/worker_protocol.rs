//! The worker protocol over raw HTTP: what each verb does, what a repeat, a stale and a foreign worker get, and that
//! calls survive their worker and their server.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Connection, Request};
use crate::support::raw_worker::{RawWorker, call, fresh_id, listed, local_token, result, submit, tool};
use crate::support::{DEADLINE, eventually_async};

/// A server whose leases are short: 1.5 s, looked at every 100 ms.
const BRISK: &str = "[lease]\nttl = \"1500ms\"\n[scheduler]\ninterval = \"100ms\"\n\
    [defaults.retry]\ninitial_interval = \"10ms\"\n";

fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn state_of(answer: &Value) -> &str {
    answer["result"]["_meta"]["durable-mcp/execution"]["state"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

async fn state(program: &Program, id: &str) -> String {
    let row = program.executions().await.into_iter().find(|row| row["id"] == id).unwrap();
    row["state"].as_str().unwrap().to_owned()
}

async fn kinds(program: &Program, id: &str) -> Vec<String> {
    program.events(id).await.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_to_a_worker_and_its_result_comes_back_byte_for_byte() {
    let program = Setup::new("").serve().await;
    let worker = RawWorker::new(&program);
    let charge = json!({"name": "charge", "title": "Charge", "inputSchema": {"type": "object"}, "outputSchema": null,
        "annotations": {"idempotentHint": true}, "timeout_ms": 60_000, "max_attempts": 2});
    let greeting = worker.register(json!([charge])).await;
    assert_eq!(greeting["worker_id"], worker.id.as_str());
    assert!(greeting["lease_ttl_ms"].is_i64() && greeting["heartbeat_ms"].is_i64(), "{greeting}");
    assert_eq!(listed(&program, None).await, ["charge", "durable_result"]);

    // Parked before the call comes: the call is stored already leased to it.
    let claim = tokio::spawn({
        let worker = worker.clone();
        async move { worker.job().await }
    });
    eventually_async("the claim waits", DEADLINE, async || worker.stats().await.answer()["tools"][0]["workers"] == 1)
        .await;
    let called = call(&program, "charge", json!({"amount": 12_345_678_901_234_567_890_u64, "x": 1.50}));
    let job = claim.await.unwrap();
    assert_eq!((&job["tool"], &job["attempt"], &job["max_attempts"]), (&json!("charge"), &json!(1), &json!(2)));
    assert_eq!((&job["fencing_token"], &job["attempt_timeout_ms"]), (&json!(1), &json!(60_000)));
    assert_eq!((&job["steps"], &job["checkpoint"]), (&json!({}), &Value::Null));
    assert_eq!(job["effect_key"], job["execution_id"]);
    assert!(job["total_left_ms"].as_i64().unwrap() > 3_590_000, "{job}");

    let exact =
        r#"{"content":[{"type":"text","text":"é \u00e9"}],"structuredContent":{"id": 9.0,"n":12345678901234567890}}"#;
    let token = job["lease_token"].as_str().unwrap();
    let body = format!(r#"{{"worker_id":"{}","lease_token":"{token}","result":{exact}}}"#, worker.id);
    assert_eq!(worker.text("complete", &body).await.answer(), json!({"status": "accepted"}));
    assert_eq!(worker.text("complete", &body).await.answer(), json!({"status": "already_done"}));
    let answer = called.await.unwrap();
    assert_eq!(text_of(&answer), "é é");
    let id = job["execution_id"].as_str().unwrap();
    let stored = program.setup.cli(&["executions", "result", id]).await.stdout;
    assert_eq!(stored.trim_end(), exact);
    let rows = program.executions().await;
    assert_eq!(
        (&rows[0]["delivery_source"], &rows[0]["upstream"]),
        (&json!("idempotent_hint"), &json!("workers.charge"))
    );
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_claim_brings_many_calls_and_one_request_completes_them() {
    let program = Setup::new("").serve().await;
    let worker = RawWorker::registered(&program, &["a", "b"]).await;
    let calls: Vec<_> = (0..20).map(|n| call(&program, if n % 2 == 0 { "a" } else { "b" }, json!({"n": n}))).collect();
    eventually_async("all wait", DEADLINE, async || program.executions().await.len() == 20).await;
    assert_eq!(worker.ok("claim", json!({"max": 3, "tools": ["b"]})).await["jobs"].as_array().unwrap().len(), 3);
    let mut jobs = worker.claim(64).await;
    assert_eq!(jobs.len(), 17);
    // The three of the first claim, which are held too, come back untouched.
    let stats = worker.stats().await.answer();
    assert_eq!(stats["tools"][1], json!({"name": "b", "queued": 0, "leased": 10, "workers": 1}), "{stats}");
    let mut results: Vec<Value> =
        jobs.iter().map(|job| json!({"lease_token": job["lease_token"], "result": result("done")})).collect();
    results.push(json!({"lease_token": "x.1.y", "result": result("forged")}));
    results.push(json!({"lease_token": jobs[0]["lease_token"], "result": result("again")}));
    let answers = worker.ok("complete", json!({"results": results})).await;
    let statuses: Vec<&str> =
        answers["results"].as_array().unwrap().iter().map(|answer| answer["status"].as_str().unwrap()).collect();
    assert_eq!(statuses[..17], ["accepted"; 17]);
    assert_eq!(statuses[17..], ["refused", "already_done"]);
    assert_eq!(answers["results"][17]["code"], "lease_foreign");
    jobs.clear();
    worker.ok("deregister", json!({})).await;
    let mut states: Vec<String> = Vec::new();
    for call in calls {
        // The worker is gone: what it held runs again elsewhere, of which there is nothing.
        if let Ok(answer) = tokio::time::timeout(Duration::from_millis(2_000), call).await {
            states.push(state_of(&answer.unwrap()).to_owned());
        }
    }
    assert_eq!(states, vec!["completed"; 17]);
    assert_eq!(listed(&program, None).await, ["durable_result"]);
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_tells_of_progress_of_a_cancel_and_of_a_lost_lease() {
    let program = Setup::new(&format!("{BRISK}[builtin]\ndurable_cancel = true\n")).serve().await;
    let worker = RawWorker::registered(&program, &["long"]).await;
    let id = submit(&program, "long", json!({})).await;
    let job = worker.job().await;
    let beat = |more: Value| {
        let mut lease = json!({"lease_token": job["lease_token"]});
        lease.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let worker = worker.clone();
        async move { worker.ok("heartbeat", json!({"leases": [lease]})).await["leases"][0]["status"].clone() }
    };
    let checkpoint = json!({"progress": {"progress": 3, "total": 10, "message": "third"}, "checkpoint": {"row": 300}});
    assert_eq!(beat(checkpoint).await, "ok");
    // Three times the lease's time: heartbeats keep it.
    for _ in 0..9 {
        worker.nothing_for(500).await;
        assert_eq!(beat(json!({})).await, "ok");
    }
    assert_eq!(kinds(&program, &id).await, ["submitted", "leased"]);
    call(&program, "durable_cancel", json!({"execution_id": id})).await.unwrap();
    assert_eq!(state(&program, &id).await, "cancelled");
    assert_eq!(beat(json!({})).await, "cancel");
    let refused = worker.refused(
        ("complete", json!({"lease_token": job["lease_token"], "result": result("late")})),
        409,
        "execution_ended",
    );
    refused.await;

    let id = submit(&program, "long", json!({"n": 2})).await;
    let job = worker.job().await;
    eventually_async("its lease runs out", DEADLINE, async || {
        worker.ok("heartbeat", json!({})).await;
        kinds(&program, &id).await.contains(&"retried".to_owned())
    })
    .await;
    let lease = json!({"leases": [{"lease_token": job["lease_token"]}]});
    assert_eq!(worker.ok("heartbeat", lease).await["leases"][0]["status"], "lost");
    for (verb, more) in [
        ("fail", json!({"error": {"message": "x"}, "retryable": true})),
        ("release", json!({})),
        ("step", json!({"name": "s", "result": 1})),
    ] {
        let mut body = json!({"lease_token": job["lease_token"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        worker.refused((verb, body), 409, "lease_lost").await;
    }
    // Evidence beats ignorance: nobody had a newer lease.
    assert_eq!(worker.complete(&job, "late").await.answer(), json!({"status": "accepted"}));
    let row = program.executions().await.into_iter().find(|row| row["id"] == id.as_str()).unwrap();
    assert_eq!((&row["state"], &row["source"]), (&json!("completed"), &json!("late_result")));
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_retried_as_delivery_permits_and_a_release_counts_no_attempt() {
    let program = Setup::new(BRISK).serve().await;
    let worker = RawWorker::new(&program);
    worker.register(json!([tool("again", "at_least_once"), tool("once", "at_most_once")])).await;
    let fail = |job: &Value, retryable: bool, not_started: bool| {
        let body = json!({"lease_token": job["lease_token"], "error": {"code": "no_luck", "message": "no luck"},
            "retryable": retryable, "retry_after_ms": 1, "not_started": not_started});
        let worker = worker.clone();
        async move { worker.ok("fail", body).await }
    };
    let id = submit(&program, "again", json!({})).await;
    let first = worker.job().await;
    assert_eq!(worker.ok("release", json!({"lease_token": first["lease_token"]})).await["state"], "ready");
    assert_eq!(worker.ok("release", json!({"lease_token": first["lease_token"]})).await["status"], "accepted");
    let again = worker.job().await;
    assert_eq!((&again["attempt"], &again["fencing_token"]), (&json!(1), &json!(2)));
    let stale = json!({"lease_token": first["lease_token"], "error": {"message": "x"}, "retryable": true});
    worker.refused(("fail", stale), 409, "lease_stale").await;
    assert_eq!(fail(&again, true, false).await, json!({"status": "accepted", "state": "scheduled"}));
    // A repeat of the request is the same request.
    let repeated = fail(&again, true, false).await;
    assert_eq!(repeated["status"], "accepted");
    let second = worker.job().await;
    assert_eq!((&second["attempt"], &second["fencing_token"]), (&json!(2), &json!(3)));
    assert_eq!(fail(&second, false, false).await["state"], "failed");
    let row = program.executions().await.into_iter().find(|row| row["id"] == id.as_str()).unwrap();
    assert_eq!(row["error"], json!({"code": "no_luck", "message": "no luck"}));
    worker
        .refused(
            ("complete", json!({"lease_token": first["lease_token"], "result": result("x")})),
            409,
            "execution_ended",
        )
        .await;

    submit(&program, "once", json!({})).await;
    let job = worker.job().await;
    assert_eq!(fail(&job, true, true).await["state"], "scheduled");
    let job = worker.job().await;
    assert_eq!(job["attempt"], 2);
    assert_eq!(fail(&job, true, false).await["state"], "failed", "it was begun, and may not be run again");
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_are_run_once_over_attempts_of_different_workers() {
    let program = Setup::new(BRISK).serve().await;
    let one = RawWorker::registered(&program, &["order"]).await;
    let id = submit(&program, "order", json!({})).await;
    let job = one.job().await;
    let token = &job["lease_token"];
    let asked = one.ok("step", json!({"lease_token": token, "name": "reserve"})).await;
    assert_eq!(asked, json!({"name": "reserve", "result": null, "found": false, "stored": false}));
    let exact = r#"{"id":7.0, "n":12345678901234567890}"#;
    let body = format!(r#"{{"worker_id":"{}","lease_token":{token},"name":"reserve","result":{exact}}}"#, one.id);
    let stored = one.text("step", &body).await;
    assert!(stored.text().contains(exact), "{}", stored.text());
    assert_eq!(stored.answer()["stored"], true);
    let again = one.text("step", &body.replace("7.0", "8")).await;
    assert!(again.text().contains(exact), "{}", again.text());
    assert_eq!(again.answer()["stored"], false);
    assert_eq!(one.ok("step", json!({"lease_token": token, "name": "nothing", "result": null})).await["found"], true);
    one.ok("heartbeat", json!({"leases": [{"lease_token": token, "checkpoint": {"row": 300}}]})).await;
    for name in ["", "a\nb", &"x".repeat(256)] {
        one.refused(("step", json!({"lease_token": token, "name": name, "result": 1})), 400, "invalid_body").await;
    }

    // The worker dies: nothing is heard of it. Another one gets what it stored, byte for byte.
    let two = RawWorker::registered(&program, &["order"]).await;
    let answer = two.claimed(1).await;
    assert!(answer.text().contains(exact), "{}", answer.text());
    let job = answer.answer()["jobs"][0].clone();
    assert_eq!((&job["attempt"], &job["execution_id"]), (&json!(2), &json!(id)));
    assert_eq!((&job["steps"]["nothing"], &job["checkpoint"]), (&Value::Null, &json!({"row": 300})));
    one.refused(("complete", json!({"lease_token": token, "result": result("stale")})), 409, "lease_stale").await;
    assert_eq!(two.complete(&job, "done").await.status, 200);
    let mut kinds = kinds(&program, &id).await;
    kinds.retain(|kind| kind != "promoted");
    assert_eq!(kinds, ["submitted", "leased", "retried", "leased", "rejected", "completed"]);
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_workers_call_is_retried_or_unknown_as_its_delivery_says() {
    let program = Setup::new(BRISK).serve().await;
    let one = RawWorker::new(&program);
    one.register(json!([tool("again", "at_least_once"), tool("once", "at_most_once")])).await;
    let (again, once) = (call(&program, "again", json!({})), call(&program, "once", json!({})));
    let mut jobs = one.claim(1).await;
    while jobs.len() < 2 {
        jobs.extend(one.claim(1).await);
    }
    let two = RawWorker::registered(&program, &["again"]).await;
    let job = two.job().await;
    assert_eq!(job["attempt"], 2);
    two.complete(&job, "second try").await;
    assert_eq!(text_of(&again.await.unwrap()), "second try");
    let unknown = once.await.unwrap();
    assert_eq!(state_of(&unknown), "unknown");
    // It comes back late with the result: the newest token may bring it.
    let gone = format!("\"id\":\"{}\",\"name\":\"by-hand\",\"kind\":\"remote\",\"state\":\"gone\"", one.id);
    eventually_async("it counts as dead", DEADLINE, async || {
        program.setup.cli(&["workers", "list", "--json", "--url", program.url()]).await.stdout.contains(&gone)
    })
    .await;
    eventually_async("it is told", DEADLINE, async || one.post("heartbeat", json!({})).await.status == 404).await;
    one.refused(("heartbeat", json!({})), 404, "worker_unknown").await;
    let lost = jobs.iter().find(|job| job["tool"] == "once").unwrap();
    assert_eq!(one.complete(lost, "it did happen").await.answer(), json!({"status": "accepted"}));
    assert_eq!(state(&program, lost["execution_id"].as_str().unwrap()).await, "completed");
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_or_stale_worker_changes_nothing() {
    let config = format!("{BRISK}[auth]\nmode = \"token\"\n[namespaces.blue]\n");
    let program = Setup::new(&config).serve().await;
    let token = async |arguments: &[&str]| {
        let ran = program.setup.cli(&[&["token", "create", "--principal"], arguments].concat()).await;
        assert!(ran.status.success(), "{}", ran.stderr);
        ran.stdout.trim().to_owned()
    };
    let scopes = ["--scope", "work", "--scope", "call", "--scope", "read"];
    let ann = token(&[&["ann"], &scopes[..]].concat()).await;
    let bob = token(&[&["bob"], &scopes[..]].concat()).await;
    let blue = token(&[&["ann", "--namespace", "blue"], &scopes[..]].concat()).await;
    let caller = token(&["ann", "--scope", "call"]).await;

    let own = RawWorker::with(&program, &ann);
    own.register(json!([tool("charge", "at_least_once")])).await;
    assert_eq!(listed(&program, Some(&bob)).await, ["charge", "durable_result"]);
    assert_eq!(listed(&program, Some(&blue)).await, ["durable_result"], "a tool is its namespace's");
    let url = program.url().to_owned();
    let submit =
        Request::modern(&url, json!(1), "tools/call", json!({"name": "charge", "_meta": {"durable-mcp/wait": 0}}))
            .header("Authorization", &format!("Bearer {ann}"));
    let answer = submit.exchange(&url).await.answer();
    let id = answer["result"]["_meta"]["durable-mcp/execution"]["id"].as_str().unwrap().to_owned();
    let stale = own.job().await;
    own.ok("release", json!({"lease_token": stale["lease_token"]})).await;
    let job = own.job().await;
    let before = program.events(&id).await;

    for (bearer, status, code) in
        [(&bob, 403, "worker_foreign"), (&blue, 403, "worker_foreign"), (&caller, 403, "insufficient_scope")]
    {
        let other = RawWorker { id: own.id.clone(), ..RawWorker::with(&program, bearer) };
        let lease = job["lease_token"].clone();
        for (verb, body) in [
            ("claim", json!({"max": 1})),
            ("heartbeat", json!({"leases": [{"lease_token": lease}]})),
            ("complete", json!({"lease_token": lease, "result": result("x")})),
            ("fail", json!({"lease_token": lease, "error": {"message": "x"}, "retryable": true})),
            ("release", json!({"lease_token": lease})),
            ("step", json!({"lease_token": lease, "name": "s", "result": 1})),
            ("deregister", json!({})),
            ("register", json!({"name": "x", "slots": 1, "tools": []})),
        ] {
            other.refused((verb, body), status, code).await;
        }
        let stats = other.stats().await;
        assert_eq!((stats.status, &stats.answer()["code"]), (status, &json!(code)));
    }
    // A worker of its own right, with a lease that is not its own, and with forged ones.
    let other = RawWorker::with(&program, &bob);
    other.register(json!([tool("charge", "at_least_once")])).await;
    let token = job["lease_token"].as_str().unwrap();
    let (named, _) = token.rsplit_once('.').unwrap();
    let forged = [token.to_owned(), format!("{named}."), format!("{named}.AAAA"), "x".to_owned(), String::new()];
    for lease in forged {
        let lease = json!(lease);
        for (verb, body) in [
            ("heartbeat", json!({"leases": [{"lease_token": lease}]})),
            ("complete", json!({"lease_token": lease, "result": result("x")})),
            ("fail", json!({"lease_token": lease, "error": {"message": "x"}, "retryable": true})),
            ("release", json!({"lease_token": lease})),
            ("step", json!({"lease_token": lease, "name": "s", "result": 1})),
            ("step", json!({"lease_token": lease, "name": "s"})),
        ] {
            other.refused((verb, body), 403, "lease_foreign").await;
        }
    }
    // The older lease of the same worker.
    let lease = stale["lease_token"].clone();
    for (verb, body) in [
        ("fail", json!({"lease_token": lease, "error": {"message": "x"}, "retryable": true})),
        ("step", json!({"lease_token": lease, "name": "s", "result": 1})),
        ("step", json!({"lease_token": lease, "name": "s"})),
        ("complete", json!({"lease_token": lease, "result": result("x")})),
    ] {
        own.refused((verb, body), 409, "lease_stale").await;
    }
    assert_eq!(own.ok("heartbeat", json!({"leases": [{"lease_token": lease}]})).await["leases"][0]["status"], "lost");
    // A stale report leaves a note in the log, and nothing else.
    let after = program.events(&id).await;
    assert_eq!(after[..before.len()], before);
    assert!(after[before.len()..].iter().all(|event| event["type"] == "rejected"), "{after:?}");
    assert_eq!(state(&program, &id).await, "leased");
    assert_eq!(own.complete(&job, "own").await.answer(), json!({"status": "accepted"}));
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_goes_on_over_a_kill_and_a_restart_of_its_server() {
    let program = Setup::new("").serve().await;
    let worker = RawWorker::registered(&program, &["order"]).await;
    let id = submit(&program, "order", json!({})).await;
    let job = worker.job().await;
    worker.ok("step", json!({"lease_token": job["lease_token"], "name": "reserve", "result": 7})).await;
    let waiting = submit(&program, "order", json!({"n": 2})).await;
    let program = program.restart().await;
    assert_eq!(listed(&program, None).await, ["order", "durable_result"], "its tools are there before it says a word");
    let worker = worker.again(&program);
    let beat = worker.ok("heartbeat", json!({"leases": [{"lease_token": job["lease_token"]}]})).await;
    assert_eq!(beat["leases"][0]["status"], "ok");
    let step = worker.ok("step", json!({"lease_token": job["lease_token"], "name": "reserve", "result": 8})).await;
    assert_eq!((&step["result"], &step["stored"]), (&json!(7), &json!(false)));
    assert_eq!(worker.complete(&job, "done").await.answer(), json!({"status": "accepted"}));
    assert_eq!(kinds(&program, &id).await, ["submitted", "leased", "completed"]);
    let next = worker.job().await;
    assert_eq!(next["execution_id"], waiting.as_str());
    assert_eq!(worker.complete(&next, "done").await.status, 200);
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_of_one_store_share_their_workers() {
    let setup = Setup::new("");
    let (one, two) = (setup.serve().await, setup.serve().await);
    let worker = RawWorker::registered(&one, &["echo"]).await;
    eventually_async("the other one offers the tool", DEADLINE, async || {
        listed(&two, None).await.contains(&"echo".to_owned())
    })
    .await;
    // Called at one, claimed at the other where the claim waits, completed where it was called.
    let claim = tokio::spawn({
        let worker = worker.clone();
        async move { worker.job().await }
    });
    worker.nothing_for(50).await;
    let called = call(&two, "echo", json!({"n": 1}));
    let job = claim.await.unwrap();
    let elsewhere = RawWorker { base: two.at("/worker/v1/"), bearer: local_token(&two), id: worker.id.clone() };
    let beat = elsewhere.ok("heartbeat", json!({"leases": [{"lease_token": job["lease_token"]}]})).await;
    assert_eq!(beat["leases"][0]["status"], "ok");
    assert_eq!(elsewhere.complete(&job, "shared").await.answer(), json!({"status": "accepted"}));
    assert_eq!(text_of(&called.await.unwrap()), "shared");
    // And completed where it was not.
    let called = call(&two, "echo", json!({"n": 2}));
    let job = worker.job().await;
    worker.complete(&job, "again").await;
    assert_eq!(text_of(&called.await.unwrap()), "again");
    elsewhere.ok("deregister", json!({})).await;
    eventually_async("it is gone everywhere", DEADLINE, async || listed(&one, None).await == ["durable_result"]).await;
    one.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_connection_breaks_takes_no_call_with_it() {
    let program = Setup::new("").serve().await;
    let worker = RawWorker::registered(&program, &["echo"]).await;
    let url = program.at("/worker/v1/claim");
    let bearer = local_token(&program);
    for n in 0..5 {
        let body = json!({"worker_id": worker.id, "max": 8, "wait_ms": 20_000}).to_string();
        let mut connection = Connection::open(&url).await;
        connection.send(&Request::post(&url, body).header("Authorization", &format!("Bearer {bearer}")).bytes()).await;
        // It waits while another claim of nothing ran its time; then it is cut.
        worker.nothing_for(50).await;
        drop(connection);
        worker.nothing_for(50).await;
        let called = call(&program, "echo", json!({"n": n}));
        let job = worker.job().await;
        assert_eq!(job["arguments"], json!({"n": n}));
        assert_eq!(job["attempt"], 1);
        worker.complete(&job, "x").await;
        assert_eq!(text_of(&called.await.unwrap()), "x");
    }
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registrations_and_bodies_are_checked() {
    let config = "[workers]\nmax_registered = 1\nmax_tools = 2\nmax_steps = 1\nstep_bytes = 8\ncheckpoint_bytes = 8\n\
        [workers.tools.ruled]\ndelivery = \"at_least_once\"\n[workers.tools.hidden]\nenabled = false\n";
    let program = Setup::new(config).flag("--demo").serve().await;
    let worker = RawWorker::new(&program);
    let tools = |tools: Value| json!({"name": "w", "slots": 1, "tools": tools});
    worker.refused(("claim", json!({"max": 1})), 404, "worker_unknown").await;
    for taken in ["demo_echo", "durable_result"] {
        worker.refused(("register", tools(json!([tool(taken, "at_least_once")]))), 409, "tool_name_taken").await;
    }
    for wrong in [
        json!([{"name": "x"}]),
        json!([{"inputSchema": {}}]),
        json!([{"name": "x y", "inputSchema": {}}]),
        json!([{"name": "x".repeat(65), "inputSchema": {}}]),
        json!([{"name": "x", "inputSchema": []}]),
        json!([{"name": "x", "inputSchema": {}, "delivery": "twice"}]),
        json!([{"name": "x", "inputSchema": {}, "timeout_ms": 0}]),
        json!([{"name": "x", "inputSchema": {}, "surprise": 1}]),
        json!([{"name": "x", "inputSchema": {}}, {"name": "x", "inputSchema": {}}]),
        json!([{"name": "x", "inputSchema": {}}, {"name": "y", "inputSchema": {}}, {"name": "z", "inputSchema": {}}]),
    ] {
        worker.refused(("register", tools(wrong)), 400, "invalid_body").await;
    }
    for body in [
        r#"{"worker_id":"x","max":1}"#,
        r#"{"max":1}"#,
        r#"{"worker_id":"00000000-0000-4000-8000-000000000000","max":1,"max":2}"#,
        r#"{"worker_id":"00000000-0000-4000-8000-000000000000","max":1,"surprise":2}"#,
        r#"{"worker_id":"00000000-0000-4000-8000-000000000000","max":0}"#,
        "[]",
        "{",
        "",
    ] {
        let response = worker.text("claim", body).await;
        assert_eq!((response.status, &response.answer()["code"]), (400, &json!("invalid_body")), "{body}");
    }
    worker.register(json!([tool("ruled", "at_most_once"), tool("hidden", "at_most_once")])).await;
    assert!(!listed(&program, None).await.contains(&"hidden".to_owned()));
    let second = RawWorker { id: fresh_id(), ..worker.clone() };
    second.refused(("register", tools(json!([]))), 503, "too_many_workers").await;
    submit(&program, "ruled", json!({})).await;
    let row = &program.executions().await[0];
    assert_eq!((&row["delivery"], &row["delivery_source"]), (&json!("at_least_once"), &json!("config")));
    let job = worker.job().await;
    let token = &job["lease_token"];
    for wrong in [
        json!(1),
        json!({}),
        json!({"content": {}}),
        json!({"content": [1]}),
        json!({"content": [{}]}),
        json!({"content": [], "isError": 1}),
        json!({"content": [], "structuredContent": []}),
    ] {
        worker.refused(("complete", json!({"lease_token": token, "result": wrong})), 400, "invalid_body").await;
    }
    worker
        .refused(("step", json!({"lease_token": token, "name": "s", "result": "123456789"})), 400, "invalid_body")
        .await;
    worker.ok("step", json!({"lease_token": token, "name": "s", "result": 1})).await;
    worker.refused(("step", json!({"lease_token": token, "name": "t", "result": 1})), 409, "too_many_steps").await;
    let lease = json!({"leases": [{"lease_token": token, "checkpoint": "123456789"}]});
    worker.refused(("heartbeat", lease), 400, "invalid_body").await;
    assert_eq!(
        worker.ok("complete", json!({"lease_token": token, "result": {"content": [], "isError": true}})).await["status"],
        "accepted"
    );
    let large = format!("{{\"worker_id\":\"{}\",\"x\":\"{}\"}}", worker.id, "x".repeat(5 << 20));
    assert_eq!(worker.text("claim", &large).await.status, 413);
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_overruns_its_time_loses_its_attempt_although_it_beats() {
    let program =
        Setup::new(&format!("{BRISK}[workers.tools.slow]\ntimeout = {{ attempt = \"300ms\" }}\n")).serve().await;
    let worker = RawWorker::registered(&program, &["slow"]).await;
    let id = submit(&program, "slow", json!({})).await;
    let job = worker.job().await;
    assert_eq!(job["attempt_timeout_ms"], 300);
    eventually_async("the attempt is lost", DEADLINE, async || {
        let lease = json!({"leases": [{"lease_token": job["lease_token"]}]});
        worker.ok("heartbeat", lease).await["leases"][0]["status"] == "lost"
    })
    .await;
    let retried = program.events(&id).await.into_iter().find(|event| event["type"] == "retried").unwrap();
    assert_eq!(retried["error"]["code"], "attempt_timeout", "{retried}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_listed_and_drained() {
    let program = Setup::new("").serve().await;
    let worker = RawWorker::registered(&program, &["echo"]).await;
    let cli = async |arguments: &[&str]| program.setup.cli(&[arguments, &["--url", program.url()]].concat()).await;
    let from_server = cli(&["workers", "list", "--json"]).await;
    let from_store = program.setup.cli(&["workers", "list", "--json", "--store", &program.setup.store_url()]).await;
    let rows = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    let (listed_rows, stored_rows) = (rows(&from_server.stdout), rows(&from_store.stdout));
    assert_eq!(listed_rows.len(), 2, "{} {}", from_server.stdout, from_server.stderr);
    assert_eq!(
        listed_rows.iter().map(|row| &row["id"]).collect::<Vec<_>>(),
        stored_rows.iter().map(|row| &row["id"]).collect::<Vec<_>>()
    );
    let remote = listed_rows.iter().find(|row| row["kind"] == "remote").unwrap();
    assert_eq!(
        (&remote["id"], &remote["tools"], &remote["state"]),
        (&json!(worker.id), &json!(["echo"]), &json!("running"))
    );
    let local = listed_rows.iter().find(|row| row["kind"] == "local").unwrap();
    assert_eq!((&local["slots"], &local["namespace"]), (&json!(64), &Value::Null));
    assert!(!from_store.stdout.contains("lease_key"));

    // A claim that waits is answered at once when its worker is drained.
    let claim = tokio::spawn({
        let worker = worker.clone();
        async move { worker.ok("claim", json!({"max": 1, "wait_ms": 30_000})).await }
    });
    let drained = cli(&["workers", "drain", &worker.id[..8]]).await;
    assert_eq!(drained.status.code(), Some(0), "{}", drained.stderr);
    assert_eq!(claim.await.unwrap(), json!({"jobs": [], "draining": true}));
    assert_eq!(worker.ok("heartbeat", json!({})).await["draining"], true);
    let drained = cli(&["workers", "drain", local["id"].as_str().unwrap(), "--json"]).await;
    assert_eq!(drained.status.code(), Some(0), "{}", drained.stderr);
    assert!(drained.stdout.contains(r#""state":"draining""#), "{}", drained.stdout);
    assert_eq!(cli(&["workers", "drain", "ffffffff"]).await.status.code(), Some(3));
    worker.ok("deregister", json!({})).await;
    worker.ok("deregister", json!({})).await;
    assert_eq!(cli(&["workers", "drain", &worker.id]).await.status.code(), Some(6));
    let table = cli(&["workers", "list"]).await.stdout;
    assert!(table.starts_with("ID ") && table.contains(" gone "), "{table}");
}

/// The session at the end of docs/worker-protocol.md, word for word, against a real server.
#[tokio::test(flavor = "multi_thread")]
async fn the_documented_session_runs_with_curl_alone() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/worker-protocol.md")).unwrap();
    let session = page.split("```bash\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a session");
    let program = Setup::new("").serve().await;
    let script = program.setup.folder().join("session.sh");
    std::fs::write(&script, format!("set -euo pipefail\n{session}")).unwrap();
    let mut command = tokio::process::Command::new("bash");
    command.arg(&script).current_dir(program.setup.folder()).kill_on_drop(true);
    command.env("SERVER", program.at("")).env("TOKEN", local_token(&program));
    let ran = tokio::time::timeout(DEADLINE, command.output()).await.expect("the session ends").unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("charged 5"), "{stdout}\n{stderr}");
    program.check_store().await;
}

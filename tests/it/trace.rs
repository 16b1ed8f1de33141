//! The trace context of a call: taken from `_meta` or the HTTP headers, given to whatever runs it, on each attempt; never
//! made up.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::cases_scene::{Caller, Scene, text};
use crate::support::program::Setup;
use crate::support::raw_worker::RawWorker;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

/// The `_meta` that the upstream received with a call.
async fn received(caller: &Caller, meta: Value) -> Value {
    let answer = caller.ask(json!({"name": "received", "arguments": {}, "_meta": meta})).await;
    let params: Value = serde_json::from_str(text(&answer)).unwrap_or_else(|_| panic!("{answer}"));
    let names = ["traceparent", "tracestate", "baggage"];
    let of = |name: &&str| Some(((*name).to_owned(), params["_meta"].get(*name)?.clone()));
    Value::Object(names.iter().filter_map(of).collect())
}

// A54: the context of a call is lost on its way through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_context_reaches_the_upstream_from_headers_and_from_meta() {
    let scene = Scene::start("", "").await;
    for caller in scene.of_each_era().await {
        assert_eq!(received(&caller, json!({})).await, json!({}), "none is made up");
        let whole = json!({"traceparent": PARENT, "tracestate": "rojo=1,congo=t61", "baggage": "user=alice"});
        assert_eq!(received(&caller, whole.clone()).await, whole);
        for invalid in [json!(1), json!("00-1-2-01"), json!(PARENT.to_uppercase())] {
            let meta = json!({"traceparent": invalid, "tracestate": "rojo=1", "baggage": "user=alice"});
            assert_eq!(received(&caller, meta).await, json!({"baggage": "user=alice"}));
        }
    }
    for caller in scene.of_each_era().await {
        let caller = caller.header("traceparent", PARENT).header("tracestate", "rojo=1");
        let caller = caller.header("tracestate", "congo=t61").header("baggage", "user=alice");
        let whole = json!({"traceparent": PARENT, "tracestate": "rojo=1,congo=t61", "baggage": "user=alice"});
        assert_eq!(received(&caller, json!({})).await, whole);
        // What the message says itself comes first, and its parent gets no foreign state.
        let own = json!({"traceparent": OTHER, "baggage": "user=alice"});
        assert_eq!(received(&caller, json!({"traceparent": OTHER})).await, own);
        let twice = caller.header("traceparent", OTHER);
        assert_eq!(received(&twice, json!({})).await, json!({"baggage": "user=alice"}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_finds_the_trace_context_in_its_environment() {
    let setup = Setup::new("[tools.env]\ncommand = [\"./env.sh\"]\n");
    let script = setup.folder().join("env.sh");
    std::fs::write(&script, "#!/bin/sh\nprintf '%s %s %s' \"$TRACEPARENT\" \"$TRACESTATE\" \"$BAGGAGE\"\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = setup.serve().await;
    let caller = Caller::modern(program.url());
    let meta = json!({"traceparent": PARENT, "tracestate": "rojo=1"});
    let answer = caller.ask(json!({"name": "env", "arguments": {}, "_meta": meta})).await;
    assert_eq!(text(&answer), format!("{PARENT} rojo=1 "));
    assert_eq!(text(&caller.call("env", json!({"n": 2})).await), "  ");
}

// A54: the same after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_attempt_has_the_trace_context_of_the_call_also_after_a_restart() {
    let brisk =
        "[lease]\nttl = \"1500ms\"\n[scheduler]\ninterval = \"100ms\"\n[defaults.retry]\ninitial_interval = \"10ms\"\n";
    let program = Setup::new(brisk).serve().await;
    let one = RawWorker::registered(&program, &["order"]).await;
    let caller = Caller::modern(program.url());
    let call = json!({"name": "order", "arguments": {}, "_meta": {"traceparent": PARENT, "durable-mcp/wait": 0}});
    caller.ask(call).await;
    let first = one.job().await;
    assert_eq!((&first["attempt"], &first["meta"]["traceparent"]), (&json!(1), &json!(PARENT)), "{first}");
    // The server and the worker are gone; the next worker of the next server is told the same.
    let program = program.restart().await;
    let two = RawWorker::registered(&program, &["order"]).await;
    let second = two.job().await;
    assert_eq!(second["execution_id"], first["execution_id"]);
    assert_eq!((&second["attempt"], &second["meta"]["traceparent"]), (&json!(2), &json!(PARENT)), "{second}");
}

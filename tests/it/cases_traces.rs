//! Field case about traces: the context of a call on its way through, over HTTP, and over a kill and a retry.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cases_scene::{Caller, execution, id_of};
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};
use crate::support::servers::kit_http;
use crate::support::{DEADLINE, eventually_async};
use crate::telemetry_scene::{Collector, Got};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT: &str = "b7ad6b7169203331";

/// The trace and the span of a `traceparent`.
fn parts(traceparent: &Value) -> (&str, &str) {
    let text = traceparent.as_str().unwrap_or_else(|| panic!("no traceparent: {traceparent}"));
    (&text[3..35], &text[36..52])
}

// A54: an aggregator drops the trace context of `_meta`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_context_goes_on_in_meta_and_header_and_outlives_a_kill_and_a_retry() {
    let collector = Collector::start().await;
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let upstream = kit_http(&["--era", "both", "--ledger", ledger.path()]).await;
    let head = format!(
        "[telemetry]\notlp_endpoint = \"{}\"\n[scheduler]\ninterval = \"100ms\"\n[defaults.retry]\ninitial_interval = \"10ms\"\n",
        collector.url()
    );
    let more = "delivery = \"at_least_once\"";
    let setup = setup.config(&format!("{head}{}", server_table("kit", &upstream.target, more)));
    let mut program = setup.serve().await;
    let sent =
        json!({"traceparent": format!("00-{TRACE}-{CLIENT}-01"), "tracestate": "rojo=1", "baggage": "user=alice"});
    let meta = |wait: i64| {
        let mut meta = sent.clone();
        meta["durable-mcp/wait"] = json!(wait);
        meta
    };

    // The tool is told the client's trace, with its own attempt's call as the parent, in `_meta` and in the headers.
    let caller = Caller::modern(program.url());
    let answer = caller.ask(json!({"name": "received", "arguments": {}, "_meta": meta(20_000)})).await;
    let told = |at: usize| -> Value {
        let text = answer["result"]["content"][at]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(text).unwrap()
    };
    let (in_meta, in_headers) = (told(0)["_meta"].clone(), told(1));
    assert_eq!(parts(&in_meta["traceparent"]).0, TRACE);
    for name in ["traceparent", "tracestate", "baggage"] {
        assert_eq!(in_headers[name], in_meta[name], "{name}: {in_headers}");
    }
    assert_eq!((&in_meta["tracestate"], &in_meta["baggage"]), (&sent["tracestate"], &sent["baggage"]));
    let first = id_of(&answer);
    collector.wait_for("execution", 1).await;
    let call = collector.named("call").into_iter().find(|span| span.attribute("durable_mcp.execution") == Some(&first));
    assert_eq!(parts(&in_meta["traceparent"]).1, call.unwrap().id);

    // A call whose process is killed, and which runs again: each attempt under the same trace, linked.
    let gate = setup.folder().join("gate");
    let arguments = json!({"seconds": 0, "text": "canary", "gate": gate});
    let begun = caller.ask(json!({"name": "slow", "arguments": arguments, "_meta": meta(0)})).await;
    let id = id_of(&begun);
    ledger.wait_for_start("canary", DEADLINE).await;
    collector.wait_for("tools/call", 2).await;
    program.kill_9().await;
    std::fs::write(&gate, "").unwrap();
    let program = program.restart().await;
    let caller = Caller::modern(program.url());
    eventually_async("it ran again", DEADLINE, async || {
        program.executions().await.iter().any(|row| row["id"] == id && row["state"] == "completed")
    })
    .await;
    collector.wait_for("execution", 2).await;
    let spans: Vec<Got> = collector.spans().into_iter().filter(|span| span.trace == TRACE).collect();
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    for span in &spans {
        assert!(span.parent == CLIENT || ids.contains(span.parent.as_str()), "{span:?} hangs in the air: {spans:#?}");
    }
    let of = |name: &str| -> Vec<&Got> {
        let own = |span: &&Got| span.name == name && span.attribute("durable_mcp.execution") == Some(&id);
        spans.iter().filter(own).collect()
    };
    let mut attempts = of("attempt");
    attempts.sort_by_key(|span| span.start);
    let [lost, done] = attempts[..] else { panic!("two attempts: {spans:#?}") };
    let [whole] = of("execution")[..] else { panic!("one execution: {spans:#?}") };
    assert_eq!((&lost.parent, &done.parent), (&whole.id, &whole.id), "attempts are children");
    assert_eq!((lost.failure.is_some(), &done.failure), (true, &None));
    assert_eq!(done.links, std::slice::from_ref(&lost.id), "linked over the restart");
    let again = caller.ask(json!({"name": "received", "arguments": {"n": 2}, "_meta": meta(20_000)})).await;
    assert_eq!(execution(&again)["state"], "completed");
    program.check_store().await;
}

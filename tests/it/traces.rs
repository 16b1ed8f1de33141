//! Traces as a collector gets them: one connected trace for a call over processes and restarts, under the client's own
//! trace; what the tool is told; sessions; and that a collector that is away slows nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::cases_scene::{Caller, Scene, execution, id_of, text};
use crate::crash_scene::Call;
use crate::metrics::scrape;
use crate::replicas_scene::{Fleet, offers};
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Connection, Request, open_session};
use crate::support::raw_stdio::RawStdio;
use crate::support::raw_worker::RawWorker;
use crate::support::servers::{Nobody, kit_stdio};
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually_async};
use crate::telemetry_scene::{Collector, Got};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT: &str = "b7ad6b7169203331";
const ALL: &str = "mcp,worker,scheduler";

fn parent() -> String {
    format!("00-{TRACE}-{CLIENT}-01")
}

fn told_to(collector: &Collector) -> String {
    format!("[telemetry]\notlp_endpoint = \"{}\"\n", collector.url())
}

/// Every span of a trace leads to the client's by way of spans that are there.
fn assert_connected(spans: &[Got]) {
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "each span was told once: {spans:#?}");
    for span in spans {
        assert!(span.parent == CLIENT || ids.contains(span.parent.as_str()), "{span:?} is not connected: {spans:#?}");
        assert!(span.start <= span.end, "{span:?}");
    }
}

async fn ended(program: &Program, id: &str) {
    eventually_async("the call has ended", DEADLINE, async || {
        program.executions().await.iter().any(|row| row["id"] == id && row["state"] == "completed")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_killed_and_recovered_elsewhere_is_one_trace() {
    let collector = Collector::start().await;
    let fleet = Fleet::new(On::Sqlite, &told_to(&collector), "").await;
    let mut killed = fleet.start(ALL).await;
    offers(&killed, "slow_idempotent").await;
    let gate = fleet.setup.folder().join("gate");
    let call = Call::slow("slow_idempotent", "canary", 0.0).gate(&gate);
    let meta = json!({"traceparent": parent(), "durable-mcp/wait": 0});
    let caller = Caller::modern(killed.url());
    let answer = caller.ask(json!({"name": call.tool, "arguments": call.arguments, "_meta": meta})).await;
    let id = id_of(&answer);
    fleet.ledger.wait_for_start("canary", DEADLINE).await;
    // The request was answered with a handle; the rest of what this process knows dies with it.
    collector.wait_for("tools/call", 1).await;
    let first = killed.process.pid();
    killed.kill_9().await;
    let mut other = fleet.start(ALL).await;
    std::fs::write(&gate, "").unwrap();
    ended(&other, &id).await;
    let second = other.process.pid();
    other.sigterm().await;

    let spans: Vec<Got> = collector.spans().into_iter().filter(|span| span.trace == TRACE).collect();
    assert_connected(&spans);
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let of_execution = spans.iter().filter(|span| span.attribute("durable_mcp.execution").is_some());
    assert!(of_execution.clone().count() >= 5, "{spans:#?}");
    of_execution.for_each(|span| assert_eq!(span.attribute("durable_mcp.execution"), Some(id.as_str())));

    let [whole] = named("execution")[..] else { panic!("{spans:#?}") };
    assert_eq!((&*whole.parent, whole.attribute("durable_mcp.state")), (CLIENT, Some("completed")));
    let mut attempts = named("attempt");
    attempts.sort_by_key(|span| span.start);
    let [lost, done] = attempts[..] else { panic!("two attempts: {spans:#?}") };
    assert_eq!((&lost.parent, &done.parent), (&whole.id, &whole.id));
    assert_eq!((lost.failure.as_deref(), lost.attribute("durable_mcp.attempt")), (Some("process_died"), Some("1")));
    assert_eq!((done.failure.as_deref(), done.attribute("durable_mcp.attempt")), (None, Some("2")));
    assert_eq!(done.links, std::slice::from_ref(&lost.id), "each attempt is linked to the one before it");
    assert_ne!(lost.attribute("durable_mcp.process"), done.attribute("durable_mcp.process"));
    let [called] = named("call")[..] else { panic!("one call lived to tell: {spans:#?}") };
    assert_eq!((&called.parent, called.pid), (&done.id, second));

    let [request] = named("tools/call")[..] else { panic!("{spans:#?}") };
    assert_eq!((&*request.parent, request.pid), (CLIENT, first));
    let [submit] = named("submit")[..] else { panic!("{spans:#?}") };
    assert_eq!((&submit.parent, &submit.links), (&request.id, &vec![whole.id.clone()]));
    assert!(!collector.heard_of("canary"), "no argument is told");
    let ticks = collector.named("scheduler tick");
    assert!(ticks.iter().any(|tick| tick.attribute("durable_mcp.settled").is_some()), "{ticks:?}");
    fleet.setup.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_its_parts_and_its_tool_is_told_where_it_is() {
    let collector = Collector::start().await;
    let scene = Scene::start(&told_to(&collector), "").await;
    for (number, caller) in scene.of_each_era().await.into_iter().enumerate() {
        let trace = format!("{:032x}", number + 7);
        let meta = json!({"traceparent": format!("00-{trace}-{CLIENT}-01"), "tracestate": "rojo=1"});
        let answer = caller.ask(json!({"name": "received", "arguments": {"secret": "canary"}, "_meta": meta})).await;
        let received: Value = serde_json::from_str(text(&answer)).unwrap();
        let id = id_of(&answer);
        collector.wait_for("execution", number + 1).await;
        collector.wait_for("tools/call", number + 1).await;
        let spans: Vec<Got> = collector.spans().into_iter().filter(|span| span.trace == trace).collect();
        assert_connected(&spans);
        let by_name: BTreeMap<&str, &Got> = spans.iter().map(|span| (span.name.as_str(), span)).collect();
        let of = |name: &str| *by_name.get(name).unwrap_or_else(|| panic!("no {name}: {spans:#?}"));
        let request = of("tools/call");
        assert_eq!(request.attribute("rpc.method"), Some("tools/call"));
        assert_eq!(request.attribute("http.response.status_code"), Some("200"));
        assert_eq!(request.attribute("durable_mcp.response_mode"), Some("json"));
        let session = if caller.is_modern() { "false" } else { "true" };
        assert_eq!(request.attribute("mcp.session.present"), Some(session));
        assert!(request.attribute("durable_mcp.instance_age_s").is_some(), "{request:?}");
        for part in ["submit", "wait", "answer"] {
            assert_eq!(of(part).parent, request.id, "{part}");
            assert!(of(part).start >= request.start && of(part).end <= request.end, "{part}: {spans:#?}");
        }
        assert_eq!(of("answer").attribute("durable_mcp.state"), Some("completed"));
        if !caller.is_modern() {
            assert_eq!(of("session load").attribute("durable_mcp.session.outcome"), Some("in_memory"));
            assert_eq!(of("session load").attribute("durable_mcp.session.owner_matches"), Some("true"));
        }
        let call = of("call");
        assert_eq!((&call.parent, &of("attempt").parent), (&of("attempt").id, &of("execution").id));
        assert_eq!(call.attribute("durable_mcp.execution"), Some(id.as_str()));
        let told = &received["_meta"];
        assert_eq!(told["traceparent"], format!("00-{trace}-{}-01", call.id), "the tool's spans belong to the call");
        assert_eq!(told["tracestate"], "rojo=1");
    }
    assert!(!collector.heard_of("canary"), "no argument is told");

    // A client that records nothing is told to nobody, and its context goes on as it was.
    let unsampled = format!("00-{}-{CLIENT}-00", "9".repeat(32));
    let meta = json!({"traceparent": unsampled});
    let answer = scene.modern().ask(json!({"name": "received", "arguments": {}, "_meta": meta})).await;
    let received: Value = serde_json::from_str(text(&answer)).unwrap();
    assert_eq!(received["_meta"]["traceparent"], unsampled);
    // One without a context gets a trace of its own, from the request to the tool.
    let answer = scene.modern().ask(json!({"name": "received", "arguments": {"n": 1}})).await;
    let received: Value = serde_json::from_str(text(&answer)).unwrap();
    let last = collector.wait_for("execution", 3).await.pop().unwrap();
    let request = collector.wait_for("tools/call", 3).await.pop().unwrap();
    assert_eq!((&last.trace, &last.parent), (&request.trace, &request.id));
    assert!(received["_meta"]["traceparent"].as_str().unwrap().contains(&last.trace), "{received}");
    assert!(!collector.spans().iter().any(|span| span.trace.starts_with("9999")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_tool_stays_under_its_own_request_and_a_remote_worker_is_in_the_trace() {
    let collector = Collector::start().await;
    let program = Setup::new(&told_to(&collector)).serve().await;
    let worker = RawWorker::registered(&program, &["order"]).await;
    let caller = Caller::modern(program.url());
    let meta = json!({"traceparent": parent(), "durable-mcp/wait": 0});
    let late = caller.ask(json!({"name": "order", "arguments": {}, "_meta": meta})).await;
    let other = json!({"traceparent": format!("00-{}-{CLIENT}-01", "5".repeat(32)), "durable-mcp/wait": 0});
    caller.ask(json!({"name": "order", "arguments": {"n": 2}, "_meta": other})).await;
    collector.wait_for("tools/call", 2).await;
    // Both requests are over; now the tool ends.
    let jobs = worker.claim(2).await;
    let own = jobs.iter().find(|job| job["execution_id"] == id_of(&late)).unwrap_or(&jobs[0]);
    worker.complete(own, "done").await;
    let whole = collector.wait_for("execution", 1).await.remove(0);
    let attempt = collector.wait_for("attempt", 1).await.remove(0);
    assert_eq!((&*whole.trace, &*whole.parent, &attempt.parent), (TRACE, CLIENT, &whole.id));
    assert_eq!(own["meta"]["traceparent"], format!("00-{TRACE}-{}-01", attempt.id), "the worker was told its place");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_or_stands_still_slows_no_call() {
    let nobody = Nobody::new();
    let config = format!("[telemetry]\notlp_endpoint = \"{}\"\n", nobody.url());
    let program = Setup::new(&config).flag("--demo").serve().await;
    let caller = Caller::modern(program.url());
    for round in 0..2 {
        for number in 0..20 {
            let done = caller.call("demo_echo", json!({"message": format!("{round}-{number}")})).await;
            assert_eq!(execution(&done)["state"], "completed", "{done}");
        }
        eventually_async("deliveries failed", DEADLINE, async || {
            scrape(&program).await.sum("durable_mcp_spans_total", "failed") >= f64::from(round + 1) * 40.0
        })
        .await;
    }
    let said = program.stderr().matches("traces could not be delivered").count();
    assert_eq!(said, 1, "it is said once in a while: {}", program.stderr());

    // One that takes connections and answers nothing: what does not fit is dropped.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let holding = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            held.push(stream);
        }
    });
    let config = format!("[telemetry]\notlp_endpoint = \"{address}\"\nmax_spans = 8\n");
    let mut program = Setup::new(&config).flag("--demo").serve().await;
    let caller = Caller::modern(program.url());
    eventually_async("spans are dropped", DEADLINE, async || {
        let done = caller.call("demo_echo", json!({"message": "more"})).await;
        assert_eq!(execution(&done)["state"], "completed", "{done}");
        scrape(&program).await.sum("durable_mcp_spans_total", "dropped") > 0.0
    })
    .await;
    let begun = std::time::Instant::now();
    program.sigterm().await;
    assert!(begun.elapsed() < Duration::from_secs(15), "the end waits for a moment only: {:?}", begun.elapsed());
    holding.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_standards_own_variables_say_where_traces_go() {
    let collector = Collector::start().await;
    let setup = Setup::new("").flag("--demo");
    let asked = async |setup: &Setup| {
        let program = setup.serve().await;
        Caller::modern(program.url()).call("demo_echo", json!({"message": "x"})).await;
        program
    };
    let mut program = asked(&setup.clone().env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())).await;
    collector.wait_for("execution", 1).await;
    program.sigterm().await;
    let off = setup.clone().env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()).env("OTEL_SDK_DISABLED", "true");
    asked(&off).await.sigterm().await;
    let grpc = setup.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()).env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let mut program = asked(&grpc).await;
    program.sigterm().await;
    assert!(program.stderr().contains("grpc is not spoken here"), "{}", program.stderr());
    assert_eq!(collector.named("execution").len(), 1, "no other was told");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrap_tells_of_its_client_as_a_server_does() {
    let collector = Collector::start().await;
    let setup = Setup::new(&told_to(&collector));
    let ledger = Ledger::in_folder(setup.folder());
    let target = setup.wrap(&kit_stdio(&["--ledger", ledger.path()]));
    let mut client = RawStdio::open(&target, "2025-11-25").await;
    let meta = json!({"traceparent": parent()});
    let params = json!({"name": "append", "arguments": {"text": "wrapped"}, "_meta": meta});
    let answer = client.request(json!(7), "tools/call", params).await;
    assert_eq!(text(&answer), "appended wrapped");
    let mut process = client.close_stdin();
    process.exit(DEADLINE).await;
    let spans: Vec<Got> = collector.spans().into_iter().filter(|span| span.trace == TRACE).collect();
    assert_connected(&spans);
    let names: BTreeSet<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let wanted = ["answer", "attempt", "call", "execution", "submit", "tools/call", "wait"];
    assert_eq!(names, BTreeSet::from(wanted), "{spans:#?}");
    let opened = collector.named("initialize").remove(0);
    assert_eq!((opened.attribute("rpc.method"), &*opened.parent), (Some("initialize"), ""), "a trace of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_call_has_its_span_too() {
    let collector = Collector::start().await;
    let program = Setup::new(&told_to(&collector)).flag("--demo").serve().await;
    let url = program.url();
    let head = |request: Request, span: &str| request.header("traceparent", &format!("00-{TRACE}-{span}-01"));
    let session = open_session(url, "2025-03-26").await.unwrap();
    collector.wait_for("initialize", 1).await;

    // A stream has a span as long as it is open.
    let mut stream = Connection::open(url).await;
    let get = Request::new("GET", url).header("Accept", "text/event-stream").header("Mcp-Session-Id", &session);
    stream.send(&head(get, "1111111111111111").bytes()).await;
    assert_eq!(stream.response_head().await.status, 200);
    // A batch is one request, each of its messages another.
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "demo_echo", "arguments": {"message": "x"},
            "_meta": {"traceparent": format!("00-{}-{CLIENT}-01", "7".repeat(32))}}},
    ]);
    let request = Request::legacy(url, Some(&session), &batch.to_string()).with("MCP-Protocol-Version", "2025-03-26");
    let answers = head(request, "2222222222222222").exchange(url).await.answer();
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
    let post = collector.wait_for("POST", 1).await.remove(0);
    let ping = collector.wait_for("ping", 1).await.remove(0);
    let called = collector.wait_for("tools/call", 1).await.remove(0);
    assert_eq!((&*post.parent, post.attribute("durable_mcp.batch")), ("2222222222222222", Some("2")));
    assert_eq!((&ping.trace, &ping.parent), (&post.trace, &post.id));
    assert_eq!((&*called.trace, &*called.parent), (&*"7".repeat(32), CLIENT), "its own client's span comes first");
    assert!(collector.named("GET").is_empty(), "the stream is open");

    // The end of the session ends the stream; then there is nothing to end.
    for _ in 0..2 {
        let delete = Request::new("DELETE", url).header("Mcp-Session-Id", &session);
        assert_eq!(head(delete, "3333333333333333").exchange(url).await.status, 204);
    }
    let opened = collector.wait_for("GET", 1).await.remove(0);
    assert_eq!((&*opened.trace, &*opened.parent), (TRACE, "1111111111111111"));
    assert_eq!(opened.attribute("durable_mcp.response_mode"), Some("sse"));
    assert_eq!(opened.attribute("mcp.session.present"), Some("true"));
    let deletes = collector.wait_for("DELETE", 2).await;
    assert!(opened.end >= deletes[0].start, "{opened:?} {deletes:?}");
    assert_eq!(deletes[0].attribute("http.response.status_code"), Some("204"));
    let closes = collector.wait_for("session close", 2).await;
    let outcomes: Vec<_> = closes.iter().map(|span| span.attribute("durable_mcp.session.outcome")).collect();
    assert_eq!(outcomes, [Some("closed"), Some("ended_before")]);
    assert_eq!(closes[0].attribute("durable_mcp.session.owner_matches"), Some("true"));
    assert_eq!(closes[0].parent, deletes[0].id);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_standards_sampler_says_which_traces_are_recorded() {
    let collector = Collector::start().await;
    let setup = Setup::new(&told_to(&collector)).flag("--demo");
    // A call without a client's context, one of a client that records, and one of a client that does not.
    let told = async |sampler: &str, argument: &str| -> [bool; 3] {
        let setup = setup.clone().env("OTEL_TRACES_SAMPLER", sampler).env("OTEL_TRACES_SAMPLER_ARG", argument);
        let mut program = setup.serve().await;
        let caller = Caller::modern(program.url());
        let before = collector.named("execution").len();
        let mut ids = Vec::new();
        for flags in ["", "01", "00"] {
            let mut params = json!({"name": "demo_echo", "arguments": {"message": format!("{sampler}{flags}")}});
            if !flags.is_empty() {
                params["_meta"] = json!({"traceparent": format!("00-{}-{CLIENT}-{flags}", "8".repeat(32))});
            }
            ids.push(id_of(&caller.ask(params).await));
        }
        // What is to be told is told by the end.
        program.sigterm().await;
        let told = collector.named("execution").split_off(before);
        let requests = collector.named("tools/call").len();
        assert!(requests >= collector.named("execution").len(), "no execution without its request");
        let has = |id: &String| told.iter().any(|span| span.attribute("durable_mcp.execution") == Some(id));
        [has(&ids[0]), has(&ids[1]), has(&ids[2])]
    };
    assert_eq!(told("always_on", "").await, [true, true, true]);
    assert_eq!(told("parentbased_always_off", "").await, [false, true, false]);
    assert_eq!(told("traceidratio", "0").await, [false, false, false]);
    assert_eq!(told("parentbased_traceidratio", "1").await, [true, true, false]);
}

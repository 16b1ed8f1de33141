//! `/metrics` against what it counts: the event log as SQL tells it, and `executions list --json`, after a run in which a
//! worker was killed, keys came twice, results came too late, and a call's outcome was never learnt. And who may ask.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::cases_scene::{Caller, execution};
use crate::crash_scene::Call;
use crate::replicas_scene::{Fleet, offers};
use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Request, Response};
use crate::support::raw_worker::RawWorker;
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually_async};

/// What a process answered: series with their labels, and values.
pub struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    /// Reads OpenMetrics text, which must be whole.
    pub fn read(text: &str) -> Scrape {
        assert!(text.ends_with("# EOF\n"), "{text}");
        let sample = |line: &str| {
            let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            (series.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
        };
        Scrape(text.lines().filter(|line| !line.starts_with('#')).map(sample).collect())
    }

    /// The names of the series.
    pub fn names(&self) -> BTreeSet<String> {
        self.0.keys().map(|series| series.split('{').next().unwrap_or_default().to_owned()).collect()
    }

    /// The sum of the series of this name whose labels contain `label`.
    pub fn sum(&self, name: &str, label: &str) -> f64 {
        let of = |series: &&String| series.split('{').next() == Some(name) && series.contains(label);
        self.0.iter().filter(|(series, _)| of(series)).map(|(_, value)| value).sum()
    }
}

/// What a process without authentication answers.
pub async fn scrape(program: &Program) -> Scrape {
    let response = get(program, None).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let kind = response.header("content-type");
    assert_eq!(kind, Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    Scrape::read(&response.text())
}

async fn get(program: &Program, bearer: Option<&str>) -> Response {
    let url = program.at("/metrics");
    let request = Request::new("GET", &url);
    let request = match bearer {
        Some(bearer) => request.header("Authorization", &format!("Bearer {bearer}")),
        None => request,
    };
    request.exchange(&url).await
}

/// How often each type of event is in the log.
pub fn events_by_type(fleet: &Fleet) -> BTreeMap<String, f64> {
    let database = Connection::open(fleet.setup.serve_db()).unwrap();
    let mut statement = database.prepare("SELECT type, count(*) FROM execution_events GROUP BY type").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as f64))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Everything that is to be counted happens once at least.
pub struct Run {
    pub fleet: Fleet,
    pub a: Program,
    pub c: Program,
    /// The last answer of the worker that was killed.
    pub killed: Scrape,
    pub duplicates: usize,
}

pub async fn run_with_faults() -> Run {
    let head = "[lease]\nttl = \"1500ms\"\n[scheduler]\ninterval = \"100ms\"\n[defaults.retry]\n\
                initial_interval = \"10ms\"\n";
    let fleet = Fleet::new(On::Sqlite, head, "").await;
    let a = fleet.start("mcp,scheduler").await;
    let mut b = fleet.start("worker").await;
    offers(&a, "slow_idempotent").await;
    let caller = Caller::modern(a.url());

    // A worker is killed in the middle of a call, and another one runs it again.
    let gate = fleet.setup.folder().join("gate");
    let recovered = Call::slow("slow_idempotent", "recovered", 0.0).gate(&gate);
    let (asked, by) = (recovered.clone(), caller.clone());
    let asking = tokio::spawn(async move { by.keyed("recovered", asked.tool, asked.arguments).await });
    fleet.ledger.wait_for_start("recovered", DEADLINE).await;
    let mut killed = scrape(&b).await;
    eventually_async("the lease is counted", DEADLINE, async || {
        killed = scrape(&b).await;
        killed.sum("durable_mcp_events_total", "type=\"leased\"") > 0.0
    })
    .await;
    b.kill_9().await;
    std::fs::write(&gate, "").unwrap();
    let c = fleet.start("worker").await;
    let answer = asking.await.unwrap();
    let of = execution(&answer);
    assert_eq!((&of["state"], of["attempt"].as_u64() >= Some(2)), (&json!("completed"), true), "{answer}");

    // The same twice more, and another call under its key.
    let mut duplicates = 0;
    for _ in 0..2 {
        let again = caller.keyed("recovered", recovered.tool, recovered.arguments.clone()).await;
        duplicates += usize::from(execution(&again)["attached"] == true);
    }
    assert_eq!(duplicates, 2);
    let conflict = caller.keyed("recovered", recovered.tool, json!({"text": "other", "seconds": 0})).await;
    assert_eq!(conflict["error"]["code"], -31409, "{conflict}");

    // One whose server dies and which may run again; one whose outcome is never learnt; plain ones; a tool's own error.
    let once = caller.keyed("once", "crash_idempotent", json!({"text": "once", "once": true})).await;
    assert_eq!(execution(&once)["attempt"], 2, "{once}");
    let lost = caller.keyed("lost", "crash_after_write", json!({"text": "lost", "once": true})).await;
    assert_eq!(execution(&lost)["state"], "unknown", "{lost}");
    for number in 0..5 {
        let text = format!("plain-{number}");
        let done = caller.keyed(&text, "append", json!({"text": text})).await;
        assert_eq!(execution(&done)["state"], "completed", "{done}");
    }
    let wrong = caller.keyed("wrong", "append", json!({"text": 1})).await;
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");

    // A remote worker is silent until its lease is over, gets the call again, and brings both results.
    let remote = RawWorker::registered(&a, &["order"]).await;
    offers(&a, "order").await;
    let ordered = caller.ask(json!({"name": "order", "arguments": {}, "_meta": {"durable-mcp/wait": 0}})).await;
    let id = execution(&ordered)["id"].as_str().unwrap().to_owned();
    let first = remote.job().await;
    let second = remote.job().await;
    assert_eq!((&first["execution_id"], &second["execution_id"]), (&json!(id), &json!(id)));
    let late = remote.complete(&first, "late").await;
    assert_eq!(late.status, 409, "{}", late.text());
    assert_eq!(remote.complete(&second, "done").await.status, 200);
    Run { fleet, a, c, killed, duplicates }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_figures_are_those_of_the_event_log_after_a_run_with_faults() {
    let Run { fleet, a, c, killed, duplicates } = run_with_faults().await;
    let scrapes = [scrape(&a).await, killed, scrape(&c).await];
    let sum = |name: &str, label: &str| scrapes.iter().map(|scrape| scrape.sum(name, label)).sum::<f64>();

    // By the log.
    let logged = events_by_type(&fleet);
    let of = |kind: &str| logged.get(kind).copied().unwrap_or_default();
    for kind in durable_mcp::model::event::Event::NAMES {
        let counted = sum("durable_mcp_events_total", &format!("type=\"{kind}\""));
        assert_eq!(counted, of(kind), "{kind}: {logged:?}");
    }
    for (name, kind) in [
        ("submitted", "submitted"),
        ("attempts", "leased"),
        ("retries", "retried"),
        ("stale_writes_rejected", "rejected"),
        ("conflicts", "conflicted"),
        ("unknown", "lost"),
    ] {
        assert!(of(kind) > 0.0, "{kind} happened: {logged:?}");
        assert_eq!(sum(&format!("durable_mcp_{name}_total"), ""), of(kind), "{name}");
    }
    // Two retries after a loss, and the one that is unknown; the killed worker, and the silent one.
    assert_eq!(sum("durable_mcp_attempts_lost_total", ""), of("retried") + of("lost"));
    assert_eq!(sum("durable_mcp_leases_lost_total", "process_died"), 1.0);
    assert!(sum("durable_mcp_leases_lost_total", "lease_expired") >= 1.0);
    assert_eq!(sum("durable_mcp_duplicates_answered_total", "by=\"key\""), duplicates as f64);
    assert_eq!(sum("durable_mcp_calls_refused_total", "idempotency_key_conflict"), 1.0);
    assert!(sum("durable_mcp_upstream_restarts_total", "upstream=\"kit\"") >= 2.0, "two crashes");

    // By the list.
    let listed = fleet.setup.cli(&["executions", "list", "--json", "--url", &a.at("")]).await;
    let listed: Vec<Value> = listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let in_state = |state: &str| listed.iter().filter(|row| row["state"] == state).count() as f64;
    for state in ["completed", "failed", "cancelled", "unknown", "ready", "leased", "scheduled", "waiting"] {
        let gauge = |scrape: &Scrape| scrape.sum("durable_mcp_executions", &format!("state=\"{state}\""));
        assert_eq!(gauge(&scrapes[0]), in_state(state), "{state}: {listed:?}");
        assert_eq!(gauge(&scrapes[2]), in_state(state), "{state}, as another process sees it");
    }
    let ended = |outcome: &str| sum("durable_mcp_calls_total", &format!("outcome=\"{outcome}\""));
    assert_eq!(ended("completed") + ended("tool_error"), in_state("completed"));
    assert_eq!((ended("unknown"), ended("failed")), (in_state("unknown"), in_state("failed")));
    assert_eq!(ended("tool_error"), 1.0);
    assert_eq!(sum("durable_mcp_phase_seconds_count", "phase=\"total\""), in_state("completed"));
    assert_eq!(sum("durable_mcp_phase_seconds_count", "phase=\"queued\""), of("leased"));
    assert!(sum("durable_mcp_store_commit_seconds_count", "") > 0.0);
    fleet.setup.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_read_every_tenant_may_scrape() {
    let setup = Setup::new("[auth]\nmode = \"token\"\n[namespaces.blue]\n").flag("--demo");
    let program = setup.serve_on(0).await;
    let token = async |more: &[&str]| {
        let ran = setup.cli(&[&["token", "create", "--principal", "eye", "--scope"], more].concat()).await;
        assert!(ran.status.success(), "{}", ran.stderr);
        ran.stdout.trim().to_owned()
    };
    let statuses = async |bearer: Option<&str>| get(&program, bearer).await.status;
    assert_eq!(statuses(None).await, 401);
    assert_eq!(statuses(Some(&token(&["call"]).await)).await, 403);
    assert_eq!(statuses(Some(&token(&["read", "--namespace", "blue"]).await)).await, 403);
    assert_eq!(statuses(Some(&token(&["read"]).await)).await, 200);

    let silent = Setup::new("[telemetry]\nmetrics = false\n").serve().await;
    assert_eq!(get(&silent, None).await.status, 404);
}

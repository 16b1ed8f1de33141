//! The database of running processes goes away: its primary dies and a standby takes its place, it stands still, it is
//! stopped for longer than a process counts as alive without a sign of life. Nothing that was answered is lost, nothing
//! runs twice, calls are refused soon and in words that can be acted upon, and everything goes on by itself. One process
//! has a clock that is an hour wrong, and takes nobody's lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use durable_mcp::model::event::Event;
use durable_mcp::model::execution::State;
use futures_util::future::join_all;
use serde_json::Value;

use crate::crash_scene::{Call, ClientLedger, Told, call, pass};
use crate::replicas_scene::{Fleet, offers};
use crate::skip_loudly;
use crate::support::cluster::{Cluster, Version, cluster_is_set_up};
use crate::support::pg_proxy::PgProxy;
use crate::support::program::Program;
use crate::support::raw_http::Request;
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually, eventually_async};

/// How soon calls go on once there is a primary again.
const BACK_WITHIN: Duration = Duration::from_secs(10);
/// How soon a call that can not be stored is refused: five seconds, and what a busy machine adds.
const REFUSED_WITHIN: Duration = Duration::from_secs(7);
const CLIENTS: usize = 8;

/// Whether `/readyz` says 200, and the reasons that it gives.
async fn readiness(program: &Program) -> (bool, Vec<String>) {
    let url = program.at("/readyz");
    let answer = Request::new("GET", &url).exchange(&url).await;
    let report: Value = serde_json::from_slice(&answer.body).unwrap();
    let reasons = report["reasons"].as_array().unwrap().iter();
    (answer.status == 200, reasons.map(|reason| reason["code"].as_str().unwrap().to_owned()).collect())
}

/// Waits until the process says that its store is the reason why it is not ready.
async fn is_without_its_store(program: &Program) {
    eventually_async("/readyz names the store", DEADLINE, async || {
        let (ready, reasons) = readiness(program).await;
        !ready && reasons.iter().any(|code| code.starts_with("store_"))
    })
    .await;
}

/// A call that is refused now, in time, and told that it may come again.
async fn is_refused(program: &Program, text: &str) {
    let since = Instant::now();
    let told = call(program.url(), &Call::new("append", text)).await;
    let took = since.elapsed();
    let Told::Error(code, words) = &told else { panic!("{told:?}") };
    assert_eq!((*code, words.contains("\"retryable\":true")), (-31503, true), "{words}");
    assert!(took < REFUSED_WITHIN, "{took:?}: {words}");
    eprintln!("refused after {took:?}");
}

/// Starts calls and lets them go on until each has its answer.
fn insisting(ledger: &ClientLedger, urls: &[String], calls: &[Call]) -> Vec<tokio::task::JoinHandle<String>> {
    let ask = |(n, wanted): (usize, &Call)| {
        let (ledger, url, wanted) = (ledger.clone(), urls[n % urls.len()].clone(), wanted.clone());
        tokio::spawn(async move { ledger.insist(&url, &wanted).await.state })
    };
    calls.iter().enumerate().map(ask).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_primary_dies_calls_go_on_at_the_standby_and_nothing_answered_is_lost() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let mut first = Cluster::start(Version::Debian15).await;
    let second = first.standby().await;
    let proxy = PgProxy::start(first.port()).await;
    let fleet = Fleet::stored_at(&first.url_at(proxy.port()), "", "concurrency = 32");
    let mut servers = [fleet.start("mcp,worker,scheduler").await, fleet.start("mcp,worker,scheduler").await];
    for server in &servers {
        offers(server, "append").await;
    }
    let (ledger, leave, done) = (ClientLedger::default(), Arc::new(AtomicBool::new(false)), Arc::default());
    let calling: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (ledger, url) = (ledger.clone(), servers[client % 2].url().to_owned());
            let (leave, done) = (leave.clone(), Arc::<AtomicUsize>::clone(&done));
            tokio::spawn(async move {
                for n in 0.. {
                    if leave.load(Ordering::Relaxed) {
                        return;
                    }
                    let tool = ["append", "append_idempotent"][n % 2];
                    ledger.insist(&url, &Call::new(tool, &format!("{client}-{n}"))).await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let answered = || done.load(Ordering::Relaxed);
    eventually("calls are answered", DEADLINE, || answered() > 20 * CLIENTS).await;

    first.kill().await;
    proxy.cut_all();
    let before = answered();
    second.promote().await;
    proxy.point_to(second.port());
    let since = Instant::now();
    eventually("calls go on", DEADLINE, || answered() > before + CLIENTS).await;
    let took = since.elapsed();
    assert!(took < BACK_WITHIN, "{took:?}");
    for server in &servers {
        server.ready().await;
    }
    eventually("many calls later", DEADLINE, || answered() > before + 20 * CLIENTS).await;

    leave.store(true, Ordering::Relaxed);
    for client in join_all(calling).await {
        client.unwrap();
    }
    for server in &mut servers {
        assert!(server.sigterm().await.success(), "{}", server.stderr());
    }
    let (tally, checked) = ledger.judge(&fleet.setup, &fleet.ledger).await;
    eprintln!("fail-over: calls went on after {took:?}; {tally}");
    assert_eq!(checked.executions.len(), tally.calls, "an execution nobody asked for, or one that is lost");
    // What ran when the primary died is told as unknown at the worst, and no more of it than was under way.
    assert!(tally.of("unknown") <= CLIENTS && tally.of("failed") == 0, "{tally}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_stands_still_is_answered_for_in_time_and_comes_back_by_itself() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let cluster = Cluster::start(Version::Debian15).await;
    let fleet = Fleet::stored_at(&cluster.url(), "", "");
    let server = fleet.start("mcp,worker,scheduler").await;
    let ledger = ClientLedger::default();
    assert_eq!(ledger.insist(server.url(), &Call::new("append", "before")).await.state, "completed");
    cluster.freeze();
    // Connections stay open and nothing is answered: of the first call's commit nobody knows.
    is_refused(&server, "frozen").await;
    is_without_its_store(&server).await;
    is_refused(&server, "still-frozen").await;
    let url = server.at("/api/v1/executions");
    let since = Instant::now();
    let read = Request::new("GET", &url).exchange(&url).await;
    assert_eq!(read.status, 503, "{}", read.text());
    assert!(since.elapsed() < REFUSED_WITHIN, "{:?}", since.elapsed());
    cluster.thaw();
    server.ready().await;
    for text in ["frozen", "still-frozen", "after"] {
        assert_eq!(ledger.insist(server.url(), &Call::new("append", text)).await.state, "completed");
        assert_eq!(fleet.ledger.starts(text).len(), 1, "{text}");
    }
    let (tally, checked) = ledger.judge(&fleet.setup, &fleet.ledger).await;
    assert_eq!((tally.of("completed"), checked.executions.len()), (4, 4), "{tally}");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_goes_on_while_the_database_is_stopped_is_recorded_and_runs_once() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let mut cluster = Cluster::start(Version::Debian15).await;
    // Leases and processes end sooner than the database comes back: nobody may make use of that.
    let head = "[lease]\nttl = \"3s\"\n";
    let fleet = Fleet::stored_at(&cluster.url(), head, "concurrency = 32");
    let servers = [fleet.start("mcp,worker,scheduler").await, fleet.start("mcp,worker,scheduler").await];
    for server in &servers {
        offers(server, "slow").await;
    }
    let [early, late] = ["early", "late"].map(|gate| fleet.setup.folder().join(gate));
    let gate = |n: usize| if n < 4 { &early } else { &late };
    let calls: Vec<Call> = (0..8)
        .map(|n| Call::slow(["slow", "slow_idempotent"][n % 2], &format!("running-{n}"), 0.0).gate(gate(n)))
        .collect();
    let ledger = ClientLedger::default();
    let urls = servers.each_ref().map(|server| server.url().to_owned());
    let asking = insisting(&ledger, &urls, &calls);
    eventually("all run", DEADLINE, || fleet.ledger.all_starts().len() == calls.len()).await;

    cluster.stop_immediately().await;
    for server in &servers {
        is_without_its_store(server).await;
    }
    is_refused(&servers[0], "meanwhile").await;
    // Half of them end while nothing can be recorded. Leases and signs of life are over by then.
    pass(Duration::from_secs(6)).await;
    std::fs::write(&early, "").unwrap();
    let ended = |calls: &[Call]| calls.iter().all(|call| fleet.ledger.dones(&call.text) == 1);
    eventually("the first end", DEADLINE, || ended(&calls[..4])).await;
    cluster.start_again().await;
    for server in &servers {
        server.ready().await;
    }
    // The others go on for longer than a scheduler takes to find them.
    pass(Duration::from_secs(6)).await;
    std::fs::write(&late, "").unwrap();
    eventually("the others end", DEADLINE, || ended(&calls)).await;
    for state in join_all(asking).await {
        assert_eq!(state.unwrap(), "completed");
    }
    assert_eq!(ledger.insist(servers[1].url(), &Call::new("append", "meanwhile")).await.state, "completed");
    let (tally, checked) = ledger.judge(&fleet.setup, &fleet.ledger).await;
    eprintln!("a stopped database: {tally}");
    assert_eq!(checked.count(State::Completed), calls.len() + 1);
    for held in &checked.executions {
        let lost = held.events.iter().any(|record| matches!(record.event, Event::Lost { .. } | Event::Retried { .. }));
        assert!(!lost, "{:#?}", held.events);
    }
    for text in calls.iter().map(|call| call.text.as_str()).chain(["meanwhile"]) {
        assert_eq!(fleet.ledger.starts(text).len(), 1, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_clock_is_an_hour_wrong_takes_nobodys_lease() {
    skip_loudly!(On::Postgres.is_set_up());
    let head = "[lease]\nttl = \"4s\"\n[scheduler]\ninterval = \"100ms\"\n";
    let fleet = Fleet::new(On::Postgres, head, "concurrency = 32").await;
    let right = fleet.start("mcp,worker").await;
    let hour = "3600000";
    let shifted = |shift: &str| fleet.as_roles("mcp,worker,scheduler").env("DURABLE_MCP_CLOCK_SHIFT", shift);
    let ahead = shifted(hour).serve().await;
    let behind = shifted(&format!("-{hour}")).serve().await;
    for program in [&right, &ahead, &behind] {
        offers(program, "slow").await;
    }
    ahead.process.line_with("ahead of the store's").await;
    behind.process.line_with("behind the store's").await;
    // Longer than a lease lasts, so that each is extended at least once.
    let calls: Vec<Call> =
        (0..9).map(|n| Call::slow(["slow", "slow_idempotent"][n % 2], &format!("long-{n}"), 6.0)).collect();
    let urls = [&right, &ahead, &behind].map(|program| program.url().to_owned());
    let ledger = ClientLedger::default();
    let asking = insisting(&ledger, &urls, &calls);
    for state in join_all(asking).await {
        assert_eq!(state.unwrap(), "completed");
    }
    let (_, checked) = ledger.judge(&fleet.setup, &fleet.ledger).await;
    assert_eq!(checked.count(State::Completed), calls.len());
    let now_ms = crate::crash_scene::now_ms();
    for held in &checked.executions {
        let lost = held.events.iter().any(|record| matches!(record.event, Event::Lost { .. } | Event::Retried { .. }));
        assert!(!lost, "{:#?}", held.events);
        // Written by the database's clock, whoever wrote it.
        let near = |at_ms: i64| (now_ms - at_ms).abs() < 600_000;
        assert!(held.events.iter().all(|record| near(record.at_ms)), "{:#?}", held.events);
    }
    for call in &calls {
        assert_eq!(fleet.ledger.starts(&call.text).len(), 1, "{}", call.text);
    }
}

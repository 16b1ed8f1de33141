//! The database of running processes goes away: it stands still, it is stopped for longer than leases last and than a
//! process counts as alive without a sign of life. Nothing that was answered is lost, nothing runs twice, calls are refused
//! soon and in words that can be acted upon, memory is bounded, and everything goes on by itself. One process has a clock
//! that is an hour wrong, and takes nobody's lease. A primary that dies and is replaced is `postgres_failover`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use durable_mcp::model::event::Event;
use durable_mcp::model::execution::State;
use futures_util::future::join_all;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::crash_scene::{Call, ClientLedger, Told, call, pass};
use crate::postgres_scene::{BACK_WITHIN, REFUSED_WITHIN, insisting, is_refused, is_without_its_store};
use crate::replicas_scene::{Fleet, offers};
use crate::skip_loudly;
use crate::support::cluster::{Cluster, Version, cluster_is_set_up};
use crate::support::program::Program;
use crate::support::raw_http::Request;
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually};

/// How long the database is away: longer than leases here, and than a process counts as alive without a sign of life.
const AWAY: Duration = Duration::from_secs(30);
/// Callers that keep trying meanwhile, each with a new call of so many bytes each time.
const CALLERS: usize = 48;
const CALL_BYTES: usize = 256 << 10;
/// What a server may need more than before while the database is away and callers keep trying, and more than when they
/// had been at it for a third of the time.
const MORE_KIB: i64 = 64 << 10;
const MORE_LATER_KIB: i64 = 24 << 10;

/// Callers at these servers who call again as soon as they are refused, until they are told to leave; each refusal in time
/// and with the word that the call may come again. How often they were refused, and the longest time it took.
fn keep_trying(servers: &[Program], leave: &Arc<AtomicBool>) -> Vec<JoinHandle<(usize, Duration)>> {
    let caller = |n: usize| {
        let (url, leave) = (servers[n % servers.len()].url().to_owned(), Arc::clone(leave));
        tokio::spawn(async move {
            let (mut refused, mut longest) = (0, Duration::ZERO);
            while !leave.load(Ordering::Relaxed) {
                let mut wanted = Call::new("append_idempotent", &format!("trying-{n}-{refused}"));
                wanted.arguments["padding"] = json!("x".repeat(CALL_BYTES));
                let since = Instant::now();
                let told = call(&url, &wanted).await;
                longest = longest.max(since.elapsed());
                let Told::Error(-31503 | -31429, words) = &told else { panic!("{told:?}") };
                assert!(words.contains("\"retryable\":true"), "{words}");
                refused += 1;
            }
            (refused, longest)
        })
    };
    (0..CALLERS).map(caller).collect()
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
    is_refused(&ledger, server.url(), None, "frozen").await;
    is_without_its_store(&server).await;
    is_refused(&ledger, server.url(), None, "still-frozen").await;
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
    is_refused(&ledger, servers[0].url(), None, "meanwhile").await;
    let sizes = || servers.each_ref().map(Program::resident_kib);
    let (before, leave) = (sizes(), Arc::new(AtomicBool::new(false)));
    let trying = keep_trying(&servers, &leave);
    pass(AWAY / 3).await;
    let early_sizes = sizes();
    // Half of them end while nothing can be recorded. Leases and signs of life are over by then.
    std::fs::write(&early, "").unwrap();
    let ended = |calls: &[Call]| calls.iter().all(|call| fleet.ledger.dones(&call.text) == 1);
    eventually("the first end", DEADLINE, || ended(&calls[..4])).await;
    pass(AWAY - AWAY / 3).await;
    let late_sizes = sizes();
    for server in &servers {
        is_without_its_store(server).await;
    }
    leave.store(true, Ordering::Relaxed);
    let refusals: Vec<(usize, Duration)> = join_all(trying).await.into_iter().map(Result::unwrap).collect();
    let (refused, longest) =
        refusals.iter().fold((0, Duration::ZERO), |(all, most), (n, took)| (all + n, most.max(*took)));
    cluster.start_again().await;
    let since = Instant::now();
    for server in &servers {
        server.ready().await;
    }
    let back = since.elapsed();
    eprintln!(
        "{AWAY:?} without a database: {refused} calls of {CALL_BYTES} bytes refused, each within {longest:?}; KiB \
         {before:?} before, {early_sizes:?} after a third of it, {late_sizes:?} at its end; ready again after {back:?}"
    );
    assert!(longest < REFUSED_WITHIN, "{longest:?}");
    assert!(back < BACK_WITHIN, "{back:?}");
    // Had it been kept, the second bound would be passed by the two thirds of it that came later.
    let refused_kib = (refused * CALL_BYTES / 1024) / servers.len();
    assert!(refused_kib * 2 / 3 > MORE_LATER_KIB as usize, "{refused} calls were refused");
    for n in 0..servers.len() {
        let (more, later) = (late_sizes[n] - before[n], late_sizes[n] - early_sizes[n]);
        assert!(more < MORE_KIB && later < MORE_LATER_KIB, "server {n}: {more} KiB more, {later} KiB later");
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

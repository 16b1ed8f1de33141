//! A process is stopped (SIGSTOP) past its leases while its tools run, another one on the same file settles its calls,
//! and the first one goes on: its late results are judged by their fencing tokens.

use std::time::Duration;

use durable_mcp::model::event::{Event, EventRecord};
use durable_mcp::model::execution::{ResultSource, State};
use futures_util::future::join_all;
use rustix::process::Signal;

use crate::crash_scene::{Call, Told, call, kit_setup, pass};
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup};
use crate::support::store_check::Checked;
use crate::support::{DEADLINE, eventually};

/// Stops in each scene.
const STOPS: usize = 3;
/// Calls in each of them.
const CALLS: usize = 4;

/// Leases are short.
fn scene(concurrency: usize) -> (Setup, Ledger) {
    let head = "[lease]\nttl = \"900ms\"\n[scheduler]\ninterval = \"100ms\"\n\
                [defaults]\nretry = { initial_interval = \"50ms\" }\n";
    kit_setup(head, &format!("concurrency = {concurrency}"))
}

fn start_calls(server: &Program, calls: &[Call]) -> Vec<tokio::task::JoinHandle<Told>> {
    let spawn = |wanted: Call| {
        let url = server.url().to_owned();
        tokio::spawn(async move { call(&url, &wanted).await })
    };
    calls.iter().cloned().map(spawn).collect()
}

/// Polls the store until every execution of these calls passes.
async fn stored(setup: &Setup, calls: &[Call], what: &str, passes: impl Fn(State, &[EventRecord]) -> bool) -> Checked {
    let end = tokio::time::Instant::now() + DEADLINE;
    loop {
        let checked = setup.check_store().await;
        let of = |call: &Call| {
            let held = checked.executions.iter().find(|held| held.head.ident.key.as_deref() == Some(call.key.as_str()));
            held.is_some_and(|held| passes(held.head.state, &held.events))
        };
        if calls.iter().all(of) {
            return checked;
        }
        let told = |held: &crate::support::store_check::Execution| format!("{:?} {:#?}", held.head.state, held.events);
        let all: Vec<String> = checked.executions.iter().rev().take(CALLS).map(told).collect();
        assert!(tokio::time::Instant::now() < end, "not so: {what}\n{}", all.join("\n"));
        pass(Duration::from_millis(20)).await;
    }
}

fn completed_late(events: &[EventRecord]) -> bool {
    let late = |record: &EventRecord| matches!(record.event, Event::Completed { source: ResultSource::LateResult, .. });
    events.iter().any(late)
}

fn rejected(events: &[EventRecord]) -> bool {
    let stale = |event: &Event| match event {
        Event::Rejected { fencing_token: 1, reason, result: Some(_) } => reason == "stale_token" || reason == "ended",
        _ => false,
    };
    events.iter().any(|record| stale(&record.event))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_result_of_a_stopped_worker_completes_an_unknown_call() {
    let (setup, ledger) = scene(16);
    let (stopped, other) = (setup.serve().await, setup.serve().await);
    for stop in 0..STOPS {
        // Some tools answer while the process is stopped, some go on after it was continued.
        let [early, late] = ["early", "late"].map(|gate| setup.folder().join(format!("{gate}-{stop}")));
        let gate = |n: usize| if n < CALLS / 2 { &early } else { &late };
        let calls: Vec<Call> =
            (0..CALLS).map(|n| Call::slow("slow", &format!("late-{stop}-{n}"), 0.0).gate(gate(n))).collect();
        let callers = start_calls(&stopped, &calls);
        eventually("all run", DEADLINE, || calls.iter().all(|call| ledger.starts(&call.text).len() == 1)).await;
        stopped.stop_outside_of_transactions().await;
        stored(&setup, &calls, "the other process settled them", |state, _| state == State::Unknown).await;
        // Who asks the other process meanwhile is told the truth.
        let meanwhile = call(other.url(), &calls[CALLS - 1]).await.answer();
        assert_eq!(meanwhile.state, "unknown", "{meanwhile:?}");
        std::fs::write(&early, "").unwrap();
        for call in &calls[..CALLS / 2] {
            ledger.wait_for_done(&call.text, DEADLINE).await;
        }
        stopped.process.signal(Signal::CONT);
        std::fs::write(&late, "").unwrap();
        let what = "late results completed them";
        stored(&setup, &calls, what, |state, events| state == State::Completed && completed_late(events)).await;
        for (told, wanted) in join_all(callers).await.into_iter().zip(&calls) {
            // The callers of the stopped process waited with it.
            let told = told.unwrap().answer();
            assert!(["unknown", "completed"].contains(&told.state.as_str()), "{told:?}");
            let again = call(other.url(), wanted).await.answer();
            assert_eq!((again.state.as_str(), again.text()), ("completed", format!("slept {}", wanted.text).as_str()));
            assert_eq!(ledger.starts(&wanted.text).len(), 1, "nothing ran twice");
        }
    }
    eprintln!("{STOPS} stops, {} at_most_once calls: unknown, then completed by their late results", STOPS * CALLS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_result_of_a_stopped_worker_is_refused_when_the_call_was_leased_elsewhere() {
    let (setup, ledger) = scene(16);
    let (stopped, other) = (setup.serve().await, setup.serve().await);
    for stop in 0..STOPS {
        let gate = setup.folder().join(format!("gate-{stop}"));
        let calls: Vec<Call> =
            (0..CALLS).map(|n| Call::slow("slow_idempotent", &format!("stale-{stop}-{n}"), 0.5).gate(&gate)).collect();
        let callers = start_calls(&stopped, &calls);
        eventually("all run", DEADLINE, || calls.iter().all(|call| ledger.starts(&call.text).len() == 1)).await;
        stopped.stop_outside_of_transactions().await;
        std::fs::write(&gate, "").unwrap();
        for call in &calls {
            ledger.wait_for_done(&call.text, DEADLINE).await;
        }
        // The first run is done, its answer stands in the pipe of the stopped process; the second run goes on elsewhere.
        let repeated = || calls.iter().all(|call| ledger.starts(&call.text).len() == 2);
        eventually("the other process runs them again", DEADLINE, repeated).await;
        stopped.process.signal(Signal::CONT);
        let what = "refused, and completed by the other process";
        let checked = stored(&setup, &calls, what, |state, events| state == State::Completed && rejected(events)).await;
        for (told, wanted) in join_all(callers).await.into_iter().zip(&calls) {
            let told = told.unwrap().answer();
            assert_eq!((told.state.as_str(), told.attempt), ("completed", 2), "{told:?}");
            let starts = ledger.starts(&wanted.text);
            assert_eq!(starts.len(), 2, "max_attempts is 3, and nobody needed the third");
            assert_ne!(starts[0].pid, starts[1].pid);
            let held = checked.executions.iter().find(|held| held.head.id().to_string() == told.id).unwrap();
            let by_newest = |record: &EventRecord| {
                matches!(record.event, Event::Completed { fencing_token: Some(2), source: ResultSource::Result, .. })
            };
            assert!(held.events.iter().any(by_newest), "{:#?}", held.events);
        }
    }
    drop(other);
    eprintln!("{STOPS} stops, {} at_least_once calls: leased elsewhere, stale results refused", STOPS * CALLS);
}

//! The server behind the program dies in a call: its process, its guard, by itself, or as an HTTP server that is started
//! anew. The caller is told the truth at once, and the next call works.

use std::time::{Duration, Instant};

use durable_mcp::model::event::Event;
use durable_mcp::model::execution::State;

use crate::crash_scene::{Answer, Call, call, kit_setup, now_ms};
use crate::on_every_store;
use crate::support::ledger::Ledger;
use crate::support::process_tree::{self, table};
use crate::support::program::{Program, Setup, server_table};
use crate::support::servers::kit_http;
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually};

on_every_store! {
    a_server_over_http_that_is_restarted_in_a_call_leaves_nobody_waiting;
}

/// The caller is told within this time.
const TOLD_WITHIN: Duration = Duration::from_secs(1);
/// The same for a server over HTTP, whose death only the connection shows.
const HTTP_TOLD_WITHIN: Duration = Duration::from_secs(5);

/// Deaths in a row of one server.
const DEATHS: usize = 6;

const QUICK_RETRY: &str = "[defaults]\nretry = { initial_interval = \"50ms\" }\n";

/// Whom to kill.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Server,
    Guard,
}

impl Victim {
    fn pid(self, server: u32) -> u32 {
        match self {
            Victim::Server => server,
            Victim::Guard => table().into_iter().find(|row| row.pid == server).expect("the server lives").parent,
        }
    }
}

/// Starts a call, waits until it runs, kills, and answers what the caller was told and how long after the kill.
async fn killed_in(server: &Program, ledger: &Ledger, wanted: Call, victim: Victim) -> (Answer, Duration) {
    let (url, asked) = (server.url().to_owned(), wanted.clone());
    let calling = tokio::spawn(async move { call(&url, &asked).await });
    ledger.wait_for_start(&wanted.text, DEADLINE).await;
    let pid = ledger.starts(&wanted.text)[0].pid;
    let killed = Instant::now();
    process_tree::end(victim.pid(pid));
    let answer = calling.await.unwrap().answer();
    let took = killed.elapsed();
    process_tree::wait_gone(&[pid], DEADLINE).await;
    (answer, took)
}

fn assert_unknown(answer: &Answer, tool: &str) {
    assert_eq!(answer.state, "unknown", "{answer:?}");
    assert_eq!(answer.result["isError"], true);
    let text = answer.text();
    assert!(text.contains("not known") && text.contains("NOT run again") && text.contains(tool), "{text}");
    assert!(text.contains(&answer.id), "{text}");
}

async fn next_call_works(server: &Program, text: &str) -> Duration {
    let since = Instant::now();
    let answer = call(server.url(), &Call::new("append", text)).await.answer();
    assert_eq!((answer.state.as_str(), answer.text()), ("completed", format!("appended {text}").as_str()));
    since.elapsed()
}

// A28: a call to a server whose process was killed hangs for ever. A27: it blocks until the tool's time-out.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_whose_server_is_killed_is_told_within_a_second() {
    let (setup, ledger) = kit_setup(QUICK_RETRY, "");
    let server = setup.serve().await;
    for (round, victim) in [Victim::Server, Victim::Guard].into_iter().enumerate() {
        let text = format!("long-{round}");
        let (answer, took) = killed_in(&server, &ledger, Call::slow("slow", &text, 20.0), victim).await;
        let next = next_call_works(&server, &format!("next-{round}")).await;
        eprintln!("{victim:?} killed: told unknown after {took:?}, the next call took {next:?}");
        assert_unknown(&answer, "slow");
        assert!(took < TOLD_WITHIN, "{took:?}");
        assert_eq!(ledger.starts(&text).len(), 1);
    }
    server.check_store().await;
}

// A tool that may be repeated: after each of several deaths its caller has the result of the next attempt within a second,
// the attempt's own time apart. Measured by the times of the events.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_may_be_repeated_has_its_result_within_a_second_of_each_death() {
    const OWN_SECONDS: f64 = 0.1;
    let (setup, ledger) = kit_setup(QUICK_RETRY, "");
    let server = setup.serve().await;
    let mut took_ms = Vec::new();
    for round in 0..DEATHS {
        let victim = [Victim::Server, Victim::Guard][round % 2];
        let text = format!("short-{round}");
        let (url, asked) = (server.url().to_owned(), Call::slow("slow_idempotent", &text, OWN_SECONDS));
        let calling = tokio::spawn(async move { call(&url, &asked).await });
        ledger.wait_for_start(&text, DEADLINE).await;
        let pid = ledger.starts(&text)[0].pid;
        let killed_ms = now_ms();
        process_tree::end(victim.pid(pid));
        let answer = calling.await.unwrap().answer();
        assert_eq!((answer.state.as_str(), answer.attempt), ("completed", 2), "{answer:?}");
        assert_eq!(answer.text(), format!("slept {text}"));
        assert_eq!(ledger.starts(&text).len(), 2);
        process_tree::wait_gone(&[pid], DEADLINE).await;
        let checked = server.check_store().await;
        let execution = checked.executions.iter().find(|held| held.head.id().to_string() == answer.id).unwrap();
        let at =
            |wanted: fn(&Event) -> bool| execution.events.iter().rfind(|record| wanted(&record.event)).unwrap().at_ms;
        let (retried, leased, completed) = (
            at(|event| matches!(event, Event::Retried { .. })) - killed_ms,
            at(|event| matches!(event, Event::Leased { .. })) - killed_ms,
            at(|event| matches!(event, Event::Completed { .. })) - killed_ms,
        );
        eprintln!(
            "{victim:?} killed: settled after {retried} ms, leased after {leased} ms, completed after {completed} ms"
        );
        took_ms.push(completed - (OWN_SECONDS * 1_000.0) as i64);
    }
    assert!(took_ms.iter().all(|ms| *ms < TOLD_WITHIN.as_millis() as i64), "{took_ms:?}");
}

// A27, A11: the server writes and dies before it answers. `idempotentHint` decides: unknown, or one more attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_after_its_effect_leaves_unknown_or_one_more_attempt_by_its_hint() {
    let (setup, ledger) = kit_setup(QUICK_RETRY, "");
    let mut server = setup.serve().await;
    for round in 0..3 {
        let text = format!("once-{round}");
        let since = Instant::now();
        let answer = call(server.url(), &Call::new("crash_after_write", &text)).await.answer();
        let took = since.elapsed();
        assert_unknown(&answer, "crash_after_write");
        assert!(took < TOLD_WITHIN, "{took:?}");
        let next = next_call_works(&server, &format!("next-{round}")).await;
        assert_eq!(ledger.starts(&text).len(), 1, "not run again");
        // The same key again: the same answer, no run.
        let again = call(server.url(), &Call::new("crash_after_write", &text)).await.answer();
        assert_eq!((again.id, again.state), (answer.id, answer.state));
        assert_eq!(ledger.starts(&text).len(), 1, "not run again");

        let text = format!("twice-{round}");
        let since = Instant::now();
        let answer = call(server.url(), &Call::new("crash_idempotent", &text)).await.answer();
        eprintln!("dead by itself: unknown after {took:?}, next call {next:?}, repeated in {:?}", since.elapsed());
        assert_eq!((answer.state.as_str(), answer.attempt), ("completed", 2), "{answer:?}");
        assert_eq!(answer.text(), format!("survived {text}"));
        let starts = ledger.starts(&text);
        assert_eq!(starts.len(), 2);
        assert_eq!(starts[0].key, starts[1].key, "every attempt carries the same key");
        assert_ne!(starts[0].token, starts[1].token, "every attempt has a lease of its own");
    }
    assert!(server.sigterm().await.success());
    let checked = setup.check_store().await;
    let retries = |execution: &&crate::support::store_check::Execution| {
        execution.events.iter().any(|record| matches!(record.event, Event::Retried { attempt: 1, ran: true, .. }))
    };
    assert_eq!(checked.executions.iter().filter(retries).count(), 3);
    assert_eq!(checked.count(State::Unknown), 3);
}

// A25: the server is restarted during a call over HTTP, and the caller hangs for ever. A18: the session of before is gone.
async fn a_server_over_http_that_is_restarted_in_a_call_leaves_nobody_waiting(on: On) {
    let scenes = [("json", "legacy"), ("sse", "legacy"), ("json", "both"), ("sse", "modern")];
    futures_util::future::join_all(scenes.map(|(response, era)| restarted_over_http(on, response, era))).await;
}

async fn restarted_over_http(on: On, response: &str, era: &str) {
    let setup = Setup::new("").on(on).await;
    let ledger = Ledger::in_folder(setup.folder());
    let flags = ["--response", response, "--era", era, "--ledger", ledger.path()];
    let mut upstream = kit_http(&flags).await;
    let port = upstream.port().to_string();
    let setup = setup.config(&format!("{QUICK_RETRY}{}", server_table("kit", &upstream.target, "")));
    let mut server = setup.serve().await;
    for (text, wanted) in
        [("lost", Call::slow("slow", "lost", 20.0)), ("repeated", Call::slow("slow_idempotent", "repeated", 0.6))]
    {
        let (url, asked) = (server.url().to_owned(), wanted.clone());
        let calling = tokio::spawn(async move { call(&url, &asked).await });
        ledger.wait_for_start(text, DEADLINE).await;
        let killed = Instant::now();
        upstream.process.as_mut().unwrap().kill().await;
        upstream = kit_http(&[&flags[..], &["--port", &port]].concat()).await;
        let answer = calling.await.unwrap().answer();
        let took = killed.elapsed();
        eprintln!("{response}, {era}: {} {took:?} after the kill", answer.state);
        assert!(took < HTTP_TOLD_WITHIN, "{response}, {era}: {took:?}");
        match text {
            "lost" => assert_unknown(&answer, "slow"),
            _ => assert_eq!((answer.state.as_str(), answer.text()), ("completed", "slept repeated"), "{answer:?}"),
        }
        // The new process knows nothing of the old one's sessions.
        next_call_works(&server, &format!("next-{text}")).await;
    }
    assert_eq!((ledger.starts("lost").len(), ledger.starts("repeated").len()), (1, 2));
    assert!(server.sigterm().await.success());
    setup.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_on_a_killed_server_are_all_settled_at_once() {
    let (setup, ledger) = kit_setup(QUICK_RETRY, "");
    let mut server = setup.serve().await;
    let wanted: Vec<Call> = (0..12).map(|n| Call::slow("slow", &format!("many-{n}"), 20.0)).collect();
    let calling: Vec<_> = wanted
        .iter()
        .cloned()
        .map(|wanted| {
            let url = server.url().to_owned();
            tokio::spawn(async move { call(&url, &wanted).await.answer() })
        })
        .collect();
    eventually("all run", DEADLINE, || ledger.all_starts().len() == wanted.len()).await;
    let killed = Instant::now();
    process_tree::end(ledger.all_starts()[0].pid);
    for answer in futures_util::future::join_all(calling).await {
        assert_unknown(&answer.unwrap(), "slow");
    }
    let took = killed.elapsed();
    eprintln!("12 calls were told after {took:?}");
    assert!(took < TOLD_WITHIN, "{took:?}");
    next_call_works(&server, "next").await;
    assert!(server.sigterm().await.success());
    assert_eq!(setup.check_store().await.count(State::Unknown), 12);
}

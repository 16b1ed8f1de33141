//! Servers that end in order while others go on: what runs is answered, or goes on elsewhere; sessions and streams are
//! taken up by the others; a caller whose call outlives the grace time gets a handle and is not cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use crate::crash_scene::{Call, ClientLedger, Dice, Told, call, call_in, is_settled, pass};
use crate::on_every_store;
use crate::replicas_scene::{Fleet, offers};
use crate::sessions::{answer, begin, listen};
use crate::support::program::Program;
use crate::support::raw_http::open_session;
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually};

on_every_store! {
    three_servers_are_restarted_in_turn_under_load_and_no_call_with_a_key_fails;
    a_server_that_ends_during_ten_calls_of_two_seconds_answers_all_of_them;
    callers_that_outlive_the_grace_time_get_a_handle_and_find_the_call_elsewhere;
}

const CLIENTS: u64 = 8;

/// A client that goes around the servers, each call under a key of its own, repeated at the next server while it has no
/// answer; every second one in a session. Returns the number of its calls.
async fn client(
    urls: Arc<Vec<String>>,
    (clients, session): (ClientLedger, Option<String>),
    mut dice: Dice,
    (leave, failed): (Arc<AtomicBool>, Arc<AtomicUsize>),
) -> usize {
    let name = dice.between(0, 1 << 40);
    let mut at = name as usize;
    for n in 0.. {
        if leave.load(Ordering::Relaxed) {
            return n;
        }
        let text = format!("{name}-{n}");
        let tool = if n % 2 == 0 { "slow" } else { "slow_idempotent" };
        let wanted = Call::slow(tool, &text, dice.between(1, 120) as f64 / 1_000.0);
        let end = Instant::now() + 2 * DEADLINE;
        loop {
            at += 1;
            match clients.ask_in(&urls[at % urls.len()], session.as_deref(), &wanted).await {
                Told::Answer(answer) if answer.state == "completed" => break,
                Told::Answer(answer) if is_settled(&answer.state) => {
                    eprintln!("{wanted:?}: {answer:?}");
                    failed.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                // A handle, a server that is gone, a full queue: the same call goes on at the next one.
                Told::Answer(_) | Told::Cut | Told::Error(-31429 | -31503, _) => {}
                Told::Error(code, words) => panic!("{wanted:?}: {code} {words}"),
            }
            assert!(Instant::now() < end, "no answer for {wanted:?}");
            pass(Duration::from_millis(5)).await;
        }
    }
    unreachable!("it leaves when it is told to")
}

async fn three_servers_are_restarted_in_turn_under_load_and_no_call_with_a_key_fails(on: On) {
    let fleet = Fleet::new(on, "[server]\nshutdown_grace = \"3s\"\nretry = \"50ms\"\n", "concurrency = 32").await;
    let (_first, _second) = (fleet.start("worker").await, fleet.start("worker,scheduler").await);
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(fleet.start("mcp").await);
        offers(&servers[servers.len() - 1], "slow").await;
    }
    let urls = Arc::new(servers.iter().map(|server| server.url().to_owned()).collect::<Vec<_>>());
    let session = open_session(&urls[0], "2025-11-25").await.unwrap();
    let (ledger, leave, failed) = (ClientLedger::default(), Arc::new(AtomicBool::new(false)), Arc::default());
    let calling: Vec<_> = (0..CLIENTS)
        .map(|n| {
            let session = (n % 2 == 0).then(|| session.clone());
            let state = (leave.clone(), Arc::clone(&failed));
            tokio::spawn(client(urls.clone(), (ledger.clone(), session), Dice::new(77 + n), state))
        })
        .collect();
    let mut taken_up = 0;
    for n in 0..3 {
        // A stream that is open when its server goes is taken up at the next one, and brings the answer.
        let text = format!("stream-{n}");
        let params = json!({"name": "slow", "arguments": {"text": text, "seconds": 2.5},
                            "_meta": {"durable-mcp/idempotencyKey": text}});
        let message = json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params}).to_string();
        let (mut stream, first) = begin(&servers[n], &session, &message).await;
        fleet.ledger.wait_for_start(&text, DEADLINE).await;
        assert!(servers[n].sigterm().await.success(), "{}", servers[n].stderr());
        while let Some(event) = stream.event().await {
            assert!(!event.data.contains("\"result\""), "the answer came before the server went: {event:?}");
        }
        let mut stream = listen(&servers[(n + 1) % 3], &session, Some(&first)).await;
        let (said, _) = answer(&mut stream).await;
        assert_eq!(said["id"], n, "{said}");
        assert_eq!(said["result"]["content"][0]["text"], format!("slept {text}"), "{said}");
        taken_up += 1;
        let port = servers[n].port();
        servers[n] = fleet.as_roles("mcp").serve_on(port).await;
        servers[n].ready().await;
    }
    leave.store(true, Ordering::Relaxed);
    let ended = tokio::time::timeout(3 * DEADLINE, join_all(calling)).await.expect("every client has its answers");
    let calls: usize = ended.into_iter().map(Result::unwrap).sum();
    let failed: usize = failed.load(Ordering::Relaxed);
    let (tally, _) = ledger.judge(&fleet.setup, &fleet.ledger).await;
    eprintln!("three servers restarted in turn: {calls} calls, {failed} failed, {taken_up} streams taken up; {tally}");
    assert_eq!(failed, 0);
    assert!(calls >= 60, "{calls}");
    // The same session goes on at each of them.
    for (n, server) in servers.iter().enumerate() {
        let wanted = Call::slow("slow", &format!("after-{n}"), 0.01);
        assert_eq!(call_in(server.url(), &session, &wanted).await.answer().state, "completed");
    }
}

/// Ten calls of 2 s at one server, SIGTERM while all run; what each was told, and how long the end took.
async fn ended_during_ten_calls(fleet: &Fleet, server: &mut Program) -> (Vec<(Call, Told)>, Duration) {
    let calls: Vec<Call> = (0..10)
        .map(|n| {
            let tool = if n % 2 == 0 { "slow" } else { "slow_idempotent" };
            Call::slow(tool, &format!("two-seconds-{n}"), 2.0)
        })
        .collect();
    let asking: Vec<_> = calls
        .iter()
        .cloned()
        .map(|wanted| {
            let url = server.url().to_owned();
            tokio::spawn(async move { call(&url, &wanted).await })
        })
        .collect();
    eventually("all run", DEADLINE, || fleet.ledger.all_starts().len() == calls.len()).await;
    let since = Instant::now();
    assert!(server.sigterm().await.success(), "{}", server.stderr());
    let took = since.elapsed();
    let told = join_all(asking).await.into_iter().map(Result::unwrap);
    (calls.into_iter().zip(told).collect(), took)
}

async fn a_server_that_ends_during_ten_calls_of_two_seconds_answers_all_of_them(on: On) {
    let fleet = Fleet::new(on, "[server]\nshutdown_grace = \"20s\"\n", "").await;
    let mut server = fleet.setup.serve().await;
    let (told, took) = ended_during_ten_calls(&fleet, &mut server).await;
    for (wanted, told) in &told {
        assert!(matches!(told, Told::Answer(answer) if answer.state == "completed"), "{wanted:?}: {told:?}");
    }
    eprintln!("ten calls of 2 s, all answered; ended after {took:?}");
    assert!(took < Duration::from_secs(20), "it ends when all is answered: {took:?}");
}

async fn callers_that_outlive_the_grace_time_get_a_handle_and_find_the_call_elsewhere(on: On) {
    let fleet = Fleet::new(on, "[server]\nshutdown_grace = \"1s\"\n", "").await;
    // Where the work runs elsewhere it goes on; here it runs in the server that ends, or in a worker that stays.
    for (roles, stays) in [("mcp,worker,scheduler", false), ("mcp", true)] {
        let worker = match stays {
            true => Some(fleet.start("worker,scheduler").await),
            false => None,
        };
        let mut server = fleet.start(roles).await;
        offers(&server, "slow").await;
        let other = if stays { fleet.start("mcp").await } else { fleet.start("mcp,scheduler,worker").await };
        let text = format!("held-{stays}");
        let wanted = Call::slow("slow_idempotent", &text, 4.0);
        let (url, asked) = (server.url().to_owned(), wanted.clone());
        let asking = tokio::spawn(async move { call(&url, &asked).await });
        fleet.ledger.wait_for_start(&text, DEADLINE).await;
        assert!(server.sigterm().await.success(), "{}", server.stderr());
        let handle = asking.await.unwrap().answer();
        assert!(!is_settled(&handle.state), "{handle:?}");
        assert!(handle.text().contains(&handle.id), "{handle:?}");
        let end = call(other.url(), &wanted).await.answer();
        assert_eq!((end.state.as_str(), &end.id), ("completed", &handle.id));
        let starts = fleet.ledger.starts(&text).len();
        assert_eq!(starts, if stays { 1 } else { 2 }, "{roles}");
        drop(worker);
    }
    fleet.setup.check_store().await;
}

//! Ends in order and restarts: SIGTERM with calls running, a second SIGTERM, retries that are scheduled over a restart,
//! a queue that a dead process left, and the caller whose gateway was deployed anew.

use std::time::{Duration, Instant};

use durable_mcp::model::event::Event;
use durable_mcp::model::execution::State;
use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::json;

use crate::crash_scene::{Call, ClientLedger, Lives, Told, call, call_with, is_settled, kit_setup, now_ms};
use crate::on_every_store;
use crate::support::process_tree::{descendants, wait_gone};
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually};

on_every_store! {
    a_sigterm_answers_or_keeps_every_running_call;
    scheduled_retries_go_on_after_a_restart_and_are_never_early;
}

/// What ending the server's process tree may take beyond the grace time.
const TREE_END: Duration = Duration::from_secs(3);

async fn a_sigterm_answers_or_keeps_every_running_call(on: On) {
    let grace = Duration::from_millis(1_000);
    let (setup, ledger) = kit_setup("[server]\nshutdown_grace = \"1s\"\n", "");
    let setup = setup.on(on).await;
    let mut server = setup.serve().await;
    let clients = ClientLedger::default();
    let mut calls: Vec<Call> = Vec::new();
    for n in 0..4 {
        calls.push(Call::slow("slow", &format!("soon-{n}"), 0.4));
        calls.push(Call::slow("slow", &format!("long-{n}"), 30.0));
        calls.push(Call::slow("slow_idempotent", &format!("again-{n}"), 1.6));
    }
    let asking: Vec<_> = calls
        .iter()
        .cloned()
        .map(|call| {
            let (clients, url) = (clients.clone(), server.url().to_owned());
            tokio::spawn(async move { clients.ask(&url, &call).await })
        })
        .collect();
    eventually("all run", DEADLINE, || ledger.all_starts().len() == calls.len()).await;
    let tree = descendants(server.process.pid());
    let since = Instant::now();
    server.process.signal(Signal::TERM);
    let status = server.process.exit(grace + TREE_END + DEADLINE).await;
    let took = since.elapsed();
    assert_eq!(status.code(), Some(0), "{}", server.stderr());
    assert!(took < grace + TREE_END, "{took:?}");
    wait_gone(&tree, Duration::from_secs(5)).await;
    let told: Vec<Told> = join_all(asking).await.into_iter().map(Result::unwrap).collect();
    for (call, told) in calls.iter().zip(&told) {
        if call.text.starts_with("soon") {
            assert!(matches!(told, Told::Answer(answer) if answer.state == "completed"), "{call:?}: {told:?}");
        }
    }
    let answered = told.iter().filter(|told| matches!(told, Told::Answer(_))).count();
    // What had no answer was settled in order, or waits for its next attempt.
    let checked = setup.check_store().await;
    assert!(checked.executions.iter().all(|held| held.head.lease.is_none()), "a lease outlived its process in order");

    server = setup.serve().await;
    for call in &calls {
        let answer = clients.insist(server.url(), call).await;
        let expected = if call.text.starts_with("long") { "unknown" } else { "completed" };
        assert_eq!(answer.state, expected, "{call:?}: {answer:?}");
    }
    assert!(server.sigterm().await.success());
    let (tally, _) = clients.judge(&setup, &ledger).await;
    eprintln!("SIGTERM with {} calls running: ended after {took:?}, {answered} answered before; {tally}", calls.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_sigterm_ends_at_once() {
    let (setup, ledger) = kit_setup("[server]\nshutdown_grace = \"60s\"\n", "");
    let mut server = setup.serve().await;
    let wanted = Call::slow("slow", "held", 60.0);
    let (url, asked) = (server.url().to_owned(), wanted.clone());
    let asking = tokio::spawn(async move { call(&url, &asked).await });
    ledger.wait_for_start("held", DEADLINE).await;
    server.process.signal(Signal::TERM);
    // Handled when it takes no new connection.
    let port = server.port();
    eventually("it takes no calls", DEADLINE, || std::net::TcpStream::connect(("127.0.0.1", port)).is_err()).await;
    assert!(server.process.is_running(), "a call is running, and the grace time is long");
    let since = Instant::now();
    server.process.signal(Signal::TERM);
    server.process.exit(DEADLINE).await;
    let took = since.elapsed();
    eprintln!("the second SIGTERM ended it after {took:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(matches!(asking.await.unwrap(), Told::Cut));
    let server = setup.serve().await;
    let answer = call(server.url(), &wanted).await.answer();
    assert_eq!(answer.state, "unknown", "{answer:?}");
    assert_eq!(ledger.starts("held").len(), 1);
}

// A58: failed work needs a hand to go on after a restart. Also G11: no retry is early.
async fn scheduled_retries_go_on_after_a_restart_and_are_never_early(on: On) {
    let retry = "[servers.kit.tools.flaky_idempotent]\n\
                 retry = { on = [\"tool_error\"], initial_interval = \"900ms\", backoff_coefficient = 1.0 }";
    let (setup, ledger) = kit_setup("", &format!("\n{retry}"));
    let setup = setup.on(on).await;
    let mut server = setup.serve().await;
    let flaky =
        |name: &str| Call { arguments: json!({"name": name, "failures": 2}), ..Call::new("flaky_idempotent", name) };
    let names: Vec<String> = (0..5).map(|n| format!("flaky-{n}")).collect();
    for name in &names {
        let meta = json!({"durable-mcp/wait": 0, "durable-mcp/idempotencyKey": flaky(name).key});
        call_with(server.url(), &flaky(name), meta).await.answer();
    }
    let mut restarts = Vec::new();
    for attempts in 1..=2 {
        let failed = || names.iter().all(|name| ledger.starts(name).len() >= attempts);
        eventually("the attempts so far", DEADLINE, failed).await;
        // Killed once, ended in order once.
        match attempts {
            1 => server.kill_9().await,
            _ => assert!(server.sigterm().await.success()),
        }
        restarts.push(now_ms());
        server = setup.serve().await;
    }
    for name in &names {
        let answer = call(server.url(), &flaky(name)).await.answer();
        assert_eq!(answer.state, "completed", "{answer:?}");
    }
    server.kill_9().await;
    let checked = setup.check_store().await;
    let mut late_ms = Vec::new();
    for held in &checked.executions {
        let leases = held.events.iter().filter(|record| matches!(record.event, Event::Leased { .. })).count();
        assert_eq!(leases, 3, "{:#?}", held.events);
        for pair in held.events.windows(2) {
            if let Event::Retried { run_at_ms, .. } = &pair[0].event {
                let early_ms = run_at_ms - pair[1].at_ms;
                assert!(early_ms <= 0, "{early_ms} ms early: {:#?}", held.events);
                let restarted = restarts.iter().filter(|at| (pair[0].at_ms..=pair[1].at_ms).contains(*at)).max();
                late_ms.push(pair[1].at_ms - run_at_ms.max(restarted.unwrap_or(run_at_ms)));
            }
        }
    }
    eprintln!("{} retries over restarts, ms after they were due: {late_ms:?}", late_ms.len());
    assert_eq!(late_ms.len(), 10);
    assert!(late_ms.iter().all(|late| *late <= 2_000), "{late_ms:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_a_dead_process_left_is_worked_off_without_pauses() {
    let (setup, ledger) = kit_setup("", "concurrency = 1");
    let mut server = setup.serve().await;
    let clients = ClientLedger::default();
    let blocker = Call::slow("slow", "blocker", 30.0);
    let asking = tokio::spawn({
        let (clients, url) = (clients.clone(), server.url().to_owned());
        async move { clients.ask(&url, &blocker).await }
    });
    ledger.wait_for_start("blocker", DEADLINE).await;
    let queued: Vec<Call> = (0..12).map(|n| Call::new("append", &format!("queued-{n}"))).collect();
    for call in &queued {
        let meta = json!({"durable-mcp/wait": 0, "durable-mcp/idempotencyKey": call.key});
        assert!(matches!(call_with(server.url(), call, meta).await, Told::Answer(answer) if answer.state == "ready"));
    }
    server.kill_9().await;
    assert!(matches!(asking.await.unwrap(), Told::Cut));
    let restarted = now_ms();
    server = setup.serve().await;
    for call in &queued {
        assert_eq!(clients.insist(server.url(), call).await.state, "completed");
    }
    server.kill_9().await;
    let checked = setup.check_store().await;
    assert_eq!(checked.count(State::Completed), queued.len());
    let last_ms = checked.executions.iter().filter_map(|held| held.head.ended_at_ms).max().unwrap() - restarted;
    eprintln!("12 queued calls were done {last_ms} ms after the restart");
    // One a second, as polling alone would have it, would take twelve.
    assert!(last_ms < 6_000, "{last_ms} ms");
}

// A23: a deploy kills the running call, and the client hangs to its own limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_gateway_is_deployed_anew_is_settled_and_told() {
    let (setup, ledger) = kit_setup("", "");
    let mut server = setup.serve().await;
    let mut lives = Lives::default();
    lives.born();
    let calls = [Call::slow("slow", "dispatched", 20.0), Call::slow("slow_idempotent", "repeatable", 1.0)];
    let asking: Vec<_> = calls
        .iter()
        .cloned()
        .map(|call_of| {
            let url = server.url().to_owned();
            tokio::spawn(async move { call(&url, &call_of).await })
        })
        .collect();
    eventually("both run", DEADLINE, || ledger.all_starts().len() == 2).await;
    server.kill_9().await;
    lives.died();
    for told in join_all(asking).await {
        assert!(matches!(told.unwrap(), Told::Cut), "the caller sees the end of its connection at once");
    }
    lives.born();
    server = setup.serve_on(server.port()).await;
    let asked = Instant::now();
    let told = call(server.url(), &calls[0]).await.answer();
    eprintln!("the re-issued call was told {} after {:?}", told.state, asked.elapsed());
    assert_eq!(told.state, "unknown");
    assert!(told.text().contains("process that ran the call died"), "{}", told.text());
    let repeated = call(server.url(), &calls[1]).await.answer();
    assert_eq!((repeated.state.as_str(), repeated.attempt), ("completed", 2), "{repeated:?}");
    assert!(is_settled(&repeated.state));
    assert_eq!((ledger.starts("dispatched").len(), ledger.starts("repeatable").len()), (1, 2));
    server.kill_9().await;
    lives.died();
    let checked = setup.check_store().await;
    eprintln!("settled {:?} ms after the restart", lives.settle_times(&checked));
    let lost = |event: &Event| matches!(event, Event::Lost { error, .. } if error.code == "process_died");
    assert!(checked.executions.iter().any(|held| held.events.iter().any(|record| lost(&record.event))));
}

//! The server is killed at random moments (from a fixed seed) while many clients call; clients repeat with the same key
//! until they have an answer, and every answer must be an honest one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use durable_mcp::model::execution::State;
use futures_util::future::join_all;

use crate::crash_scene::{Call, ClientLedger, Dice, Lives, Tally, kit_setup, pass};
use crate::support::DEADLINE;

/// Kills of one server; two servers run.
const KILLS: usize = 28;
const CLIENTS: u64 = 16;

/// A client that calls until it is told to leave; each call is repeated until there is an answer.
async fn client(url: String, clients: ClientLedger, mut dice: Dice, leave: Arc<AtomicBool>) {
    let name = dice.between(0, 1 << 40);
    for n in 0.. {
        if leave.load(Ordering::Relaxed) {
            return;
        }
        let text = format!("{name}-{n}");
        let seconds = dice.between(1, 60) as f64 / 1_000.0;
        let call = match dice.between(0, 10) {
            0..4 => Call::new("append", &text),
            4..7 => Call::new("append_idempotent", &text),
            7 | 8 => Call::slow("slow", &text, seconds),
            _ => Call::slow("slow_idempotent", &text, seconds),
        };
        clients.insist(&url, &call).await;
    }
}

async fn storm(seed: u64) -> Tally {
    let mut dice = Dice::new(seed);
    let (setup, ledger) = kit_setup("[defaults]\nretry = { initial_interval = \"100ms\" }\n", "");
    let mut lives = Lives::default();
    lives.born();
    let mut server = setup.serve().await;
    let (clients, leave) = (ClientLedger::default(), Arc::new(AtomicBool::new(false)));
    let calling: Vec<_> = (0..CLIENTS)
        .map(|n| {
            let dice = Dice::new(seed << 8 | n);
            tokio::spawn(client(server.url().to_owned(), clients.clone(), dice, leave.clone()))
        })
        .collect();
    for _ in 0..KILLS {
        // The moment of the kill is no synchronisation: any moment is as good.
        pass(Duration::from_millis(dice.between(20, 400))).await;
        server.kill_9().await;
        lives.died();
        lives.born();
        server = setup.serve_on(server.port()).await;
    }
    leave.store(true, Ordering::Relaxed);
    let ended = tokio::time::timeout(2 * DEADLINE, join_all(calling)).await.expect("every client has its answer");
    ended.into_iter().for_each(|client| client.unwrap());
    assert!(server.sigterm().await.success(), "{}", server.stderr());
    let (mut tally, checked) = clients.judge(&setup, &ledger).await;
    tally.kills = KILLS;
    tally.settle_ms = lives.settle_times(&checked);
    assert_eq!(checked.executions.len(), tally.calls, "an execution nobody asked for");
    assert_eq!(checked.count(State::Unknown), tally.of("unknown"));
    tally
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_random_moments_under_load_lose_no_answer_and_run_nothing_twice() {
    let mut all = Tally::default();
    for tally in join_all([storm(7), storm(20_251)]).await {
        eprintln!("one server under load: {tally}");
        all.add(tally);
    }
    eprintln!("under load: {all}");
    assert!(all.kills >= 50);
    assert!(all.of("completed") >= 300, "{all}");
    assert!(all.of("unknown") > 0 && all.cuts > 0, "the kills hit calls: {all}");
    assert!(all.of("completed") * 2 > all.calls, "{all}");
}

//! The dashboard with much in the store, and with much going on. The long form of the open tab runs where
//! `DURABLE_MCP_TEST_TAB_MINUTES` says for how long; else a short one does.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::api_numbers::call;
use crate::dashboard::{browser_is_set_up, nothing, page, play, play_within};
use crate::skip_loudly;
use crate::support::asked_for;
use crate::support::many::{Many, multiply};
use crate::support::program::Setup;
use crate::support::stores::On;

const STORED: i64 = 50_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_thousand_stored_calls_are_listed_at_once() {
    skip_loudly!(browser_is_set_up());
    let setup = Setup::new("").flag("--demo");
    let mut program = setup.serve().await;
    call(&program, "demo_echo", (json!({"message": "x"}), None), None).await;
    program.kill_9().await;
    multiply(On::Sqlite, &setup.store_url(), Many { number: STORED, hours: 20, mixed: false }).await;
    let program = program.restart().await;
    let mut given = page(&program);
    given["within_ms"] = json!(200);
    play("stored", given, nothing).await;
}

/// Calls each second; each makes three events.
const CALLS: u64 = 168;
/// Calls that begin at once.
const AT_ONCE: u64 = 8;
/// The short form.
const SECONDS: u64 = 15;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tab_that_stays_open_under_five_hundred_events_a_second_stays_small() {
    skip_loudly!(browser_is_set_up());
    let minutes = asked_for("DURABLE_MCP_TEST_TAB_MINUTES");
    let seconds = minutes.map_or(SECONDS, |minutes| minutes * 60);
    let program = Setup::new("").flag("--demo").serve().await;
    call(&program, "demo_echo", (json!({"message": "x"}), None), None).await;
    let mut given = page(&program);
    given["heap_mb"] = json!(150);
    given["nodes_max"] = json!(10_000);
    given["answers_ms"] = json!(1_000);
    given["look_every_ms"] = json!(if minutes.is_some() { 10_000 } else { 1_000 });
    given["looks_min"] = json!(5);
    // A machine that is slower than that takes longer for as many.
    let deadline = Duration::from_secs(seconds * 4 + 120);
    play_within(deadline, "tab", given, async |_: &str| {
        let mut every = interval(Duration::from_millis(1_000 * AT_ONCE / CALLS));
        every.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let begun = Instant::now();
        for round in 0..seconds * CALLS / AT_ONCE {
            every.tick().await;
            let answers = join_all((0..AT_ONCE).map(|n| {
                let message = format!("{round}-{n}");
                let program = &program;
                async move { call(program, "demo_echo", (json!({"message": message}), None), None).await }
            }));
            for answer in answers.await {
                assert!(answer["result"]["content"].is_array(), "{answer}");
            }
        }
        let calls = seconds * CALLS;
        eprintln!("{calls} calls in {:?}", begun.elapsed());
    })
    .await;
}

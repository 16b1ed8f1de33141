//! Several processes on one database file: one dies and another settles its calls; four under load keep the guarantees
//! and do not keep each other waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use durable_mcp::model::event::Event;
use futures_util::future::join_all;

use crate::crash_scene::{Call, ClientLedger, Dice, SETTLED_WITHIN_MS, call, kit_setup, now_ms, pass};
use crate::support::process_tree::{descendants, wait_gone};
use crate::support::program::Program;
use crate::support::{DEADLINE, eventually};

const ROUNDS: usize = 4;
const PROCESSES: usize = 4;
/// Clients of each process.
const CLIENTS: u64 = 6;
const KILLS: usize = 8;
/// No writer waits longer for another.
const WRITER_WAIT_MS: f64 = 100.0;

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_a_killed_process_are_settled_by_another_one() {
    let (setup, ledger) = kit_setup("[defaults]\nretry = { initial_interval = \"100ms\" }\n", "");
    let witness = setup.serve().await;
    let mut settle_ms = Vec::new();
    for round in 0..ROUNDS {
        let mut victim = setup.serve().await;
        let mut calls: Vec<Call> = Vec::new();
        for n in 0..3 {
            calls.push(Call::slow("slow", &format!("lost-{round}-{n}"), 30.0));
            calls.push(Call::slow("slow_idempotent", &format!("moved-{round}-{n}"), 0.6));
        }
        let asking: Vec<_> = calls.iter().cloned().map(|wanted| ask(&victim, wanted)).collect();
        // Somebody waits at the other process for the same call.
        eventually("all run", DEADLINE, || calls.iter().all(|call| ledger.starts(&call.text).len() == 1)).await;
        let elsewhere: Vec<_> = calls.iter().cloned().map(|wanted| ask(&witness, wanted)).collect();
        let tree = descendants(victim.process.pid());
        let killed_ms = now_ms();
        victim.kill_9().await;
        for told in join_all(asking).await {
            assert!(matches!(told.unwrap(), crate::crash_scene::Told::Cut));
        }
        for (told, wanted) in join_all(elsewhere).await.into_iter().zip(&calls) {
            let answer = told.unwrap().answer();
            let lost = wanted.text.starts_with("lost");
            assert_eq!(answer.state, if lost { "unknown" } else { "completed" }, "{answer:?}");
            assert_eq!(ledger.starts(&wanted.text).len(), if lost { 1 } else { 2 });
        }
        let checked = setup.check_store().await;
        for wanted in &calls {
            let key = Some(wanted.key.as_str());
            let held = checked.executions.iter().find(|held| held.head.ident.key.as_deref() == key).unwrap();
            let settled = held.events.iter().find_map(|record| match &record.event {
                Event::Lost { error, .. } | Event::Retried { error, .. } if error.code == "process_died" => {
                    Some(record.at_ms)
                }
                _ => None,
            });
            settle_ms.push(settled.unwrap_or_else(|| panic!("{:#?}", held.events)) - killed_ms);
        }
        wait_gone(&tree, Duration::from_secs(5)).await;
    }
    settle_ms.sort_unstable();
    eprintln!("settled by the other process, ms after the kill: {settle_ms:?}");
    assert!(settle_ms.iter().all(|ms| *ms <= SETTLED_WITHIN_MS), "{settle_ms:?}");
}

fn ask(server: &Program, wanted: Call) -> tokio::task::JoinHandle<crate::crash_scene::Told> {
    let url = server.url().to_owned();
    tokio::spawn(async move { call(&url, &wanted).await })
}

/// Calls at its own process; one call in four is one that the clients of all processes make under the same key.
async fn client(urls: Vec<String>, own: usize, clients: ClientLedger, mut dice: Dice, leave: Arc<AtomicBool>) {
    let name = dice.between(0, 1 << 40);
    for n in 0.. {
        if leave.load(Ordering::Relaxed) {
            return;
        }
        let shared = dice.between(0, 4) == 0;
        let text = if shared { format!("shared-{n}") } else { format!("own-{name}-{n}") };
        let call = match (shared, dice.between(0, 4)) {
            (true, _) => Call::slow("slow", &text, 0.02),
            (_, 0 | 1) => Call::new("append", &text),
            (_, 2) => Call::new("append_idempotent", &text),
            _ => Call::slow("slow_idempotent", &text, 0.03),
        };
        clients.insist(&urls[own], &call).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_on_one_file_keep_the_guarantees_while_some_are_killed() {
    let (setup, ledger) = kit_setup("[defaults]\nretry = { initial_interval = \"100ms\" }\n", "");
    let mut servers = join_all((0..PROCESSES).map(|_| setup.serve())).await;
    let urls: Vec<String> = servers.iter().map(|server| server.url().to_owned()).collect();
    let (clients, leave) = (ClientLedger::default(), Arc::new(AtomicBool::new(false)));
    let calling: Vec<_> = (0..PROCESSES as u64 * CLIENTS)
        .map(|n| {
            let own = n as usize % PROCESSES;
            tokio::spawn(client(urls.clone(), own, clients.clone(), Dice::new(900 + n), leave.clone()))
        })
        .collect();
    let mut dice = Dice::new(41);
    for _ in 0..KILLS {
        pass(Duration::from_millis(dice.between(200, 500))).await;
        let mut victim = servers.swap_remove(dice.between(0, PROCESSES as u64) as usize);
        victim.kill_9().await;
        servers.push(setup.serve_on(victim.port()).await);
    }
    leave.store(true, Ordering::Relaxed);
    let ended = tokio::time::timeout(2 * DEADLINE, join_all(calling)).await.expect("every client has its answer");
    ended.into_iter().for_each(|client| client.unwrap());
    for server in &mut servers {
        assert!(server.sigterm().await.success(), "{}", server.stderr());
    }
    let (mut tally, checked) = clients.judge(&setup, &ledger).await;
    tally.kills = KILLS;
    eprintln!("four processes: {tally}");
    assert_eq!(checked.executions.len(), tally.calls, "one execution per key");
    assert!(tally.of("completed") >= 200 && tally.cuts > 0, "{tally}");
}

/// A stretch of time that a log speaks of, in microseconds since the epoch.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    process: usize,
    from_us: i64,
    to_us: i64,
    /// So long of it the thread was ready to run and had no processor.
    unscheduled_us: i64,
}

impl Stretch {
    fn length_ms(&self) -> f64 {
        (self.to_us - self.from_us) as f64 / 1_000.0
    }

    fn overlap_us(&self, other: &Stretch) -> i64 {
        (self.to_us.min(other.to_us) - self.from_us.max(other.from_us)).max(0)
    }

    /// The stretches that the lines with this number tell of; each line is written at the end of its stretch.
    fn all(process: usize, log: &str, name: &str) -> Vec<Stretch> {
        let number = |line: &str, name: &str| line.split(name).nth(1)?.split_whitespace().next()?.parse::<i64>().ok();
        let of = |line: &str| {
            let length_us = number(line, name)?;
            let unscheduled_us = number(line, "unscheduled_us=")?;
            let to_us = line.split_whitespace().next()?.parse::<jiff::Timestamp>().ok()?.as_microsecond();
            Some(Stretch { process, from_us: to_us - length_us, to_us, unscheduled_us })
        };
        log.lines().filter_map(of).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_writer_waits_long_for_another() {
    let (setup, ledger) = kit_setup("[log]\nlevel = \"warn,durable_mcp::store::sqlite::writer=debug\"\n", "");
    let mut servers = join_all((0..PROCESSES).map(|_| setup.serve())).await;
    let urls: Vec<String> = servers.iter().map(|server| server.url().to_owned()).collect();
    let (clients, leave) = (ClientLedger::default(), Arc::new(AtomicBool::new(false)));
    let calling: Vec<_> = (0..PROCESSES as u64 * CLIENTS)
        .map(|n| {
            let own = n as usize % PROCESSES;
            tokio::spawn(client(urls.clone(), own, clients.clone(), Dice::new(77 + n), leave.clone()))
        })
        .collect();
    pass(Duration::from_secs(4)).await;
    leave.store(true, Ordering::Relaxed);
    join_all(calling).await.into_iter().for_each(|client| client.unwrap());
    for server in &mut servers {
        assert!(server.sigterm().await.success(), "{}", server.stderr());
    }
    let (tally, _) = clients.judge(&setup, &ledger).await;
    eprintln!("four processes: {tally}");
    assert!(tally.of("completed") >= 200, "{tally}");

    let (mut waits, mut holds) = (Vec::new(), Vec::new());
    for (n, server) in servers.iter().enumerate() {
        let (mut waited, mut held) =
            (Stretch::all(n, &server.stderr(), "waited_us="), Stretch::all(n, &server.stderr(), "held_us="));
        assert!(waited.len() > 50, "every process wrote");
        for stretches in [&mut waited, &mut held] {
            stretches.sort_unstable_by_key(|stretch| stretch.to_us - stretch.from_us);
        }
        let at = |of: &[Stretch], part: usize| of[(of.len() - 1) * part / 100].length_ms();
        eprintln!(
            "process {n}: {} transactions; ms waited: p50 {} p90 {} p99 {} max {}; ms held: p50 {} p99 {} max {}",
            waited.len(),
            at(&waited, 50),
            at(&waited, 90),
            at(&waited, 99),
            at(&waited, 100),
            at(&held, 50),
            at(&held, 99),
            at(&held, 100),
        );
        waits.extend(waited);
        holds.extend(held);
    }
    let mut longest_ms: f64 = 0.0;
    for wait in &waits {
        let others: Vec<&Stretch> = holds.iter().filter(|hold| hold.process != wait.process).collect();
        let unscheduled_us: i64 = others.iter().map(|hold| hold.unscheduled_us.min(hold.overlap_us(wait))).sum();
        // What is left when nobody is to blame for a machine that runs too few of those who are ready.
        let for_others_ms = (wait.length_ms() - (wait.unscheduled_us + unscheduled_us) as f64 / 1_000.0).max(0.0);
        longest_ms = longest_ms.max(for_others_ms);
        let turns = |process| {
            let own = others.iter().filter(|hold| hold.process == process);
            own.filter(|hold| hold.from_us >= wait.from_us && hold.overlap_us(wait) > 0).count()
        };
        let most = (0..PROCESSES).map(turns).max().unwrap_or(0);
        if wait.length_ms() > WRITER_WAIT_MS {
            eprintln!(
                "a long wait: {:.1} ms, of it for others {for_others_ms:.1} ms; {:.1} ms it was not run, for {:.1} ms who \
                 had the lock was not run; another process had the lock {most} times at most",
                wait.length_ms(),
                wait.unscheduled_us as f64 / 1_000.0,
                unscheduled_us as f64 / 1_000.0,
            );
        }
        // A slow disk makes every turn long. It is the queue's fault when somebody had more than its turn.
        assert!(for_others_ms <= WRITER_WAIT_MS || most <= 1, "{wait:?}: {for_others_ms} ms, {most} turns of another");
    }
    eprintln!("the longest wait for others: {longest_ms:.1} ms");
}

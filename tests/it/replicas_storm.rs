//! The storm: three servers, three workers and two schedulers on one store, 64 clients that address the servers directly, in
//! both eras, with tools of both deliveries, while a random process is killed each second and started again one second
//! later. Nothing is lost, nothing that may start once starts twice, everything ends or is said to be unknown, and the
//! clients get most of what they get without it. `DURABLE_MCP_TEST_STORM_KILLS` makes it longer (CONTRIBUTING.md).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use durable_mcp::model::execution::State;
use futures_util::future::join_all;
use tokio::task::JoinSet;

use crate::crash_scene::{Call, ClientLedger, Dice, Told, is_settled, pass};
use crate::on_every_store;
use crate::replicas_scene::{Fleet, offers};
use crate::support::program::Program;
use crate::support::raw_http::open_session;
use crate::support::stores::On;
use crate::support::{DEADLINE, asked_for};

on_every_store! {
    a_random_process_dies_each_second_and_nothing_is_lost_or_started_twice;
}

const CLIENTS: u64 = 64;
const ROLES: [&str; 8] = ["mcp", "mcp", "mcp", "worker", "worker", "worker", "scheduler", "scheduler"];
/// How long nothing is killed, before and after.
const CALM: Duration = Duration::from_secs(5);
/// How long it takes until what the last kill left behind is settled: in a database the death of a process is known when
/// nothing was heard of it for five seconds, and until then its calls wait. That counts for the storm, not for the calm.
const SETTLED: Duration = Duration::from_secs(7);
/// Kills, one a second.
const KILLS: usize = 20;
/// Of the calls that the same clients make while nothing is killed.
const LEAST_PART: f64 = 0.6;
/// A client looks at each answer for so long before it calls again, in milliseconds: what is compared is what the kills
/// take from clients, not how fast a test build can be driven on a machine that starts a process each second.
const THINKS_MS: (u64, u64) = (200, 1_000);

/// Kills, one a second.
fn kills() -> usize {
    asked_for("DURABLE_MCP_TEST_STORM_KILLS").map_or(KILLS, |kills| kills as usize)
}

struct Client {
    urls: Arc<Vec<String>>,
    session: Option<String>,
    ledger: ClientLedger,
    dice: Dice,
    leave: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
}

impl Client {
    /// Calls until it is told to leave; each call goes to a server of its choice, and to another one until there is an
    /// answer about its end.
    async fn run(mut self) {
        let name = self.dice.between(0, 1 << 40);
        for n in 0.. {
            if self.leave.load(Ordering::Relaxed) {
                return;
            }
            let text = format!("{name}-{n}");
            let seconds = self.dice.between(1, 60) as f64 / 1_000.0;
            let wanted = match self.dice.between(0, 10) {
                0..4 => Call::new("append", &text),
                4..7 => Call::new("append_idempotent", &text),
                7 | 8 => Call::slow("slow", &text, seconds),
                _ => Call::slow("slow_idempotent", &text, seconds),
            };
            self.insist(&wanted).await;
            self.done.fetch_add(1, Ordering::Relaxed);
            pass(Duration::from_millis(self.dice.between(THINKS_MS.0, THINKS_MS.1))).await;
        }
    }

    async fn insist(&mut self, wanted: &Call) {
        let end = Instant::now() + 4 * DEADLINE;
        loop {
            let at = self.dice.between(0, self.urls.len() as u64) as usize;
            match self.ledger.ask_in(&self.urls[at], self.session.as_deref(), wanted).await {
                Told::Answer(answer) if is_settled(&answer.state) => return,
                Told::Answer(answer) => panic!("{wanted:?} is answered although it is {}", answer.state),
                Told::Cut | Told::Error(-31429 | -31503, _) => {}
                Told::Error(code, words) => panic!("{wanted:?}: {code} {words}"),
            }
            assert!(Instant::now() < end, "no answer for {wanted:?}");
            pass(Duration::from_millis(10)).await;
        }
    }
}

/// Calls a second over a while.
async fn rate(done: &AtomicUsize, during: impl Future<Output = ()>) -> f64 {
    let (before, since) = (done.load(Ordering::Relaxed), Instant::now());
    during.await;
    (done.load(Ordering::Relaxed) - before) as f64 / since.elapsed().as_secs_f64()
}

/// Kills one process each second, and starts it again on its port one second later; all run again at the end.
async fn kill_in_turn(fleet: &Fleet, running: &mut [Option<Program>; ROLES.len()], dice: &mut Dice) -> [usize; 3] {
    let mut killed = [0; 3];
    let mut starting: JoinSet<(usize, Program)> = JoinSet::new();
    for _ in 0..kills() {
        let next = tokio::time::Instant::now() + Duration::from_secs(1);
        loop {
            let n = dice.between(0, ROLES.len() as u64) as usize;
            let Some(mut victim) = running[n].take() else { continue };
            victim.kill_9().await;
            killed[["mcp", "worker", "scheduler"].iter().position(|role| *role == ROLES[n]).unwrap()] += 1;
            let (setup, port) = (fleet.as_roles(ROLES[n]), victim.port());
            starting.spawn(async move {
                pass(Duration::from_secs(1)).await;
                (n, setup.serve_on(port).await)
            });
            break;
        }
        while let Ok(Some(started)) = tokio::time::timeout_at(next, starting.join_next()).await {
            let (n, program) = started.unwrap();
            running[n] = Some(program);
        }
        pass(next.saturating_duration_since(tokio::time::Instant::now())).await;
    }
    while let Some(started) = starting.join_next().await {
        let (n, program) = started.unwrap();
        running[n] = Some(program);
    }
    killed
}

async fn a_random_process_dies_each_second_and_nothing_is_lost_or_started_twice(on: On) {
    let head = "[defaults]\nretry = { initial_interval = \"100ms\" }\n[limits]\nchild_log_rate = 1\n";
    let fleet = Fleet::new(on, head, "concurrency = 32").await;
    let mut running: [Option<Program>; ROLES.len()] = Default::default();
    // The workers first: what they bring up is what the servers offer.
    for n in (0..ROLES.len()).rev() {
        running[n] = Some(fleet.start(ROLES[n]).await);
    }
    let servers = || running[..3].iter().flatten();
    for server in servers() {
        offers(server, "slow").await;
    }
    let urls = Arc::new(servers().map(|server| server.url().to_owned()).collect::<Vec<_>>());
    let (ledger, leave, done) = (ClientLedger::default(), Arc::new(AtomicBool::new(false)), Arc::default());
    let mut calling = Vec::new();
    for n in 0..CLIENTS {
        let session = match n % 2 {
            0 => None,
            _ => Some(open_session(&urls[n as usize % urls.len()], "2025-11-25").await.unwrap()),
        };
        let client = Client {
            urls: urls.clone(),
            session,
            ledger: ledger.clone(),
            dice: Dice::new(1_000 + n),
            leave: leave.clone(),
            done: Arc::clone(&done),
        };
        calling.push(tokio::spawn(client.run()));
    }
    let calm_before = rate(&done, pass(CALM)).await;
    let mut dice = Dice::new(5);
    let mut killed = [0; 3];
    let stormy = rate(&done, async { killed = kill_in_turn(&fleet, &mut running, &mut dice).await }).await;
    pass(SETTLED).await;
    let calm_after = rate(&done, pass(CALM)).await;
    leave.store(true, Ordering::Relaxed);
    let ended = tokio::time::timeout(4 * DEADLINE, join_all(calling)).await.expect("every client has its answers");
    ended.into_iter().for_each(|client| client.unwrap());
    for program in running.iter_mut().flatten() {
        assert!(program.sigterm().await.success(), "{}", program.stderr());
    }
    let (mut tally, checked) = ledger.judge(&fleet.setup, &fleet.ledger).await;
    tally.kills = killed.iter().sum();
    let [servers, workers, schedulers] = killed;
    eprintln!(
        "the storm: killed {servers} servers, {workers} workers, {schedulers} schedulers; {tally}; calls a second: \
         {calm_before:.0} before, {stormy:.0} in the storm, {calm_after:.0} after"
    );
    assert_eq!(tally.kills, kills());
    assert_eq!(checked.executions.len(), tally.calls, "an execution nobody asked for, or one that is lost");
    assert!(checked.executions.iter().all(|held| held.head.state.is_settled()));
    assert_eq!(checked.count(State::Unknown), tally.of("unknown"));
    assert!(workers > 0 && tally.of("completed") * 2 > tally.calls, "{tally}");
    // The machine's other work changes under the test: the calmer of the two is no measure, the busier one is.
    let calm = calm_before.min(calm_after);
    assert!(stormy >= LEAST_PART * calm, "{stormy:.0} calls a second in the storm, {calm:.0} without");
}

//! What the tests of a database that goes away share: what a server says of it, how a call is refused meanwhile, and clients
//! that go on through it. Takes no database away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::crash_scene::{Call, ClientLedger, Told, is_settled, pass};
use crate::support::program::Program;
use crate::support::raw_http::Request;
use crate::support::{DEADLINE, eventually_async};

/// How soon everything goes on once there is a database again.
pub const BACK_WITHIN: Duration = Duration::from_secs(10);
/// How soon a call that can not be stored is refused.
pub const REFUSED_WITHIN: Duration = Duration::from_secs(5);

/// Whether `/readyz` says 200, and the reasons that it gives.
async fn readiness(program: &Program) -> (bool, Vec<String>) {
    let url = program.at("/readyz");
    let answer = Request::new("GET", &url).exchange(&url).await;
    let report: Value = serde_json::from_slice(&answer.body).unwrap();
    let reasons = report["reasons"].as_array().unwrap().iter();
    (answer.status == 200, reasons.map(|reason| reason["code"].as_str().unwrap().to_owned()).collect())
}

/// Waits until the process says that its store is the reason why it is not ready.
pub async fn is_without_its_store(program: &Program) {
    eventually_async("/readyz names the store", DEADLINE, async || {
        let (ready, reasons) = readiness(program).await;
        !ready && reasons.iter().any(|code| code.starts_with("store_"))
    })
    .await;
}

/// A call, in a session where one is given, that is refused now, in time, and told that it may come again. How long it
/// took.
pub async fn is_refused(ledger: &ClientLedger, url: &str, session: Option<&str>, text: &str) -> Duration {
    let since = Instant::now();
    let told = ledger.ask_in(url, session, &Call::new("append", text)).await;
    let took = since.elapsed();
    let Told::Error(code, words) = &told else { panic!("{told:?}") };
    assert_eq!((*code, words.contains("\"retryable\":true")), (-31503, true), "{words}");
    assert!(took < REFUSED_WITHIN, "{took:?}: {words}");
    took
}

/// Starts calls and lets them go on until each has its answer.
pub fn insisting(ledger: &ClientLedger, urls: &[String], calls: &[Call]) -> Vec<JoinHandle<String>> {
    let ask = |(n, wanted): (usize, &Call)| {
        let (ledger, url, wanted) = (ledger.clone(), urls[n % urls.len()].clone(), wanted.clone());
        tokio::spawn(async move {
            loop {
                match ledger.ask(&url, &wanted).await {
                    Told::Answer(answer) if is_settled(&answer.state) => return answer.state,
                    // A handle, a full queue, a store that is away, a server that is gone.
                    Told::Answer(_) | Told::Error(-31429 | -31503, _) | Told::Cut => {}
                    Told::Error(code, words) => panic!("{wanted:?}: {code} {words}"),
                }
                pass(Duration::from_millis(10)).await;
            }
        })
    };
    calls.iter().enumerate().map(ask).collect()
}

/// Clients that call one after the other, each until it has its answer.
pub struct Clients {
    calling: Vec<JoinHandle<()>>,
    leave: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
}

impl Clients {
    /// So many, spread over these servers.
    pub fn start(many: usize, ledger: &ClientLedger, urls: &[String]) -> Clients {
        let (leave, done) = (Arc::new(AtomicBool::new(false)), Arc::<AtomicUsize>::default());
        let client = |client: usize| {
            let (ledger, url) = (ledger.clone(), urls[client % urls.len()].clone());
            let (leave, done) = (Arc::clone(&leave), Arc::clone(&done));
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
        };
        let calling = (0..many).map(client).collect();
        Clients { calling, leave, done }
    }

    /// Calls that have their answer.
    pub fn answered(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Waits until so many more have; how long that took.
    pub async fn go_on(&self, more: usize) -> Duration {
        let (since, wanted) = (Instant::now(), self.answered() + more);
        eventually_async("calls go on", DEADLINE, async || self.answered() >= wanted).await;
        since.elapsed()
    }

    /// Each ends its call and leaves.
    pub async fn leave(self) {
        self.leave.store(true, Ordering::Relaxed);
        for client in join_all(self.calling).await {
            client.unwrap();
        }
    }
}

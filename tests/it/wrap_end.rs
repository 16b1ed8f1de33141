//! How a `wrap` ends: the client closes stdin and still reads, or is dead. What runs is answered, cancelled or let to its
//! end as its tool's policy says, within the time to linger and no more.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout};

use crate::support::bytes::start;
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};
use crate::support::servers::kit_stdio;
use crate::support::{DEADLINE, eventually_async};

/// `wrap` before a kit whose tool `slow` stops with its client; `slow_idempotent` goes on.
struct Wrapped {
    setup: Setup,
    ledger: Ledger,
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Wrapped {
    fn start(linger: &str) -> Wrapped {
        let setup = Setup::new("");
        let ledger = Ledger::in_folder(setup.folder());
        let kit = kit_stdio(&["--ledger", ledger.path()]);
        let table = server_table("wrapped", &kit, "[servers.wrapped.tools.slow]\non_disconnect = \"cancel\"");
        let setup = setup.config(&format!("[wrap]\nlinger = \"{linger}\"\n{table}"));
        let (child, stdin, stdout) = start(&setup.wrap(&kit));
        Wrapped { setup, ledger, child, stdin, stdout }
    }

    /// Calls both tools and waits until they run.
    async fn call_both(&mut self, seconds: f64) {
        for (id, tool) in [(1, "slow"), (2, "slow_idempotent")] {
            let params = json!({"name": tool, "arguments": {"seconds": seconds, "text": tool}});
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            self.stdin.write_all(format!("{call}\n").as_bytes()).await.unwrap();
        }
        for tool in ["slow", "slow_idempotent"] {
            self.ledger.wait_for_start(tool, DEADLINE).await;
        }
    }

    /// The states of the two executions.
    async fn states(setup: &Setup) -> (String, String) {
        let executions = setup.executions().await;
        let state = |tool: &str| {
            let row = executions.iter().find(|row| row["tool"] == tool).expect("it was stored");
            row["state"].as_str().unwrap().to_owned()
        };
        (state("slow"), state("slow_idempotent"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_only_closes_its_end_of_stdin_gets_every_answer() {
    let mut wrapped = Wrapped::start("20s");
    wrapped.call_both(0.5).await;
    drop(wrapped.stdin);
    let mut answers = String::new();
    let read = tokio::io::AsyncReadExt::read_to_string(&mut wrapped.stdout, &mut answers);
    timeout(DEADLINE, read).await.unwrap().unwrap();
    assert!(answers.contains("slept slow\"") && answers.contains("slept slow_idempotent"), "{answers}");
    assert!(timeout(DEADLINE, wrapped.child.wait()).await.unwrap().unwrap().success());
    assert_eq!(Wrapped::states(&wrapped.setup).await, ("completed".to_owned(), "completed".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_dies_stops_what_stops_with_it_and_the_rest_is_let_to_its_end() {
    let mut wrapped = Wrapped::start("20s");
    wrapped.call_both(1.5).await;
    // What the kernel does with the pipes of a process that is killed.
    drop((wrapped.stdin, wrapped.stdout));
    let setup = wrapped.setup.clone();
    eventually_async("the call that stops with its client is cancelled", DEADLINE, async || {
        Wrapped::states(&setup).await.0 == "cancelled"
    })
    .await;
    assert!(timeout(DEADLINE, wrapped.child.wait()).await.unwrap().unwrap().success());
    assert_eq!((wrapped.ledger.cancels("slow"), wrapped.ledger.dones("slow_idempotent")), (1, 1));
    assert_eq!(Wrapped::states(&setup).await, ("cancelled".to_owned(), "completed".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_to_linger_is_spent_once() {
    let linger = Duration::from_millis(1_500);
    for dies in [false, true] {
        let mut wrapped = Wrapped::start("1500ms");
        wrapped.call_both(60.0).await;
        let since = Instant::now();
        let stdout = match dies {
            true => None,
            false => Some(wrapped.stdout),
        };
        drop(wrapped.stdin);
        timeout(DEADLINE, wrapped.child.wait()).await.unwrap().unwrap();
        let took = since.elapsed();
        eprintln!("a client that {} left: ended after {took:?}", if dies { "died" } else { "only" });
        assert!(took >= linger && took < linger * 2 - Duration::from_millis(200), "{took:?}");
        drop(stdout);
    }
}

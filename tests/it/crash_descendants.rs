//! Whatever the program started ends with it: the servers' processes, what these started, also outside their process
//! group or without a parent, and running commands; after a kill -9, a SIGTERM, and the end of `wrap`'s stdin.

use std::time::{Duration, Instant};

use durable_mcp::model::execution::State;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::crash_scene::{Call, call, call_with, kit_setup};
use crate::support::process::Process;
use crate::support::process_tree::{descendants, is_alive, wait_gone};
use crate::support::program::Setup;
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::kit_stdio;
use crate::support::{DEADLINE, eventually};

/// All descendants are gone by then.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// How the program comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Kill9,
    Terminate,
    Twice,
}

impl End {
    async fn of(self, process: &mut Process) {
        match self {
            End::Kill9 => process.kill().await,
            End::Terminate => process.signal(Signal::TERM),
            End::Twice => {
                process.signal(Signal::TERM);
                // The second one must find the first one handled.
                eventually("the first signal is handled", DEADLINE, || !listens(process.pid())).await;
                process.signal(Signal::TERM);
            }
        }
        process.exit(GONE_WITHIN + Duration::from_secs(5)).await;
    }
}

/// A process that ends takes no connections any more.
fn listens(pid: u32) -> bool {
    let tcp = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let sockets: Vec<String> = links
        .filter_map(|link| std::fs::read_link(link.path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.trim_end_matches(']').to_owned()))
        .collect();
    // Column 4 is the state, 0A is LISTEN; column 10 the socket.
    tcp.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|fields| {
        fields.get(3) == Some(&"0A") && fields.get(9).is_some_and(|inode| sockets.iter().any(|own| own == inode))
    })
}

fn pids(answer: &Value) -> Vec<u32> {
    let found: Vec<u32> =
        ["group", "session", "orphan"].iter().filter_map(|name| Some(answer[*name].as_u64()? as u32)).collect();
    assert!(found.len() >= 2, "{answer}");
    found
}

/// All that must be gone, noted while the program lives.
fn tree(program: u32, known: &[u32]) -> Vec<u32> {
    let mut all = descendants(program);
    for pid in known {
        assert!(is_alive(*pid), "{pid} lives before the end");
        if !all.contains(pid) {
            all.push(*pid);
        }
    }
    all
}

// A30: server processes pile up after their owner is gone.
async fn serve_ends_with_its_tree(end: End) {
    let command = "[tools.tree]\ncommand = [\"sh\", \"-c\", \"sleep 1000 & setsid sleep 1000 & sleep 1000\"]\n";
    let (setup, ledger) = kit_setup(&format!("[server]\nshutdown_grace = \"300ms\"\n{command}"), "");
    let mut server = setup.serve().await;
    let left =
        call(server.url(), &Call { arguments: json!({"orphan": true}), ..Call::new("grandchild", "left") }).await;
    let left = pids(&left.answer().result["structuredContent"]);
    let before = descendants(server.process.pid()).len();
    // A command that runs, and a call in the middle.
    let now = json!({"durable-mcp/wait": 0});
    let tree_call = Call { arguments: json!({}), ..Call::new("tree", "tree") };
    call_with(server.url(), &tree_call, now.clone()).await.answer();
    call_with(server.url(), &Call::slow("slow", "running", 60.0), now).await.answer();
    ledger.wait_for_start("running", DEADLINE).await;
    // Guard, shell and three sleeps.
    let grown = || descendants(server.process.pid()).len() >= before + 5;
    eventually("the command's processes", DEADLINE, grown).await;
    let all = tree(server.process.pid(), &left);

    end.of(&mut server.process).await;
    let since = Instant::now();
    wait_gone(&all, GONE_WITHIN).await;
    eprintln!("serve, {end:?}: {} processes gone {:?} after its end", all.len(), since.elapsed());
}

async fn wrap_ends_with_its_tree(end: Option<End>) {
    let setup = Setup::new("[wrap]\nlinger = \"200ms\"\n");
    let ledger = crate::support::ledger::Ledger::in_folder(setup.folder());
    let target = setup.wrap(&kit_stdio(&["--ledger", ledger.path()]));
    let mut wrap = RawStdio::open(&target, "2025-11-25").await;
    let left = wrap.call(json!(1), "grandchild", json!({"orphan": true})).await;
    let left = pids(&left["result"]["structuredContent"]);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "slow", "arguments": {"seconds": 60, "text": "running"}}});
    wrap.send(&call.to_string()).await;
    ledger.wait_for_start("running", DEADLINE).await;
    let all = tree(wrap.process.pid(), &left);
    match end {
        Some(end) => end.of(&mut wrap.process).await,
        None => drop(wrap.close_stdin().exit(GONE_WITHIN + Duration::from_secs(5)).await),
    }
    let since = Instant::now();
    wait_gone(&all, GONE_WITHIN).await;
    eprintln!("wrap, {end:?}: {} processes gone {:?} after its end", all.len(), since.elapsed());
    // What was running is settled by its end in order, or by the next start.
    let again = RawStdio::open(&target, "2025-11-25").await;
    let checked = setup.check_store().await;
    let states: Vec<State> = checked.executions.iter().map(|held| held.head.state).collect();
    assert_eq!(states, [State::Completed, State::Unknown]);
    again.close_stdin().exit(DEADLINE).await;
    assert_eq!(ledger.starts("running").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_descendant_of_serve_outlives_it() {
    for end in [End::Kill9, End::Terminate, End::Twice] {
        serve_ends_with_its_tree(end).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_descendant_of_wrap_outlives_it() {
    for end in [Some(End::Kill9), Some(End::Terminate), None] {
        wrap_ends_with_its_tree(end).await;
    }
}

//! `demo`: each scene from its command line, with its counts; that nothing of it outlives it, however it ends; and the
//! same scenes as scripts with curl.

use std::path::Path;
use std::process::Output;

use rustix::process::Signal;
use serde_json::Value;
use tokio::process::Command;

use crate::support::process::Process;
use crate::support::process_tree::{descendants, is_alive, wait_gone};
use crate::support::{DEADLINE, program_binary, scratch};

/// How long a demo may take.
const DEMO_MAX_MS: i64 = 20_000;

/// A demo's report, its folder, and the process ids that it named.
struct Played {
    report: Value,
    stderr: String,
}

fn command(temporary: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program_binary());
    command.arg("demo").args(arguments).env("TMPDIR", temporary).kill_on_drop(true);
    command
}

/// Plays a scene to its end, and checks that nothing is left of it.
async fn play(arguments: &[&str]) -> Played {
    let temporary = scratch();
    let output = command(temporary.path(), arguments).arg("--json").output().await.unwrap();
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{arguments:?}: {:?}\n{stdout}\n{stderr}", output.status);
    let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["demo"], arguments[0]);
    assert_nothing_left(temporary.path());
    let pids = pids(&stderr);
    assert!(!pids.is_empty(), "{stderr}");
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?} outlive the demo");
    Played { report, stderr }
}

impl Played {
    #[track_caller]
    fn count(&self, name: &str) -> i64 {
        self.report["counts"][name].as_i64().unwrap_or_else(|| panic!("{name}: {}", self.report))
    }

    #[track_caller]
    fn assert_told(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.stderr.contains(part), "{part}: {}", self.stderr);
        }
    }
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

fn pids(told: &str) -> Vec<u32> {
    told.split("(pid ").skip(1).filter_map(|rest| rest.split(')').next()?.parse().ok()).collect()
}

#[track_caller]
fn assert_nothing_left(folder: &Path) {
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_kills_workers_under_load_and_loses_and_doubles_nothing() {
    let played = play(&["crash"]).await;
    let [calls, completed, recovered, failed, lost, duplicate, unknown] =
        ["calls", "completed", "recovered", "failed", "lost", "duplicate", "unknown"].map(|name| played.count(name));
    assert_eq!((lost, duplicate, failed), (0, 0, 0));
    assert_eq!(completed + unknown, calls);
    assert!(calls >= 20 && recovered >= 1, "{}", played.report["counts"]);
    let facts = &played.report["facts"];
    let kills = facts["kills"].as_array().unwrap();
    assert_eq!(kills.len(), 5);
    for kill in kills {
        assert!(kill["held"].as_i64().unwrap() >= 1, "{kill}");
        assert!(kill["settled_after_ms"].as_i64().unwrap() < DEMO_MAX_MS, "{kill}");
        assert!(kill["run_again"].as_i64() == Some(0) || kill["recovered_after_ms"].is_i64(), "{kill}");
    }
    let listed = facts["unknown"].as_array().unwrap();
    assert_eq!(listed.len() as i64, unknown, "the unknown ones are listed");
    assert!(listed.iter().all(|call| call["id"].is_string() && call["took_effect"].is_boolean()));
    assert!(played.report["duration_ms"].as_i64().unwrap() < DEMO_MAX_MS, "{}", played.report["duration_ms"]);
    played.assert_told(&["kill -9 worker A (pid ", "the scheduler has settled them", "recovered", "fencing token 2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn fencing_refuses_an_old_token_and_takes_the_newest_one() {
    let played = play(&["fencing"]).await;
    assert_eq!(["calls", "completed", "recovered"].map(|name| played.count(name)), [2, 2, 2]);
    let facts = &played.report["facts"];
    assert_eq!(facts["at_least_once"]["rejected"]["fencing_token"], 1);
    assert_eq!((&facts["at_least_once"]["runs"], &facts["at_most_once"]["runs"]), (&2.into(), &1.into()));
    assert_eq!(facts["at_most_once"]["completed"]["source"], "late_result");
    played.assert_told(&[
        "SIGSTOP worker ",
        "SIGCONT worker ",
        "rejected: a result under fencing token 1",
        "late_result",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_runs_each_call_once_however_it_is_repeated() {
    let played = play(&["duplicate"]).await;
    assert_eq!(["calls", "completed", "lost", "duplicate"].map(|name| played.count(name)), [4, 4, 0, 0]);
    assert_eq!(played.report["facts"]["runs"], 4);
    assert!(played.report["facts"]["requests"].as_i64().unwrap() >= 28, "{}", played.report);
    played.assert_told(&["the client hangs up", "20 answers, all of execution", "-31409", "it ran 0 times"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_keeps_its_schedule_through_the_death_of_the_server() {
    let played = play(&["retry"]).await;
    assert_eq!(["calls", "completed", "recovered", "failed"].map(|name| played.count(name)), [2, 1, 1, 1]);
    let executions = played.report["facts"]["executions"].as_array().unwrap();
    for execution in executions {
        let attempts = execution["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 3, "{execution}");
        assert!(attempts[1..].iter().all(|attempt| attempt["late_ms"].as_i64().unwrap() >= 0), "{execution}");
    }
    played.assert_told(&["kill -9 server", "3 attempts were made; none is left"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stack_runs_and_kills_until_its_time_is_over() {
    let played = play(&["stack", "--chaos", "1s", "--duration", "6s"]).await;
    assert!(played.report["facts"]["kills"].as_i64().unwrap() >= 2, "{}", played.report);
    assert_eq!((played.count("lost"), played.count("duplicate"), played.count("failed")), (0, 0, 0));
    assert!(played.count("completed") >= 5, "{}", played.report["counts"]);
    played.assert_told(&["kill -9 worker A", "kill -9 server", "completed", "unknown"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_that_is_stopped_settles_and_counts() {
    let temporary = scratch();
    let mut stack = Process::start_command(command(temporary.path(), &["stack", "--chaos", "0"]));
    stack.line_with("completed      1").await;
    let tree = descendants(stack.pid());
    assert!(tree.len() >= 4, "{tree:?}");
    stack.signal(Signal::INT);
    assert!(stack.exit(DEADLINE).await.success(), "{}", stack.stdout());
    assert!(stack.stdout().contains("As it must be"), "{}", stack.stdout());
    wait_gone(&tree, DEADLINE).await;
    assert_nothing_left(temporary.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scene_that_is_interrupted_leaves_neither_process_nor_folder() {
    let temporary = scratch();
    let mut demo = Process::start_command(command(temporary.path(), &["fencing"]));
    // A stopped process has to be ended as well.
    demo.line_with("SIGSTOP").await;
    let tree = descendants(demo.pid());
    assert!(tree.len() >= 3, "{tree:?}");
    demo.signal(Signal::INT);
    assert_eq!(demo.exit(DEADLINE).await.code(), Some(130), "{}", demo.stderr());
    wait_gone(&tree, DEADLINE).await;
    assert_nothing_left(temporary.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_that_is_killed_takes_its_processes_with_it() {
    let temporary = scratch();
    let mut demo = Process::start_command(command(temporary.path(), &["fencing"]));
    demo.line_with("SIGSTOP").await;
    let tree = descendants(demo.pid());
    demo.kill().await;
    wait_gone(&tree, DEADLINE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_kept_holds_store_ledger_and_logs() {
    let temporary = scratch();
    let output = command(temporary.path(), &["duplicate", "--keep"]).output().await.unwrap();
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains("As it must be"), "{stdout}");
    let folder = stderr.trim().rsplit(' ').next().unwrap();
    for file in ["durable-mcp.toml", "data/durable-mcp.db", "data/demo/demo-ledger.txt", "01-server.log"] {
        assert!(Path::new(folder).join(file).exists(), "{file}: {stderr}");
    }
}

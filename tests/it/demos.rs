//! `demo`: each scene from its command line, with its counts; that nothing of it outlives it, however it ends; and the
//! same scenes as scripts with curl.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use rustix::process::Signal;
use serde_json::Value;
use tokio::process::Command;

use crate::support::process::Process;
use crate::support::process_tree::{descendants, is_alive, wait_gone};
use crate::support::program::Setup;
use crate::support::{DEADLINE, eventually, program_binary, scratch};

/// How long a demo may take.
const DEMO_MAX_MS: i64 = 20_000;

/// A demo's report, and what it told.
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

    /// The page shows what is printed: each of its lines is told here too, but for numbers, ids and which worker it was.
    #[track_caller]
    fn assert_documented(&self) {
        let page = include_str!("../../docs/demos.md");
        let start = format!("$ durable-mcp demo {}\n", self.report["demo"].as_str().unwrap());
        let shown = page.split(&start).nth(1).and_then(|rest| rest.split("```").next()).expect("the page shows it");
        let told: BTreeSet<String> = self.stderr.lines().map(shape).collect();
        // A worker may be faster than the scheduler: then nothing is promoted.
        for line in shown.lines().filter(|line| !line.trim().is_empty() && !line.ends_with(" promoted")) {
            assert!(told.contains(&shape(line)), "docs/demos.md shows another line: {line}\n{}", self.stderr);
        }
    }

    #[track_caller]
    fn assert_told(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.stderr.contains(part), "{part}: {}", self.stderr);
        }
    }
}

/// A line without what differs from run to run.
fn shape(line: &str) -> String {
    let line = line.replace("worker A", "worker").replace("worker B", "worker").replace("ended", "stale_token");
    let words = line.split_whitespace().map(|word| {
        let is_id = word.len() >= 36 && word.matches('-').count() >= 4;
        if is_id { "ID".to_owned() } else { word.replace(|c: char| c.is_ascii_digit(), "") }
    });
    words.collect::<Vec<_>>().join(" ")
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
    played.assert_documented();
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
    played.assert_documented();
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
    played.assert_documented();
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
    played.assert_documented();
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
    let completed = || {
        let lines = stack.stdout();
        let counts =
            lines.lines().filter_map(|line| line.split("completed").nth(1)?.split_whitespace().next()?.parse().ok());
        counts.max().is_some_and(|most: u64| most > 0)
    };
    eventually("calls are completed", DEADLINE, completed).await;
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

/// Runs a script of `demos/`; with a server's address against that, else with one of its own.
async fn script(name: &str, env: &[(&str, &str)]) -> String {
    let temporary = scratch();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("demos").join(name);
    let mut command = Command::new("bash");
    for (variable, _) in std::env::vars_os() {
        if variable.to_str().is_some_and(|variable| variable.starts_with("DURABLE_MCP_")) {
            command.env_remove(variable);
        }
    }
    command.arg(script).env("TMPDIR", temporary.path()).env("DURABLE_MCP", program_binary());
    let output = command.envs(env.iter().copied()).kill_on_drop(true).output().await.unwrap();
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{name}: {:?}\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("\nAs it must be: "), "{stdout}\n{stderr}");
    assert_eq!(stderr, "", "{stdout}");
    assert_nothing_left(temporary.path());
    let pids = pids(&stdout);
    wait_gone(&pids, DEADLINE).await;
    stdout
}

/// A count of the last lines of a script.
#[track_caller]
fn counted(stdout: &str, name: &str) -> u64 {
    let counts = stdout.lines().rfind(|line| line.starts_with("  calls ")).unwrap_or_else(|| panic!("{stdout}"));
    let mut words = counts.split_whitespace().skip_while(|word| *word != name).skip(1);
    words.next().and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{name}: {stdout}"))
}

/// A script whose counts are the same each time: completed and failed; nothing is lost, doubled or unknown.
async fn assert_script(name: &str, (completed, failed): (u64, u64)) {
    let stdout = script(name, &[]).await;
    assert_eq!(["completed", "failed"].map(|name| counted(&stdout, name)), [completed, failed], "{stdout}");
    assert_eq!(["lost", "duplicate", "unknown"].map(|name| counted(&stdout, name)), [0, 0, 0], "{stdout}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fencing_script_plays_with_curl() {
    assert_script("fencing.sh", (2, 0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_retry_script_plays_with_curl() {
    assert_script("retry.sh", (1, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_duplicate_script_plays_with_curl() {
    assert_script("duplicate.sh", (4, 0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_crash_script_plays_with_curl() {
    let stdout = script("crash.sh", &[]).await;
    let [calls, completed, recovered, unknown] =
        ["calls", "completed", "recovered", "unknown"].map(|name| counted(&stdout, name));
    assert_eq!((calls, completed + unknown), (12, 12), "{stdout}");
    assert!(recovered + unknown > 0, "{stdout}");
    assert_eq!(["lost", "duplicate", "failed"].map(|name| counted(&stdout, name)), [0, 0, 0], "{stdout}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_the_worker_role_leaves_its_calls_to_one_that_has_it() {
    let config = "[worker]\npoll_interval = \"10ms\"\n";
    let setup = Setup::new(config).flag("--demo").flag("--roles");
    let server = setup.clone().flag("mcp,scheduler").serve().await;
    let call = ["call", "demo_echo", "--args", r#"{"message":"hello"}"#, "--key", "k", "--url", server.url()];
    let waiting = server.setup.cli(&[call.as_slice(), &["--wait", "200ms"]].concat()).await;
    assert_eq!(waiting.status.code(), Some(8), "nobody runs it: {}{}", waiting.stdout, waiting.stderr);
    assert_eq!(server.executions().await[0]["state"], "ready");
    let worker = setup.clone().flag("worker").serve().await;
    let done = server.setup.cli(&call).await;
    assert_eq!(done.stdout, "hello\n", "{}", done.stderr);
    let id = server.executions().await[0]["id"].as_str().unwrap().to_owned();
    let leases: Vec<Value> = server.events(&id).await.into_iter().filter(|event| event["type"] == "leased").collect();
    let by_worker = format!(".{}", worker.process.pid());
    assert!(leases.iter().all(|lease| lease["worker"].as_str().unwrap().ends_with(&by_worker)), "{leases:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scripts_play_against_a_running_server_and_kill_there_only_when_allowed() {
    let mut server = Setup::new("[auth]\nmode = \"token\"\n").flag("--demo").serve().await;
    let token = server.setup.cli(&["token", "create", "--principal", "ci", "--scope", "call,read"]).await.stdout;
    let env = [("DURABLE_MCP_URL", server.url()), ("DURABLE_MCP_TOKEN", token.trim())];
    for (name, completed) in [("duplicate.sh", 4), ("retry.sh", 1)] {
        assert_eq!(counted(&script(name, &env).await, "completed"), completed, "{name}");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("demos/crash.sh");
    let refused = Command::new("bash").arg(script).envs(env).env_remove("DEMO_MAY_KILL").output().await.unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(texts(&refused).1.contains("DEMO_MAY_KILL=1"));
    assert!(server.process.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_of_the_help_runs() {
    for (scene, example) in [("retry", "demo retry"), ("stack", "demo stack --chaos 5s --duration 3s")] {
        let help = Command::new(program_binary()).args(["demo", scene, "--help"]).output().await.unwrap();
        assert!(texts(&help).0.contains(&format!("  durable-mcp {example}")), "{}", texts(&help).0);
        let temporary = scratch();
        let words: Vec<&str> = example.split(' ').skip(1).collect();
        let output = command(temporary.path(), &words).output().await.unwrap();
        assert!(output.status.success(), "{example}: {:?}", texts(&output));
    }
}

//! `bench`: every answer checked, the limits of the machine beside it, both eras, repeats, a stdio server beside itself
//! behind `wrap`; and the load-testing examples with small numbers.

use rustix::process::Signal;
use serde_json::Value;
use tokio::process::Command;

use crate::skip_loudly;
use crate::support::process::Process;
use crate::support::process_tree::{descendants, wait_gone};
use crate::support::program::{Program, Ran, Setup};
use crate::support::servers::Nobody;
use crate::support::store_count::StoreCount;
use crate::support::{DEADLINE, eventually, eventually_async, kit_binary, program_binary, scratch};

const SHORT: [&str; 6] = ["--duration", "400ms", "--warmup", "100ms", "--concurrency", "4"];

async fn bench(setup: &Setup, arguments: &[&str]) -> Ran {
    setup.cli(&[&["bench", "--json"], SHORT.as_slice(), arguments].concat()).await
}

#[track_caller]
fn report(ran: &Ran) -> Value {
    assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stderr, "", "a bar is for a terminal");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

#[track_caller]
fn assert_measured(measured: &Value) {
    assert!(measured["calls"].as_u64().unwrap() > 0, "{measured}");
    assert!(measured["calls_per_s"].as_f64().unwrap() > 0.0, "{measured}");
    assert_eq!(measured["wrong"], 0, "{measured}");
    assert_eq!(measured["errors"], serde_json::json!({}), "{measured}");
    let latency = ["p50", "p90", "p99", "max"].map(|name| measured["latency_ms"][name].as_f64().unwrap());
    assert!(latency[0] > 0.0 && latency.is_sorted(), "{measured}");
}

#[track_caller]
fn assert_machine(report: &Value) {
    let machine = &report["machine"];
    for limit in ["cores", "fsync_per_s_before", "fsync_per_s_after", "echo_per_s"] {
        assert!(machine[limit].as_f64().unwrap() > 0.0, "{limit}: {machine}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_address_it_starts_a_server_and_ends_it() {
    let temporary = scratch();
    let setup = Setup::new("").env("TMPDIR", temporary.path().to_str().unwrap());
    let report = report(&bench(&setup, &["--duplicates", "2"]).await);
    assert_measured(&report);
    assert_machine(&report);
    assert_eq!((&report["tool"], &report["era"]), (&"demo_echo".into(), &"modern".into()));
    let repeats = &report["repeats"];
    assert!(repeats["answered"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(repeats["answered"], repeats["attached"], "each repeat got the first call's execution");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "its folder is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_is_measured_in_both_eras_and_each_call_is_stored() {
    let program = Setup::new("").flag("--demo").serve().await;
    for era in ["legacy", "modern"] {
        let report = report(&bench(&program.setup, &["--url", program.url(), "--era", era]).await);
        assert_measured(&report);
        assert_eq!(report["era"], era);
    }
    let keys: Vec<Value> = program.executions().await.into_iter().map(|row| row["key"].clone()).collect();
    let distinct: std::collections::BTreeSet<String> = keys.iter().map(Value::to_string).collect();
    assert_eq!(distinct.len(), keys.len(), "every call had a key of its own");

    // Another tool, with arguments and an expectation of one's own.
    let arguments = ["--tool", "demo_append", "--args", r#"{"text":"line {{key}}"}"#, "--expect", "line {{key}}"];
    let own = report_of(&program, &arguments).await;
    assert_measured(&own);
    let human = program.setup.cli(&[&["bench", "--url", program.url()], SHORT.as_slice()].concat()).await;
    for part in
        ["calls/s ", "latency in ms    p50 ", "each checked: 0 wrong, 0 errors", "machine ", "fsync/s", "loopback/s"]
    {
        assert!(human.stdout.contains(part), "{part}: {}{}", human.stdout, human.stderr);
    }
}

async fn report_of(program: &Program, arguments: &[&str]) -> Value {
    report(&bench(&program.setup, &[&["--url", program.url()], arguments].concat()).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_measured_is_said_before_anything_is() {
    let program = Setup::new("").flag("--demo").serve().await;
    let url = program.url().to_owned();
    let nobody = Nobody::new();
    let nobody = nobody.url();
    let wrong = ["--expect", "not {{key}}"];
    for (arguments, exit, says) in [
        (vec!["--url", nobody.as_str()], 7, "durable-mcp serve"),
        (vec!["--url", url.as_str(), "--tool", "no_such_tool"], 1, "--tool"),
        (vec!["--url", url.as_str(), "--tool", "demo_echo", "--args", "{}"], 5, "tool_error"),
        (vec!["--url", url.as_str(), "--args", "[]"], 2, "no JSON object"),
        ([vec!["--url", url.as_str()], wrong.to_vec()].concat(), 1, "does not hold what is expected"),
        (vec!["--url", "https://mcp.example/mcp"], 2, "plain http"),
        (vec!["--duration", "0"], 2, "--duration"),
        (vec!["--", "no-such-command-anywhere"], 1, "no-such-command-anywhere"),
    ] {
        let ran = bench(&program.setup, &arguments).await;
        assert_eq!(ran.status.code(), Some(exit), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(says) && ran.stdout.is_empty(), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stdio_server_is_measured_beside_itself_behind_wrap() {
    let kit = kit_binary();
    let kit = kit.to_str().unwrap();
    let setup = Setup::new("");
    for era in ["legacy", "modern"] {
        let report = report(&bench(&setup, &["--era", era, "--", kit, "stdio", "--era", "both"]).await);
        assert_machine(&report);
        let rounds = report["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2);
        for round in rounds {
            assert_measured(&round["direct"]);
            assert_measured(&round["wrap"]);
            assert!(round["ratio"].as_f64().unwrap() > 0.0, "{round}");
        }
    }
    let no_tool = bench(&setup, &["--tool", "no_such_tool", "--", kit, "stdio"]).await;
    assert_eq!(no_tool.status.code(), Some(2));
    assert!(no_tool.stderr.contains("echo"), "it names the tools there are: {}", no_tool.stderr);
    let table = setup.cli(&[&["bench"], SHORT.as_slice(), &["--", kit, "stdio"]].concat()).await;
    assert!(table.stdout.contains("BEHIND WRAP"), "{}{}", table.stdout, table.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_bench_prints_what_it_measured_and_ends_its_server() {
    let temporary = scratch();
    let mut command = Command::new(program_binary());
    command.args(["bench", "--json", "--duration", "10m", "--warmup", "0"]).env("TMPDIR", temporary.path());
    let mut process = Process::start_command(command);
    let database = || {
        let folder = std::fs::read_dir(temporary.path()).unwrap().find_map(Result::ok);
        folder.map(|folder| folder.path().join("data/durable-mcp.db")).filter(|database| database.exists())
    };
    eventually("it has a store", DEADLINE, || database().is_some()).await;
    let count = StoreCount::of(&database().unwrap()).await;
    eventually_async("calls are stored", DEADLINE, async || count.now().await > 100).await;
    let tree = descendants(process.pid());
    process.signal(Signal::INT);
    assert_eq!(process.exit(DEADLINE).await.code(), Some(130), "{}", process.stderr());
    let report: Value = serde_json::from_str(&process.stdout()).unwrap();
    assert_eq!(report["interrupted"], true);
    assert_measured(&report);
    wait_gone(&tree, DEADLINE).await;
}

/// Runs an example of `examples/load`; returns what it printed.
async fn example(program: &Program, interpreter: &str, arguments: &[&str]) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/load");
    let mut command = Command::new(interpreter);
    command.arg(folder.join(arguments[0])).args(&arguments[1..]).kill_on_drop(true);
    command.env("DURABLE_MCP", program_binary()).env_remove("DURABLE_MCP_TOKEN");
    command.env("DURATION", "300ms").env("WARMUP", "100ms").env("CLIENTS", "1 4");
    command.env("DURABLE_MCP_DATA_DIR", program.setup.data_dir());
    let output = command.output().await.unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{arguments:?}: {stdout}{stderr}");
    stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn the_load_examples_run_and_check_their_answers() {
    let program = Setup::new("").flag("--demo").serve().await;
    let table = example(&program, "bash", &["bench.sh", program.url()]).await;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.lines().skip(1).all(|line| line.split_whitespace().count() == 4), "{table}");
    for (interpreter, file) in [("python3", "load.py"), ("node", "load.mjs")] {
        let there = Command::new(interpreter).arg("--version").output().await.is_ok();
        skip_loudly!(there.then_some(()).ok_or_else(|| format!("{interpreter} is missing")));
        let arguments = [file, program.url(), "--clients", "3", "--seconds", "0.5"];
        let printed = example(&program, interpreter, &arguments).await;
        let report: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
        assert!(report["calls"].as_u64().unwrap() > 0, "{file}: {report}");
        assert_eq!((&report["wrong"], &report["errors"]), (&0.into(), &serde_json::json!({})), "{file}: {report}");
    }
}

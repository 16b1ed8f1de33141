//! The command line as people and scripts use it: exit codes, data on stdout and words on stderr, one JSON shape from a
//! server and from its store, ids by their start, and closed pipes. Schemas, exit codes and help are in `cli_outputs`.

use std::collections::BTreeMap;
use std::process::Output;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::ledger::Ledger;
use crate::support::program::{Program, Ran, Setup, server_table};
use crate::support::raw_http::Request;
use crate::support::servers::{Nobody, kit_stdio};
use crate::support::{eventually, program_binary};

/// A server with the demo tools, the fixture's tools, and a command of the name that a help text uses.
async fn program() -> Program {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--era", "both", "--ledger", ledger.path()]);
    let config = format!("{}\n[tools.github__create_issue]\ncommand = [\"true\"]\n", server_table("kit", &kit, ""));
    setup.config(&config).flag("--demo").serve().await
}

async fn call(program: &Program, arguments: &[&str]) -> Ran {
    program.setup.cli(&[&["call", "--url", program.url()], arguments].concat()).await
}

#[track_caller]
fn assert_exit(ran: &Ran, exit: i32) {
    assert_eq!(ran.status.code(), Some(exit), "stdout: {}\nstderr: {}", ran.stdout, ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_says_by_its_exit_code_how_it_ended_and_prints_nothing_but_data() {
    let program = program().await;
    let echoed = call(&program, &["demo_echo", "--args", r#"{"message":"hello"}"#]).await;
    assert_exit(&echoed, 0);
    assert_eq!(echoed.stdout, "hello\n");
    assert!(echoed.stderr.contains("execution "), "the id is there, on stderr: {}", echoed.stderr);
    let whole = call(&program, &["demo_echo", "--args", r#"{"message":"hello"}"#, "--json"]).await;
    let result: Value = serde_json::from_str(&whole.stdout).unwrap();
    assert_eq!(result["content"][0]["text"], "hello");
    assert!(result["_meta"]["durable-mcp/execution"]["id"].is_string(), "{result}");

    let file = program.setup.folder().join("arguments.json");
    std::fs::write(&file, "\u{feff}{\"message\":\"from a file\"}\n").unwrap();
    let from_file = call(&program, &["demo_echo", "--args", &format!("@{}", file.display())]).await;
    assert_eq!(from_file.stdout, "from a file\n");

    for (arguments, exit, says) in [
        (vec!["demo_echo"], 5, ""),
        (vec!["rpc_error", "--args", r#"{"code":-32000,"message":"no"}"#], 5, "no"),
        (vec!["no_such_tool"], 3, "unknown tool: no_such_tool; `durable-mcp tools list`"),
        (vec!["demo_echo", "--args", "[1]"], 2, "no JSON object"),
        (vec!["demo_echo", "--args", "{"], 2, "line 1"),
        (vec!["demo_echo", "--args", "@/nowhere.json"], 2, "/nowhere.json"),
        (vec!["demo_echo", "--wait", "soon"], 2, "soon"),
        (vec!["demo_echo", "--key", "a b"], 2, "key"),
        (vec!["crash_after_write", "--args", r#"{"text":"gone"}"#], 9, "NOT run again"),
        (vec!["demo_sleep", "--args", r#"{"seconds":30}"#, "--wait", "10ms"], 8, "still running"),
    ] {
        let ran = call(&program, &arguments).await;
        assert_exit(&ran, exit);
        assert!(ran.stderr.contains(says), "{arguments:?}: {}", ran.stderr);
        assert!(exit == 5 || ran.stdout.is_empty(), "{arguments:?}: {}", ran.stdout);
    }
    let keyed = |message: &str| {
        let arguments = json!({"message": message}).to_string();
        let program = &program;
        async move { call(program, &["demo_echo", "--key", "release-1.4", "--args", &arguments]).await }
    };
    assert_exit(&keyed("one").await, 0);
    let again = keyed("one").await;
    assert_exit(&again, 0);
    assert!(again.stderr.contains("stored earlier"), "{}", again.stderr);
    assert_exit(&keyed("two").await, 6);
    let asked = call(&program, &["demo_sleep", "--args", r#"{"seconds":20}"#, "--wait", "0"]).await;
    assert_exit(&asked, 0);
    assert_eq!(asked.stdout.trim().len(), 36, "the id alone: {}", asked.stdout);

    let nobody = Nobody::new();
    let unreachable = program.setup.cli(&["call", "demo_echo", "--url", &nobody.url()]).await;
    assert_exit(&unreachable, 7);
    assert!(unreachable.stderr.contains(&nobody.url()), "{}", unreachable.stderr);
    let closed = Setup::new("[auth]\nmode = \"token\"\n").flag("--demo").serve_on(0).await;
    assert_exit(&call(&closed, &["demo_echo"]).await, 4);
    let token = closed.setup.cli(&["token", "create", "--principal", "ci"]).await.stdout;
    let setup = closed.setup.clone().env("DURABLE_MCP_TOKEN", token.trim());
    let let_in = setup.cli(&["call", "demo_echo", "--url", closed.url(), "--args", r#"{"message":"in"}"#]).await;
    assert_eq!(let_in.stdout, "in\n", "{}", let_in.stderr);
    assert_exit(&setup.cli(&["executions", "list", "--url", closed.url()]).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_look_the_same_from_a_server_and_from_its_store_and_end_with_their_exit_codes() {
    let program = program().await;
    call(&program, &["demo_echo", "--args", r#"{"message":"x"}"#]).await;
    call(&program, &["demo_echo"]).await;
    call(&program, &["rpc_error", "--args", r#"{"code":-32000,"message":"no"}"#]).await;
    call(&program, &["crash_after_write", "--args", r#"{"text":"gone"}"#]).await;
    call(&program, &["demo_sleep", "--args", r#"{"seconds":600}"#, "--wait", "0"]).await;
    let (url, store) = (program.url().to_owned(), program.setup.store_url());
    let rows = program.executions().await;
    assert_eq!(rows.len(), 5);
    let settled = |rows: &[Value]| rows.iter().filter(|row| row["state"] == "leased").count() == 1;
    assert!(settled(&rows), "{rows:?}");

    let from_server = program.setup.cli(&["executions", "list", "--json", "--url", &url]).await;
    let from_store = program.setup.cli(&["executions", "list", "--json", "--store", &store]).await;
    assert_exit(&from_server, 0);
    assert_eq!(from_server.stdout, from_store.stdout, "one JSON shape");
    for row in &rows {
        for member in ["id", "state", "tool", "upstream", "attempt", "delivery", "created_at", "updated_at", "ended_at"]
        {
            assert!(row.get(member).is_some(), "{member}: {row}");
        }
        assert!(row["created_at"].as_str().unwrap().ends_with('Z'), "{row}");
    }
    let failed = program.setup.cli(&["executions", "list", "--json", "--state", "failed,unknown", "--url", &url]).await;
    assert_eq!(failed.stdout.lines().count(), 2, "{}", failed.stdout);
    let limited = program.setup.cli(&["executions", "list", "--json", "--limit", "2", "--store", &store]).await;
    assert_eq!(limited.stdout.lines().count(), 2);
    let table = program.setup.cli(&["executions", "list", "--url", &url]).await;
    assert!(table.stdout.starts_with("ID "), "without --json a table, also in a pipe: {}", table.stdout);
    assert_eq!(table.stdout.lines().count(), 6);

    let id_of = |tool: &str, state: &str| {
        let row = rows.iter().find(|row| row["tool"] == tool && row["state"] == state);
        row.unwrap_or_else(|| panic!("{tool} {state}: {rows:?}"))["id"].as_str().unwrap().to_owned()
    };
    let ok = rows.iter().find(|row| row["tool"] == "demo_echo" && row["is_error"] == false).unwrap();
    let bad = rows.iter().find(|row| row["tool"] == "demo_echo" && row["is_error"] == true).unwrap();
    let endings = [
        (ok["id"].as_str().unwrap().to_owned(), 0, true),
        (bad["id"].as_str().unwrap().to_owned(), 5, true),
        (id_of("rpc_error", "failed"), 5, true),
        (id_of("crash_after_write", "unknown"), 9, false),
        (id_of("demo_sleep", "leased"), 8, false),
    ];
    for (id, exit, has_data) in &endings {
        for place in [["--url", &url], ["--store", &store]] {
            let result = program.setup.cli(&[&["executions", "result", id], place.as_slice()].concat()).await;
            assert_exit(&result, *exit);
            assert_eq!(result.stdout.is_empty(), !has_data, "{id}: {}", result.stdout);
            assert_eq!(result.stderr.is_empty(), *has_data, "{id}: {}", result.stderr);
            let whole = program.setup.cli(&[&["executions", "result", "--json", id], place.as_slice()].concat()).await;
            assert_exit(&whole, *exit);
            let view: Value = serde_json::from_str(&whole.stdout).unwrap();
            assert_eq!(view["id"], **id);
            for command in ["show", "events"] {
                let json =
                    program.setup.cli(&[&["executions", command, "--json", id], place.as_slice()].concat()).await;
                assert_exit(&json, 0);
                assert!(json.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", json.stdout);
                let plain = program.setup.cli(&[&["executions", command, id], place.as_slice()].concat()).await;
                assert!(serde_json::from_str::<Value>(&plain.stdout).is_err(), "{}", plain.stdout);
            }
        }
    }
    let events = program.events(&endings[0].0).await;
    let seqs: Vec<i64> = events.iter().map(|event| event["seq"].as_i64().unwrap()).collect();
    assert_eq!(seqs, (1..=events.len() as i64).collect::<Vec<_>>());
    assert!(events.iter().all(|event| event["type"].is_string() && event["at"].is_string()));

    // Ids by their start: a start that only one has, one that all have, one that none has, and no start at all.
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    let unique = (1..=36)
        .map(|length| &ids[0][..length])
        .find(|start| ids.iter().filter(|id| id.starts_with(start)).count() == 1)
        .unwrap();
    for place in [["--url", &url], ["--store", &store]] {
        let show = |start: String| {
            let setup = program.setup.clone();
            let place = place.map(str::to_owned);
            async move { setup.cli(&["executions", "show", "--json", &start, &place[0], &place[1]]).await }
        };
        let found = show(unique.to_uppercase()).await;
        assert_exit(&found, 0);
        assert!(found.stdout.contains(ids[0]));
        let ambiguous = show(ids[0][..2].to_owned()).await;
        assert_exit(&ambiguous, 2);
        assert!(ambiguous.stderr.contains("more than one"), "{}", ambiguous.stderr);
        assert_exit(&show("ffffffff".to_owned()).await, 3);
        assert_exit(&show("not-an-id".to_owned()).await, 2);
    }
    assert_exit(&program.setup.cli(&["executions", "show", "01", "--url", "http://127.0.0.1:1"]).await, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipe_is_no_failure_worth_a_word() {
    let program = Setup::new("").flag("--demo").serve().await;
    // More than a pipe holds.
    for _ in 0..200 {
        let params = json!({"name": "demo_echo", "arguments": {"message": "x"}});
        let request = Request::modern(program.url(), json!(1), "tools/call", params);
        assert_eq!(request.exchange(program.url()).await.status, 200);
    }
    let commands = ["executions list --json", "executions list", "config schema", "config show", "--help"];
    for command in commands {
        let ran = shell(&program, &format!("durable-mcp {command} | head -n 1")).await;
        let (stdout, stderr) = (text(&ran.stdout), text(&ran.stderr));
        assert_eq!(stdout.lines().count(), 1, "{command}: {stdout}");
        assert_eq!(stderr, "", "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_checked_shown_and_described() {
    let setup = Setup::new("[worker]\nslots = 7\n");
    let check = setup.cli(&["config", "check"]).await;
    assert_exit(&check, 0);
    assert_eq!(check.stdout, "", "a check has no data");
    let shown = setup.cli(&["config", "show"]).await;
    assert_exit(&shown, 0);
    assert!(shown.stdout.contains("slots = 7"), "{}", shown.stdout);
    let json: Value = serde_json::from_str(&setup.cli(&["config", "show", "--json"]).await.stdout).unwrap();
    assert_eq!(json["settings"]["worker.slots"], json!({"value": 7, "source": "file", "line": 2}));
    let by_flag = setup.clone().env("DURABLE_MCP_WORKER_SLOTS", "9").cli(&["config", "show", "--json"]).await.stdout;
    let json: Value = serde_json::from_str(&by_flag).unwrap();
    assert_eq!(json["settings"]["worker.slots"]["value"], 9, "a variable beats the file");
    // What `show` prints is a configuration again.
    let again = Setup::new(&shown.stdout);
    assert_exit(&again.cli(&["config", "check"]).await, 0);
    let schema: Value = serde_json::from_str(&setup.cli(&["config", "schema"]).await.stdout).unwrap();
    assert!(schema["properties"]["worker"].is_object());

    let wrong = Setup::new("[worker]\nslotz = 7\n[lease]\nttl = 5\n");
    let check = wrong.cli(&["config", "check"]).await;
    assert_exit(&check, 2);
    assert_eq!(check.stderr.lines().count(), 2, "every mistake in one run, one line each: {}", check.stderr);
    assert_exit(&wrong.cli(&["config", "show"]).await, 2);
}

// A server that ends in order says so and exits 0; one that is told twice ends at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_the_server_in_order() {
    let mut program = Setup::new("").flag("--demo").serve().await;
    assert_eq!(program.process.stdout(), "", "stdout is for data, and a server has none");
    assert!(program.sigterm().await.success());
    assert!(program.stderr().contains("ended in order"), "{}", program.stderr());
    let setup = program.setup.clone();
    let interrupted = setup.serve().await;
    interrupted.process.signal(rustix::process::Signal::INT);
    eventually("the end", crate::support::DEADLINE, || interrupted.stderr().contains("ended in order")).await;
}

/// A line of shell in the setup's folder, with the program in `PATH` and its server as the default.
async fn shell(program: &Program, line: &str) -> Output {
    let binary = program_binary();
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let config = program.setup.folder().join("durable-mcp.toml");
    let mut env: BTreeMap<&str, String> = BTreeMap::new();
    env.insert("PATH", path);
    env.insert("HOME", program.setup.folder().to_str().unwrap().to_owned());
    env.insert("DURABLE_MCP_CONFIG", config.to_str().unwrap().to_owned());
    env.insert("DURABLE_MCP_DATA_DIR", program.setup.data_dir().to_str().unwrap().to_owned());
    env.insert("DURABLE_MCP_URL", program.url().to_owned());
    Command::new("sh").args(["-c", line]).current_dir(program.setup.folder()).envs(env).output().await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

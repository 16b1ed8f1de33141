//! A canary goes in wherever people put secrets: variables, secret files, header values, arguments of a server, tool
//! arguments, tokens. It comes out nowhere but where it was sent, and no file it may be in is readable by others.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup, server_table};
use crate::support::raw_http::Request;
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::{kit_http, kit_stdio};

/// A start that every canary has.
const CANARY: &str = "canary-4711";

fn canary(place: &str) -> String {
    format!("{CANARY}-{place}-do-not-print")
}

/// Every file and folder below, with its permission bits.
fn modes(folder: &Path) -> Vec<(PathBuf, bool, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        found.push((folder.clone(), true, mode(&folder)));
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.clone(), false, mode(&path))),
            }
        }
    }
    found
}

#[track_caller]
fn assert_private(folder: &Path, names: &[&str]) {
    let found = modes(folder);
    for (path, is_folder, mode) in &found {
        assert_eq!(*mode, if *is_folder { 0o700 } else { 0o600 }, "{}: {mode:o}", path.display());
    }
    for name in names {
        let there = found.iter().any(|(path, ..)| path.to_string_lossy().ends_with(name));
        assert!(there, "{name} is among {found:?}");
    }
}

#[track_caller]
fn assert_clean(what: &str, text: &str) {
    assert!(!text.contains(CANARY), "{what} tells a secret:\n{text}");
}

async fn call(program: &Program, bearer: &str, tool: &str, arguments: Value) -> Value {
    let request = Request::modern(program.url(), json!(1), "tools/call", json!({"name": tool, "arguments": arguments}));
    let request = request.header("Authorization", &format!("Bearer {bearer}"));
    request.exchange(program.url()).await.answer()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_in_no_log_no_error_no_list_and_no_shown_configuration() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    std::fs::write(setup.folder().join("secret.txt"), canary("file")).unwrap();
    let http = kit_http(&["--era", "both"]).await;
    // As people write them: by variable, by file, and plainly where a name says what it is.
    let stdio = kit_stdio(&["--era", "both", "--ledger", ledger.path(), "--instructions", "${CANARY_ARGUMENT}"])
        .env("KIT_TOKEN", "${CANARY_VARIABLE}")
        .env("KIT_SECRET", &canary("plain"));
    let there =
        http.target.clone().header("Authorization", "Bearer ${file:secret.txt}").header("X-Key", &canary("header"));
    let gone = crate::support::client::Target::url("http://127.0.0.1:1/mcp?key=${CANARY_VARIABLE}")
        .header("Authorization", "Bearer ${CANARY_VARIABLE}");
    let quick = "start_timeout = \"1s\"\nrestart = { initial_interval = \"100ms\", max_interval = \"100ms\" }";
    let config = format!(
        "[auth]\nmode = \"token\"\n{}{}{}[tools.run]\ncommand = [\"sh\", \"-c\", \"cat; exit 3\"]\n\
         env = {{ API_KEY = \"{}\" }}\n",
        server_table("near", &stdio, ""),
        server_table("far", &there, "").replace("prefix = \"\"", ""),
        server_table("gone", &gone, quick),
        canary("command"),
    );
    let setup = setup
        .config(&config)
        .flag("--demo")
        .env("CANARY_VARIABLE", &canary("variable"))
        .env("CANARY_ARGUMENT", &canary("argument"));
    for arguments in [&["config", "show"][..], &["config", "show", "--json"], &["config", "check"]] {
        let ran = setup.cli(arguments).await;
        assert!(ran.status.success(), "{}", ran.stderr);
        assert_clean(&arguments.join(" "), &(ran.stdout + &ran.stderr));
    }

    let mut program = setup.serve().await;
    let token = setup.cli(&["token", "create", "--principal", "ann"]).await.stdout.trim().to_owned();
    let secret = token.rsplit('_').next().unwrap().to_owned();
    let text = canary("tool-argument");
    // The secrets arrive where they were sent.
    let received = call(&program, &token, "far__received", json!({"secret": text})).await.to_string();
    for place in ["file", "header", "tool-argument"] {
        assert!(received.contains(&canary(place)), "{place}: {received}");
    }
    // Calls that end in every way.
    for (tool, arguments) in [
        ("echo", json!({"message": text})),
        ("demo_echo", json!({"message": text})),
        ("flaky", json!({"name": text, "failures": 9})),
        ("rpc_error", json!({"code": -32000, "message": text, "data": {"secret": text}})),
        ("run", json!({"secret": text})),
        ("crash_after_write", json!({"text": text})),
        ("crash_idempotent", json!({"text": text, "once": true})),
        ("corpus", json!({"case": text})),
        (text.as_str(), json!({})),
    ] {
        let answer = call(&program, &token, tool, arguments).await;
        assert!(answer["result"].is_object() || answer["error"].is_object(), "{tool}: {answer}");
    }
    // Refused ones: what is told about them must not repeat them either.
    for bearer in [canary("bearer"), format!("dmcp_{}_{}", "0".repeat(12), canary("bearer")), format!("{token}0")] {
        assert_clean("a refused token", &call(&program, &bearer, "demo_echo", json!({})).await.to_string());
    }
    let wrong = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"a":"{text}","a":"{text}"}}}}"#);
    let request = Request::modern_text(program.url(), "tools/call", Some("demo_echo"), &wrong)
        .header("Authorization", &format!("Bearer {token}"));
    assert_clean("a refused message", &request.exchange(program.url()).await.text());
    let conflicting = |message: &str| {
        let params = json!({"name": "demo_echo", "arguments": {"message": message},
            "_meta": {"durable-mcp/idempotencyKey": "k"}});
        Request::modern(program.url(), json!(1), "tools/call", params)
            .header("Authorization", &format!("Bearer {token}"))
    };
    conflicting("one").exchange(program.url()).await;
    let conflict = conflicting(&text).exchange(program.url()).await;
    assert_eq!(conflict.answer()["error"]["code"], -31409);
    assert_clean("a conflict", &conflict.text());
    for arguments in [
        &["call", "demo_echo", "--args", &format!("{{\"a\":\"{text}\" nonsense"), "--url", program.url()][..],
        &["call", "demo_echo", "--url", &format!("http://u:{text}@127.0.0.1/")],
        &["executions", "show", &text],
    ] {
        let ran = setup.cli(arguments).await;
        assert!(!ran.status.success());
        assert_clean("a failed command", &(ran.stdout + &ran.stderr));
    }
    let bad_token = setup.clone().env("DURABLE_MCP_TOKEN", &canary("bearer"));
    let ran = bad_token.cli(&["call", "demo_echo", "--url", program.url()]).await;
    assert_clean("a refused command", &(ran.stdout + &ran.stderr));

    let operated = setup.clone().env("DURABLE_MCP_TOKEN", &token);
    for place in [["--url", program.url()], ["--store", &setup.store_url()]] {
        for more in [&[][..], &["--json"]] {
            let list = operated.cli(&[&["executions", "list"], more, &place].concat()).await;
            assert!(list.status.success(), "{}", list.stderr);
            assert_clean("executions list", &(list.stdout + &list.stderr));
        }
        for row in program.executions().await {
            for command in ["show", "events"] {
                let id = row["id"].as_str().unwrap();
                let shown = operated.cli(&[&["executions", command, "--json", id], &place[..]].concat()).await;
                assert!(shown.status.success(), "{}", shown.stderr);
                assert_clean(&format!("executions {command} of {row}"), &(shown.stdout + &shown.stderr));
            }
        }
    }
    let tokens = setup.cli(&["token", "list"]).await.stdout + &setup.cli(&["token", "list", "--json"]).await.stdout;
    assert!(!tokens.contains(&secret), "a token is shown once");
    assert_private(&setup.data_dir(), &["durable-mcp.db", "durable-mcp.db-wal", "durable-mcp.db-shm"]);
    assert!(program.sigterm().await.success());
    let log = program.stderr();
    assert!(log.contains("upstream=\"gone\""), "the log has the servers' fates:\n{log}");
    assert_clean("the log", &log);
    assert!(!log.contains(&secret), "the log tells a token:\n{log}");
    for entry in modes(&setup.data_dir()).iter().filter(|(_, is_folder, _)| !is_folder) {
        let bytes = std::fs::read(&entry.0).unwrap();
        let tells = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!tells, "{} holds a token in the clear", entry.0.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_folders_belong_to_their_user_alone() {
    // As open as a user's mask may be.
    let program = Setup::new("").flag("--demo").serve().await;
    let request = Request::modern(
        program.url(),
        json!(1),
        "tools/call",
        json!({"name": "demo_append", "arguments": {"text": "x"}}),
    );
    assert_eq!(request.exchange(program.url()).await.status, 200);
    let token = format!("servers/127.0.0.1_{}.token", program.port());
    let names = ["durable-mcp.db", "durable-mcp.db-wal", "durable-mcp.db-shm", "demo-ledger.txt", &token];
    assert_private(&program.setup.data_dir(), &names);

    let setup = Setup::new("");
    let wrap = setup.wrap(&kit_stdio(&[]));
    let mut session = RawStdio::open(&wrap, "2025-11-25").await;
    session.call(json!(1), "echo", json!({})).await;
    assert_private(&setup.data_dir(), &["wrap/wrapped.db", "wrap/wrapped.db-wal"]);
    // Without a name one is made, and the salt of it is private too.
    let unnamed = Setup::new("");
    let mut wrap = unnamed.wrap(&kit_stdio(&[]));
    if let crate::support::client::Place::Command(argv) = &mut wrap.place {
        let at = argv.iter().position(|word| word == "--name").unwrap();
        argv.drain(at..at + 2);
    }
    let mut session = RawStdio::open(&wrap, "2025-11-25").await;
    session.call(json!(1), "echo", json!({})).await;
    assert_private(&unnamed.data_dir(), &["salt", ".db"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrapped_server_gets_its_secrets_and_the_log_does_not() {
    let http = kit_http(&["--era", "both"]).await;
    let target = http.target.clone().header("Authorization", &format!("Bearer {}", canary("wrapped")));
    let setup = Setup::new("");
    let mut session = RawStdio::open(&setup.wrap(&target), "2025-11-25").await;
    let answer = session.call(json!(1), "received", json!({"secret": canary("tool-argument")})).await.to_string();
    assert!(answer.contains(&canary("wrapped")) && answer.contains(&canary("tool-argument")), "{answer}");
    let process = session.close_stdin();
    let mut process = process;
    assert!(process.exit(crate::support::DEADLINE).await.success());
    assert_clean("the log of wrap", &process.stderr());
    let names: Vec<PathBuf> = modes(&setup.data_dir()).into_iter().map(|(path, ..)| path).collect();
    assert_clean("the names of files", &format!("{names:?}"));
}

//! `db`: copies made while calls run restore to stores that verify, stores in use are refused, retention by hand, and what
//! is wrong with a store is told by its lines and exit codes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::program::{Program, Ran, Setup};
use crate::support::raw_http::Request;
use crate::support::{DEADLINE, eventually, program_binary};

#[track_caller]
fn assert_exit(ran: &Ran, exit: i32) {
    assert_eq!(ran.status.code(), Some(exit), "stdout: {}\nstderr: {}", ran.stdout, ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

async fn call(program: &Program, tool: &str, arguments: Value) {
    let request = Request::modern(program.url(), json!(1), "tools/call", json!({"name": tool, "arguments": arguments}));
    assert_eq!(request.exchange(program.url()).await.status, 200);
}

/// The last line of `db verify --json`, which must end with this exit code.
async fn verified(setup: &Setup, store: &Path, exit: i32) -> Value {
    let ran = setup.cli(&["db", "verify", "--json", "--store", &url(store)]).await;
    assert_exit(&ran, exit);
    serde_json::from_str(ran.stdout.lines().last().expect("a line for the store")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_during_load_restores_to_a_store_that_verify_accepts() {
    let program = Arc::new(Setup::new("").flag("--demo").serve().await);
    let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    // Two that run on and on, so that each backup holds executions in flight.
    for seconds in [600, 601] {
        let request = ["call", "demo_sleep", "--wait", "0", "--url", program.url(), "--args"];
        let arguments = json!({ "seconds": seconds }).to_string();
        assert_exit(&program.setup.cli(&[request.as_slice(), &[&arguments]].concat()).await, 0);
    }
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let (program, stop, calls) = (program.clone(), stop.clone(), calls.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let n = calls.fetch_add(1, Ordering::SeqCst);
                    let message = format!("{client} {n} {}", "x".repeat(n % 4_000));
                    call(&program, "demo_echo", json!({ "message": message })).await;
                }
            })
        })
        .collect();
    let folder = program.setup.folder().to_owned();
    let mut backups: Vec<PathBuf> = Vec::new();
    for round in 0..4 {
        let wanted = calls.load(Ordering::SeqCst) + 40;
        eventually("calls go on", DEADLINE, || calls.load(Ordering::SeqCst) >= wanted).await;
        let file = folder.join(format!("backup-{round}.db"));
        assert_exit(&program.setup.cli(&["db", "backup", file.to_str().unwrap()]).await, 0);
        let status = program.setup.cli(&["db", "status", "--json"]).await;
        assert_exit(&status, 0);
        let status: Value = serde_json::from_str(&status.stdout).unwrap();
        assert_eq!(status["processes_alive"], 1, "{status}");
        backups.push(file);
    }
    assert_exit(&program.setup.cli(&["db", "verify"]).await, 0);
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }

    let mut before = 0;
    for (round, backup) in backups.iter().enumerate() {
        let store = folder.join("restored").join(format!("{round}.db"));
        let ran = program.setup.cli(&["db", "restore", backup.to_str().unwrap(), "--into", &url(&store)]).await;
        assert_exit(&ran, 0);
        assert!(ran.stderr.contains("as those of a dead process"), "{}", ran.stderr);
        let seen = verified(&program.setup, &store, 0).await;
        let executions = seen["executions"].as_u64().unwrap();
        assert!(executions >= before + 40, "{executions} after {before}");
        before = executions;
    }

    // A store restored from a backup starts, and what was in flight then is settled as of a dead process.
    let store = folder.join("restored").join("3.db");
    let setup = Setup::new(&format!("[store]\nurl = {:?}\n", url(&store))).flag("--demo");
    let list = ["executions", "list", "--json", "--store", &url(&store)];
    let leased = setup.cli(&[list.as_slice(), &["--state", "leased"]].concat()).await;
    assert!(leased.stdout.lines().count() >= 2, "{}", leased.stdout);
    let restored = setup.serve().await;
    let tool = [list.as_slice(), &["--tool", "demo_sleep"]].concat();
    let sleeping = setup.cli(&tool).await;
    for row in sleeping.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let settled = row["state"] == "unknown" || row["attempt"].as_u64() > Some(1) || row["state"] == "scheduled";
        assert!(settled && row["error"]["code"] == "process_died", "{row}");
    }
    call(&restored, "demo_echo", json!({"message": "after"})).await;
    drop(restored);
    verified(&setup, &store, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_made_beside_a_running_server_becomes_a_store_that_goes_on() {
    let program = Setup::new("").flag("--demo").serve().await;
    for n in 0..20 {
        call(&program, "demo_echo", json!({"message": format!("é {n}")})).await;
    }
    let folder = program.setup.folder().to_owned();
    let (archive, store) = (folder.join("store.archive"), folder.join("made").join("store.db"));
    let made = program.setup.cli(&["db", "backup", archive.to_str().unwrap(), "--archive"]).await;
    assert_exit(&made, 0);
    assert!(made.stderr.contains("all hold together"), "{}", made.stderr);
    let into = ["db", "restore", archive.to_str().unwrap(), "--into", &url(&store)];
    assert_exit(&program.setup.cli(&into).await, 0);
    assert_eq!(verified(&program.setup, &store, 0).await["executions"], 20);

    // Of one byte less nothing becomes a store, and the one that is there stays.
    let bytes = std::fs::read(&archive).unwrap();
    std::fs::write(&archive, &bytes[..bytes.len() - 1]).unwrap();
    let cut = program.setup.cli(&[into.as_slice(), &["--force"]].concat()).await;
    assert_exit(&cut, 1);
    assert!(cut.stderr.contains("left as it is"), "{}", cut.stderr);
    assert_eq!(verified(&program.setup, &store, 0).await["executions"], 20);

    let setup = Setup::new(&format!("[store]\nurl = {:?}\n", url(&store))).flag("--demo");
    let restored = setup.serve().await;
    call(&restored, "demo_echo", json!({"message": "after"})).await;
    drop(restored);
    assert_eq!(verified(&setup, &store, 0).await["executions"], 21);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_use_is_not_restored_and_a_full_one_is_put_aside() {
    let mut program = Setup::new("").flag("--demo").serve().await;
    call(&program, "demo_echo", json!({"message": "one"})).await;
    let setup = program.setup.clone();
    let backup = setup.folder().join("copy.db");
    let backup = backup.to_str().unwrap();
    assert_exit(&setup.cli(&["db", "backup", backup]).await, 0);
    let again = setup.cli(&["db", "backup", backup]).await;
    assert_exit(&again, 6);
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
    assert_exit(&setup.cli(&["db", "backup", backup, "--force"]).await, 0);
    call(&program, "demo_echo", json!({"message": "two"})).await;

    let used = setup.cli(&["db", "restore", backup, "--force"]).await;
    assert_exit(&used, 6);
    assert!(used.stderr.contains("in use"), "{}", used.stderr);
    assert!(program.sigterm().await.success());
    let full = setup.cli(&["db", "restore", backup]).await;
    assert_exit(&full, 6);
    assert!(full.stderr.contains("holds executions") && full.stderr.contains("--force"), "{}", full.stderr);
    assert_eq!(setup.executions().await.len(), 2);

    std::fs::write(setup.folder().join("torn.db"), &std::fs::read(backup).unwrap()[..20_000]).unwrap();
    let torn = setup.cli(&["db", "restore", setup.folder().join("torn.db").to_str().unwrap(), "--force"]).await;
    assert_exit(&torn, 1);
    assert_eq!(setup.executions().await.len(), 2, "a backup that does not hold together changes nothing");

    let restored = setup.cli(&["db", "restore", backup, "--force"]).await;
    assert_exit(&restored, 0);
    assert_eq!(setup.executions().await.len(), 1);
    let aside = restored.stderr.lines().find_map(|line| line.strip_prefix("the store that was there is now "));
    assert_eq!(verified(&setup, Path::new(aside.expect("where the old store is")), 0).await["executions"], 2);
    assert_exit(&setup.cli(&["db", "restore", "/nowhere/copy.db"]).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_hold_is_told_line_by_line() {
    let mut program = Setup::new("").flag("--demo").serve().await;
    for n in 0..3 {
        call(&program, "demo_echo", json!({ "message": n.to_string() })).await;
    }
    program.sigterm().await;
    let setup = program.setup.clone();
    assert_exit(&setup.cli(&["db", "verify"]).await, 0);
    let store = Connection::open(setup.serve_db()).unwrap();
    store
        .execute_batch("UPDATE executions SET is_error = 1; DELETE FROM short_payloads WHERE kind = 'result'")
        .unwrap();
    drop(store);
    let ran = setup.cli(&["db", "verify"]).await;
    assert_exit(&ran, 1);
    assert_eq!(ran.stdout.lines().count(), 6, "two for each: {}", ran.stdout);
    assert!(
        ran.stdout.lines().all(|line| line.starts_with("default: fold: ") || line.starts_with("default: payload: "))
    );
    assert_eq!(verified(&setup, &setup.serve_db(), 1).await["findings"], 6);
    let refused = setup.cli(&["db", "backup", setup.folder().join("a.db").to_str().unwrap()]).await;
    assert_exit(&refused, 1);
    assert!(refused.stderr.contains("--no-check"), "{}", refused.stderr);
    assert!(!setup.folder().join("a.db").exists() && !setup.folder().join("a.db.part").exists());
    let kept = setup.cli(&["db", "backup", "--no-check", setup.folder().join("a.db").to_str().unwrap()]).await;
    assert_exit(&kept, 0);
    let refused = setup.cli(&["db", "restore", setup.folder().join("a.db").to_str().unwrap(), "--force"]).await;
    assert_exit(&refused, 1);
    assert_eq!(refused.stderr.lines().filter(|line| line.starts_with("backup: ")).count(), 6, "{}", refused.stderr);
    std::fs::write(setup.serve_db(), "no database, and long enough to be looked at").unwrap();
    for command in ["status", "verify"] {
        let ran = setup.cli(&["db", command]).await;
        assert_exit(&ran, 1);
        assert!(ran.stderr.contains("durable-mcp.db"), "{}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_by_hand_deletes_what_it_counted() {
    let program = Setup::new("").flag("--demo").serve().await;
    for n in 0..230 {
        call(&program, "demo_echo", json!({ "message": n.to_string() })).await;
    }
    let sleep = ["call", "demo_sleep", "--wait", "0", "--args", r#"{"seconds":600}"#, "--url", program.url()];
    assert_exit(&program.setup.cli(&sleep).await, 0);
    let prune = |flags: &'static [&'static str]| {
        let setup = program.setup.clone();
        async move {
            let ran = setup.cli(&[&["db", "prune", "--json"], flags].concat()).await;
            assert_exit(&ran, 0);
            let view: Value = serde_json::from_str(&ran.stdout).unwrap();
            ["executions", "payloads", "keys"].map(|member| view[member].as_u64().unwrap())
        }
    };
    assert_eq!(prune(&[]).await, [0, 0, 0], "nothing is as old as the configuration says");
    assert_eq!(prune(&["--older-than", "0s", "--payloads-only", "--dry-run"]).await, [0, 230, 0]);
    assert_eq!(prune(&["--older-than", "0s", "--payloads-only"]).await, [0, 230, 0], "beside a running server");
    assert_eq!(program.executions().await.len(), 231);
    assert_eq!(prune(&["--older-than", "0s", "--dry-run"]).await, [230, 0, 0]);
    assert_eq!(program.executions().await.len(), 231, "a dry run deletes nothing");
    assert_eq!(prune(&["--older-than", "0s"]).await, [230, 0, 0]);
    assert_eq!(program.executions().await.len(), 1, "what runs stays");
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_configuration_every_store_is_looked_at_and_one_is_named_for_the_rest() {
    let folder = crate::support::scratch();
    let run = |arguments: Vec<String>| {
        let mut command = Command::new(program_binary());
        command.args(arguments).env_clear().env("HOME", folder.path());
        command.env("DURABLE_MCP_DATA_DIR", folder.path().join("data")).current_dir(folder.path());
        async move {
            let output = command.output().await.unwrap();
            let text = |bytes| String::from_utf8(bytes).unwrap();
            Ran { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
        }
    };
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    for command in ["db status", "db verify"] {
        let none = run(words(command)).await;
        assert_exit(&none, 0);
        assert!(none.stdout.is_empty() && none.stderr.contains("no store yet"), "{}", none.stderr);
    }
    assert_exit(&run(words("db backup a.db")).await, 3);
    assert_exit(&run(words("db status --store sqlite:nowhere.db")).await, 3);
    let away = run(words("db status --store postgres://u:secret@127.0.0.1:1/d")).await;
    assert_exit(&away, 1);
    assert!(away.stderr.contains("127.0.0.1:1") && !away.stderr.contains("secret"), "{}", away.stderr);
    // `wrap` makes its store at its start, and ends with its stdin.
    for name in ["files", "mail"] {
        let started = run(words(&format!("wrap --name {name} -- true"))).await;
        assert!(folder.path().join(format!("data/wrap/{name}.db")).exists(), "{}", started.stderr);
    }
    let several = run(words("db backup a.db")).await;
    assert_exit(&several, 2);
    assert!(several.stderr.contains("default, files, mail") && several.stderr.contains("--name"), "{}", several.stderr);
    let status = run(words("db status --json")).await;
    assert_exit(&status, 0);
    let names: Vec<Value> =
        status.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["store"].clone()).collect();
    assert_eq!(names, ["files", "mail"]);
    let verify = run(words("db verify")).await;
    assert_exit(&verify, 0);
    assert_eq!(verify.stderr.lines().count(), 2, "{}", verify.stderr);
    assert_exit(&run(words("db backup --name mail a.db")).await, 0);
    assert_exit(&run(words("db prune --name mail")).await, 0);
    assert_exit(&run(words("db prune --name nobody")).await, 3);
    assert_exit(&run(words("db restore --name new a.db")).await, 3);
    assert_exit(&run(words("db restore --name files a.db")).await, 0);
    assert_exit(&run(words("db restore a.db --into elsewhere.db")).await, 0);
    assert!(folder.path().join("elsewhere.db").exists());
}

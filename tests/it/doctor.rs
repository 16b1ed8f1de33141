//! `doctor`: silent and 0 for a healthy set-up, and each planted fault is found, with its next step. It leaves no process
//! behind and no store changed.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::client::Target;
use crate::support::cluster::free_port;
use crate::support::ledger::Ledger;
use crate::support::program::{Ran, Setup, server_table};
use crate::support::servers::{Nobody, kit_http, kit_stdio};
use crate::support::{kit_binary, program_binary};

/// A set-up of its own, with a home without clients.
fn setup(config: &str) -> Setup {
    setup_on(0, config)
}

fn setup_on(port: u16, config: &str) -> Setup {
    let setup = Setup::new(&format!("[server]\nlisten = \"127.0.0.1:{port}\"\n{config}"));
    let home = setup.folder().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::create_dir(setup.data_dir()).unwrap();
    let home = home.to_str().unwrap().to_owned();
    setup.env("HOME", &home).env("XDG_CONFIG_HOME", "").env("CLAUDE_CONFIG_DIR", "")
}

/// A configured server that the shell runs.
fn shell(script: &str) -> String {
    server_table("odd", &Target::command(["sh", "-c", script]), "start_timeout = \"5s\"")
}

async fn checks(setup: &Setup, flags: &[&str]) -> (Ran, Vec<Value>) {
    let ran = setup.cli(&[&["doctor", "--json"], flags].concat()).await;
    let checks = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (ran, checks)
}

/// What is not well; each has a next step.
fn unwell(checks: &[Value]) -> Vec<&Value> {
    let unwell: Vec<&Value> = checks.iter().filter(|check| check["status"] != "ok").collect();
    assert!(unwell.iter().all(|check| check["next"].as_str().is_some_and(|next| next.len() > 5)), "{unwell:?}");
    unwell
}

/// One fault is found: this check has this status, and says so; nothing else is wrong.
#[track_caller]
fn assert_finds(what: &str, (ran, checks): &(Ran, Vec<Value>), (check, status, says): (&str, &str, &str)) {
    let found = unwell(checks);
    assert_eq!(found.len(), 1, "{what}: {found:#?}");
    assert_eq!(
        (found[0]["check"].as_str(), found[0]["status"].as_str()),
        (Some(check), Some(status)),
        "{what}: {found:?}"
    );
    assert!(found[0]["message"].as_str().unwrap().contains(says), "{what}: {}", found[0]);
    assert_eq!(ran.status.code(), Some(i32::from(status == "fail")), "{what}");
    assert_eq!(ran.stderr, "", "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_set_up_is_silent_and_left_as_it_was() {
    let folder = crate::support::scratch();
    let ledger = Ledger::in_folder(folder.path());
    let marked = kit_stdio(&["--era", "both", "--ledger", ledger.path()]);
    let http = kit_http(&["--era", "both"]).await;
    let more = "[tools.thumbnail]\ncommand = [\"sh\", \"-c\", \"true\"]\n";
    let config = format!("{}\n{}\n{more}", server_table("one", &marked, ""), server_table("two", &http.target, ""));
    let port = free_port();
    let setup = setup_on(port, &config).flag("--demo");
    // Before there is a store, with one, and beside a running server that has the port and the store.
    let silent = async |when: &str| {
        let ran = setup.cli(&["doctor"]).await;
        assert_eq!((ran.status.code(), ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""), "{when}");
    };
    silent("before the first start").await;
    assert!(!setup.serve_db().exists(), "it makes no store");
    let mut program = setup.serve_on(port).await;
    program.ready().await;
    silent("beside a running server").await;
    let (_, seen) = checks(&setup, &[]).await;
    let message = |check: &str, subject: &str| {
        let one = seen.iter().find(|seen| seen["check"] == check && (subject.is_empty() || seen["subject"] == subject));
        one.unwrap_or_else(|| panic!("{check} {subject}: {seen:#?}"))["message"].as_str().unwrap().to_owned()
    };
    assert!(message("port", "").contains("a durable-mcp serves there"));
    assert!(message("handshake", "one").contains("over stdio"));
    assert!(message("server", "two").contains("2026-07-28 over HTTP"));
    assert!(message("store", "default").contains("schema"));
    assert!(message("stdout", "one").contains("nothing but"));
    let checked: std::collections::BTreeSet<&str> = seen.iter().map(|seen| seen["check"].as_str().unwrap()).collect();
    let expected =
        ["clock", "command", "configuration", "disk", "files", "handshake", "port", "server", "stdout", "store"];
    assert_eq!(checked.into_iter().collect::<Vec<_>>(), expected);
    program.sigterm().await;

    let before = std::fs::read(setup.serve_db()).unwrap();
    silent("with a store").await;
    assert!(std::fs::read(setup.serve_db()).unwrap() == before, "the store is as it was");
    let verbose = setup.cli(&["doctor", "--verbose"]).await;
    assert!(verbose.stdout.lines().count() >= 10 && verbose.stdout.lines().all(|line| line.starts_with("ok ")));
    assert!(!runs_with(ledger.path()), "a server that it started has outlived it");
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_is_that_of_the_running_server_and_nothing_else_is_looked_at() {
    let port = free_port();
    let setup = setup_on(port, "").flag("--demo");
    let ready = ["--ready"];
    assert_finds("nobody serves", &checks(&setup, &ready).await, ("ready", "fail", "nobody answers"));
    let mut program = setup.serve_on(port).await;
    program.ready().await;
    let (ran, seen) = checks(&setup, &ready).await;
    assert_eq!((ran.status.code(), seen.len()), (Some(0), 1), "{seen:?}");
    let silent = setup.cli(&["doctor", "--ready"]).await;
    assert_eq!((silent.status.code(), silent.stdout.as_str(), silent.stderr.as_str()), (Some(0), "", ""));
    program.sigterm().await;
    assert_finds("it has ended", &checks(&setup, &ready).await, ("ready", "fail", "nobody answers"));
    // What listens there is another program.
    let other = kit_http(&["--era", "both"]).await;
    let crate::support::client::Place::Url(url) = &other.target.place else { panic!("a URL") };
    let port: u16 = url.split(':').nth(2).unwrap().split('/').next().unwrap().parse().unwrap();
    assert_finds("another", &checks(&setup_on(port, ""), &ready).await, ("ready", "fail", "another program"));
}

/// Whether a process has this among its arguments, as far as the system shows them.
fn runs_with(argument: &str) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    entries.flatten().any(|entry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(argument))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_a_server_is_found() {
    let kit = kit_binary();
    let kit = kit.display();
    let nobody = Nobody::new();
    let odd = |command: &str| server_table("odd", &Target::command([command]), "start_timeout = \"5s\"");
    for (what, config, finds) in [
        ("no such program", odd("no-such-program-here"), ("command", "fail", "PATH")),
        ("no such file", odd("./no-such-file"), ("command", "fail", "no file")),
        ("a folder", odd("./home"), ("command", "fail", "is a folder")),
        ("not executable", odd("./plain.sh"), ("command", "fail", "may not be executed")),
        ("no interpreter", odd("./lost.sh"), ("command", "fail", "/nowhere/node")),
        ("a script saved on Windows", odd("./dos.sh"), ("command", "fail", "whose first line names /bin/sh\\r")),
        (
            "no such folder",
            server_table("odd", &Target::command(["sh"]), "cwd = \"./nowhere\""),
            ("command", "fail", "nowhere"),
        ),
        (
            "a command tool without its program",
            "[tools.thumbnail]\ncommand = [\"./thumbnail.sh\"]\n".to_owned(),
            ("command", "fail", "thumbnail.sh"),
        ),
        ("a server that dies", shell("echo licence expired >&2; exit 3"), ("handshake", "fail", "licence expired")),
        (
            "a server that never answers",
            server_table("odd", &Target::command(["sleep", "60"]), "start_timeout = \"300ms\""),
            ("handshake", "fail", ""),
        ),
        (
            "a banner on stdout",
            shell(&format!("echo 'Welcome to odd 1.0'; exec {kit} stdio --era both")),
            ("stdout", "warn", "Welcome to odd 1.0"),
        ),
        (
            "npm on stdout",
            shell(&format!("echo 'npm notice new version'; exec {kit} stdio --era both")),
            ("stdout", "warn", "comes from npm"),
        ),
        (
            "nobody at the address",
            server_table("odd", &Target::url(format!("{}/mcp", nobody.url())), "start_timeout = \"2s\""),
            ("server", "fail", ""),
        ),
    ] {
        let setup = setup(&config);
        for (name, text, mode) in [
            ("plain.sh", "#!/bin/sh\n", 0o644),
            ("lost.sh", "#!/nowhere/node\n", 0o755),
            ("dos.sh", "#!/bin/sh\r\n", 0o755),
        ] {
            std::fs::write(setup.folder().join(name), text).unwrap();
            std::fs::set_permissions(setup.folder().join(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        let found = checks(&setup, &[]).await;
        assert_finds(what, &found, finds);
        let plain = setup.cli(&["doctor"]).await;
        assert_eq!(plain.stdout.lines().count(), 1, "{what}: one line for one fault: {}", plain.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_around_the_servers_is_found() {
    let wrong = Setup::new("[worker]\nslotz = 7\n");
    assert_finds("the configuration", &checks(&wrong, &[]).await, ("configuration", "fail", "slots"));
    let odd = setup("").env("DURABLE_MCP_WORKER_SLOTZ", "7");
    let found = odd.cli(&["doctor"]).await;
    assert!(found.stdout.starts_with("warn  configuration: "), "{}", found.stdout);

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!("[server]\nlisten = \"{}\"\n", taken.local_addr().unwrap());
    let other = Setup::new(&config).env("HOME", "/nowhere");
    std::fs::create_dir(other.data_dir()).unwrap();
    assert_finds("the port", &checks(&other, &[]).await, ("port", "fail", "another program"));

    let plant = async |what: &str, plant: &dyn Fn(&Setup), finds: (&str, &str, &str)| {
        let setup = setup("");
        std::fs::set_permissions(setup.data_dir(), PermissionsExt::from_mode(0o700)).unwrap();
        // The token list makes the store.
        assert!(setup.cli(&["token", "list"]).await.status.success());
        assert_eq!(unwell(&checks(&setup, &[]).await.1), Vec::<&Value>::new(), "{what}: before");
        plant(&setup);
        assert_finds(what, &checks(&setup, &[]).await, finds);
    };
    let sql = |setup: &Setup, sql: &str| Connection::open(setup.serve_db()).unwrap().execute_batch(sql).unwrap();
    plant(
        "no database",
        &|setup| std::fs::write(setup.serve_db(), "this is no database, and is longer than a header").unwrap(),
        ("store", "fail", "not a database"),
    )
    .await;
    plant(
        "damaged pages",
        &|setup| {
            let mut bytes = std::fs::read(setup.serve_db()).unwrap();
            for page in bytes.chunks_mut(4_096).skip(1) {
                page[..60].fill(0xA5);
            }
            std::fs::write(setup.serve_db(), bytes).unwrap();
        },
        ("store", "fail", ""),
    )
    .await;
    plant(
        "a newer schema",
        &|setup| sql(setup, "UPDATE refinery_schema_history SET version = 900 WHERE version = 1"),
        ("store", "fail", "900"),
    )
    .await;
    plant(
        "another program's database",
        &|setup| {
            std::fs::remove_file(setup.serve_db()).unwrap();
            sql(setup, "CREATE TABLE notes (id INTEGER)");
            std::fs::set_permissions(setup.serve_db(), PermissionsExt::from_mode(0o600)).unwrap();
        },
        ("store", "fail", "not a store"),
    )
    .await;
    plant(
        "a file that others read",
        &|setup| std::fs::set_permissions(setup.serve_db(), PermissionsExt::from_mode(0o644)).unwrap(),
        ("files", "warn", "durable-mcp.db"),
    )
    .await;
    plant(
        "a folder that others write to",
        &|setup| std::fs::set_permissions(setup.data_dir(), PermissionsExt::from_mode(0o777)).unwrap(),
        ("files", "warn", "the folder"),
    )
    .await;

    let blocked = setup("");
    std::fs::write(blocked.folder().join("file"), "").unwrap();
    let store = format!("sqlite:{}", blocked.folder().join("file/a.db").display());
    assert_finds("a file in the way", &checks(&blocked, &["--store", &store]).await, ("store", "fail", "in the way"));

    // An event of tomorrow.
    let mut program = setup("").flag("--demo").serve().await;
    let echo = ["call", "demo_echo", "--args", r#"{"message":"x"}"#, "--url", program.url()];
    assert!(program.setup.cli(&echo).await.status.success());
    program.sigterm().await;
    sql(&program.setup, "UPDATE executions SET updated_at_ms = updated_at_ms + 86400000");
    assert_finds("the clock", &checks(&program.setup, &[]).await, ("clock", "warn", "was set back"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_drift_of_a_client_is_found() {
    let program = program_binary();
    let own = program.to_str().unwrap();
    let wrapped =
        |program: &str, command: &str| json!({"command": program, "args": ["wrap", "--name", "a", "--", command]});
    for (what, entry, flags, finds) in [
        ("all is well", wrapped(own, "/bin/sh"), [].as_slice(), None),
        (
            "a program that is gone",
            wrapped("/nowhere/durable-mcp", "/bin/sh"),
            &[],
            Some(("client", "fail", "/nowhere")),
        ),
        ("another version", wrapped("OLD/durable-mcp", "/bin/sh"), &[], Some(("client", "warn", "version 0.0.1"))),
        ("what it wraps is gone", wrapped(own, "/nowhere/server"), &[], Some(("client", "fail", "/nowhere/server"))),
        ("it needs the shell's PATH", wrapped(own, "only-here"), &[], Some(("client", "fail", "only-here"))),
        (
            "its own PATH has it",
            json!({"command": own, "args": ["wrap", "--", "only-here"], "env": {"PATH": "BIN"}}),
            &[],
            None,
        ),
        ("another server", json!({"command": "/bin/sh"}), &[], None),
        (
            "another server of the client that was asked for",
            json!({"command": "/bin/sh"}),
            &["--client", "claude-desktop"],
            Some(("client", "warn", "not behind durable-mcp")),
        ),
        (
            "a client that is not there",
            json!({"command": "/bin/sh"}),
            &["--client", "cursor"],
            Some(("client", "fail", "no configuration of Cursor")),
        ),
    ] {
        let setup = setup("");
        let bin = setup.folder().join("bin");
        std::fs::create_dir(&bin).unwrap();
        script(&bin.join("durable-mcp"), "echo durable-mcp 0.0.1");
        script(&bin.join("only-here"), "exit 0");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let folder = bin.to_str().unwrap();
        let text = json!({"mcpServers": {"files": entry}}).to_string().replace("OLD", folder).replace("BIN", folder);
        client(&setup, &text);
        let found = checks(&setup.clone().env("PATH", &path), flags).await;
        match finds {
            Some(finds) => assert_finds(what, &found, finds),
            None => assert_eq!(unwell(&found.1), Vec::<&Value>::new(), "{what}"),
        }
    }
    let broken = setup("");
    client(&broken, "{\"mcpServers\": ");
    assert_finds("a broken file", &checks(&broken, &[]).await, ("client", "fail", "claude_desktop_config.json"));

    // Put behind `wrap` by `install`, and taken out again by somebody else.
    let undone = setup("");
    let text = json!({"mcpServers": {"files": {"command": "/bin/sh", "args": ["-c", "true"]}}}).to_string();
    client(&undone, &text);
    let installed = undone.cli(&["install", "claude-desktop", "--all"]).await;
    assert!(installed.status.success(), "{}", installed.stderr);
    assert_eq!(unwell(&checks(&undone, &[]).await.1), Vec::<&Value>::new());
    client(&undone, &text);
    assert_finds("undone", &checks(&undone, &[]).await, ("client", "warn", "not any more"));
}

/// The configuration of Claude Desktop in the set-up's home.
fn client(setup: &Setup, text: &str) {
    let home = setup.folder().join("home");
    for folder in [".config/Claude", "Library/Application Support/Claude"] {
        std::fs::create_dir_all(home.join(folder)).unwrap();
    }
    let folder = if cfg!(target_os = "macos") { "Library/Application Support/Claude" } else { ".config/Claude" };
    std::fs::write(home.join(folder).join("claude_desktop_config.json"), text).unwrap();
}

fn script(path: &Path, line: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{line}\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

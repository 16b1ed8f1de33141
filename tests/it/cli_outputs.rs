//! What scripts rely on: every `--json` output against its committed schema, a table of exit codes, help whose examples run,
//! completions and manual pages for every command. A command that is added without its line here fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Output;

use clap::CommandFactory;
use durable_mcp::cli::args::Cli;
use durable_mcp::cli::schemas::{ALIKE, OUTPUTS, file_of};
use jsonschema::Validator;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::ledger::Ledger;
use crate::support::program::{Program, Ran, Setup, server_table};
use crate::support::program_binary;
use crate::support::raw_http::open_session;
use crate::support::raw_worker::RawWorker;
use crate::support::servers::{Nobody, kit_stdio};

/// A server with the demo tools, the fixture's tools, and what the examples of help texts name.
async fn program() -> Program {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--era", "both", "--ledger", ledger.path()]);
    let config = format!("{}\n[tools.github__create_issue]\ncommand = [\"true\"]\n", server_table("kit", &kit, ""));
    let home = setup.folder().join("home");
    std::fs::create_dir_all(home.join(".cursor")).unwrap();
    let client = json!({"mcpServers": {"files": {"command": "/bin/sh", "args": ["-c", "true"]}}});
    std::fs::write(home.join(".cursor/mcp.json"), client.to_string()).unwrap();
    std::fs::write(setup.folder().join("issue.json"), r#"{"title":"x"}"#).unwrap();
    setup.config(&config).flag("--demo").env("HOME", home.to_str().unwrap()).serve().await
}

/// Ids of one execution for each way to end.
struct Scene {
    program: Program,
    ids: BTreeMap<&'static str, String>,
    token: String,
    session: String,
    worker: RawWorker,
    nobody: Nobody,
}

impl Scene {
    async fn new() -> Scene {
        let program = program().await;
        let mut ids = BTreeMap::new();
        for (name, arguments) in [
            ("completed", ["demo_echo", "--args", r#"{"message":"x"}"#].as_slice()),
            ("tool_error", &["demo_echo"]),
            ("failed", &["rpc_error", "--args", r#"{"code":-32000,"message":"no"}"#]),
            ("unknown", &["crash_after_write", "--args", r#"{"text":"gone"}"#]),
            ("lost", &["crash_after_write", "--args", r#"{"text":"gone too"}"#]),
            ("doomed", &["demo_sleep", "--args", r#"{"seconds":601}"#, "--wait", "0"]),
            ("running", &["demo_sleep", "--args", r#"{"seconds":600}"#, "--wait", "0"]),
        ] {
            let call = [["call", "--url", program.url()].as_slice(), arguments].concat();
            program.setup.cli(&call).await;
            let newest = program.executions().await[0]["id"].as_str().unwrap().to_owned();
            ids.insert(name, newest);
        }
        let token = program.setup.cli(&["token", "create", "--principal", "first"]).await.stdout;
        let token = token.split('_').nth(1).unwrap().to_owned();
        let worker = RawWorker::registered(&program, &["by_hand"]).await;
        open_session(program.url(), "2025-11-25").await;
        let session = program.setup.cli(&["sessions", "list", "--json"]).await.stdout;
        let session: Value = serde_json::from_str(session.lines().next().unwrap()).unwrap();
        let session = session["id"].as_str().unwrap()[..24].to_owned();
        Scene { program, ids, token, session, worker, nobody: Nobody::new() }
    }

    /// A command line with what stands for this scene's own things filled in.
    fn line(&self, line: &str) -> String {
        let mut line = line.replace("NOBODY", &self.nobody.url()).replace("URL", self.program.url());
        line = line.replace("TOKEN", &self.token).replace("WORKER", &self.worker.id).replace("SESSION", &self.session);
        for (name, id) in &self.ids {
            line = line.replace(&format!("ID:{name}"), id);
        }
        line
    }

    async fn run(&self, line: &str) -> Ran {
        let output = self.shell(&format!("durable-mcp {}", self.line(line))).await;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// A line of shell in the set-up's folder, with the program in `PATH` and nothing of this process's own settings.
    async fn shell(&self, line: &str) -> Output {
        let setup = &self.program.setup;
        let binary = program_binary();
        let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("DURABLE_MCP_")) {
                command.env_remove(name);
            }
        }
        command
            .args(["-c", line])
            .current_dir(setup.folder())
            .env("PATH", path)
            .env("HOME", setup.folder().join("home"))
            .env_remove("XDG_CONFIG_HOME")
            .env("DURABLE_MCP_CONFIG", setup.folder().join("durable-mcp.toml"))
            .env("DURABLE_MCP_DATA_DIR", setup.data_dir())
            .stdin(std::process::Stdio::null());
        command.output().await.unwrap()
    }
}

/// What each command with `--json` is asked in the scene, in this order; from a server and from its store where it can look
/// at both. Commands that play or measure something are asked by their own tests too, at length.
const ASKED: &[(&str, &str)] = &[
    ("bench", "bench --duration 300ms --warmup 0s --concurrency 2 --json"),
    ("call", r#"call demo_echo --args '{"message":"x"}' --json --url URL"#),
    ("call", "call demo_echo --json --url URL"),
    ("call", r#"call demo_sleep --args '{"seconds":600}' --wait 10ms --json --url URL"#),
    ("config show", "config show --json"),
    ("config show", "config show --json --store sqlite:a.db"),
    ("db prune", "db prune --json --dry-run"),
    ("db prune", "db prune --json --older-than 90d"),
    ("db status", "db status --json"),
    ("db verify", "db verify --json"),
    ("demo crash", "demo crash --json"),
    ("demo duplicate", "demo duplicate --json"),
    ("demo fencing", "demo fencing --json"),
    ("demo retry", "demo retry --json"),
    ("demo stack", "demo stack --duration 1s --json"),
    ("doctor", "doctor --json"),
    ("executions events", "executions events ID:completed --json --url URL"),
    ("executions events", "executions events ID:unknown --json"),
    ("executions events", "executions events ID:failed --json"),
    ("executions export", "executions export --json --url URL"),
    ("executions export", "executions export"),
    ("executions list", "executions list --json --url URL"),
    ("executions list", "executions list --json"),
    ("executions result", "executions result ID:completed --json --url URL"),
    ("executions result", "executions result ID:failed --json"),
    ("executions result", "executions result ID:unknown --json"),
    ("executions result", "executions result ID:running --json"),
    ("executions show", "executions show ID:running --json --url URL"),
    ("executions show", "executions show ID:unknown --json"),
    ("executions tail", "executions tail --json --url URL"),
    ("executions tail", "executions tail --from 1h --json"),
    ("executions wait", "executions wait ID:completed --json --url URL"),
    ("executions wait", "executions wait ID:running --timeout 10ms --json"),
    ("executions why", "executions why ID:unknown --json --url URL"),
    ("executions why", "executions why ID:completed --json"),
    ("executions cancel", "executions cancel ID:doomed --yes --reason enough --json --url URL"),
    ("executions resolve", "executions resolve ID:lost --completed --reason seen --yes --json --url URL"),
    ("executions retry", "executions retry ID:failed --reason again --yes --json --url URL"),
    ("install", "install cursor --all --dry-run --json"),
    ("sessions list", "sessions list --json --url URL"),
    ("sessions list", "sessions list --json"),
    ("sessions close", "sessions close SESSION --json --url URL"),
    ("token create", "token create --principal a --expires-in 1d --json"),
    ("token list", "token list --json"),
    ("token revoke", "token revoke TOKEN --json"),
    ("tools list", "tools list --json --url URL"),
    ("tools list", "tools list --json"),
    ("tools show", "tools show demo_echo --json --url URL"),
    ("uninstall", "install cursor --all --json"),
    ("uninstall", "uninstall cursor --json"),
    ("workers list", "workers list --json --url URL"),
    ("workers list", "workers list --json"),
    ("workers drain", "workers drain WORKER --json --url URL"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_json_output_is_as_its_committed_schema_says() {
    let asked: BTreeSet<&str> = ASKED.iter().map(|(command, _)| *command).collect();
    let described: BTreeSet<&str> =
        OUTPUTS.iter().map(|output| output.command).chain(ALIKE.iter().map(|(alike, _)| *alike)).collect();
    // Its own test asks it, beside a database.
    let described = described.into_iter().filter(|command| *command != "db conformance").collect();
    assert_eq!(asked, described, "ASKED has a line for each command with --json");
    let scene = Scene::new().await;
    for (command, line) in ASKED {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas").join(file_of(command));
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let ran = scene.run(line).await;
        assert!(!ran.stderr.contains("panicked"), "{line}: {}", ran.stderr);
        assert!(!ran.stdout.is_empty(), "{line}: {}", ran.stderr);
        ran.stdout.lines().for_each(|json| validate(&validator, line, json));
        assert!(!validator.is_valid(&json!("text")) && !validator.is_valid(&json!({})), "{command} has a real schema");
    }
}

#[track_caller]
fn validate(validator: &Validator, line: &str, json: &str) {
    let value: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{line}: {error}: {json}"));
    let wrong: Vec<String> =
        validator.iter_errors(&value).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{line}: {wrong:#?}\n{json}");
}

/// Commands, situations and how they end.
const EXITS: &[(&str, i32)] = &[
    ("call demo_echo --args '{\"message\":\"x\"}' --url URL", 0),
    ("call demo_sleep --args '{\"seconds\":600}' --wait 0 --url URL", 0),
    ("call demo_echo --args '{' --url URL", 2),
    ("call no_such_tool --url URL", 3),
    ("call demo_echo --url URL", 5),
    ("call rpc_error --args '{\"code\":-32000,\"message\":\"no\"}' --url URL", 5),
    ("call demo_echo --key k --args '{\"message\":\"one\"}' --url URL", 0),
    ("call demo_echo --key k --args '{\"message\":\"two\"}' --url URL", 6),
    ("call demo_echo --url NOBODY", 7),
    ("call demo_sleep --args '{\"seconds\":600}' --wait 10ms --url URL", 8),
    ("call crash_after_write --args '{\"text\":\"gone\"}' --url URL", 9),
    ("executions list", 0),
    ("executions list --url URL", 0),
    ("executions list --url NOBODY", 7),
    ("executions list --state sleeping", 2),
    ("executions show ID:completed", 0),
    ("executions show ffffffff", 3),
    ("executions show not-an-id", 2),
    ("executions events ffffffff", 3),
    ("executions result ID:completed", 0),
    ("executions result ID:tool_error", 5),
    ("executions result ID:failed", 5),
    ("executions result ID:running", 8),
    ("executions result ID:unknown", 9),
    ("executions result ffffffff", 3),
    ("executions why ID:unknown", 0),
    ("executions why ffffffff", 3),
    ("executions tail --url URL", 0),
    ("executions tail --from yesterday", 2),
    ("executions tail --url NOBODY", 7),
    ("executions wait ID:completed", 0),
    ("executions wait ID:tool_error", 5),
    ("executions wait ID:failed --url URL", 5),
    ("executions wait ID:running --timeout 10ms", 8),
    ("executions wait ID:unknown", 9),
    ("executions wait ffffffff", 3),
    ("executions cancel ID:doomed --yes --url URL", 0),
    ("executions wait ID:doomed", 1),
    ("executions cancel ffffffff --yes", 3),
    ("executions cancel", 2),
    ("executions retry ID:completed --reason again --yes --url URL", 6),
    ("executions retry ID:unknown --yes", 2),
    ("executions resolve ID:lost --failed --reason 'it did not' --yes --url URL", 0),
    ("executions resolve ID:lost --reason nothing", 2),
    ("executions export", 0),
    ("executions export --url NOBODY", 7),
    ("tools list", 0),
    ("tools show demo_echo --url URL", 0),
    ("tools show no_such_tool --url URL", 3),
    ("workers list", 0),
    ("workers drain WORKER", 0),
    ("workers drain ffffffff", 3),
    ("sessions list", 0),
    ("sessions list --closed --url URL", 0),
    ("sessions close SESSION", 0),
    ("sessions close SESSION --url URL", 0),
    ("sessions close ffffffffffff", 3),
    ("sessions close ffffffffffff --url URL", 3),
    ("sessions close not-hex", 2),
    ("sessions list --url NOBODY", 7),
    ("init --from cursor --out made.toml", 0),
    ("init --from cursor --out made.toml", 6),
    ("init --from nowhere.json --out other.toml", 3),
    ("token list", 0),
    ("token create --principal a --namespace undeclared", 2),
    ("token revoke 000000000000", 3),
    ("config check", 0),
    ("config check --config nowhere.toml", 2),
    ("config show --store ftp:x", 2),
    ("db migrate", 0),
    ("db migrate --store ftp:x", 2),
    ("db migrate --role serves", 2),
    ("db conformance --url sqlite:a.db", 2),
    ("db conformance --url postgres://u@127.0.0.1:1/d", 7),
    ("db status", 0),
    ("db status --store sqlite:nowhere.db", 3),
    ("db verify", 0),
    ("db verify --name nobody", 3),
    ("db backup copy.db", 0),
    ("db backup copy.db", 6),
    ("db backup copy.db --force", 0),
    ("db backup", 2),
    ("db backup copy.archive --archive", 0),
    ("db backup copy.archive --archive", 6),
    ("db restore copy.db", 6),
    ("db restore nowhere.db", 3),
    ("db restore copy.db --into sqlite:other.db", 0),
    ("db restore copy.archive", 6),
    ("db restore copy.archive --into sqlite:third.db", 0),
    ("db restore copy.db --into sqlite:other.db", 6),
    ("db restore copy.db --into ftp:x", 2),
    ("db restore copy.db --into postgres://u@127.0.0.1:1/d", 1),
    ("db prune --dry-run", 0),
    ("db prune --older-than soon", 2),
    ("doctor", 0),
    ("doctor --config nowhere.toml", 1),
    ("doctor --client nobody", 2),
    ("doctor --ready", 1),
    ("doctor --ready --client cursor", 2),
    ("completions bash", 0),
    ("completions csh", 2),
    ("man --out pages", 0),
    ("man --out issue.json", 1),
    ("install cursor --all --dry-run", 0),
    ("install cursor --server nobody", 3),
    ("uninstall cursor --dry-run", 0),
    ("connect --url NOBODY < /dev/null", 0),
    ("bench --url NOBODY --duration 100ms", 7),
    ("demo crush", 2),
    ("--version", 0),
    ("--help", 0),
    ("no-such-command", 2),
    ("", 2),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_command_ends_with_the_exit_code_of_its_situation() {
    let scene = Scene::new().await;
    let mut wrong = Vec::new();
    for (line, exit) in EXITS {
        let ran = scene.run(line).await;
        if ran.status.code() != Some(*exit) {
            let ended = ran.status.code();
            wrong.push(format!("{line}: {ended:?}, not {exit}\nstdout: {}\nstderr: {}", ran.stdout, ran.stderr));
        }
        assert!(!ran.stderr.contains("panicked"), "{line}: {}", ran.stderr);
        if !matches!(*exit, 0 | 5) && !line.is_empty() {
            // `doctor` tells its findings as data; all others say on stderr what is wrong.
            assert!(!ran.stderr.is_empty() || line.starts_with("doctor"), "{line}: it ends without a word");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What needs a credential, and a server that wants one.
    let closed = Setup::new("[auth]\nmode = \"token\"\n").flag("--demo").serve_on(0).await;
    for line in [["call", "demo_echo"], ["executions", "list"]] {
        let ran = closed.setup.cli(&[line.as_slice(), &["--url", closed.url()]].concat()).await;
        assert_eq!(ran.status.code(), Some(4), "{}", ran.stderr);
    }
    // The commands above, and those that are programs of their own and have tests of their own.
    let others = ["serve", "wrap"];
    let told: BTreeSet<&str> = EXITS.iter().filter_map(|(line, _)| line.split(' ').next()).chain(others).collect();
    let missing: Vec<String> = Cli::command()
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .filter(|name| !told.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "EXITS has a line for each command: {missing:?}");
}

/// Every command with its words, leaves and families, and whether it has commands of its own.
fn commands() -> Vec<(String, clap::Command)> {
    fn walk(command: &clap::Command, words: &str, found: &mut Vec<(String, clap::Command)>) {
        found.push((words.to_owned(), command.clone()));
        for inner in command.get_subcommands() {
            walk(inner, format!("{words} {}", inner.get_name()).trim(), found);
        }
    }
    let mut found = Vec::new();
    walk(&Cli::command(), "", &mut found);
    found
}

/// Examples that run for as long as they are let, or need what no test has: a registry, a client's next start, somebody's
/// database. Their own tests play them.
const NOT_PLAYED: [&str; 4] = ["wrap ", "serve ", "demo ", "db conformance "];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_has_an_example_and_every_example_runs() {
    let scene = Scene::new().await;
    let mut examples = Vec::new();
    for (words, command) in commands().iter().skip(1) {
        let help = scene.run(&format!("{words} --help")).await;
        assert_eq!(help.status.code(), Some(0), "{words}");
        assert!(help.stdout.contains(&format!("Usage: durable-mcp {words}")), "{words}: {}", help.stdout);
        assert_eq!(help.stderr, "");
        let found: Vec<&str> = help.stdout.lines().filter_map(|line| line.strip_prefix("  durable-mcp ")).collect();
        assert!(!found.is_empty(), "{words} has no example: {}", help.stdout);
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(about.len() > 10, "{words}: {about:?}");
        examples.extend(found.into_iter().map(str::to_owned));
    }
    examples.retain(|line| !NOT_PLAYED.iter().any(|start| line.starts_with(start)));
    // A restore needs a backup, and nothing may be revoked before it was shown.
    examples.sort_by_key(|line| (line.contains("restore"), line.contains("revoke"), line.clone()));
    examples.dedup();
    assert!(examples.len() >= 20, "{examples:?}");
    let mut wrong = Vec::new();
    for example in examples {
        // What stands for a user's own id, key, server and files is filled in.
        let line = example
            .replace("0198c3f2", &scene.ids["completed"])
            .replace("3f9a1c0b77de", &scene.token)
            .replace("6f1c22", &scene.worker.id)
            .replace("3f9a27", &scene.session)
            .replace("http://127.0.0.1:7400", scene.program.url());
        let line = line.split(" | jq").next().unwrap();
        let server = format!("DURABLE_MCP_URL={} durable-mcp {line}", scene.program.url());
        let ran = scene.shell(&server).await;
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        if !ran.status.success() {
            wrong.push(format!("{line}: {:?}\n{stdout}{stderr}", ran.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_and_manual_pages_know_every_command() {
    let setup = Setup::new("");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = setup.cli(&["completions", shell]).await;
        assert!(ran.status.success() && ran.stderr.is_empty(), "{shell}: {}", ran.stderr);
        for (words, _) in commands() {
            let name = words.split(' ').next_back().unwrap();
            assert!(ran.stdout.contains(name), "{shell} does not know {words}");
        }
        let file = setup.folder().join(shell);
        std::fs::write(&file, &ran.stdout).unwrap();
        // Shells that are not here are not asked.
        let check = match shell {
            "bash" | "zsh" => Command::new(shell).arg("-n").arg(&file).output().await,
            "fish" => Command::new(shell).arg("--no-execute").arg(&file).output().await,
            _ => continue,
        };
        match check {
            Ok(output) => assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr)),
            Err(_) => assert_ne!(shell, "bash", "bash is everywhere"),
        }
    }
    let folder = setup.folder().join("man1");
    let ran = setup.cli(&["man", "--out", folder.to_str().unwrap()]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    for (words, command) in commands() {
        let name = format!("durable-mcp {words}").trim().replace(' ', "-");
        let page =
            std::fs::read_to_string(folder.join(format!("{name}.1"))).unwrap_or_else(|_| panic!("no page of {name}"));
        assert!(page.contains(&format!(".TH {name} 1")) && page.contains(".SH SYNOPSIS"), "{name}: {page}");
        for inner in command.get_subcommands() {
            assert!(page.contains(&inner.get_name().replace('-', "\\-")), "{name} does not name {}", inner.get_name());
        }
    }
    let one = setup.cli(&["man"]).await;
    assert!(one.stdout.contains(".TH durable-mcp 1"), "{}", one.stdout);
}

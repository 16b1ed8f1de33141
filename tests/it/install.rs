//! `install` and `uninstall` as commands: fixture configurations of each client there and back to the byte, an installed entry
//! started as its client starts it, and what is said when something is wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::ledger::Ledger;
use crate::support::process::Process;
use crate::support::program::Ran;
use crate::support::servers::kit_http;
use crate::support::{DEADLINE, eventually, kit_binary, program_binary, scratch};

const CLIENTS: [(&str, &str); 4] = [
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("claude-code", ".claude.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
];

/// What a server gets of `PATH` when its client was started from a menu.
const LEAST_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The folder of a user, where clients keep their configurations and we keep our data.
struct Home {
    folder: tempfile::TempDir,
    /// Folders before the usual ones in the `PATH` of this user's shell.
    path: Vec<PathBuf>,
}

impl Home {
    fn new() -> Home {
        Home { folder: scratch(), path: Vec::new() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the configuration of a client.
    fn write(&self, client: &str, bytes: &[u8]) -> PathBuf {
        let (_, file) = CLIENTS.into_iter().find(|(name, _)| *name == client).unwrap();
        let file = self.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, bytes).unwrap();
        file
    }

    /// Runs the program as this user does in a shell, with nobody to ask.
    async fn run(&self, arguments: &[&str]) -> Ran {
        let folders = self.path.iter().map(|path| path.to_str().unwrap()).chain([LEAST_PATH]);
        let path = folders.collect::<Vec<_>>().join(":");
        let mut command = Command::new(program_binary());
        command.args(arguments).env_clear().env("HOME", self.path()).env("PATH", path).current_dir(self.path());
        let output = command.stdin(std::process::Stdio::null()).kill_on_drop(true).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Ran { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    async fn well(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments).await;
        assert!(ran.status.success(), "{arguments:?}: {}", ran.stderr);
        ran
    }

    async fn fails(&self, exit: i32, arguments: &[&str]) -> String {
        let ran = self.run(arguments).await;
        assert_eq!(ran.status.code(), Some(exit), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
        ran.stderr
    }

    /// Every file of the client's folder, with what is in it.
    fn files(file: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_file()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    }
}

fn fixtures(client: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/clients").join(client);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fixtures_of_each_client_are_installed_and_uninstalled_to_the_byte() {
    let mut changed = 0;
    for (client, _) in CLIENTS {
        for fixture in fixtures(client) {
            let home = Home::new();
            let before = std::fs::read(&fixture).unwrap();
            let file = home.write(client, &before);
            let rows = home.well(&["install", client, "--all", "--json"]).await.stdout;
            let wrapped = rows.lines().filter(|row| row.contains(r#""action":"wrapped""#)).count();
            let after = std::fs::read(&file).unwrap();
            assert_eq!(after == before, wrapped == 0, "{}: {rows}", fixture.display());
            changed += usize::from(wrapped > 0);
            // Again is nothing new.
            home.well(&["install", client, "--all"]).await;
            assert_eq!(std::fs::read(&file).unwrap(), after, "{}", fixture.display());
            home.well(&["uninstall", client]).await;
            let files = Home::files(&file);
            assert_eq!(files.get(&file), Some(&before), "{}", fixture.display());
            assert_eq!(files.len(), 1, "nothing is left beside {}: {:?}", fixture.display(), files.keys());
        }
    }
    assert!(changed >= 18, "only {changed} fixtures had servers to wrap");
}

/// Starts a client's entry as that client does from a menu: its own environment and the least of the user's.
async fn start(home: &Home, entry: &Value) -> Started {
    let words =
        |value: &Value| value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect();
    let args: Vec<String> = words(&entry["args"]);
    let mut command = Command::new(entry["command"].as_str().unwrap());
    command.args(&args).env_clear().env("HOME", home.path()).env("PATH", LEAST_PATH).current_dir("/");
    for (name, value) in entry["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap());
    }
    let mut process = Process::start_command(command);
    let stdin = process.take_stdin();
    Started { process, stdin }
}

struct Started {
    process: Process,
    stdin: tokio::process::ChildStdin,
}

impl Started {
    async fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        use tokio::io::AsyncWriteExt;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let mark = format!(r#""id":{id},"#);
        serde_json::from_str(&self.process.line_with(&mark).await).unwrap()
    }

    async fn hello(&mut self) {
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        let opened = self.ask(1, "initialize", hello).await;
        assert_eq!(opened["result"]["protocolVersion"], "2025-11-25", "{opened}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installed_entry_serves_a_call_in_the_least_environment_of_its_client() {
    use std::os::unix::fs::PermissionsExt;
    for (client, _) in CLIENTS {
        let mut home = Home::new();
        // A program like npx: found by the shell's PATH only, and in need of another one that is found there only.
        let bin = home.path().join("node versions/22/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(kit_binary(), bin.join("kit-node")).unwrap();
        std::fs::write(bin.join("kit-npx"), "#!/bin/sh\nexec kit-node stdio \"$@\"\n").unwrap();
        std::fs::set_permissions(bin.join("kit-npx"), std::fs::Permissions::from_mode(0o755)).unwrap();
        home.path.push(bin);
        let ledger = Ledger::in_folder(home.path());
        let key = if client == "vscode" { "servers" } else { "mcpServers" };
        let entry = json!({"command": "kit-npx", "args": ["--ledger", ledger.path()], "env": {"TOKEN": "t"}});
        let file = home.write(client, json!({key: {"kit": entry}}).to_string().as_bytes());
        home.well(&["install", client, "--server", "kit"]).await;
        let now: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let mut server = start(&home, &now[key]["kit"]).await;
        server.hello().await;
        let answer = server.ask(2, "tools/call", json!({"name": "append", "arguments": {"text": client}})).await;
        assert_eq!(answer["result"]["content"][0]["text"], format!("appended {client}"), "{answer}");
        assert_eq!(ledger.starts(client).len(), 1);
        let kept = home.well(&["executions", "list", "--json"]).await.stdout;
        let kept: Value = serde_json::from_str(kept.lines().next().unwrap()).unwrap();
        assert_eq!((&kept["upstream"], &kept["state"]), (&json!("kit"), &json!("completed")), "{kept}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installed_http_entry_sends_its_headers_and_shows_them_to_nobody() {
    let home = Home::new();
    let kit = kit_http(&["--era", "both"]).await;
    let entry = json!({"url": kit.url(), "headers": {"Authorization": "Bearer s3cret", "X-Team": "red"}});
    let file = home.write("cursor", json!({"mcpServers": {"kit": entry}}).to_string().as_bytes());
    let ran = home.well(&["install", "cursor", "--all"]).await;
    assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
    let now: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let entry = &now["mcpServers"]["kit"];
    assert!(!entry["args"].to_string().contains("s3cret"), "{entry}");
    let mut server = start(&home, entry).await;
    server.hello().await;
    let answer = server.ask(2, "tools/call", json!({"name": "received", "arguments": {}})).await;
    assert!(answer.to_string().contains("Bearer s3cret") && answer.to_string().contains("red"), "{answer}");
    // Without its variable it does not start half.
    let mut bare = entry.clone();
    bare["env"].as_object_mut().unwrap().remove("MCP_HEADER_AUTHORIZATION");
    let mut process = start(&home, &bare).await.process;
    assert_eq!(process.exit(DEADLINE).await.code(), Some(2));
    eventually("it says which", DEADLINE, || process.stderr().contains("MCP_HEADER_AUTHORIZATION")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_said_and_nothing_is_changed() {
    let home = Home::new();
    for (client, place) in CLIENTS {
        let said = home.fails(3, &["install", client, "--all"]).await;
        assert!(said.contains(place) && said.contains("--config-file"), "{said}");
    }
    let text =
        br#"{"mcpServers": {"kit": {"command": "/srv/kit"}, "old": {"type": "sse", "url": "https://a.example/sse"}}}"#;
    let file = home.write("cursor", text);
    let unnamed = home.fails(2, &["install", "cursor"]).await;
    assert!(unnamed.contains("kit, old") && unnamed.contains("--all"), "{unnamed}");
    let unknown = home.fails(3, &["install", "cursor", "--server", "kat"]).await;
    assert!(unknown.contains("\"kat\"") && unknown.contains("kit, old"), "{unknown}");
    let foreign = home.fails(1, &["install", "cursor", "--server", "old"]).await;
    assert!(foreign.contains("SSE"), "{foreign}");
    let nothing = home.fails(3, &["uninstall", "cursor", "--server", "kit"]).await;
    assert!(nothing.contains("not behind"), "{nothing}");
    home.fails(2, &["install", "emacs"]).await;
    let dry = home.well(&["install", "cursor", "--all", "--dry-run", "--json"]).await;
    assert!(dry.stderr.contains("--- ") && dry.stderr.contains("+++ ") && dry.stderr.contains("@@ "), "{}", dry.stderr);
    let rows: Vec<Value> = dry.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let actions: Vec<_> =
        rows.iter().map(|row| (row["server"].as_str().unwrap(), row["action"].as_str().unwrap())).collect();
    assert_eq!(actions, [("kit", "wrapped"), ("old", "refused")]);
    assert_eq!(Home::files(&file), BTreeMap::from([(file.clone(), text.to_vec())]));

    // There is no room for the name of a copy beside it.
    let long = home.path().join(format!("{}.json", "n".repeat(245)));
    std::fs::write(&long, text).unwrap();
    let full = home.fails(1, &["install", "cursor", "--all", "--config-file", long.to_str().unwrap()]).await;
    assert!(full.contains("can not be written"), "{full}");
    assert_eq!(std::fs::read(&long).unwrap(), text);

    std::fs::write(&file, "{\n  \"mcpServers\": {,}\n}").unwrap();
    let broken = home.fails(2, &["install", "cursor", "--all"]).await;
    assert!(broken.contains("line 2, column 18") && broken.contains("mcp.json"), "{broken}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_change_meanwhile_survives_and_what_is_ours_goes_back() {
    let home = Home::new();
    let before = "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"/srv/a\" },\n    \"b\": { \"command\": \"/srv/b\" }\n  }\n}\n";
    let file = home.write("cursor", before.as_bytes());
    home.well(&["install", "cursor", "--server", "a"]).await;
    home.well(&["install", "cursor", "--server", "b"]).await;
    let now = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, now.replace("  \"mcpServers\"", "  \"mine\": 1,\n  \"mcpServers\"")).unwrap();
    home.well(&["uninstall", "cursor", "--server", "b"]).await;
    let half = std::fs::read_to_string(&file).unwrap();
    assert!(half.contains("\"b\": { \"command\": \"/srv/b\" }") && half.contains("\"--\""), "{half}");
    home.well(&["uninstall", "cursor"]).await;
    let last = std::fs::read_to_string(&file).unwrap();
    assert_eq!(last, before.replace("  \"mcpServers\"", "  \"mine\": 1,\n  \"mcpServers\""));
    let again = home.well(&["uninstall", "cursor"]).await;
    assert!(again.stderr.contains("nothing in the configuration"), "{}", again.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connect_is_added_and_taken_back_where_there_was_a_file_and_where_there_was_none() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join(".cursor")).unwrap();
    let file = home.path().join(".cursor/mcp.json");
    home.well(&["install", "cursor", "--connect", "--url", "http://127.0.0.1:7411"]).await;
    let made: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(made["mcpServers"]["durable-mcp"]["args"], json!(["connect", "--url", "http://127.0.0.1:7411"]));
    home.well(&["install", "cursor", "--connect", "--url", "http://127.0.0.1:7411"]).await;
    home.fails(6, &["install", "cursor", "--connect"]).await;
    home.well(&["uninstall", "cursor"]).await;
    assert!(!file.exists(), "a file that we made goes with its only entry");

    for (client, _) in CLIENTS {
        // Each of them goes there and back in the unit tests; here some do it as commands.
        for fixture in fixtures(client).into_iter().step_by(3) {
            let before = std::fs::read(&fixture).unwrap();
            let file = home.write(client, &before);
            home.well(&["install", client, "--connect"]).await;
            home.well(&["install", client, "--all"]).await;
            assert_ne!(std::fs::read(&file).unwrap(), before, "{}", fixture.display());
            home.well(&["uninstall", client]).await;
            assert_eq!(std::fs::read(&file).unwrap(), before, "{}", fixture.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projects_file_is_changed_only_when_it_is_asked_for() {
    let home = Home::new();
    let user = home.write("claude-code", br#"{"mcpServers": {"mine": {"command": "/srv/mine"}}}"#);
    let project = home.path().join(".mcp.json");
    std::fs::write(&project, r#"{"mcpServers": {"ours": {"command": "/srv/ours"}}}"#).unwrap();
    home.well(&["install", "claude-code", "--all"]).await;
    assert!(std::fs::read_to_string(&user).unwrap().contains("wrap"));
    assert!(!std::fs::read_to_string(&project).unwrap().contains("wrap"));
    let ran = home.well(&["install", "claude-code", "--server", "ours"]).await;
    assert!(ran.stderr.contains("shared with others"), "{}", ran.stderr);
    assert!(std::fs::read_to_string(&project).unwrap().contains("wrap"));
    home.well(&["uninstall", "claude-code", "--scope", "project"]).await;
    assert!(!std::fs::read_to_string(&project).unwrap().contains("wrap"));
    assert!(std::fs::read_to_string(&user).unwrap().contains("wrap"));
}

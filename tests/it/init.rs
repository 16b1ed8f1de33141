//! `init`: the file it writes is taken by `config check` and `serve`, and tells no secret.

use serde_json::json;

use crate::support::kit_binary;
use crate::support::ledger::Ledger;
use crate::support::program::{Ran, Setup};

#[track_caller]
fn assert_exit(ran: &Ran, exit: i32) {
    assert_eq!(ran.status.code(), Some(exit), "stdout: {}\nstderr: {}", ran.stdout, ran.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_made_from_a_clients_servers_is_served() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let folder = setup.folder().to_path_buf();
    let (home, out) = (folder.join("home"), folder.join("made.toml"));
    std::fs::create_dir_all(home.join(".cursor")).unwrap();
    let servers = json!({"mcpServers": {
        "kit": {"command": kit_binary(), "args": ["stdio"], "env": {"KIT_LEDGER": ledger.path(), "API_TOKEN": "s3cret-token"}},
        "off": {"command": "no-such-program", "disabled": true},
    }});
    std::fs::write(home.join(".cursor/mcp.json"), servers.to_string()).unwrap();
    let setup = setup.env("HOME", home.to_str().unwrap());
    let out = out.to_str().unwrap();
    let made = setup.cli(&["init", "--from", "cursor", "--out", out]).await;
    assert_exit(&made, 0);
    assert_eq!(made.stdout, "");
    assert!(made.stderr.contains("API_TOKEN") && !made.stderr.contains("s3cret"), "{}", made.stderr);
    let text = std::fs::read_to_string(out).unwrap();
    assert!(text.contains("API_TOKEN = \"${API_TOKEN}\"") && !text.contains("s3cret"), "{text}");

    let again = setup.cli(&["init", "--from", "cursor", "--out", out]).await;
    assert_exit(&again, 6);
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
    assert_exit(&setup.cli(&["init", "--from", "cursor", "--out", out, "--force"]).await, 0);
    let unset = setup.cli(&["config", "check", "--config", out]).await;
    assert_exit(&unset, 2);
    assert!(unset.stderr.contains("API_TOKEN"), "{}", unset.stderr);
    let setup = setup.env("API_TOKEN", "set");
    assert_exit(&setup.cli(&["config", "check", "--config", out]).await, 0);
    let program = setup.clone().config(&text).serve().await;
    let call = ["call", "kit__append", "--args", r#"{"text":"made"}"#, "--url", program.url()];
    let called = setup.cli(&call).await;
    assert_exit(&called, 0);
    assert_eq!(called.stdout, "appended made\n");
    assert_eq!(ledger.starts("made").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blank_file_is_checked_and_served() {
    let setup = Setup::new("");
    let out = setup.folder().join("blank.toml");
    let out = out.to_str().unwrap();
    assert_exit(&setup.cli(&["init", "--out", out]).await, 0);
    assert_exit(&setup.cli(&["config", "check", "--config", out]).await, 0);
    let text = std::fs::read_to_string(out).unwrap();
    assert!(text.contains("[lease]") && text.contains("# ttl = \"30s\""), "{text}");
    let printed = setup.cli(&["init", "--out", "-"]).await;
    assert_eq!(printed.stdout, text);
    let mut program = setup.config(&text).flag("--demo").serve().await;
    assert!(program.sigterm().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_read_or_written_is_said() {
    let setup = Setup::new("");
    let home = setup.folder().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let setup = setup.env("HOME", home.to_str().unwrap());
    let nothing = setup.cli(&["init", "--from", "no-such-thing"]).await;
    assert_exit(&nothing, 3);
    assert!(nothing.stderr.contains("claude-desktop"), "{}", nothing.stderr);
    assert_exit(&setup.cli(&["init", "--from", "vscode"]).await, 3);
    let file = setup.folder().join("broken.json");
    std::fs::write(&file, "{\"mcpServers\": [").unwrap();
    let broken = setup.cli(&["init", "--from", file.to_str().unwrap(), "--out", "-"]).await;
    assert_exit(&broken, 2);
    assert!(broken.stderr.contains("line 1"), "{}", broken.stderr);
    let nowhere = setup.cli(&["init", "--out", "/no/such/folder/a.toml"]).await;
    assert_exit(&nowhere, 1);
}

//! The official MCP Inspector from its command line, version 2 in each of its eras and version 0.15,
//! before `serve` and `wrap`: it lists the tools and calls one. It says what it got and goes; nothing is kept between.

use std::path::Path;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::cases_scene::kit;
use crate::skip_loudly;
use crate::support::client::{Place, Target};
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};
use crate::support::{DEADLINE, clients_folder, inspectors_are_set_up};

#[derive(Clone, Copy, Debug)]
enum Inspector {
    V0,
    V2 { era: &'static str },
}

impl Inspector {
    /// Whether its answers come in the words of 2026-07-28; `auto` finds out that they may.
    fn is_modern(self) -> bool {
        matches!(self, Inspector::V2 { era: "auto" | "modern" })
    }

    /// Runs it once; what it was answered. It keeps files of its own in the folder, not in the user's home.
    async fn ask(self, target: &Target, folder: &Path, method: &[&str]) -> Value {
        let modules = clients_folder().join("node_modules");
        let package = modules.join("@modelcontextprotocol");
        let mut inspector = match self {
            Inspector::V0 => {
                let mut command = Command::new("node");
                command.arg(package.join("inspector-cli/build/cli.js")).arg("--cli");
                command
            }
            Inspector::V2 { era } => {
                let mut command = Command::new(modules.join(".bin/node"));
                command.arg(package.join("inspector/clients/launcher/build/index.js"));
                command.args(["--cli", "--protocol-era", era, "--format", "json"]);
                command
            }
        };
        match &target.place {
            Place::Url(url) => inspector.args([url, "--transport", "http"]),
            Place::Command(_) => inspector.arg("sh").arg(script(target, folder)),
        };
        inspector.arg("--method").args(method).env("HOME", folder).kill_on_drop(true);
        let output = timeout(DEADLINE, inspector.output()).await.unwrap_or_else(|_| panic!("{self:?} hangs")).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self:?} {method:?}: {stderr}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
        match self {
            Inspector::V0 => said,
            Inspector::V2 { .. } => said["result"].clone(),
        }
    }
}

/// The command line of a stdio server as a script: an inspector would take its flags for its own.
fn script(target: &Target, folder: &Path) -> String {
    let Place::Command(argv) = &target.place else { panic!("a URL has no command line") };
    let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
    let variables = target.env.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    let words: Vec<String> = variables.chain(argv.iter().map(|word| quoted(word))).collect();
    let path = folder.join("wrap.sh");
    std::fs::write(&path, format!("exec env {}\n", words.join(" "))).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Lists the tools and calls one, which runs once.
async fn lists_and_calls(inspector: Inspector, target: &Target, ledger: &Ledger, folder: &Path) {
    let listed = inspector.ask(target, folder, &["tools/list"]).await;
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"append") && names.contains(&"durable_result"), "{inspector:?}: {names:?}");

    let call = ["tools/call", "--tool-name", "append", "--tool-arg", "text=one"];
    let called = inspector.ask(target, folder, &call).await;
    assert_eq!(called["content"][0]["text"], "appended one", "{inspector:?}: {called}");
    assert_eq!(called["_meta"]["durable-mcp/execution"]["state"], "completed", "{inspector:?}: {called}");
    assert_eq!(called["resultType"] == "complete", inspector.is_modern(), "{inspector:?}: {called}");
    assert_eq!(ledger.starts("one").len(), 1, "{inspector:?}");
}

async fn before_serve_and_wrap(inspector: Inspector) {
    skip_loudly!(inspectors_are_set_up());
    for serves in [true, false] {
        let setup = Setup::new("");
        let (server, ledger) = (kit(setup.folder()), Ledger::in_folder(setup.folder()));
        if serves {
            let program = setup.clone().config(&server_table("kit", &server, "")).serve().await;
            lists_and_calls(inspector, &program.target(), &ledger, setup.folder()).await;
        } else {
            lists_and_calls(inspector, &setup.wrap(&server), &ledger, setup.folder()).await;
        }
        setup.check_store().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inspector_0_15_lists_and_calls() {
    before_serve_and_wrap(Inspector::V0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inspector_2_legacy_lists_and_calls() {
    before_serve_and_wrap(Inspector::V2 { era: "legacy" }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inspector_2_auto_lists_and_calls() {
    before_serve_and_wrap(Inspector::V2 { era: "auto" }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inspector_2_modern_lists_and_calls() {
    before_serve_and_wrap(Inspector::V2 { era: "modern" }).await;
}

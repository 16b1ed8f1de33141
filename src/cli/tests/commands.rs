//! Whole commands against stores of their own.

use std::sync::{Arc, Mutex};

use clap::Parser;
use serde_json::Value;
use tempfile::TempDir;

use crate::cli::args::{Cli, Command};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::Output;
use crate::cli::{config, executions, token};
use crate::model::decide::{Command as Order, LeaseRequest};
use crate::model::event::Digest;
use crate::model::execution::Identification;
use crate::model::id::{ExecutionId, OperationId, ProcessId};
use crate::model::policy::Identity;
use crate::model::submit::{IfWaited, Submission};
use crate::store::{Apply, PayloadKind, Store, StoreSettings, Submit};

struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Scene {
        Scene { folder: tempfile::tempdir().unwrap() }
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.folder.path().join("a.db").display())
    }

    async fn run(&self, line: &str, terminal: bool) -> (Result<Exit, Failure>, String) {
        let (out, written): (Output, Arc<Mutex<Vec<u8>>>) = Output::in_memory(terminal);
        let store = self.url();
        let words = line.split_whitespace().map(|word| word.replace("STORE", &store));
        let cli = Cli::try_parse_from(std::iter::once("durable-mcp".to_owned()).chain(words)).unwrap();
        let ended = match cli.command {
            Command::Executions(args) => executions::run(args, out).await,
            Command::Token(args) => token::run(args, out).await,
            Command::Config(args) => config::run(args, out),
            _ => panic!("{line} needs a server"),
        };
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        (ended, text)
    }

    #[track_caller]
    fn exit(ended: &Result<Exit, Failure>) -> u8 {
        ended.as_ref().map_or_else(|failure| failure.exit, |exit| *exit as u8)
    }

    /// Two calls: the first completed with an error of its tool, the second leased.
    async fn fill(&self) {
        let store = crate::store::open(&self.url(), &StoreSettings::for_tests()).await.unwrap();
        for n in [1, 2] {
            submit(&*store, n).await;
        }
        let result = r#"{"content":[],"isError":true, "n":1.0}"#;
        let command = Order::Complete { fencing_token: 1, result: Digest::of(result), is_error: true };
        let payload = Some((PayloadKind::Result, result.into()));
        let operation = OperationId::new(0, &[3; 10]);
        let apply = Apply { id: id(1), command, payload, operation, now_ms: 1_001, seen: None };
        store.apply(apply).await.unwrap();
        store.close().await;
    }
}

fn id(n: u8) -> ExecutionId {
    ExecutionId::new(1_000, &[n; 10])
}

async fn submit(store: &dyn Store, n: u8) {
    let ident = Identification {
        upstream: "demo".into(),
        tool: "bell\u{7}".into(),
        principal: "anonymous".into(),
        arguments_hash: format!("{n}"),
        ..Identification::sample(id(n))
    };
    let process = ProcessId::new(0, &[9; 10]);
    let submission = Submission {
        ident,
        identity: Identity::default(),
        run_at_ms: None,
        by: None,
        lease: Some(LeaseRequest { worker: "w".into(), process, ttl_ms: 1_000, takes_over: None }),
        waiter: None,
        if_waited: IfWaited::New,
    };
    let operation = OperationId::new(0, &[n; 10]);
    let submit = Submit { submission, arguments: "{}".into(), meta: None, operation, now_ms: 1_000 };
    store.submit(submit).await.unwrap();
}

#[tokio::test]
async fn executions_are_lines_of_json_where_asked_for_and_tables_else() {
    let scene = Scene::new();
    scene.fill().await;
    for terminal in [true, false] {
        let (ended, text) = scene.run("executions list --store STORE --json", terminal).await;
        assert_eq!(Scene::exit(&ended), 0);
        let states: Vec<String> = text
            .lines()
            .map(|row| serde_json::from_str::<Value>(row).unwrap()["state"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(states, ["leased", "completed"], "{terminal}");
        let (_, table) = scene.run("executions list --store STORE", terminal).await;
        assert!(table.starts_with("ID   "), "{table}");
        assert!(!table.contains('\u{7}') && table.contains("demo/bell\u{fffd}"), "{table}");
    }
    let (_, filtered) = scene.run("executions list --store STORE --json --state failed,completed", false).await;
    assert_eq!(filtered.lines().count(), 1);
    let (_, one) = scene.run("executions list --store STORE --json --limit 1", false).await;
    assert!(one.contains(&id(2).to_string()) && one.lines().count() == 1);
}

#[tokio::test]
async fn an_execution_is_found_by_the_start_of_its_id() {
    let scene = Scene::new();
    scene.fill().await;
    let whole = id(1).to_string();
    for (given, exit) in [
        (whole.as_str(), 0),
        (&whole.to_uppercase(), 0),
        (&whole[..20], 0),
        // Both ids share their time.
        (&whole[..10], 2),
        ("ffff", 3),
        ("nonsense", 2),
        ("018bcfe5-6800-7101-8101-010101010109", 3),
    ] {
        let (ended, text) = scene.run(&format!("executions show {given} --store STORE"), false).await;
        assert_eq!(Scene::exit(&ended), exit, "{given}");
        assert_eq!(text.contains(&whole), exit == 0, "{given}");
    }
    let ambiguous = scene.run(&format!("executions show {} --store STORE", &whole[..10]), false).await.0.unwrap_err();
    assert!(ambiguous.error.contains(&whole), "{ambiguous}");
    let (_, events) = scene.run(&format!("executions events {whole} --store STORE --json"), false).await;
    assert_eq!(events.lines().count(), 3);
    let (_, table) = scene.run(&format!("executions events {whole} --store STORE"), true).await;
    assert!(table.starts_with("SEQ  AT") && table.contains("completed"), "{table}");
}

#[tokio::test]
async fn a_result_is_the_exact_text_and_the_exit_code_tells_the_rest() {
    let scene = Scene::new();
    scene.fill().await;
    let (ended, text) = scene.run(&format!("executions result {} --store STORE", id(1)), false).await;
    assert_eq!((Scene::exit(&ended), text.as_str()), (5, "{\"content\":[],\"isError\":true, \"n\":1.0}\n"));
    let (ended, text) = scene.run(&format!("executions result {} --store STORE", id(2)), false).await;
    assert_eq!((Scene::exit(&ended), text.as_str()), (8, ""));
    let (ended, text) = scene.run(&format!("executions result {} --store STORE --json", id(2)), false).await;
    assert_eq!(Scene::exit(&ended), 8);
    assert!(text.contains(r#""state":"leased""#), "{text}");
}

#[tokio::test]
async fn looking_makes_no_store() {
    let scene = Scene::new();
    let (ended, text) = scene.run("executions list --store STORE --json", false).await;
    assert_eq!((Scene::exit(&ended), text.as_str()), (0, ""));
    assert!(!scene.folder.path().join("a.db").exists());
}

#[tokio::test]
async fn a_token_is_printed_once_listed_without_its_secret_and_revoked() {
    let scene = Scene::new();
    let (_, token) = scene.run("token create --principal ci --expires-in 1h --store STORE", false).await;
    let token = token.trim_end().to_owned();
    assert!(token.starts_with("dmcp_"), "{token}");
    let prefix = &token[5..17];
    let (_, list) = scene.run("token list --store STORE --json", false).await;
    assert!(list.contains(prefix) && !list.contains(&token[18..]), "{list}");
    assert!(list.contains(r#""scopes":["call","read","cancel"],"state":"valid""#), "{list}");
    assert_eq!(Scene::exit(&scene.run("token revoke ffffffffffff --store STORE", false).await.0), 3);
    assert_eq!(Scene::exit(&scene.run(&format!("token revoke {prefix} --store STORE"), false).await.0), 0);
    let (_, table) = scene.run("token list --store STORE", true).await;
    assert!(table.starts_with("PREFIX") && table.contains("revoked"), "{table}");
    let (undeclared, _) = scene.run("token create --principal ci --namespace acme --store STORE", false).await;
    assert_eq!(Scene::exit(&undeclared), 2);
    let (anonymous, _) = scene.run("token create --principal anonymous --store STORE", false).await;
    assert_eq!(Scene::exit(&anonymous), 2);
}

#[tokio::test]
async fn the_configuration_is_checked_shown_and_described() {
    let scene = Scene::new();
    let file = scene.folder.path().join("c.toml");
    std::fs::write(&file, "[worker]\nslots = 3\n").unwrap();
    let path = file.display();
    assert_eq!(Scene::exit(&scene.run(&format!("config check --config {path}"), false).await.0), 0);
    let (_, shown) = scene.run(&format!("config show --config {path} --json"), false).await;
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["settings"]["worker.slots"]["value"], 3);
    let (_, schema) = scene.run("config schema", false).await;
    assert!(serde_json::from_str::<Value>(&schema).unwrap()["properties"]["worker"].is_object());
    std::fs::write(&file, "[worker]\nslot = 3\nx = 1\n").unwrap();
    let failure = scene.run(&format!("config check --config {path}"), false).await.0.unwrap_err();
    assert_eq!(failure.exit, 2);
    let lines: Vec<String> = failure.to_string().lines().map(str::to_owned).collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.starts_with("error: ")), "{lines:?}");
    assert!(lines[0].contains("c.toml:2:1"), "{lines:?}");
}

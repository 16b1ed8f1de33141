//! Servers that ask back, log and answer with tasks, behind `serve`: what belongs to one client never reaches another, and
//! a server's task outlives the program. The clients are written by hand.

use std::time::Duration;

use durable_mcp::store::{self, StoreSettings};
use serde_json::{Value, json};

use crate::support::program::{Program, Setup, server_table};
use crate::support::raw_http::{Connection, Request, open_session_of};
use crate::support::servers::{fixture_http, fixture_stdio};
use crate::support::{DEADLINE, eventually_async};
use crate::tasks_scene::{Legacy, token};

/// Rounds of both principals together.
const ROUNDS: usize = 1_000;

/// Opens a legacy session of a client that can be asked by forms.
async fn open_session(url: &str) -> String {
    open_session_of(url, "2025-11-25", &json!({"elicitation": {"form": {}}}), &[]).await.expect("a session id")
}

/// Calls the asking tool, answers its question, and checks that question and answer are this client's own.
async fn asked_once(client: &Legacy, text: &str) {
    let (url, session) = (client.url.as_str(), client.session.as_str());
    let call = json!({"jsonrpc": "2.0", "id": text, "method": "tools/call", "params": {
        "name": "test_elicitation", "arguments": {"message": text}}});
    let mut connection = Connection::open(url).await;
    connection.send(&client.own(Request::legacy(url, Some(session), &call.to_string())).bytes()).await;
    connection.response_head().await;
    loop {
        let event = connection.message().await.expect("an answer before the end of the stream");
        let message: Value = serde_json::from_str(&event.data).unwrap();
        if message["method"] == "elicitation/create" {
            assert_eq!(message["params"]["message"], text, "a question of another client's call");
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {
                "action": "accept", "content": {"username": text, "email": "a@example.com"}}});
            let sent = client.own(Request::legacy(url, Some(session), &answer.to_string())).exchange(url).await;
            assert_eq!(sent.status, 202, "{sent:?}");
        } else if message["id"] == text {
            let said = message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            assert!(said.contains("action=accept") && said.contains(text), "{message}");
            return;
        }
    }
}

/// Calls the logging tool: its one message comes to whoever called, and nobody else's does.
async fn logged_once(client: &Legacy) {
    let params = json!({"name": "test_logging_tool", "arguments": {}});
    let said = client.request("tools/call", params).exchange(&client.url).await;
    let logged = said.messages().iter().filter(|message| message.contains("notifications/message")).count();
    assert_eq!(logged, 1, "{}", said.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_asks_and_logs_for_one_principal_never_reaches_another() {
    let table = server_table("fixture", &fixture_stdio(), "isolation = \"session\"");
    let config = format!("[auth]\nmode = \"token\"\n[server]\nresponse = \"sse\"\n{table}");
    let program = Setup::new(&config).serve_on(0).await;
    let mut rounds = Vec::new();
    for principal in ["ann", "bob"] {
        let client = Legacy::asked_as(program.url(), &token(&program.setup, principal).await).await;
        client.ask("logging/setLevel", json!({"level": "info"})).await;
        rounds.push(tokio::spawn(async move {
            for round in 0..ROUNDS / 2 {
                asked_once(&client, &format!("{principal}-round-{round}")).await;
                logged_once(&client).await;
            }
        }));
    }
    for client in rounds {
        client.await.unwrap();
    }
    program.check_store().await;
}

/// Starts the slow job for a client of an earlier revision, and answers the execution's id at once.
async fn begin_job(program: &Program) -> String {
    let session = open_session(program.url()).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow_compute",
        "arguments": {"seconds": 3, "label": "the long one"}, "_meta": {"durable-mcp/wait": 0}}});
    let answer = Request::legacy(program.url(), Some(&session), &call.to_string()).exchange(program.url()).await;
    let answer = answer.answer();
    answer["result"]["structuredContent"]["execution_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn checkpoint(setup: &Setup, id: &str) -> Option<String> {
    let store = store::open(&setup.store_url(), &StoreSettings::default()).await.unwrap();
    let kept = store.progressed(id.parse().unwrap()).await.unwrap();
    store.close().await;
    kept.checkpoint.map(|checkpoint| checkpoint.to_string())
}

// A38: the agent has to carry the id of the server's task itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_servers_task_goes_on_while_the_program_is_gone_and_is_not_begun_again() {
    let fixture = fixture_http().await;
    let setup = Setup::new(&server_table("fixture", &fixture.target, ""));
    let mut program = setup.serve().await;
    let id = begin_job(&program).await;
    let begun = async || checkpoint(&setup, &id).await.is_some_and(|kept| kept.contains("durable-mcp/task"));
    eventually_async("the server's task is known", DEADLINE, begun).await;
    program.kill_9().await;

    let program = program.restart().await;
    let row = async || {
        let rows = program.executions().await;
        rows.into_iter().find(|row| row["id"] == id.as_str()).expect("the execution")
    };
    eventually_async("it is completed", Duration::from_secs(30), async || row().await["state"] == "completed").await;
    let row = row().await;
    assert_eq!(row["attempt"], 1, "at_most_once: the tool was called once");
    let events = program.events(&id).await;
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap_or_default()).collect();
    assert!(types.contains(&"completed"), "{types:?}");
    assert_eq!(types.iter().filter(|name| **name == "leased").count(), 1, "{types:?}");
    program.check_store().await;
}

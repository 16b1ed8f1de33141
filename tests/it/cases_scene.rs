//! The scene of the identity and field-case tests: `serve` before the fixture server, callers of both eras by hand, and
//! what they read out of an answer. Asserts nothing about the program but that it answers.

use std::path::Path;
use std::time::Duration;

use crate::support::client::Target;
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup, server_table};
use crate::support::raw_http::{Connection, Request, open_session};
use crate::support::servers::kit_stdio;
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually_async};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// `serve` before one kit over stdio, with its ledger.
pub struct Scene {
    pub program: Program,
    pub ledger: Ledger,
}

impl Scene {
    /// `head`: tables before the server's; `more`: further lines of `[servers.kit]`, sub-tables last.
    pub async fn start(head: &str, more: &str) -> Scene {
        Scene::start_on(On::Sqlite, head, more).await
    }

    /// The same with this kind of store.
    pub async fn start_on(on: On, head: &str, more: &str) -> Scene {
        let setup = Setup::new("").on(on).await;
        let ledger = Ledger::in_folder(setup.folder());
        let config = format!("{head}\n{}", server_table("kit", &kit(setup.folder()), more));
        Scene { program: setup.config(&config).serve().await, ledger }
    }

    pub fn url(&self) -> &str {
        self.program.url()
    }

    /// A caller of 2026-07-28.
    pub fn modern(&self) -> Caller {
        Caller::modern(self.url())
    }

    /// A caller with a session of 2025-11-25.
    pub async fn legacy(&self) -> Caller {
        Caller::legacy(self.url()).await
    }

    pub async fn of_each_era(&self) -> [Caller; 2] {
        [self.modern(), self.legacy().await]
    }

    /// How the execution stands, polled until it is as wanted.
    pub async fn wait_for_state(&self, id: &str, wanted: &str) -> Value {
        let mut row = Value::Null;
        eventually_async(&format!("{id} is {wanted}"), DEADLINE, async || {
            let executions = self.program.executions().await;
            row = executions.into_iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("no execution {id}"));
            row["state"] == wanted
        })
        .await;
        row
    }

    /// The one execution whose arguments led to the ledger line: the effect key in its start.
    pub fn execution_of(&self, text: &str) -> String {
        let starts = self.ledger.starts(text);
        let start = starts.first().unwrap_or_else(|| panic!("{text} never started"));
        start.key.clone().expect("the effect key is the execution id")
    }
}

/// The fixture server over stdio, both eras, with its ledger in the folder.
pub fn kit(folder: &Path) -> Target {
    kit_stdio(&["--era", "both", "--ledger", Ledger::in_folder(folder).path()])
}

/// Somebody who calls by hand, each call over a connection of its own.
#[derive(Clone, Debug)]
pub struct Caller {
    url: String,
    session: Option<String>,
    headers: Vec<(String, String)>,
}

impl Caller {
    pub fn modern(url: &str) -> Caller {
        Caller { url: url.to_owned(), session: None, headers: Vec::new() }
    }

    pub async fn legacy(url: &str) -> Caller {
        let session = open_session(url, "2025-11-25").await;
        Caller { url: url.to_owned(), session: Some(session.expect("a session id")), headers: Vec::new() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Caller {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn is_modern(&self) -> bool {
        self.session.is_none()
    }

    /// A `tools/call` with these parameters, as this caller's era writes it.
    pub fn request(&self, id: Value, params: Value) -> Request {
        let request = match &self.session {
            None => Request::modern(&self.url, id, "tools/call", params),
            Some(session) => {
                let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
                Request::legacy(&self.url, Some(session), &message.to_string())
            }
        };
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    /// Calls with these parameters and waits for the answer: the whole JSON-RPC message.
    pub async fn ask(&self, params: Value) -> Value {
        self.request(json!(1), params).exchange(&self.url).await.answer()
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Value {
        self.ask(json!({"name": name, "arguments": arguments})).await
    }

    pub async fn keyed(&self, key: &str, name: &str, arguments: Value) -> Value {
        self.ask(json!({"name": name, "arguments": arguments, "_meta": {"durable-mcp/idempotencyKey": key}})).await
    }

    /// Sends a call and reads nothing.
    pub async fn send(&self, params: Value) -> Connection {
        self.send_as(json!(1), params).await
    }

    pub async fn send_as(&self, id: Value, params: Value) -> Connection {
        let mut connection = Connection::open(&self.url).await;
        connection.send(&self.request(id, params).bytes()).await;
        connection
    }

    /// A notification of a legacy session.
    pub async fn notify(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let request = Request::legacy(&self.url, self.session.as_deref(), &message.to_string());
        assert_eq!(request.exchange(&self.url).await.status, 202);
    }
}

/// The first text of a result.
pub fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

/// What the program says about the execution behind a result.
pub fn execution(answer: &Value) -> &Value {
    let execution = &answer["result"]["_meta"]["durable-mcp/execution"];
    assert!(execution.is_object(), "no execution: {answer}");
    execution
}

pub fn id_of(answer: &Value) -> String {
    execution(answer)["id"].as_str().unwrap().to_owned()
}

/// The members of a result that every caller gets alike, byte for byte: all but `_meta`, and what an era adds.
pub fn stored_members(result: &str) -> Vec<(String, String)> {
    let members: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(result).unwrap();
    let common = members.into_iter().filter(|(name, _)| name != "_meta" && name != "resultType");
    common.map(|(name, value)| (name, value.get().to_owned())).collect()
}

/// Time between two acts of a client, which is what the test is about; never a wait for the program.
pub async fn gap(length: Duration) {
    tokio::time::sleep(length).await;
}

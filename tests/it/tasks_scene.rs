//! What the tests of tasks share: a client of the extension by hand, one of the experimental feature, and how they wait.
//! Asserts nothing about the program but that it answers.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::program::Setup;
use crate::support::raw_http::{Request, Response, open_session, open_session_of};
use crate::support::{DEADLINE, eventually_async};

pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A client of 2026-07-28 that declares the extension on each request.
#[derive(Clone, Debug)]
pub struct Modern {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub declares: bool,
}

impl Modern {
    pub fn new(url: &str) -> Modern {
        Modern { url: url.to_owned(), headers: Vec::new(), declares: true }
    }

    pub fn bearer(mut self, token: &str) -> Modern {
        self.headers.push(("Authorization".into(), format!("Bearer {token}")));
        self
    }

    pub fn without_tasks(mut self) -> Modern {
        self.declares = false;
        self
    }

    pub fn request(&self, method: &str, mut params: Value) -> Request {
        let extensions = match self.declares {
            true => json!({"elicitation": {}, "extensions": {EXTENSION: {}}}),
            false => json!({}),
        };
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = extensions;
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "raw", "version": "1"});
        let name = params["name"].as_str().or(params["taskId"].as_str()).map(str::to_owned);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = Request::modern_text(&self.url, method, name.as_deref(), &body);
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    pub async fn send(&self, method: &str, params: Value) -> Response {
        self.request(method, params).exchange(&self.url).await
    }

    pub async fn ask(&self, method: &str, params: Value) -> Value {
        self.send(method, params).await.answer()
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// A call that must become a task; its object.
    pub async fn task(&self, name: &str, arguments: Value) -> Value {
        let answer = self.call(name, arguments).await;
        assert_eq!(answer["result"]["resultType"], "task", "{answer}");
        answer["result"].clone()
    }

    pub async fn get(&self, id: &str) -> Value {
        self.ask("tasks/get", json!({"taskId": id})).await
    }

    /// The task, polled until it has this status.
    pub async fn until(&self, id: &str, status: &str) -> Value {
        let mut answer = Value::Null;
        eventually_async(&format!("task {id} is {status}"), DEADLINE, async || {
            answer = self.get(id).await;
            answer["result"]["status"] == status
        })
        .await;
        answer["result"].clone()
    }
}

/// A client with a session of 2025-11-25.
#[derive(Clone, Debug)]
pub struct Legacy {
    pub url: String,
    pub session: String,
    pub headers: Vec<(String, String)>,
}

impl Legacy {
    pub async fn open(url: &str) -> Legacy {
        let session = open_session(url, "2025-11-25").await.expect("a session id");
        Legacy { url: url.to_owned(), session, headers: Vec::new() }
    }

    pub async fn open_as(url: &str, token: &str) -> Legacy {
        Legacy::able(url, token, &json!({})).await
    }

    /// A client that can be asked by forms.
    pub async fn asked_as(url: &str, token: &str) -> Legacy {
        Legacy::able(url, token, &json!({"elicitation": {"form": {}}})).await
    }

    async fn able(url: &str, token: &str, capabilities: &Value) -> Legacy {
        let bearer = ("Authorization".to_owned(), format!("Bearer {token}"));
        let headers = vec![bearer];
        let session = open_session_of(url, "2025-11-25", capabilities, &headers).await.expect("a session id");
        Legacy { url: url.to_owned(), session, headers }
    }

    pub fn request(&self, method: &str, params: Value) -> Request {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.own(Request::legacy(&self.url, Some(&self.session), &message))
    }

    /// With what this client sends on each request.
    pub fn own(&self, request: Request) -> Request {
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    pub async fn ask(&self, method: &str, params: Value) -> Value {
        self.request(method, params).exchange(&self.url).await.answer()
    }

    /// A call that asks for a task; the task's object.
    pub async fn task(&self, name: &str, arguments: Value, task: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": arguments, "task": task})).await;
        assert!(answer["result"]["task"].is_object(), "{answer}");
        answer["result"]["task"].clone()
    }

    pub async fn get(&self, id: &str) -> Value {
        self.ask("tasks/get", json!({"taskId": id})).await
    }
}

/// A file that ends a `slow` run once it is there.
pub struct Gate(PathBuf);

impl Gate {
    pub fn new(setup: &Setup, name: &str) -> Gate {
        Gate(setup.folder().join(format!("gate-{name}")))
    }

    /// Arguments of `slow` whose run ends with this gate.
    pub fn arguments(&self, text: &str) -> Value {
        json!({"seconds": 0, "text": text, "gate": self.0})
    }

    pub fn open(&self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

pub fn task_id(task: &Value) -> String {
    task["taskId"].as_str().unwrap_or_else(|| panic!("no task id: {task}")).to_owned()
}

pub async fn token(setup: &Setup, principal: &str) -> String {
    let ran = setup.cli(&["token", "create", "--principal", principal]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

//! A worker by hand: bodies of the worker protocol as a test writes them, over raw HTTP. Keeps nothing but its id and its
//! credential; survives a restart of the server on the same port.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::program::Program;
use super::raw_http::{Request, Response};

/// A worker of one server.
#[derive(Clone)]
pub struct RawWorker {
    pub base: String,
    pub bearer: String,
    pub id: String,
}

/// The token that a server without authentication writes for its own user.
pub fn local_token(program: &Program) -> String {
    let file = format!("127.0.0.1_{}.token", program.port());
    std::fs::read_to_string(program.setup.data_dir().join("servers").join(file)).unwrap().trim().to_owned()
}

/// A random id, as a worker makes it.
pub fn fresh_id() -> String {
    let (first, second) = (durable_mcp::engine::entropy(), durable_mcp::engine::entropy());
    let mut bytes = [0; 16];
    bytes[..10].copy_from_slice(&first);
    bytes[10..].copy_from_slice(&second[..6]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

impl RawWorker {
    /// With the local token; not registered.
    pub fn new(program: &Program) -> RawWorker {
        RawWorker::with(program, &local_token(program))
    }

    /// With this credential; not registered.
    pub fn with(program: &Program, bearer: &str) -> RawWorker {
        RawWorker { base: program.at("/worker/v1/"), bearer: bearer.to_owned(), id: fresh_id() }
    }

    /// Registered, with tools of these names that run `at_least_once`.
    pub async fn registered(program: &Program, tools: &[&str]) -> RawWorker {
        let worker = RawWorker::new(program);
        let tools: Vec<Value> = tools.iter().map(|name| tool(name, "at_least_once")).collect();
        worker.register(json!(tools)).await;
        worker
    }

    /// The same worker, after the server wrote a new token.
    pub fn again(&self, program: &Program) -> RawWorker {
        RawWorker { base: program.at("/worker/v1/"), bearer: local_token(program), ..self.clone() }
    }

    pub async fn register(&self, tools: Value) -> Value {
        let body = json!({"worker_id": self.id, "name": "by-hand", "slots": 8, "sdk": "none", "tools": tools});
        self.ok("register", body).await
    }

    /// Sends a body as it is.
    pub async fn text(&self, verb: &str, body: &str) -> Response {
        let url = format!("{}{verb}", self.base);
        Request::post(&url, body).header("Authorization", &format!("Bearer {}", self.bearer)).exchange(&url).await
    }

    /// Sends an object with the worker's id.
    pub async fn post(&self, verb: &str, mut body: Value) -> Response {
        if body.get("worker_id").is_none() {
            body["worker_id"] = json!(self.id);
        }
        self.text(verb, &body.to_string()).await
    }

    /// The same, which must be answered with 200.
    pub async fn ok(&self, verb: &str, body: Value) -> Value {
        let response = self.post(verb, body.clone()).await;
        assert_eq!(response.status, 200, "{verb} {body}: {}", response.text());
        response.answer()
    }

    /// The same, which must be refused with this status and code; returns the problem.
    pub async fn refused(&self, (verb, body): (&str, Value), status: u16, code: &str) -> Value {
        let response = self.post(verb, body.clone()).await;
        let problem = response.answer();
        assert_eq!((response.status, &problem["code"]), (status, &json!(code)), "{verb} {body}: {problem}");
        assert_eq!(response.header("content-type"), Some("application/problem+json"));
        for member in ["type", "title", "detail", "next"] {
            assert!(problem[member].is_string(), "{problem}");
        }
        assert_eq!(problem["status"], status);
        problem
    }

    /// The jobs that come within 10 s.
    pub async fn claim(&self, max: usize) -> Vec<Value> {
        self.claimed(max).await.answer()["jobs"].as_array().unwrap().clone()
    }

    /// The answer of the claim that brings jobs, or of the last one in 10 s: a server with short leases answers sooner, and
    /// is asked again.
    pub async fn claimed(&self, max: usize) -> Response {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let left_ms = end.saturating_duration_since(Instant::now()).as_millis() as u64;
            let response = self.post("claim", json!({"max": max, "wait_ms": left_ms})).await;
            if left_ms == 0 || response.status != 200 || response.answer()["jobs"] != json!([]) {
                return response;
            }
        }
    }

    /// A claim of no tool at all, which the server answers when its time has passed.
    pub async fn nothing_for(&self, wait_ms: u64) {
        let answer = self.ok("claim", json!({"max": 1, "wait_ms": wait_ms, "tools": []})).await;
        assert_eq!(answer["jobs"], json!([]));
    }

    /// One job, which comes within 10 s.
    pub async fn job(&self) -> Value {
        let mut jobs = self.claim(1).await;
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        jobs.remove(0)
    }

    pub async fn complete(&self, job: &Value, text: &str) -> Response {
        self.post("complete", json!({"lease_token": job["lease_token"], "result": result(text)})).await
    }

    pub async fn stats(&self) -> Response {
        let url = format!("{}stats?worker_id={}", self.base, self.id);
        Request::new("GET", &url).header("Authorization", &format!("Bearer {}", self.bearer)).exchange(&url).await
    }
}

/// A tool object.
pub fn tool(name: &str, delivery: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}, "delivery": delivery})
}

/// A tool result.
pub fn result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Calls a tool as a client of 2026-07-28 does, on a task of its own; the answer is the whole JSON-RPC response.
pub fn call(program: &Program, tool: &str, arguments: Value) -> JoinHandle<Value> {
    let url = program.url().to_owned();
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}});
    tokio::spawn(async move { Request::modern(&url, json!(1), "tools/call", params).exchange(&url).await.answer() })
}

/// Submits a call and does not wait for it; its execution id.
pub async fn submit(program: &Program, tool: &str, arguments: Value) -> String {
    let url = program.url();
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"durable-mcp/wait": 0}});
    let answer = Request::modern(url, json!(1), "tools/call", params).exchange(url).await.answer();
    let id = answer["result"]["_meta"]["durable-mcp/execution"]["id"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The names of the tools that a client sees.
pub async fn listed(program: &Program, bearer: Option<&str>) -> Vec<String> {
    let url = program.url();
    let request = Request::modern(url, json!(1), "tools/list", json!({}));
    let request = match bearer {
        Some(bearer) => request.header("Authorization", &format!("Bearer {bearer}")),
        None => request,
    };
    let answer = request.exchange(url).await.answer();
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

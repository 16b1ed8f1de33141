//! Plays a scene of `sdk/vectors/scenes`: the real server, conformance workers as processes, acts in order. Knows nothing
//! of any language but how its conformance worker is started.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::support::cut_proxy::CutProxy;
use crate::support::process::Process;
use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Request, Response};
use crate::support::{self, DEADLINE};

#[derive(Clone, Copy)]
pub enum Language {
    Python,
    TypeScript,
    Rust,
}

impl Language {
    /// Each has one that takes over from it.
    fn other(self) -> Language {
        match self {
            Language::Python => Language::TypeScript,
            Language::TypeScript => Language::Rust,
            Language::Rust => Language::Python,
        }
    }

    fn command(self) -> Command {
        let sdk = support::sdk_folder();
        let (program, script) = match self {
            Language::Python => (sdk.join("python/.venv/bin/python"), Some(sdk.join("python/conformance/worker.py"))),
            Language::TypeScript => (PathBuf::from("node"), Some(sdk.join("typescript/conformance/dist/worker.js"))),
            Language::Rust => (support::example_binary("conformance-worker"), None),
        };
        let mut command = Command::new(program);
        command.args(script);
        command
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scene {
    #[serde(rename = "what")]
    _what: String,
    lease_ttl: String,
    acts: Vec<Act>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Act {
    /// Starts a worker and waits until it is registered.
    Start {
        worker: String,
        #[serde(default)]
        other: bool,
        slots: Option<u32>,
        grace_ms: Option<u32>,
        #[serde(default)]
        through_proxy: bool,
    },
    /// Sends a call and goes on.
    Call {
        call: String,
        tool: String,
        arguments: Value,
        key: Option<String>,
        progress_to: Option<u32>,
    },
    /// Waits for the answer of a call, and looks for these members in its result.
    Answer {
        call: String,
        has: Value,
    },
    /// Waits until the ledger has the line so often; never: looks only.
    Ledger {
        line: String,
        times: usize,
    },
    /// Waits for a line of a worker's log.
    Log {
        worker: String,
        has: String,
    },
    Signal {
        worker: String,
        signal: String,
    },
    /// Waits for a worker's end.
    Exit {
        worker: String,
        code: i32,
    },
    /// Cancels a call by its id.
    Cancel {
        call: String,
    },
    /// Lets the calls that wait for this gate go on.
    Open {
        gate: String,
    },
    Server {
        act: String,
    },
    /// Counts the events of an answered call, and looks at its state.
    Events {
        call: String,
        counts: BTreeMap<String, usize>,
        state: String,
    },
    CutNextAnswer {
        route: String,
    },
    /// Waits until the proxy has seen so many requests of a route.
    Requests {
        route: String,
        at_least: usize,
    },
}

struct Call {
    tool: String,
    progress_to: Option<u32>,
    exchange: Option<JoinHandle<Response>>,
    id: Option<String>,
}

/// A server and what acts before it.
pub struct Stage {
    setup: Setup,
    server: Option<Program>,
    port: u16,
    url: String,
    proxy: Option<CutProxy>,
    workers: HashMap<String, Process>,
    calls: HashMap<String, Call>,
    ids: HashMap<String, String>,
}

impl Stage {
    /// A server whose leases last so long.
    pub async fn set(lease_ttl: &str) -> Stage {
        let config = format!(
            "[lease]\nttl = \"{lease_ttl}\"\n[builtin]\ndurable_cancel = true\n[defaults.retry]\ninitial_interval = \"10ms\"\n"
        );
        let setup = Setup::new(&config);
        let server = setup.serve().await;
        let (port, url) = (server.port(), server.url().to_owned());
        let (workers, calls, ids) = (HashMap::new(), HashMap::new(), HashMap::new());
        Stage { setup, server: Some(server), port, url, proxy: None, workers, calls, ids }
    }

    pub async fn play(language: Language, name: &str) {
        let path = support::sdk_folder().join("vectors/scenes").join(format!("{name}.json"));
        let scene: Scene = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let mut stage = Stage::set(&scene.lease_ttl).await;
        for act in scene.acts {
            eprintln!("{act:?}");
            stage.act(language, act).await;
        }
        let server = stage.server.as_ref().expect("the scene ends with the server");
        server.check_store().await;
    }

    async fn act(&mut self, language: Language, act: Act) {
        match act {
            Act::Start { worker, other, slots, grace_ms, through_proxy } => {
                let mut env = Vec::new();
                env.extend(slots.map(|slots| ("CONFORMANCE_SLOTS", slots.to_string())));
                env.extend(grace_ms.map(|grace_ms| ("CONFORMANCE_GRACE_MS", grace_ms.to_string())));
                if through_proxy {
                    let proxy = CutProxy::start(self.port).await;
                    env.push(("DURABLE_MCP_URL", format!("http://127.0.0.1:{}", proxy.port)));
                    env.push(("DURABLE_MCP_TOKEN", self.token()));
                    self.proxy = Some(proxy);
                }
                let language = if other { language.other() } else { language };
                self.start(&worker, language, &env).await;
            }
            Act::Call { call, tool, mut arguments, key, progress_to } => {
                if let Some(gate) = arguments["gate"].as_str().and_then(|gate| gate.strip_prefix("gate:")) {
                    arguments["gate"] = json!(self.gate(gate));
                }
                let more = json!({"key": key, "progress": progress_to.is_some()});
                self.call(&call, &tool, arguments, Some(more)).await;
                self.calls.get_mut(&call).unwrap().progress_to = progress_to;
            }
            Act::Answer { call, has } => {
                let result = self.answer(&call).await;
                check_has(&result, &has, &call);
            }
            Act::Ledger { line, times: 0 } => assert_eq!(self.noted(&line), 0, "{}", self.ledger_text()),
            Act::Ledger { line, times } => {
                let what = format!("{times} × {line:?} in the ledger");
                support::eventually(&what, DEADLINE, || self.noted(&line) >= times).await;
                assert_eq!(self.noted(&line), times, "{}", self.ledger_text());
            }
            Act::Log { worker, has } => drop(self.workers[&worker].line_with(&has).await),
            Act::Signal { worker, signal } => {
                let signal = match signal.as_str() {
                    "TERM" => Signal::TERM,
                    "KILL" => Signal::KILL,
                    "STOP" => Signal::STOP,
                    "CONT" => Signal::CONT,
                    other => panic!("no signal {other}"),
                };
                self.workers[&worker].signal(signal);
            }
            Act::Exit { worker, code } => {
                let process = self.workers.get_mut(&worker).unwrap();
                let status = process.exit(DEADLINE).await;
                assert_eq!(status.code(), Some(code), "{status}:\n{}", process.stderr());
            }
            Act::Cancel { call } => {
                let id = self.leased_id(&call).await;
                self.call_now("durable_cancel", json!({"execution_id": id})).await;
            }
            Act::Open { gate } => fs::write(self.gate(&gate), "").unwrap(),
            Act::Server { act } => match act.as_str() {
                "kill" => {
                    let mut server = self.server.take().unwrap();
                    server.kill_9().await;
                    // Whoever waited for an answer gets none.
                    self.calls.values().filter_map(|call| call.exchange.as_ref()).for_each(JoinHandle::abort);
                }
                "start" => {
                    let server = self.setup.serve_on(self.port).await;
                    server.ready().await;
                    self.server = Some(server);
                }
                other => panic!("no act {other}"),
            },
            Act::Events { call, counts, state } => self.check_events(&call, &counts, &state).await,
            Act::CutNextAnswer { route } => self.proxy.as_ref().unwrap().cut_next_answer(&route),
            Act::Requests { route, at_least } => {
                let proxy = self.proxy.as_ref().unwrap();
                let what = format!("{at_least} requests of {route}");
                support::eventually(&what, DEADLINE, || proxy.requests(&route) >= at_least).await;
            }
        }
    }

    /// Starts a conformance worker and waits until it is registered.
    pub async fn start(&mut self, name: &str, language: Language, env: &[(&str, String)]) {
        let mut command = language.command();
        for (set, _) in std::env::vars_os() {
            if set.to_str().is_some_and(|set| set.starts_with("DURABLE_MCP_")) {
                command.env_remove(set);
            }
        }
        command
            .env("DURABLE_MCP_URL", format!("http://127.0.0.1:{}/mcp", self.port))
            .env("DURABLE_MCP_DATA_DIR", self.setup.data_dir())
            .env("CONFORMANCE_NAME", name)
            .env("CONFORMANCE_LEDGER", self.ledger())
            .envs(env.iter().map(|(name, value)| (name, value)));
        let process = Process::start_command(command);
        process.line_with("registered at").await;
        self.workers.insert(name.to_owned(), process);
    }

    /// Sends a call; `more` has its key and whether it asks for progress.
    pub async fn call(&mut self, name: &str, tool: &str, arguments: Value, more: Option<Value>) {
        let more = more.unwrap_or_default();
        let mut params = json!({"name": tool, "arguments": arguments, "_meta": {}});
        if let Some(key) = more["key"].as_str() {
            params["_meta"]["durable-mcp/idempotencyKey"] = json!(key);
        }
        if more["progress"] == true {
            params["_meta"]["progressToken"] = json!(name);
        }
        let (url, request) = (self.url.clone(), Request::modern(&self.url, json!(name), "tools/call", params));
        let exchange = tokio::spawn(async move { request.exchange(&url).await });
        let call = Call { tool: tool.to_owned(), progress_to: None, exchange: Some(exchange), id: None };
        self.calls.insert(name.to_owned(), call);
    }

    /// The result of a call, awaited.
    pub async fn answer(&mut self, name: &str) -> Value {
        let call = self.calls.get_mut(name).unwrap();
        let exchange = call.exchange.take().expect("a call is answered once");
        let response = match tokio::time::timeout(DEADLINE, exchange).await {
            Ok(response) => response.unwrap(),
            Err(_) => panic!("no answer to {name}:\n{}", self.all_logs()),
        };
        let result = response.answer()["result"].clone();
        call.id = result["_meta"]["durable-mcp/execution"]["id"].as_str().map(str::to_owned);
        if let Some(last) = call.progress_to {
            let told = response.messages().iter().any(|message| {
                let message: Value = serde_json::from_str(message).unwrap();
                message["method"] == "notifications/progress"
                    && message["params"]["progress"].as_f64() == Some(last.into())
            });
            assert!(told, "no progress {last}: {}", response.text());
        }
        result
    }

    pub async fn call_now(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(tool, tool, arguments, None).await;
        self.answer(tool).await
    }

    /// The definition of a tool as it is listed.
    pub async fn tool(&self, name: &str) -> Value {
        let answer = Request::modern(&self.url, json!(1), "tools/list", json!({})).exchange(&self.url).await.answer();
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no tool {name}: {answer}")).clone()
    }

    /// A request of a worker made by hand; each `who` has a worker id of its own.
    pub async fn post(&mut self, route: &str, who: &str, mut body: Value) -> (u16, Value) {
        let count = self.ids.len() + 1;
        let id = self.ids.entry(who.to_owned()).or_insert_with(|| format!("00000000-0000-4000-8000-{count:012}"));
        body["worker_id"] = json!(id);
        let url = format!("http://127.0.0.1:{}/worker/v1/{route}", self.port);
        let bearer = format!("Bearer {}", self.token());
        let response = Request::post(&url, body.to_string()).header("Authorization", &bearer).exchange(&url).await;
        (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
    }

    /// The next job of a worker made by hand, within 20 s. A server with short leases answers a claim sooner, and is asked
    /// again.
    pub async fn claim(&mut self, who: &str) -> Value {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let (status, body) = self.post("claim", who, json!({"max": 1, "wait_ms": 20_000})).await;
            if body["jobs"] != json!([]) || Instant::now() >= end {
                assert_eq!((status, body["jobs"].as_array().map(Vec::len)), (200, Some(1)), "{body}");
                return body["jobs"][0].clone();
            }
        }
    }

    async fn check_events(&self, call: &str, counts: &BTreeMap<String, usize>, state: &str) {
        let id = self.calls[call].id.as_ref().expect("the call is answered");
        let matches = async || {
            let events = self.setup.events(id).await;
            let count = |kind: &str| events.iter().filter(|event| event["type"] == *kind).count();
            counts.iter().all(|(kind, expected)| count(kind) == *expected)
        };
        // A refused result may be recorded a moment after the worker was told.
        let matched = async { while !matches().await {} };
        if tokio::time::timeout(Duration::from_secs(5), matched).await.is_err() {
            panic!("{call}: expected {counts:?} in {:#?}", self.setup.events(id).await);
        }
        let all = self.setup.executions().await;
        let execution = all.iter().find(|execution| execution["id"] == **id).unwrap();
        assert_eq!(execution["state"], state, "{execution}");
    }

    /// The id of the running call of this tool.
    async fn leased_id(&self, call: &str) -> Value {
        let tool = &self.calls[call].tool;
        let all = self.setup.executions().await;
        let found = all.iter().find(|execution| execution["state"] == "leased" && execution["tool"] == **tool);
        found.unwrap_or_else(|| panic!("{call} does not run: {all:?}"))["id"].clone()
    }

    fn token(&self) -> String {
        let path = self.setup.data_dir().join("servers").join(format!("127.0.0.1_{}.token", self.port));
        fs::read_to_string(path).unwrap().trim().to_owned()
    }

    fn gate(&self, name: &str) -> PathBuf {
        self.setup.folder().join(format!("gate-{name}"))
    }

    fn ledger(&self) -> PathBuf {
        self.setup.folder().join("ledger")
    }

    fn ledger_text(&self) -> String {
        fs::read_to_string(self.ledger()).unwrap_or_default()
    }

    fn noted(&self, line: &str) -> usize {
        self.ledger_text().lines().filter(|noted| *noted == line).count()
    }

    fn all_logs(&self) -> String {
        let logs = self.workers.iter().map(|(name, worker)| format!("--- {name}\n{}\n", worker.stderr()));
        logs.collect::<String>() + &self.ledger_text()
    }
}

/// Each member of `has` is in the value, at any depth.
fn check_has(value: &Value, has: &Value, what: &str) {
    match has {
        Value::Object(members) => {
            for (name, has) in members {
                check_has(value.get(name).unwrap_or_else(|| panic!("{what}: no {name} in {value}")), has, what);
            }
        }
        _ => assert_eq!(value, has, "{what}"),
    }
}

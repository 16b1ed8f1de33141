//! A client of any revision, by hand, at `serve` over HTTP or at a stdio server: what the cells of the matrix send and
//! hear. Knows how each revision and transport says a thing; judges no answer.

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::support::DEADLINE;
use crate::support::client::{Place, Target};
use crate::support::raw_http::{Connection, Request, open_session_of};

pub const MODERN: &str = "2026-07-28";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// One client.
pub struct Client {
    pub revision: &'static str,
    line: Line,
    next_id: AtomicU64,
}

enum Line {
    Http {
        url: String,
        session: Option<String>,
    },
    Pipe(Box<Pipe>),
    /// The two HTTP+SSE endpoints of 2024-11-05.
    Pair(Pair),
}

/// A request that was sent. Dropped over HTTP, its connection ends.
pub struct Sent<'c> {
    client: &'c Client,
    pub id: String,
    heard: Hearing,
}

enum Hearing {
    /// The connection, and whether its head was read; an answer as JSON is one message.
    Http { connection: Box<Connection>, begun: bool, whole: bool },
    /// How far was read of all that the client has heard.
    Lines(usize),
}

impl Client {
    /// A client at `serve`.
    pub async fn http(url: &str, revision: &'static str) -> Client {
        let session = match revision {
            MODERN => None,
            _ => Some(open_session_of(url, revision, &capabilities(revision), &[]).await.expect("a session id")),
        };
        Client { revision, line: Line::Http { url: url.to_owned(), session }, next_id: AtomicU64::new(1) }
    }

    /// The same client, with its session, at another server of the same store.
    pub fn elsewhere(&self, url: &str) -> Client {
        let Line::Http { session, .. } = &self.line else { panic!("a pipe leads to one server") };
        let line = Line::Http { url: url.to_owned(), session: session.clone() };
        // Ids of requests are the client's, wherever it sends them.
        Client { revision: self.revision, line, next_id: AtomicU64::new(1_000) }
    }

    /// A client that starts a stdio server.
    pub async fn pipe(target: &Target, revision: &'static str) -> Client {
        let client = Client { revision, line: Line::Pipe(Box::new(Pipe::start(target))), next_id: AtomicU64::new(1) };
        if revision != MODERN {
            client.initialize().await;
        }
        client
    }

    /// A client at the stream of the HTTP+SSE endpoints.
    pub async fn pair(url: &str, revision: &'static str) -> Client {
        let client = Client { revision, line: Line::Pair(Pair::open(url).await), next_id: AtomicU64::new(1) };
        client.initialize().await;
        client
    }

    async fn initialize(&self) {
        let hello = json!({"protocolVersion": self.revision, "capabilities": capabilities(self.revision),
            "clientInfo": {"name": "raw", "version": "1"}});
        let opened = self.ask("initialize", hello).await;
        assert_eq!(opened["result"]["protocolVersion"], self.revision, "{opened}");
        self.notify("notifications/initialized", json!({})).await;
    }

    /// All that was heard, where everything comes on one line.
    fn lines(&self) -> &Lines {
        match &self.line {
            Line::Http { .. } => unreachable!("each request has a stream of its own"),
            Line::Pipe(pipe) => &pipe.lines,
            Line::Pair(pair) => &pair.lines,
        }
    }

    pub fn is_modern(&self) -> bool {
        self.revision == MODERN
    }

    fn is_http(&self) -> bool {
        matches!(self.line, Line::Http { .. })
    }

    /// Sends a request, with a progress token of the same name as its id.
    pub async fn send(&self, method: &str, params: Value) -> Sent<'_> {
        self.send_able(method, params, false).await
    }

    /// The same, for a client that knows tasks as an extension.
    pub async fn send_able(&self, method: &str, mut params: Value, tasks: bool) -> Sent<'_> {
        let id = format!("request-{}", self.next_id.fetch_add(1, Ordering::Relaxed));
        if method == "tools/call" {
            params["_meta"]["progressToken"] = json!(id);
        }
        let message = self.message(Some(&id), method, params, tasks);
        let heard = match &self.line {
            Line::Http { url, .. } => {
                let mut connection = Box::new(Connection::open(url).await);
                connection.send(&self.post(&message).bytes()).await;
                Hearing::Http { connection, begun: false, whole: false }
            }
            Line::Pipe(_) | Line::Pair(_) => {
                let read = self.lines().heard.lock().unwrap().len();
                self.say(&message).await;
                Hearing::Lines(read)
            }
        };
        Sent { client: self, id, heard }
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Sent<'_> {
        self.send("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Sends a request and waits for its answer.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        self.send(method, params).await.answer().await
    }

    pub async fn notify(&self, method: &str, params: Value) {
        let message = self.message(None, method, params, false);
        self.say(&message).await;
    }

    /// Answers a request of the server.
    pub async fn respond(&self, id: &Value, result: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    /// What the execution has come to, asked by the built-in tool.
    pub async fn result_of(&self, execution: &str, wait_ms: u64) -> Value {
        let arguments = json!({"execution_id": execution, "wait_ms": wait_ms});
        self.call("durable_result", arguments).await.answer().await
    }

    /// Takes up the stream of a request whose connection was cut.
    pub async fn resume(&self, id: String, last_event: &str) -> Sent<'_> {
        let Line::Http { url, session } = &self.line else { panic!("only Streamable HTTP has streams to resume") };
        let get = Request::new("GET", url)
            .header("Accept", "text/event-stream")
            .header("Mcp-Session-Id", session.as_deref().expect("a session"))
            .header("MCP-Protocol-Version", self.revision)
            .header("Last-Event-ID", last_event);
        let mut connection = Box::new(Connection::open(url).await);
        connection.send(&get.bytes()).await;
        Sent { client: self, id, heard: Hearing::Http { connection, begun: false, whole: false } }
    }

    /// The client dies: a stdio server sees both ends of its pipe closed.
    pub fn die(self) -> Option<Child> {
        match self.line {
            // A stream that nobody reads any more is closed.
            Line::Http { .. } | Line::Pair(_) => None,
            Line::Pipe(pipe) => {
                let Pipe { child, reader, .. } = *pipe;
                reader.abort();
                Some(child)
            }
        }
    }

    async fn say(&self, message: &Value) {
        match &self.line {
            Line::Http { url, .. } => assert_eq!(self.post(message).exchange(url).await.status, 202, "{message}"),
            Line::Pipe(pipe) => pipe.write(message).await,
            Line::Pair(Pair { post, .. }) => {
                let said = Request::post(post, message.to_string()).exchange(post).await;
                assert_eq!(said.status, 202, "{message}");
            }
        }
    }

    fn message(&self, id: Option<&str>, method: &str, mut params: Value, tasks: bool) -> Value {
        if self.is_modern() {
            let mut able = capabilities(self.revision);
            if tasks {
                able["extensions"] = json!({TASKS: {}});
            }
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able;
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "raw", "version": "1"});
        }
        match id {
            Some(id) => json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
            None => json!({"jsonrpc": "2.0", "method": method, "params": params}),
        }
    }

    fn post(&self, message: &Value) -> Request {
        let Line::Http { url, session } = &self.line else { panic!("a pipe posts nothing") };
        match session {
            Some(session) => {
                let request = Request::legacy(url, Some(session), &message.to_string());
                // The header came with 2025-06-18.
                match self.revision < "2025-06-18" {
                    true => request.without("MCP-Protocol-Version"),
                    false => request.with("MCP-Protocol-Version", self.revision),
                }
            }
            None => {
                let params = &message["params"];
                let name = params["name"].as_str().or(params["taskId"].as_str());
                Request::modern_text(url, message["method"].as_str().unwrap(), name, &message.to_string())
            }
        }
    }
}

impl Sent<'_> {
    /// The next message that belongs to the request, as it came; `None` when nothing more comes on its stream.
    pub async fn text(&mut self) -> Option<String> {
        match &mut self.heard {
            Hearing::Http { connection, begun, whole } => {
                if !std::mem::replace(begun, true) {
                    let head = connection.response_head().await;
                    *whole = head.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
                }
                if *whole {
                    let body = connection.rest().await;
                    return (!body.is_empty()).then(|| String::from_utf8(body).unwrap());
                }
                connection.message().await.map(|event| event.data)
            }
            Hearing::Lines(read) => Some(self.client.lines().next(&self.id, read).await),
        }
    }

    /// The same, read.
    pub async fn next(&mut self) -> Option<Value> {
        let text = self.text().await?;
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    /// The answer, whatever is said before it.
    pub async fn answer(&mut self) -> Value {
        loop {
            let message = self.next().await.unwrap_or_else(|| panic!("no answer to {}", self.id));
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    /// The exact text of the answer.
    pub async fn answer_text(&mut self) -> String {
        loop {
            let text = self.text().await.unwrap_or_else(|| panic!("no answer to {}", self.id));
            let message: Value = serde_json::from_str(&text).unwrap();
            if message.get("method").is_none() {
                return text;
            }
        }
    }

    /// Waits until the answer has begun over HTTP, so that a connection can be cut in its middle; the id of its first
    /// event, where it has one.
    pub async fn begun(&mut self) -> Option<String> {
        let Hearing::Http { connection, begun, .. } = &mut self.heard else { return None };
        assert!(!std::mem::replace(begun, true), "its beginning was read");
        let head = connection.response_head().await;
        let is_stream = head.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        assert!(is_stream, "a call that takes long is answered by a stream: {head:?}");
        let primed = (self.client.revision == "2025-11-25").then_some(());
        primed?;
        connection.event().await.and_then(|event| event.id)
    }

    /// The client takes its request back as its revision and transport have it. True when an answer came nevertheless.
    pub async fn take_back(mut self, reason: &str) -> bool {
        if self.client.is_http() && self.client.is_modern() {
            self.cut();
            return false;
        }
        let params = json!({"requestId": self.id, "reason": reason});
        self.client.notify("notifications/cancelled", params).await;
        if self.client.is_http() {
            while let Some(message) = self.next().await {
                if message["id"] == self.id.as_str() {
                    return true;
                }
            }
            return false;
        }
        // What the server still had to say of it is there once it has answered something that was asked later.
        self.client.ask("tools/list", json!({})).await;
        self.client.lines().heard.lock().unwrap().iter().any(|line| line.answers(&self.id))
    }

    /// Cuts the connection, as a crash does.
    pub fn cut(self) {
        if let Hearing::Http { connection, .. } = self.heard {
            connection.cut();
        }
    }
}

/// What a client of this revision says that it can do.
pub fn capabilities(revision: &str) -> Value {
    match revision < "2025-06-18" {
        true => json!({}),
        false => json!({"elicitation": {}}),
    }
}

/// A stdio server that was started, and all that it has said.
struct Pipe {
    child: Child,
    stdin: tokio::sync::Mutex<ChildStdin>,
    lines: Arc<Lines>,
    reader: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Lines {
    heard: Mutex<Vec<Spoken>>,
    news: Notify,
}

/// One line, with what says whose it is.
struct Spoken {
    text: String,
    message: Value,
}

impl Spoken {
    fn answers(&self, id: &str) -> bool {
        self.message.get("method").is_none() && self.message["id"] == id
    }

    /// Its answer, its progress, or a request of the server, which names no request of the client.
    fn concerns(&self, id: &str) -> bool {
        match self.message["method"].as_str() {
            None => self.answers(id),
            Some("notifications/progress") => self.message["params"]["progressToken"] == id,
            Some(_) => self.message.get("id").is_some(),
        }
    }
}

impl Pipe {
    fn start(target: &Target) -> Pipe {
        let Place::Command(argv) = &target.place else { panic!("not a command: {target:?}") };
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).envs(target.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{argv:?}: {error}"));
        let stdin = tokio::sync::Mutex::new(child.stdin.take().unwrap());
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let lines = Arc::<Lines>::default();
        let reader = tokio::spawn(lines.clone().collect(stdout));
        Pipe { child, stdin, lines, reader }
    }

    async fn write(&self, message: &Value) {
        let mut stdin = self.stdin.lock().await;
        stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        stdin.flush().await.unwrap();
    }
}

/// A stream of the HTTP+SSE endpoints: where one posts to, and all that was heard. Its session ends with it.
struct Pair {
    post: String,
    lines: Arc<Lines>,
    reader: tokio::task::JoinHandle<()>,
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Pair {
    async fn open(url: &str) -> Pair {
        let mut stream = Connection::open(url).await;
        stream.send(&Request::new("GET", url).header("Accept", "text/event-stream").bytes()).await;
        assert_eq!(stream.response_head().await.status, 200);
        let first = stream.event().await.expect("the endpoint");
        assert_eq!(first.name.as_deref(), Some("endpoint"));
        let origin = url.strip_suffix("/sse").expect("the endpoint of the scene");
        let lines = Arc::<Lines>::default();
        let heard = lines.clone();
        let reader = tokio::spawn(async move {
            while let Some(event) = stream.event().await {
                assert_eq!(event.name.as_deref(), Some("message"));
                heard.push(event.data);
            }
        });
        Pair { post: format!("{origin}{}", first.data), lines, reader }
    }
}

impl Lines {
    async fn collect(self: Arc<Lines>, stdout: BufReader<tokio::process::ChildStdout>) {
        let mut stdout = stdout.lines();
        while let Ok(Some(text)) = stdout.next_line().await {
            self.push(text);
        }
    }

    fn push(&self, text: String) {
        // What is no JSON would be a message lost, and shows as an answer that never comes.
        let message = serde_json::from_str(&text).unwrap_or_default();
        self.heard.lock().unwrap().push(Spoken { text, message });
        self.news.notify_waiters();
    }

    async fn next(&self, id: &str, read: &mut usize) -> String {
        let found = async {
            loop {
                let news = self.news.notified();
                {
                    let heard = self.heard.lock().unwrap();
                    if let Some(at) = (*read..heard.len()).find(|at| heard[*at].concerns(id)) {
                        *read = at + 1;
                        return heard[at].text.clone();
                    }
                    *read = heard.len();
                }
                news.await;
            }
        };
        timeout(DEADLINE, found).await.unwrap_or_else(|_| panic!("nothing about {id} for {DEADLINE:?}"))
    }
}

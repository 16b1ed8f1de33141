//! The two HTTP+SSE endpoints of 2024-11-05: real clients that know nothing later, and by hand who may use a stream, what may
//! be sent on it, and that its session is one like all others and ends with it.

use serde_json::{Value, json};

use crate::skip_loudly;
use crate::support::client::{Call, Client, Kind, Mode, Target};
use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Connection, Request, Response};
use crate::support::{DEADLINE, clients_are_set_up, eventually_async};

const ON: &str = "[server]\nsse_path = \"/sse\"\nkeep_alive = \"50ms\"\n";

async fn serve(more: &str) -> Program {
    Setup::new(&format!("{ON}{more}")).flag("--demo").serve().await
}

fn message(id: Value, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn hello(revision: &str) -> String {
    let params =
        json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
    message(json!("hello"), "initialize", params)
}

/// A stream, and the address that it named.
struct Pair {
    stream: Connection,
    post: String,
    headers: Vec<(String, String)>,
}

impl Pair {
    async fn open(program: &Program, headers: &[(String, String)]) -> Pair {
        let url = program.at("/sse");
        let mut stream = Connection::open(&url).await;
        let get = Request::new("GET", &url).header("Accept", "text/event-stream");
        let get = headers.iter().fold(get, |get, (name, value)| get.header(name, value));
        stream.send(&get.bytes()).await;
        let head = stream.response_head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")), "{head:?}");
        let first = stream.event().await.unwrap();
        assert_eq!(first.name.as_deref(), Some("endpoint"));
        Pair { stream, post: program.at(&first.data), headers: headers.to_vec() }
    }

    async fn send(&self, body: &str) -> Response {
        let post = Request::post(&self.post, body);
        self.headers.iter().fold(post, |post, (name, value)| post.header(name, value)).exchange(&self.post).await
    }

    /// The next message that is no notification.
    async fn answer(&mut self) -> Value {
        loop {
            let event = self.stream.event().await.expect("a message on the stream");
            assert_eq!(event.name.as_deref(), Some("message"));
            let message: Value = serde_json::from_str(&event.data).unwrap();
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    async fn ask(&mut self, body: &str) -> Value {
        assert_eq!(self.send(body).await.status, 202);
        self.answer().await
    }
}

async fn sessions(program: &Program) -> Vec<Value> {
    let ran = program.setup.cli(&["sessions", "list", "--json"]).await;
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn token(setup: &Setup, principal: &str) -> Vec<(String, String)> {
    let ran = setup.cli(&["token", "create", "--principal", principal, "--scope", "call"]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    vec![("Authorization".to_owned(), format!("Bearer {}", ran.stdout.trim()))]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_clients_that_know_nothing_later_call_are_asked_and_hear_of_progress() {
    skip_loudly!(clients_are_set_up());
    let program = serve("").await;
    for kind in [Kind::Sdk1, Kind::Python(Mode::Legacy)] {
        let target = Target::url(program.at("/sse")).env("CLIENT_TRANSPORT", "sse").env("CLIENT_ANSWERS", "of course");
        let client = Client::connect(kind, &target).await;
        let names: Vec<Value> = client.list().await.iter().map(|tool| tool["name"].clone()).collect();
        assert!(names.contains(&json!("demo_echo")), "{kind:?}: {names:?}");
        let said = client.call("demo_echo", json!({"message": "one"})).await.unwrap();
        assert_eq!(said["content"][0]["text"], "one", "{kind:?}");
        let mut pending = client.start(Call::new("demo_sleep", json!({"seconds": 0.5})).progress()).await;
        assert!(pending.next_progress().await["progress"].is_number(), "{kind:?}");
        assert_ne!(pending.answer().await.unwrap()["isError"], true, "{kind:?}");
        let asked = client.call("demo_ask", json!({"question": "Sure?"})).await.unwrap();
        assert!(asked["content"][0]["text"].as_str().unwrap().contains("of course"), "{kind:?}: {asked}");
        assert_eq!(client.request("logging/setLevel", json!({"level": "error"})).await.unwrap(), json!({}), "{kind:?}");
        let open = sessions(&program).await;
        assert_eq!((open.len(), &open[0]["client_name"]), (1, &json!("test-client")), "{kind:?}: {open:?}");
        client.close().await;
        eventually_async("the session ends with its stream", DEADLINE, async || sessions(&program).await.is_empty())
            .await;
    }
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_endpoints_are_there_only_where_they_are_configured() {
    let program = Setup::new("").flag("--demo").serve().await;
    let url = program.at("/sse");
    for method in ["GET", "POST"] {
        assert_eq!(Request::new(method, &url).exchange(&url).await.status, 404);
    }
    let refused = Setup::new("[server]\nsse_path = \"/mcp/sse\"\n").cli(&["config", "check"]).await;
    assert!(!refused.status.success() && refused.stderr.contains("overlap"), "{}", refused.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_enter_is_refused_and_the_stream_goes_on() {
    let program = serve("max_body_bytes = \"4KiB\"\nmax_batch = 2\n").await;
    let url = program.at("/sse");
    let get = || Request::new("GET", &url).header("Accept", "text/event-stream");
    assert_eq!(get().header("Origin", "https://evil.example").exchange(&url).await.status, 403);
    assert_eq!(get().with("Host", "evil.example").exchange(&url).await.status, 421);
    let nowhere = format!("{url}?stream=0123");
    let lost = Request::post(&nowhere, hello("2024-11-05")).exchange(&nowhere).await;
    assert_eq!((lost.status, lost.answer()["error"]["code"].as_i64()), (404, Some(-32001)));

    let mut pair = Pair::open(&program, &[]).await;
    let early = pair.ask(&message(json!(1), "tools/list", json!({}))).await;
    assert!(early["error"]["message"].as_str().unwrap().contains("initialize"), "{early}");
    let welcome = pair.ask(&hello("2024-11-05")).await;
    assert_eq!((&welcome["id"], &welcome["result"]["protocolVersion"]), (&json!("hello"), &json!("2024-11-05")));
    assert_eq!(pair.ask(&hello("2024-11-05")).await["id"], "hello", "a repeated one is harmless");
    assert_eq!(sessions(&program).await.len(), 1);

    let foreign = Request::post(&pair.post, hello("2024-11-05")).header("Origin", "https://evil.example");
    assert_eq!(foreign.exchange(&pair.post).await.status, 403);
    let text = Request::post(&pair.post, "hello").with("Content-Type", "text/plain");
    assert_eq!(text.exchange(&pair.post).await.status, 415);
    assert_eq!(pair.send(&format!("\"{}\"", "x".repeat(5_000))).await.status, 413);
    assert_eq!(pair.ask("{").await["error"]["code"], -32700);
    let modern = json!({"name": "demo_echo", "arguments": {"message": "x"}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}});
    let refused = pair.ask(&message(json!(3), "tools/call", modern)).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(-32600)), "{refused}");

    let ping = |id: u32| message(json!(id), "ping", json!({}));
    let both = pair.ask(&format!("[{},{}]", ping(4), ping(5))).await;
    assert_eq!(both, json!([{"jsonrpc": "2.0", "id": 4, "result": {}}, {"jsonrpc": "2.0", "id": 5, "result": {}}]));
    let many = pair.ask(&format!("[{},{},{}]", ping(6), ping(7), ping(8))).await;
    assert!(many["error"]["message"].as_str().unwrap().contains("more than 2"), "{many}");
    let said = message(json!(9), "tools/call", json!({"name": "demo_echo", "arguments": {"message": "still here"}}));
    assert_eq!(pair.ask(&said).await["result"]["content"][0]["text"], "still here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_its_principals_and_its_session_counts_and_can_be_closed() {
    let program = serve("max_sessions = 1\n[auth]\nmode = \"token\"\n").await;
    let (ann, bob) = (token(&program.setup, "ann").await, token(&program.setup, "bob").await);
    let url = program.at("/sse");
    assert_eq!(Request::new("GET", &url).exchange(&url).await.status, 401);
    let mut pair = Pair::open(&program, &ann).await;
    assert_eq!(pair.ask(&hello("2025-11-25")).await["result"]["protocolVersion"], "2025-11-25");
    let stranger =
        bob.iter().fold(Request::post(&pair.post, hello("2024-11-05")), |post, (name, value)| post.header(name, value));
    let refused = stranger.exchange(&pair.post).await;
    assert_eq!((refused.status, refused.answer()["error"]["code"].as_i64()), (403, Some(-32003)));

    let mut second = Pair::open(&program, &ann).await;
    assert_eq!(second.ask(&hello("2025-11-25")).await["error"]["code"], -31429, "one session is the most");
    let open = sessions(&program).await;
    assert_eq!((open.len(), &open[0]["principal"]), (1, &json!("ann")), "{open:?}");

    // A call goes on when its stream is cut, like one of any session.
    let sleep = message(json!(2), "tools/call", json!({"name": "demo_sleep", "arguments": {"seconds": 0.3}}));
    assert_eq!(pair.send(&sleep).await.status, 202);
    eventually_async("the call runs", DEADLINE, async || program.executions().await.len() == 1).await;
    let id = open[0]["id"].as_str().unwrap();
    let closed = program.setup.cli(&["sessions", "close", id]).await;
    assert!(closed.status.success(), "{}", closed.stderr);
    while pair.stream.event().await.is_some() {}
    eventually_async("the call is done", DEADLINE, async || program.executions().await[0]["state"] == "completed")
        .await;
    assert_eq!(
        second.ask(&hello("2025-11-25")).await["result"]["protocolVersion"],
        "2025-11-25",
        "there is room again"
    );
    // A long answer comes as one event.
    let long = "é\n".repeat(50_000);
    let call = json!({"name": "demo_echo", "arguments": {"message": long}});
    let said = second.ask(&message(json!(3), "tools/call", call)).await;
    assert!(said["result"]["content"][0]["text"] == long.as_str(), "{} bytes", said.to_string().len());
}

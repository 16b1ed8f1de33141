//! The stdio engine against a server played by the test, over streams in memory.

use crate::model::revision::Revision;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio_util::sync::CancellationToken;

use super::super::asides::{Changes, Correlation, Lists, Scope, Tell, Watcher};
use super::super::call::Bounds;
use super::super::log_budget::Unloggable;
use super::super::peer::{Peer, PeerSettings};
use super::super::stdio::{Conversation, Opening};
use super::super::{Answer, Call, CallError, EraChoice, LegLimits, Progress, TimeoutKind};
use super::{call, error_code, limits, lost, not_started, raw, result, soon};

/// The server's ends of the streams.
pub(super) struct Server {
    lines: Lines<BufReader<DuplexStream>>,
    stdout: DuplexStream,
}

impl Server {
    pub async fn read(&mut self) -> Value {
        let line = soon(self.lines.next_line()).await.unwrap().expect("stdin is closed");
        serde_json::from_str(&line).unwrap()
    }

    pub async fn expect(&mut self, method: &str) -> Value {
        let message = self.read().await;
        assert_eq!(message["method"], method);
        message
    }

    pub async fn write(&mut self, line: &str) {
        soon(self.stdout.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }

    pub async fn answer(&mut self, request: &Value, result: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string()).await;
    }
}

fn streams(limits: LegLimits) -> (Arc<Peer>, Server, Arc<Changes>) {
    streams_of(limits, Scope::default(), Tell::default())
}

fn streams_of(limits: LegLimits, scope: Scope, tell: Tell) -> (Arc<Peer>, Server, Arc<Changes>) {
    let (stdin, server_stdin) = tokio::io::duplex(1 << 16);
    let (server_stdout, stdout) = tokio::io::duplex(1 << 16);
    let changes = Arc::new(Changes::default());
    let settings = PeerSettings {
        name: "fixture".to_owned(),
        limits,
        unloggable: Unloggable::default(),
        correlation: Correlation::new(scope, tell, changes.clone()),
        overheard: Arc::default(),
    };
    let peer = Arc::new(Peer::start(stdout, stdin, settings));
    (peer, Server { lines: BufReader::new(server_stdin).lines(), stdout: server_stdout }, changes)
}

fn opening(era: EraChoice, limits: LegLimits) -> Opening {
    Opening { era, limits, declared: None }
}

async fn open_with(limits: LegLimits) -> (Arc<Conversation>, Server, Arc<Changes>, Arc<Peer>) {
    let (peer, mut server, noticed) = streams(limits);
    let opening = tokio::spawn(Conversation::open(peer.clone(), opening(EraChoice::Auto, limits)));
    let request = server.expect("initialize").await;
    assert_eq!(request["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(request["params"]["capabilities"], json!({}));
    server.answer(&request, json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})).await;
    let conversation = soon(opening).await.unwrap().unwrap();
    server.expect("notifications/initialized").await;
    (Arc::new(conversation), server, noticed, peer)
}

/// A conversation of one party, whose capabilities were declared.
pub(super) async fn open_party(capabilities: &str, tell: Tell) -> (Arc<Conversation>, Server) {
    let scope = Scope { is_private: true, can_be_asked: true };
    let (peer, mut server, _) = streams_of(limits(), scope, tell);
    let opening = Opening { declared: Some(raw(capabilities)), ..opening(EraChoice::Auto, limits()) };
    let opening = tokio::spawn(Conversation::open(peer, opening));
    let request = server.expect("initialize").await;
    assert_eq!(request["params"]["capabilities"], json!({"elicitation": {"form": {}}}));
    server.answer(&request, json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}})).await;
    let conversation = soon(opening).await.unwrap().unwrap();
    server.expect("notifications/initialized").await;
    (Arc::new(conversation), server)
}

pub(super) async fn open() -> (Arc<Conversation>, Server) {
    let (conversation, server, _, _) = open_with(limits()).await;
    (conversation, server)
}

pub(super) fn bounds() -> Bounds {
    Bounds { cancel: CancellationToken::new(), deadline: None, idle_timeout: None }
}

pub(super) type Running = tokio::task::JoinHandle<Result<Answer, CallError>>;

pub(super) fn begin(conversation: &Arc<Conversation>, call: Call, bounds: Bounds) -> Running {
    let conversation = conversation.clone();
    tokio::spawn(async move { conversation.call(&call.into(), bounds, &Watcher(|_| {})).await })
}

#[tokio::test]
async fn a_counter_offer_of_a_known_revision_is_accepted() {
    let (conversation, _server) = open().await;
    assert_eq!(conversation.facts().revision, Revision::V2025_06_18);
}

#[tokio::test]
async fn an_unknown_revision_ends_the_handshake() {
    let (peer, mut server, _) = streams(limits());
    let opening = tokio::spawn(Conversation::open(peer, opening(EraChoice::Legacy, limits())));
    let request = server.expect("initialize").await;
    server.answer(&request, json!({"protocolVersion": "1999-01-01"})).await;
    let reason = soon(opening).await.unwrap().err().unwrap();
    assert!(reason.contains("1999-01-01"), "{reason}");
}

#[tokio::test]
async fn a_server_that_knows_no_initialize_is_asked_to_discover() {
    let (peer, mut server, _) = streams(limits());
    let opening = tokio::spawn(Conversation::open(peer, opening(EraChoice::Auto, limits())));
    let request = server.expect("initialize").await;
    let refusal = json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "?"}});
    server.write(&refusal.to_string()).await;
    let request = server.expect("server/discover").await;
    let meta = &request["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    let discovered = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}}, "instructions": "be kind",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern"}}});
    server.answer(&request, discovered).await;
    let conversation = Arc::new(soon(opening).await.unwrap().unwrap());
    assert_eq!(conversation.facts().instructions.as_deref(), Some("be kind"));
    assert_eq!(conversation.facts().server_info.as_ref().unwrap().get(), r#"{"name":"modern"}"#);
    let listen = server.expect("subscriptions/listen").await;
    assert_eq!(listen["params"]["notifications"], json!({"toolsListChanged": true}));

    let running = begin(&conversation, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
    server.answer(&request, json!({"resultType": "input_required", "requestState": "s"})).await;
    assert_eq!(result(soon(running).await.unwrap()), r#"{"requestState":"s","resultType":"input_required"}"#);
}

#[tokio::test]
async fn concurrent_calls_may_be_answered_in_any_order() {
    let (conversation, mut server) = open().await;
    let calls: Vec<_> = (0..20).map(|n| begin(&conversation, call("t", &format!("{{\"n\":{n}}}")), bounds())).collect();
    let mut requests = Vec::new();
    for _ in 0..calls.len() {
        requests.push(server.expect("tools/call").await);
    }
    requests.reverse();
    for request in &requests {
        server.answer(request, json!({"n": request["params"]["arguments"]["n"]})).await;
    }
    for (n, running) in calls.into_iter().enumerate() {
        assert_eq!(result(soon(running).await.unwrap()), format!("{{\"n\":{n}}}"));
    }
}

#[tokio::test]
async fn progress_reaches_its_own_call_and_never_comes_after_the_answer() {
    let (conversation, mut server) = open().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let other = begin(&conversation, call("other", "{}"), bounds());
    let other_request = server.expect("tools/call").await;
    let running = {
        let (conversation, seen) = (conversation.clone(), seen.clone());
        tokio::spawn(async move {
            let on_progress = |progress: Progress| seen.lock().unwrap().push(progress);
            conversation.call(&call("t", "{}").into(), bounds(), &Watcher(on_progress)).await
        })
    };
    let request = server.expect("tools/call").await;
    let token = &request["params"]["_meta"]["progressToken"];
    for params in [
        json!({"progressToken": token, "progress": 1, "total": 4, "message": "one"}),
        json!({"progressToken": other_request["id"], "progress": 7}),
        json!({"progressToken": "foreign", "progress": 8}),
        json!({"progressToken": token}),
        json!({"progressToken": token, "progress": 2.5}),
    ] {
        let line = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        server.write(&line.to_string()).await;
    }
    server.answer(&request, json!({})).await;
    result(soon(running).await.unwrap());
    let seen = seen.lock().unwrap().clone();
    let first = Progress { progress: 1.0, total: Some(4.0), message: Some("one".to_owned()) };
    assert_eq!(seen, [first, Progress { progress: 2.5, total: None, message: None }]);
    server.answer(&other_request, json!({})).await;
    result(soon(other).await.unwrap());
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server_and_its_late_answer_is_ignored() {
    let (conversation, mut server) = open().await;
    let cancel = CancellationToken::new();
    let running = begin(&conversation, call("t", "{}"), Bounds { cancel: cancel.clone(), ..bounds() });
    let request = server.expect("tools/call").await;
    cancel.cancel();
    assert_eq!(soon(running).await.unwrap().unwrap_err(), CallError::Cancelled { dispatched: true });
    let notification = server.expect("notifications/cancelled").await;
    assert_eq!(notification["params"]["requestId"], request["id"]);
    server.answer(&request, json!({"late": true})).await;

    let running = begin(&conversation, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    server.answer(&request, json!({"late": false})).await;
    assert_eq!(result(soon(running).await.unwrap()), r#"{"late":false}"#);
}

#[tokio::test]
async fn a_caller_that_is_dropped_cancels_its_call() {
    let (conversation, mut server) = open().await;
    let running = begin(&conversation, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    running.abort();
    assert_eq!(server.expect("notifications/cancelled").await["params"]["requestId"], request["id"]);
}

#[tokio::test]
async fn progress_keeps_a_call_alive_and_silence_ends_it() {
    let (conversation, mut server) = open().await;
    let idle = Bounds { idle_timeout: Some(Duration::from_millis(50)), ..bounds() };
    let running = begin(&conversation, call("t", "{}"), idle);
    let request = server.expect("tools/call").await;
    let error = soon(running).await.unwrap().unwrap_err();
    assert_eq!(error, CallError::TimedOut { kind: TimeoutKind::Idle });
    assert_eq!(error.code(), "idle_timed_out");
    assert_eq!(server.expect("notifications/cancelled").await["params"]["requestId"], request["id"]);
}

#[tokio::test]
async fn the_end_of_stdout_settles_every_call_at_once() {
    let (conversation, mut server) = open().await;
    let calls: Vec<_> = (0..5).map(|_| begin(&conversation, call("t", "{}"), bounds())).collect();
    for _ in 0..calls.len() {
        server.expect("tools/call").await;
    }
    // The first half of an answer is none.
    server.stdout.write_all(br#"{"jsonrpc":"2.0","id":2,"resu"#).await.unwrap();
    drop(server);
    for running in calls {
        assert_eq!(lost(soon(running).await.unwrap()), "the server closed its stdout");
    }
    not_started(soon(begin(&conversation, call("t", "{}"), bounds())).await.unwrap());
}

#[tokio::test]
async fn an_answer_written_before_the_process_ended_is_read() {
    let (conversation, mut server, _, peer) = open_with(limits()).await;
    let answered = begin(&conversation, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    let unanswered = begin(&conversation, call("t", "{}"), bounds());
    server.expect("tools/call").await;
    server.answer(&request, json!({"done": true})).await;
    // A descendant may hold stdout open: it does not end here.
    peer.process_ended();
    assert_eq!(result(soon(answered).await.unwrap()), r#"{"done":true}"#);
    assert_eq!(lost(soon(unanswered).await.unwrap()), "the server's process ended");
}

#[tokio::test]
async fn a_call_that_was_never_written_did_not_start() {
    let (conversation, server) = open().await;
    // The server reads nothing: the first call fills the pipe, the second waits behind it.
    let big = format!("\"{}\"", "x".repeat(1 << 18));
    let first = begin(&conversation, call("t", &big), bounds());
    let second = begin(&conversation, call("t", "{}"), bounds());
    tokio::task::yield_now().await;
    drop(server);
    lost(soon(first).await.unwrap());
    not_started(soon(second).await.unwrap());
}

#[tokio::test]
async fn garbage_and_half_frames_disturb_nothing() {
    let (conversation, mut server) = open().await;
    let running = begin(&conversation, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    for line in ["Listening on port 3000", "", "{\"jsonrpc\":\"2.0\",\"id\":2,\"res", "[1,2]", "null", "\u{0}\u{1}"] {
        server.write(line).await;
    }
    server.stdout.write_all(b"\xff\xfe{}\n").await.unwrap();
    server.answer(&request, json!({"fine": true})).await;
    assert_eq!(result(soon(running).await.unwrap()), r#"{"fine":true}"#);
}

#[tokio::test]
async fn a_result_over_the_limit_is_an_error_of_ours_and_the_leg_goes_on() {
    let (conversation, mut server, _, _) = open_with(LegLimits { max_result_bytes: 1_000, ..limits() }).await;
    // One within the frame's bound, one beyond it.
    for bytes in [2_000, 200_000] {
        let running = begin(&conversation, call("big", "{}"), bounds());
        let request = server.expect("tools/call").await;
        server.answer(&request, json!({"text": "x".repeat(bytes)})).await;
        assert_eq!(error_code(soon(running).await.unwrap()), -31413);
    }
    let running = begin(&conversation, call("small", "{}"), bounds());
    let request = server.expect("tools/call").await;
    server.answer(&request, json!({})).await;
    result(soon(running).await.unwrap());
}

#[tokio::test]
async fn too_many_calls_at_once_do_not_start() {
    let (conversation, mut server, _, _) = open_with(LegLimits { max_in_flight: 1, ..limits() }).await;
    let running = begin(&conversation, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    not_started(soon(begin(&conversation, call("t", "{}"), bounds())).await.unwrap());
    server.answer(&request, json!({})).await;
    result(soon(running).await.unwrap());
}

#[tokio::test]
async fn the_servers_own_requests_are_answered() {
    let (_conversation, mut server) = open().await;
    server.write(r#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#).await;
    assert_eq!(server.read().await, json!({"jsonrpc": "2.0", "id": "p-1", "result": {}}));
    server.write(r#"{"jsonrpc":"2.0","id":4,"method":"sampling/createMessage","params":{}}"#).await;
    let refusal = server.read().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(4), &json!(-32601)));
}

#[tokio::test]
async fn a_changed_list_is_told_once_however_often_it_was_said() {
    let (_conversation, mut server, changes, _peer) = open_with(limits()).await;
    for _ in 0..100 {
        server.write(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    }
    server.write(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    server.read().await;
    soon(changes.changed()).await;
    assert_eq!(changes.take(), Lists { tools: true, ..Lists::default() });
    assert_eq!(changes.take(), Lists::default());
}

#[tokio::test]
async fn an_upstream_error_keeps_its_bytes() {
    let (conversation, mut server) = open().await;
    let mut asked = call("t", "{}");
    asked.meta.push(("durable-mcp/idempotencyKey".to_owned(), raw("\"k\"")));
    let running = begin(&conversation, asked, bounds());
    let request = server.expect("tools/call").await;
    assert_eq!(request["params"]["_meta"]["durable-mcp/idempotencyKey"], "k");
    server.write(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":1.0, "data":[ ]}}}}"#, request["id"])).await;
    match soon(running).await.unwrap() {
        Ok(Answer::Error(error)) => assert_eq!(error.get(), r#"{"code":1.0, "data":[ ]}"#),
        other => panic!("{other:?}"),
    }
}

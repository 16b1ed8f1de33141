//! What an HTTP server lists beside tools, and what it says beside its answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::{Answer, Caller, Declared, Progress, Request, Scope, ServerRequest, Tell, Transport, Upstream};
use super::http::settings;
use super::http_server::{Ending, Seen, Server, empty, events, legacy, modern};
use super::{call, raw, ready, result, soon};

fn data(message: &Value) -> String {
    format!("data: {message}\n\n")
}

/// Answers every question the same way.
#[derive(Default)]
struct Yes(Mutex<Vec<String>>);

#[async_trait]
impl Caller for Yes {
    fn progress(&self, _progress: Progress) {}

    fn notice(&self, method: &str, params: Option<&RawValue>) {
        self.0.lock().unwrap().push(format!("{method} {}", params.map_or("", RawValue::get)));
    }

    async fn ask(&self, request: &ServerRequest) -> Answer {
        self.0.lock().unwrap().push(request.method.clone());
        Answer::Result(r#"{"roots":[],"n":1.0}"#.into())
    }
}

fn listing(seen: &Seen) -> Option<axum::response::Response> {
    let whole = json!({"supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "resources": {"subscribe": true, "listChanged": true}, "prompts": {}}});
    Some(match (seen.method(), seen.body["params"]["cursor"].as_str()) {
        ("server/discover", _) => seen.result(whole),
        ("resources/list", None) => seen.result(
            json!({"resources": [{"uri": "a://1", "x": 1.0}], "nextCursor": "2", "ttlMs": 5, "cacheScope": "public"}),
        ),
        ("resources/list", Some("2")) => seen.result(json!({"resources": [{"uri": "a://2"}]})),
        ("resources/templates/list", _) => seen.error(404, -32601, "no templates"),
        ("prompts/list", _) => seen.result(json!({"prompts": [{"name": "p"}], "ttlMs": 7})),
        ("subscriptions/listen", _) => events(String::new(), Ending::Never),
        _ => return modern(seen),
    })
}

#[tokio::test]
async fn resources_and_prompts_are_read_page_by_page_with_what_is_said_of_keeping_them() {
    let server = Server::start(|seen| listing(seen).unwrap_or_else(|| empty(500))).await;
    let upstream = Upstream::start(settings(&server.url));
    ready(&upstream).await;
    let snapshot = upstream.tools().borrow().clone();
    let uris: Vec<_> = snapshot.resources.items.iter().map(|item| item.get().to_owned()).collect();
    assert_eq!(uris, [r#"{"uri":"a://1","x":1.0}"#, r#"{"uri":"a://2"}"#]);
    let keeping = snapshot.resources.keeping.unwrap();
    assert_eq!((keeping.ttl_ms, keeping.is_private), (5, false));
    assert!(snapshot.templates.items.is_empty());
    assert_eq!(snapshot.prompts.items.len(), 1);
    assert!(snapshot.prompts.keeping.unwrap().is_private, "without a word it is the asker's own");
}

#[tokio::test]
async fn a_list_that_cannot_be_read_costs_nothing_but_itself() {
    let server = Server::start(|seen| match seen.method() {
        "resources/list" => seen.error(200, -32603, "broken"),
        _ => listing(seen).unwrap_or_else(|| empty(500)),
    })
    .await;
    let upstream = Upstream::start(settings(&server.url));
    ready(&upstream).await;
    let snapshot = upstream.tools().borrow().clone();
    assert_eq!((snapshot.tools.len(), snapshot.resources.items.len(), snapshot.prompts.items.len()), (1, 0, 1));
}

#[tokio::test]
async fn subscriptions_are_counted_and_listened_for() {
    let server = Server::start(|seen| listing(seen).unwrap_or_else(|| empty(500))).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut settings = settings(&server.url);
    let into = told.clone();
    settings.tell = Tell::new(move |method, params| {
        into.lock().unwrap().push((method.to_owned(), params.map(|params| params.get().to_owned())));
    });
    let upstream = Upstream::start(settings);
    ready(&upstream).await;
    let subscribe = Request::new("resources/subscribe").with("uri", "\"a://1\"");
    for _ in 0..2 {
        soon(upstream.subscribe(&subscribe, "a://1")).await.unwrap();
    }
    let wanted = |uris: Value| {
        move |seen: &Seen| {
            seen.method() == "subscriptions/listen"
                && seen.body["params"]["notifications"]["resourceSubscriptions"] == uris
        }
    };
    server.wait_for(wanted(json!(["a://1"]))).await;
    soon(upstream.unsubscribe("a://1")).await.unwrap();
    soon(upstream.unsubscribe("a://1")).await.unwrap();
    let listens = |seen: &Seen| seen.method() == "subscriptions/listen";
    let last = server.wait_for(move |seen| {
        listens(seen) && seen.body["params"]["notifications"].get("resourceSubscriptions").is_none()
    });
    assert_eq!(last.await.body["params"]["notifications"], json!({"resourcesListChanged": true}));
    assert!(told.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_forwarded_request_names_itself_in_its_headers() {
    let server = Server::start(|seen| match seen.method() {
        "prompts/get" | "resources/read" | "completion/complete" => seen.result(json!({"resultType": "complete"})),
        _ => listing(seen).unwrap_or_else(|| empty(500)),
    })
    .await;
    let upstream = Upstream::start(settings(&server.url));
    ready(&upstream).await;
    for (method, params, name) in [
        ("prompts/get", r#"{"name":"p"}"#, "p"),
        ("resources/read", r#"{"uri":"a://1"}"#, "a://1"),
        ("completion/complete", r#"{"ref":{}}"#, ""),
    ] {
        let request = Request::with_params(method, Some(params)).unwrap();
        soon(upstream.request(&request, CancellationToken::new(), &Yes::default())).await.unwrap();
        let seen = server.seen(method).pop().unwrap();
        assert_eq!((seen.header("mcp-method"), seen.header("mcp-name")), (method, name));
    }
}

#[tokio::test]
async fn nothing_is_sent_in_a_session_before_what_its_server_tells_unasked_is_heard() {
    let server = Server::start(|seen| match seen.http.as_str() {
        "GET" => events(String::new(), Ending::Never),
        _ => legacy(seen, "s1").unwrap_or_else(|| seen.result(json!({"resources": [], "prompts": []}))),
    })
    .await;
    server.let_streams_wait(true);
    let mut settings = settings(&server.url);
    let Transport::Http(http) = &mut settings.transport else { unreachable!() };
    http.listen_patience = Duration::from_secs(3_600);
    let upstream = Upstream::start(settings);
    server.wait_for(|seen| seen.http == "GET").await;
    // Long enough for a request that does not wait.
    let early = server.wait_for(|seen| seen.method() == "tools/list");
    assert!(tokio::time::timeout(Duration::from_millis(100), early).await.is_err());
    server.let_streams_wait(false);
    ready(&upstream).await;
    assert_eq!(server.seen("tools/list").len(), 1);
}

#[tokio::test]
async fn a_server_that_says_nothing_of_its_stream_is_used_all_the_same() {
    let server = Server::start(|seen| {
        legacy(seen, "s1").unwrap_or_else(|| seen.result(json!({"resources": [], "prompts": []})))
    })
    .await;
    server.let_streams_wait(true);
    let mut settings = settings(&server.url);
    let Transport::Http(http) = &mut settings.transport else { unreachable!() };
    http.listen_patience = Duration::from_millis(1);
    ready(&Upstream::start(settings)).await;
    assert_eq!(server.seen("tools/list").len(), 1);
}

#[tokio::test]
async fn what_comes_on_the_stream_of_a_call_belongs_to_it() {
    let server = Server::start(|seen| {
        if let Some(answer) = legacy(seen, "s1") {
            return answer;
        }
        if seen.method() == "tools/call" {
            let message = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}});
            let question = json!({"jsonrpc": "2.0", "id": 9, "method": "roots/list"});
            return events(format!("{}{}", data(&message), data(&question)), Ending::Never);
        }
        empty(202)
    })
    .await;
    let mut settings = settings(&server.url);
    settings.scope = Scope { is_private: true, can_be_asked: true };
    settings.declared = Declared::These(raw(r#"{"roots":{"listChanged":true}}"#));
    let upstream = Upstream::start(settings);
    ready(&upstream).await;
    assert_eq!(server.seen("initialize")[0].body["params"]["capabilities"], json!({"roots": {"listChanged": true}}));
    let caller = Arc::new(Yes::default());
    let running = {
        let (upstream, caller) = (upstream.clone(), caller.clone());
        tokio::spawn(async move { upstream.request(&call("t", "{}").into(), CancellationToken::new(), &*caller).await })
    };
    let answer = server.wait_for(|seen| seen.body["result"]["roots"].is_array()).await;
    assert_eq!(answer.body, json!({"jsonrpc": "2.0", "id": 9, "result": {"roots": [], "n": 1.0}}));
    assert_eq!(answer.header("mcp-session-id"), "s1");
    assert_eq!(*caller.0.lock().unwrap(), [r#"notifications/message {"level":"info"}"#, "roots/list"]);
    running.abort();
}

#[tokio::test]
async fn a_question_that_comes_with_the_answer_is_refused() {
    let server = Server::start(|seen| {
        if let Some(answer) = legacy(seen, "s1") {
            return answer;
        }
        if seen.method() == "tools/call" {
            let question = json!({"jsonrpc": "2.0", "id": 9, "method": "roots/list"});
            let answer = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {}});
            return events(format!("{}{}", data(&question), data(&answer)), Ending::Cleanly);
        }
        empty(202)
    })
    .await;
    let mut settings = settings(&server.url);
    settings.scope = Scope { is_private: true, can_be_asked: true };
    let upstream = Upstream::start(settings);
    ready(&upstream).await;
    let caller = Yes::default();
    let reply = soon(upstream.request(&call("t", "{}").into(), CancellationToken::new(), &caller)).await;
    result(reply.map(|reply| reply.answer));
    let refusal = server.wait_for(|seen| seen.body["id"] == 9).await;
    assert_eq!(refusal.body["error"]["code"], -32603);
    assert!(caller.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_legacy_server_is_told_the_level_before_the_call_that_wants_it() {
    let server = Server::start(|seen| match (seen.http.as_str(), seen.method()) {
        ("POST", "initialize") => seen.result(json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "logging": {}}})),
        ("POST", "server/discover") => seen.error(400, -32000, "?"),
        ("POST", "tools/list") => seen.result(json!({"tools": [{"name": "t"}]})),
        ("POST", "tools/call" | "logging/setLevel") => seen.result(json!({})),
        ("POST", _) => empty(202),
        _ => empty(405),
    })
    .await;
    let upstream = Upstream::start(settings(&server.url));
    ready(&upstream).await;
    for level in ["info", "error", "debug"] {
        let request = Request { log_level: Some(level.to_owned()), ..call("t", "{}").into() };
        let reply = soon(upstream.request(&request, CancellationToken::new(), &Yes::default())).await;
        result(reply.map(|reply| reply.answer));
    }
    // The leg is shared: the most talkative level counts.
    let levels: Vec<_> =
        server.seen("logging/setLevel").iter().map(|seen| seen.body["params"]["level"].clone()).collect();
    assert_eq!(levels, [json!("info"), json!("debug")]);
}

fn telling(session: &'static str) -> impl Fn(&Seen) -> axum::response::Response {
    move |seen| match (seen.http.as_str(), seen.method()) {
        ("POST", "initialize") => {
            let capabilities = json!({"tools": {}, "logging": {}, "resources": {"subscribe": true}});
            let mut response = seen.result(json!({"protocolVersion": "2025-11-25", "capabilities": capabilities}));
            response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
            response
        }
        _ => legacy(seen, session).unwrap_or_else(|| seen.result(json!({}))),
    }
}

#[tokio::test]
async fn a_new_session_is_told_what_the_forgotten_one_was() {
    let server = Server::start(telling("s1")).await;
    let upstream = Upstream::start(settings(&server.url));
    ready(&upstream).await;
    let subscribe = Request::new("resources/subscribe").with("uri", "\"a://1\"");
    soon(upstream.subscribe(&subscribe, "a://1")).await.unwrap();
    let call = || Request { log_level: Some("info".to_owned()), ..call("t", "{}").into() };
    soon(upstream.request(&call(), CancellationToken::new(), &Yes::default())).await.unwrap();
    server.change(telling("s2"));
    for _ in 0..2 {
        soon(upstream.request(&call(), CancellationToken::new(), &Yes::default())).await.unwrap();
    }
    for (method, member, value) in [("resources/subscribe", "uri", "a://1"), ("logging/setLevel", "level", "info")] {
        let told = |seen: &Seen| seen.method() == method && seen.header("mcp-session-id") == "s2";
        assert_eq!(server.wait_for(told).await.body["params"][member], value);
    }
}

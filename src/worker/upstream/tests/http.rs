//! HTTP legs: eras, sessions, statuses, headers, cancellation.

use crate::model::revision::Revision;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::super::{
    Answer, CallError, HttpSettings, RestartSettings, Secret, Status, TimeoutKind, Transport, Upstream,
    UpstreamSettings,
};
use super::http_server::{Ending, Seen, Server, empty, events, json_body, legacy, modern};
use super::{call, down, error_code, limits, lost, not_started, ready, result, run, soon, tool_names};

pub(super) fn settings(url: &str) -> UpstreamSettings {
    let mut http = HttpSettings::new(url);
    http.resume_delay = Duration::from_millis(1);
    let mut settings = UpstreamSettings::new("web", Transport::Http(http));
    settings.limits = limits();
    settings.restart = RestartSettings { initial_delay: Duration::from_millis(1), ..RestartSettings::default() };
    settings
}

async fn start(server: &Server) -> Upstream {
    let upstream = Upstream::start(settings(&server.url));
    ready(&upstream).await;
    upstream
}

fn echo(seen: &Seen) -> axum::response::Response {
    seen.result(json!({"resultType": "complete", "echo": seen.body["params"]["arguments"]}))
}

#[tokio::test]
async fn a_modern_server_is_found_and_each_request_carries_its_headers_and_meta() {
    let server = Server::start(|seen| modern(seen).unwrap_or_else(|| echo(seen))).await;
    let mut settings = settings(&server.url);
    if let Transport::Http(http) = &mut settings.transport {
        http.headers = vec![
            ("Authorization".to_owned(), Secret::new("Bearer canary")),
            ("Mcp-Method".to_owned(), Secret::new("forged")),
        ];
    }
    let upstream = Upstream::start(settings);
    let Status::Ready(facts) = ready(&upstream).await else { unreachable!() };
    assert_eq!(facts.revision, Revision::MODERN);
    assert_eq!(result(run(&upstream, call("t", "{\"n\":1}")).await), r#"{"echo":{"n":1},"resultType":"complete"}"#);
    result(run(&upstream, call("größe", "{}")).await);
    let calls = server.seen("tools/call");
    assert_eq!(calls[0].header("mcp-protocol-version"), "2026-07-28");
    assert_eq!(calls[0].header("mcp-method"), "tools/call");
    assert_eq!(calls[0].header("mcp-name"), "t");
    assert_eq!(calls[0].header("authorization"), "Bearer canary");
    assert_eq!(calls[0].header("mcp-session-id"), "");
    assert_eq!(calls[0].body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(calls[1].header("mcp-name"), "=?base64?Z3LDtsOfZQ==?=");
    assert!(server.seen("initialize").is_empty());
    soon(upstream.shutdown()).await;
}

#[tokio::test]
async fn a_legacy_server_is_found_and_its_session_is_kept_and_ended() {
    let server = Server::start(|seen| legacy(seen, "s-1").unwrap_or_else(|| echo(seen))).await;
    let upstream = start(&server).await;
    assert_eq!(tool_names(&upstream), ["t"]);
    result(run(&upstream, call("t", "{}")).await);
    let seen = &server.seen("tools/call")[0];
    assert_eq!((seen.header("mcp-session-id"), seen.header("mcp-protocol-version")), ("s-1", "2025-11-25"));
    assert_eq!(server.seen("notifications/initialized").len(), 1);
    soon(upstream.shutdown()).await;
    let ended = server.wait_for(|seen| seen.http == "DELETE").await;
    assert_eq!(ended.header("mcp-session-id"), "s-1");
}

#[tokio::test]
async fn a_server_that_hangs_on_discovery_is_initialized() {
    let server = Server::start(|seen| match seen.method() {
        "server/discover" => events(String::new(), Ending::Never),
        _ => legacy(seen, "s").unwrap_or_else(|| echo(seen)),
    })
    .await;
    let mut settings = settings(&server.url);
    if let Transport::Http(http) = &mut settings.transport {
        http.discover_timeout = Duration::from_millis(20);
    }
    let upstream = Upstream::start(settings);
    ready(&upstream).await;
}

#[tokio::test]
async fn a_forgotten_session_is_opened_anew_and_the_call_is_sent_once_more() {
    for gone in [(404, "Session not found"), (400, "Bad Request: No valid session ID provided")] {
        let server = Server::start(|seen| legacy(seen, "s-1").unwrap_or_else(|| echo(seen))).await;
        let upstream = start(&server).await;
        server.change(move |seen| match seen.header("mcp-session-id") {
            "s-1" => seen.error(gone.0, -32000, gone.1),
            _ => legacy(seen, "s-2").unwrap_or_else(|| echo(seen)),
        });
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let upstream = upstream.clone();
                tokio::spawn(async move { run(&upstream, call("t", "{}")).await })
            })
            .collect();
        for running in calls {
            result(soon(running).await.unwrap());
        }
        let served = server.seen("tools/call").iter().filter(|seen| seen.header("mcp-session-id") == "s-2").count();
        assert_eq!(served, 8);
        assert_eq!(server.seen("initialize").len(), 2, "eight calls opened one session");
        soon(upstream.tools().wait_for(|snapshot| snapshot.generation == 2)).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_forgets_each_session_gets_a_call_twice_at_most() {
    let server = Server::start(|seen| legacy(seen, "s").unwrap_or_else(|| echo(seen))).await;
    let upstream = start(&server).await;
    server.change(|seen| match seen.method() {
        "tools/call" => empty(404),
        _ => legacy(seen, "s").unwrap_or_else(|| echo(seen)),
    });
    not_started(run(&upstream, call("t", "{}")).await);
    assert_eq!(server.seen("tools/call").len(), 2);
}

#[tokio::test]
async fn a_refused_connection_is_a_call_that_did_not_start() {
    // Taken, so that no other test gets it, and nobody listens on it.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let url = format!("http://{}/mcp", taken.local_addr().unwrap());
    let mut settings = settings(&url);
    settings.limits.start_timeout = Duration::from_millis(50);
    let upstream = Upstream::start(settings);
    // A call that comes before the first try has failed hears that the server is still starting.
    assert!(down(&upstream).await.contains("cannot be reached"));
    assert!(not_started(run(&upstream, call("t", "{}")).await).contains("cannot be reached"));
}

#[tokio::test]
async fn a_server_that_went_away_is_down_until_it_is_back() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = |listener| {
        let app = axum::Router::new().fallback(|body: String| async move {
            let body = serde_json::from_str(&body).unwrap_or_default();
            let seen = Seen { http: "POST".to_owned(), headers: axum::http::HeaderMap::new(), body };
            let mut response = modern(&seen).unwrap_or_else(|| echo(&seen));
            response.headers_mut().insert("connection", "close".parse().unwrap());
            response
        });
        tokio::spawn(async move { axum::serve(listener, app).await })
    };
    let serving = serve(listener);
    let upstream = Upstream::start(settings(&format!("http://{address}/mcp")));
    ready(&upstream).await;
    result(run(&upstream, call("t", "{}")).await);
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    not_started(run(&upstream, call("t", "{}")).await);
    down(&upstream).await;
    serve(tokio::net::TcpListener::bind(address).await.unwrap());
    result(run(&upstream, call("t", "{}")).await);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Server::start(|seen| modern(seen).unwrap_or_else(|| echo(seen))).await;
    let target = other.url.clone();
    let server = Server::start(|seen| modern(seen).unwrap_or_else(|| echo(seen))).await;
    let upstream = start(&server).await;
    for status in [301, 302, 303, 307, 308] {
        let target = target.clone();
        server.change(move |_| {
            let mut response = empty(status);
            response.headers_mut().insert("location", target.parse().unwrap());
            response
        });
        assert!(not_started(run(&upstream, call("t", "{}")).await).contains("redirects are not followed"));
    }
    assert!(other.seen("tools/call").is_empty());
}

#[tokio::test]
async fn each_status_says_whether_the_call_may_have_run() {
    let server = Server::start(|seen| modern(seen).unwrap_or_else(|| echo(seen))).await;
    let upstream = start(&server).await;
    for status in [401, 403, 404, 405, 413, 415, 421, 429] {
        server.change(move |_| empty(status));
        assert!(not_started(run(&upstream, call("t", "{}")).await).contains(&status.to_string()));
    }
    for status in [400, 408, 409, 500, 502, 503, 504, 202, 204] {
        server.change(move |_| empty(status));
        lost(run(&upstream, call("t", "{}")).await);
    }
    for status in [200, 400, 404, 500] {
        server.change(move |seen| seen.error(status, -32602, "unknown tool"));
        assert_eq!(error_code(run(&upstream, call("t", "{}")).await), -32602);
    }
    server.change(|_| json_body(500, json!({"error": {"code": 1}})));
    lost(run(&upstream, call("t", "{}")).await);
}

#[tokio::test]
async fn an_answer_that_is_none_is_lost() {
    let server = Server::start(|seen| modern(seen).unwrap_or_else(|| echo(seen))).await;
    let upstream = start(&server).await;
    server.change(|_| json_body(200, json!({"jsonrpc": "2.0", "id": 999_999, "result": {}})));
    lost(run(&upstream, call("t", "{}")).await);
    server.change(|_| json_body(200, json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700}})));
    assert_eq!(error_code(run(&upstream, call("t", "{}")).await), -32700);
    server.change(|_| json_body(200, json!("hello")));
    lost(run(&upstream, call("t", "{}")).await);
    server.change(|_| axum::response::Response::new("<html>".into()));
    lost(run(&upstream, call("t", "{}")).await);
}

#[tokio::test]
async fn a_result_keeps_its_bytes_and_its_limit() {
    let server = Server::start(|seen| modern(seen).unwrap_or_else(|| echo(seen))).await;
    let mut settings = settings(&server.url);
    settings.limits.max_result_bytes = 1_000;
    let upstream = Upstream::start(settings);
    ready(&upstream).await;
    server.change(|seen| {
        let body = format!(r#"{{"result": {{"b":1.0, "a":[ ] }},"jsonrpc":"2.0","id":{}}}"#, seen.body["id"]);
        let response = axum::response::Response::builder().header("content-type", "application/json");
        response.body(body.into()).unwrap()
    });
    assert_eq!(result(run(&upstream, call("t", "{}")).await), r#"{"b":1.0, "a":[ ] }"#);
    for bytes in [2_000, 200_000] {
        server.change(move |seen| seen.result(json!({"text": "x".repeat(bytes)})));
        assert_eq!(error_code(run(&upstream, call("t", "{}")).await), -31413);
    }
    for kind in ["task", "input_required"] {
        server.change(move |seen| seen.result(json!({"resultType": kind})));
        assert_eq!(result(run(&upstream, call("t", "{}")).await), format!(r#"{{"resultType":"{kind}"}}"#));
    }
}

#[tokio::test]
async fn a_legacy_call_is_cancelled_by_a_notification() {
    let server =
        Server::start(|seen| legacy(seen, "s").unwrap_or_else(|| events(": on it\n\n".to_owned(), Ending::Never)))
            .await;
    let upstream = start(&server).await;
    let cancel = CancellationToken::new();
    let running = {
        let (upstream, cancel) = (upstream.clone(), cancel.clone());
        tokio::spawn(async move { upstream.call(call("t", "{}"), cancel, |_| {}).await })
    };
    let request = server.wait_for(|seen| seen.method() == "tools/call").await;
    cancel.cancel();
    assert_eq!(soon(running).await.unwrap().unwrap_err(), CallError::Cancelled { dispatched: true });
    let notification = server.wait_for(|seen| seen.method() == "notifications/cancelled").await;
    assert_eq!(notification.body["params"]["requestId"], request.body["id"]);
}

#[tokio::test]
async fn a_modern_call_is_cancelled_by_closing_its_stream() {
    let (closed, mut is_closed) = tokio::sync::mpsc::channel::<()>(1);
    let closed = std::sync::Mutex::new(Some(closed));
    let server = Server::start(move |seen| {
        modern(seen).unwrap_or_else(|| {
            // The sender lives as long as the body does.
            let held = closed.lock().unwrap().take();
            let body = futures_util::stream::once(async move {
                let _held = held;
                std::future::pending::<Result<axum::body::Bytes, std::io::Error>>().await
            });
            let response = axum::response::Response::builder().header("content-type", "text/event-stream");
            response.body(axum::body::Body::from_stream(body)).unwrap()
        })
    })
    .await;
    let upstream = start(&server).await;
    let mut asked = call("t", "{}");
    asked.attempt_timeout = Some(Duration::from_millis(50));
    let error = run(&upstream, asked).await.unwrap_err();
    assert_eq!(error, CallError::TimedOut { kind: TimeoutKind::Attempt });
    assert_eq!(soon(is_closed.recv()).await, None);
    assert!(server.seen("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn settings_that_cannot_work_fail_for_good_and_name_no_secret() {
    for url in ["ftp://127.0.0.1/", "not a url"] {
        let upstream = Upstream::start(settings(url));
        assert!(down(&upstream).await.contains("no http or https address"));
        assert!(matches!(&*upstream.status().borrow(), Status::Failed { .. }));
    }
    let mut bad = settings("http://127.0.0.1:1/?token=canary");
    if let Transport::Http(http) = &mut bad.transport {
        http.headers = vec![("X-Key".to_owned(), Secret::new("canary\n"))];
    }
    assert!(!format!("{:?}", bad.transport).contains("canary\\n"));
    let reason = down(&Upstream::start(bad)).await;
    assert!(reason.contains("X-Key") && !reason.contains("canary"), "{reason}");
    let reason = down(&Upstream::start(settings("http://127.0.0.1:1/?token=canary"))).await;
    assert!(!reason.contains("canary"), "{reason}");
}

#[tokio::test]
async fn a_failed_login_is_said_and_initialize_is_not_tried() {
    let server = Server::start(|_| empty(401)).await;
    assert!(down(&Upstream::start(settings(&server.url))).await.contains("401"));
    assert!(server.seen("initialize").is_empty());
}

#[tokio::test]
async fn arguments_are_repeated_in_headers_where_the_tool_says_so() {
    let server = Server::start(|seen| match seen.method() {
        "tools/list" => {
            let schema = |of| {
                json!({"type": "object", "properties": {"region": of, "near": {"type": "object",
                "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}}}})
            };
            let tool = |name, of| json!({"name": name, "inputSchema": schema(of)});
            seen.result(json!({"resultType": "complete", "tools": [
                tool("t", json!({"type": "string", "x-mcp-header": "Region"})),
                tool("twice", json!({"type": "string", "x-mcp-header": "count"})),
                tool("empty", json!({"type": "string", "x-mcp-header": ""})),
                tool("float", json!({"type": "number", "x-mcp-header": "Region"})),
            ]}))
        }
        _ => modern(seen).unwrap_or_else(|| echo(seen)),
    })
    .await;
    let upstream = start(&server).await;
    assert_eq!(tool_names(&upstream), ["t"], "tools with invalid annotations are left out");
    let big = "12345678901234567890123";
    result(run(&upstream, call("t", &format!(r#"{{"region":"é","near":{{"count":{big}}}}}"#))).await);
    result(run(&upstream, call("t", r#"{"region":null,"near":{"count":true}}"#)).await);
    let calls = server.seen("tools/call");
    assert_eq!((calls[0].header("mcp-param-region"), calls[0].header("mcp-param-count")), ("=?base64?w6k=?=", big));
    assert_eq!((calls[1].header("mcp-param-region"), calls[1].header("mcp-param-count")), ("", "true"));
}

#[tokio::test]
async fn pages_of_tools_are_followed_and_a_repeated_cursor_is_not() {
    let server = Server::start(|seen| {
        let page = |tools, next| {
            seen.result(json!({"resultType": "complete", "tools": [{"name": tools}], "nextCursor": next}))
        };
        match (seen.method(), seen.body["params"]["cursor"].as_str()) {
            ("tools/list", None) => page("a", Some("2")),
            ("tools/list", Some("2")) => page("b", Some("3")),
            ("tools/list", Some(_)) => page("c", None),
            _ => modern(seen).unwrap_or_else(|| echo(seen)),
        }
    })
    .await;
    let upstream = start(&server).await;
    assert_eq!(tool_names(&upstream), ["a", "b", "c"]);
    server.change(|seen| match seen.method() {
        "tools/list" => seen.result(json!({"tools": [], "nextCursor": "same"})),
        _ => modern(seen).unwrap_or_else(|| echo(seen)),
    });
    assert!(down(&Upstream::start(settings(&server.url))).await.contains("repeats a cursor"));
}

#[tokio::test]
async fn two_callers_never_get_each_others_answers() {
    let server = Server::start(|seen| legacy(seen, "s").unwrap_or_else(|| echo(seen))).await;
    let upstream = start(&server).await;
    let calls: Vec<_> = (0..50)
        .map(|n| {
            let upstream = upstream.clone();
            tokio::spawn(async move { (n, run(&upstream, call("t", &format!("{{\"n\":{n}}}"))).await) })
        })
        .collect();
    for running in calls {
        let (n, answer) = soon(running).await.unwrap();
        assert!(matches!(&answer, Ok(Answer::Result(result)) if result.contains(&format!("{{\"n\":{n}}}"))));
    }
}

//! HTTP legs whose answers are event streams: progress, cuts, resumption, unasked notifications.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::{Progress, Upstream};
use super::http::settings;
use super::http_server::{Ending, Seen, Server, empty, events, legacy, modern};
use super::{call, error_code, lost, ready, result, run, soon, tool_names};

fn data(message: &Value) -> String {
    format!("data: {message}\n\n")
}

fn answer(seen: &Seen) -> String {
    data(&json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {"resultType": "complete", "ok": true}}))
}

async fn start(server: &Server) -> Upstream {
    let upstream = Upstream::start(settings(&server.url));
    ready(&upstream).await;
    upstream
}

#[tokio::test]
async fn an_answer_on_a_stream_is_an_answer_and_progress_comes_before_it() {
    let server = Server::start(|seen| {
        modern(seen).unwrap_or_else(|| {
            let token = &seen.body["params"]["_meta"]["progressToken"];
            let progress = |token: &Value, n: i32| {
                data(&json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": n}}))
            };
            let foreign = data(&json!({"jsonrpc": "2.0", "id": 999_999, "result": {"ok": false}}));
            let text = format!(
                ": hello\n\nevent: other\n{foreign}{}{}{foreign}data: garbage\n\n{}{}",
                progress(token, 1),
                progress(&json!(999_999), 5),
                progress(token, 2),
                answer(seen),
            );
            events(text, Ending::Never)
        })
    })
    .await;
    let upstream = start(&server).await;
    let seen = Mutex::new(Vec::new());
    let on_progress = |progress: Progress| seen.lock().unwrap().push(progress.progress);
    let answer = soon(upstream.call(call("t", "{}"), CancellationToken::new(), on_progress)).await;
    assert_eq!(result(answer), r#"{"ok":true,"resultType":"complete"}"#);
    assert_eq!(*seen.lock().unwrap(), [1.0, 2.0]);
}

#[tokio::test]
async fn a_stream_that_breaks_without_event_ids_is_lost_and_the_call_is_not_sent_again() {
    for ending in [|| Ending::Cleanly, || Ending::Cut] {
        let server = Server::start(move |seen| {
            legacy(seen, "s").unwrap_or_else(|| events(": working\n\n".to_owned(), ending()))
        })
        .await;
        let upstream = start(&server).await;
        lost(run(&upstream, call("t", "{}")).await);
        assert_eq!(server.seen("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn a_modern_stream_that_breaks_is_never_resumed() {
    let server =
        Server::start(|seen| modern(seen).unwrap_or_else(|| events("id: 1\ndata\n\n".to_owned(), Ending::Cut))).await;
    let upstream = start(&server).await;
    lost(run(&upstream, call("t", "{}")).await);
    assert!(server.seen("").is_empty(), "no GET was sent");
}

/// A legacy server that primes the stream of a call, ends it, and answers on the resumed stream number `after`.
async fn polling(after: usize) -> (Server, Arc<AtomicUsize>) {
    let resumed = Arc::new(AtomicUsize::new(0));
    let count = resumed.clone();
    let asked = Mutex::new(None::<Seen>);
    let server = Server::start(move |seen| {
        if seen.http == "GET" && !seen.header("last-event-id").is_empty() {
            let n = count.fetch_add(1, Ordering::SeqCst) + 1;
            let asked = asked.lock().unwrap().clone().unwrap();
            return match n {
                n if n == after => events(answer(&asked), Ending::Cleanly),
                // An error status and a stream with nothing new on it count alike.
                n if n % 2 == 0 => empty(503),
                _ => events(String::new(), Ending::Cleanly),
            };
        }
        legacy(seen, "s").unwrap_or_else(|| {
            *asked.lock().unwrap() = Some(seen.clone());
            events("id: e-1\nretry: 1\ndata: \n\n".to_owned(), Ending::Cut)
        })
    })
    .await;
    (server, resumed)
}

#[tokio::test]
async fn a_broken_legacy_stream_is_resumed_after_its_last_event() {
    let (server, resumed) = polling(3).await;
    let upstream = start(&server).await;
    result(run(&upstream, call("t", "{}")).await);
    assert_eq!(resumed.load(Ordering::SeqCst), 3);
    assert_eq!(server.seen("tools/call").len(), 1, "the call itself was sent once");
    let get = server.wait_for(|seen| seen.header("last-event-id") == "e-1").await;
    assert_eq!(get.header("mcp-session-id"), "s");
}

#[tokio::test]
async fn a_stream_that_brings_nothing_new_is_resumed_a_few_times_only() {
    let (server, resumed) = polling(usize::MAX).await;
    let upstream = start(&server).await;
    assert!(lost(run(&upstream, call("t", "{}")).await).contains("could not be resumed"));
    assert_eq!(resumed.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn an_answer_over_the_limit_on_a_stream_is_an_error_of_ours() {
    let server = Server::start(|seen| {
        let big = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {"text": "x".repeat(200_000)}});
        modern(seen).unwrap_or_else(|| events(data(&big), Ending::Never))
    })
    .await;
    let mut settings = settings(&server.url);
    settings.limits.max_result_bytes = 1_000;
    let upstream = Upstream::start(settings);
    ready(&upstream).await;
    assert_eq!(error_code(run(&upstream, call("t", "{}")).await), -31413);
}

#[tokio::test]
async fn a_changed_list_is_told_on_the_stream_of_a_legacy_session() {
    let changed = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n\
                   data: {\"jsonrpc\":\"2.0\",\"id\":\"ping-1\",\"method\":\"ping\"}\n\n";
    let lists = AtomicUsize::new(0);
    let server = Server::start(move |seen| match (seen.http.as_str(), seen.method()) {
        ("GET", _) => events(changed.to_owned(), Ending::Never),
        ("POST", "tools/list") => {
            let n = lists.fetch_add(1, Ordering::SeqCst);
            seen.result(json!({"tools": [{"name": format!("t{n}")}]}))
        }
        ("POST", "") => empty(202),
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    let upstream = start(&server).await;
    soon(upstream.tools().wait_for(|snapshot| snapshot.generation == 2)).await.unwrap();
    assert_eq!(tool_names(&upstream), ["t1"]);
    let pong = server.wait_for(|seen| seen.body["id"] == "ping-1").await;
    assert_eq!(pong.body["result"], json!({}));
}

#[tokio::test]
async fn a_changed_list_is_told_on_a_modern_subscription() {
    let lists = AtomicUsize::new(0);
    let server = Server::start(move |seen| match seen.method() {
        "server/discover" => seen.result(json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": true}}})),
        "tools/list" => {
            let n = lists.fetch_add(1, Ordering::SeqCst);
            seen.result(json!({"resultType": "complete", "tools": [{"name": format!("t{n}")}]}))
        }
        _ => {
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            events(data(&changed), Ending::Never)
        }
    })
    .await;
    let upstream = start(&server).await;
    soon(upstream.tools().wait_for(|snapshot| snapshot.generation == 2)).await.unwrap();
    let listen = &server.seen("subscriptions/listen")[0];
    assert_eq!(listen.header("mcp-method"), "subscriptions/listen");
    assert_eq!(tool_names(&upstream), ["t1"]);
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_noticed_while_nobody_calls() {
    let server = Server::start(|seen| match seen.http.as_str() {
        "GET" => empty(404),
        _ => legacy(seen, "s-1").unwrap(),
    })
    .await;
    let upstream = start(&server).await;
    server.change(|seen| match seen.http.as_str() {
        "GET" => empty(405),
        _ => legacy(seen, "s-2").unwrap(),
    });
    soon(upstream.tools().wait_for(|snapshot| snapshot.generation >= 2)).await.unwrap();
    assert!(server.seen("initialize").len() >= 2);
}

#[tokio::test]
async fn a_silent_stream_ends_with_the_idle_time_out() {
    let server =
        Server::start(|seen| modern(seen).unwrap_or_else(|| events(": hm\n\n".to_owned(), Ending::Never))).await;
    let upstream = start(&server).await;
    let mut asked = call("t", "{}");
    asked.idle_timeout = Some(Duration::from_millis(30));
    assert_eq!(run(&upstream, asked).await.unwrap_err().code(), "idle_timed_out");
}

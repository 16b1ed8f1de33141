//! Tools that are HTTP requests, against a server of this test's own: what arrives there, what callers get, what is tried
//! again and what is not, and where a request never goes. The addresses and templates as such are tested where they are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::cases_scene::{Caller, execution, id_of, text};
use crate::support::program::{Program, Setup};
use crate::support::servers::Nobody;

/// One request as it arrived.
#[derive(Clone, Debug)]
struct Arrived {
    method: String,
    target: String,
    headers: HashMap<String, String>,
    body: String,
}

/// What the server does with a request.
enum Reply {
    /// Sends these bytes and closes.
    Bytes(Vec<u8>),
    /// Sends these bytes and then nothing, with the connection open.
    Hang(Vec<u8>),
}

type Script = dyn Fn(&Arrived, usize) -> Reply + Send + Sync;

/// A foreign HTTP service. Its script gets each request and how many had the same path before it.
struct Service {
    port: u16,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Service {
    async fn start(script: impl Fn(&Arrived, usize) -> Reply + Send + Sync + 'static) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let arrived: Arc<Mutex<Vec<Arrived>>> = Arc::default();
        let (script, log): (Arc<Script>, _) = (Arc::new(script), arrived.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, script.clone(), log.clone()));
            }
        });
        Service { port, arrived }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }
}

async fn answer(mut stream: TcpStream, script: Arc<Script>, log: Arc<Mutex<Vec<Arrived>>>) {
    let Some(request) = read(&mut stream).await else { return };
    let before = {
        let mut log = log.lock().unwrap();
        let path = |target: &str| target.split('?').next().unwrap().to_owned();
        let before = log.iter().filter(|earlier| path(&earlier.target) == path(&request.target)).count();
        log.push(request.clone());
        before
    };
    match script(&request, before) {
        Reply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Reply::Hang(bytes) => {
            let _ = stream.write_all(&bytes).await;
            // Until the other side gives up.
            let _ = stream.read(&mut [0; 1]).await;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Arrived> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head_end + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(bytes[head_end + 4..].to_vec()).unwrap();
    Some(Arrived { method, target, headers, body })
}

fn reply(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n", body.len());
    Reply::Bytes([head.as_bytes(), body].concat())
}

/// `serve` with these tools, quick to try again.
async fn serve(tools: &str) -> Program {
    let config = format!("[defaults]\nretry = {{ initial_interval = \"10ms\", jitter = 0.0 }}\n{tools}");
    Setup::new(&config).serve().await
}

fn tool(name: &str, url: &str, more: &str) -> String {
    format!("[tools.{name}]\nurl = \"{url}\"\nallow_private = true\n{more}\n")
}

/// How the execution ended, and with which error code.
async fn ended(program: &Program, answer: &Value) -> (String, Value) {
    let id = answer["result"]["_meta"]["durable-mcp/execution"]["id"]
        .as_str()
        .or(answer["error"]["data"]["execution_id"].as_str())
        .unwrap_or_else(|| panic!("names no execution: {answer}"));
    let rows = program.executions().await;
    let row = rows.into_iter().find(|row| row["id"] == id).unwrap();
    (row["state"].as_str().unwrap().to_owned(), row["error"]["code"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_carries_the_arguments_and_the_keys_and_its_answer_is_the_result() {
    let service = Service::start(|request, _| match request.target.as_str() {
        "/raw" => reply("200 OK", "Content-Type: application/json\r\n", r#"{"n":1.0,"id":12345678901234567890123}"#),
        _ => reply("201 Created", "", "made"),
    })
    .await;
    let program = serve(&format!(
        "{}{}",
        tool("raw", &service.url("/raw"), "key_argument = \"request_id\""),
        tool(
            "made",
            &service.url("/v1/{{arguments.kind}}/new?dry={{arguments.dry}}"),
            "method = \"PUT\"\nheaders = { Authorization = \"Bearer t-1\", X-Opt = \"{{arguments.opt}}\" }\n\
             query = { tag = \"{{arguments.tags}}\" }\nbody = { text = \"{{arguments.text}}\", key = \"{{effect_key}}\" }",
        ),
    ))
    .await;
    let caller = Caller::modern(program.url());

    let params = r#"{"name":"raw","arguments":{"text":"é\u00e9","n":1.50}}"#;
    let answer = caller.ask(serde_json::from_str(params).unwrap()).await;
    let id = id_of(&answer);
    assert_eq!(text(&answer), r#"{"n":1.0,"id":12345678901234567890123}"#);
    assert_eq!(answer["result"]["structuredContent"]["n"], json!(1.0));
    assert_eq!(execution(&answer)["delivery"], "at_most_once");
    let first = service.arrived()[0].clone();
    assert_eq!((first.method.as_str(), first.target.as_str()), ("POST", "/raw"));
    let sent: Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!(sent, json!({"text": "éé", "n": 1.5, "request_id": id}));
    for (name, value) in [
        ("content-type", "application/json"),
        ("idempotency-key", id.as_str()),
        ("x-durable-mcp-fencing-token", "1"),
        ("x-durable-mcp-execution-id", id.as_str()),
    ] {
        assert_eq!(first.headers[name], value, "{name}");
    }

    let arguments = json!({"kind": "a b/c", "dry": true, "tags": ["x", "y&"], "text": "\"q\"", "opt": null});
    let answer = caller.call("made", arguments).await;
    assert_eq!(text(&answer), "made");
    let second = service.arrived()[1].clone();
    assert_eq!((second.method.as_str(), second.target.as_str()), ("PUT", "/v1/a%20b%2Fc/new?dry=true&tag=x&tag=y%26"));
    assert_eq!(second.body, format!(r#"{{"text":"\"q\"","key":"{}"}}"#, id_of(&answer)));
    assert_eq!(second.headers["authorization"], "Bearer t-1");
    assert!(!second.headers.contains_key("x-opt"), "an absent argument sends no header");

    let answer = caller.call("made", json!({"kind": "..", "dry": 1, "text": "x"})).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).starts_with("Nothing was sent: "), "{answer}");
    assert_eq!(service.arrived().len(), 2);
    let shown = program.setup.cli(&["config", "show"]).await.stdout;
    assert!(!shown.contains("t-1") && shown.contains("Authorization = \"***\""), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_request_is_made_again_with_the_same_key_and_a_writing_one_is_not() {
    let service = Service::start(|_, before| match before {
        0 => reply("500 Internal Server Error", "", "first"),
        _ => reply("200 OK", "", "then"),
    })
    .await;
    let program = serve(&format!(
        "{}{}{}",
        tool("read", &service.url("/read"), "method = \"GET\""),
        tool("write", &service.url("/write"), ""),
        tool("write_again", &service.url("/again"), "delivery = \"at_least_once\""),
    ))
    .await;
    program.process.line_with("tool read  at_least_once (read_only_hint)").await;
    program.process.line_with("tool write  at_most_once (default)").await;
    program.process.line_with("tool write_again  at_least_once (config)").await;
    let caller = Caller::modern(program.url());

    for name in ["read", "write_again"] {
        let answer = caller.call(name, json!({"q": "x y"})).await;
        assert_eq!((text(&answer), &execution(&answer)["attempt"]), ("then", &json!(2)), "{name}");
    }
    let answer = caller.call("write", json!({"q": 1})).await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(text(&answer), "The server answered 500 Internal Server Error. It said:\nfirst");
    assert_eq!(ended(&program, &answer).await, ("completed".to_owned(), Value::Null));

    let arrived = service.arrived();
    let of = |path: &str| arrived.iter().filter(|request| request.target.starts_with(path)).collect::<Vec<_>>();
    assert_eq!((of("/read").len(), of("/again").len(), of("/write").len()), (2, 2, 1));
    assert_eq!(of("/read")[0].target, "/read?q=x+y");
    assert_eq!(of("/read")[0].body, "");
    for path in ["/read", "/again"] {
        let key = |at: usize| of(path)[at].headers["idempotency-key"].clone();
        assert_eq!(key(0), key(1));
        let token = |at: usize| of(path)[at].headers["x-durable-mcp-fencing-token"].clone();
        assert_eq!((token(0).as_str(), token(1).as_str()), ("1", "2"));
    }
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_refusal_is_the_answer_and_retry_after_sets_the_pace() {
    let service = Service::start(|request, before| match (request.target.as_str(), before) {
        ("/down", _) => reply("503 Service Unavailable", "Retry-After: 0\r\n", "still down"),
        ("/paced", 0) => reply("429 Too Many Requests", "Retry-After: 99999\r\n", ""),
        ("/chosen", 0) => reply("409 Conflict", "", ""),
        _ => reply("200 OK", "", "up"),
    })
    .await;
    let program = serve(&format!(
        "[http_tools]\nmax_retry_after = \"300ms\"\n{}{}{}{}",
        tool("down", &service.url("/down"), "method = \"GET\""),
        tool("paced", &service.url("/paced"), "method = \"GET\""),
        tool("chosen", &service.url("/chosen"), "method = \"GET\"\nretry_on_status = [409]"),
        tool("unchosen", &service.url("/down"), "method = \"GET\"\nretry_on_status = [409]"),
    ))
    .await;
    let caller = Caller::modern(program.url());

    let answer = caller.call("down", json!({})).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).ends_with("still down"), "{answer}");
    assert_eq!(execution(&answer)["attempt"], 3);
    let answer = caller.call("paced", json!({})).await;
    assert_eq!(text(&answer), "up");
    let events = program.events(&id_of(&answer)).await;
    let retried = events.iter().find(|event| event["type"] == "retried").unwrap();
    let leased = events.iter().rfind(|event| event["type"] == "leased").unwrap();
    let at = |event: &Value| event["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let waited_ms = at(leased) - at(retried);
    assert!((300..5_000).contains(&waited_ms), "capped at 300 ms, waited {waited_ms}");
    assert_eq!(text(&caller.call("chosen", json!({})).await), "up");
    assert_eq!(execution(&caller.call("unchosen", json!({})).await)["attempt"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_leads_to_no_other_host_and_repeats_no_write() {
    let other = Service::start(|_, _| reply("200 OK", "", "elsewhere")).await;
    let elsewhere = other.url("/x");
    let service = Service::start(move |request, _| match request.target.as_str() {
        "/away" => reply("302 Found", &format!("Location: {elsewhere}\r\n"), ""),
        "/near" | "/write" => reply("307 Temporary Redirect", "Location: /final\r\n", ""),
        "/round" => reply("302 Found", "Location: /round\r\n", ""),
        _ => reply("200 OK", "", "final"),
    })
    .await;
    let program = serve(&format!(
        "{}{}{}{}",
        tool("away", &service.url("/away"), "method = \"GET\"\nheaders = { Authorization = \"Bearer t-1\" }"),
        tool("near", &service.url("/near"), "method = \"GET\""),
        tool("round", &service.url("/round"), "method = \"GET\""),
        tool("write", &service.url("/write"), ""),
    ))
    .await;
    let caller = Caller::modern(program.url());

    assert_eq!(text(&caller.call("near", json!({})).await), "final");
    for name in ["away", "round", "write"] {
        let answer = caller.call(name, json!({})).await;
        assert_eq!(answer["result"]["isError"], true, "{name}");
        assert!(text(&answer).contains("points to another address"), "{name}: {answer}");
    }
    assert!(other.arrived().is_empty(), "nobody followed to the other host");
    let arrived = service.arrived();
    assert_eq!(arrived.iter().filter(|request| request.target == "/round").count(), 6, "five hops at most");
    assert_eq!(arrived.iter().filter(|request| request.target == "/final").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_after_the_request_left_is_unknown_and_what_never_left_is_not() {
    let half = || b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec();
    let service = Service::start(move |request, before| match (request.target.as_str(), before) {
        ("/cut", _) | ("/read", 0) => Reply::Bytes(half()),
        ("/dropped", _) => Reply::Bytes(Vec::new()),
        ("/slow", _) => Reply::Hang(half()),
        ("/silent", _) => Reply::Hang(Vec::new()),
        _ => reply("200 OK", "", "whole"),
    })
    .await;
    let nobody = Nobody::new();
    let quick = "timeout = { attempt = \"300ms\" }";
    let program = serve(&format!(
        "{}{}{}{}{}{}{}",
        tool("cut", &service.url("/cut"), ""),
        tool("dropped", &service.url("/dropped"), ""),
        tool("slow", &service.url("/slow"), quick),
        tool("silent", &service.url("/silent"), quick),
        tool("read", &service.url("/read"), "method = \"GET\""),
        tool("refused", &format!("{}/", nobody.url()), ""),
        tool("nowhere", "http://no-such-host.invalid/", ""),
    ))
    .await;
    let caller = Caller::modern(program.url());

    for (name, code) in [
        ("cut", "connection_lost"),
        ("dropped", "connection_lost"),
        ("slow", "attempt_timeout"),
        ("silent", "attempt_timeout"),
    ] {
        let answer = caller.call(name, json!({})).await;
        assert_eq!(ended(&program, &answer).await, ("unknown".to_owned(), json!(code)), "{name}");
        let path = format!("/{name}");
        assert_eq!(service.arrived().iter().filter(|request| request.target == path).count(), 1, "{name}: run once");
    }
    assert_eq!(text(&caller.call("read", json!({})).await), "whole");
    // It provably never reached anybody, so even at_most_once tries again, and ends as failed.
    for (name, code) in [("refused", "not_reached"), ("nowhere", "name_not_resolved")] {
        let answer = caller.call(name, json!({})).await;
        assert_eq!(ended(&program, &answer).await, ("failed".to_owned(), json!(code)), "{name}");
    }
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_body_is_cut_at_the_limit() {
    let service = Service::start(|request, _| match request.target.as_str() {
        "/error" => reply("400 Bad Request", "", vec![b'e'; 3 << 20]),
        _ => reply("200 OK", "", vec![b'x'; 3 << 20]),
    })
    .await;
    let program = serve(&format!(
        "{}{}{}",
        tool("huge", &service.url("/huge"), "max_response = \"64KiB\""),
        tool("error", &service.url("/error"), "max_response = \"64KiB\""),
        tool("fits", &service.url("/fits"), "max_response = \"4MiB\""),
    ))
    .await;
    let caller = Caller::modern(program.url());
    let huge = caller.call("huge", json!({})).await;
    assert_eq!(huge["result"]["isError"], true);
    assert!(text(&huge).contains("more than 65536 bytes"), "{huge}");
    let error = caller.call("error", json!({})).await;
    assert!(text(&error).contains("400 Bad Request") && text(&error).len() < 9_000);
    assert_eq!(text(&caller.call("fits", json!({})).await).len(), 3 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_address_needs_permission_and_hints_are_shown_to_clients() {
    let service = Service::start(|_, _| reply("200 OK", "", "{}")).await;
    let url = service.url("/x");
    let refused = Setup::new(&format!("[tools.t]\nurl = \"{url}\"\n")).cli(&["config", "check"]).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.stderr.contains(":2:7: ") && refused.stderr.contains("allow_private = true"), "{}", refused.stderr);

    let listed = format!(
        "[http_tools]\nprivate_hosts = [\"127.0.0.1\"]\n[tools.t]\nurl = \"{url}\"\nmethod = \"HEAD\"\n\
         [tools.u]\nurl = \"{url}\"\nmethod = \"GET\"\nannotations = {{ readOnlyHint = false }}\n"
    );
    let program = Setup::new(&listed).serve().await;
    let caller = Caller::modern(program.url());
    let listing = crate::support::raw_http::Request::modern(program.url(), json!(1), "tools/list", json!({}));
    let listing = listing.exchange(program.url()).await.answer();
    let tools = listing["result"]["tools"].as_array().unwrap();
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[1]["annotations"]["readOnlyHint"], false);
    assert_eq!(text(&caller.call("t", json!({})).await), "The server answered 200 OK.");
    assert_eq!(execution(&caller.call("u", json!({})).await)["delivery"], "at_most_once");
}

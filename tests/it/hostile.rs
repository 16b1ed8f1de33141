//! What hostile and broken clients send, against the real program: every row of `tests/hostile.toml`, what lies below
//! HTTP, clients that are slow on purpose, and clients that open sessions without end. After each of them the next call
//! works, and nothing was stored that was not called.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Connection, Request, Response, open_session};
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::kit_stdio;
use crate::support::store_count::StoreCount;
use crate::support::{DEADLINE, eventually, eventually_async};

#[derive(Deserialize)]
struct Table {
    row: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    transport: String,
    era: String,
    #[serde(default = "newest_legacy")]
    revision: String,
    #[serde(default = "post")]
    verb: String,
    #[serde(default = "endpoint")]
    path: String,
    #[serde(default)]
    headers: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    body: String,
    expect: Expect,
    #[serde(default)]
    stored: bool,
}

#[derive(Deserialize)]
struct Expect {
    status: Option<u16>,
    #[serde(default = "error")]
    answer: String,
    code: Option<i64>,
    #[serde(default = "one")]
    id: String,
}

fn newest_legacy() -> String {
    "2025-11-25".into()
}

fn post() -> String {
    "POST".into()
}

fn endpoint() -> String {
    "/mcp".into()
}

fn error() -> String {
    "error".into()
}

fn one() -> String {
    "1".into()
}

fn rows(transport: &str) -> Vec<Row> {
    let table: Table = toml::from_str(include_str!("../hostile.toml")).unwrap();
    table.row.into_iter().filter(|row| row.transport == transport).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_hostile_row_over_http_is_answered_as_the_table_says_and_the_next_call_works() {
    let program = Setup::new("").flag("--demo").serve().await;
    let store = StoreCount::of(&program.setup.serve_db()).await;
    let mut wrong = Vec::new();
    let mut stored = store.now().await;
    let rows = rows("http");
    assert!(rows.len() >= 80);
    for row in &rows {
        let session = match &*row.era {
            "legacy" => open_session(program.url(), &row.revision).await,
            _ => None,
        };
        let request = row.request(program.port(), session.as_deref().unwrap_or_default());
        let mut connection = Connection::open(program.url()).await;
        connection.send(&request).await;
        let response = connection.response().await;
        let after = store.now().await;
        if let Err(problem) = row.judge_http(&response) {
            wrong.push(format!("{}: {problem}: {response:?}", row.name));
        }
        if after - stored != usize::from(row.stored) {
            wrong.push(format!("{}: {} executions were stored", row.name, after - stored));
        }
        next_call_works(&program, &row.name).await;
        stored = after + 1;
        assert_eq!(store.now().await, stored, "{}: the next call is stored", row.name);
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(!program.stderr().contains("panicked"), "{}", program.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_hostile_row_over_stdio_is_answered_as_the_table_says_and_the_next_call_works() {
    let setup = Setup::new("");
    let wrap = setup.wrap(&kit_stdio(&["--era", "both"]));
    let mut session = RawStdio::open(&wrap, "2025-11-25").await;
    session.call(json!("first"), "echo", json!({})).await;
    let store = StoreCount::of(&setup.wrap_db()).await;
    let mut wrong = Vec::new();
    for (number, row) in rows("stdio").iter().enumerate() {
        let mut fresh;
        let server = match &*row.era {
            "legacy" => &mut session,
            _ => {
                fresh = RawStdio::start(&wrap);
                &mut fresh
            }
        };
        let (before, stored) = (responses(server).len(), store.now().await);
        // The fixture has no demo tools, and `echo` answers whatever it gets.
        let line = row.body.replace("demo_echo", "echo");
        server.send_bytes(&[filled(&line, "", 0), b"\n".to_vec()].concat()).await;
        let answered = usize::from(row.expect.answer != "silence");
        if answered == 1 {
            eventually(&row.name, DEADLINE, || responses(server).len() > before).await;
            let answer = responses(server)[before].clone();
            if let Err(problem) = row.judge(&answer) {
                wrong.push(format!("{}: {problem}: {answer}", row.name));
            }
        }
        let next = server.call(json!(format!("next-{number}")), "echo", json!({"row": number})).await;
        assert!(next["result"]["content"].is_array(), "{}: the next call works: {next}", row.name);
        let said = responses(server).len() - before;
        if said != answered + 1 {
            wrong.push(format!("{}: {said} answers", row.name));
        }
        let more = store.now().await - stored;
        if more != usize::from(row.stored) + 1 {
            wrong.push(format!("{}: {more} executions were stored, the next call included", row.name));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every response so far, exactly as it came; notifications are none.
fn responses(server: &RawStdio) -> Vec<String> {
    let is_response = |line: &String| serde_json::from_str::<Value>(line).is_ok_and(|line| line["method"].is_null());
    server.messages().into_iter().filter(is_response).collect()
}

async fn next_call_works(program: &Program, after: &str) {
    let request = Request::modern(
        program.url(),
        json!("next"),
        "tools/call",
        json!({"name": "demo_echo", "arguments": {"message": after}}),
    );
    let response = request.exchange(program.url()).await;
    assert_eq!(response.status, 200, "after {after}: {response:?}");
    assert_eq!(response.answer()["result"]["content"][0]["text"], after, "after {after}: {response:?}");
}

impl Row {
    /// Head and body as they go over the wire.
    fn request(&self, port: u16, session: &str) -> Vec<u8> {
        let mut defaults = vec![
            "Host: 127.0.0.1:{{port}}".to_owned(),
            "Content-Type: application/json".to_owned(),
            "Accept: application/json, text/event-stream".to_owned(),
        ];
        match &*self.era {
            "modern" => defaults.extend(
                ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: demo_echo"]
                    .map(str::to_owned),
            ),
            "legacy" => defaults
                .extend([format!("MCP-Protocol-Version: {}", self.revision), "Mcp-Session-Id: {{session}}".to_owned()]),
            _ => {}
        }
        let name = |line: &str| line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        defaults.retain(|line| {
            let own = self.headers.iter().any(|own| name(own) == name(line));
            !own && !self.without.iter().any(|without| without.eq_ignore_ascii_case(&name(line)))
        });
        let body = filled(&self.body, session, port);
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.verb, self.path).into_bytes();
        for line in defaults.iter().chain(&self.headers) {
            bytes.extend(filled(line, session, port));
            bytes.extend(b"\r\n");
        }
        if self.verb == "POST" || !body.is_empty() {
            bytes.extend(format!("Content-Length: {}\r\n", body.len()).into_bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(body);
        bytes
    }

    fn judge_http(&self, response: &Response) -> Result<(), String> {
        let wanted = self.expect.status.expect("a row over HTTP has a status");
        if response.status != wanted {
            return Err(format!("the status is {}, not {wanted}", response.status));
        }
        if self.expect.answer == "any" {
            return Ok(());
        }
        let messages = response.messages();
        match messages.as_slice() {
            [only] => self.judge(only),
            several => Err(format!("{} messages", several.len())),
        }
    }

    fn judge(&self, text: &str) -> Result<(), String> {
        let mut answer: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
        if let Value::Array(answers) = &mut answer
            && answers.len() == 1
        {
            answer = answers.remove(0);
        }
        let result = &answer["result"];
        let (wanted, is_so) = match &*self.expect.answer {
            "error" => (format!("error {:?}", self.expect.code), answer["error"]["code"].as_i64() == self.expect.code),
            "result" => ("a result".to_owned(), result.is_object() && result["isError"] != true),
            "tool_error" => ("a tool error".to_owned(), result["isError"] == true),
            _ => ("a result or a tool error".to_owned(), result.is_object()),
        };
        if !is_so {
            return Err(format!("it is not {wanted}"));
        }
        let id = answer.get("id").map_or("none".to_owned(), Value::to_string);
        if id != self.expect.id {
            return Err(format!("the id is {id}, not {}", self.expect.id));
        }
        Ok(())
    }
}

/// Replaces what stands in double braces: see the head of the table.
fn filled(text: &str, session: &str, port: u16) -> Vec<u8> {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let text = text.replace("{{meta}}", meta).replace("{{session}}", session).replace("{{port}}", &port.to_string());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = &*text;
    loop {
        let (times, byte) = (rest.find("{{times "), rest.find("{{byte "));
        let Some(at) = times.into_iter().chain(byte).min() else {
            bytes.extend_from_slice(rest.as_bytes());
            return bytes;
        };
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let (_, after) = rest[at..].split_once(' ').unwrap();
        if byte == Some(at) {
            bytes.push(u8::from_str_radix(&after[..2], 16).unwrap());
            rest = &after[4..];
            continue;
        }
        let (count, what) = after.split_once(' ').unwrap();
        // The text has at least one character, which may be a brace.
        let end = 1 + what[1..].find("}}").unwrap();
        bytes.extend_from_slice(what[..end].repeat(count.parse().unwrap()).as_bytes());
        rest = &what[end + 2..];
    }
}

const JSON_HEADERS: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_below_the_protocol_is_refused_and_the_next_call_works() {
    let config = "[server]\nheader_timeout = \"500ms\"\n";
    let program = Setup::new(config).flag("--demo").serve().await;
    let store = StoreCount::of(&program.setup.serve_db()).await;
    let host = format!("Host: 127.0.0.1:{}\r\n", program.port());
    let head = format!("POST /mcp HTTP/1.1\r\n{host}{JSON_HEADERS}");
    // An empty list of statuses: the connection is closed, with or without a word.
    let cases: Vec<(&str, String, &[u16])> = vec![
        ("a chunk size that is no number", format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n"), &[400]),
        (
            "a chunk size beyond 64 bits",
            format!("{head}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{{}}\r\n0\r\n\r\n"),
            &[400],
        ),
        ("a chunk without its end", format!("{head}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}0\r\n\r\n"), &[400]),
        ("a chunked body that breaks off", format!("{head}Transfer-Encoding: chunked\r\n\r\nff\r\n{{"), &[]),
        ("an unknown transfer coding", format!("{head}Transfer-Encoding: gzip\r\n\r\n"), &[400]),
        ("a body that breaks off", format!("{head}Content-Length: 500\r\n\r\n{{"), &[]),
        ("two lengths", format!("{head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"), &[400]),
        ("a length below zero", format!("{head}Content-Length: -1\r\n\r\n"), &[400]),
        ("a length in words", format!("{head}Content-Length: two\r\n\r\n{{}}"), &[400]),
        ("a length beyond 64 bits", format!("{head}Content-Length: 99999999999999999999\r\n\r\n{{}}"), &[400]),
        ("a length of 8 EiB", format!("{head}Content-Length: 9223372036854775807\r\n\r\n{{}}"), &[413]),
        ("a header without a colon", format!("POST /mcp HTTP/1.1\r\n{host}nonsense\r\n\r\n"), &[400]),
        ("a header with a NUL", format!("POST /mcp HTTP/1.1\r\n{host}X: a\0b\r\n\r\n"), &[400]),
        ("a name with a space", format!("POST /mcp HTTP/1.1\r\n{host}X Y: a\r\n\r\n"), &[400]),
        ("a thousand headers", format!("POST /mcp HTTP/1.1\r\n{host}{}\r\n", "X: a\r\n".repeat(1_000)), &[431]),
        ("a header of 1 MiB", format!("POST /mcp HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(1 << 20)), &[431]),
        ("a path of 1 MiB", format!("POST /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(1 << 20)), &[414, 431]),
        ("an unknown version of HTTP", format!("POST /mcp HTTP/7.3\r\n{host}\r\n"), &[400]),
        ("plain words", "hello\r\n\r\n".to_owned(), &[400]),
        ("the start of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), &[]),
        ("the start of TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}".to_owned(), &[]),
        ("nothing", String::new(), &[]),
        (
            "an absolute target on another host",
            format!("POST http://evil.example/mcp HTTP/1.1\r\n{host}{JSON_HEADERS}Content-Length: 2\r\n\r\n{{}}"),
            &[421],
        ),
        ("a tunnel to elsewhere", format!("CONNECT evil.example:443 HTTP/1.1\r\n{host}\r\n"), &[]),
        ("an unknown verb", format!("BREW /mcp HTTP/1.1\r\n{host}\r\n"), &[405]),
        (
            "another request smuggled behind two framings",
            format!(
                "{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n"
            ),
            &[400],
        ),
    ];
    for (name, bytes, statuses) in cases {
        let said = raw(&program, bytes.as_bytes(), name.contains("breaks off")).await;
        match status(&said) {
            Some(status) => assert!(statuses.contains(&status) || statuses.is_empty(), "{name}: {said:?}"),
            None => assert!(statuses.is_empty() && said.is_empty(), "{name}: {said:?}"),
        }
        let stored = store.now().await;
        next_call_works(&program, name).await;
        assert_eq!(store.now().await, stored + 1, "{name}");
    }
    assert_eq!(store.now().await, 26, "nothing but the calls that were meant");
    assert!(!program.stderr().contains("panicked"), "{}", program.stderr());
}

/// Sends the bytes, ends the sending half where asked to, and answers everything that comes back until the server closes.
async fn raw(program: &Program, bytes: &[u8], breaks_off: bool) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", program.port())).await.unwrap();
    let mut said = Vec::new();
    // A server that has heard enough may close while we still send.
    let _ = stream.write_all(bytes).await;
    if breaks_off {
        let _ = stream.shutdown().await;
    }
    let _ = timeout(DEADLINE, stream.read_to_end(&mut said)).await.expect("the server closes");
    String::from_utf8_lossy(&said).into_owned()
}

fn status(said: &str) -> Option<u16> {
    said.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

// Slow-loris: heads and bodies that never end hold no connection beyond their time.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_never_ends_is_cut_and_holds_nobody_up() {
    let config = "[server]\nheader_timeout = \"300ms\"\nbody_timeout = \"300ms\"\n";
    let program = Setup::new(config).flag("--demo").serve().await;
    let host = format!("Host: 127.0.0.1:{}\r\n", program.port());
    let head = format!("POST /mcp HTTP/1.1\r\n{host}");
    let mut silent = Vec::new();
    for start in ["", "POST", &head, &format!("{head}X: ")] {
        for _ in 0..25 {
            let mut connection = Connection::open(program.url()).await;
            connection.send(start.as_bytes()).await;
            silent.push(connection);
        }
    }
    next_call_works(&program, "while a hundred heads are open").await;

    // One byte at a time, for ever.
    let dribbled = async {
        let mut stream = TcpStream::connect(("127.0.0.1", program.port())).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let began = Instant::now();
        let mut pause = tokio::time::interval(Duration::from_millis(20));
        let mut byte = [0];
        while began.elapsed() < DEADLINE {
            tokio::select! {
                _ = pause.tick() => if stream.write_all(b"x").await.is_err() { return },
                read = stream.read(&mut byte) => if !matches!(read, Ok(1)) { return },
            }
        }
        panic!("a head may be dribbled for {DEADLINE:?}");
    };
    let half_body = async {
        let sent = format!("{head}{JSON_HEADERS}Content-Length: 500\r\n\r\n{{\"jsonrpc\"");
        let mut connection = Connection::open(program.url()).await;
        connection.send(sent.as_bytes()).await;
        connection.response().await.status
    };
    let all_cut = async {
        for mut connection in silent {
            connection.ended(DEADLINE).await;
        }
    };
    let ((), half_body, ()) = tokio::join!(dribbled, half_body, all_cut);
    assert_eq!(half_body, 408);
    next_call_works(&program, "after a hundred heads").await;
}

/// `initialize` over a connection that stays open.
async fn initialize(connection: &mut Connection, url: &str) -> Response {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    connection.send(&Request::legacy(url, None, &hello.to_string()).bytes()).await;
    connection.response().await
}

async fn ping(program: &Program, session: &str) -> Response {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    Request::legacy(program.url(), Some(session), message).exchange(program.url()).await
}

// A31: sessions that nobody deletes.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_nobody_deletes_end_by_themselves_and_give_their_memory_back() {
    let config = "[server]\nmax_initialize_burst = 10000\n[sessions]\nidle_timeout = \"3s\"\nheartbeat = \"200ms\"\n";
    let program = Setup::new(config).flag("--demo").serve().await;
    let url = program.url();
    next_call_works(&program, "before").await;
    let listening = open_session(url, "2025-11-25").await.unwrap();
    let mut stream = Connection::open(url).await;
    let listen = Request::new("GET", url)
        .header("Accept", "text/event-stream")
        .header("Mcp-Session-Id", &listening)
        .header("MCP-Protocol-Version", "2025-11-25");
    stream.send(&listen.bytes()).await;
    assert_eq!(stream.response_head().await.status, 200);

    let before_kib = program.resident_kib();
    let mut connection = Connection::open(url).await;
    let mut sessions = Vec::new();
    for _ in 0..2_000 {
        let response = initialize(&mut connection, url).await;
        assert_eq!(response.status, 200, "{response:?}");
        sessions.push(response.header("mcp-session-id").unwrap().to_owned());
    }
    let peak_kib = program.resident_kib();
    // Asking counts as a sign of life, so each look takes another session.
    let mut looks = sessions[1..].iter();
    eventually_async("a session has ended", DEADLINE, async || {
        let response = ping(&program, looks.next().expect("more sessions than looks")).await;
        let ended = response.status == 404;
        if ended {
            assert_eq!(response.answer()["error"]["code"], -32001, "{response:?}");
            assert!(response.text().contains("initialize"), "it says how to go on: {response:?}");
        }
        ended
    })
    .await;
    assert_eq!(ping(&program, &sessions[0]).await.status, 404, "the oldest has ended too");
    assert_eq!(ping(&program, &listening).await.status, 200, "a session with an open stream stays");
    let after_kib = program.resident_kib();
    eprintln!("A31: {before_kib} KiB before, {peak_kib} KiB with 2,000 sessions, {after_kib} KiB after");
    assert!(peak_kib - before_kib < 2_000 * 8, "a session takes less than 8 KiB");
    // What stays are the store's own caches, which have a limit.
    assert!(after_kib - before_kib < 16_384, "their memory is given back");
    next_call_works(&program, "after").await;
}

// A32: a flood of anonymous initialize.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_sessions_meets_a_clear_no_and_bounded_memory() {
    let config = "[server]\nmax_sessions = 1000\nmax_initialize_rate = 100000\nmax_initialize_burst = 100000\n";
    let program = Setup::new(config).flag("--demo").serve().await;
    let url = program.url();
    next_call_works(&program, "before").await;
    let before_kib = program.resident_kib();
    let mut connection = Connection::open(url).await;
    let mut sessions = Vec::new();
    for number in 0..5_000 {
        let response = initialize(&mut connection, url).await;
        if number < 1_000 {
            assert_eq!(response.status, 200, "{number}: {response:?}");
            sessions.push(response.header("mcp-session-id").unwrap().to_owned());
            continue;
        }
        assert_eq!(response.status, 429, "{number}: {response:?}");
        assert_eq!(response.answer()["error"]["code"], -31429, "{response:?}");
        assert!(response.header("retry-after").is_some_and(|after| after.parse::<u32>().is_ok()), "{response:?}");
        assert!(response.header("mcp-session-id").is_none());
    }
    let after_kib = program.resident_kib();
    eprintln!("A32: {before_kib} KiB before, {after_kib} KiB after 5,000 initialize");
    assert!(after_kib - before_kib < 16_384, "memory is bounded");
    assert_eq!(ping(&program, &sessions[500]).await.status, 200, "who is in stays in");
    next_call_works(&program, "modern calls go on").await;
    // A place that is free is given again.
    let delete = Request::new("DELETE", url).header("Mcp-Session-Id", &sessions[0]);
    assert_eq!(delete.exchange(url).await.status, 204);
    assert_eq!(initialize(&mut connection, url).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_are_opened_too_fast_are_told_to_wait() {
    let config = "[server]\nmax_initialize_rate = 1\nmax_initialize_burst = 5\n";
    let program = Setup::new(config).flag("--demo").serve().await;
    let mut connection = Connection::open(program.url()).await;
    let began = Instant::now();
    let mut opened = 0;
    let refused = loop {
        let response = initialize(&mut connection, program.url()).await;
        match response.status {
            200 => opened += 1,
            _ => break response,
        }
    };
    assert!(opened >= 5 && opened <= 6 + began.elapsed().as_secs(), "{opened} in {:?}", began.elapsed());
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.answer()["error"]["code"], -31429);
    next_call_works(&program, "a modern call needs no session").await;
}

//! Sessions of clients up to 2025-11-25 as their clients see them: across kills, restarts and processes, to strangers, to
//! many, and on streams that are cut and taken up again.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::on_every_store;
use crate::skip_loudly;
use crate::support::client::{Call, Client, Kind};
use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Connection, Event, Request, Response, open_session, open_session_of};
use crate::support::stores::{On, count};
use crate::support::{DEADLINE, clients_are_set_up, eventually_async};

on_every_store! {
    an_open_session_of_a_real_client_outlives_a_kill_and_is_served_by_a_second_process;
    the_calls_of_one_session_go_around_two_processes_without_an_error;
    the_result_of_a_call_that_ended_while_its_client_was_away_waits_on_its_stream_in_every_process;
    a_call_goes_on_when_its_process_is_killed_and_its_stream_is_taken_up_elsewhere;
    every_revision_is_negotiated_and_kept_over_a_restart;
}

/// Whatever takes longer than a moment is answered as a stream.
const SOON: &str = "[server]\njson_within = \"50ms\"\nkeep_alive = \"100ms\"\nretry = \"100ms\"\n";

async fn serve(config: &str) -> Program {
    serve_on(On::Sqlite, config).await
}

async fn serve_on(on: On, config: &str) -> Program {
    Setup::new(config).flag("--demo").on(on).await.serve().await
}

fn call(id: Value, tool: &str, arguments: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}

fn sleep(id: Value, seconds: f64) -> String {
    call(id, "demo_sleep", json!({"seconds": seconds}))
}

async fn post(program: &Program, session: &str, message: &str) -> Response {
    Request::legacy(program.url(), Some(session), message).exchange(program.url()).await
}

async fn echo(program: &Program, session: &str) -> Response {
    post(program, session, &call(json!("e"), "demo_echo", json!({"message": "hello"}))).await
}

fn request(program: &Program, method: &str, session: &str) -> Request {
    Request::new(method, program.url())
        .header("Accept", "text/event-stream")
        .header("Mcp-Session-Id", session)
        .header("MCP-Protocol-Version", "2025-11-25")
}

/// A GET, from the event that came last where one is given; its stream.
pub async fn listen(program: &Program, session: &str, last: Option<&str>) -> Connection {
    let mut get = request(program, "GET", session);
    if let Some(last) = last {
        get = get.header("Last-Event-ID", last);
    }
    let mut connection = Connection::open(program.url()).await;
    connection.send(&get.bytes()).await;
    let head = connection.response_head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")), "{head:?}");
    connection
}

/// Sends a call that is answered by a stream; the stream, and the id of its first event.
pub async fn begin(program: &Program, session: &str, message: &str) -> (Connection, String) {
    let mut connection = Connection::open(program.url()).await;
    connection.send(&Request::legacy(program.url(), Some(session), message).bytes()).await;
    assert_eq!(connection.response_head().await.status, 200);
    let first = connection.event().await.unwrap();
    assert_eq!(first.data, "", "the first event has an id and no data: {first:?}");
    let id = first.id.clone().unwrap();
    assert!(id.ends_with(".0"), "{id}");
    (connection, id)
}

/// The answer on a stream, and the event it came in; notifications are skipped.
pub async fn answer(stream: &mut Connection) -> (Value, Event) {
    loop {
        let event = stream.message().await.expect("an answer before the end of the stream");
        let message: Value = serde_json::from_str(&event.data).unwrap();
        if message.get("method").is_none() {
            return (message, event);
        }
    }
}

fn error_code(response: &Response) -> (u16, i64) {
    (response.status, response.answer()["error"]["code"].as_i64().unwrap())
}

async fn listed(program: &Program) -> Vec<Value> {
    let ran = program.setup.cli(&["sessions", "list", "--json"]).await;
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// A16: a new version is deployed, and the client gets 404 for ever. Restart invisible: an SDK 1.x client with an open session, by kill -9 and by a second process on the same store.
async fn an_open_session_of_a_real_client_outlives_a_kill_and_is_served_by_a_second_process(on: On) {
    skip_loudly!(clients_are_set_up());
    let program = serve_on(on, SOON).await;
    let client = Client::connect(Kind::Sdk1, &program.target()).await;
    let said = client.call("demo_echo", json!({"message": "one"})).await.unwrap();
    assert_eq!(said["content"][0]["text"], "one");
    let mut program = program;
    program.kill_9().await;
    let program = program.restart().await;
    let said = client.call("demo_echo", json!({"message": "two"})).await.unwrap();
    assert_eq!(said["content"][0]["text"], "two");
    // A result that the restart falls into comes by the stream that the client takes up by itself.
    let pending = client.start(Call::new("demo_sleep", json!({"seconds": 2}))).await;
    let opened = async || count(&program.setup.store_url(), "session_messages").await == 1;
    eventually_async("the call is on a stream that can be taken up", DEADLINE, opened).await;
    let program = program.restart().await;
    let slept = pending.answer().await.unwrap();
    assert_ne!(slept["isError"], true, "{slept}");
    let sessions = listed(&program).await;
    assert_eq!(sessions.len(), 1, "no second initialize: {sessions:?}");
    assert_eq!(sessions[0]["revision"], "2025-11-25");
    assert_eq!(program.executions().await.len(), 3, "nothing ran twice");
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_after_a_restart_leaves_later_posts_as_they_were() {
    let program = serve(SOON).await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let program = program.restart().await;
    let mut stream = listen(&program, &session, None).await;
    let first = stream.event().await.unwrap();
    assert!(first.data.is_empty() && first.id.unwrap().starts_with("get."));
    for _ in 0..3 {
        let said = echo(&program, &session).await;
        assert_eq!((said.status, said.header("content-type")), (200, Some("application/json")), "{said:?}");
    }
    let other = program.setup.serve().await;
    assert_eq!(echo(&other, &session).await.status, 200);
    assert_eq!(listed(&program).await.len(), 1);
}

// A19: a session that only the process knows which opened it.
async fn the_calls_of_one_session_go_around_two_processes_without_an_error(on: On) {
    let program = serve_on(on, SOON).await;
    let other = program.setup.serve().await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    for (n, at) in [&program, &other].into_iter().cycle().take(50).enumerate() {
        let message = call(json!(n), "demo_echo", json!({"message": n.to_string()}));
        let said = post(at, &session, &message).await.answer();
        assert_eq!((&said["id"], &said["result"]["content"][0]["text"]), (&json!(n), &json!(n.to_string())), "{said}");
    }
    assert_eq!(listed(&program).await.len(), 1);
}

async fn the_result_of_a_call_that_ended_while_its_client_was_away_waits_on_its_stream_in_every_process(on: On) {
    let program = serve_on(on, SOON).await;
    let other = program.setup.serve().await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let (stream, first) = begin(&program, &session, &sleep(json!("id\u{e9}"), 0.6)).await;
    stream.cut();
    eventually_async("the call ends", DEADLINE, async || program.executions().await[0]["state"] == "completed").await;
    let mut ends = Vec::new();
    for program in [&other, &program] {
        let mut stream = listen(program, &session, Some(&first)).await;
        let (said, event) = answer(&mut stream).await;
        assert_eq!(said["id"], "id\u{e9}");
        assert_eq!(said["result"]["_meta"]["durable-mcp/execution"]["attached"], false);
        assert!(stream.event().await.is_none(), "the answer is the end");
        ends.push(event);
    }
    assert_eq!(ends[0], ends[1], "the same bytes from each");
    // Whoever has the answer gets nothing more.
    let mut stream = listen(&program, &session, ends[0].id.as_deref()).await;
    assert!(stream.event().await.is_none());
    assert_eq!(program.executions().await.len(), 1);
}

async fn a_call_goes_on_when_its_process_is_killed_and_its_stream_is_taken_up_elsewhere(on: On) {
    let mut program = serve_on(on, SOON).await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let (mut stream, first) = begin(&program, &session, &sleep(json!(7), 2.0)).await;
    let other = program.setup.serve().await;
    program.kill_9().await;
    assert!(stream.event().await.is_none());
    let mut stream = listen(&other, &session, Some(&first)).await;
    let (said, _) = answer(&mut stream).await;
    assert_eq!(said["id"], 7);
    assert_ne!(said["result"]["isError"], true, "{said}");
    let rows = other.executions().await;
    assert_eq!((rows.len(), &rows[0]["attempt"]), (1, &json!(2)), "{rows:?}");
    other.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_belongs_to_its_session_and_nothing_else_is_taken_up() {
    let program = serve(SOON).await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let other = open_session(program.url(), "2025-11-25").await.unwrap();
    let (mut stream, first) = begin(&program, &session, &sleep(json!(1), 0.5)).await;
    for (session, last) in
        [(&other, first.as_str()), (&session, "no-such-stream.0"), (&session, "garbage"), (&session, "x.-1")]
    {
        let refused = request(&program, "GET", session).header("Last-Event-ID", last).exchange(program.url()).await;
        assert_eq!(error_code(&refused), (400, -32600), "{last}: {refused:?}");
    }
    assert_eq!(answer(&mut stream).await.0["id"], 1);
    // Older revisions do not know the empty event.
    let older = open_session(program.url(), "2025-06-18").await.unwrap();
    let message = sleep(json!(2), 0.3);
    let post = Request::legacy(program.url(), Some(&older), &message).with("MCP-Protocol-Version", "2025-06-18");
    let said = post.exchange(program.url()).await;
    assert!(!said.text().contains("id: "), "{}", said.text());
    assert_eq!(said.answer()["id"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_taken_up_while_it_is_open_goes_on_in_one_place() {
    let program = serve(SOON).await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let (mut old, first) = begin(&program, &session, &sleep(json!(1), 1.0)).await;
    let mut new = listen(&program, &session, Some(&first)).await;
    assert_eq!(answer(&mut new).await.0["id"], 1);
    let rest = String::from_utf8(old.rest().await).unwrap();
    assert!(!rest.contains("\"result\""), "{rest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_ids_in_flight_get_each_their_own_answer() {
    let program = serve(SOON).await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let (mut one, first) = begin(&program, &session, &sleep(json!(1), 0.4)).await;
    let (two, second) = begin(&program, &session, &sleep(json!(1), 0.8)).await;
    assert_ne!(first, second);
    two.cut();
    let mut two = listen(&program, &session, Some(&second)).await;
    let (one, two) = (answer(&mut one).await.0, answer(&mut two).await.0);
    let execution = |said: &Value| said["result"]["_meta"]["durable-mcp/execution"]["id"].clone();
    assert_eq!((&one["id"], &two["id"]), (&json!(1), &json!(1)));
    assert_ne!(execution(&one), execution(&two));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_client_polls_streams_that_are_closed_politely() {
    skip_loudly!(clients_are_set_up());
    let program = serve(&format!("{SOON}poll_after = \"200ms\"\n")).await;
    let client = Client::connect(Kind::Sdk1, &program.target()).await;
    let slept = client.call("demo_sleep", json!({"seconds": 1.5})).await.unwrap();
    assert_ne!(slept["isError"], true, "{slept}");
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let (mut stream, mut last) = begin(&program, &session, &sleep(json!(5), 1.0)).await;
    let mut polls = 0;
    let said = loop {
        let rest = String::from_utf8(stream.rest().await).unwrap();
        if rest.contains("\"result\"") {
            break rest;
        }
        assert!(rest.contains("retry: 100\n"), "{rest}");
        polls += 1;
        stream = listen(&program, &session, Some(&last)).await;
        let event = stream.event().await.unwrap();
        if !event.data.is_empty() {
            break event.data;
        }
        last = event.id.unwrap();
    };
    assert!(polls >= 2 && said.contains("\"id\":5"), "{polls} polls: {said}");
}

// A33: a call that is taken back ends, also while its client is between two polls.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_taken_back_between_two_polls_is_cancelled_and_its_stream_ends() {
    let program = serve(&format!("{SOON}poll_after = \"200ms\"\n")).await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let (mut stream, first) = begin(&program, &session, &sleep(json!("back"), 30.0)).await;
    assert!(!String::from_utf8(stream.rest().await).unwrap().contains("\"result\""));
    let took = Instant::now();
    let back = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"back"}}"#;
    assert_eq!(post(&program, &session, back).await.status, 202);
    eventually_async("the call is cancelled", DEADLINE, async || program.executions().await[0]["state"] == "cancelled")
        .await;
    assert!(took.elapsed() < Duration::from_secs(5), "{:?}", took.elapsed());
    let taken_up = request(&program, "GET", &session).header("Last-Event-ID", &first).exchange(program.url()).await;
    let said = taken_up.messages();
    assert!(taken_up.status == 200 && said.len() <= 1, "{taken_up:?}");
    assert!(said.iter().all(|said| said.contains("was cancelled")), "{said:?}");
}

async fn token(setup: &Setup, principal: &str) -> String {
    let ran = setup.cli(&["token", "create", "--principal", principal, "--scope", "call"]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    format!("Bearer {}", ran.stdout.trim())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_principal_is_refused_before_anything_else_in_every_process() {
    let setup = Setup::new(&format!("[auth]\nmode = \"token\"\n{SOON}")).flag("--demo");
    let program = setup.serve().await;
    let other = setup.serve().await;
    let (ann, bob) = (token(&setup, "ann").await, token(&setup, "bob").await);
    let bearer = ("Authorization".to_owned(), ann.clone());
    let session = open_session_of(program.url(), "2025-11-25", &json!({}), &[bearer]).await.unwrap();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for at in [&program, &other] {
        let post = Request::legacy(at.url(), Some(&session), ping);
        for asked in [request(at, "GET", &session), request(at, "DELETE", &session), post] {
            let refused = asked.header("Authorization", &bob).exchange(at.url()).await;
            assert_eq!(error_code(&refused), (403, -32003), "{refused:?}");
        }
        let own = Request::legacy(at.url(), Some(&session), ping).header("Authorization", &ann);
        assert_eq!(own.exchange(at.url()).await.status, 200);
    }
    let seen = listed(&program).await;
    assert_eq!((&seen[0]["principal"], &seen[0]["state"]), (&json!("ann"), &json!("open")));
    assert!(!seen[0]["id"].as_str().unwrap().contains(&session), "the id itself is shown to nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ended_in_one_process_is_ended_in_all_and_a_late_delete_is_no_error() {
    let program = serve(SOON).await;
    let other = program.setup.serve().await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    assert_eq!(echo(&other, &session).await.status, 200);
    let mut stream = listen(&other, &session, None).await;
    for at in [&program, &other, &program] {
        assert_eq!(request(at, "DELETE", &session).exchange(at.url()).await.status, 204);
    }
    for at in [&program, &other] {
        let refused = echo(at, &session).await;
        assert_eq!(error_code(&refused), (404, -32001), "{refused:?}");
        assert!(refused.text().contains("initialize"), "it says how to go on: {refused:?}");
    }
    while stream.event().await.is_some() {}
    // The same by the command line, for a server that learns of it from the store.
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let id = listed(&program).await[0]["id"].as_str().unwrap()[..16].to_owned();
    assert!(program.setup.cli(&["sessions", "close", &id]).await.status.success());
    eventually_async("the session ends", DEADLINE, async || echo(&program, &session).await.status == 404).await;
    let never = request(&program, "DELETE", "never-opened").exchange(program.url()).await;
    assert_eq!(never.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_initialize_leaves_nothing_and_a_repeated_one_is_harmless() {
    let program = serve("[server]\nmax_sessions = 2\n").await;
    let bad = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}"#;
    let refused = Request::legacy(program.url(), None, bad).exchange(program.url()).await;
    assert_eq!(refused.answer()["error"]["code"], -32602);
    assert!(listed(&program).await.is_empty());
    let one = open_session(program.url(), "2025-11-25").await.unwrap();
    let two = open_session(program.url(), "2025-11-25").await.unwrap();
    let good = bad.replace("\"capabilities\"", "\"protocolVersion\":\"2025-11-25\",\"capabilities\"");
    let full = Request::legacy(program.url(), None, &good).exchange(program.url()).await;
    assert_eq!((full.status, full.header("mcp-session-id")), (429, None));
    assert_eq!(listed(&program).await.len(), 2);
    for session in [&one, &two] {
        assert_eq!(echo(&program, session).await.status, 200);
    }
}

// A17: what was negotiated is forgotten by a restart. A53: a client of each revision is spoken to in it; a newer one is answered, not refused.
async fn every_revision_is_negotiated_and_kept_over_a_restart(on: On) {
    let program = serve_on(on, SOON).await;
    let mut sessions = Vec::new();
    for (asked, negotiated) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
    ] {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
        let said = Request::legacy(program.url(), None, &hello.to_string()).exchange(program.url()).await;
        assert_eq!(said.answer()["result"]["protocolVersion"], negotiated, "{said:?}");
        sessions.push((said.header("mcp-session-id").unwrap().to_owned(), negotiated));
    }
    let program = program.restart().await;
    for (session, revision) in &sessions {
        let message = call(json!(1), "demo_echo", json!({"message": "x"}));
        let mut post = Request::legacy(program.url(), Some(session), &message).with("MCP-Protocol-Version", revision);
        if *revision < "2025-06-18" {
            post = post.without("MCP-Protocol-Version");
        }
        assert_eq!(post.exchange(program.url()).await.status, 200, "{revision}");
    }
}

fn rows(program: &Program, sql: &str) -> i64 {
    let database = rusqlite::Connection::open(program.setup.serve_db()).unwrap();
    database.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_come_soon_write_nothing_for_their_session_and_results_are_stored_once() {
    let program = serve("[server]\nresponse = \"sse\"\n").await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    for _ in 0..50 {
        let said = echo(&program, &session).await;
        assert_eq!(said.header("content-type"), Some("text/event-stream"));
    }
    let streams = rows(&program, "SELECT count(*) FROM session_messages");
    assert!(streams < 5, "{streams} of 50 quick calls took a stream that can be resumed");
    let (mut stream, _) = begin(&program, &session, &sleep(json!(1), 0.3)).await;
    answer(&mut stream).await;
    assert_eq!(rows(&program, "SELECT count(*) FROM session_messages WHERE body LIKE '%result%'"), 0);
    assert_eq!(rows(&program, "SELECT count(*) FROM session_messages") - streams, 1);
}

// Clients that listen and never read: nobody else waits for them.
#[tokio::test(flavor = "multi_thread")]
async fn streams_that_nobody_reads_slow_no_bystander() {
    let program = serve("[server]\njson_within = \"1ms\"\nkeep_alive = \"10ms\"\n").await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let bystander = open_session(program.url(), "2025-11-25").await.unwrap();
    let mut unread = Vec::new();
    for number in 0..40 {
        let message = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "demo_sleep",
            "arguments": {"seconds": 20}, "_meta": {"progressToken": number}}});
        for bytes in [
            request(&program, "GET", &session).bytes(),
            Request::legacy(program.url(), Some(&session), &message.to_string()).bytes(),
        ] {
            let mut connection = Connection::open(program.url()).await;
            connection.send(&bytes).await;
            unread.push(connection);
        }
    }
    let mut slowest = Duration::ZERO;
    for _ in 0..60 {
        let began = Instant::now();
        assert_eq!(echo(&program, &bystander).await.status, 200);
        slowest = slowest.max(began.elapsed());
    }
    eprintln!("the slowest of 60 calls beside 80 unread streams took {slowest:?}");
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
}

// A31, A32: ten thousand sessions that nobody uses cost rows and no memory.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_sessions_take_less_than_a_kilobyte_of_memory_each() {
    let config = "[server]\nmax_sessions = 20000\nmax_initialize_rate = 100000\nmax_initialize_burst = 100000\n\
                  [sessions]\nheartbeat = \"200ms\"\n";
    let program = serve(config).await;
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let hello = Request::legacy(program.url(), None, &hello.to_string()).bytes();
    let open = async |count: usize| {
        let mut connection = Connection::open(program.url()).await;
        for _ in 0..count {
            connection.send(&hello).await;
            assert_eq!(connection.response().await.status, 200);
        }
    };
    // What the first ones make the program load is not theirs.
    open(500).await;
    let before_kib = program.resident_kib();
    let open = &open;
    futures_util::future::join_all((0..20).map(|_| open(500))).await;
    let grown_kib = || program.resident_kib() - before_kib;
    // How soon is the allocator's matter.
    eventually_async("what is idle has left memory", 3 * DEADLINE, async || grown_kib() < 10_000).await;
    eprintln!("10,000 sessions: {} KiB", grown_kib());
    assert_eq!(rows(&program, "SELECT count(*) FROM sessions"), 10_500);
}

// A call that says nothing for longer than a session may be idle, with its client there and away.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_call_longer_than_the_idle_timeout_keeps_its_session_and_loses_nothing() {
    let program = serve(&format!("{SOON}[sessions]\nidle_timeout = \"1s\"\n")).await;
    let there = open_session(program.url(), "2025-11-25").await.unwrap();
    let away = open_session(program.url(), "2025-11-25").await.unwrap();
    let unused = open_session(program.url(), "2025-11-25").await.unwrap();
    let (mut stream, _) = begin(&program, &there, &sleep(json!(1), 4.0)).await;
    let (cut, first) = begin(&program, &away, &sleep(json!(2), 4.0)).await;
    cut.cut();
    assert_eq!(answer(&mut stream).await.0["id"], 1);
    assert_eq!(echo(&program, &unused).await.status, 404);
    assert_eq!(echo(&program, &there).await.status, 200);
    let mut stream = listen(&program, &away, Some(&first)).await;
    assert_eq!(answer(&mut stream).await.0["id"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_level_of_a_session_outlives_a_kill() {
    let program = serve(SOON).await;
    let session = open_session(program.url(), "2025-11-25").await.unwrap();
    let level = r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}"#;
    assert_eq!(post(&program, &session, level).await.answer()["result"], json!({}));
    let program = program.restart().await;
    assert_eq!(echo(&program, &session).await.status, 200);
    assert_eq!(listed(&program).await[0]["log_level"], "error");
}

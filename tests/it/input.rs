//! Questions from a tool to the client that called it: in every era and over every transport, across kills and processes,
//! answered once, by their owner only.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cases_scene::gap;
use crate::on_every_store;
use crate::skip_loudly;
use crate::support::client::{Call, Client, Kind, Mode, Target};
use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Connection, Request, Response, open_session_of};
use crate::support::stores::On;
use crate::support::{self, DEADLINE, program_binary};

on_every_store! {
    any_process_takes_a_legacy_answer_once_and_ignores_unknown_ids;
    a_parked_question_is_answered_after_a_kill_without_a_new_session;
}

fn setup(config: &str) -> Setup {
    Setup::new(config).flag("--demo")
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

fn execution(result: &Value) -> &str {
    result["_meta"]["durable-mcp/execution"]["id"].as_str().unwrap_or_else(|| panic!("no execution: {result}"))
}

/// A client whose user answers every form with this.
fn answering(target: Target, answer: &str) -> Target {
    target.env("CLIENT_ANSWERS", answer)
}

async fn is_asked_and_told(kind: Kind, target: &Target) {
    let client = Client::connect(kind, &answering(target.clone().named(&format!("{kind:?}")), "blue")).await;
    client.list().await;
    for parked in [false, true] {
        let arguments = json!({"question": format!("Colour? {kind:?}"), "parked": parked, "times": 2});
        let result = client.call("demo_ask", arguments).await.unwrap_or_else(|error| panic!("{kind:?}: {error:?}"));
        assert_eq!(text(&result), "The answer is: blue, blue. Attempt 1.", "{kind:?} {result}");
        let asked = client.notification("test/asked").await;
        assert!(asked["params"]["message"].as_str().unwrap().starts_with("Colour?"), "{asked}");
    }
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sdk_answers_held_and_parked_questions_in_its_own_era() {
    skip_loudly!(support::clients_are_set_up());
    let program = setup("").serve().await;
    for kind in [
        Kind::Sdk1,
        Kind::Client2(Mode::Legacy),
        Kind::Client2(Mode::Auto),
        Kind::Python(Mode::Legacy),
        Kind::Python(Mode::Auto),
    ] {
        is_asked_and_told(kind, &program.target()).await;
    }
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_as_json_is_upgraded_to_a_stream_when_the_client_has_to_be_asked() {
    skip_loudly!(support::clients_are_set_up());
    let program = setup("[server]\nresponse = \"json\"").serve().await;
    is_asked_and_told(Kind::Sdk1, &program.target()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stdio_client_is_asked_over_its_pipe() {
    skip_loudly!(support::clients_are_set_up());
    let program = setup("").serve().await;
    let binary = program_binary();
    let pipe = Target::command([binary.to_str().unwrap(), "connect", "--url", program.url()]);
    is_asked_and_told(Kind::Sdk1, &pipe).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_elicitation_is_told_so_at_once() {
    skip_loudly!(support::clients_are_set_up());
    let program = setup("").serve().await;
    for kind in [Kind::Sdk1, Kind::Client2(Mode::Auto)] {
        let client = Client::connect(kind, &program.target()).await;
        let held = client.call("demo_ask", json!({"question": "Sure?"})).await.unwrap();
        assert_eq!(held["isError"], true, "{held}");
        assert!(text(&held).contains("does not support elicitation"), "{held}");
        let parked = Call::new("demo_ask", json!({"question": "Sure?", "parked": true}));
        let refused = client.start(parked).await.answer().await.unwrap_err();
        assert_eq!(refused.code, json!(-32021), "{refused:?}");
        client.close().await;
    }
    let asked = modern_without(&program, json!({"question": "Sure?", "parked": true})).await;
    let error = &asked.answer()["error"];
    assert_eq!(error["code"], -32021, "{error}");
    assert_eq!(error["data"]["requiredCapabilities"], json!({"elicitation": {"form": {}}}), "{error}");
}

async fn modern_without(program: &Program, arguments: Value) -> Response {
    let params = json!({"name": "demo_ask", "arguments": arguments});
    Request::modern(program.url(), json!(1), "tools/call", params).exchange(program.url()).await
}

// The rest by hand, so that every message is seen.

/// A legacy session of a client with elicitation.
async fn session(url: &str) -> String {
    open_session_of(url, "2025-11-25", &json!({"elicitation": {}}), &[]).await.expect("a session id")
}

/// Calls, and reads its stream up to the question.
async fn asked(url: &str, session: &str, arguments: Value) -> (Connection, Value) {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "demo_ask", "arguments": arguments}});
    let mut connection = Connection::open(url).await;
    connection.send(&Request::legacy(url, Some(session), &call.to_string()).bytes()).await;
    let head = connection.response_head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"), "{head:?}");
    let question = next(&mut connection).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    (connection, question)
}

/// The next message of a stream.
async fn next(connection: &mut Connection) -> Value {
    let event = tokio::time::timeout(DEADLINE, connection.message()).await.expect("a message").expect("a stream");
    serde_json::from_str(&event.data).unwrap()
}

/// Posts the answer to a question.
async fn post(url: &str, session: &str, (question, answer): (&Value, &str)) -> u16 {
    let content = json!({"action": "accept", "content": {"answer": answer}});
    let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": content});
    Request::legacy(url, Some(session), &response.to_string()).exchange(url).await.status
}

// A43: the answer lands at another process.
async fn any_process_takes_a_legacy_answer_once_and_ignores_unknown_ids(on: On) {
    let setup = setup("").on(on).await;
    let (first, second) = (setup.serve().await, setup.serve().await);
    let session = session(first.url()).await;
    let (mut stream, question) = asked(first.url(), &session, json!({"question": "Sure?"})).await;
    let unknown = json!({"id": "01990000-0000-7000-8000-000000000000.1"});
    for id in [json!({"id": 7}), unknown, json!({"id": "x.1"})] {
        assert_eq!(post(second.url(), &session, (&id, "no")).await, 202);
    }
    assert_eq!(post(second.url(), &session, (&question, "yes")).await, 202);
    // A second answer changes nothing.
    assert_eq!(post(first.url(), &session, (&question, "no")).await, 202);
    let answer = next(&mut stream).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(text(&answer["result"]), "The answer is: yes. Attempt 1.", "{answer}");
    assert!(question["id"].as_str().unwrap().starts_with(execution(&answer["result"])), "{question}");
    first.check_store().await;
}

// A17: a session that was restored is not asked anything more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_may_come_within_a_batch_where_the_revision_has_batches() {
    let program = setup("").serve().await;
    let url = program.url();
    let send = |session: Option<&str>, message: &Value| {
        Request::legacy(url, session, &message.to_string()).with("MCP-Protocol-Version", "2025-03-26")
    };
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-03-26",
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "raw", "version": "1"}}});
    let opened = send(None, &hello).exchange(url).await;
    let session = opened.header("mcp-session-id").unwrap_or_else(|| panic!("{opened:?}"));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "demo_ask", "arguments": {"question": "Colour?"}}});
    let mut connection = Connection::open(url).await;
    connection.send(&send(Some(session), &call).bytes()).await;
    assert_eq!(connection.response_head().await.status, 200);
    let question = next(&mut connection).await;
    let content = json!({"action": "accept", "content": {"answer": "blue"}});
    let batch = json!([{"jsonrpc": "2.0", "id": question["id"], "result": content}]);
    assert_eq!(send(Some(session), &batch).exchange(url).await.status, 202);
    let said = next(&mut connection).await;
    assert_eq!(text(&said["result"]), "The answer is: blue. Attempt 1.", "{said}");
}

async fn a_parked_question_is_answered_after_a_kill_without_a_new_session(on: On) {
    let mut program = setup("").on(on).await.serve().await;
    let session = session(program.url()).await;
    let arguments = json!({"question": "Sure?", "parked": true});
    let (stream, question) = asked(program.url(), &session, arguments).await;
    program.kill_9().await;
    drop(stream);
    let program = program.restart().await;
    program.ready().await;
    assert_eq!(post(program.url(), &session, (&question, "yes")).await, 202);
    let id = question["id"].as_str().unwrap().split('.').next().unwrap().to_owned();
    let result = result_of(&program, &session, &id).await;
    assert_eq!(text(&result), "The answer is: yes. Attempt 1.", "{result}");
    assert_eq!(names(&program, &id).await, ["submitted", "leased", "parked", "resumed", "leased", "completed"]);
    // What the client said it can do is known still: it is asked by a new call too.
    let (mut stream, question) = asked(program.url(), &session, json!({"question": "Again?"})).await;
    assert_eq!(post(program.url(), &session, (&question, "yes")).await, 202);
    assert_eq!(text(&next(&mut stream).await["result"]), "The answer is: yes. Attempt 1.");
    program.check_store().await;
}

/// Takes a stream up again after the event with this id.
async fn taken_up(url: &str, session: &str, last: &str) -> Connection {
    let mut get = Request::new("GET", url)
        .header("Accept", "text/event-stream")
        .header("Mcp-Session-Id", session)
        .header("MCP-Protocol-Version", "2025-11-25")
        .header("Last-Event-ID", last);
    get.body.clear();
    let mut connection = Connection::open(url).await;
    connection.send(&get.bytes()).await;
    assert_eq!(connection.response_head().await.status, 200);
    connection
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_taken_up_after_a_kill_has_its_question_and_brings_the_result() {
    let mut program = setup("").serve().await;
    let session = session(program.url()).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "demo_ask", "arguments": {"question": "Sure?", "parked": true}}});
    let mut connection = Connection::open(program.url()).await;
    connection.send(&Request::legacy(program.url(), Some(&session), &call.to_string()).bytes()).await;
    connection.response_head().await;
    let primed = connection.event().await.unwrap();
    let asked = connection.event().await.unwrap();
    let (primed, last) = (primed.id.unwrap(), asked.id.unwrap());
    program.kill_9().await;
    let program = program.restart().await;
    program.ready().await;

    // The client that saw nothing of the question gets it as it was, the one that did is not asked twice.
    let mut from_start = taken_up(program.url(), &session, &primed).await;
    let again = next(&mut from_start).await;
    assert_eq!(again, serde_json::from_str::<Value>(&asked.data).unwrap());
    drop(from_start);
    let mut stream = taken_up(program.url(), &session, &last).await;
    assert_eq!(post(program.url(), &session, (&again, "yes")).await, 202);
    let answer = next(&mut stream).await;
    assert_eq!((&answer["id"], text(&answer["result"])), (&json!(1), "The answer is: yes. Attempt 1."), "{answer}");
}

// A42: the answer comes after the client's own deadline, and only the next call hears of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_after_the_client_left_wakes_the_call_whose_time_did_not_run() {
    let program = setup("[defaults]\ntimeout = { attempt = \"500ms\", total = \"1s\" }\n").serve().await;
    let session = session(program.url()).await;
    let arguments = json!({"question": "Sure?"});
    let (stream, question) = asked(program.url(), &session, arguments.clone()).await;
    drop(stream);
    // Longer than the call may run.
    gap(Duration::from_millis(1_500)).await;
    assert_eq!(post(program.url(), &session, (&question, "yes")).await, 202);
    let id = question["id"].as_str().unwrap().split('.').next().unwrap().to_owned();
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": {"name": "demo_ask", "arguments": arguments}});
    let again = Request::legacy(program.url(), Some(&session), &call.to_string()).exchange(program.url()).await;
    let again = again.answer()["result"].clone();
    assert_eq!((execution(&again), text(&again)), (id.as_str(), "The answer is: yes. Attempt 1."), "{again}");
    assert_eq!(program.executions().await.len(), 1);
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_question_of_a_killed_process_is_asked_again_and_answered_from_the_store() {
    let mut program = setup("").serve().await;
    let session = session(program.url()).await;
    let (stream, question) = asked(program.url(), &session, json!({"question": "Sure?"})).await;
    let id = question["id"].as_str().unwrap().split('.').next().unwrap().to_owned();
    program.kill_9().await;
    drop(stream);
    let program = program.restart().await;
    assert_eq!(post(program.url(), &session, (&question, "yes")).await, 202);
    let result = result_of(&program, &session, &id).await;
    assert_eq!(text(&result), "The answer is: yes. Attempt 2.", "{result}");
    let events = names(&program, &id).await;
    assert_eq!((&*events[2], &*events[3]), ("held", "retried"), "{events:?}");
    program.check_store().await;
}

async fn names(program: &Program, id: &str) -> Vec<String> {
    program.events(id).await.iter().map(|event| event["type"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn state_of(program: &Program, id: &str) -> String {
    let rows = program.executions().await;
    let row = rows.iter().find(|row| row["id"] == *id).unwrap_or_else(|| panic!("no {id}"));
    row["state"].as_str().unwrap().to_owned()
}

async fn result_of(program: &Program, session: &str, id: &str) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "durable_result", "arguments": {"execution_id": id}}});
    let answer = Request::legacy(program.url(), Some(session), &call.to_string()).exchange(program.url()).await;
    answer.answer()["result"].clone()
}

/// A call of 2026-07-28 by a client with elicitation, or its continuation.
fn modern(url: &str, arguments: &Value, more: &Value) -> Request {
    let mut params = json!({"name": "demo_ask", "arguments": arguments});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    params["_meta"] = meta;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    Request::modern_text(url, "tools/call", Some("demo_ask"), &body)
}

async fn said(request: Request, url: &str) -> Value {
    let response = request.exchange(url).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.answer()
}

/// The continuation of an `input_required` answer.
fn continued(required: &Value, answer: &str) -> Value {
    let requests = required["inputRequests"].as_object().unwrap_or_else(|| panic!("no questions: {required}"));
    let response = json!({"action": "accept", "content": {"answer": answer}});
    let responses: Value =
        requests.keys().map(|key| (key.clone(), response.clone())).collect::<serde_json::Map<_, _>>().into();
    json!({"requestState": required["requestState"], "inputResponses": responses})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_modern_call_goes_on_by_its_state_at_any_process_and_each_round_takes_one_answer() {
    let setup = setup("");
    let (first, second) = (setup.serve().await, setup.serve().await);
    for parked in [false, true] {
        let arguments = json!({"question": "Sure?", "parked": parked});
        let required = said(modern(first.url(), &arguments, &json!({})), first.url()).await["result"].clone();
        assert_eq!(required["resultType"], "input_required", "{required}");
        assert!(required.get("content").is_none(), "{required}");
        let question = &required["inputRequests"]["answer"];
        assert_eq!(
            (&question["method"], &question["params"]["message"]),
            (&json!("elicitation/create"), &json!("Sure?"))
        );
        let state = required["requestState"].as_str().unwrap();
        assert!(!state.contains(execution(&required)));

        // Nothing, nonsense, and an answer that is none: asked again.
        for responses in [json!({}), json!({"other": {"action": "accept"}}), json!({"answer": {"action": "maybe"}})] {
            let more = json!({"requestState": state, "inputResponses": responses});
            let again = said(modern(second.url(), &arguments, &more), second.url()).await["result"].clone();
            assert_eq!(again["inputRequests"], required["inputRequests"], "{again}");
            assert_eq!(execution(&again), execution(&required));
        }
        let done = said(modern(second.url(), &arguments, &continued(&required, "yes")), second.url()).await;
        assert_eq!(text(&done["result"]), "The answer is: yes. Attempt 1.", "{done}");
        assert_eq!(execution(&done["result"]), execution(&required));

        // The same again is the same; another answer is refused.
        let again = said(modern(first.url(), &arguments, &continued(&required, "yes")), first.url()).await;
        assert_eq!(text(&again["result"]), "The answer is: yes. Attempt 1.", "{again}");
        let other = said(modern(first.url(), &arguments, &continued(&required, "no")), first.url()).await;
        assert_eq!(other["error"]["code"], -32602, "{other}");
    }
    assert_eq!(first.executions().await.len(), 2);
    first.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_is_good_for_its_request_only_and_for_its_time() {
    let program = setup("[limits]\ninput_timeout = \"1500ms\"").serve().await;
    let url = program.url();
    let arguments = json!({"question": "Sure?", "parked": true});
    let required = said(modern(url, &arguments, &json!({})), url).await["result"].clone();
    let state = required["requestState"].as_str().unwrap();
    let mut tampered = state.to_owned();
    let last = if tampered.ends_with('A') { "B" } else { "A" };
    tampered.replace_range(tampered.len() - 1.., last);
    let mut flipped = state.to_owned();
    let middle = state.len() / 2;
    flipped.replace_range(middle..=middle, if &state[middle..=middle] == "A" { "B" } else { "A" });
    for bad in [tampered, flipped, format!("{state}A"), format!("{state}="), String::new(), "x".repeat(100_000)] {
        let mut more = continued(&required, "yes");
        more["requestState"] = json!(bad);
        let refused = said(modern(url, &arguments, &more), url).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let elsewhere = json!({"question": "Other?", "parked": true});
    let refused = said(modern(url, &elsewhere, &continued(&required, "yes")), url).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let id = execution(&required).to_owned();
    // Nobody answers: the tool is told that the user turned away, and the state is good no more.
    support::eventually_async("it ends", DEADLINE, async || state_of(&program, &id).await == "completed").await;
    let late = said(modern(url, &arguments, &continued(&required, "yes")), url).await;
    assert_eq!(late["error"]["code"], -32602, "{late}");
    let params = json!({"name": "durable_result", "arguments": {"execution_id": id}});
    let result = Request::modern(url, json!(1), "tools/call", params).exchange(url).await.answer();
    assert_eq!(text(&result["result"]), "The answer is: (cancel). Attempt 1.", "{result}");
}

async fn token(setup: &Setup, principal: &str) -> String {
    let ran = setup.cli(&["token", "create", "--principal", principal, "--scope", "call,read"]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

fn of(request: Request, bearer: &str) -> Request {
    request.header("Authorization", &format!("Bearer {bearer}"))
}

// A43: and is taken from its owner only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_answers_or_continues_what_is_somebody_elses() {
    let setup = setup("[auth]\nmode = \"token\"");
    let program = setup.serve_on(0).await;
    let url = program.url();
    let (ann, eve) = (token(&setup, "ann").await, token(&setup, "eve").await);
    let arguments = json!({"question": "Sure?", "parked": true});
    let required = said(of(modern(url, &arguments, &json!({})), &ann), url).await["result"].clone();
    let stolen = said(of(modern(url, &arguments, &continued(&required, "no")), &eve), url).await;
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");

    // The id of the question is no secret that opens anything.
    let bearer = ("Authorization".to_owned(), format!("Bearer {eve}"));
    let session = open_session_of(url, "2025-11-25", &json!({"elicitation": {}}), &[bearer]).await.unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": format!("{}.1", execution(&required)),
        "result": {"action": "accept", "content": {"answer": "no"}}});
    let ignored = of(Request::legacy(url, Some(&session), &answer.to_string()), &eve).exchange(url).await;
    assert_eq!(ignored.status, 202);
    let done = said(of(modern(url, &arguments, &continued(&required, "yes")), &ann), url).await;
    assert_eq!(text(&done["result"]), "The answer is: yes. Attempt 1.", "{done}");
}

/// Rounds of one principal, each with questions that only it may see.
async fn many_rounds(url: String, (name, bearer): (&'static str, String), calls: usize) -> usize {
    let mut rounds = 0;
    for call in 0..calls {
        let question = format!("{name} {call}?");
        let arguments = json!({"question": question, "parked": true, "times": 20});
        let mut answer = said(of(modern(&url, &arguments, &json!({})), &bearer), &url).await["result"].clone();
        let own = execution(&answer).to_owned();
        while answer["resultType"] == "input_required" {
            let requests = answer["inputRequests"].as_object().unwrap();
            for request in requests.values() {
                let message = request["params"]["message"].as_str().unwrap();
                assert!(message.starts_with(&question), "{name} sees {message}");
            }
            rounds += requests.len();
            let more = continued(&answer, &format!("{name}{call}"));
            answer = said(of(modern(&url, &arguments, &more), &bearer), &url).await["result"].clone();
            assert_eq!(execution(&answer), own);
        }
        let expected = vec![format!("{name}{call}"); 20].join(", ");
        assert_eq!(text(&answer), format!("The answer is: {expected}. Attempt 1."));
    }
    rounds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_principals_ask_and_answer_for_a_thousand_rounds_and_no_message_crosses() {
    let setup = setup("[auth]\nmode = \"token\"");
    let program = setup.serve_on(0).await;
    let (ann, eve) = (token(&setup, "ann").await, token(&setup, "eve").await);
    let (ann, eve) = tokio::join!(
        many_rounds(program.url().to_owned(), ("ann", ann), 25),
        many_rounds(program.url().to_owned(), ("eve", eve), 25),
    );
    assert_eq!((ann, eve), (500, 500));
    program.check_store().await;
}

//! What a stdio server says beside its answers: questions to the client, log messages, and whose they are.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::super::call::{Bounds, OPEN_MAX};
use super::super::stdio::Conversation;
use super::super::{Answer, Call, CallError, Caller, Progress, Request, ServerRequest, Tell};
use super::conversation::{begin, bounds, open, open_party};
use super::{call, raw, result, soon};

/// A caller that hands its questions to the test and answers as the test says.
struct Person {
    asked: mpsc::UnboundedSender<(ServerRequest, oneshot::Sender<Answer>)>,
    notices: Mutex<Vec<String>>,
}

type Asked = mpsc::UnboundedReceiver<(ServerRequest, oneshot::Sender<Answer>)>;

impl Person {
    fn new() -> (Arc<Person>, Asked) {
        let (asked, receiver) = mpsc::unbounded_channel();
        (Arc::new(Person { asked, notices: Mutex::default() }), receiver)
    }
}

#[async_trait]
impl Caller for Person {
    fn progress(&self, _progress: Progress) {}

    fn notice(&self, method: &str, params: Option<&RawValue>) {
        let params = params.map_or("", RawValue::get);
        self.notices.lock().unwrap().push(format!("{method} {params}"));
    }

    async fn ask(&self, request: &ServerRequest) -> Answer {
        let (reply, answer) = oneshot::channel();
        self.asked.send((request.clone(), reply)).unwrap();
        answer.await.unwrap()
    }
}

type Running = tokio::task::JoinHandle<Result<Answer, CallError>>;

fn begin_as(conversation: &Arc<Conversation>, person: &Arc<Person>, call: Call, bounds: Bounds) -> Running {
    let (conversation, person) = (conversation.clone(), person.clone());
    tokio::spawn(async move { conversation.call(&call.into(), bounds, &*person).await })
}

const CAPABILITIES: &str = r#"{"elicitation":{"form":{}},"tasks":{"list":{}},"experimental":{}}"#;
const QUESTION: &str = r#"{"jsonrpc":"2.0","id":"s-1","method":"elicitation/create","params":{"message":"?","n":1.0}}"#;

#[tokio::test]
async fn a_servers_question_goes_to_its_call_and_the_answer_goes_back_byte_for_byte() {
    let (conversation, mut server) = open_party(CAPABILITIES, Tell::default()).await;
    let (person, mut asked) = Person::new();
    let running = begin_as(&conversation, &person, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    server.write(QUESTION).await;
    let (question, reply) = soon(asked.recv()).await.unwrap();
    assert_eq!(question.method, "elicitation/create");
    assert_eq!(question.params.unwrap().get(), r#"{"message":"?","n":1.0}"#);
    reply
        .send(Answer::Result(r#"{"action":"accept","content":{"big":123456789012345678901,"x":1.0}}"#.into()))
        .unwrap();
    let answer = server.read().await;
    assert_eq!(answer["id"], "s-1");
    assert_eq!(answer["result"]["action"], "accept");
    server.answer(&request, json!({"done": true})).await;
    result(soon(running).await.unwrap());
}

#[tokio::test]
async fn a_question_between_two_calls_waits_for_the_next_one() {
    let (conversation, mut server) = open_party(CAPABILITIES, Tell::default()).await;
    server.write(QUESTION).await;
    // A ping that is answered says that the question was read.
    server.write(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    assert_eq!(server.read().await["id"], 1);
    let (person, mut asked) = Person::new();
    let _running = begin_as(&conversation, &person, call("t", "{}"), bounds());
    server.expect("tools/call").await;
    assert_eq!(soon(asked.recv()).await.unwrap().0.method, "elicitation/create");
}

#[tokio::test]
async fn a_question_that_is_open_when_its_call_ends_is_refused() {
    let (conversation, mut server) = open_party(CAPABILITIES, Tell::default()).await;
    let (person, mut asked) = Person::new();
    let cancel = CancellationToken::new();
    let running = begin_as(&conversation, &person, call("t", "{}"), Bounds { cancel: cancel.clone(), ..bounds() });
    server.expect("tools/call").await;
    server.write(QUESTION).await;
    let (_, reply) = soon(asked.recv()).await.unwrap();
    cancel.cancel();
    assert_eq!(soon(running).await.unwrap().unwrap_err(), CallError::Cancelled { dispatched: true });
    let refusal = server.read().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("s-1"), &json!(-32603)));
    server.expect("notifications/cancelled").await;
    assert!(reply.is_closed());
}

#[tokio::test]
async fn a_call_has_no_more_open_questions_than_are_allowed() {
    let (conversation, mut server) = open_party(CAPABILITIES, Tell::default()).await;
    let (person, mut asked) = Person::new();
    let _running = begin_as(&conversation, &person, call("t", "{}"), bounds());
    server.expect("tools/call").await;
    let mut open = Vec::new();
    for n in 0..OPEN_MAX {
        server.write(&QUESTION.replace("s-1", &format!("s{n}"))).await;
        open.push(soon(asked.recv()).await.unwrap());
    }
    server.write(QUESTION).await;
    let refusal = server.read().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("s-1"), &json!(-32603)));
    assert!(asked.try_recv().is_err());
}

#[tokio::test]
async fn a_question_that_the_server_takes_back_is_not_answered() {
    let (conversation, mut server) = open_party(CAPABILITIES, Tell::default()).await;
    let (person, mut asked) = Person::new();
    let running = begin_as(&conversation, &person, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    server.write(QUESTION).await;
    let (_, mut reply) = soon(asked.recv()).await.unwrap();
    server.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s-1"}}"#).await;
    soon(reply.closed()).await;
    server.answer(&request, json!({})).await;
    result(soon(running).await.unwrap());
    server.write(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert_eq!(server.read().await["id"], 2, "nothing else was written");
}

#[tokio::test]
async fn the_silence_of_a_server_that_waits_for_an_answer_does_not_count() {
    let (conversation, mut server) = open_party(CAPABILITIES, Tell::default()).await;
    let (person, mut asked) = Person::new();
    let idle = std::time::Duration::from_millis(150);
    let running = begin_as(&conversation, &person, call("t", "{}"), Bounds { idle_timeout: Some(idle), ..bounds() });
    let request = server.expect("tools/call").await;
    server.write(QUESTION).await;
    let (_, reply) = soon(asked.recv()).await.unwrap();
    tokio::time::timeout(idle * 2, std::future::pending::<()>()).await.unwrap_err();
    reply.send(Answer::Result("{}".into())).unwrap();
    server.read().await;
    server.answer(&request, json!({})).await;
    result(soon(running).await.unwrap());
}

#[tokio::test]
async fn log_messages_go_to_the_newest_call_of_the_party_and_else_to_the_party() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = {
        let told = told.clone();
        Tell::new(move |method, params| {
            told.lock().unwrap().push(format!("{method} {}", params.map_or("", RawValue::get)));
        })
    };
    let (conversation, mut server) = open_party(CAPABILITIES, tell).await;
    let message = |n: u32| format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"n":{n}}}}}"#);
    server.write(&message(1)).await;
    server.write(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    server.read().await;
    let (person, _asked) = Person::new();
    let running = begin_as(&conversation, &person, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    server.write(&message(2)).await;
    server.answer(&request, json!({})).await;
    result(soon(running).await.unwrap());
    assert_eq!(*told.lock().unwrap(), [r#"notifications/message {"n":1}"#]);
    assert_eq!(*person.notices.lock().unwrap(), [r#"notifications/message {"n":2}"#]);
}

#[tokio::test]
async fn on_a_shared_leg_nobody_hears_log_messages_and_nobody_is_asked() {
    let (conversation, mut server) = open().await;
    let (person, mut asked) = Person::new();
    let running = begin_as(&conversation, &person, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    server.write(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}"#).await;
    server.write(QUESTION).await;
    let refusal = server.read().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("s-1"), &json!(-32601)));
    server.answer(&request, json!({})).await;
    result(soon(running).await.unwrap());
    assert!(person.notices.lock().unwrap().is_empty());
    assert!(asked.try_recv().is_err());
}

#[tokio::test]
async fn a_caller_of_the_later_era_is_served_in_it_where_the_server_speaks_both() {
    let (conversation, mut server) = open().await;
    let modern = Call {
        prefers_modern: true,
        client_capabilities: Some(raw(r#"{"sampling":{}}"#)),
        log_level: Some("info".to_owned()),
        ..call("t", "{}")
    };
    let running = begin(&conversation, modern.clone(), bounds());
    let probe = server.expect("server/discover").await;
    server.answer(&probe, json!({"supportedVersions": ["2026-07-28"], "capabilities": {}})).await;
    let request = server.expect("tools/call").await;
    let meta = &request["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({"sampling": {}}));
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "info");
    server.answer(&request, json!({})).await;
    result(soon(running).await.unwrap());

    // It was asked once, and others are served as agreed.
    let running = begin(&conversation, call("t", "{}"), bounds());
    let request = server.expect("tools/call").await;
    assert!(request["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_none());
    server.answer(&request, json!({})).await;
    result(soon(running).await.unwrap());
    let running = begin(&conversation, modern, bounds());
    let request = server.expect("tools/call").await;
    server.answer(&request, json!({})).await;
    result(soon(running).await.unwrap());
}

#[test]
fn params_that_are_passed_on_keep_their_bytes_and_lose_only_what_is_ours_or_the_senders() {
    let params = r#"{"uri":"x://\u00e9","n":1.0,"_meta":{"a":[1e2],"durable-mcp/wait":5,"progressToken":"t"}}"#;
    let request = Request::with_params("resources/read", Some(params)).unwrap();
    let sent = super::super::message::request_params(crate::model::revision::Revision::LATEST_LEGACY, &request, 7);
    assert_eq!(sent, r#"{"uri":"x://\u00e9","n":1.0,"_meta":{"progressToken":7,"a":[1e2]}}"#);
    assert!(Request::with_params("resources/read", Some("[]")).is_none());
}

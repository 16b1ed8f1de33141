//! What is passed on beside calls, and what is answered here.

use std::sync::Weak;

use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::engine::client::ClientContext;
use crate::worker::legs::{Isolation, LegSettings};
use crate::worker::upstream::tests::http_server::{Server, modern};
use crate::worker::upstream::tests::soon;
use crate::worker::upstream::{HttpSettings, Transport, Upstream, UpstreamSettings};

fn forwarder(server: &Server) -> Arc<UpstreamForwarder> {
    let upstream = Upstream::start(UpstreamSettings::new("web", Transport::Http(HttpSettings::new(&server.url))));
    UpstreamForwarder::new(Legs::over(&Weak::new(), upstream, LegSettings::default()))
}

fn request(method: &str, params: &str) -> Forward {
    let capabilities = RawValue::from_string(r#"{"sampling":{}}"#.to_owned()).ok();
    Forward {
        upstream: "web".into(),
        method: method.into(),
        params: Some(params.into()),
        client: Arc::new(ClientContext {
            revision: Some("2026-07-28".into()),
            capabilities,
            ..ClientContext::default()
        }),
        namespace: "default".into(),
        principal: "ann".into(),
        timeout_ms: None,
    }
}

#[tokio::test]
async fn an_answer_passes_byte_for_byte_and_so_does_an_error() {
    let server = Server::start(|seen| {
        modern(seen).unwrap_or_else(|| match seen.method() {
            "prompts/get" => seen.result(json!({"resultType": "input_required", "requestState": "s"})),
            _ => seen.error(400, -32021, "missing"),
        })
    })
    .await;
    let forwarder = forwarder(&server);
    let params = r#"{"name":"p","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"them"},"x":1.0}}"#;
    match soon(forwarder.forward(request("prompts/get", params), &|_| {})).await.unwrap() {
        Forwarded::Result(result) => assert_eq!(&*result, r#"{"requestState":"s","resultType":"input_required"}"#),
        other => panic!("{other:?}"),
    }
    let meta = server.seen("prompts/get")[0].body["params"]["_meta"].clone();
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "durable-mcp");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({"sampling": {}}));
    assert_eq!(meta["x"], 1.0);
    match soon(forwarder.forward(request("resources/read", r#"{"uri":"a://1"}"#), &|_| {})).await.unwrap() {
        Forwarded::Error(error) => assert!(error.contains("-32021"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_costs_the_time_that_was_given() {
    let server = Server::start(|seen| {
        modern(seen).unwrap_or_else(|| {
            use crate::worker::upstream::tests::http_server::{Ending, events};
            events(String::new(), Ending::Never)
        })
    })
    .await;
    let forwarder = forwarder(&server);
    let forward = Forward { timeout_ms: Some(200), ..request("prompts/get", "{}") };
    assert_eq!(soon(forwarder.forward(forward, &|_| {})).await.unwrap_err(), ForwardError::TimedOut);
}

#[tokio::test]
async fn taking_a_subscription_back_opens_no_leg() {
    let server = Server::start(|seen| modern(seen).unwrap_or_else(|| panic!("{}", seen.method()))).await;
    let upstream = Upstream::start(UpstreamSettings::new("web", Transport::Http(HttpSettings::new(&server.url))));
    let settings = LegSettings { isolation: Isolation::Session, ..LegSettings::default() };
    let legs = Legs::over(&Weak::new(), upstream, settings);
    let client = Arc::new(ClientContext { session: Some("ended".into()), ..ClientContext::default() });
    let forward = Forward { client, ..request("resources/unsubscribe", r#"{"uri":"a://1"}"#) };
    soon(UpstreamForwarder::new(legs.clone()).forward(forward, &|_| {})).await.unwrap();
    assert_eq!(legs.count(), 0);
}

#[tokio::test]
async fn what_a_modern_server_does_not_know_is_answered_here() {
    let server = Server::start(|seen| modern(seen).unwrap_or_else(|| panic!("{}", seen.method()))).await;
    let forwarder = forwarder(&server);
    for (method, params) in [("logging/setLevel", r#"{"level":"info"}"#), ("ping", "{}")] {
        match soon(forwarder.forward(request(method, params), &|_| {})).await.unwrap() {
            Forwarded::Result(result) => assert_eq!(&*result, "{}"),
            other => panic!("{other:?}"),
        }
    }
    let unreadable = soon(forwarder.forward(request("prompts/get", "[]"), &|_| {})).await;
    assert_eq!(unreadable.unwrap_err(), ForwardError::Unreadable);
}

//! What is read of a line, and which calls share a key.

use serde_json::{Value, json};

use super::keys::Keys;
use super::line::{Kind, Line};
use super::server::{Part, headers_of, part, refusal};
use crate::mcp::id::Id;

fn call(params: Value) -> Line {
    Line::read(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string())
}

#[test]
fn a_key_is_added_and_every_other_byte_stays() {
    let text =
        r#"{"jsonrpc":"2.0" , "id":1,"method":"tools/call","params":{"name":"t", "arguments":{"n":1.0e400,"a":1}}}"#;
    let mut line = Line::read(text.to_owned());
    assert!(line.unkeyed.is_some() && !line.repeatable);
    assert!(line.set_key("k"));
    let expected = text.replace("\"a\":1}}}", "\"a\":1},\"_meta\":{\"durable-mcp/idempotencyKey\":\"k\"}}}");
    assert_eq!(line.text, expected);
    assert!(line.repeatable);
}

#[test]
fn a_call_with_a_key_of_its_own_is_not_given_another() {
    for params in [
        json!({"name": "t", "_meta": {"durable-mcp/idempotencyKey": "k"}}),
        json!({"name": "t", "_meta": {"idempotencyKey": "k"}}),
        json!({"name": "t", "idempotencyKey": "k"}),
        json!({"name": "t", "requestState": "s"}),
        json!({"name": "durable_result"}),
    ] {
        let line = call(params.clone());
        assert!(line.unkeyed.is_none() && line.repeatable, "{params}");
    }
    assert!(!call(json!({"name": "durable_retry"})).repeatable);
    assert!(!Line::read(r#"{"jsonrpc":"2.0","id":1,"method":"x/y"}"#.into()).repeatable);
}

#[test]
fn the_same_call_keeps_its_key_only_while_its_end_is_owed() {
    let keys = Keys::default();
    let same = |arguments: &str| {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
        );
        Line::read(text).unkeyed.unwrap()
    };
    let (one, other) = (same(r#"{"a":1,"b":2.0}"#), same(r#"{"a":2,"b":2}"#));
    assert_eq!(one, same(r#"{"b":2, "a":1}"#));
    let key = keys.take(&one);
    assert_ne!(keys.take(&one), key, "two at once are two calls");
    keys.keep(one.clone(), key.clone());
    assert_ne!(keys.take(&other), key);
    assert_eq!(keys.take(&one), key);
    assert_ne!(keys.take(&one), key, "once it is taken up, it is owed no more");
}

#[test]
fn headers_say_what_the_body_says() {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let headers = headers_of(&call(json!({"name": "grüße", "_meta": meta})), None);
    assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
    assert_eq!(headers["mcp-method"], "tools/call");
    assert_eq!(headers["mcp-name"], "=?base64?Z3LDvMOfZQ==?=");
    let headers = headers_of(&call(json!({"name": "t"})), None);
    assert!(headers.get("mcp-method").is_none(), "a legacy request has none");
}

#[test]
fn lines_are_told_apart() {
    let kind = |text: &str| Line::read(text.to_owned()).kind;
    let id = |number| Id::from_number(number);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Kind::Request(id(1)));
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Kind::Response);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), Kind::Notification);
    let cancelled = |reason: &str| {
        kind(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,"reason":"{reason}"}}}}"#
        ))
    };
    assert_eq!(cancelled("no"), Kind::Cancelled { request: id(1), timed_out: false });
    assert_eq!(cancelled("Request timed out"), Kind::Cancelled { request: id(1), timed_out: true });
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]"#;
    assert_eq!(kind(batch), Kind::Batch(vec![id(1)]));
    assert_eq!(kind("{"), Kind::Unreadable(None));
}

#[test]
fn an_answer_is_told_from_what_else_comes_with_it() {
    let id = Id::from_number(7);
    let open = json!({"jsonrpc": "2.0", "id": 7, "result": {"_meta": {"durable-mcp/execution": {"state": "leased"}}}});
    assert_eq!(part(&open.to_string(), &id), Part::Answer { open: true, refuses_keys: false });
    let ended =
        json!({"jsonrpc": "2.0", "id": 7, "result": {"_meta": {"durable-mcp/execution": {"state": "unknown"}}}});
    assert_eq!(part(&ended.to_string(), &id), Part::Answer { open: false, refuses_keys: false });
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 0.5}});
    assert_eq!(part(&progress.to_string(), &id), Part::Progress(0.5));
    assert_eq!(part(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, &id), Part::Other);
    let unnamed = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#;
    assert_eq!(refusal(unnamed, &id).unwrap(), r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"no"}}"#);
    assert_eq!(refusal(r#"{"error":"who are you?"}"#, &id), None);
}

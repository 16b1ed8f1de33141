//! What a tool's answer prints and how the command ends; the messages of the client.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cli::call;
use crate::cli::mcp_client::{Events, RpcError, ToolCall, body};
use crate::cli::output::Output;

fn result(state: Option<&str>, is_error: bool, rest: Value) -> Box<RawValue> {
    let mut result = json!({ "isError": is_error });
    if let Some(state) = state {
        result["_meta"] = json!({ "durable-mcp/execution": { "id": "the-id", "state": state, "attached": false } });
    }
    result.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    serde_json::value::to_raw_value(&result).unwrap()
}

fn told(result: &RawValue, asked: bool, json: bool) -> (u8, String) {
    let (out, written) = Output::in_memory(false);
    let exit = call::tell(result, asked, json, &out).unwrap() as u8;
    let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    (exit, text)
}

#[test]
fn the_exit_code_says_what_became_of_the_call() {
    let text = || json!({ "content": [{ "type": "text", "text": "words" }] });
    for (state, is_error, asked, exit, stdout) in [
        (Some("completed"), false, false, 0, "words\n"),
        (Some("completed"), true, false, 5, "words\n"),
        (Some("failed"), true, false, 5, ""),
        (Some("cancelled"), true, false, 1, ""),
        (Some("unknown"), true, false, 9, ""),
        (Some("leased"), true, false, 8, ""),
        (Some("ready"), false, false, 8, ""),
        (Some("leased"), false, true, 0, "the-id\n"),
        (Some("completed"), false, true, 0, "words\n"),
        // Another server than ours, or a tool of our own that is no execution.
        (None, false, false, 0, "words\n"),
        (None, true, false, 5, "words\n"),
    ] {
        let result = result(state, is_error, text());
        assert_eq!(told(&result, asked, false), (exit, stdout.into()), "{state:?} {is_error} {asked}");
        assert_eq!(told(&result, asked, true), (exit, format!("{}\n", result.get())), "{state:?} as json");
    }
}

#[test]
fn what_is_no_text_is_printed_as_json() {
    for (members, expect) in [
        (json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }), "a\nb\n"),
        (json!({ "content": [{ "type": "image", "data": "x" }] }), "{\"data\":\"x\",\"type\":\"image\"}\n"),
        (json!({ "content": [], "structuredContent": { "n": 1 } }), "{\"n\":1}\n"),
        (json!({ "structuredContent": [1] }), "[1]\n"),
        (json!({ "content": [{ "type": "text" }] }), "{\"type\":\"text\"}\n"),
    ] {
        assert_eq!(told(&result(Some("completed"), false, members), false, false), (0, expect.into()));
    }
}

#[test]
fn json_rpc_errors_have_their_exit_codes() {
    for (code, message, exit) in [
        (-31409, "the idempotency key is already used", 6),
        (-31429, "too many", 1),
        (-31503, "no store", 1),
        (-32602, "unknown tool: x", 3),
        (-32602, "params.name is missing", 2),
        (-32603, "internal fault", 1),
        (-32000, "the upstream's own", 5),
        (7, "the upstream's own", 5),
    ] {
        let error = RpcError { code, message: message.into(), data: json!({ "next": "do this" }) };
        let failure = call::refused(&error, "x");
        assert_eq!(failure.exit, exit, "{code} {message}");
        assert_eq!(failure.to_string(), format!("error: x: {message}; do this"));
    }
}

#[test]
fn arguments_are_the_exact_text_of_an_object() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    std::fs::write(&file, "\u{feff} {\"n\": 1.0}\n").unwrap();
    assert_eq!(call::arguments(&format!("@{}", file.display())).unwrap(), "{\"n\": 1.0}");
    assert_eq!(call::arguments(" {\"n\":10000000000000000000001} ").unwrap(), "{\"n\":10000000000000000000001}");
    for text in ["", "[]", "1", "{", "{} {}", "secret", "@/no/such/file"] {
        let failure = call::arguments(text).unwrap_err();
        assert_eq!(failure.exit, 2, "{text}");
        assert!(!failure.to_string().contains("secret"), "{failure}");
    }
}

#[test]
fn a_call_carries_its_arguments_unchanged_and_its_wishes_in_meta() {
    let call = |key: Option<&str>, wait_ms| ToolCall {
        name: "a\"b".into(),
        arguments: "{ \"n\": 1.0 }".into(),
        key: key.map(str::to_owned),
        wait_ms,
    };
    let text = body(&call(Some("k"), Some(0)));
    assert!(text.contains(r#""name":"a\"b","arguments":{ "n": 1.0 },"_meta":{"#), "{text}");
    let meta = &serde_json::from_str::<Value>(&text).unwrap()["params"]["_meta"];
    assert_eq!((&meta["durable-mcp/idempotencyKey"], &meta["durable-mcp/wait"]), (&json!("k"), &json!(0)));
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    let plain = serde_json::from_str::<Value>(&body(&call(None, None))).unwrap();
    assert_eq!(plain["params"]["_meta"].as_object().unwrap().len(), 3);
}

#[test]
fn events_are_read_from_any_pieces() {
    let stream =
        b": comment\n\nevent: message\r\nid: 7\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:two\n\ndata\n\ndata: cut";
    let whole = ["{\"a\":\n1}", "two"];
    for size in [1, 2, 3, 7, stream.len()] {
        let mut events = Events::default();
        let found: Vec<String> = stream.chunks(size).flat_map(|chunk| events.feed(chunk).unwrap()).collect();
        assert_eq!(found, whole, "in pieces of {size}");
    }
    assert!(Events::default().feed(b"data: \xff\n\n").is_err());
}

//! What we send and read, as text.

use std::sync::Arc;

use crate::model::payload::LONG_BYTES;
use crate::model::redact::Rules;
use crate::model::revision::Revision;
use serde_json::Value;

use super::super::log_budget::{Unloggable, loggable};
use super::super::message::{self, Incoming, LongResult, Meta, Said};
use super::super::{Answer, Call, Request, Secret};
use super::{call, raw};

#[test]
fn arguments_and_passed_meta_keep_their_bytes_and_the_senders_members_are_ours() {
    let call = Call {
        meta: vec![
            ("progressToken".to_owned(), raw("\"theirs\"")),
            ("io.modelcontextprotocol/clientInfo".to_owned(), raw("{}")),
            ("durable-mcp/fencingToken".to_owned(), raw("1.0")),
        ],
        ..call("a\"b", "{\"n\":1.0,\n \"big\":123456789012345678901234567890,\"u\":\"\\u00e9\"}")
    };
    let call = Request::from(call);
    let legacy = message::request_params(Revision::LATEST_LEGACY, &call, 5);
    assert_eq!(
        legacy,
        r#"{"name":"a\"b","arguments":{"n":1.0,  "big":123456789012345678901234567890,"u":"\u00e9"},"_meta":{"progressToken":5,"durable-mcp/fencingToken":1.0}}"#
    );
    let modern: Value = serde_json::from_str(&message::request_params(Revision::MODERN, &call, 5)).unwrap();
    assert_eq!(modern["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(modern["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "durable-mcp");
    assert_eq!(modern["_meta"]["io.modelcontextprotocol/clientCapabilities"], serde_json::json!({}));
    assert_eq!(modern["_meta"]["durable-mcp/fencingToken"], 1.0);
}

#[test]
fn a_legacy_request_without_meta_has_none() {
    assert_eq!(message::params(Revision::LATEST_LEGACY, &[], Meta::default()), "{}");
}

#[test]
fn a_result_keeps_its_bytes() {
    let text = r#"{"id":"3","result":{"x":1.0,"y":null,"é":"\u00e9"},"jsonrpc":"2.0","more":[1]}"#;
    let messages = message::parse(text.as_bytes()).unwrap();
    match messages.as_slice() {
        [Incoming::Response { id: 3, answer: Said::Result(result) }] => {
            assert_eq!(result.get(), r#"{"x":1.0,"y":null,"é":"\u00e9"}"#);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_long_result_takes_over_its_message_whatever_else_is_in_it() {
    let result = format!("{{\"text\":\"{}\"}}", "é".repeat(LONG_BYTES));
    let more: [&[u8]; 2] = [b"\"more\"", b"\"\xff\""];
    for (more, stays) in more.into_iter().zip([true, false]) {
        let text = [format!("{{\"id\":3,\"result\":{result},\"x\":").as_bytes(), more, b"}"].concat();
        let messages = message::parse(&text).unwrap();
        let long = LongResult::of(&messages, &text).expect("a long result");
        drop(messages);
        let at = text.as_ptr() as usize + 17;
        let (id, Answer::Result(taken)) = (long.id, long.taken_from(text)) else { panic!("an error") };
        assert_eq!((id, &*taken), (3, &*result));
        assert_eq!(taken.as_ptr() as usize == at, stays, "{}", more.escape_ascii());
    }
    for other in
        [format!("[{{\"id\":1,\"result\":{result}}},{{\"id\":2,\"result\":1}}]"), "{\"id\":1,\"result\":1}".into()]
    {
        assert!(LongResult::of(&message::parse(other.as_bytes()).unwrap(), other.as_bytes()).is_none());
    }
}

#[test]
fn a_batch_is_read_as_its_messages() {
    let text =
        br#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":1,"error":{"code":1}},{"id":null}]"#;
    let messages = message::parse(text).unwrap();
    assert!(matches!(
        messages.as_slice(),
        [
            Incoming::Notification { .. },
            Incoming::Response { id: 1, answer: Said::Error(_) },
            Incoming::Broken { id: None }
        ]
    ));
}

#[test]
fn what_is_no_message_is_refused() {
    for text in ["", "hello", "{", "[1]", "1", "{\"id\":1", "\"x\"", "{\"method\":1}"] {
        assert!(message::parse(text.as_bytes()).is_none(), "{text}");
    }
    assert!(message::parse(b"{\"method\":\"\xff\"}").is_none());
}

#[test]
fn a_secret_shows_itself_to_nobody() {
    assert_eq!(format!("{:?}", Secret::new("canary")), "[secret]");
}

#[test]
fn a_log_line_holds_no_secret_and_no_control_character() {
    let rules = |patterns: &[&'static str], pointers: &[&'static str]| {
        Arc::new(Rules::parse(patterns.iter().copied(), pointers.iter().copied(), []).unwrap())
    };
    let secrets = vec![Secret::new("canary-value"), Secret::new("a")];
    let mut unloggable = Unloggable { secrets, rules: rules(&["w[a-z]rd"], &[]) };
    let line = loggable(b"token=canary-value\x1b[31m and a word", &unloggable);
    assert_eq!(line, "token=[secret] [31m and a [redacted]");
    let long = format!("{}canary-value", "x".repeat(4 * 1024 - 6));
    assert!(!loggable(long.as_bytes(), &unloggable).contains("canary"));
    // What is known by its place only may stand anywhere in a line.
    unloggable.rules = rules(&[], &["/password"]);
    assert_eq!(loggable(b"hunter22", &unloggable), "[a line that may repeat what is redacted]");
}

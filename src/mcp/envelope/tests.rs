//! Classification of messages and what is refused.

use super::*;

const LIMITS: Limits = Limits { bytes_max: 4096, depth_max: 64, batch_max: 3 };

fn one(text: &str) -> Result<Message<'_>, Refused> {
    match parse(text.as_bytes(), &LIMITS)? {
        Incoming::One(message) => Ok(message),
        Incoming::Batch(_) => panic!("one message is expected"),
    }
}

fn refusal(text: &str) -> (i64, Option<String>) {
    let refused = one(text).expect_err(text);
    (refused.fault.code(), refused.id.map(|id| id.raw().to_owned()))
}

#[test]
fn a_request_is_borrowed_from_the_text() {
    let text = r#" {"id":"\u0061","params": {"x":1.0} ,"method":"tools\/call","jsonrpc":"2.0","extra":[1]} "#;
    let Ok(Message::Request { id, method, params }) = one(text) else { panic!("a request is expected") };
    assert_eq!(id.raw(), r#""\u0061""#);
    assert_eq!(method, "tools/call");
    assert_eq!(params.unwrap().get(), r#"{"x":1.0}"#);
}

#[test]
fn notifications_and_responses_are_told_apart() {
    let text = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert!(matches!(one(text), Ok(Message::Notification { params: None, .. })));
    let text = r#"{"jsonrpc":"2.0","id":7,"result":null}"#;
    assert!(matches!(one(text), Ok(Message::Response { outcome: Outcome::Result(_), .. })));
    let text = r#"{"jsonrpc":"2.0","id":"s.1","error":{"code":-1,"message":"no"}}"#;
    assert!(matches!(one(text), Ok(Message::Response { outcome: Outcome::Error(_), .. })));
}

#[test]
fn an_error_without_an_id_is_a_response_so_that_nobody_answers_it() {
    for id in ["", r#""id":null,"#] {
        let text = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"what?"}}}}"#);
        assert!(matches!(one(&text), Ok(Message::Response { id: None, outcome: Outcome::Error(_) })));
    }
}

#[test]
fn null_params_count_as_absent() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#;
    assert!(matches!(one(text), Ok(Message::Request { params: None, .. })));
}

#[test]
fn wrong_envelopes_are_refused_under_their_id() {
    let cases = [
        (r#"{"id":1,"method":"m"}"#, -32600, Some("1")),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, -32600, Some("1")),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, -32600, Some("1")),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, -32600, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, -32600, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, -32602, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}"#, -32602, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, -32600, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, Some("1")),
        (r#"{"jsonrpc":"2.0","result":{}}"#, -32600, None),
        ("{}", -32600, None),
        ("5", -32600, None),
        ("\"x\"", -32600, None),
        ("null", -32600, None),
    ];
    for (text, code, id) in cases {
        assert_eq!(refusal(text), (code, id.map(str::to_owned)), "{text}");
    }
}

#[test]
fn a_broken_text_has_no_id_whatever_its_start_says() {
    let cases = [
        "",
        "\n",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"par",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x",
        "{'jsonrpc':'2.0'}",
    ];
    for text in cases {
        assert_eq!(refusal(text), (-32700, None), "{text}");
    }
    // The grammar permits half a surrogate pair, so there is an id, and somebody who waits for it.
    let half = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}"#;
    assert_eq!(refusal(half), (-32700, Some("1".to_owned())));
    let refused = parse(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", &LIMITS).unwrap_err();
    assert_eq!((refused.fault.code(), refused.id), (-32700, None));
}

#[test]
fn duplicates_and_depth_are_refused_under_the_id_if_there_is_one() {
    let text = r#"{"jsonrpc":"2.0","method":"m","params":{"a":1,"a":2},"id":"z"}"#;
    assert_eq!(refusal(text), (-32600, Some("\"z\"".into())));
    let deep =
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":{}{}}},"id":9}}"#, "[".repeat(100), "]".repeat(100));
    assert_eq!(refusal(&deep), (-32600, Some("9".into())));
    assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#), (-32600, None));
}

#[test]
fn size_is_limited_before_anything_is_read() {
    let text = " ".repeat(4097);
    let refused = parse(text.as_bytes(), &LIMITS).unwrap_err();
    assert_eq!(refused.fault, Fault::TooLarge { bytes_max: 4096 });
}

#[test]
fn batches_are_split_and_limited() {
    let batch = |text: &'static str| match parse(text.as_bytes(), &LIMITS) {
        Ok(Incoming::Batch(items)) => Ok(items.len()),
        Ok(Incoming::One(_)) => panic!("a batch is expected"),
        Err(refused) => Err(refused.fault),
    };
    assert_eq!(batch(r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}, 5]"#), Ok(2));
    assert_eq!(batch("[]"), Err(Fault::EmptyBatch));
    assert_eq!(batch("[1,2,3,4]"), Err(Fault::LongBatch { batch_max: 3 }));
    assert!(matches!(batch(r#"[{"a":1,"a":1}]"#), Err(Fault::Json(_))));
}

#[test]
fn an_array_is_never_read_as_a_message_by_position() {
    let refused = classify(r#"["2.0",1,"ping"]"#).unwrap_err();
    assert_eq!(refused.fault.code(), -32600);
}

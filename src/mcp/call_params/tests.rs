//! Reading `tools/call`.

use serde_json::value::RawValue;

use super::*;

fn parse(text: &str) -> Result<CallParams<'_>, ParamsError> {
    CallParams::parse(Some(serde_json::from_str::<&RawValue>(text).unwrap()))
}

#[test]
fn everything_keeps_its_bytes() {
    let text = r#"{"name":"demo_echo","arguments":{"b":1.0, "a":[123456789012345678901234567890]},
        "idempotencyKey":"k","task":{"ttl":1},"inputResponses":{"x":{}},"requestState":"s\n","future":{"x": 1e2}}"#;
    let call = parse(text).unwrap();
    assert_eq!(call.name, "demo_echo");
    assert_eq!(call.arguments.unwrap().get(), r#"{"b":1.0, "a":[123456789012345678901234567890]}"#);
    assert_eq!(call.idempotency_key.unwrap().get(), r#""k""#);
    assert_eq!(call.task.unwrap().get(), r#"{"ttl":1}"#);
    assert_eq!(call.input_responses.unwrap().get(), r#"{"x":{}}"#);
    assert_eq!(call.request_state.as_deref(), Some("s\n"));
    assert_eq!(call.passthrough.len(), 1);
    assert_eq!(call.passthrough[0].1.get(), r#"{"x": 1e2}"#);
}

#[test]
fn null_members_count_as_absent() {
    let call = parse(r#"{"name":"t","arguments":null,"task":null,"requestState":null,"idempotencyKey":null}"#).unwrap();
    assert!(call.arguments.is_none() && call.task.is_none() && call.idempotency_key.is_none());
}

#[test]
fn wrong_members_are_named() {
    let cases = [
        ("{}", "params.name is missing"),
        (r#"{"name":null}"#, "params.name is missing"),
        (r#"{"name":5}"#, "params.name is not a string"),
        (r#"{"name":"t","arguments":[1]}"#, "params.arguments is not an object"),
        (r#"{"name":"t","arguments":"{}"}"#, "params.arguments is not an object"),
        (r#"{"name":"t","task":true}"#, "params.task is not an object"),
        (r#"{"name":"t","inputResponses":[]}"#, "params.inputResponses is not an object"),
        (r#"{"name":"t","requestState":{}}"#, "params.requestState is not a string"),
    ];
    for (text, message) in cases {
        let error = parse(text).expect_err(text);
        assert_eq!((error.to_string().as_str(), error.code()), (message, -32602));
    }
    assert!(CallParams::parse(None).is_err());
}

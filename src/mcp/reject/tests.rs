//! Rendering and statuses of errors.

use serde_json::{Value, json};

use super::*;

#[test]
fn an_error_is_rendered_with_and_without_data() {
    let mut out = String::new();
    RpcError::new(code::CONFLICT, "a \"key\"\n").write(&mut out);
    assert_eq!(out, r#"{"code":-31409,"message":"a \"key\"\n"}"#);

    let mut out = String::new();
    RpcError::new(code::OVERLOAD, "busy").with_data(&json!({"type": "overload", "retryable": true})).write(&mut out);
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["data"]["retryable"], json!(true));
}

#[test]
fn statuses_follow_era_and_source() {
    use Era::*;
    use Source::*;
    let cases = [
        (Modern, Envelope, code::PARSE_ERROR, 400),
        (Modern, Envelope, code::INVALID_REQUEST, 400),
        (Modern, Envelope, code::INVALID_PARAMS, 400),
        (Modern, Envelope, code::METHOD_NOT_FOUND, 404),
        (Modern, Envelope, code::HEADER_MISMATCH, 400),
        (Modern, Envelope, code::UNSUPPORTED_PROTOCOL_VERSION, 400),
        (Modern, Handler, code::INVALID_PARAMS, 200),
        (Modern, Handler, code::METHOD_NOT_FOUND, 200),
        (Modern, Handler, code::INTERNAL_ERROR, 200),
        (Modern, Handler, code::MISSING_CLIENT_CAPABILITY, 400),
        (Modern, Handler, code::CONFLICT, 200),
        (Modern, Handler, code::OVERLOAD, 200),
        (Modern, Handler, code::STORE_UNAVAILABLE, 200),
        (Modern, Fault, code::INTERNAL_ERROR, 500),
        (Legacy, Envelope, code::PARSE_ERROR, 400),
        (Legacy, Envelope, code::INVALID_REQUEST, 400),
        (Legacy, Envelope, code::METHOD_NOT_FOUND, 200),
        (Legacy, Envelope, code::INVALID_PARAMS, 200),
        (Legacy, Handler, code::CONFLICT, 200),
        (Legacy, Handler, code::MISSING_CLIENT_CAPABILITY, 200),
        (Legacy, Fault, code::INTERNAL_ERROR, 500),
    ];
    for (era, source, error_code, status) in cases {
        assert_eq!(http_status(era, source, error_code), status, "{era:?} {source:?} {error_code}");
    }
}

#[test]
fn our_own_codes_lie_outside_the_reserved_range() {
    for own in [code::CONFLICT, code::OVERLOAD, code::STORE_UNAVAILABLE] {
        assert!(!(-32768..=-32000).contains(&own));
    }
}

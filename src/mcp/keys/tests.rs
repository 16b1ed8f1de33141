//! All spellings of the idempotency key.

use serde_json::value::RawValue;

use super::*;

struct Given<'a> {
    params: &'a str,
    headers: Vec<&'a [u8]>,
    key_argument: Option<&'a str>,
}

fn resolved(given: &Given<'_>) -> Result<Option<String>, KeyError> {
    let call = CallParams::parse(Some(serde_json::from_str::<&RawValue>(given.params).unwrap())).unwrap();
    resolve(&call, given.headers.iter().copied(), given.key_argument).map(|key| key.map(Cow::into_owned))
}

fn params(params: &str) -> Result<Option<String>, KeyError> {
    resolved(&Given { params, headers: vec![], key_argument: Some("request_id") })
}

fn header(header: &[u8]) -> Result<Option<String>, KeyError> {
    resolved(&Given { params: r#"{"name":"t"}"#, headers: vec![header], key_argument: None })
}

#[test]
fn a_call_without_a_key_has_none() {
    assert_eq!(params(r#"{"name":"t"}"#), Ok(None));
    assert_eq!(params(r#"{"name":"t","arguments":{"request_id":null,"x":1}}"#), Ok(None));
}

#[test]
fn every_spelling_gives_the_same_key() {
    let cases = [
        r#"{"name":"t","_meta":{"durable-mcp/idempotencyKey":"k-1"}}"#,
        r#"{"name":"t","_meta":{"idempotencyKey":"k\u002d1"}}"#,
        r#"{"name":"t","idempotencyKey":"k-1"}"#,
        r#"{"name":"t","arguments":{"request_id":"k-1"}}"#,
        r#"{"name":"t","_meta":{"idempotencyKey":"k-1","durable-mcp/idempotencyKey":"k-1"},"idempotencyKey":"k-1",
            "arguments":{"request_id":"k-1"}}"#,
    ];
    for text in cases {
        assert_eq!(params(text), Ok(Some("k-1".into())), "{text}");
    }
    for value in ["k-1", "\"k-1\"", " k-1 "] {
        assert_eq!(header(value.as_bytes()), Ok(Some("k-1".into())));
    }
    let all = Given {
        params: r#"{"name":"t","idempotencyKey":"k-1"}"#,
        headers: vec![b"k-1", b"\"k-1\""],
        key_argument: None,
    };
    assert_eq!(resolved(&all), Ok(Some("k-1".into())));
}

#[test]
fn an_integer_as_key_argument_counts_by_its_digits() {
    assert_eq!(
        params(r#"{"name":"t","arguments":{"request_id":9007199254740993}}"#),
        Ok(Some("9007199254740993".into()))
    );
    for value in ["1.5", "true", "{}", "[]"] {
        let text = format!(r#"{{"name":"t","arguments":{{"request_id":{value}}}}}"#);
        assert_eq!(params(&text), Err(KeyError::NotText(Spelling::Argument)));
    }
}

#[test]
fn an_argument_is_no_key_where_no_key_argument_is_set() {
    let given = Given {
        params: r#"{"name":"t","arguments":{"request_id":"a"},"idempotencyKey":"b"}"#,
        headers: vec![],
        key_argument: None,
    };
    assert_eq!(resolved(&given), Ok(Some("b".into())));
}

#[test]
fn keys_that_disagree_are_refused_and_both_places_named() {
    let error = params(r#"{"name":"t","idempotencyKey":"a","_meta":{"idempotencyKey":"b"}}"#).unwrap_err();
    assert_eq!(error, KeyError::Disagree { first: Spelling::PlainMeta, second: Spelling::Params });
    let given = Given { params: r#"{"name":"t","idempotencyKey":"a"}"#, headers: vec![b"A"], key_argument: None };
    assert_eq!(resolved(&given), Err(KeyError::Disagree { first: Spelling::Params, second: Spelling::Header }));
    let given = Given { params: r#"{"name":"t"}"#, headers: vec![b"a", b"b"], key_argument: None };
    assert_eq!(resolved(&given).unwrap_err().code(), -32602);
}

#[test]
fn only_visible_ascii_of_the_right_length_is_a_key() {
    let text = |key: &str| format!(r#"{{"name":"t","idempotencyKey":{}}}"#, serde_json::to_string(key).unwrap());
    for good in ["a", "!~", &"k".repeat(255)] {
        assert_eq!(params(&text(good)), Ok(Some(good.to_owned())));
    }
    for bad in ["", " ", "a b", "a\n", "\u{7f}", "é", &"k".repeat(256)] {
        assert_eq!(params(&text(bad)), Err(KeyError::NotVisible(Spelling::Params)), "{bad:?}");
    }
    assert_eq!(params(r#"{"name":"t","idempotencyKey":7}"#), Err(KeyError::NotText(Spelling::Params)));
}

#[test]
fn a_quoted_header_is_unquoted_strictly() {
    assert_eq!(header(br#""a\"b\\c""#), Ok(Some("a\"b\\c".into())));
    for bad in [&b"\"\""[..], b"", b"\"a\"b\"", b"\"a\\b\"", b"\xff", b"a b"] {
        assert_eq!(header(bad), Err(KeyError::NotVisible(Spelling::Header)), "{bad:?}");
    }
}

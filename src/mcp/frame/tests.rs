//! Frames on both transports.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use super::super::reject::code;
use super::*;

fn written(write: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    write(&mut out);
    out
}

#[test]
fn messages_are_built_around_raw_json() {
    let id = Id::parse(serde_json::from_str("12345678901234567890").unwrap()).unwrap();
    assert_eq!(
        written(|out| result(out, &id, "{ \"a\":1.0}")),
        r#"{"jsonrpc":"2.0","id":12345678901234567890,"result":{ "a":1.0}}"#
    );
    assert_eq!(
        written(|out| error(out, None, &RpcError::new(code::PARSE_ERROR, "no JSON"))),
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no JSON"}}"#
    );
    assert_eq!(
        written(|out| raw_error(out, Some(&Id::from_text("a")), r#"{"code":1,"x":2}"#)),
        r#"{"jsonrpc":"2.0","id":"a","error":{"code":1,"x":2}}"#
    );
    assert_eq!(
        written(|out| notification(out, "notifications/progress", Some(r#"{"progress":1}"#))),
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#
    );
    assert_eq!(
        written(|out| request(out, &Id::from_number(3), "ping", None)),
        r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#
    );
}

#[test]
fn a_pretty_printed_message_becomes_one_line() {
    let line_of = |text: &str| written(|out| line(out, text));
    assert_eq!(line_of("{\r\n  \"a\": \"x\\ny\"\n}"), "{    \"a\": \"x\\ny\" }\n");
    assert_eq!(line_of("{}"), "{}\n");
    assert_eq!(line_of("\n"), " \n");
}

#[test]
fn events_have_one_line_of_data() {
    let plain = written(|out| event(out, None, "{\n\"a\":1}"));
    assert_eq!(plain, "event: message\ndata: { \"a\":1}\n\n");
    let resumable = written(|out| event(out, Some("s1-7"), "{}"));
    assert_eq!(resumable, "id: s1-7\nevent: message\ndata: {}\n\n");
    assert_eq!(written(|out| priming_event(out, "s1-0", Some(500))), "id: s1-0\nretry: 500\ndata: \n\n");
    assert_eq!(written(|out| priming_event(out, "s1-0", None)), "id: s1-0\ndata: \n\n");
    assert!(KEEP_ALIVE.starts_with(':') && KEEP_ALIVE.ends_with("\n\n"));
}

#[test]
fn a_raw_value_cannot_carry_a_line_break_inside_a_string() {
    assert!(serde_json::from_str::<&serde_json::value::RawValue>("\"a\nb\"").is_err());
    assert!(serde_json::from_str::<&serde_json::value::RawValue>("{\"a\r\":1}").is_err());
}

proptest! {
    // The same cases each time: a red test is to be seen again.
    #![proptest_config(ProptestConfig {
        cases: 1024,
        rng_seed: RngSeed::Fixed(2),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_line_means_what_the_message_meant(text in ".*", number: i64) {
        let value = serde_json::json!({ "t": text, "n": [number, null] });
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let one = written(|out| line(out, &pretty));
        prop_assert_eq!(one.matches('\n').count(), 1);
        prop_assert_eq!(serde_json::from_str::<Value>(&one).unwrap(), value);
        prop_assert_eq!(one.len(), pretty.len() + 1);
    }
}

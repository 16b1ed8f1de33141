//! Splicing changes what it should and not a byte more.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use super::*;

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap()
}

fn spliced(text: &str, additions: &Additions<'_>) -> String {
    result(raw(text), additions).into_owned()
}

const EXECUTION: Additions<'static> =
    Additions { execution: Some(r#"{"id":"x"}"#), server_info: None, result_type: false, cache: None };

#[test]
fn the_execution_goes_into_meta() {
    let cases = [
        ("{}", r#"{"_meta":{"durable-mcp/execution":{"id":"x"}}}"#),
        ("{ }", r#"{"_meta":{"durable-mcp/execution":{"id":"x"}} }"#),
        (r#"{"a":1.0 }"#, r#"{"a":1.0,"_meta":{"durable-mcp/execution":{"id":"x"}} }"#),
        (r#"{"_meta":{},"a":1}"#, r#"{"_meta":{"durable-mcp/execution":{"id":"x"}},"a":1}"#),
        (r#"{"_meta": {"k" : 1e2 },"a":1}"#, r#"{"_meta": {"k" : 1e2,"durable-mcp/execution":{"id":"x"} },"a":1}"#),
        (r#"{"\u005fmeta":{"k":1}}"#, r#"{"\u005fmeta":{"k":1,"durable-mcp/execution":{"id":"x"}}}"#),
        (
            r#"{"_meta":{"durable-mcp/execution":{"id":"inner"},"k":1}}"#,
            r#"{"_meta":{"durable-mcp/execution":{"id":"x"},"k":1}}"#,
        ),
        (r#"{"_meta":null}"#, r#"{"_meta":null}"#),
        (r#"{"_meta":"x","a":2}"#, r#"{"_meta":"x","a":2}"#),
        (r#"{"_meta":[{}]}"#, r#"{"_meta":[{}]}"#),
        (r#"{"x":{"_meta":{}}}"#, r#"{"x":{"_meta":{}},"_meta":{"durable-mcp/execution":{"id":"x"}}}"#),
        (
            r#"{"_meta":{"a":1},"_meta":{"b":2}}"#,
            r#"{"_meta":{"a":1},"_meta":{"b":2,"durable-mcp/execution":{"id":"x"}}}"#,
        ),
        ("[1]", "[1]"),
        ("\"{}\"", "\"{}\""),
        ("null", "null"),
    ];
    for (before, after) in cases {
        assert_eq!(spliced(before, &EXECUTION), after);
    }
}

#[test]
fn the_modern_members_are_added_where_they_are_absent() {
    let additions = Additions {
        execution: None,
        server_info: Some(r#"{"name":"d"}"#),
        result_type: true,
        cache: Some(CacheHints { ttl_ms: 5, scope: CacheScope::Private }),
    };
    let after = spliced(r#"{"tools":[]}"#, &additions);
    assert_eq!(
        after,
        r#"{"tools":[],"resultType":"complete","ttlMs":5,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"d"}}}"#
    );
    assert_eq!(spliced(&after, &additions), after);
    let merged = spliced(r#"{"ttlMs":90,"cacheScope":"public","resultType":"complete"}"#, &additions);
    assert!(merged.starts_with(r#"{"ttlMs":5,"cacheScope":"private","resultType":"complete""#), "{merged}");
    let waiting = spliced(r#"{"resultType":"input_required","requestState":"s"}"#, &additions);
    assert!(!waiting.contains("ttlMs") && waiting.contains("input_required"), "{waiting}");
}

#[test]
fn a_result_that_needs_nothing_is_not_copied() {
    let text = raw(r#"{"a":1}"#);
    assert!(matches!(result(text, &Additions::default()), Cow::Borrowed(_)));
}

#[test]
fn a_tool_gets_another_name_and_nothing_else() {
    let tool = raw("{\n  \"name\" : \"a\\u0062\", \"inputSchema\": {\"name\":\"a\",\"x\":1.00}\n}");
    let renamed = renamed_tool(tool, "s__ab\"").unwrap();
    assert_eq!(renamed.get(), "{\n  \"name\" : \"s__ab\\\"\", \"inputSchema\": {\"name\":\"a\",\"x\":1.00}\n}");
    assert!(renamed_tool(raw("[]"), "x").is_none());
}

#[test]
fn edits_of_several_members_keep_their_places() {
    let edits = [Edit::Set("c", "3".into()), Edit::Set("a", "1".into()), Edit::Default("b", "0".into())];
    assert_eq!(edited(r#"{"a":0,"b":2,"d":4}"#, &edits).unwrap(), r#"{"a":1,"b":2,"d":4,"c":3}"#);
    let inner = [Edit::Set("k", "\"v\"".into())];
    let deep = [Edit::Within("x", &inner)];
    assert_eq!(
        edited(r#"{"x":{"y":{}}}"#, &[Edit::Within("x", &[Edit::Within("y", &deep)])]).unwrap(),
        r#"{"x":{"y":{"x":{"k":"v"}}}}"#
    );
    assert_eq!(edited("{}", &[Edit::Within("x", &[])]).unwrap(), "{}");
}

/// JSON texts of objects in all spellings: white space, escapes, odd numbers.
fn object_text() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "null",
        "true",
        "1.0",
        "-0",
        "1E+2",
        "123456789012345678901234567890",
        "\"\\u00e9\\n\"",
        "\"}{,:\\\"\"",
        "\"\"",
        "{}",
        "[ ]",
    ])
    .prop_map(str::to_owned);
    let name = prop::sample::select(vec!["a", "b", "\\u0061", "_meta", "\\u005fmeta", "resultType", "é", ""]);
    let space = prop::sample::select(vec!["", " ", "\n", "\t\r\n"]);
    let value = leaf.prop_recursive(4, 32, 4, move |inner| {
        let member = (name.clone(), space.clone(), inner.clone(), space.clone())
            .prop_map(|(name, before, value, after)| format!("{before}\"{name}\"{after}:{before}{value}{after}"));
        prop_oneof![
            prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))),
            prop::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(" , "))),
        ]
    });
    value.prop_filter("an object", |text| text.starts_with('{'))
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
    fn what_is_not_added_keeps_its_bytes(text in object_text()) {
        let after = spliced(&text, &EXECUTION);
        let value: Value = serde_json::from_str(&after).unwrap();
        let before: Value = serde_json::from_str(&text).unwrap();
        let mark = r#""durable-mcp/execution":{"id":"x"}"#;
        let added = match before.get("_meta") {
            None => format!("\"_meta\":{{{mark}}}"),
            Some(Value::Object(_)) => mark.to_owned(),
            Some(_) => String::new(),
        };
        // Taking out what was put in, with the comma in front if there is one, gives the text from before.
        let undone = match after.contains(&format!(",{added}")) {
            true => after.replacen(&format!(",{added}"), "", 1),
            false => after.replacen(&added, "", 1),
        };
        let unchanged = if added.is_empty() { &after } else { &undone };
        prop_assert_eq!(unchanged, &text);

        match before.get("_meta") {
            None | Some(Value::Object(_)) => prop_assert_eq!(&value["_meta"]["durable-mcp/execution"], &json!({"id": "x"})),
            Some(other) => prop_assert_eq!(&value["_meta"], other),
        }
    }

    #[test]
    fn a_set_member_is_read_as_set_and_the_others_as_before(text in object_text()) {
        let after = edited(&text, &[Edit::Set("a", "[7]".into())]).unwrap();
        let mut expected: Value = serde_json::from_str(&text).unwrap();
        expected["a"] = json!([7]);
        prop_assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), expected);
    }
}

#[test]
fn members_are_taken_out_and_the_rest_keeps_its_bytes() {
    let text = r#"{"resultType":"complete" , "a" : 1.0,"ttlMs":5, "b":{"ttlMs":7 }, "cacheScope":"public" }"#;
    let expected = r#"{"a" : 1.0, "b":{"ttlMs":7 } }"#;
    assert_eq!(without(text, &["resultType", "ttlMs", "cacheScope"]).as_deref(), Some(expected));
    assert_eq!(without(r#"{"a":1,"b":2}"#, &["b"]).as_deref(), Some(r#"{"a":1}"#));
    assert_eq!(without(r#"{"a":1}"#, &["a"]).as_deref(), Some("{}"));
    assert_eq!(without(r#"{ "a":1 }"#, &["x"]).as_deref(), Some(r#"{ "a":1 }"#));
    assert_eq!(without("[]", &["x"]), None);
}

#[test]
fn a_long_result_is_added_to_without_being_copied() {
    use crate::model::payload::{LONG_BYTES, Payload};

    let long = "x".repeat(LONG_BYTES);
    for text in [
        format!("{{\"a\":\"{long}\"}}"),
        format!("{{\"_meta\":{{\"b\":1.0}},\"a\":\"{long}\",\"resultType\":\"x\"}}"),
        format!("[\"{long}\"]"),
    ] {
        let payload = Payload::from(text);
        let raw: &RawValue = serde_json::from_str(&payload).unwrap();
        let additions =
            Additions { execution: Some("{\"id\":\"e\"}"), server_info: Some("{}"), result_type: true, cache: None };
        let pieces = long_result(&payload, raw, &additions);
        assert_eq!(pieces.concat(), result(raw, &additions).as_bytes());
        let within = payload.as_bytes().as_ptr_range();
        let kept = pieces.iter().filter(|piece| piece.len() > LONG_BYTES);
        assert_eq!(kept.filter(|piece| within.contains(&piece.as_ptr())).count(), 1);
    }
}

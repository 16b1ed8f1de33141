//! Rules by example: what each kind of pointer and pattern strikes, what stays byte for byte, and what is refused.

use proptest::prelude::*;

use super::*;

fn rules(patterns: &[&'static str], arguments: &[&'static str], results: &[&'static str]) -> Rules {
    Rules::parse(patterns.iter().copied(), arguments.iter().copied(), results.iter().copied()).unwrap()
}

fn struck(rules: &Rules, json: &str) -> Option<String> {
    rules.strike(json, Part::Arguments, &Known::default()).map(|struck| struck.text)
}

#[test]
fn a_pointer_strikes_what_it_names_and_the_rest_keeps_its_bytes() {
    for (pointer, json, left) in [
        ("/a", r#"{ "a" : "x",  "b":1.50 }"#, Some(r#"{ "a" : "[redacted]",  "b":1.50 }"#)),
        ("/a/b", r#"{"a":{"b":[1,{"c":2}],"d":3}}"#, Some(r#"{"a":{"b":"[redacted]","d":3}}"#)),
        ("/a/1", r#"{"a":[1,2,3]}"#, Some(r#"{"a":[1,"[redacted]",3]}"#)),
        (
            "/a/*/k",
            r#"{"a":[{"k":1},{"k":"two"},{"j":3}]}"#,
            Some(r#"{"a":[{"k":"[redacted]"},{"k":"[redacted]"},{"j":3}]}"#),
        ),
        ("/**/k", r#"{"k":1,"a":[{"b":{"k":null}}]}"#, Some(r#"{"k":"[redacted]","a":[{"b":{"k":"[redacted]"}}]}"#)),
        ("/a~1b/~0", r#"{"a/b":{"~":1}}"#, Some(r#"{"a/b":{"~":"[redacted]"}}"#)),
        ("/\u{e4}", r#"{"\u00e4":true}"#, Some(r#"{"\u00e4":"[redacted]"}"#)),
        ("/", r#"{"":1}"#, Some(r#"{"":"[redacted]"}"#)),
        ("/a", r#"{"b":{"a":1}}"#, None),
        ("/a", r#"["a"]"#, None),
    ] {
        assert_eq!(struck(&rules(&[], &[pointer], &[]), json).as_deref(), left, "{pointer} in {json}");
    }
}

#[test]
fn a_pattern_strikes_in_values_names_and_numbers_at_any_depth() {
    let rules = rules(&["sk-[a-z0-9]{4,}", "4[0-9]{15}"], &[], &[]);
    let json = r#"{"a":[{"b":"key sk-abcd1 and sk-\u0061bcd2\n"},4111111111111111,"s"],"sk-abcd3":1}"#;
    let left = r#"{"a":[{"b":"key [redacted] and [redacted]\n"},"[redacted]","s"],"[redacted]":1}"#;
    assert_eq!(struck(&rules, json).as_deref(), Some(left));
    assert_eq!(struck(&rules, r#"{"a":"sk-ab"}"#), None);
    assert_eq!(rules.strike_text("it is sk-abcd", &Known::default()).as_deref(), Some("it is [redacted]"));
    assert_eq!(rules.strike_text("it is none", &Known::default()), None);
}

#[test]
fn a_struck_value_is_struck_wherever_it_appears_again() {
    let rules = rules(&[], &["/password"], &["/structuredContent/token"]);
    let found = rules.strike(r#"{"password":"hunter\"22","to":"hunter\"22!"}"#, Part::Arguments, &Known::default());
    let found = found.unwrap();
    assert_eq!(found.text, r#"{"password":"[redacted]","to":"[redacted]!"}"#);
    let known = Known::of(&found.values);
    // As it is, and inside a text that is JSON itself.
    let error = r#"{"message":"no hunter\"22","data":"{\"p\":\"hunter\\\"22\"}"}"#;
    let left = rules.strike(error, Part::Other, &known).unwrap().text;
    assert_eq!(left, r#"{"message":"no [redacted]","data":"{\"p\":\"[redacted]\"}"}"#);
    let result =
        r#"{"content":[{"type":"text","text":"{\"token\":123456789}"}],"structuredContent":{"token":123456789}}"#;
    let left = rules.strike(result, Part::Result, &known).unwrap().text;
    assert!(!left.contains("123456789"), "{left}");
    // A short value would strike what it only happens to be like.
    let short = rules.strike(r#"{"password":"1","n":"11"}"#, Part::Arguments, &Known::default()).unwrap();
    assert_eq!((short.text.as_str(), short.values.len()), (r#"{"password":"[redacted]","n":"11"}"#, 0));
}

#[test]
fn what_is_too_deep_or_no_json_is_not_kept() {
    let rules = rules(&["secret"], &["/a"], &[]);
    let deep = format!("{}\"secret\"{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(!struck(&rules, &deep).unwrap().contains("secret"));
    assert_eq!(struck(&rules, "{\"a\":secret").as_deref(), Some(r#""[redacted]""#));
    let patterns = self::rules(&["secret"], &[], &[]);
    assert_eq!(struck(&patterns, "{\"b\" secret").as_deref(), Some(r#""[redacted]""#));
    assert_eq!(struck(&patterns, "{\"b\" other"), None);
}

#[test]
fn rules_that_can_not_work_are_refused_with_a_reason() {
    for (pattern, words) in [("(", "unclosed group"), ("a*", "empty text"), ("(a{1000}){1000}", "too large")] {
        let (text, fault) = Rules::parse([pattern], [], []).unwrap_err();
        assert!(text == pattern && fault.to_string().contains(words), "{pattern}: {fault}");
    }
    for (pointer, words) in
        [("a", "begins with no `/`"), ("", "begins"), ("/a~2", "after `~`"), ("/a/**", "at its end")]
    {
        let (text, fault) = Rules::parse([], [pointer], []).unwrap_err();
        assert!(text == pointer && fault.to_string().contains(words), "{pointer}: {fault}");
    }
}

proptest! {
    // Whatever stands in a document, under whatever name: the secret is gone, what is left is JSON, and striking again
    // changes nothing.
    #[test]
    fn no_secret_is_left_and_the_rest_is_json(
        before in "\\PC{0,12}", after in "\\PC{0,12}", name in "\\PC{1,8}", depth in 0_usize..20,
    ) {
        let rules = rules(&["CANARY[0-9]+"], &["/**/password"], &[]);
        let text = serde_json::json!({ (&name): format!("{before}CANARY42{after}"), "password": [format!("x{before}yzzzz")] });
        let mut document = text;
        for _ in 0..depth {
            document = serde_json::json!({ "inner": [document] });
        }
        let json = document.to_string();
        let left = struck(&rules, &json).unwrap();
        prop_assert!(!left.contains("CANARY42"), "{left}");
        let parsed: serde_json::Value = serde_json::from_str(&left).unwrap();
        prop_assert_eq!(parsed.pointer(&format!("{}/password", "/inner/0".repeat(depth))), Some(&MARK.into()));
        let again = struck(&rules, &left).unwrap_or_else(|| left.clone());
        prop_assert_eq!(again, left);
    }
}

//! Equality of arguments: what is the same call and what is another one.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::model::arguments::{self, DEPTH_MAX, Error};

#[track_caller]
fn same(left: &str, right: &str) {
    assert_eq!(arguments::hash(left, None).unwrap(), arguments::hash(right, None).unwrap(), "{left} and {right}");
}

#[track_caller]
fn other(left: &str, right: &str) {
    assert_ne!(arguments::hash(left, None).unwrap(), arguments::hash(right, None).unwrap(), "{left} and {right}");
}

#[test]
fn numbers_are_equal_by_exact_decimal_value() {
    for number in ["1", "1.0", "1.000", "10e-1", "0.1e1", "1E0", "1e+0", "1e-0", "1e00", "100e-2", "0.01e2"] {
        same("1", number);
    }
    for zero in ["-0", "0.0", "-0.0e5", "0e99", "0e-99999999999999999999"] {
        same("0", zero);
    }
    same("-12.50", "-1250e-2");
    same("1e400", "10e399");
}

#[test]
fn numbers_that_a_float_cannot_tell_apart_are_different() {
    other("9007199254740992", "9007199254740993");
    other("0.1", "0.10000000000000001");
    other("123456789012345678901234567890", "123456789012345678901234567891");
    other("1e400", "1e401");
    other("1e-400", "0");
    other("1", "-1");
    other("1", "10");
    other("1", "\"1\"");
}

#[test]
fn spelling_does_not_matter_but_content_does() {
    same(r#"{"a":1,"b":[true,null]}"#, " {\n\"b\" : [ true , null ] ,\t\"a\" : 1.0 }\r\n");
    same(r#""é😀/""#, r#""\u00e9\ud83d\ude00\/""#);
    same(r#"{"\u0061":1}"#, r#"{"a":1}"#);
    other("[1,2]", "[2,1]");
    other(r#"{"a":null}"#, "{}");
    other("[]", "{}");
    other("[[1],2]", "[[1,2]]");
    other("true", r#""true""#);
    other(r#"{"a":"b","c":"d"}"#, r#"{"a":"b\",\"c\":\"d"}"#);
    other(r#""é""#, "\"e\u{301}\"");
}

#[test]
fn the_key_argument_is_left_out_at_the_top_level_only() {
    let hash = |text: &str| arguments::hash(text, Some("key")).unwrap();
    assert_eq!(hash(r#"{"key":"x","a":1}"#), hash(r#"{"a":1}"#));
    assert_eq!(hash(r#"{"\u006bey":"x","a":1}"#), hash(r#"{"a":1,"key":{"deep":[]}}"#));
    assert_ne!(hash(r#"{"a":{"key":"x"}}"#), hash(r#"{"a":{}}"#));
    assert_ne!(hash(r#"[{"key":"x"}]"#), hash("[{}]"));
    assert_ne!(arguments::hash(r#"{"key":"x"}"#, None), arguments::hash("{}", None));
}

#[test]
fn the_canonical_text_is_stable() {
    let text = r#"{"b":[1.50,-0,1e3,12],"a":{"y":"\u0041","x":null}}"#;
    let canonical = arguments::canonical(text, None).unwrap();
    assert_eq!(canonical, r#"{"a":{"x":null,"y":"A"},"b":[15e-1,0,1e3,12]}"#);
    // Stored hashes outlive the program: this one may never change.
    assert_eq!(
        arguments::hash("{}", None).unwrap(),
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
}

#[test]
fn huge_exponents_are_refused() {
    assert_eq!(arguments::hash("1e9999999999999999999", None), Err(Error::Exponent));
    assert_eq!(arguments::hash("1e-9999999999999999999", None), Err(Error::Exponent));
    assert!(arguments::hash("1e999999999999999999", None).is_ok());
    same("1e0000000000000000000000000005", "100000");
}

#[test]
fn deep_nesting_is_refused_without_an_overflow() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(arguments::hash(&nested(DEPTH_MAX), None).is_ok());
    assert_eq!(arguments::hash(&nested(DEPTH_MAX + 2), None), Err(Error::TooDeep(DEPTH_MAX)));
    assert_eq!(arguments::hash(&"[".repeat(1_000_000), None), Err(Error::TooDeep(DEPTH_MAX)));
    assert_eq!(arguments::hash(&"{\"a\":".repeat(1_000_000), None), Err(Error::TooDeep(DEPTH_MAX)));
}

#[test]
fn what_is_no_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "01",
        "+1",
        "1.",
        ".5",
        "-",
        "1e",
        "1e+",
        "--1",
        "1-1",
        "1.2.3",
        "tru",
        "trueish",
        "nul",
        "NaN",
        "Infinity",
        "'a'",
        "\"a",
        "\"\\",
        "\"\\\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\u{1}\"",
        "1 2",
        "{} {}",
        "[1 2]",
        "é",
        "\"\\é\"",
        "\u{feff}{}",
        "{\"a\":1}x",
    ] {
        assert!(matches!(arguments::hash(text, None), Err(Error::NotJson(_))), "{text:?}");
    }
}

/// JSON values without floats, whose spelling `respelled` may vary.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same value in another spelling: members rotated, white space, escapes, exponents; `seed` chooses.
fn respelled(value: &Value, seed: u64) -> String {
    let next = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let space = ["", " ", "\n\t", "\r\n  "][(next >> 60) as usize % 4];
    let text = match value {
        Value::Object(members) => {
            let mut members: Vec<String> = members
                .iter()
                .map(|(name, value)| {
                    format!("{}{space}:{}", respelled(&name.as_str().into(), next), respelled(value, next))
                })
                .collect();
            let middle = if members.is_empty() { 0 } else { (next >> 32) as usize % members.len() };
            members.rotate_left(middle);
            format!("{{{space}{}{space}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| respelled(item, next)).collect();
            format!("[{space}{}{space}]", items.join(&format!("{space},")))
        }
        Value::String(text) if next >> 63 == 0 => {
            let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            format!("\"{escaped}\"")
        }
        Value::Number(number) => match (next >> 33) % 4 {
            0 => format!("{number}.000"),
            1 => format!("{number}00e-2"),
            2 => format!("{number}E+0"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    };
    format!("{space}{text}{space}")
}

#[test]
fn another_spelling_of_the_same_value_is_equal() {
    holds(2_000, (value(), any::<u64>()), |(value, seed)| same(&value.to_string(), &respelled(&value, seed)));
}

#[test]
fn two_values_are_equal_by_hash_only_when_they_are_equal() {
    holds(2_000, (value(), value()), |(left, right)| {
        let hashes = [&left, &right].map(|value| arguments::hash(&value.to_string(), None).unwrap());
        assert_eq!(left == right, hashes[0] == hashes[1]);
    });
}

#[test]
fn decimals_are_equal_by_hash_only_when_their_values_are() {
    // Values as integers of 10^-4, written with different numbers of digits.
    let decimal = (-20_000i64..20_000, 0usize..4);
    let written = |(value, zeros): (i64, usize)| {
        let (sign, size) = (if value < 0 { "-" } else { "" }, value.abs());
        format!("{sign}{}.{:04}{}", size / 10_000, size % 10_000, "0".repeat(zeros))
    };
    holds(4_000, (decimal.clone(), decimal), |(left, right)| {
        let hashes = [left, right].map(|value| arguments::hash(&written(value), None).unwrap());
        assert_eq!(left.0 == right.0, hashes[0] == hashes[1]);
    });
    holds(2_000, (any::<i64>(), 0usize..10), |(value, zeros)| {
        same(&value.to_string(), &format!("{value}{}e-{zeros}", "0".repeat(zeros)));
        other(&value.to_string(), &value.wrapping_add(1).to_string());
    });
}

#[test]
fn a_canonical_text_is_json_and_its_own_canonical_form() {
    holds(1_000, value(), |value| {
        let canonical = arguments::canonical(&value.to_string(), None).unwrap();
        assert!(serde_json::from_str::<Value>(&canonical).is_ok(), "{canonical}");
        assert_eq!(arguments::canonical(&canonical, None).unwrap(), canonical);
    });
}

#[test]
fn no_text_makes_it_panic_and_it_agrees_with_serde_on_what_json_is() {
    let shards = proptest::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "d83d", "é", "😀", "0", "-", "1", ".", "e", "E", "+", "true",
        "null", "fals", " ", "\n", "\u{0}", "\u{2028}", "a",
    ]);
    let text =
        prop_oneof![any::<String>(), proptest::collection::vec(shards, 0..24).prop_map(|shards| shards.concat())];
    holds(20_000, (text, proptest::option::of("[a-z]?")), |(text, left_out)| {
        let found = arguments::hash(&text, left_out.as_deref());
        // A raw value accepts lone surrogates, which are no text; everything else is the same grammar.
        let json = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
        if found.is_ok() {
            assert!(json, "{text:?}");
        } else if json && !text.contains("\\u") {
            assert_eq!(found, Err(Error::Exponent), "{text:?}");
        }
    });
}

//! The scanner against serde_json, and what serde_json does not check: duplicates and depth.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::value::RawValue;

use super::{Fault, check};

fn accepts(text: &str) -> bool {
    check(text, 64).is_ok()
}

#[test]
fn whole_values_are_accepted() {
    let cases = [
        "{}",
        " [ ] ",
        "null",
        "-0",
        "0.5e-7",
        "1E+400",
        "123456789012345678901234567890",
        r#""\u00e9\ud83d\ude00\/\b""#,
        r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}"#,
        "\t\r\n{\"é\" : true , \"\\n\":false}\n",
    ];
    for text in cases {
        assert_eq!(check(text, 64), Ok(()), "{text}");
    }
}

#[test]
fn broken_texts_are_refused() {
    let cases = [
        "",
        " ",
        "{",
        "[",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":}",
        "{\"a\":1]",
        "[1}",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "NaN",
        "Infinity",
        "tru",
        "truex",
        "\"abc",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"a\nb\"",
        "\"a\u{0}b\"",
        "{} {}",
        "1 //c",
        "\u{feff}{}",
        "[1]]",
    ];
    for text in cases {
        assert!(matches!(check(text, 64), Err(Fault::Syntax { .. })), "{text:?}");
    }
}

#[test]
fn duplicates_are_found_at_any_depth_and_in_any_spelling() {
    let cases = [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\u0061":1,"a":2}"#,
        r#"{"x":[1,{"y":{"é":1,"\u00e9":2}}]}"#,
        r#"{"":1,"":2}"#,
        r#"{"a":{"b":1},"c":2,"a":{"b":1}}"#,
        r#"{"😀":1,"\ud83d\ude00":2}"#,
    ];
    for text in cases {
        assert!(matches!(check(text, 64), Err(Fault::Duplicate { .. })), "{text}");
    }
}

#[test]
fn names_of_a_sibling_or_a_parent_are_no_duplicates() {
    assert!(accepts(r#"{"a":{"a":{"a":[{"a":1},{"a":1}]}}}"#));
    assert!(accepts(r#"{"a":1,"A":2,"á":3}"#));
}

#[test]
fn duplicates_in_large_objects_are_found_wherever_they_are() {
    for count in [15, 16, 17, 18, 1000] {
        let members: Vec<String> = (0..count).map(|n| format!("\"k{n}\":{n}")).collect();
        assert!(accepts(&format!("{{{}}}", members.join(","))));
        for copied in [0, count / 2, count - 1] {
            let text = format!("{{{},\"\\u006b{copied}\":0}}", members.join(","));
            assert!(matches!(check(&text, 64), Err(Fault::Duplicate { .. })), "{count} members, {copied} again");
        }
    }
}

#[test]
fn depth_is_counted_over_objects_and_arrays() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(accepts(&nested(64)));
    assert_eq!(check(&nested(65), 64), Err(Fault::TooDeep { at: 64, depth_max: 64 }));
    assert!(matches!(check(&"[".repeat(1_000_000), 64), Err(Fault::TooDeep { .. })));
    assert!(matches!(check(&"{\"a\":".repeat(10_000), 64), Err(Fault::TooDeep { .. })));
}

#[test]
fn a_long_name_is_not_echoed_whole() {
    let name = "n".repeat(10_000);
    let Err(Fault::Duplicate { name, .. }) = check(&format!("{{\"{name}\":1,\"{name}\":1}}"), 64) else {
        panic!("a duplicate is expected");
    };
    assert_eq!(name.len(), 64);
}

fn json_like() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\"a\"", "\"b\":", "\\u", "00", "61", "1", "-", ".", "e", "+", "0",
        "true", "null", " ", "\n", "é", "\u{1}", "\"\\n\"",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::hash_map(".{0,4}", inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
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
    fn the_scanner_and_serde_json_agree_on_what_is_json(text in json_like()) {
        let ours = check(&text, 64);
        let theirs = serde_json::from_str::<&RawValue>(&text);
        match ours {
            Ok(()) => prop_assert!(theirs.is_ok()),
            Err(Fault::Syntax { what: "a lone surrogate escape", .. } | Fault::Duplicate { .. }) => {}
            Err(_) => prop_assert!(theirs.is_err(), "{text:?}"),
        }
    }

    #[test]
    fn what_serde_json_writes_is_accepted(value in json_value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        prop_assert_eq!(check(&text.unwrap(), 64), Ok(()));
    }

    #[test]
    fn a_text_cut_short_is_refused(value in json_value(), cut in any::<prop::sample::Index>()) {
        let text = format!("[{value}]");
        let mut at = cut.index(text.len());
        while !text.is_char_boundary(at) { at -= 1; }
        let is_syntax = matches!(check(&text[..at], 64), Err(Fault::Syntax { .. }));
        prop_assert!(is_syntax);
    }
}

//! Splicing over arbitrary objects: what was there stays byte for byte.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// JSON texts as foreign programs write them: odd spaces, odd numbers, escapes.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1.0".to_owned()),
        Just("-0.0e-7".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just(r#""\u00e9\n}""#.to_owned()),
        any::<String>().prop_map(|text| quoted(&text)),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[ {} ]", items.join(" ,"))),
            object_of(inner),
        ]
    })
}

fn object_of(value: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    let space = prop::sample::select(vec!["", " ", "\n", "\t \r\n"]);
    let members = prop::collection::btree_map("[a-z\\\\\"é]{0,3}", value, 0..4);
    (members, space)
        .prop_map(|(members, space)| {
            let members = members.iter().map(|(name, value)| format!("{space}{}{space}:{value}{space}", quoted(name)));
            format!("{space}{{{}{space}}}{space}", members.collect::<Vec<_>>().join(","))
        })
        .boxed()
}

proptest! {
    #[test]
    fn a_new_member_leaves_every_byte_where_it_was(object in object_of(json()), value in json()) {
        let got = with_member(&object, "new key", &value);
        let body = object.trim_end().strip_suffix('}').unwrap();
        prop_assert!(got.starts_with(body));
        let end = format!(r#""new key":{value}}}"#);
        prop_assert!(got.ends_with(&end));
        let before = members(&object).unwrap();
        let after = members(&got).unwrap();
        prop_assert_eq!(after.len(), before.len() + 1);
        for ((name, value), (old_name, old_value)) in after.iter().zip(&before) {
            prop_assert_eq!(name, old_name);
            prop_assert_eq!(value.get(), old_value.get());
        }
        prop_assert!(serde_json::from_str::<&RawValue>(&got).is_ok());
    }

    #[test]
    fn a_member_that_is_there_stays_as_it_is(object in object_of(json()), value in json()) {
        let with = with_member(&object, "new key", &value).into_owned();
        prop_assert_eq!(&*with_member(&with, "new key", "1"), &with);
    }

    #[test]
    fn one_line_changes_no_value(json in json()) {
        let line = one_line(&json);
        prop_assert!(!line.contains(['\n', '\r']));
        prop_assert_eq!(serde_json::from_str::<Value>(&line).ok(), serde_json::from_str::<Value>(&json).ok());
    }
}

#[test]
fn a_name_is_the_same_however_it_is_written() {
    assert_eq!(with_member(r#"{"\u0061":1}"#, "a", "2"), r#"{"\u0061":1}"#);
}

#[test]
fn what_is_no_object_is_left_alone() {
    for text in ["[]", "[1]", "1", "null", r#""{}""#, "{", "{} {}", ""] {
        assert_eq!(with_member(text, "a", "1"), text);
        assert!(members(text).is_none());
    }
}

//! Which ids are read, echoed and equal.

use super::*;

fn id(text: &str) -> Result<Id<'_>, &'static str> {
    Id::parse(serde_json::from_str(text).unwrap())
}

#[test]
fn strings_and_integers_are_echoed_as_written() {
    for raw in ["0", "-7", "123456789012345678901234567890", r#""a""#, r#""\u0061""#, r#""""#, r#""é""#, "-0"] {
        assert_eq!(id(raw).unwrap().raw(), raw);
    }
}

#[test]
fn everything_else_is_refused() {
    for raw in ["null", "1.0", "1e3", "1E3", "0.5", "true", "[]", "{}", "[1]"] {
        assert!(id(raw).is_err(), "{raw}");
    }
    assert!(id(&format!("\"{}\"", "x".repeat(2000))).is_err());
    assert!(id(&"9".repeat(2000)).is_err());
}

#[test]
fn equality_goes_by_meaning_and_not_by_spelling() {
    assert_eq!(id(r#""a""#).unwrap(), id(r#""\u0061""#).unwrap());
    assert_eq!(id("0").unwrap(), id("-0").unwrap());
    assert_ne!(id("1").unwrap(), id(r#""1""#).unwrap());
    assert_ne!(id("9007199254740992").unwrap(), id("9007199254740993").unwrap());
    assert_eq!(id(r#""a\"b""#).unwrap(), Id::from_text("a\"b"));
    assert_eq!(id("42").unwrap(), Id::from_number(42));
}

//! What is taken out for earlier clients, and that nothing else is touched.

use serde_json::value::RawValue;

use super::{result, tool};

fn told(text: &str) -> Option<String> {
    let raw = RawValue::from_string(text.to_owned()).unwrap();
    result(&raw).map(|raw| raw.get().to_owned())
}

#[test]
fn an_object_stays_byte_for_byte() {
    for text in [
        r#"{"content":[],"structuredContent":{"n":1.0}}"#,
        r#"{"content":[{"type":"text","text":"structuredContent"}]}"#,
        r#"{"content":[]}"#,
        "[]",
    ] {
        assert_eq!(told(text), None, "{text}");
    }
}

#[test]
fn what_is_no_object_is_left_out_and_its_text_stays() {
    for value in ["[1,2.0]", "7", "\"x\"", "true"] {
        let text = format!(r#"{{"content":[{{"type":"text","text":"t"}}], "structuredContent":{value},"x":1e2}}"#);
        assert_eq!(told(&text).unwrap(), r#"{"content":[{"type":"text","text":"t"}],"x":1e2}"#);
    }
}

#[test]
fn a_result_that_says_it_nowhere_else_gets_a_text() {
    let wanted = r#"{"content":[{"type":"text","text":"[1,\"a\"]"}]}"#;
    assert_eq!(told(r#"{"content":[ ],"structuredContent":[1,"a"]}"#).unwrap(), wanted);
    assert_eq!(told(r#"{"structuredContent":[1,"a"]}"#).unwrap(), wanted);
    assert_eq!(told(r#"{"content":[],"structuredContent":null}"#).unwrap(), r#"{"content":[]}"#);
}

#[test]
fn a_schema_stays_when_it_describes_an_object() {
    assert_eq!(tool(r#"{"name":"a","outputSchema":{"type":"object","oneOf":[]}}"#), None);
    assert_eq!(tool(r#"{"name":"a"}"#), None);
    for schema in [r#"{"type":"array"}"#, r#"{"oneOf":[]}"#, "true", r#"{"type":["object","null"]}"#] {
        let definition = format!(r#"{{"name":"a","outputSchema":{schema}, "x":1.0}}"#);
        assert_eq!(tool(&definition).unwrap(), r#"{"name":"a", "x":1.0}"#, "{schema}");
    }
}

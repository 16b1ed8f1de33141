//! Which annotations count, and what the headers have to say.

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::{HeaderArgument, Repeated, read};

fn tool(properties: serde_json::Value) -> Box<RawValue> {
    to_raw_value(&json!({"name": "t", "inputSchema": {"type": "object", "properties": properties}})).unwrap()
}

fn argument(label: &str, path: &[&str]) -> HeaderArgument {
    HeaderArgument { label: label.to_owned(), path: path.iter().map(|name| name.to_string()).collect() }
}

#[test]
fn annotations_are_found_at_any_depth_of_properties() {
    let properties = json!({
        "region": {"type": "string", "x-mcp-header": "Region"},
        "place": {"type": "object", "properties": {"floor": {"type": "integer", "x-mcp-header": "Floor"}}},
        "plain": {"type": "string"}
    });
    let found = read(&tool(properties)).unwrap();
    assert!(
        found.contains(&argument("Region", &["region"])) && found.contains(&argument("Floor", &["place", "floor"]))
    );
    assert_eq!(found.len(), 2);
    assert_eq!(read(&tool(json!({"a": {"type": "string"}}))), Some(vec![]));
}

#[test]
fn invalid_annotations_make_the_tool_invalid() {
    let invalid = [
        json!({"a": {"type": "string", "x-mcp-header": ""}}),
        json!({"a": {"type": "string", "x-mcp-header": "two words"}}),
        json!({"a": {"type": "string", "x-mcp-header": 1}}),
        json!({"a": {"type": "number", "x-mcp-header": "A"}}),
        json!({"a": {"type": "object", "x-mcp-header": "A"}}),
        json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}),
    ];
    for properties in invalid {
        assert_eq!(read(&tool(properties.clone())), None, "{properties}");
    }
}

#[test]
fn a_header_says_text_unescaped_and_numbers_as_numbers() {
    let arguments: Box<RawValue> =
        serde_json::from_str(r#"{"s":"a\u00e9","n":42.0,"b":true,"o":{"x":7},"z":null,"big":9007199254740993}"#)
            .unwrap();
    let said = |path: &[&str]| argument("L", path).of(&arguments);
    assert_eq!(said(&["s"]), Some(Repeated::Text("aé".into())));
    assert!(said(&["n"]).unwrap().is_said_by("42") && !said(&["n"]).unwrap().is_said_by("43"));
    assert!(said(&["b"]).unwrap().is_said_by("true") && !said(&["b"]).unwrap().is_said_by("false"));
    assert!(said(&["o", "x"]).unwrap().is_said_by("7"));
    assert!(!said(&["big"]).unwrap().is_said_by("9007199254740992"), "not compared as floating point numbers");
    assert!(!said(&["s"]).unwrap().is_said_by("aé "));
    for absent in [&["z"][..], &["o"], &["none"], &["s", "deeper"]] {
        assert_eq!(said(absent), None, "{absent:?}");
    }
}

//! The context inside a stored `_meta`, and what it says of capabilities.

use super::*;

fn raw(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(json.to_owned()).ok()
}

#[test]
fn a_context_comes_back_from_the_meta_it_was_stored_in() {
    let client = ClientContext {
        revision: Some("2026-07-28".into()),
        session: None,
        capabilities: raw(r#"{"elicitation":{"form":{}},"x":1.0}"#),
        log_level: Some("info".into()),
    };
    let meta = format!(r#"{{"a":1,"{MEMBER}":{}}}"#, client.to_json());
    let back = ClientContext::of_meta(Some(&meta));
    assert_eq!(back.to_json(), client.to_json());
    assert!(back.is_modern());
    assert!(back.declares(&["elicitation", "form"]) && !back.declares(&["elicitation", "url"]));
    assert_eq!(back.session, None);
}

#[test]
fn a_meta_without_a_context_has_the_empty_one() {
    for meta in [None, Some("{}"), Some("[]"), Some(r#"{"durable-mcp/client":7}"#)] {
        let client = ClientContext::of_meta(meta);
        assert_eq!(client.to_json(), "{}");
        assert!(!client.is_modern() && !client.declares(&["roots"]));
    }
}

#[test]
fn a_capability_that_is_null_or_false_is_none() {
    let capabilities = raw(r#"{"a":null,"b":false,"c":{},"d":true}"#).unwrap();
    let declared: Vec<_> =
        ["a", "b", "c", "d", "e"].into_iter().filter(|name| declared(&capabilities, &[name])).collect();
    assert_eq!(declared, ["c", "d"]);
}

//! From what a handler returns to MCP results. Most of it is in `sdk/vectors/results.json`, played against the server.

use serde_json::{Value, json};

use super::*;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn an_object_with_a_content_of_its_own_is_no_result() {
    let result = parsed(&tool_result(&json!({"content": "page"})).unwrap());
    assert_eq!(result["structuredContent"], json!({"content": "page"}));
    let result = parsed(&tool_result(&json!({"a": {"content": []}})).unwrap());
    assert_eq!(result["structuredContent"], json!({"a": {"content": []}}));
}

#[test]
fn nothing_true_and_false_are_told_apart() {
    assert_eq!(tool_result(&()).unwrap(), r#"{"content":[]}"#);
    assert_eq!(tool_result(&true).unwrap(), r#"{"content":[{"type":"text","text":"true"}]}"#);
    assert_eq!(tool_result(&Some("x")).unwrap(), r#"{"content":[{"type":"text","text":"x"}]}"#);
}

#[test]
fn errors_fit_the_protocol() {
    assert_eq!(error_result("\"no\""), r#"{"content":[{"type":"text","text":"\"no\""}],"isError":true}"#);
    let members = parsed(&format!("{{{}}}", failure(&format!("a::Err or{}", "x".repeat(99)), "m", true)));
    let code = members["error"]["code"].as_str().unwrap();
    assert!(code.starts_with("a__Err_orx") && code.len() == 64, "{code}");
    assert_eq!(members["retryable"], true);
}

//! Each way in which a header and its argument may differ.

use axum::http::{HeaderMap, HeaderValue};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::{Mismatch, check};

fn definition() -> Box<RawValue> {
    let properties = json!({
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"}
    });
    to_raw_value(&json!({"name": "t", "inputSchema": {"type": "object", "properties": properties}})).unwrap()
}

fn checked(headers: &[(&'static str, &str)], arguments: serde_json::Value) -> Result<(), Mismatch> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_str(value).unwrap());
    }
    check(&map, &definition(), Some(&to_raw_value(&arguments).unwrap()))
}

#[test]
fn equal_values_pass_plain_or_in_base64() {
    assert_eq!(checked(&[("mcp-param-region", "eu")], json!({"region": "eu"})), Ok(()));
    assert_eq!(checked(&[("mcp-param-region", "=?base64?SGVsbG8=?=")], json!({"region": "Hello"})), Ok(()));
    assert_eq!(checked(&[("mcp-param-region", "=?base64?SGVsbG8=")], json!({"region": "=?base64?SGVsbG8="})), Ok(()));
    assert_eq!(checked(&[("mcp-param-count", "42")], json!({"count": 42.0})), Ok(()));
    assert_eq!(checked(&[("mcp-param-other", "x")], json!({"other": "y"})), Ok(()));
    assert_eq!(checked(&[], json!({"region": null})), Ok(()));
    assert_eq!(check(&HeaderMap::new(), &definition(), None), Ok(()));
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let region = || "Region".to_owned();
    let missing = Err(Mismatch::Missing { label: region() });
    assert_eq!(checked(&[], json!({"region": "eu"})), missing);
    let invalid = Err(Mismatch::Invalid { label: region() });
    assert_eq!(checked(&[("mcp-param-region", "=?base64?SGVsbG8?=")], json!({"region": "Hello"})), invalid);
    assert_eq!(checked(&[("mcp-param-region", "=?base64?SGVs!!!bG8=?=")], json!({"region": "Hello"})), invalid);
    let twice = [("mcp-param-region", "eu"), ("mcp-param-region", "eu")];
    assert_eq!(checked(&twice, json!({"region": "eu"})), invalid);
    let differs = Err(Mismatch::Differs { label: region() });
    assert_eq!(checked(&[("mcp-param-region", "us")], json!({"region": "eu"})), differs);
    let unasked = Err(Mismatch::Unasked { label: region() });
    assert_eq!(checked(&[("mcp-param-region", "eu")], json!({})), unasked);
    assert_eq!(checked(&[("mcp-param-region", "eu")], json!({"region": null})), unasked);
}

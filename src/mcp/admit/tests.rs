//! The way of whole messages into the server.

use axum::http::HeaderValue;

use super::*;

const LIMITS: Limits = Limits { bytes_max: 1 << 20, depth_max: 64, batch_max: 10 };
const MODERN: &str = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"x":1.0},
    "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
}

#[test]
fn a_modern_call_enters_with_everything_read_once() {
    let headers = headers(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "t")]);
    let Ok(Entered::One(admitted)) = http(MODERN.as_bytes(), &LIMITS, &headers) else { panic!("one is expected") };
    assert_eq!(admitted.ruling, Ruling::Modern { revision: Revision::V2026_07_28 });
    assert_eq!(admitted.message.id().unwrap().raw(), r#""a""#);
    let Body::Call(call) = admitted.body else { panic!("a call is expected") };
    assert_eq!(call.arguments.unwrap().get(), r#"{"x":1.0}"#);
}

#[test]
fn the_size_is_refused_with_413() {
    let refusal = http(&vec![b' '; (1 << 20) + 1], &LIMITS, &HeaderMap::new()).unwrap_err();
    assert_eq!(refusal.rejection.status, 413);
}

#[test]
fn a_malformed_meta_is_400_for_whoever_meant_to_be_modern() {
    let body = MODERN.replace("\"2026-07-28\"", "5");
    let refusal = http(body.as_bytes(), &LIMITS, &HeaderMap::new()).unwrap_err();
    assert_eq!((refusal.rejection.status, refusal.rejection.error.code), (400, -32602));
    assert_eq!(refusal.id.unwrap().raw(), r#""a""#);
}

#[test]
fn one_stdio_line_after_the_other_may_change_the_era() {
    let session = Some(Revision::V2025_06_18);
    let Ok(Entered::One(admitted)) = stdio(MODERN.as_bytes(), &LIMITS, session) else { panic!("one is expected") };
    assert_eq!(admitted.ruling.era(), Era::Modern);
    let line = br#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let Ok(Entered::One(admitted)) = stdio(line, &LIMITS, session) else { panic!("one is expected") };
    assert_eq!(admitted.ruling, Ruling::Legacy { revision: session, opens: false });
    assert!(matches!(admitted.body, Body::Other { .. }));
}

#[test]
fn elements_of_a_batch_are_admitted_one_by_one() {
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"initialize"},7]"#;
    let session = Some(Revision::V2025_03_26);
    let Ok(Entered::Batch(items)) = stdio(batch, &LIMITS, session) else { panic!("a batch is expected") };
    assert!(batch_element(items[0], Revision::V2025_03_26).is_ok());
    assert_eq!(batch_element(items[1], Revision::V2025_03_26).unwrap_err().id.unwrap().raw(), "2");
    assert_eq!(batch_element(items[2], Revision::V2025_03_26).unwrap_err().rejection.error.code, -32600);
}

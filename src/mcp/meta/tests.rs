//! Sorting of `_meta`.

use serde_json::value::RawValue;

use super::*;

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap()
}

fn meta(text: &str) -> Result<Meta<'_>, ParamsError> {
    Meta::of(&Params::split(Some(raw(text))))
}

#[test]
fn members_are_sorted_by_whom_they_are_for() {
    let text = r#"{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{"extensions":{}},
        "io.modelcontextprotocol/clientInfo":{"name":"c"},
        "io.modelcontextprotocol/logLevel":"info",
        "io.modelcontextprotocol/new":1.0,
        "progressToken":12345678901234567890,
        "traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b","baggage":"k=v",
        "durable-mcp\/idempotencyKey":"k1","idempotencyKey":"k2",
        "durable-mcp/wait":1500,"durable-mcp/fencingToken":3,
        "com.example/x":{"b":1,"a":1.50},"y":null}}"#;
    let meta = meta(text).unwrap();
    assert_eq!(meta.protocol.version.as_deref(), Some("2026-07-28"));
    assert_eq!(meta.protocol.client_capabilities.unwrap().get(), r#"{"extensions":{}}"#);
    assert_eq!(meta.protocol.client_info.unwrap().get(), r#"{"name":"c"}"#);
    assert_eq!(meta.protocol.log_level.as_deref(), Some("info"));
    assert_eq!(meta.protocol.other[0].1.get(), "1.0");
    assert_eq!(meta.progress_token.unwrap().raw(), "12345678901234567890");
    assert_eq!(meta.trace.traceparent.as_deref(), Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    assert_eq!(meta.trace.tracestate.as_deref(), Some("a=b"));
    assert_eq!(meta.trace.baggage.as_deref(), Some("k=v"));
    assert_eq!(meta.vendor_key.unwrap().get(), r#""k1""#);
    assert_eq!(meta.plain_key.unwrap().get(), r#""k2""#);
    assert_eq!(meta.wait_ms, Some(1500));
    assert_eq!(meta.fencing_token.unwrap().get(), "3");
    let passed: Vec<(&str, &str)> = meta.passthrough.iter().map(|(name, value)| (&**name, value.get())).collect();
    assert_eq!(passed, [("com.example/x", r#"{"b":1,"a":1.50}"#), ("y", "null")]);
}

#[test]
fn absent_and_null_meta_are_the_same() {
    for text in ["{}", r#"{"_meta":null}"#, r#"{"_meta":{}}"#] {
        let meta = meta(text).unwrap();
        assert!(meta.protocol.version.is_none() && meta.passthrough.is_empty(), "{text}");
    }
    assert!(Meta::of(&Params::split(None)).unwrap().raw.is_none());
}

#[test]
fn what_is_no_trace_context_is_ignored() {
    for text in
        [r#"{"_meta":{"traceparent":1,"baggage":[]}}"#, r#"{"_meta":{"traceparent":"00-1-2-01","tracestate":"a=b"}}"#]
    {
        let meta = meta(text).unwrap();
        assert_eq!((meta.trace.parts().count(), meta.passthrough.len()), (0, 0), "{text}");
    }
}

#[test]
fn wrong_types_are_faults_of_the_envelope_where_the_protocol_owns_the_member() {
    let cases = [
        (r#"{"_meta":5}"#, Source::Envelope),
        (r#"{"_meta":[]}"#, Source::Envelope),
        (r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":5}}"#, Source::Envelope),
        (r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":"x"}}"#, Source::Envelope),
        (r#"{"_meta":{"io.modelcontextprotocol/clientInfo":[]}}"#, Source::Envelope),
        (r#"{"_meta":{"progressToken":1.5}}"#, Source::Envelope),
        (r#"{"_meta":{"progressToken":{}}}"#, Source::Envelope),
        (r#"{"_meta":{"durable-mcp/wait":"50"}}"#, Source::Handler),
        (r#"{"_meta":{"durable-mcp/wait":-1}}"#, Source::Handler),
        (r#"{"_meta":{"durable-mcp/wait":1.5}}"#, Source::Handler),
        (r#"{"_meta":{"durable-mcp/wait":86400001}}"#, Source::Handler),
        (r#"{"_meta":{"durable-mcp/wait":99999999999999999999}}"#, Source::Handler),
        (r#"{"_meta":{"durable-mcp/waiit":1}}"#, Source::Handler),
        (r#"{"_meta":{"durable-mcp/execution":{}}}"#, Source::Handler),
    ];
    for (text, source) in cases {
        let error = meta(text).expect_err(text);
        assert_eq!((error.code(), error.source()), (-32602, source), "{text}");
    }
}

#[test]
fn an_unknown_vendor_member_is_named_in_the_error() {
    let error = meta(r#"{"_meta":{"durable-mcp/waiit":1}}"#).unwrap_err();
    assert!(error.to_string().contains("durable-mcp/waiit"));
}

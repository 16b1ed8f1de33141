//! What is a trace context, and what is not one.

use super::TraceContext;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn read(parent: &str, state: &str, baggage: &str) -> TraceContext {
    TraceContext::read(Some(parent), Some(state), Some(baggage))
}

#[test]
fn a_valid_context_is_kept_whole() {
    let context = read(PARENT, "rojo=00f067aa0ba902b7, congo@vendor=t61;x", "user=alice;p=1, k=%20v");
    let parts: Vec<_> = context.parts().collect();
    assert_eq!(
        parts,
        [
            ("traceparent", PARENT),
            ("tracestate", "rojo=00f067aa0ba902b7, congo@vendor=t61;x"),
            ("baggage", "user=alice;p=1, k=%20v"),
        ]
    );
    // A later version may be longer.
    let later = format!("cc{}-what-comes", &PARENT[2..]);
    assert_eq!(read(&later, "a=1", "").traceparent, Some(later));
}

#[test]
fn an_invalid_parent_is_ignored_and_takes_its_state_with_it() {
    for parent in [
        "",
        "00",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
        "0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        &format!("{PARENT},{PARENT}"),
    ] {
        let context = read(parent, "a=1", "k=v");
        assert_eq!(context, TraceContext { baggage: Some("k=v".into()), ..TraceContext::default() }, "{parent}");
    }
}

#[test]
fn an_invalid_state_or_baggage_is_ignored_alone() {
    let many = (0..33).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
    for state in
        ["", "a", "=1", "A=1", "a=1=2", "a=", "a=1\r\nX-Evil: 1", ",", &many, &format!("a={}", "x".repeat(257))]
    {
        assert_eq!(read(PARENT, state, "").tracestate, None, "{state:?}");
    }
    for baggage in ["", "k", "k v=1", "=1", "k=a b", "k=\"x\"", "k=\u{e9}", &format!("k={}", "x".repeat(8_192))] {
        let context = read(PARENT, "a=1", baggage);
        assert_eq!((context.baggage, context.tracestate.as_deref()), (None, Some("a=1")), "{baggage:?}");
    }
}

#[test]
fn a_state_stays_with_the_parent_it_came_with() {
    let other = "00-11111111111111111111111111111111-2222222222222222-00";
    let meta = TraceContext::read(Some(PARENT), None, None);
    let headers = read(other, "a=1", "k=v");
    let both = meta.or(headers.clone());
    assert_eq!(
        (both.traceparent.as_deref(), both.tracestate, both.baggage.as_deref()),
        (Some(PARENT), None, Some("k=v"))
    );
    assert_eq!(TraceContext::default().or(headers.clone()), headers);
}

#[test]
fn a_meta_object_is_a_carrier() {
    let meta = format!(r#"{{"traceparent":"{PARENT}","tracestate":5,"baggage":"k=v","other":1}}"#);
    let context = TraceContext::in_meta(&meta);
    assert_eq!(context, TraceContext::read(Some(PARENT), None, Some("k=v")));
    assert_eq!(TraceContext::in_meta("[]"), TraceContext::default());
}

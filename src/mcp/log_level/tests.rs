//! Levels and their order, and which messages pass at which.

use super::*;

#[test]
fn levels_rise_and_are_found_by_their_names() {
    assert!(LogLevel::ALL.is_sorted());
    for level in LogLevel::ALL {
        assert_eq!(LogLevel::find(level.as_str()), Some(level));
    }
    assert_eq!(LogLevel::find("warn"), None);
    assert_eq!(LogLevel::find("INFO"), None);
}

#[test]
fn a_notice_below_the_wish_is_not_heard() {
    let notice = r#"{"level":"info","logger":"x","data":{"level":"error"}}"#;
    assert!(passes(notice, None));
    assert!(passes(notice, Some(LogLevel::Debug)));
    assert!(passes(notice, Some(LogLevel::Info)));
    assert!(!passes(notice, Some(LogLevel::Warning)));
    assert!(passes(r#"{"level":"loud","data":1}"#, Some(LogLevel::Emergency)));
}

#[test]
fn a_modern_call_hears_log_notices_only_if_it_asked_and_a_legacy_one_unless_its_session_set_a_level() {
    let notice = |level: &str| Notice {
        upstream: "u".into(),
        to: crate::engine::notices::Addressee::Everybody,
        method: MESSAGE.into(),
        params: Some(format!(r#"{{"level":"{level}","data":1}}"#).into()),
    };
    let client = |revision: &str, level: Option<&str>| ClientContext {
        revision: Some(revision.into()),
        log_level: level.map(str::to_owned),
        ..ClientContext::default()
    };
    assert!(!hears(&client("2026-07-28", None), &notice("emergency")));
    assert!(hears(&client("2026-07-28", Some("warning")), &notice("error")));
    assert!(!hears(&client("2026-07-28", Some("warning")), &notice("info")));
    assert!(hears(&client("2025-11-25", None), &notice("debug")));
    assert!(!hears(&client("2025-11-25", Some("error")), &notice("warning")));
}

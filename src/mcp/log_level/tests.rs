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

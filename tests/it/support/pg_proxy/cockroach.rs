//! What CockroachDB refuses or answers otherwise, as far as a driver could have relied on it. Rewrites statements; is no
//! CockroachDB.

/// What `version()` answers there.
pub const VERSION: &str = "CockroachDB CCL v25.3.1 (x86_64-pc-linux-gnu, built 2026/07/01 12:00:00, go1.23.7)";

/// The error that answers a statement there, if it is refused.
pub fn refuses(statement: &str) -> Option<&'static str> {
    let mut words = statement.split_whitespace().map(|word| word.trim_end_matches(';').to_uppercase());
    match (words.next().as_deref(), words.next().as_deref()) {
        (Some("LISTEN" | "UNLISTEN" | "NOTIFY"), _) => Some("42601"),
        (Some("DISCARD"), Some("ALL")) => Some("0A000"),
        _ if statement.to_lowercase().contains("pg_notify(") => Some("42883"),
        _ => None,
    }
}

/// The statement with the answers of there: another `version()`, and locks that lock nothing.
pub fn rewrite(statement: &str) -> String {
    let version = format!("'{VERSION}'::text");
    let mut text = statement.replace("version()", &version).replace(&format!("pg_catalog.{version}"), &version);
    for lock in [
        "pg_try_advisory_xact_lock",
        "pg_advisory_xact_lock",
        "pg_try_advisory_lock",
        "pg_advisory_lock",
        "pg_advisory_unlock",
    ] {
        text = without_calls(&text, lock);
    }
    text
}

/// Every call of a function of this name, replaced by `true`.
fn without_calls(text: &str, name: &str) -> String {
    let call = format!("{name}(");
    let Some(at) = text.find(&call) else { return text.to_owned() };
    let mut depth = 1;
    let rest = &text[at + call.len()..];
    let end = rest.find(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    });
    let rest = end.map_or("", |end| &rest[end + 1..]);
    format!("{}true{}", &text[..at], without_calls(rest, name))
}

#[test]
fn locks_lie_and_the_version_is_another() {
    assert_eq!(rewrite("SELECT pg_try_advisory_lock(abs(1)), 2"), "SELECT true, 2");
    assert_eq!(rewrite("SELECT pg_advisory_lock(1), pg_advisory_lock(2)"), "SELECT true, true");
    assert_eq!(rewrite("SELECT version()"), format!("SELECT '{VERSION}'::text"));
    assert!(refuses("listen changes").is_some() && refuses("UNLISTEN *").is_some() && refuses("DISCARD ALL").is_some());
    assert!(refuses("SELECT 1").is_none() && refuses("DISCARD PLANS").is_none());
}

//! The difference that is shown: a real unified diff, and no secret in it.

use super::super::diff::{sounds_secret, unified};
use super::super::document::Document;

fn document(text: &str) -> Document {
    Document::read(text.as_bytes()).unwrap()
}

#[test]
fn a_difference_is_shown_as_diff_shows_it() {
    let before = document("{\n\"a\": 1,\n\"b\": 2,\n\"c\": 3,\n\"d\": 4,\n\"e\": 5,\n\"f\": 6\n}\n");
    let after = document("{\n\"a\": 1,\n\"b\": 2,\n\"c\": 33,\n\"d\": 4,\n\"e\": 5,\n\"f\": 6,\n\"g\": 7\n}\n");
    assert_eq!(
        unified("x.json", Some(&before), Some(&after)),
        "--- x.json\n+++ x.json\n@@ -2,7 +2,8 @@\n \"a\": 1,\n \"b\": 2,\n-\"c\": 3,\n+\"c\": 33,\n \"d\": 4,\n \"e\": 5,\n-\"f\": 6\n+\"f\": 6,\n+\"g\": 7\n }\n"
    );
    let made = unified("x.json", None, Some(&document("{\n}\n")));
    assert_eq!(made, "--- /dev/null\n+++ x.json\n@@ -0,0 +1,2 @@\n+{\n+}\n");
    let far = (0..20).map(|n| format!("\"k{n}\": {n},\n")).collect::<String>();
    let text = |first: &str, last: &str| document(&format!("{{\n\"x\": {first},\n{far}\"y\": {last}\n}}\n"));
    let two = unified("x", Some(&text("1", "1")), Some(&text("2", "2")));
    assert_eq!(two.matches("@@ -").count(), 2, "{two}");
    let far = (0..3_000).map(|n| format!("\"k{n}\": {n},\n")).collect::<String>();
    let text = |first: &str, last: &str| document(&format!("{{\n\"x\": {first},\n{far}\"y\": {last}\n}}\n"));
    let large = unified("x", Some(&text("1,\n\"z\": 0", "1")), Some(&text("2", "2")));
    assert_eq!((large.matches("@@ -").count(), large.lines().count()), (2, 17), "{large}");
}

#[test]
fn no_secret_is_shown() {
    let text = |program: &str| {
        format!(
            r#"{{
  "primaryApiKey": "s3cret-1", "accessToken": "s3cret-2",
  "mcpServers": {{ "a": {{ "command": "{program}", "args": ["--token=s3cret-3", "--api-key", "s3cret-4", "plain"],
    "env": {{ "ANY": "s3cret-5", "PATH": "/bin", "P": "${{input:p}}" }}, "headers": {{ "X": "s3cret-6" }} }} }}
}}"#
        )
    };
    let shown = unified("x", Some(&document(&text("one"))), Some(&document(&text("two"))));
    assert!(!shown.contains("s3cret"), "{shown}");
    for visible in ["one", "two", "plain", "/bin", "${input:p}", "--api-key"] {
        assert!(shown.contains(visible), "{visible}: {shown}");
    }
}

#[test]
fn names_of_secrets_are_known_in_every_spelling() {
    for name in ["API_KEY", "apiKey", "--api-key", "githubToken", "Authorization", "DB_PASSWORD", "tokens", "PAT"] {
        assert!(sounds_secret(name), "{name}");
    }
    for name in ["PATH", "author", "keyboard", "monkey", "command", "pattern", "--name"] {
        assert!(!sounds_secret(name), "{name}");
    }
}

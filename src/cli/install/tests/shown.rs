//! The difference that is shown: a real unified diff, and no secret in it.

use super::super::diff::unified;
use super::super::document::Document;
use super::super::secret::{has_secret, sounds_secret};

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
fn an_address_or_a_header_with_a_secret_in_it_is_not_shown() {
    let text = |program: &str| {
        format!(
            r#"{{"mcpServers": {{
  "a": {{ "url": "https://a.example/mcp?key=s3cret-1" }}, "b": {{ "url": "https://ada:s3cret-2@b.example/mcp" }},
  "c": {{ "url": "https://c.example/mcp" }}, "d": {{ "command": "{program}", "args": ["postgres://ada:s3cret-3@h/d",
    "--header", "Authorization: Bearer s3cret-4", "--header", "X-Team:red", "ghp_s3cret5", "--url=https://e.example/?k=s3cret-6"] }}
}}}}"#
        )
    };
    let shown = unified("x", Some(&document(&text("one"))), Some(&document(&text("two"))));
    assert!(!shown.contains("s3cret"), "{shown}");
    for visible in ["https://c.example/mcp", "X-Team:red", "--header"] {
        assert!(shown.contains(visible), "{visible}: {shown}");
    }
}

#[test]
fn control_sequences_of_a_file_do_not_reach_the_terminal() {
    let shown = unified("x", None, Some(&document("{\n\t\"a\": 1 // \u{1b}[2J\n}\n")));
    assert!(shown.contains("+\t\"a\": 1 // \u{fffd}[2J\n"), "{shown}");
}

#[test]
fn an_address_tells_a_secret_by_its_user_its_query_or_a_part_that_is_a_key() {
    for address in [
        "https://a.example/mcp?key=1",
        "https://ada@a.example/mcp",
        "https://a.example/#t",
        "https://a.example/s/bW9yZSB0aGFuIDI0IGNoYXJz0/mcp",
    ] {
        assert!(has_secret(address), "{address}");
    }
    for address in ["https://a.example/mcp", "https://a.example/@org/server/mcp", "http://127.0.0.1:1"] {
        assert!(!has_secret(address), "{address}");
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

//! A file that was changed between `install` and `uninstall`: what is ours goes back, all else stays as it is by then.

use super::super::client::Client;
use super::super::plan::Action;
use super::super::record::Record;
use super::{PROGRAM, around, installed, planner, target, text_of, uninstalled};

const BEFORE: &str = r#"{
  "theme": "dark",
  "mcpServers": {
    "kit": {
      "command": "kit", // ours
      "args": [ "stdio" ],
      "env": { "TOKEN": "t" }
    },
    "other": { "command": "/srv/other" }
  }
}
"#;

#[test]
fn what_others_changed_elsewhere_stays() {
    let plan = installed(Client::Cursor, BEFORE);
    let change = |text: &str| text.replace("\"dark\"", "\"light\",\n  \"new\": [1,2]");
    let back = uninstalled(Client::Cursor, &change(&text_of(&plan)), plan.record);
    assert_eq!(text_of(&back), change(BEFORE));
}

#[test]
fn a_file_that_its_client_wrote_anew_gets_the_very_text_of_the_entry() {
    let plan = installed(Client::Cursor, BEFORE);
    let without_comment = text_of(&plan).replace(" // ours", "");
    let value: serde_json::Value = serde_json::from_str(&without_comment).unwrap();
    let anew = serde_json::to_string(&value).unwrap();
    let back = text_of(&uninstalled(Client::Cursor, &anew, plan.record));
    assert!(back.contains("\"kit\":{\n      \"command\": \"kit\", // ours\n      \"args\": [ \"stdio\" ],"), "{back}");
    assert!(back.contains(r#""theme":"dark""#), "{back}");
}

#[test]
fn what_others_changed_in_an_entry_stays_in_it() {
    let plan = installed(Client::Cursor, BEFORE);
    let changed = text_of(&plan)
        .replace("\"stdio\" ]", "\"stdio\", \"--more\" ]")
        .replace("{ \"TOKEN\": \"t\" }", "{ \"TOKEN\": \"u\", \"LEVEL\": \"debug\" },\n      \"disabled\": true");
    let back = text_of(&uninstalled(Client::Cursor, &changed, plan.record));
    let expected = BEFORE
        .replace("\"stdio\" ]", "\"stdio\", \"--more\" ]")
        .replace("{ \"TOKEN\": \"t\" }", "{ \"TOKEN\": \"u\", \"LEVEL\": \"debug\" },\n      \"disabled\": true");
    assert_eq!(back, expected);
}

#[test]
fn an_http_entry_that_was_changed_goes_back_with_its_changes() {
    let before = "{\"servers\": {\"crm\": {\n  \"type\": \"http\",\n  \"url\": \"https://a.example/mcp\",\n  \"headers\": {\"A\": \"b\"}\n}}}";
    let plan = installed(Client::Vscode, before);
    let changed = text_of(&plan).replace("a.example", "b.example").replace("\"b\"", "\"c\"");
    let back = text_of(&uninstalled(Client::Vscode, &changed, plan.record));
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(read(&back), read(&before.replace("a.example", "b.example").replace("\"b\"", "\"c\"")));
}

#[test]
fn without_a_record_an_entry_still_comes_out_of_its_wrapping() {
    let plan = installed(Client::Cursor, BEFORE);
    let back = uninstalled(Client::Cursor, &text_of(&plan), Record::default());
    assert_eq!(back.rows[0].action, Action::Restored);
    assert!(back.rows[0].note.as_deref().unwrap().contains("no record"));
    assert_eq!(
        text_of(&back),
        BEFORE.replace("{ \"command\": \"/srv/other\" }", "{ \"command\": \"/srv/other\", \"args\": [] }")
    );
    let http =
        installed(Client::Cursor, r#"{"mcpServers":{"a":{"url":"https://a.example/?k=1","headers":{"X":"y"}}}}"#);
    let back = text_of(&uninstalled(Client::Cursor, &text_of(&http), Record::default()));
    assert_eq!(back, r#"{"mcpServers":{"a":{"url":"https://a.example/?k=1","headers":{"X":"y"}}}}"#);
}

#[test]
fn an_added_entry_comes_out_of_a_file_that_has_others_by_then() {
    let around = around();
    for before in ["{}", "{\n  \"a\": 1,\n}\n", "{\"mcpServers\": {}}", "// nothing\n"] {
        let plan = planner(Client::Cursor, &around).connect(&target(before), None, Record::default()).unwrap();
        let with_other =
            text_of(&plan).replace("\"durable-mcp\":", "\"z\": {\"command\": \"/z\"},\n    \"durable-mcp\":");
        let back = uninstalled(Client::Cursor, &with_other, plan.record);
        let text = text_of(&back);
        assert!(!text.contains("durable-mcp") && text.contains("\"z\": {\"command\": \"/z\"}"), "{before}: {text}");
        assert!(target(&text).entries(Client::Cursor).unwrap().len() == 1, "{text}");
    }
}

#[test]
fn an_entry_that_is_no_wrapping_any_more_is_left_alone() {
    let plan = installed(Client::Cursor, BEFORE);
    let changed = text_of(&plan).replacen("\"--\"", "\"-\"", 1);
    let back = uninstalled(Client::Cursor, &changed, plan.record);
    let kit = back.rows.iter().find(|row| row.server == "kit").unwrap();
    assert_eq!(kit.action, Action::Refused, "{kit:?}");
    let gone = text_of(&installed(Client::Cursor, BEFORE)).replace(PROGRAM, "/elsewhere/program");
    assert!(uninstalled(Client::Cursor, &gone, Record::default()).next.is_none());
}

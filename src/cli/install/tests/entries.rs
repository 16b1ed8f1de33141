//! What becomes of an entry, exactly.

use super::super::client::Client;
use super::super::document::parse;
use super::super::entry::Entry;
use super::super::plan::Action;
use super::super::record::Record;
use super::{PROGRAM, around, fixtures, installed, planner, target, text_of, uninstalled};

#[track_caller]
fn becomes(client: Client, before: &str, after: &str) {
    let plan = installed(client, before);
    assert_eq!(text_of(&plan), after);
    let back = uninstalled(client, after, plan.record);
    assert_eq!(text_of(&back), before);
    assert!(back.record.changes.is_empty());
}

#[test]
fn every_fixture_goes_there_and_back_to_the_byte() {
    let mut wrapped = 0;
    for (client, path, text) in fixtures() {
        let plan = installed(client, &text);
        let Some(next) = &plan.next else {
            assert!(plan.rows.iter().all(|row| row.action == Action::Refused), "{}", path.display());
            continue;
        };
        let next = String::from_utf8(next.bytes()).unwrap();
        wrapped += plan.rows.iter().filter(|row| row.action == Action::Wrapped).count();
        // Everything outside of the entries is as it was.
        for line in text.lines().filter(|line| line.trim_start().starts_with("//")) {
            assert!(next.contains(line), "{}: {line}", path.display());
        }
        assert_eq!(next.starts_with('\u{feff}'), text.starts_with('\u{feff}'), "{}", path.display());
        assert_eq!(next.contains("\r\n"), text.contains("\r\n"), "{}", path.display());
        if text.contains("\r\n") {
            assert!(!next.replace("\r\n", "").contains('\n'), "{}: one kind of line end", path.display());
        }
        // Twice is once.
        let again = installed(client, &next);
        assert!(again.next.is_none(), "{}", path.display());
        let back = uninstalled(client, &next, plan.record);
        assert_eq!(text_of(&back), text, "{}", path.display());
    }
    assert!(wrapped >= 30, "only {wrapped} entries");
}

#[test]
fn connect_is_added_to_every_fixture_and_taken_out_to_the_byte() {
    for (client, path, text) in fixtures() {
        let (around, target) = (around(), target(&text));
        let plan = planner(client, &around).connect(&target, None, Record::default()).unwrap();
        let next = text_of(&plan);
        let entry = super::target(&next).entries(client).unwrap();
        let entry = entry.iter().find(|found| found.name() == "durable-mcp").unwrap();
        assert!(matches!(entry.entry, Entry::Connected { .. }), "{}: {entry:?}", path.display());
        let back = super::target(&next);
        let found: Vec<_> = back.entries(client).unwrap().into_iter().filter(|f| f.name() == "durable-mcp").collect();
        let back = planner(client, &around).uninstall(&back, &found, plan.record).unwrap();
        assert_eq!(text_of(&back), text, "{}", path.display());
    }
}

#[test]
fn a_stdio_entry_keeps_its_shape() {
    becomes(
        Client::Cursor,
        r#"{"mcpServers": {"kit": {"command": "/srv/kit", "args": ["stdio", "-v"], "env": {"A": "1"}}}}"#,
        &format!(
            r#"{{"mcpServers": {{"kit": {{"command": "{PROGRAM}", "args": ["wrap", "--name", "kit", "--", "/srv/kit", "stdio", "-v"], "env": {{"A": "1"}}}}}}}}"#
        ),
    );
    becomes(
        Client::ClaudeDesktop,
        "{\n\t\"mcpServers\": {\n\t\t\"kit\": {\n\t\t\t\"command\": \"/srv/kit\" // where it is\n\t\t}\n\t}\n}\n",
        &format!(
            "{{\n\t\"mcpServers\": {{\n\t\t\"kit\": {{\n\t\t\t\"command\": \"{PROGRAM}\",\n\t\t\t\"args\": [\"wrap\", \"--name\", \
             \"kit\", \"--\", \"/srv/kit\"] // where it is\n\t\t}}\n\t}}\n}}\n"
        ),
    );
    becomes(
        Client::Cursor,
        "{\"mcpServers\": {\"kit\": {\r\n  \"command\": \"/srv/kit\",\r\n  \"args\": [\r\n    // why\r\n    \"-v\",\r\n  ],\r\n}}}",
        &format!(
            "{{\"mcpServers\": {{\"kit\": {{\r\n  \"command\": \"{PROGRAM}\",\r\n  \"args\": [\r\n    // why\r\n    \"wrap\",\r\n    \
             \"--name\",\r\n    \"kit\",\r\n    \"--\",\r\n    \"/srv/kit\",\r\n    \"-v\",\r\n  ],\r\n}}}}}}"
        ),
    );
}

#[test]
fn an_http_entry_keeps_its_secrets_out_of_the_arguments() {
    becomes(
        Client::Vscode,
        r#"{
  "servers": {
    "crm": {
      "type": "http",
      "url": "https://crm.example/mcp",
      "headers": {
        "Authorization": "Bearer ${input:crm}", // asked for
        "X-Team": "red"
      }
    }
  }
}"#,
        &format!(
            r#"{{
  "servers": {{
    "crm": {{
      "type": "stdio",
      "command": "{PROGRAM}",
      "args": ["wrap", "--name", "crm", "--url", "https://crm.example/mcp", "--header-env", "Authorization=MCP_HEADER_AUTHORIZATION", "--header-env", "X-Team=MCP_HEADER_X_TEAM"],
      "env": {{
        "MCP_HEADER_AUTHORIZATION": "Bearer ${{input:crm}}", // asked for
        "MCP_HEADER_X_TEAM": "red"
      }}
    }}
  }}
}}"#
        ),
    );
    becomes(
        Client::Cursor,
        r#"{"mcpServers":{"crm":{"url":"https://crm.example/mcp?key=s3cret"}}}"#,
        &format!(
            r#"{{"mcpServers":{{"crm":{{"command":"{PROGRAM}","args":["wrap","--name","crm","--url-env","MCP_SERVER_URL"],"env":{{"MCP_SERVER_URL":"https://crm.example/mcp?key=s3cret"}}}}}}}}"#
        ),
    );
}

#[test]
fn what_is_not_understood_is_left_alone_and_says_why() {
    for (entry, why) in [
        (r#"[]"#, "no object"),
        (r#"{"type":"sse","url":"https://a.example/sse"}"#, "SSE"),
        (r#"{"url":"https://a.example/sse"}"#, "SSE"),
        (r#"{"type":"ws","url":"wss://a.example"}"#, "type"),
        (r#"{"command":"a","url":"https://a.example"}"#, "command and a url"),
        (r#"{}"#, "no command"),
        (r#"{"command":"npx -y server"}"#, "shell"),
        (r#"{"command":"a","args":"b"}"#, "no list"),
        (r#"{"command":"a","args":[1]}"#, "no text"),
        (r#"{"command":"a","env":[]}"#, "env"),
        (r#"{"command":"a","command":"b"}"#, "twice"),
        (r#"{"url":"ftp://a.example"}"#, "http"),
        (r#"{"url":"https://a.example","oauth":{"clientId":"x"}}"#, "signs in"),
        (r#"{"url":"https://a.example","headersHelper":"x"}"#, "headers"),
        (r#"{"command":"a","sandboxEnabled":true}"#, "sandbox"),
        (r#"{"url":"https://a.example","headers":{"A b":"c"}}"#, "malformed"),
        (r#"{"command":"/x/durable-mcp","args":["serve"]}"#, "no server"),
    ] {
        match Entry::read(&parse(entry).unwrap().unwrap()) {
            Entry::Foreign(said) => assert!(said.contains(why), "{entry}: {said}"),
            other => panic!("{entry}: {other:?}"),
        }
    }
    let ours = Entry::read(&parse(r#"{"command":"C:\\a\\durable-mcp.exe","args":["connect"]}"#).unwrap().unwrap());
    assert!(matches!(ours, Entry::Connected { .. }), "{ours:?}");
}

#[test]
fn a_program_that_moved_is_named_where_it_is_now_and_the_way_back_is_kept() {
    let before = r#"{"mcpServers":{"kit":{"command":"/srv/kit"}}}"#;
    let first = installed(Client::Cursor, before);
    let around = around();
    let moved = target(&text_of(&first));
    let mut planner = planner(Client::Cursor, &around);
    planner.program = "/new/durable-mcp".to_owned();
    let found = moved.entries(Client::Cursor).unwrap();
    let plan = planner.install(&moved, &found, first.record).unwrap();
    assert_eq!(plan.rows[0].action, Action::Updated);
    let next = text_of(&plan);
    assert!(next.contains("/new/durable-mcp") && !next.contains(PROGRAM), "{next}");
    assert_eq!(text_of(&uninstalled(Client::Cursor, &next, plan.record)), before);
}

#[test]
fn a_server_that_may_want_a_sign_in_is_wrapped_only_by_name() {
    let around = around();
    let mut planner = planner(Client::Cursor, &around);
    let action = |planner: &mut super::Planner<'_>, entry: &str| {
        let target = target(&format!(r#"{{"mcpServers":{{"a":{entry}}}}}"#));
        let found = target.entries(Client::Cursor).unwrap();
        planner.install(&target, &found, Record::default()).unwrap().rows[0].action
    };
    let open = r#"{"url":"https://mcp.example/mcp"}"#;
    assert_eq!(action(&mut planner, open), Action::Wrapped);
    planner.named = false;
    assert_eq!(action(&mut planner, open), Action::Refused);
    assert_eq!(action(&mut planner, r#"{"url":"${URL}"}"#), Action::Refused);
    for entry in [
        r#"{"url":"http://127.0.0.1:1/mcp"}"#,
        r#"{"url":"http://[::1]:1/mcp"}"#,
        r#"{"url":"http://localhost/mcp"}"#,
        r#"{"url":"https://a.example/mcp?key=1"}"#,
        r#"{"url":"https://a.example/mcp","headers":{"A":"b"}}"#,
    ] {
        assert_eq!(action(&mut planner, entry), Action::Wrapped, "{entry}");
    }
}

#[test]
fn what_somebody_wrapped_by_hand_goes_back_to_that() {
    let by_hand = r#"{"mcpServers":{"kit":{"command":"durable-mcp","args":["wrap","--","/srv/kit"]}}}"#;
    let plan = installed(Client::Cursor, by_hand);
    let next = text_of(&plan);
    assert!(next.contains(PROGRAM), "{next}");
    assert_eq!(text_of(&uninstalled(Client::Cursor, &next, plan.record)), by_hand);
}

#[test]
fn two_servers_of_one_name_have_two_stores() {
    let text = r#"{"projects":{"/a":{"mcpServers":{"fs":{"command":"/srv/fs","args":["/a"]}}},
        "/b":{"mcpServers":{"fs":{"command":"/srv/fs","args":["/b"]}}}},"mcpServers":{"my srv!":{"command":"/s"}}}"#;
    let plan = installed(Client::ClaudeCode, text);
    let mut stores: Vec<_> = plan.rows.iter().map(|row| row.store.clone().unwrap()).collect();
    stores.sort();
    assert_eq!(stores, ["fs", "fs-claude-code", "my-srv"]);
    assert_eq!(plan.rows[1].project.as_deref(), Some("/a"));
    assert_eq!(text_of(&uninstalled(Client::ClaudeCode, &text_of(&plan), plan.record)), text);
}

#[test]
fn path_and_data_folder_are_written_where_the_client_would_not_know_them() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    use std::os::unix::fs::PermissionsExt;
    for (name, text) in [("npx", "#!/usr/bin/env node\n"), ("node", "")] {
        std::fs::write(bin.join(name), text).unwrap();
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut around = around();
    around.env.insert("PATH".into(), format!("{}:relative::/usr/bin:/usr/bin", bin.display()));
    let mut planner = planner(Client::Cursor, &around);
    planner.data_dir = Some("/data".to_owned());
    let text = "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"npx\",\n      \"env\": {}\n    }\n  }\n}\n";
    let target = target(text);
    let found = target.entries(Client::Cursor).unwrap();
    let plan = planner.install(&target, &found, Record::default()).unwrap();
    let next = text_of(&plan);
    let path = format!("\"PATH\": \"{}:/usr/bin\"", bin.display());
    assert!(next.contains(&format!("\"{}/npx\"]", bin.display())), "{next}");
    assert!(
        next.contains(&format!("\"env\": {{\n        {path},\n        \"DURABLE_MCP_DATA_DIR\": \"/data\"\n      }}")),
        "{next}"
    );
    assert_eq!(text_of(&uninstalled(Client::Cursor, &next, plan.record)), text);
    // A PATH that the entry has is its own affair.
    let own = super::target(r#"{"mcpServers":{"a":{"command":"npx","env":{"PATH":"/nowhere"}}}}"#);
    let found = own.entries(Client::Cursor).unwrap();
    let plan = planner.install(&own, &found, Record::default()).unwrap();
    let next = text_of(&plan);
    assert!(next.contains("\"PATH\":\"/nowhere\"") && next.contains("\"npx\"]"), "{next}");
    assert!(plan.rows[0].note.as_deref().unwrap().contains("not in PATH"), "{:?}", plan.rows);
}

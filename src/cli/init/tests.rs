//! The files that `init` writes are configurations, and hold no secrets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::blank;
use super::secrets::Variables;
use super::servers::{Servers, Source};
use crate::cli::install::client::{Client, Place, Scope, Surroundings, System};
use crate::cli::install::target::Target;
use crate::config::{Loaded, Overrides, load};

fn loaded(text: &str, env: &[&str]) -> Result<Loaded, Vec<crate::config::Error>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("durable-mcp.toml");
    std::fs::write(&path, text).unwrap();
    let mut env: BTreeMap<String, String> = env.iter().map(|name| ((*name).to_owned(), "v".to_owned())).collect();
    env.insert("HOME".to_owned(), folder.path().to_str().unwrap().to_owned());
    load(Some(&path), &Overrides::default(), &env)
}

/// The file made from a client's configuration, and the variables that it needs.
fn made(client: Client, text: &str, keep: bool) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("client.json");
    std::fs::write(&path, text).unwrap();
    let around = Surroundings {
        system: System::Linux,
        home: PathBuf::from("/home/ada"),
        env: BTreeMap::new(),
        folder: PathBuf::from("/home/ada/shop"),
    };
    let target = Target::read(&Place { path, scope: Scope::User }).unwrap().unwrap();
    let mut variables = Variables::new(keep);
    let mut servers = Servers::default();
    servers.take(&Source { client: Some(client), around: &around, target: &target }, &mut variables).unwrap();
    (servers.file("x"), variables.names().map(str::to_owned).collect())
}

#[test]
fn a_blank_file_is_the_default_configuration_and_so_is_each_of_its_settings() {
    let file = blank::file();
    let plain = loaded(&file, &[]).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(plain.config.servers.len() + plain.config.tools.len(), 0);
    // Every setting with a default can be switched on as it stands.
    let (_, settings) = file.split_once("# --- Settings.").unwrap();
    let on: String = settings
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting) if setting.contains(" = ") && !setting.contains("= \"\" ") && !setting.contains("= [] ") => {
                format!("{setting}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let all = loaded(&on, &[]).unwrap_or_else(|errors| panic!("{errors:?}\n{on}"));
    assert_eq!(all.config.lease.ttl, plain.config.lease.ttl);
    let examples: String = file
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| !line.starts_with("---"))
        .fold(String::new(), |mut text, line| {
            let taken =
                line.starts_with("[servers") || line.starts_with("command = \"npx\"") || line.starts_with("args");
            if taken {
                text.push_str(line);
                text.push('\n');
            }
            text
        });
    assert!(examples.contains("[servers.github]"), "{examples}");
}

#[test]
fn secrets_become_variables_wherever_they_stand() {
    let text = r#"{"mcpServers": {
        "github": {"command": "npx", "args": ["-y", "srv", "--api-key", "s3cret-1", "--token=s3cret-2", "plain"],
            "env": {"GITHUB_TOKEN": "s3cret-3", "LEVEL": "debug", "DB": "postgres://ada:s3cret-4@h/d"}},
        "other": {"command": "npx", "env": {"GITHUB_TOKEN": "s3cret-5"}},
        "crm": {"url": "https://crm.example/mcp", "headers": {"Authorization": "Bearer s3cret-6", "X-Team": "s3cret-7", "Accept": "*/*"}},
        "q": {"url": "https://q.example/mcp?key=s3cret-8"}
    }}"#;
    let (file, variables) = made(Client::Cursor, text, false);
    assert!(!file.contains("s3cret"), "{file}");
    for line in [
        r#"args = ["-y", "srv", "--api-key", "${GITHUB_API_KEY}", "--token=${GITHUB_GITHUB_TOKEN}", "plain"]"#,
        r#"env = { GITHUB_TOKEN = "${GITHUB_TOKEN}", LEVEL = "debug", DB = "${DB}" }"#,
        r#"env = { GITHUB_TOKEN = "${OTHER_GITHUB_TOKEN}" }"#,
        r#"headers = { Authorization = "Bearer ${CRM_AUTHORIZATION}", X-Team = "${CRM_X_TEAM}", Accept = "*/*" }"#,
        r#"url = "${Q_URL}""#,
    ] {
        assert!(file.contains(line), "{line}\n{file}");
    }
    let names: Vec<&str> = variables.iter().map(String::as_str).collect();
    assert!(loaded(&file, &names[1..]).is_err(), "a variable that is not set is an error");
    // An address has to be one.
    let file = file.replace("${Q_URL}", "https://q.example/mcp");
    let loaded = loaded(&file, &names).unwrap_or_else(|errors| panic!("{errors:?}\n{file}"));
    assert_eq!(loaded.config.servers.len(), 4);
    let (kept, none) = made(Client::Cursor, text, true);
    assert_eq!(kept.matches("s3cret").count(), 8);
    assert!(none.is_empty());
}

#[test]
fn what_only_a_client_fills_in_is_filled_in_or_asked_for() {
    let text = r#"{"servers": {"a b": {"command": "${workspaceFolder}/s", "args": ["${userHome}${/}x", "${env:X}", "$" ],
        "env": {"T": "${input:my-token}", "D": "${Y:-z}"}, "envFile": ".env", "cwd": "${workspaceFolder}"},
        "off": {"command": "s", "disabled": true}, "old": {"type": "sse", "url": "https://o.example/sse"}}}"#;
    let (file, variables) = made(Client::Vscode, text, false);
    for line in [
        "# a b\n[servers.a-b]\n",
        "command = \"/home/ada/shop/s\"",
        r#"args = ["/home/ada/x", "${env:X}", "$"]"#,
        r#"env = { T = "${MY_TOKEN}", D = "${Y:-z}" }"#,
        "cwd = \"/home/ada/shop\"",
        "[servers.off]\nenabled = false\n",
        "# old: it uses the old SSE transport",
        "# its envFile is not read",
    ] {
        assert!(file.contains(line), "{line}\n{file}");
    }
    assert_eq!(variables, ["MY_TOKEN"]);
    assert_eq!(loaded(&file, &["MY_TOKEN", "X"]).unwrap().config.servers.len(), 2);
    let (file, _) = made(Client::ClaudeDesktop, r#"{"mcpServers": {"d": {"command": "s", "args": ["${X}"]}}}"#, false);
    assert!(file.contains(r#"args = ["$${X}"]"#), "{file}");
}

#[test]
fn servers_behind_wrap_are_taken_for_what_they_are() {
    let text = r#"{"mcpServers": {
        "a": {"command": "/x/durable-mcp", "args": ["wrap", "--name", "a", "--", "/bin/s", "-v"], "env": {"PATH": "/p", "K": "1"}},
        "b": {"command": "/x/durable-mcp", "args": ["wrap", "--url", "https://b.example/mcp", "--header-env", "X=MCP_HEADER_X"],
            "env": {"MCP_HEADER_X": "y"}},
        "durable-mcp": {"command": "/x/durable-mcp", "args": ["connect"]}
    }, "projects": {"/home/ada/shop": {"mcpServers": {"here": {"command": "h"}}}, "/else": {"mcpServers": {"there": {"command": "t"}}}}}"#;
    let (file, _) = made(Client::ClaudeCode, text, true);
    for line in [
        "[servers.a]\ncommand = \"/bin/s\"\nargs = [\"-v\"]\nenv = { K = \"1\" }\n",
        "[servers.b]\nurl = \"https://b.example/mcp\"\nheaders = { X = \"y\" }\n",
        "[servers.here]",
        "# durable-mcp: it leads to durable-mcp itself",
    ] {
        assert!(file.contains(line), "{line}\n{file}");
    }
    assert!(!file.contains("there"), "{file}");
    assert_eq!(loaded(&file, &[]).unwrap().config.servers.len(), 3);
}

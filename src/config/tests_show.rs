//! What `config show` shows, and that a secret is in none of what can be printed.

use super::tests::{Folder, environment};
use super::*;

const CANARY: &str = "canary-4711-do-not-print";

const SECRETIVE: &str = r#"
[store]
url = "postgres://ada:${CANARY}@db.example/x?sslpassword=canary-4711-do-not-print"
[log]
level = "${LEVEL}"
[servers.a]
command = "${CANARY}"
args = ["--api-key", "canary-4711-do-not-print", "-y", "--token=canary-4711-do-not-print", "x-${CANARY}"]
env = { TOKEN = "canary-4711-do-not-print", OTHER = "${CANARY}" }
cwd = "/x/${CANARY}"
[servers.a.tools.t]
key_argument = "${CANARY}"
reconcile = { tool = "${CANARY}", arguments = { deep = [{ x = "${CANARY}" }] }, match = "${CANARY}" }
[servers.b]
url = "https://ada:canary-4711-do-not-print@b.example/mcp?key=canary-4711-do-not-print#canary-4711-do-not-print"
headers = { Authorization = "Bearer canary-4711-do-not-print" }
[tools.c]
command = ["run", "canary-4711-do-not-print", "${CANARY}"]
description = "${CANARY}"
env = { TOKEN = "canary-4711-do-not-print" }
input_schema = { type = "object", description = "${CANARY}" }
[tools.h]
url = "https://ada:canary-4711-do-not-print@h.example/x?key=canary-4711-do-not-print&n={{arguments.n}}"
headers = { Authorization = "canary-4711-do-not-print" }
query = { key = "canary-4711-do-not-print", n = "{{arguments.n}}" }
body = { deep = [{ x = "${CANARY}" }] }
[namespaces.n]
display_name = "${CANARY}"
tools = ["${CANARY}"]
"#;

#[test]
fn a_secret_is_in_nothing_that_can_be_printed() {
    let folder = Folder::with(&[("a.toml", SECRETIVE)]);
    let loaded = folder.load("a.toml", &[("CANARY", CANARY), ("LEVEL", "warn")]).unwrap();
    assert_eq!(loaded.config.servers["a"].env["OTHER"].expose(), CANARY);
    for text in [
        show(&loaded, false),
        show(&loaded, true),
        format!("{:?} {:#?}", loaded.config, loaded.config),
        format!("{:?}", loaded.config.server_policy("a", "t")),
        format!("{:?}", loaded.warnings),
    ] {
        assert!(!text.contains("canary-4711"), "{text}");
    }
    let shown = show(&loaded, false);
    assert!(shown.contains("level = \"***\""), "{shown}");
    assert!(
        shown.contains("args = [\"--api-key\", \"***\", \"-y\", \"***\", \"***\"]") || shown.contains("args = \"***\""),
        "{shown}"
    );
}

#[test]
fn a_secret_is_in_no_error() {
    let wrong = [
        "[server]\nlisten = \"${CANARY}\"",
        "[worker]\nslots = \"${CANARY}\"",
        "[defaults]\nwait = \"${CANARY}\"\non_disconnect = \"${CANARY}\"",
        "[server]\nmax_body_bytes = \"${CANARY}\"\nresponse = \"${CANARY}\"\npath = \"${CANARY}\"\nnamespace_paths = \"${CANARY}\"",
        "[store]\nurl = \"canary-4711-do-not-print\"",
        "[store]\nurl = \"sqlite:x\"\ndata_dir = [\"${CANARY}\"]\nmigrate = \"${CANARY}\"",
        "[servers.a]\nurl = \"canary-4711-do-not-print\"",
        "[servers.a]\nurl = \"https://x\"\nheaders = { a = \"canary-4711-do-not-print\\n\" }",
        "[servers.a]\ncommand = \"x\"\nprefix = \"${CANARY}!\"\nenv = { A = [\"canary-4711-do-not-print\"] }",
        "[servers.a]\ncommand = \"x\"\nenv = { A = \"${CANARY}${MISSING}\" }",
        "[servers.a]\ncommand = \"x\"\nenv = { A = \"canary-4711-do-not-print${\" }",
        "[tools.t]\ncommand = [\"x\"]\ninput_schema = \"/nowhere/${CANARY}\"",
        "[tools.t]\ncommand = [\"x\"]\ninput_schema = { type = \"${CANARY}\" }",
        "[tools.t]\nurl = \"https://a:canary-4711-do-not-print@{{arguments.x}}/\"",
        "[tools.t]\nurl = \"http://canary-4711-do-not-print@127.0.0.1/?k=canary-4711-do-not-print\"",
        "[tools.t]\nurl = \"https://a.example/{{${CANARY}}}\"\nquery = { a = \"{{${CANARY}}}\" }\nbody = { b = \"{{${CANARY}}}\" }",
        "[auth]\nmode = \"${CANARY}\"\nproxy = { principal_header = \"${CANARY} \", peers = [\"${CANARY}\"] }",
        "[servers.a]\ncommand = \"x\"\nenv = { A = \"canary-4711-do-not-print }",
        "[servers.a]\ncommand = \"x\"\nenv = { A = canary-4711-do-not-print }",
        "[servers.a]\ncommand = \"x\"\nenv = { A = \"${canary-4711-do-not-print}\" }",
        "[store]\nurl = \"postgres://u:canary-4711-do-not-print\u{0}@h/d\"",
    ];
    for content in wrong {
        let folder = Folder::with(&[("a.toml", content)]);
        let errors = folder.load("a.toml", &[("CANARY", CANARY)]).err().unwrap_or_else(|| panic!("passes: {content}"));
        let text = format!("{errors:?} {}", errors.iter().map(ToString::to_string).collect::<String>());
        assert!(!text.contains("canary-4711"), "{text}");
    }
}

#[test]
fn a_secret_from_a_file_with_a_broken_path_stays_in_its_place() {
    let folder = Folder::with(&[("a.json", r#"{"mcpServers": {"a": {"command": "x", "env": {"T": "canary-4711" "#)]);
    let errors = folder.load("a.json", &[]).err().unwrap();
    assert!(!format!("{errors:?}").contains("canary"), "{errors:?}");
}

#[test]
fn show_names_the_source_of_every_value() {
    let folder = Folder::with(&[(
        "durable.toml",
        r#"[defaults]
wait = "5s"
[servers.a]
command = "npx"
queue = 3
retry = { max_attempts = 9 }
[servers.a.tools."x.y"]
delivery = "at_most_once"
reconcile = { tool = "find", match = "/x == true" }
"#,
    )]);
    let mut flags = Overrides::default();
    flags.set("--listen", "server.listen", Some("127.0.0.1:1"));
    let env = environment(&[("DURABLE_MCP_SLOTS", "2")]);
    let loaded = load(Some(&folder.path("durable.toml")), &flags, &env).unwrap();
    let shown = show(&loaded, false);
    let squeezed: Vec<String> =
        shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "listen = \"127.0.0.1:1\" # --listen",
        "slots = 2 # DURABLE_MCP_SLOTS",
        "wait = \"5s\" # durable.toml:2",
        "ttl = \"30s\" # default",
        "url = \"sqlite:/home/ada/.local/share/durable-mcp/durable-mcp.db\" # default",
        "queue = 3 # durable.toml:5",
        "[servers.a.tools.\"x.y\"]",
        "[servers.a.tools.\"x.y\".reconcile]",
        "max_attempts = 9 # durable.toml:6",
        "heartbeat = \"10s\" # default",
        "delivery = \"at_most_once\" # durable.toml:8",
    ] {
        // On macOS the data folder has another name.
        assert!(
            cfg!(target_os = "macos") && line.contains("/home") || squeezed.iter().any(|l| l == line),
            "{line}\n{shown}"
        );
    }
    assert!(!shown.contains("[servers.a.timeout]"), "only what is not inherited: {shown}");
    // What is shown is TOML, and a configuration again.
    let again = Folder::with(&[("shown.toml", &shown)]).load("shown.toml", &[]).unwrap();
    assert_eq!(again.config.server_policy("a", "x.y").retry, loaded.config.server_policy("a", "x.y").retry);
}

#[test]
fn show_as_json_is_one_object_with_a_member_per_setting() {
    let text = "[servers.a]\ncommand = \"x\"\nretry = { jitter = 0 }\n[servers.a.tools.t]\n";
    let folder = Folder::with(&[("a.toml", text)]);
    let loaded = folder.load("a.toml", &[("DURABLE_MCP_WAIT", "1s")]).unwrap();
    let shown: serde_json::Value = serde_json::from_str(&show(&loaded, true)).unwrap();
    let settings = &shown["settings"];
    let member = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(settings["defaults.wait"], member(r#"{"value":"1s","source":"env","name":"DURABLE_MCP_WAIT"}"#));
    assert_eq!(settings["servers.a.command"], member(r#"{"value":"x","source":"file","line":2}"#));
    assert_eq!(settings["lease.ttl"], member(r#"{"value":"30s","source":"default"}"#));
    assert_eq!(
        settings["servers.a.tools.t.retry.jitter"],
        member(r#"{"value":0,"source":"file","line":3,"inherited_from":"servers.a.retry.jitter"}"#)
    );
    assert_eq!(
        settings["servers.a.wait"],
        member(r#"{"value":"1s","source":"env","name":"DURABLE_MCP_WAIT","inherited_from":"defaults.wait"}"#)
    );
}

#[test]
fn addresses_lose_what_may_be_secret() {
    for (url, masked) in [
        ("https://a.example/mcp", "https://a.example/mcp"),
        ("https://u:p@a.example/mcp", "https://***@a.example/mcp"),
        ("postgres://u:p@ss@h/d", "postgres://***@h/d"),
        ("https://a/x?key=1&b=2&c", "https://a/x?key=***&b=***&***"),
        ("https://a/x#t", "https://a/x#***"),
        ("u:p@h", "***@h"),
        ("sqlite:/x/y.db", "sqlite:/x/y.db"),
    ] {
        assert_eq!(mask_url(url), masked);
    }
}

//! What a good configuration becomes: precedence, `${…}`, other clients' JSON, effective policies, the examples.

use super::settings::{AuthMode, Migrate};
use super::tools::{Delivery, OnDisconnect, Response, RetryOn, Unkeyed};
use super::units::{Bytes, Millis};
use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with files, gone after the test.
pub(super) struct Folder(pub tempfile::TempDir);

impl Folder {
    pub fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn load(&self, name: &str, env: &[(&str, &str)]) -> Result<Loaded, Vec<Error>> {
        load(Some(&self.path(name)), &Overrides::default(), &environment(env))
    }
}

pub(super) fn environment(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    let home = [("HOME", "/home/ada")];
    home.iter().chain(variables).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn toml(content: &str, env: &[(&str, &str)]) -> Loaded {
    Folder::with(&[("durable.toml", content)]).load("durable.toml", env).unwrap()
}

fn json(content: &str) -> Loaded {
    Folder::with(&[("mcp.json", content)]).load("mcp.json", &[]).unwrap()
}

#[test]
fn without_a_file_everything_is_at_its_default() {
    let loaded = load(None, &Overrides::default(), &environment(&[("XDG_DATA_HOME", "/data")])).unwrap();
    let config = &loaded.config;
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7400");
    assert_eq!(config.store.url.as_ref().unwrap().expose(), "sqlite:/data/durable-mcp/durable-mcp.db");
    assert_eq!(loaded.data_dir, Path::new("/data/durable-mcp"));
    assert_eq!(config.defaults.wait, Millis(50_000));
    assert_eq!(config.server.max_body_bytes, Bytes(4 << 20));
    assert_eq!(config.lease.heartbeat_ms(), 10_000);
    assert_eq!(&*config.log.level, "info");
    assert!(config.servers.is_empty() && config.tools.is_empty() && loaded.warnings.is_empty());
}

#[test]
fn defaults_written_for_the_schema_are_the_real_ones() {
    let config = Config::default();
    let at = |path: &str| schema().pointer(path).and_then(|s| s.get("default")).cloned().unwrap();
    assert_eq!(at("/properties/server/properties/path"), *config.server.path);
    assert_eq!(at("/properties/log/properties/level"), *config.log.level);
    let proxy = "/properties/auth/properties/proxy/properties";
    assert_eq!(at(&format!("{proxy}/principal_header")), *config.auth.proxy.principal_header);
    assert_eq!(at(&format!("{proxy}/namespace_header")), *config.auth.proxy.namespace_header);
    assert_eq!(at(&format!("{proxy}/scopes_header")), *config.auth.proxy.scopes_header);
}

#[test]
fn a_flag_beats_a_variable_beats_the_file() {
    let folder = Folder::with(&[("a.toml", "[defaults]\nwait = \"1s\"\n[worker]\nslots = 1\n[lease]\nttl = \"1s\"\n")]);
    let env = environment(&[("DURABLE_MCP_WAIT", "2s"), ("DURABLE_MCP_WORKER_SLOTS", "2")]);
    let mut flags = Overrides::default();
    flags.set("--wait", "defaults.wait", Some("3s")).set("--listen", "server.listen", None::<String>);
    let loaded = load(Some(&folder.path("a.toml")), &flags, &env).unwrap();
    assert_eq!(loaded.config.defaults.wait, Millis(3_000));
    assert_eq!(loaded.source(&["defaults", "wait"]), Source::Flag("--wait".into()));
    assert_eq!(loaded.config.worker.slots, 2);
    assert_eq!(loaded.source(&["worker", "slots"]), Source::Variable("DURABLE_MCP_WORKER_SLOTS".into()));
    assert_eq!(loaded.config.lease.ttl, Millis(1_000));
    assert_eq!(loaded.source(&["lease", "ttl"]), Source::File { line: 6 });
    assert_eq!(loaded.source(&["server", "listen"]), Source::Default);
}

#[test]
fn every_kind_of_setting_can_come_from_a_variable() {
    let loaded = load(
        None,
        &Overrides::default(),
        &environment(&[
            ("DURABLE_MCP_SERVER_ALLOWED_HOSTS", "a.example, b.example"),
            ("DURABLE_MCP_BUILTIN_DURABLE_LIST", "true"),
            ("DURABLE_MCP_DEFAULTS_RETRY_BACKOFF_COEFFICIENT", "1.5"),
            ("DURABLE_MCP_DEFAULTS_RETRY_ON", "tool_error"),
            ("DURABLE_MCP_SERVER_MAX_BODY_BYTES", "1MiB"),
            ("DURABLE_MCP_STORE_MIGRATE", "check"),
            ("DURABLE_MCP_AUTH_MODE", "token"),
            ("DURABLE_MCP_LISTEN", "0.0.0.0:0"),
            ("DURABLE_MCP_URL", "http://elsewhere"),
        ]),
    )
    .unwrap();
    let config = &loaded.config;
    assert_eq!(config.server.allowed_hosts.iter().map(|host| &**host).collect::<Vec<_>>(), ["a.example", "b.example"]);
    assert!(config.builtin.durable_list);
    assert_eq!(config.defaults.retry.backoff_coefficient, 1.5);
    assert_eq!(config.defaults.retry.on, [RetryOn::ToolError]);
    assert_eq!(config.server.max_body_bytes, Bytes(1 << 20));
    assert_eq!(config.store.migrate, Migrate::Check);
    assert_eq!(config.auth.mode, AuthMode::Token);
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn an_unknown_variable_of_ours_is_a_warning() {
    let env = environment(&[("DURABLE_MCP_LISTN", "1.2.3.4:5"), ("DURABLE_MCP_SPARKLE", "1")]);
    let loaded = load(None, &Overrides::default(), &env).unwrap();
    assert_eq!(
        loaded.warnings,
        [
            "DURABLE_MCP_LISTN: this variable sets nothing; did you mean `DURABLE_MCP_LISTEN`?",
            "DURABLE_MCP_SPARKLE: this variable sets nothing; see docs/configuration.md for the names"
        ]
    );
}

#[test]
fn strings_are_filled_in_from_variables_and_files() {
    let folder = Folder::with(&[
        (
            "a.toml",
            r#"
[worker]
slots = "${SLOTS}"
[servers.a]
command = "${TOOL:-cat}"
args = ["${env:NAME}", "x${EMPTY:-y}z", "$${NAME}", "$NAME", "${EMPTY}"]
env = { TOKEN = "Bearer ${file:secrets/token}" }
"#,
        ),
        ("secrets/token", "s3cret\n"),
    ]);
    let loaded = folder.load("a.toml", &[("SLOTS", "3"), ("NAME", "ada"), ("EMPTY", "")]).unwrap();
    let server = &loaded.config.servers["a"];
    assert_eq!(loaded.config.worker.slots, 3);
    assert_eq!(server.command.as_deref(), Some("cat"));
    assert_eq!(server.args.iter().map(|arg| &**arg).collect::<Vec<_>>(), ["ada", "xyz", "${NAME}", "$NAME", ""]);
    assert_eq!(server.env["TOKEN"].expose(), "Bearer s3cret");
}

#[test]
fn relative_paths_are_relative_to_the_file() {
    let folder = Folder::with(&[
        (
            "etc/a.toml",
            r#"
[store]
url = "sqlite:data/x.db"
[servers.a]
command = "./bin/server"
cwd = "work"
[servers.b]
command = "npx"
[tools.t]
command = ["./t.sh", "./not-a-program"]
input_schema = "../schema.json"
"#,
        ),
        ("schema.json", "{\"type\":\"object\", \"x\": 1.0}\n"),
    ]);
    let loaded = folder.load("etc/a.toml", &[]).unwrap();
    let etc = folder.path("etc");
    let at = |name: &str| etc.join(name).to_string_lossy().into_owned();
    let config = &loaded.config;
    assert_eq!(config.store.url.as_ref().unwrap().expose(), format!("sqlite:{}", at("data/x.db")));
    assert_eq!(config.servers["a"].command.as_deref(), Some(&*at("bin/server")));
    assert_eq!(config.servers["a"].cwd.as_deref(), Some(&*at("work")));
    assert_eq!(config.servers["b"].command.as_deref(), Some("npx"));
    let tool = &config.tools["t"];
    assert_eq!(*tool.command[0], at("t.sh"));
    assert_eq!(&*tool.command[1], "./not-a-program");
    assert_eq!(tool.input_schema.as_ref().unwrap().object().unwrap().get(), "{\"type\":\"object\", \"x\": 1.0}");
}

#[test]
fn a_schema_in_place_keeps_its_order_and_servers_keep_theirs() {
    let loaded = toml(
        r#"
[servers.zebra]
command = "z"
[servers.ant]
command = "a"
[tools.t]
command = ["t"]
input_schema = { type = "object", properties = { zed = { type = "integer", minimum = 1.5 }, abc = { enum = ["x", true, [1]] } } }
"#,
        &[],
    );
    assert_eq!(loaded.config.servers.keys().collect::<Vec<_>>(), ["zebra", "ant"]);
    assert_eq!(
        loaded.config.tools["t"].input_schema.as_ref().unwrap().object().unwrap().get(),
        r#"{"type":"object","properties":{"zed":{"type":"integer","minimum":1.5},"abc":{"enum":["x",true,[1]]}}}"#
    );
}

#[test]
fn a_policy_is_inherited_from_tool_to_server_to_defaults() {
    let loaded = toml(
        r#"
[defaults]
wait = "10s"
timeout = { attempt = "1m" }
[server]
response = "sse"
[servers.a]
command = "a"
delivery = "at_least_once"
retry = { max_attempts = 5 }
queue = 7
[servers.a.tools.x]
delivery = "at_most_once"
wait = "0"
timeout = { idle = "5s" }
idempotency = { unkeyed = "none" }
on_disconnect = "cancel"
key_argument = "request_id"
reconcile = { tool = "find", arguments = { id = "{{arguments.id}}" }, match = "/found == true" }
[servers.a.tools."odd name.v2"]
enabled = false
[tools.t]
command = ["t"]
response = "json"
concurrency = 1
"#,
        &[],
    );
    let config = &loaded.config;
    let x = config.server_policy("a", "x");
    assert_eq!(x.delivery, Some(Delivery::AtMostOnce));
    assert_eq!((x.wait_ms, x.retry.max_attempts, x.response), (0, 5, Response::Sse));
    assert_eq!(x.timeout, Timeout { attempt_ms: 60_000, total_ms: 3_600_000, idle_ms: Some(5_000) });
    assert_eq!((x.idempotency.unkeyed, x.idempotency.ttl_ms), (Unkeyed::None, 86_400_000));
    assert_eq!(x.on_disconnect, OnDisconnect::Cancel);
    assert_eq!(x.key_argument.as_deref(), Some("request_id"));
    let reconcile = x.reconcile.unwrap();
    assert_eq!((&*reconcile.tool, reconcile.arguments.raw().get()), ("find", "{\"id\":\"{{arguments.id}}\"}"));
    let other = config.server_policy("a", "other");
    assert_eq!((other.delivery, other.wait_ms, other.enabled), (Some(Delivery::AtLeastOnce), 10_000, true));
    assert!(!config.server_policy("a", "odd name.v2").enabled);
    assert_eq!(config.server_policy("nobody", "x").delivery, None);
    assert_eq!(config.server_queue("a"), Queue { concurrency: 16, length: 7, timeout_ms: 30_000 });
    assert_eq!(config.tool_queue("t").concurrency, 1);
    assert_eq!(config.tool_policy("t").response, Response::Json);
}

#[test]
fn json_of_other_clients_is_taken_as_it_is() {
    let loaded = json(
        r#"{
  // VS Code permits comments, "quoted" ones too
  "globalShortcut": "Cmd+Space",
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "server-files", "/tmp"], "env": { "A": "1" }, "autoApprove": ["x"], "timeout": 60 },
    "web": { "type": "streamable-http", "url": "https://a.example/mcp", "headers": { "X-Key": "k" }, "gallery": true },
    "off": { "disabled": true, "type": "sse", "url": "https://b.example/sse" },
    "old": { "serverUrl": "https://c.example/mcp", "disabled": false, "cwd": null }, /* the last one */
  },
}"#,
    );
    let servers = &loaded.config.servers;
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["files", "web", "old"]);
    assert_eq!(servers["files"].args.len(), 3);
    assert_eq!(servers["web"].url.as_ref().unwrap().expose(), "https://a.example/mcp");
    assert_eq!(servers["web"].headers["X-Key"].expose(), "k");
    assert_eq!(servers["old"].url.as_ref().unwrap().expose(), "https://c.example/mcp");
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn the_servers_of_vs_code_are_taken_and_slips_are_warned_about() {
    let loaded = json(
        r#"{ "inputs": [], "servers": { "a": { "type": "stdio", "command": "a", "agrs": ["x"], "concurrency": 2 } },
  "worker": {} }"#,
    );
    assert_eq!(loaded.config.servers["a"].concurrency, Some(2));
    let ends: Vec<&str> = loaded.warnings.iter().map(|warning| warning.rsplit("mcp.json:").next().unwrap()).collect();
    assert_eq!(
        ends,
        [
            "2:3: `worker` is ignored in a JSON file; write a TOML file to set it",
            "1:70: unknown key `agrs` is ignored; check its spelling"
        ]
    );
}

#[test]
fn a_namespace_allows_what_it_lists() {
    let loaded = toml("[namespaces.a]\ntools = [\"crm__*\", \"echo\"]\n[namespaces.b]\n", &[]);
    let (a, b) = (&loaded.config.namespaces["a"], &loaded.config.namespaces["b"]);
    assert!(a.allows("crm__list") && a.allows("echo") && !a.allows("echo2") && !a.allows("other"));
    assert!(b.allows("anything"));
}

#[test]
fn retry_without_effect_is_a_warning() {
    let loaded =
        toml("[tools.t]\ncommand = [\"t\"]\ndelivery = \"at_most_once\"\nretry = { on = [\"tool_error\"] }\n", &[]);
    assert_eq!(loaded.warnings.len(), 1);
    assert!(loaded.warnings[0].contains("durable.toml:4:"), "{}", loaded.warnings[0]);
}

#[test]
fn every_example_passes() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut checked = 0;
    for entry in fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "toml" || end == "json") {
            let loaded =
                load(Some(&path), &Overrides::default(), &environment(&[])).unwrap_or_else(|e| panic!("{e:?}"));
            assert_eq!(loaded.warnings, Vec::<String>::new(), "{}", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 3);
}

#[test]
fn the_first_example_counts_words() {
    use std::io::Write;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart.toml");
    let loaded = load(Some(&path), &Overrides::default(), &environment(&[])).unwrap();
    let program = &*loaded.config.tools["word_count"].command[0];
    for (arguments, answer) in [
        (r#"{"text":"To be, or not to be"}"#, "1 lines, 6 words, 19 bytes\n"),
        (r#"{ "text" : "a \"b\"\\n c\nd e\\" }"#, "2 lines, 5 words, 14 bytes\n"),
        (r#"{"text":""}"#, "0 lines, 0 words, 0 bytes\n"),
    ] {
        let piped = || std::process::Stdio::piped();
        let mut child = std::process::Command::new(program).stdin(piped()).stdout(piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(arguments.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), answer, "{arguments}");
    }
}

#[test]
fn durations_are_read_and_written() {
    for (text, ms) in [
        ("0", 0),
        ("0s", 0),
        ("500ms", 500),
        ("30s", 30_000),
        ("10m", 600_000),
        ("24h", 86_400_000),
        ("7d", 604_800_000),
        ("1h30m", 5_400_000),
        ("3650d", 315_360_000_000),
    ] {
        assert_eq!(Millis::parse(text), Some(Millis(ms)), "{text}");
        assert_eq!(Millis::parse(&Millis(ms).to_string()), Some(Millis(ms)), "{text}");
    }
    for text in
        ["", "1", "s", "-1s", "1.5s", "1 s", "1S", "1w", "30s1h", "1s1s", "3651d", "9223372036854775807d", "1s "]
    {
        assert_eq!(Millis::parse(text), None, "{text:?}");
    }
    assert_eq!((Millis(90_000).to_string(), Millis(600_000).to_string()), ("90s".into(), "10m".into()));
}

#[test]
fn sizes_are_read_and_written() {
    for (text, bytes) in
        [("0", 0), ("1024", 1024), ("4MiB", 4 << 20), ("4 MiB", 4 << 20), ("2KB", 2_000), ("1GiB", 1 << 30), ("7B", 7)]
    {
        assert_eq!(Bytes::parse(text), Some(Bytes(bytes)), "{text}");
        assert_eq!(Bytes::parse(&Bytes(bytes).to_string()), Some(Bytes(bytes)), "{text}");
    }
    for text in ["", "MiB", "-1", "1.5MiB", "1mib", "1TiB", "99999999999GiB", "18446744073709551615"] {
        assert_eq!(Bytes::parse(text), None, "{text:?}");
    }
}

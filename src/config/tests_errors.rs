//! What is wrong with a bad configuration, as the exact line that people read.

use super::tests::{Folder, environment};
use super::*;

/// Loads each text and compares its errors, without the name of the file, line by line.
pub(super) fn check(name: &str, cases: &[(&str, &[&str])]) {
    for (content, wanted) in cases {
        let folder = Folder::with(&[(name, content)]);
        let Err(errors) = folder.load(name, &[]) else { panic!("passes: {content}") };
        let start = format!("{}:", folder.path(name).display());
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let lines: Vec<&str> = lines.iter().map(|line| line.strip_prefix(&start).unwrap_or(line)).collect();
        assert_eq!(lines, *wanted, "{content}");
        assert!(lines.iter().all(|line| !line.contains('\n')));
    }
}

#[test]
fn mistakes_in_settings_are_named_with_their_line() {
    check(
        "a.toml",
        &[
            ("[server]\nlistn = \"x\"\n", &["2:1: unknown key `listn` in `server`; did you mean `listen`?"]),
            ("[servr]\n", &["1:2: unknown key `servr`; did you mean `server`?"]),
            (
                "x = 1",
                &[
                    "1:1: unknown key `x`; known here: auth, builtin, defaults, http_tools, lease, limits, log, namespaces, redaction, retention, scheduler, server, servers, sessions, store, telemetry, tools, worker, workers, wrap",
                ],
            ),
            (
                "[server]\nlisten = 7400",
                &["2:10: `server.listen` must be a string, not a whole number; put it in quotes"],
            ),
            (
                "[server]\nlisten = \"localhost:7400\"",
                &[
                    "2:10: `server.listen` is `localhost:7400`, which is no address to listen on; write an IP address and a port, such as \"127.0.0.1:7400\"",
                ],
            ),
            (
                "[server]\nlisten = \"0.0.0.0:7400\"",
                &[
                    "2:10: `server.listen` is reachable from other machines, and `auth.mode` is `none`; set auth.mode to `token`, or listen on 127.0.0.1",
                ],
            ),
            ("[server]\nmax_body_bytes = 3", &["2:18: `server.max_body_bytes` is 3 bytes; use at least 1KiB"]),
            (
                "[server]\nmax_body_bytes = \"3 parsecs\"\nmax_depth = 4\nresponse = \"jsn\"\nallowed_hosts = \"a\"\nallowed_origins=[\"\"]\npath=\"mcp\"",
                &[
                    "2:18: `server.max_body_bytes` is `3 parsecs`, which is no size; write bytes, or a string such as \"4MiB\"",
                    "3:13: `server.max_depth` is 4; use at least 8",
                    "4:12: `server.response` is `jsn`, which is not known; did you mean `json`?",
                    "5:17: `server.allowed_hosts` must be a list, not a string; put it in brackets: [\"…\"]",
                    "6:18: `server.allowed_origins[0]` is empty; give it a value, or leave the key out",
                    "7:6: `server.path` is `mcp`, which is no path; write it as \"/mcp\"",
                ],
            ),
            ("server = 3", &["1:10: `server` must be a table, not a whole number; give it keys: { key = value }"]),
            ("[worker]\nslots = 0", &["2:9: `worker.slots` is 0; use at least 1"]),
            (
                "[worker]\nslots = 1.5",
                &["2:9: `worker.slots` must be a whole number, not a decimal number; write digits only"],
            ),
            ("[worker]\nslots = -1", &["2:9: `worker.slots` is -1; use at least 1"]),
            (
                "[worker]\nslots = \"4\"",
                &["2:9: `worker.slots` must be a whole number, not a string; write digits only"],
            ),
            ("[worker]\nslots = 99999999999999999999", &["2:9: a whole number beyond 64 bits; write a smaller one"]),
            (
                "[worker]\nslots = 1979-05-27",
                &["2:9: `worker.slots` must be a whole number, not a date; write digits only"],
            ),
            ("[lease]\nttl = \"9ms\"", &["2:7: `lease.ttl` is 9ms; use at least 10ms"]),
            (
                "[lease]\nttl = 30",
                &["2:7: `lease.ttl` must be a duration, not a whole number; write it with a unit, such as \"30s\""],
            ),
            (
                "[lease]\nttl = \"30\"",
                &[
                    "2:7: `lease.ttl` is `30`, which is no duration; write it as \"500ms\", \"30s\", \"10m\", \"24h\" or \"7d\", at most 3650d",
                ],
            ),
            (
                "[lease]\nttl = \"1s\"\nheartbeat = \"1s\"",
                &["3:13: `lease.heartbeat` is not below `lease.ttl`; use a third of the TTL, or leave it out"],
            ),
            (
                "[auth]\nmode = \"proxy\"",
                &["2:8: `auth.mode` is `proxy`, and no peer may set the headers; list the proxies in auth.proxy.peers"],
            ),
            (
                "[auth]\nmode = \"proxy\"\nproxy = { peers = [\"10.0.0.0/33\"], principal_header = \"a b\" }",
                &[
                    "3:20: `auth.proxy.peers[0]` is `10.0.0.0/33`, which is no address or network; write it as \"10.0.0.7\" or \"10.0.0.0/8\"",
                    "3:55: `auth.proxy.principal_header` is `a b`, which is no header name; use letters, digits and `-`",
                ],
            ),
            (
                "[auth]\nmode = \"jwt\"",
                &["2:8: `auth.mode` is `jwt`, which is not known; use `none`, `token` or `proxy`"],
            ),
            (
                "[store]\nurl = \"mysql://x\"",
                &["2:7: `store.url` has a value that is no address of a store; write sqlite:PATH or postgres://…"],
            ),
            (
                "[store]\nurl = \"sqlite::memory:\"",
                &["2:7: `store.url` names no file; write sqlite:PATH; what is only in memory is not durable"],
            ),
            (
                "[defaults.retry]\njitter = 1.5\nbackoff_coefficient = 0\non = [\"everything\"]\nmax_attempts = nan",
                &[
                    "2:10: `defaults.retry.jitter` is 1.5; use at most 1",
                    "3:23: `defaults.retry.backoff_coefficient` is 0; use at least 1",
                    "4:7: `defaults.retry.on[0]` is `everything`, which is not known; use `tool_error` or `rpc_error`",
                    "5:16: `defaults.retry.max_attempts` must be a whole number, not a decimal number; write digits only",
                ],
            ),
            (
                "[defaults.idempotency]\nunkeyed = \"re-attach\"",
                &["2:11: `defaults.idempotency.unkeyed` is `re-attach`, which is not known; did you mean `reattach`?"],
            ),
            (
                "\"evil\\nkey\" = 1",
                &[
                    "1:1: unknown key `evil key`; known here: auth, builtin, defaults, http_tools, lease, limits, log, namespaces, redaction, retention, scheduler, server, servers, sessions, store, telemetry, tools, worker, workers, wrap",
                ],
            ),
            (
                "[builtin]\ndurable_retry = \"yes\"",
                &[
                    "2:17: `builtin.durable_retry` must be true or false, not a string; write true or false without quotes",
                ],
            ),
            (
                "[namespaces]\na = 3",
                &["2:5: `namespaces.a` must be a table, not a whole number; give it keys: { key = value }"],
            ),
            ("[default]\nx=1", &["1:2: unknown key `default`; did you mean `defaults`?"]),
            (
                "[defaults]\ntimeout=\"5s\"",
                &["2:9: `defaults.timeout` must be a table, not a string; give it keys: { key = value }"],
            ),
        ],
    );
}

#[test]
fn mistakes_in_servers_are_named_with_their_line() {
    check(
        "a.toml",
        &[
            (
                "[servers.a]",
                &[
                    "1:10: server `a` has neither `command` nor `url`; add `command` for a stdio server or `url` for an HTTP server",
                ],
            ),
            (
                "[servers.a]\ncommand = \"x\"\nurl = \"https://x\"",
                &["3:1: server `a` has both `command` and `url`; keep one of the two"],
            ),
            (
                "[servers.a]\ncommand = \"x\"\nheaders = { A = \"b\" }",
                &["3:1: server `a` is a command and has `headers`; remove it, or use `url` instead of `command`"],
            ),
            (
                "[servers.a]\nurl = \"https://x\"\nargs = []\nenv = { A = \"b\" }",
                &[
                    "3:1: server `a` is a URL and has `args`; remove it, or use `command` instead of `url`",
                    "4:1: server `a` is a URL and has `env`; remove it, or use `command` instead of `url`",
                ],
            ),
            (
                "[servers.a]\nurl = \"ftp://x\"",
                &["2:7: `servers.a.url` has a value that is no http address; write it as https://host/path"],
            ),
            (
                "[servers.a]\nurl = \"https://x\"\nheaders = { \"a b\" = \"c\", d = \"e\\n\" }",
                &[
                    "3:13: `a b` is no name for `servers.a.headers`; use letters, digits and `-`",
                    "3:30: header `d` of server `a` has a value that no header can carry; remove line breaks and control characters",
                ],
            ),
            (
                "[servers.\"a b\"]\ncommand = \"x\"",
                &[
                    "1:10: `a b` is no name for an entry of `servers`; use 1 to 64 characters of A-Z, a-z, 0-9, `_` and `-`",
                ],
            ),
            (
                "[servers.aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg]\ncommand = \"x\"",
                &[
                    "1:10: `aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff…` is no name for an entry of `servers`; use 1 to 64 characters of A-Z, a-z, 0-9, `_` and `-`",
                ],
            ),
            (
                "[servers.a]\ncommand = \"\"",
                &["2:11: `servers.a.command` is empty; give it a value, or leave the key out"],
            ),
            (
                "[servers.a]\ncommand = [\"x\"]",
                &["2:11: `servers.a.command` must be a string, not a list; write a single string"],
            ),
            (
                "[servers.a]\ncommand = \"x\"\nenv = { \"A=B\" = \"c\", N = 1 }",
                &[
                    "3:9: `A=B` is no name for `servers.a.env`; use a name without `=`",
                    "3:26: `servers.a.env.N` must be a string, not a whole number; put it in quotes",
                ],
            ),
            (
                "[servers.a]\ncommand = \"x\"\ncomand = \"y\"",
                &["3:1: unknown key `comand` in `servers.a`; did you mean `command`?"],
            ),
            (
                "[servers.a]\ncommand = \"x\"\nprefix = \"a.b\"",
                &[
                    "3:10: `servers.a.prefix` is `a.b`, which is no prefix; use at most 48 characters of A-Z, a-z, 0-9, `_` and `-`",
                ],
            ),
            (
                "[servers.a]\ncommand = \"x\"\n[servers.a.tools.t]\ndelivry = \"at_most_once\"",
                &["4:1: unknown key `delivry` in `servers.a.tools.t`; did you mean `delivery`?"],
            ),
            (
                "[servers.a]\ncommand = \"x\"\n[servers.a.tools.t]\ndelivery = \"exactly_once\"\nreconcile = { tool = \"x\" }",
                &[
                    "4:12: `servers.a.tools.t.delivery` is `exactly_once`, which is not known; use `at_least_once` or `at_most_once`",
                    "5:13: `servers.a.tools.t.reconcile` needs `match`; add `match`",
                ],
            ),
            (
                "[[servers]]\ncommand = \"x\"",
                &["1:1: `servers` must be a table, not a list; give it keys: { key = value }"],
            ),
            ("[mcpServers.a]\ncommand=\"x\"", &["1:2: unknown key `mcpServers`; did you mean `servers`?"]),
            (
                "[servers.a]\ncommand = \"x\"\nEnv = {}\ntimeout = 60\nargs = 7",
                &[
                    "3:1: unknown key `Env` in `servers.a`; did you mean `env`?",
                    "4:11: `servers.a.timeout` must be a table, not a whole number; give it keys: { key = value }",
                    "5:8: `servers.a.args` must be a list, not a whole number; put it in brackets: [\"…\"]",
                ],
            ),
        ],
    );
}

#[test]
fn mistakes_in_tools_are_named_with_their_line() {
    check(
        "a.toml",
        &[
            (
                "[tools.t]",
                &[
                    "1:8: tool `t` has neither `command` nor `url`; add `command` for a program or `url` for an HTTP request",
                ],
            ),
            ("[tools.t]\ncommand = []", &["2:11: `tools.t.command` is an empty list; put something into it"]),
            (
                "[tools.t]\ncommand = \"echo\"",
                &["2:11: `tools.t.command` must be a list, not a string; put it in brackets: [\"…\"]"],
            ),
            ("[tools.t]\ncommand = [\"\"]", &["2:11: tool `t` has an empty program; name a program first"]),
            (
                "[tools.durable_result]\ncommand = [\"x\"]",
                &["1:8: the tool name `durable_result` is reserved: it starts with `durable_`; rename the tool"],
            ),
            (
                "[tools.t]\ncommand = [\"x\"]\ninput_schema = \"nowhere.json\"",
                &[
                    "3:16: `tools.t.input_schema` cannot be read (no such file or directory); give it a JSON Schema, or the path of a file with one",
                ],
            ),
            (
                "[tools.t]\ncommand = [\"x\"]\ninput_schema = { type = \"string\" }",
                &[
                    "3:16: `tools.t.input_schema` has no `\"type\": \"object\"` at its top; give it a JSON Schema, or the path of a file with one",
                ],
            ),
            (
                "[tools.t]\ncommand = [\"x\"]\nannotations = { readonlyHint = true }",
                &["3:17: unknown key `readonlyHint` in `tools.t.annotations`; did you mean `readOnlyHint`?"],
            ),
            (
                "[tools.t]\ncommand = [\"x\"]\nreconcile = {}",
                &["3:1: unknown key `reconcile` in `tools.t`; see docs/configuration.md for the keys"],
            ),
            (
                "[tools.t]\ncommand = [\"${NOPE}\", \"${\", \"${1}\", \"${file:nowhere}\", \"${input:x}\"]",
                &[
                    "2:12: `tools.t.command[0]` needs the environment variable `NOPE`, which is not set; set it, or write `${NOPE:-default}`",
                    "2:23: `tools.t.command[1]` has `${` without `}`; close it, or write `$${` for the characters themselves",
                    "2:29: `tools.t.command[2]` has a `${…}` that names no variable; use `${NAME}`, `${NAME:-default}` or `${file:/path}`, or `$${` for the characters themselves",
                    "2:37: `tools.t.command[3]` names the file `nowhere`, which cannot be read (no such file or directory); check the path and its permissions",
                    "2:56: `tools.t.command[4]` has `${input:…}`, which asks a person and is not possible here; put the value into an environment variable and name that",
                ],
            ),
        ],
    );
}

#[test]
fn syntax_mistakes_are_named_with_their_line() {
    check(
        "a.toml",
        &[
            (
                "[server\nlisten = 1",
                &["1:8: not valid TOML: unclosed table, expected `]`; see https://toml.io for the syntax"],
            ),
            ("a = 1\na = 2", &["2:1: not valid TOML: duplicate key; keep one of the two"]),
            ("[a]\n[a]", &["2:2: not valid TOML: duplicate key; keep one of the two"]),
            (
                "[log]\nlevel = \"x",
                &["2:11: not valid TOML: invalid basic string, expected `\"`; see https://toml.io for the syntax"],
            ),
            (
                "= 3",
                &[
                    "1:1: not valid TOML: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`; see https://toml.io for the syntax",
                ],
            ),
        ],
    );
}

#[test]
fn json_mistakes_are_named_with_their_line() {
    check(
        "a.json",
        &[
            ("{", &["1:1: not valid JSON: it ends inside an object; correct the JSON at this place"]),
            (
                r#"{"mcpServers": {"a": {}}}"#,
                &[
                    "1:17: server `a` has neither `command` nor `url`; add `command` for a stdio server or `url` for an HTTP server",
                ],
            ),
            (r#"{"a": 1}"#, &["1:1: the JSON names no servers; put them under `mcpServers`, or write a TOML file"]),
            ("[]", &["1:1: the JSON names no servers; put them under `mcpServers`, or write a TOML file"]),
            (
                "{\n  \"mcpServers\": {\n    \"a\": { \"type\": \"sse\", \"url\": \"https://x/sse\" },\n    \"b\": { \"command\": 1 },\n \"b\": {}, \"c\": [null], \"d\": {\"command\": \"x\", \"args\": [null, 1]}}}",
                &[
                    "3:20: server `a` has type `sse`; use the server's Streamable HTTP address with type `http`; the old SSE transport is not spoken",
                    "4:23: `servers.b.command` must be a string, not a whole number; put it in quotes",
                    "5:2: the key `b` stands twice; keep one of the two",
                    "5:16: `servers.c` must be a table, not a list; give it keys: { key = value }",
                    "5:55: `servers.d.args[0]` must be a string, not null; put it in quotes",
                    "5:61: `servers.d.args[1]` must be a string, not a whole number; put it in quotes",
                ],
            ),
            (
                r#"{"mcpServers": {"a b": {"command": "x", "env": {"T": "${NOPE}"}}}}"#,
                &[
                    "1:17: `a b` is no name for an entry of `servers`; use 1 to 64 characters of A-Z, a-z, 0-9, `_` and `-`",
                    "1:54: `servers.a b.env.T` needs the environment variable `NOPE`, which is not set; set it, or write `${NOPE:-default}`",
                ],
            ),
            (r#"{"mcpServers": []}"#, &["1:16: `servers` must be a table, not a list; give it keys: { key = value }"]),
            (
                r#"{"mcpServers": {"a": {"command": "x",, }}}"#,
                &["1:40: not valid JSON: key must be a string; correct the JSON at this place"],
            ),
            ("", &["1:1: not valid JSON: it ends inside a value; correct the JSON at this place"]),
            ("{}", &["1:1: the JSON names no servers; put them under `mcpServers`, or write a TOML file"]),
            (
                "// c\n{\"servers\": {\"a\":{\"type\":\"ws\",\"url\":\"https://x\"}}}",
                &["2:26: server `a` has type `ws`; use `stdio` or `http`"],
            ),
        ],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = Folder::with(&[]);
    let missing = folder.path("nowhere.toml");
    let line =
        |path: &std::path::Path| load(Some(path), &Overrides::default(), &environment(&[])).unwrap_err()[0].to_string();
    let wanted = "cannot be read (no such file or directory); check the path given with --config";
    assert_eq!(line(&missing), format!("{}: {wanted}", missing.display()));
    assert_eq!(line(folder.0.path()), format!("{}: is a folder; name the file in it", folder.0.path().display()));
    std::fs::write(&missing, [0xFF, 0xFE]).unwrap();
    assert_eq!(line(&missing), format!("{}: is not UTF-8 text; save it as UTF-8", missing.display()));
}

#[test]
fn mistakes_in_flags_and_variables_name_them() {
    let mut flags = Overrides::default();
    flags.set("--listen", "server.listen", Some("here"));
    let env =
        environment(&[("DURABLE_MCP_WAIT", "long"), ("DURABLE_MCP_WORKER_SLOTS", "1"), ("DURABLE_MCP_SLOTS", "2")]);
    let lines: Vec<String> = load(None, &flags, &env).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "DURABLE_MCP_SLOTS: `DURABLE_MCP_WORKER_SLOTS` sets `worker.slots` too, to another value; keep one of the two",
            "DURABLE_MCP_WAIT: `defaults.wait` is `long`, which is no duration; write it as \"500ms\", \"30s\", \"10m\", \"24h\" or \"7d\", at most 3650d",
            "--listen: `server.listen` is `here`, which is no address to listen on; write an IP address and a port, such as \"127.0.0.1:7400\"",
        ]
    );
}

#[test]
fn every_kind_of_error_has_its_code() {
    for (content, code) in [
        ("= 3", "config_syntax"),
        ("x = 1", "config_key"),
        ("[worker]\nslots = 0", "config_value"),
        ("[servers.a]", "config_conflict"),
        ("[log]\nlevel = \"${NOPE}\"", "config_variable"),
    ] {
        let errors = Folder::with(&[("a.toml", content)]).load("a.toml", &[]).unwrap_err();
        assert_eq!((errors.len(), errors[0].code()), (1, code), "{content}");
    }
}

#[test]
fn a_hostile_depth_is_an_error_and_no_crash() {
    let deep = "[".repeat(20_000) + &"]".repeat(20_000);
    check(
        "a.json",
        &[(&format!("{{\"mcpServers\": {deep}}}"), &["1:80: nested more than 64 deep; use the file of an MCP client"])],
    );
    assert!(Folder::with(&[("a.toml", &format!("a = {deep}"))]).load("a.toml", &[]).is_err());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn no_damage_to_a_file_makes_more_than_lines(cuts in proptest::collection::vec((0usize..1_000, 0usize..6, ".{0,3}"), 1..5), json: bool) {
        const TOML: &str = include_str!("../../examples/production.toml");
        const JSON: &str = include_str!("../../examples/mcp.json");
        let mut text = if json { JSON } else { TOML }.to_owned();
        for (at, length, new) in cuts {
            let start = text.floor_char_boundary(at.min(text.len()));
            let end = text.floor_char_boundary((start + length).min(text.len())).max(start);
            text.replace_range(start..end, &new);
        }
        let name = if json { "a.json" } else { "a.toml" };
        let lines = match Folder::with(&[(name, &text)]).load(name, &[]) {
            Ok(loaded) => { show(&loaded, false); loaded.warnings }
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        };
        proptest::prop_assert!(lines.iter().all(|line| !line.chars().any(char::is_control)));
    }
}

#[test]
fn columns_count_characters() {
    check(
        "a.toml",
        &[(
            "defaults = { x = \"ä€😀\", wait = 3 }",
            &[
                "1:14: unknown key `x` in `defaults`; known here: concurrency, idempotency, on_disconnect, on_task_expiry, queue, queue_timeout, retry, task_after, task_ttl, tasks, timeout, wait",
                "1:32: `defaults.wait` must be a duration, not a whole number; write it with a unit, such as \"30s\"",
            ],
        )],
    );
}

//! Rules between several settings, and the values that depend on where the file is. Works on the tree, because the tree
//! knows the lines. Judges single values nowhere: that is done before.

use super::error::{ErrorKind, Message, Problems, quoted};
use super::forms;
use super::http_tools;
use super::interpolate::cause;
use super::json::{Json, JsonSource};
use super::load::{set_default, text_at};
use super::node::{Entry, Node, Place, Value};
use super::settings::{Config, Lease};
use super::units::Millis;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A schema larger than this belongs to no tool.
const SCHEMA_BYTES_MAX: u64 = 1 << 20;

pub(super) struct Places<'a> {
    pub base_dir: &'a Path,
    pub here: &'a Path,
    pub env: &'a BTreeMap<String, String>,
}

impl Places<'_> {
    /// Paths of the file are relative to it; those of a flag or variable to where the user stands.
    fn absolute(&self, path: &str, place: &Place) -> PathBuf {
        let base = if matches!(place, Place::File { .. }) { self.base_dir } else { self.here };
        // Component by component, so that `./` leaves no trace.
        base.join(path).components().collect()
    }

    fn data_dir(&self) -> Option<PathBuf> {
        let set = |name: &str| self.env.get(name).filter(|value| Path::new(value).is_absolute()).map(PathBuf::from);
        let home = || {
            set("HOME").map(|home| {
                home.join(if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" })
            })
        };
        set("XDG_DATA_HOME").or_else(home).map(|folder| folder.join("durable-mcp"))
    }
}

/// Makes paths absolute and fills in the defaults that depend on the machine. Returns the data folder.
pub(super) fn resolve(root: &mut Node, places: &Places<'_>, problems: &mut Problems) -> PathBuf {
    make_absolute(root, &["store", "data_dir"], places);
    make_absolute(root, &["store", "root_certificates"], places);
    if text_at(root, &["store", "data_dir"]).is_none() {
        let folder = places.data_dir().unwrap_or_else(|| {
            let message = Message::new("neither XDG_DATA_HOME nor HOME is set", "set store.data_dir");
            problems.warn(&Place::Default, message);
            places.here.join(".durable-mcp")
        });
        set_default(root, &["store", "data_dir"], folder.to_string_lossy().into_owned());
    }
    if root.get(&["lease", "heartbeat"]).is_none() {
        let ttl = text_at(root, &["lease", "ttl"]).map_or(Some(Lease::default().ttl), Millis::parse);
        let lease = Lease { ttl: ttl.unwrap_or_default(), heartbeat: None };
        set_default(root, &["lease", "heartbeat"], Millis(lease.heartbeat_ms()).to_string());
    }
    let data_dir = PathBuf::from(text_at(root, &["store", "data_dir"]).unwrap_or_default());
    match root.get_mut(&["store", "url"]) {
        None => {
            let url = format!("sqlite:{}", data_dir.join("durable-mcp.db").display());
            set_default(root, &["store", "url"], url);
        }
        Some(node) => {
            let place = node.place.clone();
            if let Value::String(text) = &mut node.value
                && let Some(path) = text.strip_prefix("sqlite:")
                && !node.broken
            {
                let path = path.strip_prefix("//").unwrap_or(path);
                if path == ":memory:" {
                    let message = Message::new(
                        "`store.url` names no file",
                        "write sqlite:PATH; what is only in memory is not durable",
                    );
                    problems.error(ErrorKind::Value, &place, message);
                }
                *text = format!("sqlite:{}", places.absolute(path, &place).display());
            }
        }
    }
    for section in ["servers", "tools"] {
        let names: Vec<String> =
            root.get(&[section]).map(Node::entries).into_iter().flatten().map(|e| e.key.clone()).collect();
        for name in &names {
            for key in ["cwd", "command", "input_schema", "output_schema"] {
                make_absolute(root, &[section, name, key], places);
            }
        }
    }
    data_dir
}

fn make_absolute(root: &mut Node, path: &[&str], places: &Places<'_>) {
    let Some(node) = root.get_mut(path) else { return };
    if let Value::Array(items) = &mut node.value {
        if let Some(first) = items.first_mut() {
            make_text_absolute(first, path, places);
        }
    } else {
        make_text_absolute(node, path, places);
    }
}

fn make_text_absolute(node: &mut Node, path: &[&str], places: &Places<'_>) {
    let place = node.place.clone();
    let Value::String(text) = &mut node.value else { return };
    // A bare word is looked up in PATH; a schema starts with a brace once it was a table.
    let program = path.last() == Some(&"command");
    if node.broken || text.is_empty() || text.starts_with('{') || (program && !text.contains('/')) {
        return;
    }
    *text = places.absolute(text, &place).to_string_lossy().into_owned();
}

/// Checks what only several settings together can get wrong.
pub(super) fn check(root: &Node, problems: &mut Problems) {
    check_auth(root, problems);
    check_paths(root, problems);
    check_lease(root, problems);
    check_runs(root, problems);
    let redacts = strikes_arguments(root);
    for entry in root.get(&["servers"]).map(Node::entries).into_iter().flatten() {
        check_server(entry, redacts, problems);
    }
    for entry in root.get(&["tools"]).map(Node::entries).into_iter().flatten() {
        if entry.key.starts_with("durable_") {
            let reason = format!("the tool name {} is reserved: it starts with `durable_`", quoted(&entry.key));
            problems.error(ErrorKind::Key, &entry.place, Message::new(reason, "rename the tool"));
        }
        http_tools::check(entry, root, problems);
        check_policy(&entry.node, redacts, problems);
    }
    for entry in root.get(&["workers", "tools"]).map(Node::entries).into_iter().flatten() {
        check_policy(&entry.node, redacts, problems);
    }
    if let Some(entry) = root.get(&["namespaces"]).and_then(|namespaces| namespaces.entry("default")) {
        let tools = entry.node.entry("tools");
        if let Some(tools) = tools {
            let message =
                Message::new("the tools of `default` are narrowed", "callers without a namespace see these only");
            problems.warn(&tools.place, message);
        }
    }
}

fn check_auth(root: &Node, problems: &mut Problems) {
    let mode = text_at(root, &["auth", "mode"]).unwrap_or("none");
    if let Some(node) = root.get(&["server", "listen"])
        && let Some(address) = node.text().and_then(|text| text.parse::<SocketAddr>().ok())
        && mode == "none"
        && !address.ip().to_canonical().is_loopback()
        && root.get(&["auth", "mode"]).is_none_or(|mode| !mode.broken)
    {
        let message = Message::new(
            "`server.listen` is reachable from other machines, and `auth.mode` is `none`",
            "set auth.mode to `token`, or listen on 127.0.0.1",
        );
        problems.error(ErrorKind::Conflict, &node.place, message);
    }
    if mode == "proxy" {
        let peers = root.get(&["auth", "proxy", "peers"]);
        let empty = peers.is_none_or(|node| matches!(&node.value, Value::Array(items) if items.is_empty()));
        if empty {
            let place = root.get(&["auth", "mode"]).map_or(Place::Default, |node| node.place.clone());
            let message = Message::new(
                "`auth.mode` is `proxy`, and no peer may set the headers",
                "list the proxies in auth.proxy.peers",
            );
            problems.error(ErrorKind::Conflict, &place, message);
        }
    }
}

/// Two endpoints, and what lies below them, are not one.
fn check_paths(root: &Node, problems: &mut Problems) {
    let Some((node, sse)) = root.get(&["server", "sse_path"]).and_then(|node| Some((node, node.text()?))) else {
        return;
    };
    let mcp = text_at(root, &["server", "path"]).unwrap_or("/mcp");
    let is_below =
        |path: &str, other: &str| path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_below(sse, mcp) || is_below(mcp, sse) {
        let reason = format!("`server.sse_path` and `server.path` overlap: {} and {}", quoted(sse), quoted(mcp));
        problems.error(ErrorKind::Conflict, &node.place, Message::new(reason, "choose another one, such as \"/sse\""));
    }
}

fn check_lease(root: &Node, problems: &mut Problems) {
    let duration = |key: &str| {
        let node = root.get(&["lease", key])?;
        Some((node, Millis::parse(node.text()?)?.0))
    };
    let ttl_ms = duration("ttl").map_or(Lease::default().ttl.0, |(_, ttl_ms)| ttl_ms);
    if let Some((node, heartbeat_ms)) = duration("heartbeat")
        && heartbeat_ms >= ttl_ms
        && node.place != Place::Default
    {
        let message =
            Message::new("`lease.heartbeat` is not below `lease.ttl`", "use a third of the TTL, or leave it out");
        problems.error(ErrorKind::Conflict, &node.place, message);
    }
}

/// A worker runs what is configured; a name that is not would mean a host that silently runs nothing.
fn check_runs(root: &Node, problems: &mut Problems) {
    let Some(Value::Array(chosen)) = root.get(&["worker", "runs"]).map(|node| &node.value) else { return };
    for node in chosen {
        let Some(name) = node.text() else { continue };
        if !["servers", "tools"].iter().any(|section| root.get(&[section, name]).is_some()) {
            let reason = format!("`worker.runs` names {}, which is neither a server nor a tool", quoted(name));
            let next = "use names from [servers.NAME] and [tools.NAME]";
            problems.error(ErrorKind::Conflict, &node.place, Message::new(reason, next));
        }
    }
}

fn check_server(entry: &Entry, redacts: bool, problems: &mut Problems) {
    let (name, server) = (quoted(&entry.key), &entry.node);
    if server.broken {
        return;
    }
    let mut conflict = |place: &Place, reason: String, next: &str| {
        problems.error(ErrorKind::Conflict, place, Message::new(reason, next));
    };
    match (server.entry("command"), server.entry("url")) {
        (None, None) => conflict(
            &entry.place,
            format!("server {name} has neither `command` nor `url`"),
            "add `command` for a stdio server or `url` for an HTTP server",
        ),
        (Some(_), Some(url)) => {
            conflict(&url.place, format!("server {name} has both `command` and `url`"), "keep one of the two")
        }
        (Some(_), None) => {
            if let Some(wrong) = server.entry("headers") {
                let reason = format!("server {name} is a command and has `headers`");
                conflict(&wrong.place, reason, "remove it, or use `url` instead of `command`");
            }
        }
        (None, Some(_)) => {
            for key in ["args", "env", "cwd"] {
                if let Some(wrong) = server.entry(key) {
                    let reason = format!("server {name} is a URL and has {}", quoted(key));
                    conflict(&wrong.place, reason, "remove it, or use `command` instead of `url`");
                }
            }
        }
    }
    for header in server.entry("headers").map(|headers| headers.node.entries()).into_iter().flatten() {
        if header.node.text().is_some_and(|value| !forms::is_header_value(value)) {
            let reason =
                format!("header {} of server {name} has a value that no header can carry", quoted(&header.key));
            let message = Message::new(reason, "remove line breaks and control characters");
            problems.error(ErrorKind::Value, &header.node.place, message);
        }
    }
    let redacts = redacts || strikes_arguments(server);
    check_policy(server, redacts, problems);
    for tool in server.entry("tools").map(|tools| tools.node.entries()).into_iter().flatten() {
        check_policy(&tool.node, redacts, problems);
    }
}

/// Whether pointers of this level strike something out of arguments.
fn strikes_arguments(node: &Node) -> bool {
    let pointers = node.get(&["redaction", "arguments"]).map(|pointers| &pointers.value);
    matches!(pointers, Some(Value::Array(items)) if !items.is_empty())
}

/// `redacts`: rules further out strike something out of the arguments of these calls.
fn check_policy(node: &Node, redacts: bool, problems: &mut Problems) {
    let delivery = text_at(node, &["delivery"]);
    let at_most_once = delivery == Some("at_most_once");
    if let Some(place) = node.get(&["delivery"]).map(|node| &node.place)
        && delivery == Some("at_least_once")
        && (redacts || strikes_arguments(node))
    {
        let message = Message::new(
            "arguments are redacted under `at_least_once`",
            "what is lost with its process can not be run again then, and fails as `arguments_redacted`; see \"Redaction\" \
             in docs/operating.md",
        );
        problems.warn(place, message);
    }
    if let Some(on) =
        node.get(&["retry", "on"]).filter(|on| matches!(&on.value, Value::Array(items) if !items.is_empty()))
        && at_most_once
    {
        let message = Message::new(
            "`retry.on` has no effect under `at_most_once`",
            "remove it, or set delivery to `at_least_once`",
        );
        problems.warn(&on.place, message);
    }
}

/// Reads the schema files of the command tools, so that nothing is missing later.
pub(super) fn read_schemas(config: &mut Config, root: &Node, problems: &mut Problems) {
    for (name, tool) in &mut config.tools {
        for (key, source) in [("input_schema", &mut tool.input_schema), ("output_schema", &mut tool.output_schema)] {
            let Some(node) = root.get(&["tools", name, key]) else { continue };
            let Some(json) = source.as_ref().map(|source| read_schema(source, key)) else { continue };
            match json {
                Ok(json) => *source = Some(JsonSource::Here(json)),
                Err(reason) => {
                    let reason = format!("`tools.{name}.{key}` {reason}");
                    problems.error(
                        ErrorKind::Value,
                        &node.place,
                        Message::new(reason, "give it a JSON Schema, or the path of a file with one"),
                    );
                }
            }
        }
    }
}

fn read_schema(source: &JsonSource, key: &str) -> Result<Json, String> {
    let json = match source {
        JsonSource::Here(json) => json.clone(),
        JsonSource::File(path) => {
            let size = std::fs::metadata(path).map_err(|error| format!("cannot be read ({})", cause(&error)))?.len();
            if size > SCHEMA_BYTES_MAX {
                return Err(format!("is larger than {SCHEMA_BYTES_MAX} bytes"));
            }
            let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read ({})", cause(&error)))?;
            Json::parse(text.trim()).map_err(|reason| format!("is not valid: {reason}"))?
        }
    };
    #[derive(serde::Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        kind: Option<serde_json::Value>,
    }
    let head: Head = serde_json::from_str(json.raw().get()).map_err(|error| format!("is not valid: {error}"))?;
    // The protocol wants an object at the top of the arguments.
    if key == "input_schema" && head.kind != Some(serde_json::Value::from("object")) {
        return Err("has no `\"type\": \"object\"` at its top".to_owned());
    }
    Ok(json)
}

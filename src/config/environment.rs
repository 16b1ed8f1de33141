//! The `DURABLE_MCP_*` variables. Every single setting outside the named tables has one: `defaults.wait` is
//! `DURABLE_MCP_DEFAULTS_WAIT`; a few have a short name too. Reads no process environment: it is a parameter.

use super::check::{accepts, nearest};
use super::error::{ErrorKind, Message, Problems, quoted};
use super::node::{Node, Place, Value};
use super::schema::{properties, tree, words};
use serde_json::Value as Schema;
use std::collections::BTreeMap;

const PREFIX: &str = "DURABLE_MCP_";

/// Short names of the settings that people set most.
const SHORT: [(&str, &str); 6] = [
    ("DURABLE_MCP_ROLES", "server.roles"),
    ("DURABLE_MCP_LISTEN", "server.listen"),
    ("DURABLE_MCP_WAIT", "defaults.wait"),
    ("DURABLE_MCP_LOG", "log.level"),
    ("DURABLE_MCP_SLOTS", "worker.slots"),
    ("DURABLE_MCP_DATA_DIR", "store.data_dir"),
];

/// Variables with our prefix that set nothing in the configuration: the command line and the tools read or get them.
pub const OTHER_VARIABLES: [&str; 7] = [
    "DURABLE_MCP_CONFIG",
    "DURABLE_MCP_URL",
    "DURABLE_MCP_TOKEN",
    "DURABLE_MCP_IDEMPOTENCY_KEY",
    "DURABLE_MCP_FENCING_TOKEN",
    "DURABLE_MCP_CRASH_AT",
    "DURABLE_MCP_CLOCK_SHIFT",
];

/// Returns every variable that sets something, with the path of its setting; short names last.
pub fn variables() -> Vec<(String, String)> {
    let mut all = Vec::new();
    collect(tree(), "", &mut all);
    all.extend(SHORT.iter().map(|(name, path)| ((*name).to_owned(), (*path).to_owned())));
    all
}

fn collect(schema: &Schema, path: &str, all: &mut Vec<(String, String)>) {
    for (name, inner) in properties(schema) {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if inner.get("properties").is_some() {
            collect(inner, &path, all);
        } else if !accepts(inner, "object") || words(inner).is_some() {
            all.push((format!("{PREFIX}{}", path.to_uppercase().replace('.', "_")), path));
        }
    }
}

/// Lays the variables over the tree. Unknown ones with our prefix are warned about.
pub(super) fn overlay(root: &mut Node, env: &BTreeMap<String, String>, problems: &mut Problems) {
    let known = variables();
    let mut set: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, path) in &known {
        let Some(value) = env.get(name).filter(|value| !value.is_empty()) else { continue };
        let place = Place::Variable(name.clone());
        if let Some(other) = set.insert(path, name).filter(|other| env[*other] != *value) {
            let reason = format!("{} sets {} too, to another value", quoted(other), quoted(path));
            problems.error(ErrorKind::Conflict, &place, Message::new(reason, "keep one of the two"));
        }
        root.set(&path.split('.').collect::<Vec<_>>(), text(value, place));
    }
    // The prefix makes any two names alike, so it is left out of the comparison.
    let ends: Vec<&str> = known.iter().filter_map(|(name, _)| name.strip_prefix(PREFIX)).collect();
    for name in env.keys() {
        let Some(end) = name.strip_prefix(PREFIX) else { continue };
        if ends.contains(&end) || OTHER_VARIABLES.contains(&name.as_str()) {
            continue;
        }
        let next = match nearest(end, &ends) {
            Some(near) => format!("did you mean `{PREFIX}{near}`?"),
            None => "see docs/configuration.md for the names".to_owned(),
        };
        problems.warn(&Place::Variable(name.clone()), Message::new("this variable sets nothing", next));
    }
}

/// A value from a source that knows nothing but text.
pub(super) fn text(value: &str, place: Place) -> Node {
    Node { loose: true, ..Node::new(Value::String(value.to_owned()), place) }
}

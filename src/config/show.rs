//! `config show`: every effective value with where it comes from, as TOML or JSON, and nothing secret. What came through
//! `${…}`, values of variables and headers, and arguments of programs are `***`; addresses lose their credentials.

use super::load::{Loaded, Source};
use super::node::{Node, Value, json_string};
use super::schema::{entries, properties, tree};
use super::secret::{MASK, mask_url};
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// One setting with its effective value, already masked.
struct Line {
    path: Vec<String>,
    value: Json,
    source: Source,
    /// The path from which the value is inherited.
    inherited: Option<String>,
}

/// Returns the effective configuration: TOML whose comments name the sources, or with `json` one JSON object with a member
/// per setting, inherited ones included. Both end with a line break.
pub fn show(loaded: &Loaded, json: bool) -> String {
    let mut lines = Vec::new();
    collect(&loaded.tree, Some(&loaded.tree), (tree(), &[]), &mut lines);
    if json { as_json(loaded, &lines) } else { as_toml(loaded, &lines) }
}

fn collect(root: &Node, node: Option<&Node>, (schema, path): (&Json, &[String]), lines: &mut Vec<Line>) {
    let inner_path = |name: &str| path.iter().cloned().chain([name.to_owned()]).collect::<Vec<_>>();
    // Plain values before tables: TOML wants it so.
    let (tables, values): (Vec<_>, Vec<_>) = properties(schema).partition(|(_, inner)| is_table(inner));
    for (name, inner) in values {
        let own = node.and_then(|node| node.entry(name)).map(|entry| &entry.node);
        if let Some(line) = effective(root, own, inner, inner_path(name)) {
            lines.push(line);
        }
    }
    for (name, inner) in tables {
        let own = node.and_then(|node| node.entry(name)).map(|entry| &entry.node);
        let path = inner_path(name);
        // A table that must be complete, such as `reconcile`, is shown only where it is written.
        if own.is_none() && inner.get("required").is_some() {
            continue;
        }
        match entries(inner) {
            Some(entry_schema) => {
                for entry in own.map(Node::entries).into_iter().flatten() {
                    let path: Vec<String> = path.iter().cloned().chain([entry.key.clone()]).collect();
                    if is_table(entry_schema) {
                        collect(root, Some(&entry.node), (entry_schema, &path), lines);
                    } else if let Some(line) = effective(root, Some(&entry.node), entry_schema, path) {
                        lines.push(line);
                    }
                }
            }
            None => collect(root, own, (inner, &path), lines),
        }
    }
}

fn is_table(schema: &Json) -> bool {
    schema.get("properties").is_some() || entries(schema).is_some()
}

fn effective(root: &Node, own: Option<&Node>, schema: &Json, path: Vec<String>) -> Option<Line> {
    if let Some(node) = own {
        return Some(Line { path, value: shown(node, schema), source: Source::of(&node.place), inherited: None });
    }
    let Some(from) = schema.get("x-inherits").and_then(Json::as_str) else {
        let value = schema.get("default")?.clone();
        return Some(Line { path, value, source: Source::Default, inherited: None });
    };
    let keys: Vec<&str> = from.split('.').collect();
    // A tool of a server asks the server first.
    let above: Option<Vec<&str>> = (path.first().is_some_and(|name| name == "servers")
        && path.get(2).is_some_and(|name| name == "tools"))
    .then(|| path[..2].iter().chain(&path[4..]).map(String::as_str).collect());
    let inherited = above.filter(|above| root.get(above).is_some()).unwrap_or(keys);
    let from = inherited.join(".");
    let line = match root.get(&inherited) {
        Some(node) => Line { path, value: shown(node, schema), source: Source::of(&node.place), inherited: Some(from) },
        None => {
            let pointer: String = inherited.iter().map(|key| format!("/properties/{key}")).collect();
            let value = tree().pointer(&pointer)?.get("default")?.clone();
            Line { path, value, source: Source::Default, inherited: Some(from) }
        }
    };
    Some(line)
}

/// The value as it may be seen.
fn shown(node: &Node, schema: &Json) -> Json {
    if node.any_secret() || schema.get("x-secret").is_some() {
        return json!(MASK);
    }
    match &node.value {
        Value::String(text) if schema.get("x-url").is_some() => json!(mask_url(text)),
        Value::String(text) if schema.get("x-json").is_some() && text.starts_with('{') => {
            serde_json::from_str(text).unwrap_or_else(|_| json!(MASK))
        }
        Value::String(text) | Value::Date(text) => json!(text),
        Value::Integer(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Boolean(value) => json!(value),
        Value::Array(items) if schema.get("x-argv").is_some() => {
            let program = path_is_program(schema);
            let shown = |(at, item): (usize, &Node)| json!(argument(item, program && at == 0));
            Json::Array(items.iter().enumerate().map(shown).collect())
        }
        Value::Array(items) => {
            let inner = schema.get("items").unwrap_or(&Json::Null);
            Json::Array(items.iter().map(|item| shown(item, inner)).collect())
        }
        Value::Null | Value::Table(_) => json!(MASK),
    }
}

/// The list with the program in front must not be empty, that of plain arguments may.
fn path_is_program(schema: &Json) -> bool {
    schema.get("minItems").is_some()
}

/// Arguments often hold keys and addresses with passwords, so only the program and bare flags are shown.
fn argument(item: &Node, program: bool) -> &str {
    let text = item.text().unwrap_or_default();
    let word = text.trim_start_matches('-');
    let flag = text.starts_with("--") && !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let short = text.starts_with('-') && text.len() == 2;
    if program || flag || short { text } else { MASK }
}

fn origin(line: &Line, loaded: &Loaded) -> String {
    match &line.source {
        Source::Flag(name) | Source::Variable(name) => name.clone(),
        Source::File { line } => {
            let file = loaded.file.as_deref().and_then(|file| file.file_name()).unwrap_or_default();
            format!("{}:{line}", file.to_string_lossy())
        }
        Source::Default => "default".to_owned(),
    }
}

fn as_toml(loaded: &Loaded, lines: &[Line]) -> String {
    let mut out = "# What a server or tool leaves out is inherited: tool, server, [defaults].\n".to_owned();
    let mut section: Option<&[String]> = None;
    // Inherited values stand where they come from; repeated for every tool they would bury what is written.
    for line in lines.iter().filter(|line| line.inherited.is_none()) {
        let Some((name, table)) = line.path.split_last() else { continue };
        if section != Some(table) {
            let heading: Vec<String> = table.iter().map(|key| toml_key(key)).collect();
            let _ = writeln!(out, "\n[{}]", heading.join("."));
            section = Some(table);
        }
        let setting = format!("{} = {}", toml_key(name), toml_value(&line.value));
        let _ = writeln!(out, "{setting:<48} # {}", origin(line, loaded));
    }
    out
}

fn toml_key(key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain { key.to_owned() } else { json_string(key) }
}

fn toml_value(value: &Json) -> String {
    match value {
        Json::String(text) => json_string(text),
        Json::Array(items) => format!("[{}]", items.iter().map(toml_value).collect::<Vec<_>>().join(", ")),
        Json::Object(members) => {
            let members = members.iter().map(|(key, value)| format!("{} = {}", toml_key(key), toml_value(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        // TOML has no null; it occurs only inside schemas.
        Json::Null => "\"null\"".to_owned(),
        Json::Number(_) | Json::Bool(_) => value.to_string(),
    }
}

fn as_json(loaded: &Loaded, lines: &[Line]) -> String {
    let settings: serde_json::Map<String, Json> = lines
        .iter()
        .map(|line| {
            let (kind, name) = match &line.source {
                Source::Flag(name) => ("flag", json!(name)),
                Source::Variable(name) => ("env", json!(name)),
                Source::File { line } => ("file", json!(line)),
                Source::Default => ("default", Json::Null),
            };
            let mut setting = json!({ "value": line.value, "source": kind });
            match kind {
                "flag" | "env" => setting["name"] = name,
                "file" => setting["line"] = name,
                _ => {}
            }
            if let Some(from) = &line.inherited {
                setting["inherited_from"] = json!(from);
            }
            let path: Vec<String> = line.path.iter().map(|key| toml_key(key)).collect();
            (path.join("."), setting)
        })
        .collect();
    let file = loaded.file.as_ref().map(|file| file.to_string_lossy());
    format!("{}\n", json!({ "file": file, "settings": settings, "warnings": loaded.warnings }))
}

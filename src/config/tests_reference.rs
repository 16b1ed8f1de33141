//! The reference in `docs/configuration.md` is made from the schema; this test compares the two.
//! `BLESS=1 cargo nextest run the_reference_is_made_from_the_schema` writes the file anew.

use super::environment::variables;
use super::schema::{entries, properties, schema, words};
use super::units::{Bytes, Millis};
use serde_json::Value;
use std::fmt::Write;
use std::fs;

const START: &str = "<!-- settings: made from the schema -->\n";
const END: &str = "<!-- end of settings -->\n";

fn document() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md")
}

#[test]
fn the_reference_is_made_from_the_schema() {
    let written = fs::read_to_string(document()).unwrap();
    let (before, rest) = written.split_once(START).expect("the start mark");
    let (_, after) = rest.split_once(END).expect("the end mark");
    let wanted = format!("{before}{START}{}{END}{after}", reference());
    if std::env::var_os("BLESS").is_some() {
        fs::write(document(), &wanted).unwrap();
    } else {
        assert!(
            written == wanted,
            "docs/configuration.md is behind the schema; the head of this file says how to renew it"
        );
    }
}

#[test]
fn every_setting_is_described_and_named_in_the_reference() {
    let written = fs::read_to_string(document()).unwrap();
    let mut count = 0;
    walk(&schema(), "", &mut |path, setting| {
        let key = path.rsplit('.').next().unwrap();
        let heading = |end: &str| written.contains(&format!("### `[{path}{end}]`"));
        let row = || written.contains(&format!("| `{key}` |"));
        assert!(heading("") || heading(".NAME") || row(), "{path}");
        let description = setting.get("description").and_then(Value::as_str).unwrap_or_default();
        assert!(description.len() > 10 && description.ends_with('.'), "{path}: {description:?}");
        count += 1;
    });
    assert!(count > 150, "{count}");
}

#[test]
fn every_short_variable_name_is_in_the_reference() {
    let written = fs::read_to_string(document()).unwrap();
    let long = |name: &str, path: &str| name == format!("DURABLE_MCP_{}", path.to_uppercase().replace('.', "_"));
    for (name, path) in variables().iter().filter(|(name, path)| !long(name, path)) {
        assert!(written.contains(&format!("| `{name}` | `{path}` |")), "{name}");
    }
    for name in super::OTHER_VARIABLES {
        assert!(written.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn every_variable_sets_a_setting_that_exists() {
    for (name, path) in variables() {
        let pointer: String = path.split('.').map(|key| format!("/properties/{key}")).collect();
        assert!(schema().pointer(&pointer).is_some(), "{name} {path}");
    }
}

fn walk(schema: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
    for (name, inner) in properties(schema) {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        visit(&path, inner);
        walk(inner, &path, visit);
        if let Some(inner) = entries(inner) {
            walk(inner, &format!("{path}.NAME"), visit);
        }
    }
}

fn reference() -> String {
    let mut out = String::new();
    section(&schema(), "", &mut out);
    out
}

fn section(schema: &Value, path: &str, out: &mut String) {
    let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let (tables, values): (Vec<_>, Vec<_>) = properties(schema).partition(|(_, inner)| is_section(inner));
    if !values.is_empty() {
        out.push_str("\n| key | type | default | bounds | meaning |\n|---|---|---|---|---|\n");
        for (name, inner) in values {
            let required = schema
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|list| list.contains(&Value::from(name.as_str())));
            let default = if required { "required".to_owned() } else { default(inner) };
            let text = inner["description"].as_str().unwrap_or_default().replace('|', "\\|").replace('\n', " ");
            let _ = writeln!(out, "| `{name}` | {} | {default} | {} | {text} |", kind(inner), bounds(inner));
        }
    }
    for (name, inner) in tables {
        let path = join(name);
        let inner_entries = entries(inner);
        let heading = if inner_entries.is_some() { format!("{path}.NAME") } else { path };
        let text = inner["description"].as_str().unwrap_or_default();
        let _ = writeln!(out, "\n### `[{heading}]`\n\n{text}");
        // The policy of a call is the same in a server, its tools and a command.
        if heading.contains("tools.")
            && properties(inner).any(|(_, own)| own.get("x-inherits").is_some())
            && inner_entries.is_none()
        {
            let _ = writeln!(out, "The same keys as in `[servers.NAME.{name}]`.");
            continue;
        }
        section(inner_entries.unwrap_or(inner), &heading, out);
    }
}

fn is_section(schema: &Value) -> bool {
    schema.get("properties").is_some() || entries(schema).is_some_and(|inner| inner.get("properties").is_some())
}

fn kind(schema: &Value) -> String {
    if let Some(words) = words(schema) {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" ");
    }
    match schema.get("x-format").and_then(Value::as_str) {
        Some(form @ ("duration" | "size")) => return form.to_owned(),
        Some("path") if schema.get("x-json").is_some() => return "table or path".to_owned(),
        Some("path" | "program") => return "path".to_owned(),
        Some("listen") => return "address:port".to_owned(),
        Some("http-url" | "store") => return "address".to_owned(),
        _ => {}
    }
    match schema["type"].as_str().unwrap_or_default() {
        "array" => match words(&schema["items"]) {
            Some(words) => {
                format!("list of {}", words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" "))
            }
            None => "list of strings".to_owned(),
        },
        "object" if schema.get("x-json").is_some() => "table".to_owned(),
        "object" => "table of strings".to_owned(),
        "integer" => "whole number".to_owned(),
        other => other.to_owned(),
    }
}

fn default(schema: &Value) -> String {
    match (schema.get("default"), schema.get("x-inherits").and_then(Value::as_str)) {
        (_, Some(from)) => format!("inherited: `{from}`"),
        (None, None) => "–".to_owned(),
        (Some(Value::String(text)), _) => format!("`\"{text}\"`"),
        (Some(value), _) => format!("`{value}`"),
    }
}

fn bounds(schema: &Value) -> String {
    let number = |key: &str| schema.get(key).map(|bound| bound.to_string().trim_end_matches(".0").to_owned());
    let ms = |key: &str| schema.get(key).and_then(Value::as_i64).map(|ms| Millis(ms).to_string());
    let bytes = |key: &str| schema.get(key).and_then(Value::as_u64).map(|bytes| Bytes(bytes).to_string());
    let (least, most, unit) = if schema["x-format"] == "duration" {
        (ms("x-min-ms").or(Some("0s".to_owned())), ms("x-max-ms").or(Some("3650d".to_owned())), "")
    } else if schema["x-format"] == "size" {
        (bytes("x-min-bytes"), bytes("x-max-bytes"), "")
    } else if schema["type"] == "array" {
        (number("minItems"), number("maxItems"), " entries")
    } else if schema["type"] == "string" {
        (number("minLength"), number("maxLength"), " characters")
    } else {
        (number("minimum"), number("maximum"), "")
    };
    match (least, most) {
        (Some(least), Some(most)) => format!("{least} … {most}{unit}"),
        (Some(least), None) => format!("≥ {least}{unit}"),
        (None, Some(most)) => format!("≤ {most}{unit}"),
        (None, None) => "–".to_owned(),
    }
}

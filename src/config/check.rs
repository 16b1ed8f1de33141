//! Checks the tree against the schema, all of it in one walk, so that one run reports everything that is wrong. Rules
//! between several settings are in `rules.rs`, single forms in `forms.rs`.

use super::error::{ErrorKind, Message, Problems, quoted};
use super::forms;
use super::node::{Entry, Node, Value};
use super::schema::{entries, properties, words};
use serde_json::Value as Schema;

/// Checks `node` against `schema` and brings text from variables and flags into the type wanted. `path` is its key.
pub(super) fn check(node: &mut Node, schema: &Schema, path: &str, problems: &mut Problems) {
    if node.broken {
        return;
    }
    loosen(node, schema);
    let checked = match &mut node.value {
        Value::Table(_) if accepts(schema, "object") => {
            check_table(node, schema, path, problems);
            return;
        }
        Value::Array(items) if accepts(schema, "array") => {
            if let Some(inner) = schema.get("items") {
                for (at, item) in items.iter_mut().enumerate() {
                    check(item, inner, &format!("{path}[{at}]"), problems);
                }
            }
            check_count(items.len(), schema)
        }
        Value::String(text) if words(schema).is_some() => check_word(text, schema, node.secret),
        Value::String(text) if accepts(schema, "string") => {
            check_length(text, schema).and_then(|()| forms::check(text, schema, node.secret || hidden(schema)))
        }
        Value::Integer(number) if accepts(schema, "integer") || accepts(schema, "number") => {
            check_size(*number as f64, schema).and_then(|()| forms::check_bytes(*number, schema))
        }
        Value::Float(number) if accepts(schema, "number") && number.is_finite() => check_size(*number, schema),
        Value::Boolean(_) if accepts(schema, "boolean") => Ok(()),
        _ => Err(wrong_type(node, schema)),
    };
    if let Err(mut message) = checked {
        message.reason = format!("{} {}", quoted(path), message.reason);
        problems.error(ErrorKind::Value, &node.place, message);
        node.broken = true;
    }
}

fn check_table(node: &mut Node, schema: &Schema, path: &str, problems: &mut Problems) {
    if schema.get("x-json").is_some() {
        // Serde would lose the order of the members, so it gets the text.
        node.secret = node.any_secret();
        node.value = Value::String(node.to_json());
        return;
    }
    let Value::Table(members) = &mut node.value else { return };
    let required = schema.get("required").and_then(Schema::as_array).into_iter().flatten().filter_map(Schema::as_str);
    for key in required.filter(|key| !members.iter().any(|entry| entry.key == **key)).collect::<Vec<_>>() {
        let message = Message::new(format!("{} needs {}", quoted(path), quoted(key)), format!("add {}", quoted(key)));
        problems.error(ErrorKind::Conflict, &node.place, message);
        node.broken = true;
    }
    let known = |key: &str| schema.get("properties").is_some_and(|known| known.get(key).is_some());
    members.retain(|entry| !(matches!(entry.node.value, Value::Null) && known(&entry.key)));
    for entry in members.iter_mut() {
        let inner_path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        if let Some(inner) = schema.get("properties").and_then(|known| known.get(&entry.key)) {
            check(&mut entry.node, inner, &inner_path, problems);
        } else if let Some(inner) = entries(schema) {
            check_name(entry, schema, path, problems);
            check(&mut entry.node, inner, &inner_path, problems);
        } else {
            let message = unknown(&entry.key, schema, path);
            problems.error(ErrorKind::Key, &entry.place, message);
            entry.node.broken = true;
        }
    }
}

fn unknown(key: &str, schema: &Schema, path: &str) -> Message {
    let inside = if path.is_empty() { String::new() } else { format!(" in {}", quoted(path)) };
    let reason = format!("unknown key {}{inside}", quoted(key));
    let known: Vec<&str> = properties(schema).map(|(name, _)| name.as_str()).collect();
    match nearest(key, &known) {
        Some(near) => Message::new(reason, format!("did you mean `{near}`?")),
        None if known.len() <= 17 => Message::new(reason, format!("known here: {}", known.join(", "))),
        None => Message::new(reason, "see docs/configuration.md for the keys"),
    }
}

/// The known word most like the one written, if it is like enough for a slip.
pub(super) fn nearest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let written = written.to_lowercase().replace('-', "_");
    known
        .iter()
        .map(|word| (strsim::jaro_winkler(&written, &word.to_lowercase()), *word))
        .filter(|(likeness, _)| *likeness > 0.82)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

fn check_name(entry: &Entry, schema: &Schema, path: &str, problems: &mut Problems) {
    let Some(longest) = schema.get("x-names").and_then(Schema::as_u64) else {
        let key = &entry.key;
        let (valid, next) = if schema.get("x-headers").is_some() {
            (forms::is_header(key), "use letters, digits and `-`")
        } else {
            (!key.is_empty() && !key.contains(['=', '\0']), "use a name without `=`")
        };
        if !valid {
            let reason = format!("{} is no name for {}", quoted(key), quoted(path));
            problems.error(ErrorKind::Key, &entry.place, Message::new(reason, next));
        }
        return;
    };
    // Names that we give are plain; names of an upstream's tools are the upstream's business.
    let ours = longest <= 64;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = !entry.key.is_empty() && entry.key.chars().count() as u64 <= longest;
    if !fits || (ours && !entry.key.chars().all(plain)) {
        let alphabet = if ours { " of A-Z, a-z, 0-9, `_` and `-`" } else { "" };
        let reason = format!("{} is no name for an entry of {}", quoted(&entry.key), quoted(path));
        let message = Message::new(reason, format!("use 1 to {longest} characters{alphabet}"));
        problems.error(ErrorKind::Key, &entry.place, message);
    }
}

/// A variable, a flag or a `${…}` gives text only; reads the number, the boolean or the list that is wanted.
fn loosen(node: &mut Node, schema: &Schema) {
    if !node.loose || accepts(schema, "string") || words(schema).is_some() {
        return;
    }
    let Value::String(text) = &node.value else { return };
    let text = text.trim();
    let read = if accepts(schema, "integer") {
        text.parse().ok().map(Value::Integer)
    } else if accepts(schema, "number") {
        text.parse().ok().map(Value::Float)
    } else if accepts(schema, "boolean") {
        match text {
            "true" | "1" | "yes" | "on" => Some(Value::Boolean(true)),
            "false" | "0" | "no" | "off" => Some(Value::Boolean(false)),
            _ => None,
        }
    } else if accepts(schema, "array") {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let item = |item: &str| Node { value: Value::String(item.to_owned()), ..node.clone() };
        Some(Value::Array(items.map(item).collect()))
    } else {
        None
    };
    if let Some(value) = read {
        node.value = value;
    }
}

/// Whether the schema takes this JSON type.
pub(super) fn accepts(schema: &Schema, name: &str) -> bool {
    match schema.get("type") {
        Some(Schema::String(only)) => only == name,
        Some(Schema::Array(list)) => list.iter().any(|item| item == name),
        _ => false,
    }
}

/// Whether the schema says that the value is always secret, or an address that may hold a password.
pub(super) fn hidden(schema: &Schema) -> bool {
    schema.get("x-secret").is_some() || schema.get("x-url").is_some()
}

fn wrong_type(node: &Node, schema: &Schema) -> Message {
    let form = schema.get("x-format").and_then(Schema::as_str).unwrap_or_default();
    let (wanted, next) = match form {
        "duration" => ("a duration".to_owned(), "write it with a unit, such as \"30s\""),
        "size" => ("a size".to_owned(), "write bytes, or a string such as \"4MiB\""),
        _ => {
            let mut names = Vec::new();
            let mut next = "change the value";
            for (name, people, step) in [
                ("string", "a string", "put it in quotes"),
                ("integer", "a whole number", "write digits only"),
                ("number", "a number", "write a number without quotes"),
                ("boolean", "true or false", "write true or false without quotes"),
                ("array", "a list", "put it in brackets: [\"…\"]"),
                ("object", "a table", "give it keys: { key = value }"),
            ] {
                if accepts(schema, name) || (name == "string" && words(schema).is_some()) {
                    names.push(people);
                    next = step;
                }
            }
            (names.join(" or "), next)
        }
    };
    let next =
        if matches!(node.value, Value::Array(_)) && accepts(schema, "string") { "write a single string" } else { next };
    Message::new(format!("must be {wanted}, not {}", node.type_name()), next)
}

fn check_word(text: &str, schema: &Schema, secret: bool) -> Result<(), Message> {
    let known = words(schema).unwrap_or_default();
    if known.contains(&text) {
        return Ok(());
    }
    let next = match nearest(text, &known) {
        Some(near) if !secret => format!("did you mean `{near}`?"),
        _ => format!("use {}", either(&known)),
    };
    let what = if secret { "has a value".to_owned() } else { format!("is {}", quoted(text)) };
    Err(Message::new(format!("{what}, which is not known"), next))
}

/// The words as a sentence gives a choice: `a`, `b` or `c`.
fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [others @ .., last] => {
            let others: Vec<String> = others.iter().map(|word| format!("`{word}`")).collect();
            format!("{} or `{last}`", others.join(", "))
        }
    }
}

fn check_length(text: &str, schema: &Schema) -> Result<(), Message> {
    let length = text.chars().count() as u64;
    let bound = |key: &str| schema.get(key).and_then(Schema::as_u64);
    if bound("minLength").is_some_and(|least| length < least) {
        return Err(Message::new("is empty", "give it a value, or leave the key out"));
    }
    if let Some(most) = bound("maxLength").filter(|most| length > *most) {
        return Err(Message::new(format!("has {length} characters"), format!("use at most {most}")));
    }
    if text.contains('\0') {
        return Err(Message::new("holds a NUL character", "remove it"));
    }
    Ok(())
}

fn check_count(count: usize, schema: &Schema) -> Result<(), Message> {
    let bound = |key: &str| schema.get(key).and_then(Schema::as_u64);
    if bound("minItems").is_some_and(|least| (count as u64) < least) {
        return Err(Message::new("is an empty list", "put something into it"));
    }
    match bound("maxItems").filter(|most| count as u64 > *most) {
        Some(most) => Err(Message::new(format!("has {count} entries"), format!("use at most {most}"))),
        None => Ok(()),
    }
}

fn check_size(number: f64, schema: &Schema) -> Result<(), Message> {
    let bound = |key: &str| schema.get(key).and_then(Schema::as_f64);
    if let Some(least) = bound("minimum").filter(|least| number < *least) {
        return Err(Message::new(format!("is {number}"), format!("use at least {least}")));
    }
    match bound("maximum").filter(|most| number > *most) {
        Some(most) => Err(Message::new(format!("is {number}"), format!("use at most {most}"))),
        None => Ok(()),
    }
}

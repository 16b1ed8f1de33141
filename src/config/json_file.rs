//! Another client's JSON file (`mcpServers`, or the `servers` of VS Code) into the same tree. Takes what those clients
//! write, comments included; of our settings it takes those of a server, under the same names. Not a second way to write
//! the whole configuration.

use super::error::{ErrorKind, Message, Problems, quoted};
use super::node::{Entry, Lines, Node, Place, Value};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Keys of other clients that mean nothing here, so that nobody is warned about them.
const FOREIGN: [&str; 22] = [
    "alwaysAllow",
    "always_allow",
    "autoApprove",
    "auto_approve",
    "description",
    "dev",
    "disabledTools",
    "enabledTools",
    "envFile",
    "gallery",
    "icon",
    "id",
    "label",
    "name",
    "oauth",
    "sandboxEnabled",
    "timeout",
    "title",
    "transportType",
    "trust",
    "version",
    "metadata",
];

/// Sections that a JSON file cannot set; naming one is a mistake worth a word.
const OWN_SECTIONS: [&str; 16] = [
    "store",
    "server",
    "worker",
    "auth",
    "lease",
    "scheduler",
    "sessions",
    "redaction",
    "retention",
    "defaults",
    "wrap",
    "limits",
    "log",
    "builtin",
    "namespaces",
    "tools",
];

/// The deepest nesting; beyond it the file is no configuration, and the stack is finite.
const DEPTH_MAX: usize = 64;

/// Whether the text is JSON and not TOML: no TOML file starts with a brace or a `//` comment.
pub(super) fn is_json(text: &str) -> bool {
    let start = text.trim_start();
    start.starts_with('{') || start.starts_with("//") || start.starts_with("/*")
}

/// Reads JSON text into `{ servers = … }`. `known` are the keys of a server entry.
pub(super) fn read(text: &str, known: &[String], problems: &mut Problems) -> Node {
    let text = without_comments(text);
    let mut reader = Reader { text: &text, lines: Lines::new(&text), problems };
    let whole = reader.lines.place(0);
    let root = match serde_json::from_str::<&RawValue>(&text) {
        Ok(raw) => reader.node(raw, 0),
        Err(error) => {
            let place = Place::File { line: error.line().max(1), column: error.column().max(1) };
            let reason = error.to_string();
            // serde_json repeats the place at the end of its message.
            let reason =
                reason.split(" at line ").next().unwrap_or_default().replace("EOF while parsing", "it ends inside");
            reader.problems.error(
                ErrorKind::Syntax,
                &place,
                Message::new(format!("not valid JSON: {reason}"), "correct the JSON at this place"),
            );
            return Node::table(whole);
        }
    };
    let problems = reader.problems;
    for entry in root.entries().iter().filter(|entry| OWN_SECTIONS.contains(&entry.key.as_str())) {
        problems.warn(
            &entry.place,
            Message::new(format!("{} is ignored in a JSON file", quoted(&entry.key)), "write a TOML file to set it"),
        );
    }
    let Some(servers) = root.entry("mcpServers").or_else(|| root.entry("servers")) else {
        problems.error(
            ErrorKind::Key,
            &whole,
            Message::new("the JSON names no servers", "put them under `mcpServers`, or write a TOML file"),
        );
        return Node::table(whole);
    };
    let mut result = Node::table(whole);
    let mut taken = servers.node.clone();
    if let Value::Table(entries) = &mut taken.value {
        entries.retain_mut(|entry| server(entry, known, problems));
    }
    let place = servers.place.clone();
    result.value = Value::Table(vec![Entry { key: "servers".to_owned(), place, node: taken }]);
    result
}

/// Brings one entry into our form; false when it is switched off.
fn server(entry: &mut Entry, known: &[String], problems: &mut Problems) -> bool {
    let name = entry.key.clone();
    let Value::Table(members) = &mut entry.node.value else { return true };
    if members.iter().any(|member| member.key == "disabled" && matches!(member.node.value, Value::Boolean(true))) {
        return false;
    }
    for member in members.iter_mut() {
        match member.key.as_str() {
            "serverUrl" | "httpUrl" => member.key = "url".to_owned(),
            "type" | "transport" => transport(&name, member, problems),
            _ => {}
        }
    }
    members.retain(|member| {
        let ours = known.contains(&member.key);
        // Some clients write a number and a list under two of our names, and empty tables where nothing is meant.
        let table = matches!(&member.node.value, Value::Table(inner) if !inner.is_empty());
        let empty = match &member.node.value {
            Value::Table(inner) => inner.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if empty || (matches!(member.key.as_str(), "timeout" | "tools") && !table) {
            return false;
        }
        if !ours
            && !matches!(member.key.as_str(), "type" | "transport" | "disabled")
            && !FOREIGN.contains(&member.key.as_str())
        {
            let key = quoted(&member.key);
            problems.warn(&member.place, Message::new(format!("unknown key {key} is ignored"), "check its spelling"));
        }
        ours
    });
    true
}

fn transport(name: &str, member: &Entry, problems: &mut Problems) {
    let next = match member.node.text() {
        None | Some("stdio" | "http" | "streamable-http" | "streamableHttp" | "streamable_http") => return,
        Some("sse") => "use the server's Streamable HTTP address with type `http`; the old SSE transport is not spoken",
        Some(_) => "use `stdio` or `http`",
    };
    let kind = member.node.text().unwrap_or_default();
    let reason = format!("server {} has type {}", quoted(name), quoted(kind));
    problems.error(ErrorKind::Value, &member.node.place, Message::new(reason, next));
}

struct Reader<'t, 'p> {
    text: &'t str,
    lines: Lines<'t>,
    problems: &'p mut Problems,
}

/// One level of JSON, its parts still as text; their addresses in memory give their places in the file.
enum Level<'t> {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Null,
    Array(Vec<&'t RawValue>),
    Table(Vec<(String, &'t RawValue)>),
}

impl<'t> Reader<'t, '_> {
    fn node(&mut self, raw: &'t RawValue, depth: usize) -> Node {
        let offset = raw.get().as_ptr() as usize - self.text.as_ptr() as usize;
        let place = self.lines.place(offset);
        if depth > DEPTH_MAX {
            let message = Message::new(format!("nested more than {DEPTH_MAX} deep"), "use the file of an MCP client");
            self.problems.error(ErrorKind::Syntax, &place, message);
            return Node::new(Value::Null, place);
        }
        let value = match serde_json::from_str::<Level<'t>>(raw.get()) {
            Ok(Level::String(text)) => Value::String(text),
            Ok(Level::Integer(number)) => Value::Integer(number),
            Ok(Level::Float(number)) => Value::Float(number),
            Ok(Level::Boolean(value)) => Value::Boolean(value),
            // The whole text was parsed before, so no part of it fails.
            Ok(Level::Null) | Err(_) => Value::Null,
            Ok(Level::Array(items)) => Value::Array(items.into_iter().map(|item| self.node(item, depth + 1)).collect()),
            Ok(Level::Table(members)) => self.table(members, depth),
        };
        Node::new(value, place)
    }

    fn table(&mut self, members: Vec<(String, &'t RawValue)>, depth: usize) -> Value {
        let mut entries: Vec<Entry> = Vec::with_capacity(members.len());
        for (key, raw) in members {
            let place = self.key_place(raw);
            if entries.iter().any(|entry| entry.key == key) {
                let message = Message::new(format!("the key {} stands twice", quoted(&key)), "keep one of the two");
                self.problems.error(ErrorKind::Key, &place, message);
            } else {
                let node = self.node(raw, depth + 1);
                entries.push(Entry { key, place, node });
            }
        }
        Value::Table(entries)
    }

    /// The place of the key before a value: back over the colon to the quote that opens the key.
    fn key_place(&self, raw: &RawValue) -> Place {
        let value = raw.get().as_ptr() as usize - self.text.as_ptr() as usize;
        let bytes = self.text.as_bytes();
        let close = self.text[..value].rfind('"').unwrap_or(0);
        let mut open = close;
        while open > 0 {
            open -= 1;
            let escapes = bytes[..open].iter().rev().take_while(|byte| **byte == b'\\').count();
            if bytes[open] == b'"' && escapes % 2 == 0 {
                break;
            }
        }
        self.lines.place(open)
    }
}

impl<'de> Deserialize<'de> for Level<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Levels;
        impl<'de> Visitor<'de> for Levels {
            type Value = Level<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Level::String(text.to_owned()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Level::Integer(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(i64::try_from(number).map_or(Level::Float(number as f64), Level::Integer))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Level::Float(number))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Level::Boolean(value))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Level::Null)
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Level::Array(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Level::Table(members))
            }
        }
        deserializer.deserialize_any(Levels)
    }
}

/// Blanks out comments and trailing commas, which VS Code permits; every other byte keeps its place.
fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    let mut comma: Option<usize> = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                let (end, skip): (&[u8], usize) = if bytes[at + 1] == b'/' { (b"\n", 0) } else { (b"*/", 2) };
                let body = at + 2;
                let length = bytes[body..].windows(end.len()).position(|window| window == end);
                let stop = length.map_or(bytes.len(), |length| body + length + skip);
                for byte in &mut bytes[at..stop] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
                at = stop;
            }
            byte => {
                match byte {
                    b',' => comma = Some(at),
                    b'}' | b']' => {
                        if let Some(comma) = comma.take() {
                            bytes[comma] = b' ';
                        }
                    }
                    byte if byte.is_ascii_whitespace() => {}
                    _ => comma = None,
                }
                at += 1;
            }
        }
    }
    // Only whole comments and single commas were replaced, so the text is still UTF-8.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

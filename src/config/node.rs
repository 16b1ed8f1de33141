//! The configuration as a tree that remembers where each value was written and whether it may be shown. Both file formats,
//! the environment and the flags end in it. Knows no setting.

use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Line and column count from 1; line 0 is the file as a whole.
    File {
        line: usize,
        column: usize,
    },
    Variable(String),
    Flag(String),
    Default,
}

#[derive(Clone)]
pub(super) struct Node {
    pub value: Value,
    pub place: Place,
    /// It came through `${…}`: never shown, never quoted.
    pub secret: bool,
    /// It is text only because its source knows nothing else: numbers and booleans are read from it.
    pub loose: bool,
    /// It was reported already; nothing more is said about it.
    pub broken: bool,
}

#[derive(Clone)]
pub(super) enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date(String),
    /// Only JSON has it; it means that the key is absent.
    Null,
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

#[derive(Clone)]
pub(super) struct Entry {
    pub key: String,
    pub place: Place,
    pub node: Node,
}

/// Turns offsets of a text into lines and columns.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub fn new(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    pub fn place(&self, offset: usize) -> Place {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset);
        let column = self.text.as_bytes()[self.starts[line - 1]..offset].iter().filter(|byte| (**byte & 0xC0) != 0x80);
        Place::File { line, column: column.count() + 1 }
    }
}

impl Node {
    pub fn new(value: Value, place: Place) -> Self {
        Self { value, place, secret: false, loose: false, broken: false }
    }

    pub fn table(place: Place) -> Self {
        Self::new(Value::Table(Vec::new()), place)
    }

    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    pub fn get(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.entry(key).map(|entry| &entry.node))
    }

    pub fn get_mut(&mut self, path: &[&str]) -> Option<&mut Node> {
        path.iter().try_fold(self, |node, key| match &mut node.value {
            Value::Table(entries) => entries.iter_mut().find(|entry| entry.key == *key).map(|entry| &mut entry.node),
            _ => None,
        })
    }

    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) if !self.broken => Some(text),
            _ => None,
        }
    }

    /// Puts a value at a path, with the tables on the way. A value that is no table on the way is replaced; the checks have
    /// no chance to see it then, but a flag that overrides a broken file is what the user asked for.
    pub fn set(&mut self, path: &[&str], node: Node) {
        let Some((key, rest)) = path.split_first() else {
            *self = node;
            return;
        };
        if !matches!(self.value, Value::Table(_)) {
            *self = Node::table(node.place.clone());
        }
        let Value::Table(entries) = &mut self.value else { return };
        let at = entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
            let place = node.place.clone();
            entries.push(Entry { key: (*key).to_owned(), place: place.clone(), node: Node::table(place) });
            entries.len() - 1
        });
        entries[at].node.set(rest, node);
    }

    /// What people call the type of the value.
    pub fn type_name(&self) -> &'static str {
        match &self.value {
            Value::String(_) => "a string",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a decimal number",
            Value::Boolean(_) => "true or false",
            Value::Date(_) => "a date",
            Value::Null => "null",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// Whether the value or anything inside it is secret.
    pub fn any_secret(&self) -> bool {
        self.secret
            || match &self.value {
                Value::Array(items) => items.iter().any(Node::any_secret),
                Value::Table(entries) => entries.iter().any(|entry| entry.node.any_secret()),
                _ => false,
            }
    }

    /// The value as JSON text, members in the order in which they were written.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match &self.value {
            Value::String(text) | Value::Date(text) => out.push_str(&json_string(text)),
            Value::Integer(number) => out.push_str(&number.to_string()),
            Value::Float(number) => {
                out.push_str(&serde_json::Number::from_f64(*number).map_or("null".to_owned(), |n| n.to_string()))
            }
            Value::Null => out.push_str("null"),
            Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            Value::Table(entries) => {
                out.push('{');
                for (at, entry) in entries.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    out.push_str(&json_string(&entry.key));
                    out.push(':');
                    entry.node.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

/// The text as a JSON string, which is also a TOML basic string.
pub(super) fn json_string(text: &str) -> String {
    // TOML wants DEL escaped, JSON permits it.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

impl<'de> IntoDeserializer<'de, Error> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::String(text) | Value::Date(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Null => visitor.visit_unit(),
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Value::Table(entries) => {
                visitor.visit_map(MapDeserializer::new(entries.iter().map(|entry| (entry.key.as_str(), &entry.node))))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.text().unwrap_or_default().into_deserializer())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

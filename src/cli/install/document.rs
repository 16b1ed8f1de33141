//! A client's configuration as text with a tree over it: every value knows which bytes it is made of, so that a change
//! touches those and no others. Takes JSON with comments and trailing commas; changes nothing itself.

use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A value, and where its text stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// The bytes of the text that it is made of.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// An object.
    Object(Vec<Member>),
    /// An array.
    Array(Vec<Node>),
    /// A string, unescaped.
    String(String),
    /// A number, as it is written.
    Number(String),
    /// `true` or `false`.
    Boolean(bool),
    /// `null`.
    Null,
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name, unescaped.
    pub name: String,
    /// Where the name stands, quotes included.
    pub key: Range<usize>,
    /// Its value.
    pub value: Node,
}

/// Values are equal when they mean the same, wherever they stand; the order of members means nothing.
impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Object(one), Kind::Object(two)) => {
                one.len() == two.len()
                    && one.iter().all(|member| two.iter().any(|m| m.name == member.name && m.value == member.value))
            }
            (one, two) => one == two,
        }
    }
}

impl Node {
    /// The members of an object.
    pub fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            _ => &[],
        }
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.name == name)
    }

    /// The value of the member of this name.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.member(name).map(|member| &member.value)
    }

    /// The value at the end of a path of names.
    pub fn at(&self, path: &[String]) -> Option<&Node> {
        path.iter().try_fold(self, |node, name| node.get(name))
    }

    /// The items of an array.
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::Array(items) => items,
            _ => &[],
        }
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// True for an object.
    pub fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    /// True for an array.
    pub fn is_array(&self) -> bool {
        matches!(self.kind, Kind::Array(_))
    }

    /// A member name that stands twice in one object of this value, if there is one.
    pub fn twice(&self) -> Option<&str> {
        for (at, member) in self.members().iter().enumerate() {
            if self.members()[..at].iter().any(|earlier| earlier.name == member.name) {
                return Some(&member.name);
            }
        }
        let inner = self.members().iter().map(|member| &member.value).chain(self.items());
        inner.flat_map(Node::twice).next()
    }
}

/// A text and its tree.
#[derive(Clone, Debug)]
pub struct Document {
    /// The text without a byte order mark.
    pub text: String,
    /// It began with one.
    pub has_mark: bool,
    /// The value; `None` where there is nothing but space and comments.
    pub root: Option<Node>,
}

impl Document {
    /// Reads a file's bytes. Errors: why they are no JSON, with line and column.
    pub fn read(bytes: &[u8]) -> Result<Document, String> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| format!("it is not UTF-8 text, at byte {}", error.valid_up_to()))?;
        let (has_mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        Ok(Document { text: text.to_owned(), has_mark, root: parse(text)? })
    }

    /// The same with another text. Errors: as [`Document::read`].
    pub fn with(&self, text: String) -> Result<Document, String> {
        let root = parse(&text)?;
        Ok(Document { text, has_mark: self.has_mark, root })
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mark = if self.has_mark { BYTE_ORDER_MARK } else { "" };
        [mark.as_bytes(), self.text.as_bytes()].concat()
    }

    /// The exact text of a value.
    pub fn of(&self, node: &Node) -> &str {
        &self.text[node.span.clone()]
    }
}

/// Reads a text of JSON with comments and trailing commas; `None` where there is no value.
pub fn parse(text: &str) -> Result<Option<Node>, String> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        ..ParseOptions::default()
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        let what = error.kind().to_string();
        let mut chars = what.chars();
        let what = chars.next().map_or(String::new(), |first| first.to_lowercase().to_string() + chars.as_str());
        format!("it is not JSON: {what} (line {line}, column {column})")
    })?;
    Ok(parsed.value.map(|value| node(&value)))
}

fn node(value: &ast::Value<'_>) -> Node {
    let range = value.range();
    let kind = match value {
        ast::Value::Object(object) => Kind::Object(
            object
                .properties
                .iter()
                .map(|property| Member {
                    name: property.name.as_str().to_owned(),
                    key: property.name.range().start..property.name.range().end,
                    value: node(&property.value),
                })
                .collect(),
        ),
        ast::Value::Array(array) => Kind::Array(array.elements.iter().map(node).collect()),
        ast::Value::StringLit(text) => Kind::String(text.value.to_string()),
        ast::Value::NumberLit(number) => Kind::Number(number.value.to_owned()),
        ast::Value::BooleanLit(boolean) => Kind::Boolean(boolean.value),
        ast::Value::NullKeyword(_) => Kind::Null,
    };
    Node { span: range.start..range.end, kind }
}

//! Arguments that a tool wants repeated as `Mcp-Param-…` headers (`x-mcp-header` in its input schema, 2026-07-28).
//! Follows `properties` only, as the specification allows the annotation nowhere else; validates no argument, encodes no
//! header.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json;

const ANNOTATION: &str = "x-mcp-header";
/// Schemas nested deeper are foreign trouble, not ours.
const MAX_DEPTH: usize = 32;

/// An argument and the label of its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderArgument {
    /// What follows `Mcp-Param-` in the header's name.
    pub label: String,
    /// The names that lead to the argument.
    pub path: Vec<String>,
}

/// Reads the annotations of one tool object; `None` if one of them is invalid, which a client has to leave the tool out
/// for.
pub fn read(definition: &RawValue) -> Option<Vec<HeaderArgument>> {
    // Nearly all tools have none; their schemas are not looked into.
    if !definition.get().contains(ANNOTATION) {
        return Some(Vec::new());
    }
    #[derive(Deserialize)]
    struct Wire {
        #[serde(rename = "inputSchema", default)]
        schema: Value,
    }
    let wire: Wire = serde_json::from_str(definition.get()).ok()?;
    if wire.schema.get(ANNOTATION).is_some() {
        return None;
    }
    let mut found = Vec::new();
    walk(&wire.schema, &mut Vec::new(), &mut found)?;
    let distinct: HashSet<_> = found.iter().map(|argument| argument.label.to_ascii_lowercase()).collect();
    (distinct.len() == found.len()).then_some(found)
}

fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Vec<HeaderArgument>) -> Option<()> {
    if path.len() > MAX_DEPTH {
        return None;
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Some(()) };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(annotation) = property.get(ANNOTATION) {
            let label = annotation.as_str().filter(|label| is_token(label))?;
            let primitive = matches!(property.get("type")?.as_str()?, "string" | "integer" | "boolean");
            primitive.then(|| found.push(HeaderArgument { label: label.to_owned(), path: path.clone() }))?;
        }
        walk(property, path, found)?;
        path.pop();
    }
    Some(())
}

/// Whether a text may be part of the name of a header (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// What a header has to say of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeated<'a> {
    /// A string, unescaped.
    Text(Cow<'a, str>),
    /// A number or a truth value as it is spelled in the body.
    Literal(&'a str),
}

impl HeaderArgument {
    /// What is to be repeated; `None` if the argument is absent, null or no primitive.
    pub fn of<'a>(&self, arguments: &'a RawValue) -> Option<Repeated<'a>> {
        let mut at = arguments;
        for name in &self.path {
            at = json::members(at.get())?.into_iter().rev().find(|(member, _)| member == name)?.1;
        }
        match at.get().as_bytes().first()? {
            b'"' => json::text(at).map(Repeated::Text),
            b'-' | b'0'..=b'9' | b't' | b'f' => Some(Repeated::Literal(at.get())),
            _ => None,
        }
    }
}

impl Repeated<'_> {
    /// The value of the header, before it is encoded.
    pub fn as_str(&self) -> &str {
        match self {
            Repeated::Text(text) => text,
            Repeated::Literal(literal) => literal,
        }
    }

    /// Whether a decoded header says the same; numbers are compared as numbers.
    pub fn is_said_by(&self, header: &str) -> bool {
        header == self.as_str()
            || matches!(self, Repeated::Literal(literal) if same_number(literal, header).unwrap_or(false))
    }
}

fn same_number(one: &str, other: &str) -> Option<bool> {
    let number = |text: &str| serde_json::from_str::<serde_json::Number>(text).ok();
    let (one, other) = (number(one)?, number(other)?);
    Some(match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one == other,
        _ => one.as_f64()? == other.as_f64()?,
    })
}

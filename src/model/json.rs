//! A JSON object seen as its members: names, and values as borrowed raw text. Looks one level deep and copies nothing
//! but names with escapes. Checks no duplicates (`scan` does, for clients); keeps them in order.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// A member: its unescaped name and its value as it was written.
pub type Member<'a> = (Cow<'a, str>, &'a RawValue);

/// The members of `text` in their order; `None` when it is not an object.
pub fn members(text: &str) -> Option<Vec<Member<'_>>> {
    serde_json::from_str::<Members<'_>>(text).ok().map(|members| members.0)
}

/// Tells whether a raw value is an object.
pub fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// Tells whether a raw value is `null`.
pub fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// The unescaped text of a raw string; `None` when the value is no string.
pub fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = value.get();
    if !quoted.starts_with('"') {
        return None;
    }
    if quoted.contains('\\') {
        return serde_json::from_str(quoted).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(&quoted[1..quoted.len() - 1]))
}

struct Members<'a>(Vec<Member<'a>>);

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Each)
    }
}

struct Each;

impl<'de> Visitor<'de> for Each {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut found = Vec::with_capacity(8);
        while let Some(Name(name)) = map.next_key()? {
            found.push((name, map.next_value()?));
        }
        Ok(Members(found))
    }
}

/// `object` with one more member at its end; unchanged when it has a member of that name, or is no object.
pub fn with_member<'a>(object: &'a str, name: &str, value: &str) -> Cow<'a, str> {
    match members(object) {
        Some(members) if members.iter().all(|(known, _)| known != name) => {
            Cow::Owned(appended(object, members.is_empty(), name, value))
        }
        _ => Cow::Borrowed(object),
    }
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    // Only maps and foreign types can fail to serialise.
    serde_json::to_string(text).expect("a string is always JSON")
}

/// JSON on one line: between tokens a line break is worth a space, and inside a string there is none.
pub fn one_line(json: &str) -> Cow<'_, str> {
    match json.contains(['\n', '\r']) {
        true => Cow::Owned(json.replace(['\n', '\r'], " ")),
        false => Cow::Borrowed(json),
    }
}

fn appended(object: &str, empty: bool, name: &str, value: &str) -> String {
    let body = object.trim_end();
    let body = body.strip_suffix('}').unwrap_or(body);
    let name = quoted(name);
    let mut out = String::with_capacity(object.len() + name.len() + value.len() + 2);
    out.push_str(body);
    if !empty {
        out.push(',');
    }
    out.push_str(&name);
    out.push(':');
    out.push_str(value);
    out.push('}');
    out
}

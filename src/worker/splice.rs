//! Adds members to foreign JSON objects without touching a byte of what is there. Parses no more than the names of the
//! members, and changes no value.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of a JSON object in their order, each value byte for byte; `None` when `text` is no object.
pub fn members(text: &str) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    serde_json::from_str::<Members<'_>>(text).ok().map(|members| members.0)
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

struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(Deserialize, PartialEq, Eq)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(map.size_hint().unwrap_or_default());
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

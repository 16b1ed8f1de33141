//! Strings that may be secret. Neither type can be printed by accident: no `Display`, no `Serialize`, and `Debug` shows
//! `***`. Erases nothing from memory: a child process gets its environment in the clear anyway.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// What stands in the place of a secret.
pub const MASK: &str = "***";

/// A value that is always secret: environment and header values of upstreams, addresses with credentials.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

/// A free string that becomes secret when it came through `${…}`; so it is never printed by `Debug`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub struct Text(String);

impl Secret {
    /// The content, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(content: String) -> Self {
        Self(content)
    }
}

impl From<String> for Text {
    fn from(content: String) -> Self {
        Self(content)
    }
}

impl From<&str> for Text {
    fn from(content: &str) -> Self {
        Self(content.to_owned())
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-secret": true })
    }
}

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Returns an address with its user part, the values of its query and its fragment hidden. Works on what is no correct
/// address too, because a mistyped password is a password.
pub fn mask_url(url: &str) -> String {
    let (before_query, query) = match url.find(['?', '#']) {
        Some(at) => (&url[..at], &url[at..]),
        None => (url, ""),
    };
    let mut masked = String::new();
    match before_query.find("://") {
        Some(at) => {
            let (scheme, rest) = before_query.split_at(at + 3);
            masked.push_str(scheme);
            // The last `@` decides: an unescaped one inside a password must not end it early.
            match rest.rfind('@') {
                Some(at) => {
                    masked.push_str(MASK);
                    masked.push_str(&rest[at..]);
                }
                None => masked.push_str(rest),
            }
        }
        None => match before_query.rfind('@') {
            Some(at) => {
                masked.push_str(MASK);
                masked.push_str(&before_query[at..]);
            }
            None => masked.push_str(before_query),
        },
    }
    let Some(query) = query.strip_prefix('?') else {
        return if query.is_empty() { masked } else { masked + "#" + MASK };
    };
    let pairs: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) => format!("{name}={MASK}"),
            None => MASK.to_owned(),
        })
        .collect();
    masked + "?" + &pairs.join("&")
}

//! JSON-RPC ids and progress tokens: a string or an integer, echoed as it was written. Never a number with a
//! fraction or exponent, never null; and never a key for deduplication, since only requests in flight have ids.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use serde_json::value::RawValue;

use super::reject::push_json_string;

#[cfg(test)]
mod tests;

/// Longer ids are refused: an id is echoed, kept while its request is in flight, and logged.
pub const ID_BYTES_MAX: usize = 1024;

/// An id. Two ids are equal when they are the same string (however escaped) or the same integer.
#[derive(Debug, Clone)]
pub struct Id<'a> {
    raw: Cow<'a, str>,
    /// The text that equality goes by, when it is not `raw` itself.
    canonical: Option<Box<str>>,
}

impl<'a> Id<'a> {
    /// Reads an id. Errors: a text that says what is wrong with it.
    pub fn parse(value: &'a RawValue) -> Result<Self, &'static str> {
        let raw = value.get();
        if raw.len() > ID_BYTES_MAX {
            return Err("the id is longer than 1024 bytes");
        }
        let canonical = match raw.as_bytes().first() {
            Some(b'"') if raw.contains('\\') => {
                let plain: String = serde_json::from_str(raw).map_err(|_| "the id is not a valid string")?;
                let mut canonical = String::with_capacity(raw.len());
                push_json_string(&mut canonical, &plain);
                Some(canonical.into_boxed_str())
            }
            Some(b'"') => None,
            Some(b'-' | b'0'..=b'9') if raw.contains(['.', 'e', 'E']) => {
                return Err("the id is a number with a fraction or an exponent");
            }
            Some(b'-' | b'0'..=b'9') => (raw == "-0").then(|| "0".into()),
            Some(b'n') => return Err("the id is null"),
            _ => return Err("the id is neither a string nor an integer"),
        };
        Ok(Id { raw: Cow::Borrowed(raw), canonical })
    }

    /// Makes a string id of ours.
    pub fn from_text(plain: &str) -> Id<'static> {
        let mut raw = String::with_capacity(plain.len() + 2);
        push_json_string(&mut raw, plain);
        Id { raw: Cow::Owned(raw), canonical: None }
    }

    /// Makes an integer id of ours.
    pub fn from_number(number: i64) -> Id<'static> {
        Id { raw: Cow::Owned(number.to_string()), canonical: None }
    }

    /// The id as it was written, to be echoed.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The text that is equal for equal ids; strings keep their quotes, so `1` and `"1"` differ.
    pub fn canonical(&self) -> &str {
        self.canonical.as_deref().unwrap_or(&self.raw)
    }

    /// The same id without the borrow.
    pub fn into_owned(self) -> Id<'static> {
        Id { raw: Cow::Owned(self.raw.into_owned()), canonical: self.canonical }
    }
}

impl PartialEq for Id<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.canonical() == other.canonical()
    }
}

impl Eq for Id<'_> {}

impl Hash for Id<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical().hash(state);
    }
}

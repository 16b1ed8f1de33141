//! One pass over a JSON text that tells where its values are, and which of them pointers name. Builds no tree, copies
//! nothing but names, and checks no more than it needs to find its way.

use std::borrow::Cow;
use std::ops::Range;

use super::pointer::{Pointer, State, begin, names, step};

/// The deepest nesting that is looked into; what lies below counts as named.
const DEPTH_MAX: usize = 256;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A value of any kind that a pointer names.
    Named,
    /// A string, or the name of a member, quotes included.
    Text,
    /// A number, `true`, `false` or `null`.
    Scalar,
}

/// Walks over `json`. Errors: it is no JSON as far as that was seen; what was told until then is of no use.
pub(super) fn walk(json: &str, pointers: &[Pointer], told: &mut dyn FnMut(Found, Range<usize>)) -> Result<(), ()> {
    let mut walker = Walker { json, bytes: json.as_bytes(), at: 0, pointers, told };
    walker.value(&begin(pointers), 0)?;
    walker.space();
    if walker.at == json.len() { Ok(()) } else { Err(()) }
}

struct Walker<'a> {
    json: &'a str,
    bytes: &'a [u8],
    at: usize,
    pointers: &'a [Pointer],
    told: &'a mut dyn FnMut(Found, Range<usize>),
}

impl Walker<'_> {
    fn value(&mut self, states: &[State], depth: usize) -> Result<(), ()> {
        self.space();
        let start = self.at;
        let opens = matches!(self.peek(), Some(b'{' | b'['));
        if names(self.pointers, states) || (opens && depth == DEPTH_MAX) {
            self.skip()?;
            (self.told)(Found::Named, start..self.at);
            return Ok(());
        }
        match self.peek().ok_or(())? {
            b'{' => self.object(states, depth),
            b'[' => self.array(states, depth),
            b'"' => {
                self.string()?;
                (self.told)(Found::Text, start..self.at);
                Ok(())
            }
            _ => {
                self.word()?;
                (self.told)(Found::Scalar, start..self.at);
                Ok(())
            }
        }
    }

    fn object(&mut self, states: &[State], depth: usize) -> Result<(), ()> {
        self.at += 1;
        self.space();
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.space();
            let start = self.at;
            self.string()?;
            let name = unescaped(&self.json[start..self.at]);
            let inner = if states.is_empty() { Vec::new() } else { step(self.pointers, states, &name) };
            (self.told)(Found::Text, start..self.at);
            self.space();
            if !self.take(b':') {
                return Err(());
            }
            self.value(&inner, depth + 1)?;
            if self.ends(b'}')? {
                return Ok(());
            }
        }
    }

    fn array(&mut self, states: &[State], depth: usize) -> Result<(), ()> {
        self.at += 1;
        self.space();
        if self.take(b']') {
            return Ok(());
        }
        for index in 0_usize.. {
            let inner = if states.is_empty() { Vec::new() } else { step(self.pointers, states, &index.to_string()) };
            self.value(&inner, depth + 1)?;
            if self.ends(b']')? {
                break;
            }
        }
        Ok(())
    }

    /// After a value: true at the end of the container, false before the next value.
    fn ends(&mut self, close: u8) -> Result<bool, ()> {
        self.space();
        if self.take(close) {
            return Ok(true);
        }
        if self.take(b',') { Ok(false) } else { Err(()) }
    }

    /// Over a whole value, however deep.
    fn skip(&mut self) -> Result<(), ()> {
        let mut depth = 0_usize;
        loop {
            self.space();
            match self.peek().ok_or(())? {
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(())?;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => self.at += 1,
                b'"' => self.string()?,
                _ => self.word()?,
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn string(&mut self) -> Result<(), ()> {
        if !self.take(b'"') {
            return Err(());
        }
        loop {
            let rest = self.bytes.get(self.at..).ok_or(())?;
            self.at += memchr::memchr2(b'"', b'\\', rest).ok_or(())? + 1;
            if self.bytes[self.at - 1] == b'"' {
                return Ok(());
            }
            // Whatever is escaped.
            self.at += 1;
        }
    }

    fn word(&mut self) -> Result<(), ()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(()) }
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

/// What a quoted string says. Half of a pair that has no other half is shown as what it is not.
pub(super) fn unescaped(quoted: &str) -> Cow<'_, str> {
    if !quoted.contains('\\') {
        return Cow::Borrowed(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
    }
    serde_json::from_str(quoted).map_or(Cow::Borrowed(quoted), Cow::Owned)
}

/// Every string and number in a value, names of members left out.
pub(super) fn scalars(json: &str, told: &mut dyn FnMut(String)) {
    let mut told = |found: Found, at: Range<usize>| {
        let is_name = json[at.end..].trim_start().starts_with(':');
        match found {
            Found::Text if !is_name => told(unescaped(&json[at]).into_owned()),
            Found::Scalar if !matches!(&json[at.clone()], "true" | "false" | "null") => told(json[at].to_owned()),
            _ => {}
        }
    };
    // What is no JSON holds nothing to look for.
    let _ = walk(json, &[], &mut told);
}

//! When two calls have the same arguments: equality of canonical JSON by hash. Members are sorted and numbers compared
//! by exact decimal value, never through a float: RFC 8785 would make 9007199254740993 equal …992. Changes no payload.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Why arguments have no canonical form.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// The text is no JSON.
    #[error("arguments are not JSON at byte {0}")]
    NotJson(usize),
    /// Nested deeper than the limit.
    #[error("arguments are nested deeper than {0}")]
    TooDeep(usize),
    /// An exponent beyond any use.
    #[error("a number in the arguments has an exponent beyond 18 digits")]
    Exponent,
}

/// The deepest nesting accepted here; the protocol face has its own, smaller limit.
pub const DEPTH_MAX: usize = 512;

/// The hash of `arguments` (a JSON text) in lower-case hex, with the top-level member `left_out` ignored.
pub fn hash(arguments: &str, left_out: Option<&str>) -> Result<String, Error> {
    Ok(hex::encode(Sha256::digest(canonical(arguments, left_out)?.as_bytes())))
}

/// The canonical text: members sorted by name, no white space, strings re-escaped, numbers as `digits e exponent`.
pub fn canonical(arguments: &str, left_out: Option<&str>) -> Result<String, Error> {
    let mut scanner = Scanner { text: arguments, at: 0 };
    let mut out = String::with_capacity(arguments.len());
    scanner.value(&mut out, 0, left_out)?;
    scanner.space();
    if scanner.at != arguments.len() {
        return Err(Error::NotJson(scanner.at));
    }
    Ok(out)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn value(&mut self, out: &mut String, depth: usize, left_out: Option<&str>) -> Result<(), Error> {
        if depth > DEPTH_MAX {
            return Err(Error::TooDeep(DEPTH_MAX));
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(out, depth, left_out),
            Some(b'[') => self.array(out, depth),
            Some(b'"') => {
                let text = self.string()?;
                push_string(out, &text);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            _ => self.word(out),
        }
    }

    fn object(&mut self, out: &mut String, depth: usize, left_out: Option<&str>) -> Result<(), Error> {
        self.at += 1;
        let mut members: Vec<(String, String)> = Vec::new();
        self.space();
        if !self.take(b'}') {
            loop {
                self.space();
                let name = self.string()?;
                self.space();
                self.expect(b':')?;
                let mut value = String::new();
                self.value(&mut value, depth + 1, None)?;
                if left_out != Some(name.as_str()) {
                    members.push((name, value));
                }
                self.space();
                if !self.take(b',') {
                    break;
                }
            }
            self.expect(b'}')?;
        }
        members.sort();
        out.push('{');
        for (index, (name, value)) in members.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            push_string(out, name);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        Ok(())
    }

    fn array(&mut self, out: &mut String, depth: usize) -> Result<(), Error> {
        self.at += 1;
        out.push('[');
        self.space();
        if !self.take(b']') {
            loop {
                self.value(out, depth + 1, None)?;
                self.space();
                if !self.take(b',') {
                    break;
                }
                out.push(',');
            }
            self.expect(b']')?;
        }
        out.push(']');
        Ok(())
    }

    fn string(&mut self) -> Result<String, Error> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            match self.peek() {
                Some(b'\\') => self.at += 2,
                Some(b'"') => break,
                Some(_) => self.at += 1,
                None => return Err(Error::NotJson(start)),
            }
        }
        self.at += 1;
        let raw = self.text.get(start..self.at).ok_or(Error::NotJson(start))?;
        serde_json::from_str(raw).map_err(|_| Error::NotJson(start))
    }

    fn number(&mut self, out: &mut String) -> Result<(), Error> {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        // serde_json is the judge of what a number is; the value it would compute is of no interest.
        if serde_json::from_str::<&serde_json::value::RawValue>(text).is_err() {
            return Err(Error::NotJson(start));
        }
        push_decimal(out, text)
    }

    fn word(&mut self, out: &mut String) -> Result<(), Error> {
        for word in ["true", "false", "null"] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                out.push_str(word);
                return Ok(());
            }
        }
        Err(Error::NotJson(self.at))
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Error> {
        if self.take(byte) { Ok(()) } else { Err(Error::NotJson(self.at)) }
    }
}

fn push_string(out: &mut String, text: &str) {
    // A string always serialises.
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// Writes the exact decimal value: significant digits without outer zeros, and a power of ten.
fn push_decimal(out: &mut String, text: &str) -> Result<(), Error> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    let trimmed = significant.trim_end_matches('0');
    if trimmed.is_empty() {
        out.push('0');
        return Ok(());
    }
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent);
    if exponent.trim_start_matches('-').trim_start_matches('0').len() > 18 {
        return Err(Error::Exponent);
    }
    let exponent: i64 = exponent.parse().map_err(|_| Error::Exponent)?;
    let power = exponent - fraction.len() as i64 + (significant.len() - trimmed.len()) as i64;
    if negative {
        out.push('-');
    }
    out.push_str(trimmed);
    if power != 0 {
        // Writing to a string cannot fail.
        let _ = write!(out, "e{power}");
    }
    Ok(())
}

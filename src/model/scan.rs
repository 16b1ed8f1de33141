//! The strict check of JSON text from clients: grammar, duplicate member names and nesting depth in one pass,
//! without building a tree. Knows nothing of JSON-RPC, keeps no values and converts no numbers.

use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// Why a JSON text is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the text is not UTF-8 at byte {at}")]
    NotUtf8 { at: usize },
    #[error("{what} at byte {at}")]
    Syntax { at: usize, what: &'static str },
    #[error("values are nested deeper than {depth_max} levels at byte {at}")]
    TooDeep { at: usize, depth_max: usize },
    #[error("the member {name:?} appears twice in one object, at byte {at} or before")]
    Duplicate { at: usize, name: String },
}

impl Fault {
    /// Tells whether the text is no JSON at all; otherwise it is JSON that is not accepted here.
    pub fn is_syntax(&self) -> bool {
        matches!(self, Fault::NotUtf8 { .. } | Fault::Syntax { .. })
    }
}

/// Checks that `text` is exactly one JSON value, at most `depth_max` levels deep, in which no object has two members
/// of the same name (names are compared after unescaping). A lone surrogate escape is refused like a bad escape.
pub fn check(text: &str, depth_max: usize) -> Result<(), Fault> {
    Scanner { text, at: 0, frames: Vec::with_capacity(16), names: Vec::with_capacity(32), depth_max }.run()
}

// Up to here a new name is compared with all names before it; larger objects are sorted once, when they end.
const NAMES_COMPARED: usize = 16;
const NAME_SHOWN_CHARS: usize = 64;

struct Frame {
    is_object: bool,
    names_from: usize,
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    frames: Vec<Frame>,
    /// The names of all objects that are open, innermost last.
    names: Vec<Cow<'a, str>>,
    depth_max: usize,
}

impl<'a> Scanner<'a> {
    fn run(mut self) -> Result<(), Fault> {
        loop {
            self.space();
            let opened = self.value()?;
            if opened {
                continue;
            }
            if self.after_value()? {
                return Ok(());
            }
        }
    }

    /// Reads a scalar, or the start of a container up to where its first value starts.
    /// Answers whether a value has to follow.
    fn value(&mut self) -> Result<bool, Fault> {
        match self.peek() {
            Some(b'{') => {
                self.open(true)?;
                self.space();
                if self.peek() == Some(b'}') {
                    return self.close().map(|()| false);
                }
                self.name()?;
                return Ok(true);
            }
            Some(b'[') => {
                self.open(false)?;
                self.space();
                if self.peek() == Some(b']') {
                    return self.close().map(|()| false);
                }
                return Ok(true);
            }
            Some(b'"') => {
                self.string()?;
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            _ => return Err(self.syntax("a value is expected")),
        }
        Ok(false)
    }

    /// Goes on after a value: to the next one, or out of the containers that end here. Answers whether all is read.
    fn after_value(&mut self) -> Result<bool, Fault> {
        loop {
            self.space();
            let Some(frame) = self.frames.last() else {
                return if self.at == self.text.len() { Ok(true) } else { Err(self.syntax("text after the value")) };
            };
            match (self.peek(), frame.is_object) {
                (Some(b','), true) => {
                    self.at += 1;
                    self.space();
                    self.name()?;
                    return Ok(false);
                }
                (Some(b','), false) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Some(b'}'), true) | (Some(b']'), false) => self.close()?,
                (_, true) => return Err(self.syntax("a comma or } is expected")),
                (_, false) => return Err(self.syntax("a comma or ] is expected")),
            }
        }
    }

    fn open(&mut self, is_object: bool) -> Result<(), Fault> {
        if self.frames.len() == self.depth_max {
            return Err(Fault::TooDeep { at: self.at, depth_max: self.depth_max });
        }
        self.frames.push(Frame { is_object, names_from: self.names.len() });
        self.at += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        let frame = self.frames.pop().expect("a container is closed only while one is open");
        self.at += 1;
        let names = &mut self.names[frame.names_from..];
        if names.len() > NAMES_COMPARED {
            names.sort_unstable();
            if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(duplicate(self.at, &pair[0]));
            }
        }
        self.names.truncate(frame.names_from);
        Ok(())
    }

    /// Reads a member's name and its colon.
    fn name(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax("a member name is expected"));
        }
        let from = self.at;
        let escaped = self.string()?;
        let quoted = &self.text[from..self.at];
        let name = if escaped {
            let plain: String = serde_json::from_str(quoted).map_err(|_| self.syntax("a bad member name"))?;
            Cow::Owned(plain)
        } else {
            Cow::Borrowed(&quoted[1..quoted.len() - 1])
        };
        let names_from = self.frames.last().map_or(0, |frame| frame.names_from);
        let before = &self.names[names_from..];
        if before.len() < NAMES_COMPARED && before.contains(&name) {
            return Err(duplicate(from, &name));
        }
        self.names.push(name);
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.syntax("a colon is expected"));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a string; answers whether it contains escapes.
    fn string(&mut self) -> Result<bool, Fault> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        let mut escaped = false;
        loop {
            while let Some(&byte) = bytes.get(self.at)
                && byte != b'"'
                && byte != b'\\'
                && byte >= 0x20
            {
                self.at += 1;
            }
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.syntax("a control character in a string")),
                None => return Err(self.syntax("the text ends inside a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => match self.hex4()? {
                0xDC00..=0xDFFF => Err(self.syntax("a lone surrogate escape")),
                0xD800..=0xDBFF => {
                    if !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
                        return Err(self.syntax("a lone surrogate escape"));
                    }
                    self.at += 1;
                    match self.hex4()? {
                        0xDC00..=0xDFFF => Ok(()),
                        _ => Err(self.syntax("a lone surrogate escape")),
                    }
                }
                _ => Ok(()),
            },
            _ => Err(self.syntax("a bad escape in a string")),
        }
    }

    /// Reads `uXXXX`, the backslash being read already.
    fn hex4(&mut self) -> Result<u32, Fault> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit * 16 + digit.ok_or_else(|| self.syntax("a bad escape in a string"))?;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == from { Err(self.syntax("a digit is expected")) } else { Ok(()) }
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.syntax("a value is expected"));
        }
        self.at += word.len();
        Ok(())
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn syntax(&self, what: &'static str) -> Fault {
        Fault::Syntax { at: self.at, what }
    }
}

fn duplicate(at: usize, name: &str) -> Fault {
    Fault::Duplicate { at, name: name.chars().take(NAME_SHOWN_CHARS).collect() }
}

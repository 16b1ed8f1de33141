//! Exact JSON text that is shared instead of copied: the stored row, the waiting callers and the answer are the same
//! bytes. A long one is a part of the message that it was read in, whose memory it takes over. Looks into none.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytes::Bytes;
use memchr::memchr2;
use serde_json::value::RawValue;

#[cfg(test)]
mod tests;

/// From this length on a text is not copied where that can be helped. A shorter one is: that costs less than the memory
/// of its whole message, kept for it.
pub const LONG_BYTES: usize = 64 << 10;

/// Exact JSON text. A clone is the same bytes.
#[derive(Clone)]
pub struct Payload(Text);

#[derive(Clone)]
enum Text {
    Own(Arc<str>),
    Part(Arc<Part>),
}

struct Part {
    message: String,
    range: Range<usize>,
}

impl Payload {
    /// A part of a message. A long one takes over the memory of the message.
    ///
    /// # Panics
    ///
    /// When `range` is no part of the text.
    pub fn part(message: String, range: Range<usize>) -> Payload {
        match message[range.clone()].len() < LONG_BYTES {
            true => Payload(Text::Own(message[range].into())),
            false => Payload(Text::Part(Arc::new(Part { message, range }))),
        }
    }

    /// Long enough that a copy of it is worth avoiding.
    pub fn is_long(&self) -> bool {
        self.len() >= LONG_BYTES
    }

    /// The same bytes, for a connection.
    pub fn bytes(&self) -> Bytes {
        Bytes::from_owner(self.clone())
    }

    /// The text on one line: between tokens a line break is worth a space, and inside a string there is none. Nobody
    /// else has it yet, or it is copied.
    #[must_use]
    pub fn one_line(self) -> Payload {
        if !has_line_break(&self) {
            return self;
        }
        let (message, range) = match self.0 {
            Text::Own(text) => return text.replace(['\n', '\r'], " ").into(),
            Text::Part(part) => match Arc::try_unwrap(part) {
                Ok(Part { message, range }) => (message, range),
                Err(part) => return part.text().replace(['\n', '\r'], " ").into(),
            },
        };
        let mut bytes = message.into_bytes();
        for byte in &mut bytes[range.clone()] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        let message = String::from_utf8(bytes).expect("a space in place of a line break leaves text as text");
        Payload(Text::Part(Arc::new(Part { message, range })))
    }
}

/// True when the text has more than one line.
pub fn has_line_break(text: &str) -> bool {
    memchr2(b'\n', b'\r', text.as_bytes()).is_some()
}

impl Part {
    fn text(&self) -> &str {
        &self.message[self.range.clone()]
    }
}

impl Deref for Payload {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Text::Own(text) => text,
            Text::Part(part) => part.text(),
        }
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Payload {
        Payload(Text::Own(text.into()))
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Payload {
        let range = 0..text.len();
        Payload::part(text, range)
    }
}

impl From<Cow<'_, str>> for Payload {
    fn from(text: Cow<'_, str>) -> Payload {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

impl From<Box<RawValue>> for Payload {
    fn from(raw: Box<RawValue>) -> Payload {
        String::from(Box::<str>::from(raw)).into()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        **self == **other
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

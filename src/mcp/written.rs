//! Texts on their way out: in one piece as long as they are short, and in several where a long result would have to be
//! copied to be put into its message. What is shared is sent as it is stored. Parses nothing.

use axum::body::Bytes;

use super::frame;
use super::id::Id;

#[cfg(test)]
mod tests;

/// The JSON text of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// In one piece.
    Whole(String),
    /// In pieces, without a line break, that share what is stored.
    Pieces(Vec<Bytes>),
}

impl Written {
    /// The text in one piece.
    pub fn into_whole(self) -> String {
        match self {
            Written::Whole(text) => text,
            Written::Pieces(pieces) => {
                let mut text = String::new();
                push_pieces(&mut text, &pieces);
                text
            }
        }
    }

    /// Appends the text.
    pub fn push(&self, out: &mut String) {
        match self {
            Written::Whole(text) => out.push_str(text),
            Written::Pieces(pieces) => push_pieces(out, pieces),
        }
    }
}

impl From<String> for Written {
    fn from(text: String) -> Written {
        Written::Whole(text)
    }
}

fn push_pieces(out: &mut String, pieces: &[Bytes]) {
    out.reserve(pieces.iter().map(Bytes::len).sum());
    // Each piece was cut out of a text between characters.
    pieces.iter().for_each(|piece| out.push_str(&String::from_utf8_lossy(piece)));
}

/// A message on its way out: how it begins, and what follows where it was not put together.
#[derive(Debug, Default, PartialEq)]
pub struct Outgoing {
    /// All of a short message; of a long one what comes before its result.
    pub head: String,
    /// The rest of a long message, without a line break.
    pub rest: Vec<Bytes>,
}

impl Outgoing {
    /// The response to the request `id` with this result.
    pub fn result(id: &Id<'_>, result: &Written) -> Outgoing {
        let mut head = String::new();
        match result {
            Written::Whole(text) => {
                frame::result(&mut head, id, text);
                Outgoing { head, rest: Vec::new() }
            }
            Written::Pieces(pieces) => {
                frame::result_head(&mut head, id);
                let mut rest = Vec::with_capacity(pieces.len() + 2);
                rest.extend(pieces.iter().cloned());
                rest.push(Bytes::from_static(b"}"));
                Outgoing { head, rest }
            }
        }
    }
}

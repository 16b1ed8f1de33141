//! One value of a row, and rows as bytes: a tag each, numbers in little-endian, texts with their length. Reads what was
//! damaged without a panic and without believing a length.

use uuid::Uuid;

/// A value that every driver has.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Absent.
    Null,
    /// A number or a time.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// An id.
    Id(Uuid),
    /// A text or a payload, exactly.
    Text(String),
}

impl Cell {
    /// About its bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Cell::Text(text) => text.len() + 8,
            _ => 16,
        }
    }
}

const NULL: u8 = 0;
const NUMBER: u8 = 1;
const NO: u8 = 2;
const YES: u8 = 3;
const ID: u8 = 4;
const TEXT: u8 = 5;

/// Appends a row.
pub(super) fn encode(row: &[Cell], out: &mut Vec<u8>) {
    for cell in row {
        match cell {
            Cell::Null => out.push(NULL),
            Cell::Number(number) => {
                out.push(NUMBER);
                out.extend_from_slice(&number.to_le_bytes());
            }
            Cell::Flag(flag) => out.push(if *flag { YES } else { NO }),
            Cell::Id(id) => {
                out.push(ID);
                out.extend_from_slice(id.as_bytes());
            }
            Cell::Text(text) => {
                out.push(TEXT);
                out.extend_from_slice(&(text.len() as u64).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// Takes a row of so many cells from the front; `None` when there is none.
pub(super) fn decode(columns: usize, from: &mut &[u8]) -> Option<Vec<Cell>> {
    (0..columns).map(|_| cell(from)).collect()
}

fn cell(from: &mut &[u8]) -> Option<Cell> {
    let (tag, rest) = from.split_first()?;
    *from = rest;
    Some(match *tag {
        NULL => Cell::Null,
        NUMBER => Cell::Number(i64::from_le_bytes(taken(from)?)),
        NO => Cell::Flag(false),
        YES => Cell::Flag(true),
        ID => Cell::Id(Uuid::from_bytes(taken(from)?)),
        TEXT => {
            let length = usize::try_from(u64::from_le_bytes(taken(from)?)).ok()?;
            let (text, rest) = from.split_at_checked(length)?;
            *from = rest;
            Cell::Text(std::str::from_utf8(text).ok()?.to_owned())
        }
        _ => return None,
    })
}

fn taken<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*bytes)
}

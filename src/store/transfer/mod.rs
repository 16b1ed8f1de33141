//! A whole store on its way into another one, of whatever kind: pages of rows as of one moment. Knows tables and cells and
//! nothing of what they mean; the drivers read and write them, `archive` keeps them in a file. What holds afterwards is
//! checked by the rules of `store::verify`.

pub mod archive;
mod cells;
mod routes;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

pub use cells::Cell;
pub use routes::{Carried, Source, into_archive, into_postgres, into_sqlite, verify};
pub use tables::{Column, Kind, NOT_CARRIED, NOT_CARRIED_COLUMNS, TABLES, Table, table};

use super::{Error, Result};

/// Rows that travel together, at most.
pub const PAGE_ROWS: usize = 256;
/// Bytes that travel together, unless one row has more.
pub const PAGE_BYTES: usize = 1 << 20;
/// Pages under way between the one who reads and the one who writes.
const UNDER_WAY: usize = 2;

/// Rows of one table. Each has a cell for each of its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Which table.
    pub table: &'static Table,
    /// Its rows.
    pub rows: Vec<Vec<Cell>>,
}

/// What travels: pages of the tables in their order, and a last word. Without it something broke off.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Rows.
    Page(Page),
    /// That was all.
    End,
}

/// The receiving end. An error is the last thing that comes.
pub type Parts = mpsc::Receiver<Result<Part>>;

/// The giving end and the receiving end.
pub fn way() -> (mpsc::Sender<Result<Part>>, Parts) {
    mpsc::channel(UNDER_WAY)
}

/// What is to be told when parts stop to come without a last word.
pub fn broken_off() -> Error {
    Error::Internal("the rows stopped coming before the last one".into())
}

/// Collects rows until they are worth a page.
#[derive(Debug, Default)]
pub struct Pager {
    rows: Vec<Vec<Cell>>,
    bytes: usize,
}

impl Pager {
    /// Takes a row; a full page comes back.
    pub fn push(&mut self, table: &'static Table, row: Vec<Cell>) -> Option<Page> {
        self.bytes += row.iter().map(Cell::size).sum::<usize>();
        self.rows.push(row);
        if self.rows.len() >= PAGE_ROWS || self.bytes >= PAGE_BYTES { self.rest(table) } else { None }
    }

    /// What is left of a table.
    pub fn rest(&mut self, table: &'static Table) -> Option<Page> {
        self.bytes = 0;
        (!self.rows.is_empty()).then(|| Page { table, rows: std::mem::take(&mut self.rows) })
    }
}

/// How many rows of each table there were, and which, whatever their order: equal sums, equal stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums(BTreeMap<&'static str, Sum>);

/// Of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    lanes: [u64; 4],
}

impl Sums {
    /// Adds a page's rows.
    pub fn add(&mut self, page: &Page) {
        let sum = self.0.entry(page.table.name).or_default();
        let mut text = Vec::new();
        for row in &page.rows {
            text.clear();
            cells::encode(row, &mut text);
            let digest = Sha256::digest(&text);
            sum.rows += 1;
            for (lane, bytes) in sum.lanes.iter_mut().zip(digest.as_chunks::<8>().0) {
                *lane = lane.wrapping_add(u64::from_le_bytes(*bytes));
            }
        }
    }

    /// Rows of a table.
    pub fn rows(&self, table: &str) -> u64 {
        self.0.get(table).map_or(0, |sum| sum.rows)
    }

    /// The table in which the two differ first.
    pub fn differs(&self, other: &Sums) -> Option<&'static str> {
        let of = |sums: &Sums, name: &str| sums.0.get(name).copied().unwrap_or_default();
        TABLES.iter().map(|table| table.name).find(|name| of(self, name) != of(other, name))
    }

    /// As it is written into an archive: rows and digest per table.
    fn told(&self) -> BTreeMap<&'static str, (u64, String)> {
        let told = |table: &Table| {
            let sum = self.0.get(table.name).copied().unwrap_or_default();
            let digest: Vec<u8> = sum.lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
            (table.name, (sum.rows, hex::encode(digest)))
        };
        TABLES.iter().map(told).collect()
    }
}

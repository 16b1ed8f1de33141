//! A store in one file: a line that says what it is, frames of rows, the sums of all tables, and a digest of everything
//! before it. Written and read as a stream, a page at a time. What was cut, changed or lengthened is refused; what was read
//! before that is the reader's to throw away.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::cells::{self, Cell};
use super::{Kind, Page, Part, Parts, Sums, TABLES, Table, broken_off, table, way};
use crate::store::{Error, Result};

/// What this program writes and reads. Another number has other tables or another form.
pub const FORMAT: u32 = 1;

const FIRST_LINE: &str = "durable-mcp archive ";
/// The longest first line.
const FIRST_LINE_MAX: usize = 64;
/// Begins a table: its description as JSON.
const TABLE: u8 = b'T';
/// Rows of the table that began last.
const ROWS: u8 = b'R';
/// The sums as JSON; the digest follows, and nothing else.
const END: u8 = b'E';
/// A longer frame is none. A page is 1 MiB, unless one row alone is larger.
const FRAME_BYTES_MAX: u64 = 1 << 30;

/// How a table is described, so that another program's archive is not misread.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Described {
    name: String,
    columns: Vec<(String, String)>,
}

impl Described {
    fn of(table: &Table) -> Described {
        let columns = table.columns.iter();
        let columns = columns.map(|column| (column.name.to_owned(), format!("{:?}", column.kind).to_lowercase()));
        Described { name: table.name.to_owned(), columns: columns.collect() }
    }
}

/// Whether a file begins as an archive does.
pub fn is_archive(path: &Path) -> bool {
    let mut start = vec![0; FIRST_LINE.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == FIRST_LINE.as_bytes()
}

/// Writes what comes into a fresh file, and waits until it is on the disk. Blocks.
///
/// # Errors
///
/// The error that comes instead of rows, or [`Error::CannotWrite`]. The file is then of no use.
pub fn write(file: File, path: &Path, parts: &mut Parts) -> Result<Sums> {
    let failed = |error: std::io::Error| Error::CannotWrite(format!("{}: {error}", path.display()));
    let mut out = Hashing { inner: BufWriter::with_capacity(1 << 16, file), hash: Sha256::new() };
    out.write_all(format!("{FIRST_LINE}{FORMAT}\n").as_bytes()).map_err(failed)?;
    let (mut sums, mut body) = (Sums::default(), Vec::new());
    let mut begun = 0;
    loop {
        let part = parts.blocking_recv().ok_or_else(broken_off)??;
        let until = match &part {
            Part::Page(page) => position(page.table) + 1,
            Part::End => TABLES.len(),
        };
        // Every table is named, also one without rows, so that a missing one is seen.
        for table in &TABLES[begun..until.max(begun)] {
            frame(&mut out, TABLE, &json(&Described::of(table))?).map_err(failed)?;
        }
        begun = until.max(begun);
        match part {
            Part::Page(page) if position(page.table) + 1 < begun => {
                return Err(Error::Internal(format!("rows of {} came late", page.table.name)));
            }
            Part::Page(page) => {
                body.clear();
                page.rows.iter().for_each(|row| cells::encode(row, &mut body));
                sums.add(&page);
                frame(&mut out, ROWS, &body).map_err(failed)?;
            }
            Part::End => break,
        }
    }
    frame(&mut out, END, &json(&sums.told())?).map_err(failed)?;
    let digest = out.hash.clone().finalize();
    out.inner.write_all(&digest).map_err(failed)?;
    let file = out.inner.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(sums)
}

/// Reads an archive on a thread of its own.
pub fn read(path: &Path) -> Parts {
    let (giving, parts) = way();
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || {
        let read = each(&path, &mut |page| match giving.blocking_send(Ok(Part::Page(page))) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::Internal("nobody wants the rows any more".into())),
        });
        // Whoever left needs no last word.
        let _ = giving.blocking_send(read.map(|_| Part::End));
    });
    parts
}

/// Reads an archive to its end and gives each page. Blocks. What `give` got counts only when this returns well.
///
/// # Errors
///
/// [`Error::Damaged`] for whatever is not exactly what was written, [`Error::Unavailable`] for another program's, and what
/// `give` says.
pub fn each(path: &Path, give: &mut dyn FnMut(Page) -> Result<()>) -> Result<Sums> {
    let name = path.display();
    let damaged = |what: &str| Error::Damaged(format!("the archive {name} {what}"));
    let file = File::open(path).map_err(|error| Error::Unavailable(format!("{name}: {error}")))?;
    let mut input = Hashing { inner: BufReader::with_capacity(1 << 16, file), hash: Sha256::new() };
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        input.read_exact(&mut byte).map_err(|_| damaged("ends in its first line"))?;
        line.push(byte[0]);
        if line.len() > FIRST_LINE_MAX {
            return Err(damaged("is no archive of durable-mcp"));
        }
    }
    let format = std::str::from_utf8(&line).ok().and_then(|line| line.trim_end().strip_prefix(FIRST_LINE));
    match format.map(str::parse::<u32>) {
        Some(Ok(FORMAT)) => {}
        Some(Ok(other)) => {
            return Err(Error::Unavailable(format!(
                "the archive {name} has format {other}, this program reads {FORMAT}; use the durable-mcp that wrote it"
            )));
        }
        _ => return Err(damaged("is no archive of durable-mcp")),
    }
    let mut sums = Sums::default();
    let mut tables = TABLES.iter();
    let mut open: Option<&'static Table> = None;
    loop {
        let (tag, body) = next_frame(&mut input).map_err(|_| damaged("is cut off, or was changed"))?;
        match tag {
            TABLE => {
                let described: Described = serde_json::from_slice(&body).map_err(|_| damaged("was changed"))?;
                open = tables.next();
                if open.is_none_or(|table| Described::of(table) != described) {
                    return Err(damaged("has other tables than this program"));
                }
            }
            ROWS => {
                let open = open.ok_or_else(|| damaged("was changed"))?;
                let page = page(open, &body).ok_or_else(|| damaged("was changed"))?;
                sums.add(&page);
                give(page)?;
            }
            END => {
                let told: serde_json::Value = serde_json::from_slice(&body).map_err(|_| damaged("was changed"))?;
                let expected = input.hash.clone().finalize();
                let mut digest = [0; 32];
                input.inner.read_exact(&mut digest).map_err(|_| damaged("is cut off"))?;
                let mut more = [0];
                let trailing = input.inner.read(&mut more).map_err(|_| damaged("can not be read to its end"))?;
                let same = serde_json::to_value(sums.told()).is_ok_and(|counted| counted == told);
                if expected[..] != digest || !same || tables.next().is_some() || trailing > 0 {
                    return Err(damaged("was changed, or is not whole"));
                }
                return Ok(sums);
            }
            _ => return Err(damaged("was changed")),
        }
    }
}

/// The rows of a frame, each cell of its column's kind.
fn page(open: &'static Table, mut body: &[u8]) -> Option<Page> {
    let mut rows = Vec::new();
    while !body.is_empty() {
        let row = cells::decode(open.columns.len(), &mut body)?;
        let fits = row.iter().zip(open.columns).all(|(cell, column)| match cell {
            Cell::Null => column.optional,
            Cell::Number(_) => column.kind == Kind::Number,
            Cell::Flag(_) => column.kind == Kind::Flag,
            Cell::Id(_) => matches!(column.kind, Kind::Id | Kind::Operation),
            Cell::Text(_) => column.kind == Kind::Text,
        });
        rows.push(fits.then_some(row)?);
    }
    (!rows.is_empty()).then_some(Page { table: table(open.name)?, rows })
}

fn position(table: &Table) -> usize {
    TABLES.iter().position(|other| other == table).unwrap_or(TABLES.len())
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::Internal(error.to_string()))
}

fn frame(out: &mut impl Write, tag: u8, body: &[u8]) -> std::io::Result<()> {
    out.write_all(&[tag])?;
    out.write_all(&(body.len() as u64).to_le_bytes())?;
    out.write_all(body)
}

fn next_frame(input: &mut impl Read) -> std::io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    input.read_exact(&mut head)?;
    let [tag, length @ ..] = head;
    let length = u64::from_le_bytes(length);
    if length > FRAME_BYTES_MAX {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    // Memory grows with what is there, not with what a damaged length says.
    let mut body = Vec::new();
    input.by_ref().take(length).read_to_end(&mut body)?;
    if body.len() as u64 != length {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok((tag, body))
}

/// Passes bytes on and counts them into a digest.
struct Hashing<T> {
    inner: T,
    hash: Sha256,
}

impl<T: Write> Write for Hashing<T> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Hashing<T> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(into)?;
        self.hash.update(&into[..read]);
        Ok(read)
    }
}

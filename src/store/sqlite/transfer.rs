//! The rows of a file as they travel, and a fresh file made of rows that come. Reads one moment while others write; writes
//! one transaction into a file that nobody else knows.

use std::fs::File;
use std::path::Path;

use refinery::Runner;
use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::backup::{cannot_write, remove};
use super::fault::{Fault, Sql};
use super::inspect;
use super::migrate;
use super::open::{create_private, in_the_way, name_file};
use super::payloads;
use crate::store::transfer::{Cell, Column, Kind, Pager, Part, Parts, Sums, TABLES, Table, broken_off, way};
use crate::store::{Error, Result};

/// Reads a store's file on a thread of its own, as it was at one moment.
pub fn rows_of(path: &Path) -> Parts {
    let (giving, parts) = way();
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || {
        let read = read(&path, &giving);
        // Whoever left needs no last word.
        let _ = giving.blocking_send(read.map(|()| Part::End));
    });
    parts
}

fn read(path: &Path, giving: &mpsc::Sender<Result<Part>>) -> Result<()> {
    let connection = inspect::connect(path)?;
    let version = inspect::version(&connection, path)?;
    if version < migrate::known() {
        return Err(Error::Unavailable(format!(
            "{} has schema version {version}, an archive has {}; start once with it, or take a copy of the file",
            path.display(),
            migrate::known()
        )));
    }
    let named = |fault: Fault| name_file(path, fault.error);
    // One transaction, so that all tables are of one moment.
    let moment = connection.unchecked_transaction().map_err(|error| named(error.into()))?;
    for table in TABLES {
        let (mut pager, mut gone) = (Pager::default(), false);
        let mut give = |page| gone = gone || giving.blocking_send(Ok(Part::Page(page))).is_err();
        let mut read = || -> Sql<()> {
            let mut statement = moment.prepare(&select(table))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let cells = table.columns.iter().enumerate();
                let cells: Sql<Vec<Cell>> = cells.map(|(at, column)| cell(column, row.get_ref(at)?)).collect();
                pager.push(table, cells?).into_iter().for_each(&mut give);
            }
            pager.rest(table).into_iter().for_each(&mut give);
            Ok(())
        };
        read().map_err(named)?;
        if gone {
            return Err(broken_off());
        }
    }
    Ok(())
}

/// The rows of a table that travel.
fn select(table: &Table) -> String {
    format!("SELECT {} FROM {}{}", table.column_list(), table.name, table.condition())
}

fn cell(column: &Column, value: ValueRef<'_>) -> Sql<Cell> {
    let text = |value: ValueRef<'_>| -> Sql<String> {
        Ok(value.as_str().map_err(|error| Fault::damaged(format!("{}: {error}", column.name)))?.to_owned())
    };
    let no_id = || Fault::damaged(format!("{} is no id", column.name));
    Ok(match (value, column.kind) {
        (ValueRef::Null, _) => Cell::Null,
        (ValueRef::Integer(number), Kind::Number) => Cell::Number(number),
        (ValueRef::Integer(flag), Kind::Flag) => Cell::Flag(flag != 0),
        (ValueRef::Text(_), Kind::Text) => Cell::Text(text(value)?),
        (ValueRef::Text(_), Kind::Id) => Cell::Id(Uuid::parse_str(&text(value)?).map_err(|_| no_id())?),
        (ValueRef::Blob(bytes), Kind::Operation) => Cell::Id(Uuid::from_slice(bytes).map_err(|_| no_id())?),
        _ => return Err(Fault::damaged(format!("{} is of another type", column.name))),
    })
}

/// Makes a fresh private file at `path` with the present schema and the rows that come; whole and on the disk in the end,
/// or gone. Blocks.
///
/// # Errors
///
/// The error that comes instead of rows, or what is wrong with the file or a row.
pub fn fill(path: &Path, parts: &mut Parts) -> Result<Sums> {
    remove(path).map_err(|error| cannot_write(path, &error))?;
    create_private(path).map_err(|error| in_the_way(path, &error))?;
    let filled = write(path, parts);
    if filled.is_err() {
        // A part of a store is of no use; its being there says nothing new.
        let _ = remove(path);
    }
    filled
}

fn write(path: &Path, parts: &mut Parts) -> Result<Sums> {
    let named = |error: rusqlite::Error| name_file(path, Fault::from(error).error);
    let mut connection = Connection::open(path).map_err(named)?;
    // Nobody knows the file before it is whole: it is synced once.
    connection.pragma_update(None, "synchronous", "OFF").map_err(named)?;
    Runner::new(&migrate::migrations())
        .run(&mut connection)
        .map_err(|error| Error::CannotWrite(format!("{}: {error}", path.display())))?;
    let mut sums = Sums::default();
    let transaction = connection.transaction().map_err(named)?;
    while let Part::Page(page) = parts.blocking_recv().ok_or_else(broken_off)?? {
        let sql = insert(page.table);
        for row in &page.rows {
            let values: Vec<Value> =
                row.iter().zip(page.table.columns).map(|(cell, column)| value(cell, column)).collect();
            put(&transaction, (page.table, &sql), &values).map_err(|error| match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::ConstraintViolation) => {
                    Error::Damaged(format!("a row of {} is not one that a store has: {error}", page.table.name))
                }
                _ => named(error),
            })?;
        }
        sums.add(&page);
    }
    transaction.commit().map_err(named)?;
    connection.close().map_err(|(_, error)| named(error))?;
    File::open(path).and_then(|file| file.sync_all()).map_err(|error| cannot_write(path, &error))?;
    Ok(sums)
}

/// One row into a table. Payloads are a view: where a piece belongs is said in one place.
fn put(connection: &Connection, (table, insert): (&Table, &str), values: &[Value]) -> rusqlite::Result<usize> {
    match values {
        [id, Value::Text(kind), Value::Integer(chunk), Value::Text(piece)] if table.name == "payloads" => {
            payloads::insert_piece(connection, (id, kind), *chunk, piece)
        }
        values => connection.prepare_cached(insert)?.execute(rusqlite::params_from_iter(values)),
    }
}

fn insert(table: &Table) -> String {
    let places = vec!["?"; table.columns.len()].join(", ");
    format!("INSERT INTO {} ({}) VALUES ({places})", table.name, table.column_list())
}

fn value(cell: &Cell, column: &Column) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Number(number) => Value::Integer(*number),
        Cell::Flag(flag) => Value::Integer(i64::from(*flag)),
        Cell::Id(id) if column.kind == Kind::Operation => Value::Blob(id.as_bytes().to_vec()),
        Cell::Id(id) => Value::Text(id.hyphenated().to_string()),
        Cell::Text(text) => Value::Text(text.clone()),
    }
}

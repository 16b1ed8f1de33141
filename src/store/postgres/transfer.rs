//! The rows of a database as they travel, and an empty database made of rows that come. Reads one moment while others
//! write; writes one transaction, which commits only after what it wrote was read back and found to be the same.

use std::sync::Arc;

use futures_util::TryStreamExt;
use tokio::sync::mpsc;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::db::Db;
use super::fault::{Fault, Sql};
use super::migrate::{self, Hand};
use super::migrations::{self, Verdict};
use super::pool::{Connection, Connector, quoted};
use super::registry::clock;
use super::rows::SHARDS;
use super::settings::PostgresSettings;
use super::tls::Target;
use crate::store::transfer::{Cell, Column, Kind, Page, Pager, Part, Parts, Sums, TABLES, Table, broken_off, way};
use crate::store::{Error, Result};

/// Reads the store at `url`, as it was at one moment.
pub fn rows_of(url: &str, settings: &PostgresSettings) -> Parts {
    let (giving, parts) = way();
    let (url, settings) = (url.to_owned(), settings.clone());
    tokio::spawn(async move {
        let read = read(&url, &settings, &giving).await;
        // Whoever left needs no last word.
        let _ = giving.send(read.map(|()| Part::End)).await;
    });
    parts
}

async fn read(url: &str, settings: &PostgresSettings, giving: &mpsc::Sender<Result<Part>>) -> Result<()> {
    let client = connect(url, settings).await?;
    let moment = begin("REPEATABLE READ READ ONLY", settings);
    client.batch_execute(&moment).await.map_err(|error| Fault::from(error).error)?;
    let history = migrate::history(Hand { client: &client, begin: None }).await.map_err(|fault| fault.error)?;
    let (known, applied) = (migrations::embedded(), history.unwrap_or_default());
    if migrations::judge(&known, &applied)? != Verdict::Fits {
        return Err(Error::TooOld { found: applied.len() as i64, known: migrations::newest(&known) });
    }
    each_row(&client, &mut To::Way(giving)).await?;
    client.batch_execute("ROLLBACK").await.map_err(|error| Fault::from(error).error)
}

/// A connection whose statements may take as long as they do.
async fn connect(url: &str, settings: &PostgresSettings) -> Result<Connection> {
    let target = Target::of(url, settings.root_certificates.as_deref())?;
    let connector = Connector::new(target, Arc::new(settings.clone()));
    connector.connect().await.map_err(|fault| fault.error)
}

/// Begins a transaction that knows its schema, through a pooler too, and that may take long.
fn begin(how: &str, settings: &PostgresSettings) -> String {
    let mut sql = format!("BEGIN ISOLATION LEVEL {how}; SET LOCAL statement_timeout = 0");
    if let Some(schema) = &settings.schema {
        sql.push_str(&format!("; SET LOCAL search_path = {}", quoted(schema)));
    }
    sql
}

/// Where rows go that are read.
enum To<'a> {
    Way(&'a mpsc::Sender<Result<Part>>),
    Sums(&'a mut Sums),
}

impl To<'_> {
    async fn give(&mut self, page: Page) -> Result<()> {
        match self {
            To::Way(giving) => giving.send(Ok(Part::Page(page))).await.map_err(|_| broken_off()),
            To::Sums(sums) => {
                sums.add(&page);
                Ok(())
            }
        }
    }
}

/// Gives every row that travels, table by table.
async fn each_row(client: &Connection, to: &mut To<'_>) -> Result<()> {
    for table in TABLES {
        let mut pager = Pager::default();
        let sql = format!("SELECT {} FROM {}{}", table.column_list(), table.name, table.condition());
        let none: [(&i64, Type); 0] = [];
        let rows = client.query_typed_raw(&sql, none).await.map_err(|error| Fault::from(error).error)?;
        let mut rows = std::pin::pin!(rows);
        while let Some(row) = rows.try_next().await.map_err(|error| Fault::from(error).error)? {
            if let Some(page) = pager.push(table, cells(table, &row).map_err(|fault| fault.error)?) {
                to.give(page).await?;
            }
        }
        if let Some(page) = pager.rest(table) {
            to.give(page).await?;
        }
    }
    Ok(())
}

fn cells(table: &Table, row: &Row) -> Sql<Vec<Cell>> {
    table.columns.iter().enumerate().map(|(at, column)| cell(column, row, at)).collect()
}

fn cell(column: &Column, row: &Row, at: usize) -> Sql<Cell> {
    Ok(match column.kind {
        Kind::Number => row.try_get::<_, Option<i64>>(at)?.map_or(Cell::Null, Cell::Number),
        Kind::Flag => row.try_get::<_, Option<bool>>(at)?.map_or(Cell::Null, Cell::Flag),
        Kind::Id | Kind::Operation => row.try_get::<_, Option<Uuid>>(at)?.map_or(Cell::Null, Cell::Id),
        Kind::Text => row.try_get::<_, Option<String>>(at)?.map_or(Cell::Null, Cell::Text),
    })
}

/// Fills the empty store at `url`, which gets its schema first where it has none, with the rows that come: all of them, or
/// none.
///
/// # Errors
///
/// The error that comes instead of rows; [`Error::CannotWrite`] for a store that holds something or is in use; what is
/// wrong with a row.
pub async fn load(url: &str, settings: &PostgresSettings, parts: &mut Parts) -> Result<Sums> {
    let settings = PostgresSettings { migrates: true, ..settings.clone() };
    Db::new(url, Arc::new(settings.clone()))?.migrate().await?;
    let client = connect(url, &settings).await?;
    // Whoever writes meanwhile and this one do not both commit.
    let sql = begin("SERIALIZABLE", &settings);
    client.batch_execute(&sql).await.map_err(|error| Fault::from(error).error)?;
    refuse_used(&client).await?;
    let mut sums = Sums::default();
    while let Part::Page(page) = parts.recv().await.ok_or_else(broken_off)?? {
        put(&client, &page).await?;
        sums.add(&page);
    }
    let mut written = Sums::default();
    each_row(&client, &mut To::Sums(&mut written)).await?;
    if let Some(table) = written.differs(&sums) {
        return Err(Error::Damaged(format!("{table} reads back differently; nothing was kept of what came")));
    }
    client.batch_execute("COMMIT").await.map_err(|error| match Fault::from(error).error {
        Error::Unavailable(told) => Error::Unavailable(format!(
            "{told}; it is not known whether the rows were kept: `durable-mcp db status` shows whether there are any"
        )),
        error => error,
    })?;
    for table in TABLES {
        // Only for better plans: what fails here comes by itself later.
        let _ = client.batch_execute(&format!("ANALYZE {}", table.name)).await;
    }
    Ok(sums)
}

const LIVING: &str = concat!("SELECT count(*) FROM processes WHERE expires_at_ms > ", clock!());

async fn refuse_used(client: &Connection) -> Result<()> {
    let count = async |sql: &str| -> Sql<i64> {
        let rows = client.query_typed(sql, &[]).await?;
        Ok(rows.first().map_or(Ok(0), |row| row.try_get(0))?)
    };
    if count(LIVING).await.map_err(|fault| fault.error)? > 0 {
        return Err(Error::CannotWrite("the database is in use by a process of durable-mcp".into()));
    }
    for table in TABLES {
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT 1) t", table.name);
        if count(&sql).await.map_err(|fault| fault.error)? > 0 {
            return Err(Error::CannotWrite(format!(
                "the database holds executions or other rows already (in {}); name an empty one, or a schema of its \
                 own with store.schema",
                table.name
            )));
        }
    }
    Ok(())
}

/// A column of a page.
enum Values<'a> {
    Numbers(Vec<Option<i64>>),
    Flags(Vec<Option<bool>>),
    Ids(Vec<Option<Uuid>>),
    Texts(Vec<Option<&'a str>>),
}

impl Values<'_> {
    fn param(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Values::Numbers(values) => (values, Type::INT8_ARRAY),
            Values::Flags(values) => (values, Type::BOOL_ARRAY),
            Values::Ids(values) => (values, Type::UUID_ARRAY),
            Values::Texts(values) => (values, Type::TEXT_ARRAY),
        }
    }

    fn sql(&self) -> &'static str {
        match self {
            Values::Numbers(_) => "BIGINT[]",
            Values::Flags(_) => "BOOLEAN[]",
            Values::Ids(_) => "UUID[]",
            Values::Texts(_) => "TEXT[]",
        }
    }
}

async fn put(client: &Connection, page: &Page) -> Result<()> {
    let table = page.table;
    let mut columns: Vec<(&str, Values<'_>)> = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        columns.push((column.name, values(page, at)?));
    }
    if let Some((name, of)) = shard_of(table) {
        let at = table.columns.iter().position(|column| column.name == of);
        let shard = |row: &Vec<Cell>| match at.map(|at| &row[at]) {
            Some(Cell::Id(id)) => Some(i64::from(id.as_bytes()[15]) % SHARDS),
            _ => None,
        };
        columns.push((name, Values::Numbers(page.rows.iter().map(shard).collect())));
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let places: Vec<String> =
        columns.iter().enumerate().map(|(at, (_, values))| format!("${}::{}", at + 1, values.sql())).collect();
    let names = names.join(", ");
    let sql = format!(
        "INSERT INTO {} ({names}) SELECT {names} FROM unnest({}) AS u ({names})",
        table.name,
        places.join(", ")
    );
    let params: Vec<_> = columns.iter().map(|(_, values)| values.param()).collect();
    let put = client.execute_typed(&sql, &params).await;
    put.map(drop).map_err(|error| match error.code().map(tokio_postgres::error::SqlState::code) {
        Some(code) if code.starts_with("23") => {
            Error::Damaged(format!("a row of {} is not one that a store has (SQLSTATE {code})", table.name))
        }
        _ => Fault::from(error).error,
    })
}

/// The column that says where a row lies, and the id it follows from.
fn shard_of(table: &Table) -> Option<(&'static str, &'static str)> {
    match table.name {
        "session_messages" => Some(("execution_shard", "execution_id")),
        _ => table.sharded_by.map(|of| ("shard", of)),
    }
}

fn values(page: &Page, at: usize) -> Result<Values<'_>> {
    let column = &page.table.columns[at];
    let strange = || Error::Damaged(format!("{}.{} is of another type", page.table.name, column.name));
    let cells = page.rows.iter().map(|row| &row[at]);
    macro_rules! column_of {
        ($kind:ident, $form:ident, $take:expr) => {
            cells
                .map(|cell| match cell {
                    Cell::Null => Ok(None),
                    Cell::$form(value) => $take(value).map(Some),
                    _ => Err(strange()),
                })
                .collect::<Result<Vec<_>>>()
                .map(Values::$kind)
        };
    }
    match column.kind {
        Kind::Number => column_of!(Numbers, Number, |value: &i64| Ok(*value)),
        Kind::Flag => column_of!(Flags, Flag, |value: &bool| Ok(*value)),
        Kind::Id | Kind::Operation => column_of!(Ids, Id, |value: &Uuid| Ok(*value)),
        Kind::Text => column_of!(Texts, Text, |value| text(value, page.table, column)),
    }
}

fn text<'a>(value: &'a str, table: &Table, column: &Column) -> Result<&'a str> {
    match value.contains('\0') {
        false => Ok(value),
        true => Err(Error::Damaged(format!(
            "a text in {}.{} holds the character U+0000, which PostgreSQL can not store",
            table.name, column.name
        ))),
    }
}

//! Many stored executions out of one: rows, events and payloads are copied by SQL, so that a store of any size is there in
//! seconds. Works on a store that no program has open.

use rusqlite::Connection;

use super::stores::On;

/// How the copies differ: so many, spread over so many hours before the one they are made from, the youngest last.
#[derive(Clone, Copy, Debug)]
pub struct Many {
    pub number: i64,
    pub hours: i64,
    /// One of ten has failed, and one of four belongs to `acme`.
    pub mixed: bool,
}

/// The minutes of these calls are as if nobody had counted yet.
const UNCOUNTED: &str = "DELETE FROM series; UPDATE series_closed SET until_ms = 0";

/// With the column that says whose a row is; and where each driver has payloads as short as these.
const TABLES: [(&str, &str); 2] = [("executions", "id"), ("execution_events", "execution_id")];
const SHORT_PAYLOADS: (&str, &str) = ("short_payloads", "execution_id");
const PAYLOADS: (&str, &str) = ("payloads", "execution_id");

/// The end of a copy's id, which says in which shard it lies: as good as by chance, whatever else its number decides.
const TAIL: &str = "((c.i * 2654435761) >> 16)";

/// What a column of a copy holds; `c.i` is its number and `c.at_ms` when it was called.
fn value(column: &str, id: &str, (table, id_column): (&str, &str), (many, made_ms): (Many, i64)) -> String {
    match column {
        "namespace" | "state" | "source" if !many.mixed => format!("m.{column}"),
        name if name == id_column => id.to_owned(),
        "shard" => format!("({TAIL} & 15)"),
        "key" => "NULL".into(),
        "tool" => "'tool-' || (c.i % 7)".into(),
        "namespace" => "CASE WHEN c.i % 4 = 0 THEN 'acme' ELSE m.namespace END".into(),
        "principal" => "CASE WHEN c.i % 1000 = 0 THEN 'rare' ELSE m.principal END".into(),
        "state" if table == "executions" => "CASE WHEN c.i % 10 = 0 THEN 'failed' ELSE m.state END".into(),
        "source" if table == "executions" => "CASE WHEN c.i % 10 = 0 THEN NULL ELSE m.source END".into(),
        name if name.ends_with("_at_ms") || name == "at_ms" => format!("c.at_ms + (m.{name} - {made_ms})"),
        name => format!("m.{name}"),
    }
}

/// Copies the one completed execution of the store.
pub async fn multiply(on: On, url: &str, many: Many) {
    match on {
        On::Sqlite => of_sqlite(url.strip_prefix("sqlite:").unwrap(), many),
        On::Postgres => of_postgres(url, many).await,
    }
}

fn of_sqlite(path: &str, many: Many) {
    let id = &format!(
        "lower(printf('%08x-%04x-7%03x-8%03x-%012x', c.at_ms >> 16, c.at_ms & 65535, c.i & 4095, c.i >> 12, {TAIL}))"
    );
    let database = Connection::open(path).unwrap();
    let (model, made_ms): (String, i64) = database
        .query_row("SELECT id, created_at_ms FROM executions", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let (number, span_ms) = (many.number, many.hours * 3_600_000);
    let clones = format!(
        "PRAGMA synchronous = OFF; CREATE TEMP TABLE clones AS WITH RECURSIVE n(i) AS \
         (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {number}) \
         SELECT i, {made_ms} - {span_ms} + i * {span_ms} / {number} AS at_ms FROM n"
    );
    database.execute_batch(&clones).unwrap();
    database.execute_batch(UNCOUNTED).unwrap();
    let tx = database.unchecked_transaction().unwrap();
    for (table, id_column) in TABLES.into_iter().chain([SHORT_PAYLOADS]) {
        let mut statement = tx.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).unwrap();
        let columns = statement.query_map([], |row| row.get(0)).unwrap();
        let columns: Vec<String> = columns.collect::<rusqlite::Result<_>>().unwrap();
        let values: Vec<String> =
            columns.iter().map(|column| value(column, id, (table, id_column), (many, made_ms))).collect();
        let sql = format!(
            "INSERT INTO {table} ({}) SELECT {} FROM clones c, {table} m WHERE m.{id_column} = ?1",
            columns.join(", "),
            values.join(", ")
        );
        tx.execute(&sql, [&model]).unwrap();
    }
    tx.commit().unwrap();
    database.execute_batch("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
}

async fn of_postgres(url: &str, many: Many) {
    let id = &format!(
        "(substr(c.h, 1, 8) || '-' || substr(c.h, 9, 4) || '-7' || lpad(to_hex(c.i & 4095), 3, '0') || '-8' \
         || lpad(to_hex(c.i >> 12), 3, '0') || '-' || lpad(to_hex({TAIL}), 12, '0'))::uuid"
    );
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let row = client.query_one("SELECT id::text, created_at_ms FROM executions", &[]).await.unwrap();
    let (model, made_ms): (String, i64) = (row.get(0), row.get(1));
    let (number, span_ms) = (many.number, many.hours * 3_600_000);
    let clones = format!(
        "CREATE TEMP TABLE clones AS SELECT i, at_ms, lpad(to_hex(at_ms), 12, '0') AS h FROM \
         (SELECT i, {made_ms} - {span_ms} + i * {span_ms} / {number} AS at_ms FROM generate_series(0::bigint, {number} - 1) i) n"
    );
    client.batch_execute(&clones).await.unwrap();
    client.batch_execute(UNCOUNTED).await.unwrap();
    for (table, id_column) in TABLES.into_iter().chain([PAYLOADS]) {
        let names = "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 \
                     AND NOT attisdropped AND attgenerated = '' ORDER BY attnum";
        let columns = client.query(names, &[&table]).await.unwrap();
        let columns: Vec<String> = columns.iter().map(|row| row.get(0)).collect();
        let values: Vec<String> =
            columns.iter().map(|column| value(column, id, (table, id_column), (many, made_ms))).collect();
        let sql = format!(
            "INSERT INTO {table} ({}) SELECT {} FROM clones c, {table} m WHERE m.{id_column} = '{model}'::uuid",
            columns.join(", "),
            values.join(", ")
        );
        client.batch_execute(&sql).await.unwrap();
    }
    client.batch_execute("ANALYZE").await.unwrap();
}

//! Numbers: what stands in the file now, whole logs for counting, and the minutes that were counted.

use async_trait::async_trait;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::counting;
use super::events;
use super::fault::{Fault, Sql};
use super::lists::Read;
use super::tx::Tx;
use crate::model::id::ExecutionId;
use crate::store::Result;
use crate::store::series::{
    Counted, Ended, EndedQuery, Log, OpenQuery, PutSeries, SeriesQuery, SeriesRow, SeriesStore, Standing, ToRead, Whose,
};

#[async_trait]
impl SeriesStore for SqliteStore {
    async fn standing(&self, whose: Whose, now_ms: i64) -> Result<Standing> {
        self.list(move |read| standing(read, &whose, now_ms)).await
    }

    async fn logs(&self, ids: Vec<ExecutionId>) -> Result<Vec<Log>> {
        self.list(move |read| ids.into_iter().map(|id| Ok((id, whole(read.connection, id)?))).collect()).await
    }

    async fn open_in(&self, query: OpenQuery) -> Result<Vec<ToRead>> {
        self.list(move |read| counting::open(read.connection, &query)).await
    }

    async fn ended_in(&self, query: EndedQuery) -> Result<Ended> {
        self.list(move |read| counting::ended(read.connection, &query)).await
    }

    async fn series_closed_until(&self) -> Result<i64> {
        self.list(|read| Ok(read.connection.prepare_cached(CLOSED_UNTIL)?.query_row([], |row| row.get(0))?)).await
    }

    async fn put_series(&self, put: PutSeries) -> Result<()> {
        self.write(move |tx| self::put(tx, &put)).await
    }

    async fn series(&self, query: SeriesQuery) -> Result<Vec<SeriesRow>> {
        self.list(move |read| rows(read.connection, &query)).await
    }
}

fn whole(connection: &Connection, id: ExecutionId) -> Sql<Vec<crate::model::event::EventRecord>> {
    events::after(connection, id, 0, usize::try_from(i64::MAX).unwrap_or(usize::MAX))
}

const QUEUED: &str = "SELECT count(*), min(run_at_ms) FROM executions INDEXED BY executions_queue \
    WHERE (state = 'ready' OR state = 'scheduled') AND run_at_ms <= ?3 \
    AND (?1 IS NULL OR namespace = ?1) AND (?2 IS NULL OR principal = ?2)";

fn standing(read: Read<'_>, whose: &Whose, now_ms: i64) -> Sql<Standing> {
    let states = read.totals(whose)?;
    let mut statement = read.connection.prepare_cached(QUEUED)?;
    let (queued, oldest_ms): (i64, Option<i64>) =
        statement.query_row(params![whose.namespace, whose.principal, now_ms], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Standing { states, queued: queued.unsigned_abs(), oldest_ms })
}

const CLOSED_UNTIL: &str = "SELECT until_ms FROM series_closed WHERE id = 1";

const PUT: &str = "INSERT INTO series (minute_ms, namespace, principal, counted, body) VALUES (?1, ?2, ?3, ?4, ?5) \
    ON CONFLICT (minute_ms, namespace, principal, counted) DO UPDATE SET body = excluded.body";

const CLOSE: &str = "UPDATE series_closed SET until_ms = ?1 WHERE id = 1 AND until_ms < ?1";

const FORGET: &str = "DELETE FROM series WHERE minute_ms < ?1";

fn put(tx: &Tx<'_>, put: &PutSeries) -> Sql<()> {
    let mut statement = tx.connection.prepare_cached(PUT)?;
    for row in &put.rows {
        let body = serde_json::to_string(&row.tally).map_err(|error| Fault::internal(format!("numbers: {error}")))?;
        statement.execute(params![row.minute_ms, row.namespace, row.principal, row.counted.text(), body])?;
    }
    if let Some(until_ms) = put.closed_until_ms {
        tx.connection.prepare_cached(CLOSE)?.execute([until_ms])?;
    }
    tx.connection.prepare_cached(FORGET)?.execute([put.keep_since_ms])?;
    Ok(())
}

const ROWS: &str = "SELECT minute_ms, namespace, principal, counted, body FROM series \
    WHERE minute_ms >= ?1 AND minute_ms < ?2 AND (?3 IS NULL OR namespace = ?3) \
    AND CASE WHEN ?4 IS NULL THEN counted <> 'log' ELSE principal = ?4 AND counted <> 'log_of_all' END \
    ORDER BY minute_ms";

fn rows(connection: &Connection, query: &SeriesQuery) -> Sql<Vec<SeriesRow>> {
    let mut statement = connection.prepare_cached(ROWS)?;
    let Whose { namespace, principal } = &query.whose;
    let mut rows = statement.query(params![query.since_ms, query.until_ms, namespace, principal])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (minute_ms, counted, body): (i64, String, String) = (row.get(0)?, row.get(3)?, row.get(4)?);
        let damaged = || Fault::damaged(format!("the numbers of minute {minute_ms} can not be read"));
        found.push(SeriesRow {
            minute_ms,
            namespace: row.get(1)?,
            principal: row.get(2)?,
            counted: Counted::parse(&counted).ok_or_else(damaged)?,
            tally: serde_json::from_str(&body).map_err(|_| damaged())?,
        });
    }
    Ok(found)
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[QUEUED, CLOSED_UNTIL, CLOSE, FORGET, ROWS];

//! Numbers: what stands in the database now, whole logs for counting, and the minutes that were counted.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use uuid::Uuid;

use super::PostgresStore;
use super::bind::{int, ints, text, texts, uuids};
use super::counting;
use super::db::{Param, Reading, Tx};
use super::events;
use super::fault::{Fault, Sql};
use super::rows::{self, shard};
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::store::Result;
use crate::store::series::{
    Counted, Ended, EndedQuery, Log, OpenQuery, PutSeries, SeriesQuery, SeriesRow, SeriesStore, Standing, ToRead, Whose,
};

/// Rows that one transaction writes at most.
const PUT_MAX: usize = 200;

#[async_trait]
impl SeriesStore for PostgresStore {
    async fn standing(&self, whose: Whose, now_ms: i64) -> Result<Standing> {
        let whose = &whose;
        self.db.read(move |reading| Box::pin(standing(reading, whose, now_ms))).await
    }

    async fn logs(&self, ids: Vec<ExecutionId>) -> Result<Vec<Log>> {
        let ids = &ids;
        self.db.read(move |reading| Box::pin(logs(reading, ids))).await
    }

    async fn open_in(&self, query: OpenQuery) -> Result<Vec<ToRead>> {
        let query = &query;
        self.db.read(move |reading| Box::pin(counting::open(reading, query))).await
    }

    async fn ended_in(&self, query: EndedQuery) -> Result<Ended> {
        let query = &query;
        self.db.read(move |reading| Box::pin(counting::ended(reading, query))).await
    }

    async fn series_closed_until(&self) -> Result<i64> {
        self.db
            .read(|reading| {
                Box::pin(async move {
                    let row = reading.query_opt(CLOSED_UNTIL, &[]).await?;
                    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(0))
                })
            })
            .await
    }

    async fn put_series(&self, put: PutSeries) -> Result<()> {
        let PutSeries { rows, closed_until_ms, keep_since_ms } = put;
        for part in rows.chunks(PUT_MAX) {
            let columns = &Columns::of(part)?;
            self.db.transaction(move |tx| Box::pin(put_rows(tx, columns))).await?;
        }
        // Last: whoever reads that a minute is counted finds all of it.
        self.db
            .transaction(move |tx| {
                Box::pin(async move {
                    if let Some(until_ms) = closed_until_ms {
                        tx.execute(CLOSE, &[int(&until_ms)]).await?;
                    }
                    tx.execute(FORGET, &[int(&keep_since_ms)]).await.map(drop)
                })
            })
            .await
    }

    async fn series(&self, query: SeriesQuery) -> Result<Vec<SeriesRow>> {
        let query = &query;
        self.db.read(move |reading| Box::pin(series(reading, query))).await
    }
}

const STATES: &str = "SELECT state, count(*) FROM executions \
    WHERE ($1::TEXT IS NULL OR namespace = $1) AND ($2::TEXT IS NULL OR principal = $2) GROUP BY state";

const QUEUED: &str = "SELECT count(*), min(run_at_ms) FROM executions \
    WHERE (state = 'ready' OR state = 'scheduled') AND run_at_ms <= $3 \
    AND ($1::TEXT IS NULL OR namespace = $1) AND ($2::TEXT IS NULL OR principal = $2)";

async fn standing(reading: &Reading<'_>, whose: &Whose, now_ms: i64) -> Sql<Standing> {
    let mut states: BTreeMap<State, u64> = State::ALL.into_iter().map(|state| (state, 0)).collect();
    for row in reading.query(STATES, &[text(&whose.namespace), text(&whose.principal)]).await? {
        let (name, number): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
        let state = State::parse(name).ok_or_else(|| Fault::damaged(format!("{name} is no state")))?;
        states.insert(state, number.unsigned_abs());
    }
    let row = reading.query_opt(QUEUED, &[text(&whose.namespace), text(&whose.principal), int(&now_ms)]).await?;
    let row = row.ok_or_else(|| Fault::internal("a count counted nothing"))?;
    let queued: i64 = row.try_get(0)?;
    Ok(Standing { states, queued: queued.unsigned_abs(), oldest_ms: row.try_get(1)? })
}

const LOGS: &str = "SELECT v.execution_id, v.seq, v.at_ms, v.type, v.body, v.operation \
    FROM unnest($1::BIGINT[], $2::UUID[]) AS w(shard, id) \
    JOIN execution_events v ON v.shard = w.shard AND v.execution_id = w.id ORDER BY v.execution_id, v.seq";

async fn logs(reading: &Reading<'_>, ids: &[ExecutionId]) -> Sql<Vec<Log>> {
    let shards: Vec<i64> = ids.iter().map(|id| shard(*id)).collect();
    let wanted: Vec<Uuid> = ids.iter().map(|id| *id.as_uuid()).collect();
    let mut found: HashMap<ExecutionId, Vec<_>> = HashMap::new();
    for row in reading.query(LOGS, &[ints(&shards), uuids(&wanted)]).await? {
        let id = rows::execution(&row, 0)?;
        found.entry(id).or_default().push(events::record(id, &row, 1)?);
    }
    Ok(ids.iter().map(|id| (*id, found.remove(id).unwrap_or_default())).collect())
}

const CLOSED_UNTIL: &str = "SELECT until_ms FROM series_closed WHERE id = 1";

/// Rows as columns: they go in one statement.
struct Columns {
    minutes: Vec<i64>,
    namespaces: Vec<String>,
    principals: Vec<String>,
    counted: Vec<String>,
    bodies: Vec<String>,
}

impl Columns {
    fn of(rows: &[SeriesRow]) -> Result<Columns> {
        let body = |row: &SeriesRow| serde_json::to_string(&row.tally);
        let bodies = rows.iter().map(body).collect::<serde_json::Result<_>>();
        Ok(Columns {
            minutes: rows.iter().map(|row| row.minute_ms).collect(),
            namespaces: rows.iter().map(|row| row.namespace.clone()).collect(),
            principals: rows.iter().map(|row| row.principal.clone()).collect(),
            counted: rows.iter().map(|row| row.counted.text()).collect(),
            bodies: bodies.map_err(|error| crate::store::Error::Internal(format!("numbers: {error}")))?,
        })
    }

    fn values(&self) -> [Param<'_>; 5] {
        [
            ints(&self.minutes),
            texts(&self.namespaces),
            texts(&self.principals),
            texts(&self.counted),
            texts(&self.bodies),
        ]
    }
}

macro_rules! given {
    () => {
        "unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[]) \
         AS g(minute_ms, namespace, principal, counted, body)"
    };
}

const CHANGE: &str = concat!(
    "UPDATE series s SET body = g.body FROM ",
    given!(),
    " WHERE s.minute_ms = g.minute_ms AND s.namespace = g.namespace AND s.principal = g.principal \
     AND s.counted = g.counted AND s.body <> g.body"
);

const PUT: &str = concat!(
    "INSERT INTO series (minute_ms, namespace, principal, counted, body) \
     SELECT g.minute_ms, g.namespace, g.principal, g.counted, g.body FROM ",
    given!(),
    " ON CONFLICT (minute_ms, namespace, principal, counted) DO NOTHING"
);

const CLOSE: &str = "UPDATE series_closed SET until_ms = $1 WHERE id = 1 AND until_ms < $1";

const FORGET: &str = "DELETE FROM series WHERE (minute_ms, namespace, principal, counted) IN \
    (SELECT minute_ms, namespace, principal, counted FROM series WHERE minute_ms < $1 ORDER BY minute_ms LIMIT 500)";

async fn put_rows(tx: &Tx<'_>, columns: &Columns) -> Sql<()> {
    tx.execute(CHANGE, &columns.values()).await?;
    tx.execute(PUT, &columns.values()).await.map(drop)
}

const ROWS: &str = "SELECT minute_ms, namespace, principal, counted, body FROM series \
    WHERE minute_ms >= $1 AND minute_ms < $2 AND ($3::TEXT IS NULL OR namespace = $3) \
    AND CASE WHEN $4::TEXT IS NULL THEN counted <> 'log' ELSE principal = $4 AND counted <> 'log_of_all' END \
    ORDER BY minute_ms";

async fn series(reading: &Reading<'_>, query: &SeriesQuery) -> Sql<Vec<SeriesRow>> {
    let Whose { namespace, principal } = &query.whose;
    let values = [int(&query.since_ms), int(&query.until_ms), text(namespace), text(principal)];
    let mut found = Vec::new();
    for row in reading.query(ROWS, &values).await? {
        let (minute_ms, counted, body): (i64, &str, &str) = (row.try_get(0)?, row.try_get(3)?, row.try_get(4)?);
        let damaged = || Fault::damaged(format!("the numbers of minute {minute_ms} can not be read"));
        found.push(SeriesRow {
            minute_ms,
            namespace: row.try_get(1)?,
            principal: row.try_get(2)?,
            counted: Counted::parse(counted).ok_or_else(damaged)?,
            tally: serde_json::from_str(body).map_err(|_| damaged())?,
        });
    }
    Ok(found)
}

/// What the tests of query plans read, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[
    (STATES, "text, text"),
    (QUEUED, "text, text, bigint"),
    (LOGS, "bigint[], uuid[]"),
    (CLOSED_UNTIL, ""),
    (CHANGE, "bigint[], text[], text[], text[], text[]"),
    (PUT, "bigint[], text[], text[], text[], text[]"),
    (CLOSE, "bigint"),
    (FORGET, "bigint"),
    (ROWS, "bigint, bigint, text, text"),
];

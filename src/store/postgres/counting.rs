//! What is to be counted in a span of time: the executions whose rows say how they count, grouped by the database, and
//! those whose logs have to be read. Which rows say everything stands here and in the other driver; what they add is the
//! model's.

use uuid::Uuid;

use super::bind::{count, int, uuid};
use super::db::Reading;
use super::fault::Sql;
use super::lists::shards;
use super::rows;
use crate::store::series::{Ended, EndedQuery, OpenQuery, Plain, ToRead};

macro_rules! open_part {
    ($condition:literal) => {
        concat!(
            "SELECT x.id, x.namespace, x.principal FROM executions x WHERE x.shard = s.shard AND ",
            $condition,
            " AND x.updated_at_ms >= $1 AND x.created_at_ms < $2 AND x.id > $3"
        )
    };
}

const OPEN: &str = concat!(
    "SELECT e.id, e.namespace, e.principal FROM ",
    shards!(),
    " CROSS JOIN LATERAL (",
    open_part!("x.lease_expires_at_ms IS NOT NULL"),
    " UNION ",
    open_part!("(x.state = 'ready' OR x.state = 'scheduled')"),
    " UNION ",
    open_part!("x.state = 'waiting'"),
    " UNION ",
    open_part!("x.state = 'unknown'"),
    " UNION ",
    open_part!("x.notes > 0"),
    ") e ORDER BY e.id LIMIT $4"
);

/// What has not ended, in one statement: nothing moves from one part to another meanwhile.
pub(super) async fn open(reading: &Reading<'_>, query: &OpenQuery) -> Sql<Vec<ToRead>> {
    let after = query.after.map_or(Uuid::nil(), |id| *id.as_uuid());
    let limit = count(query.limit);
    let values = [int(&query.since_ms), int(&query.until_ms), uuid(&after), int(&limit)];
    let mut found = Vec::new();
    for row in reading.query(OPEN, &values).await? {
        let id = rows::execution(&row, 0)?;
        found.push(ToRead { id, namespace: row.try_get(1)?, principal: row.try_get(2)? });
    }
    Ok(found)
}

/// Made after the span.
const LATER: i64 = 0;
/// The row says everything.
const PLAIN: i64 = 1;

macro_rules! ended_part {
    ($kept:literal) => {
        concat!(
            "SELECT x.* FROM executions x WHERE x.shard = s.shard AND x.ended_at_ms IS NOT NULL \
             AND x.state <> 'unknown' AND ",
            $kept,
            " AND x.ended_at_ms >= $1 AND x.ended_at_ms < $2"
        )
    };
}

const ENDED: &str = concat!(
    "SELECT k.kind, CASE WHEN k.kind = 2 THEN e.id END, CASE WHEN k.kind > 0 THEN e.namespace END, \
     CASE WHEN k.kind > 0 THEN e.principal END, CASE WHEN k.kind = 1 THEN e.ended_at_ms - e.ended_at_ms % 60000 END, \
     CASE WHEN k.kind = 1 THEN e.is_error END, \
     CASE WHEN k.kind = 1 THEN e.ended_at_ms - greatest(e.run_at_ms, e.created_at_ms) END, count(*) FROM ",
    shards!(),
    " CROSS JOIN LATERAL (",
    ended_part!("x.payloads_kept"),
    " UNION ALL ",
    ended_part!("NOT x.payloads_kept"),
    ") e CROSS JOIN LATERAL (SELECT CASE WHEN e.created_at_ms >= $4 THEN 0::BIGINT \
     WHEN e.state = 'completed' AND e.source = 'result' AND e.next_seq = 4 AND e.attempt = 1 \
     AND e.fencing_token = 1 AND e.notes = 0 AND e.created_at_ms >= $3 AND e.ended_at_ms < $4 \
     AND e.created_at_ms <= e.ended_at_ms \
     AND e.created_at_ms - e.created_at_ms % 60000 = e.ended_at_ms - e.ended_at_ms % 60000 THEN 1::BIGINT \
     ELSE 2::BIGINT END AS kind) k GROUP BY 1, 2, 3, 4, 5, 6, 7"
);

/// What ended: the database groups what is alike, so that few rows travel.
pub(super) async fn ended(reading: &Reading<'_>, query: &EndedQuery) -> Sql<Ended> {
    let values = [int(&query.from_ms), int(&query.to_ms), int(&query.since_ms), int(&query.until_ms)];
    let mut found = Ended::default();
    for row in reading.query(ENDED, &values).await? {
        let executions = row.try_get::<_, i64>(7)?.unsigned_abs();
        found.looked_at += executions;
        match row.try_get::<_, i64>(0)? {
            LATER => {}
            PLAIN => found.plain.push(Plain {
                minute_ms: row.try_get(4)?,
                namespace: row.try_get(2)?,
                principal: row.try_get(3)?,
                is_error: row.try_get(5)?,
                latency_ms: row.try_get::<_, i64>(6)?.max(0).unsigned_abs(),
                executions,
            }),
            _ => {
                let id = rows::execution(&row, 1)?;
                found.to_read.push(ToRead { id, namespace: row.try_get(2)?, principal: row.try_get(3)? });
            }
        }
    }
    Ok(found)
}

/// What the tests of query plans read, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] =
    &[(OPEN, "bigint, bigint, uuid, bigint"), (ENDED, "bigint, bigint, bigint, bigint")];

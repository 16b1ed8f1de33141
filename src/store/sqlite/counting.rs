//! What is to be counted in a span of time: the executions whose rows say how they count, grouped, and those whose logs
//! have to be read. Which rows say everything stands here and in the other driver; what they add is the model's.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::fault::Sql;
use super::rows::Id;
use crate::model::id::ExecutionId;
use crate::store::series::{Ended, EndedQuery, OpenQuery, Plain, ToRead};

macro_rules! open_part {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT id, namespace, principal FROM executions INDEXED BY ",
            $index,
            " WHERE ",
            $condition,
            " AND updated_at_ms >= ?1 AND created_at_ms < ?2 AND id > ?3"
        )
    };
}

const OPEN: &str = concat!(
    open_part!("executions_lease", "lease_expires_at_ms IS NOT NULL"),
    " UNION ",
    open_part!("executions_queue", "(state = 'ready' OR state = 'scheduled')"),
    " UNION ",
    open_part!("executions_rare", "state = 'waiting'"),
    " UNION ",
    open_part!("executions_rare", "state = 'unknown'"),
    " UNION ",
    open_part!("executions_noted", "notes > 0"),
    " ORDER BY id LIMIT ?4"
);

/// What has not ended, in one statement: nothing moves from one part to another meanwhile.
pub(super) fn open(connection: &Connection, query: &OpenQuery) -> Sql<Vec<ToRead>> {
    let mut statement = connection.prepare_cached(OPEN)?;
    let after = query.after.map(|id| id.to_string()).unwrap_or_default();
    let mut rows = statement.query(params![query.since_ms, query.until_ms, after, query.limit as i64])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get::<_, Id<ExecutionId>>(0)?.0;
        found.push(ToRead { id, namespace: row.get(1)?, principal: row.get(2)? });
    }
    Ok(found)
}

/// Made after the span.
const LATER: i64 = 0;
/// The row says everything.
const PLAIN: i64 = 1;

macro_rules! ended_part {
    ($index:literal, $kept:literal) => {
        concat!(
            "SELECT CASE WHEN e.created_at_ms >= ?4 THEN 0 \
             WHEN e.state = 'completed' AND e.source = 'result' AND e.next_seq = 4 AND e.attempt = 1 \
             AND e.fencing_token = 1 AND e.notes = 0 AND e.created_at_ms >= ?3 AND e.ended_at_ms < ?4 \
             AND e.created_at_ms <= e.ended_at_ms AND e.created_at_ms / 60000 = e.ended_at_ms / 60000 THEN 1 \
             ELSE 2 END, e.namespace, e.principal, e.ended_at_ms / 60000 * 60000, e.is_error, \
             e.ended_at_ms - max(e.run_at_ms, e.created_at_ms), e.id FROM executions e INDEXED BY ",
            $index,
            " WHERE e.ended_at_ms IS NOT NULL AND e.state <> 'unknown' AND e.payloads_kept = ",
            $kept,
            " AND e.ended_at_ms >= ?1 AND e.ended_at_ms < ?2"
        )
    };
}

const ENDED: &str = concat!(ended_part!("executions_kept", "1"), " UNION ALL ", ended_part!("executions_bare", "0"));

/// How often each minute, kind of result and latency came.
type Times = HashMap<(i64, bool, i64), u64>;

/// What ended, grouped as it is read: most rows are alike, and none of their texts is kept twice.
pub(super) fn ended(connection: &Connection, query: &EndedQuery) -> Sql<Ended> {
    let mut statement = connection.prepare_cached(ENDED)?;
    let mut rows = statement.query(params![query.from_ms, query.to_ms, query.since_ms, query.until_ms])?;
    let mut whose: HashMap<String, HashMap<String, Times>> = HashMap::new();
    let mut found = Ended::default();
    while let Some(row) = rows.next()? {
        found.looked_at += 1;
        let kind: i64 = row.get(0)?;
        if kind == LATER {
            continue;
        }
        let text = |column| -> rusqlite::Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
        let (namespace, principal) = (text(1)?, text(2)?);
        if kind != PLAIN {
            let id = row.get::<_, Id<ExecutionId>>(6)?.0;
            found.to_read.push(ToRead { id, namespace: namespace.into(), principal: principal.into() });
            continue;
        }
        let key = (row.get(3)?, row.get(4)?, row.get(5)?);
        match whose.get_mut(namespace).and_then(|principals| principals.get_mut(principal)) {
            Some(times) => *times.entry(key).or_default() += 1,
            None => {
                let principals = whose.entry(namespace.into()).or_default();
                principals.entry(principal.into()).or_default().insert(key, 1);
            }
        }
    }
    for (namespace, principals) in whose {
        for (principal, times) in principals {
            found.plain.extend(times.into_iter().map(|((minute_ms, is_error, latency_ms), executions)| Plain {
                minute_ms,
                namespace: namespace.clone(),
                principal: principal.clone(),
                is_error,
                latency_ms: latency_ms.max(0).unsigned_abs(),
                executions,
            }));
        }
    }
    Ok(found)
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[OPEN, ENDED];

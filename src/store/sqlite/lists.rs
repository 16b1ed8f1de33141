//! Reads of more than one row: work for workers, what is due for the scheduler, totals. Pages for people are in
//! `pages.rs`.

use std::collections::BTreeMap;

use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::{Fault, Sql};
use super::policies::Policies;
use super::rows::{self, Id, IdText, head_columns};
use crate::model::execution::{Head, State};
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::series::Whose;
use crate::store::{CandidateQuery, Due, KeyScope};

/// What a read works with.
#[derive(Clone, Copy)]
pub(super) struct Read<'a> {
    pub(super) connection: &'a Connection,
    pub(super) policies: &'a Policies,
}

const BY_KEY: &str = concat!(
    "SELECT ",
    head_columns!(),
    " FROM idempotency_keys k JOIN executions e ON e.id = k.execution_id \
     WHERE k.namespace = ?1 AND k.upstream = ?2 AND k.tool = ?3 AND k.key = ?4"
);

const READY: &str = concat!(
    "SELECT ",
    head_columns!(),
    " FROM executions e INDEXED BY executions_queue WHERE e.state = 'ready' AND e.upstream = ?1 \
     AND (e.bound_to IS NULL OR e.bound_to = ?2 OR e.bound_to IN (SELECT value FROM json_each(?3))) \
     AND e.deadline_at_ms > ?4 ORDER BY e.run_at_ms LIMIT ?5"
);

const SCHEDULED: &str = concat!(
    "SELECT ",
    head_columns!(),
    " FROM executions e INDEXED BY executions_queue WHERE e.state = 'scheduled' AND e.upstream = ?1 \
     AND e.run_at_ms <= ?4 \
     AND (e.bound_to IS NULL OR e.bound_to = ?2 OR e.bound_to IN (SELECT value FROM json_each(?3))) \
     AND e.deadline_at_ms > ?4 ORDER BY e.run_at_ms LIMIT ?5"
);

const EXPIRED: &str = concat!(
    "SELECT ",
    head_columns!(),
    " FROM executions e INDEXED BY executions_lease WHERE e.lease_expires_at_ms <= ?1 \
     ORDER BY e.lease_expires_at_ms LIMIT ?2"
);

const OF_DEAD: &str = concat!(
    "SELECT ",
    head_columns!(),
    " FROM executions e INDEXED BY executions_lease WHERE e.lease_expires_at_ms > ?1 \
     AND e.lease_process IN (SELECT value FROM json_each(?3)) ORDER BY e.lease_expires_at_ms LIMIT ?2"
);

const PROMOTABLE: &str = "SELECT id FROM executions INDEXED BY executions_queue \
    WHERE state = 'scheduled' AND run_at_ms <= ?1 ORDER BY run_at_ms LIMIT ?2";

const TIMED_OUT: &str = "SELECT id FROM executions INDEXED BY executions_deadline \
    WHERE deadline_at_ms <= ?1 ORDER BY deadline_at_ms LIMIT ?2";

const NEXT: &str = "SELECT min(at) FROM ( \
    SELECT min(lease_expires_at_ms) AS at FROM executions INDEXED BY executions_lease WHERE lease_expires_at_ms > ?1 \
    UNION ALL SELECT min(deadline_at_ms) FROM executions INDEXED BY executions_deadline WHERE deadline_at_ms > ?1 \
    UNION ALL SELECT min(run_at_ms) FROM executions INDEXED BY executions_queue \
        WHERE state = 'scheduled' AND run_at_ms > ?1)";

/// Counts executions, of all or of somebody. Without a condition SQLite counts the smallest index; with one, the narrowest
/// that has what is asked for.
pub(super) fn count_where(condition: &str, of_somebody: bool) -> String {
    let whose = match of_somebody {
        true => " AND (?1 IS NULL OR namespace = ?1) AND (?2 IS NULL OR principal = ?2)",
        false => "",
    };
    format!("SELECT count(*) FROM executions WHERE {condition}{whose}")
}

impl Read<'_> {
    /// The execution that holds a key.
    pub(super) fn by_key(self, scope: &KeyScope) -> Sql<Option<Head>> {
        let mut statement = self.connection.prepare_cached(BY_KEY)?;
        let mut rows = statement.query(params![scope.namespace, scope.upstream, scope.tool, scope.key])?;
        rows.next()?.map(|row| rows::head(self.connection, self.policies, row)).transpose()
    }

    /// Rows by id.
    pub(super) fn heads(self, ids: &[ExecutionId]) -> Sql<Vec<Head>> {
        let mut heads = Vec::with_capacity(ids.len());
        for id in ids {
            heads.extend(rows::by_id(self.connection, self.policies, *id)?);
        }
        Ok(heads)
    }

    /// Work for a worker, oldest first over all its upstreams.
    pub(super) fn candidates(self, query: &CandidateQuery) -> Sql<Vec<Head>> {
        let dead = json_ids(&query.dead);
        let process = IdText::process(query.process);
        let mut heads = Vec::new();
        for upstream in &query.upstreams {
            for sql in [READY, SCHEDULED] {
                heads.extend(self.rows(sql, params![upstream, process, dead, query.now_ms, query.limit as i64])?);
            }
        }
        heads.sort_by_key(|head: &Head| (head.run_at_ms, head.id()));
        heads.truncate(query.limit);
        Ok(heads)
    }

    /// What has to be settled now.
    pub(super) fn due(self, dead: &[ProcessId], now_ms: i64, limit: usize) -> Sql<Due> {
        let mut expired = self.rows(EXPIRED, params![now_ms, limit as i64])?;
        if !dead.is_empty() && expired.len() < limit {
            let rest = (limit - expired.len()) as i64;
            expired.extend(self.rows(OF_DEAD, params![now_ms, rest, json_ids(dead)])?);
        }
        let promotable = self.ids(PROMOTABLE, now_ms, limit)?;
        let timed_out = self.ids(TIMED_OUT, now_ms, limit)?;
        let more_wait = [expired.len(), promotable.len(), timed_out.len()].contains(&limit);
        let next_at_ms = match more_wait {
            true => Some(now_ms),
            false => self.connection.prepare_cached(NEXT)?.query_row([now_ms], |row| row.get(0)).optional()?.flatten(),
        };
        Ok(Due { expired, promotable, timed_out, next_at_ms })
    }

    /// Executions per state. The rare and the live ones are counted by their indexes, the rest is completed.
    pub(super) fn totals(self, whose: &Whose) -> Sql<BTreeMap<State, u64>> {
        let Whose { namespace, principal } = whose;
        let values: &[&dyn ToSql] =
            if namespace.is_some() || principal.is_some() { &[namespace, principal] } else { &[] };
        let count = |condition: &str| -> Sql<i64> {
            Ok(self.connection.query_row(&count_where(condition, !values.is_empty()), values, |row| row.get(0))?)
        };
        let mut totals = BTreeMap::new();
        let snapshot = self.connection.unchecked_transaction()?;
        let mut others = 0;
        for state in State::ALL.into_iter().filter(|state| *state != State::Completed) {
            let number = count(&match state {
                State::Leased => "state = 'leased' AND lease_expires_at_ms IS NOT NULL".into(),
                state => format!("state = '{}'", state.as_str()),
            })?;
            others += number;
            totals.insert(state, number as u64);
        }
        let all = count("TRUE")?;
        snapshot.finish()?;
        totals.insert(State::Completed, (all - others).max(0) as u64);
        Ok(totals)
    }

    /// Processes that announced themselves or hold leases.
    pub(super) fn processes(self) -> Sql<Vec<ProcessId>> {
        const SELECT: &str = "SELECT id FROM processes UNION SELECT lease_process FROM executions \
            INDEXED BY executions_lease WHERE lease_expires_at_ms IS NOT NULL";
        let mut statement = self.connection.prepare_cached(SELECT)?;
        let ids = statement.query_map([], |row| Ok(row.get::<_, Id<ProcessId>>(0)?.0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    fn rows(self, sql: &str, values: &[&dyn ToSql]) -> Sql<Vec<Head>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        let mut heads = Vec::new();
        while let Some(row) = rows.next()? {
            heads.push(rows::head(self.connection, self.policies, row)?);
        }
        Ok(heads)
    }

    fn ids(self, sql: &str, now_ms: i64, limit: usize) -> Sql<Vec<ExecutionId>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let ids = statement.query_map(params![now_ms, limit as i64], |row| Ok(row.get::<_, Id<ExecutionId>>(0)?.0))?;
        ids.collect::<rusqlite::Result<_>>().map_err(Fault::from)
    }
}

fn json_ids(ids: &[ProcessId]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("\"{id}\"")).collect();
    format!("[{}]", ids.join(","))
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[BY_KEY, READY, SCHEDULED, EXPIRED, OF_DEAD, PROMOTABLE, TIMED_OUT, NEXT];

//! Pages of rows for people: lists with their filters, newest first, and what may have new events, in the order of ids.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::fault::Sql;
use super::lists::Read;
use super::rows::{self, head_columns};
use crate::model::event::LOSS_CODES;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::{ListQuery, TouchedQuery};

/// An execution's id is made a moment before its row. Where a filter by time bounds the ids that are looked at, so much
/// is left for clocks that were set in between; the row's own time decides.
const ID_SLACK_MS: i64 = 3_600_000;

const RARE: [State; 4] = [State::Waiting, State::Failed, State::Cancelled, State::Unknown];

/// Where executions are that were made before some moment and may have had events after it. Each part has a small index,
/// or one that is ordered by the end. `?1` is the moment.
const TOUCHED_LATER: [&str; 7] = [
    "INDEXED BY executions_kept WHERE e.ended_at_ms IS NOT NULL AND e.state <> 'unknown' AND e.payloads_kept = 1 \
     AND e.ended_at_ms >= ?1",
    "INDEXED BY executions_bare WHERE e.ended_at_ms IS NOT NULL AND e.state <> 'unknown' AND e.payloads_kept = 0 \
     AND e.ended_at_ms >= ?1",
    "INDEXED BY executions_lease WHERE e.lease_expires_at_ms IS NOT NULL AND e.updated_at_ms >= ?1",
    "INDEXED BY executions_queue WHERE (e.state = 'ready' OR e.state = 'scheduled') AND e.updated_at_ms >= ?1",
    "INDEXED BY executions_rare WHERE e.state = 'waiting' AND e.updated_at_ms >= ?1",
    "INDEXED BY executions_rare WHERE e.state = 'unknown' AND e.updated_at_ms >= ?1",
    "INDEXED BY executions_noted WHERE e.notes > 0 AND e.updated_at_ms >= ?1",
];

/// The condition of a small index.
const AGAIN: &str = " AND (e.fencing_token > 1 OR e.source <> 'result')";

/// A statement in the making: its text and the values of its parameters.
struct Statement {
    sql: String,
    values: Vec<Value>,
}

impl Statement {
    fn select(tail: &str) -> Statement {
        Statement {
            sql: format!(concat!("SELECT ", head_columns!(), " FROM executions e {}"), tail),
            values: Vec::new(),
        }
    }

    /// Adds a condition when there is a value for its one parameter.
    fn and(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.values.push(value.into());
            self.sql.push_str(&format!(" AND {}", condition.replace('?', &format!("?{}", self.values.len()))));
        }
    }

    /// Adds the filters that hold for a row whatever its place.
    fn filter(&mut self, query: &ListQuery) {
        self.and("e.namespace = ?", query.namespace.clone());
        self.and("e.principal = ?", query.principal.clone());
        self.and("e.caller = ?", query.caller.clone());
        self.and("e.upstream = ?", query.upstream.clone());
        self.and("e.tool = ?", query.tool.clone());
        self.and("e.key = ?", query.key.clone());
        self.and("e.attempt > ?", query.attempts_over);
        if query.attempts_over.is_some_and(|attempts| attempts > 0) {
            // Each attempt has a lease of its own.
            self.sql.push_str(AGAIN);
        }
        self.and("e.error_code = ?", query.error_code.clone());
        if let Some(prefix) = &query.id_prefix {
            let prefix = prefix.to_ascii_lowercase();
            self.and("e.id >= ?", Some(prefix.clone()));
            // Ids are made of 0-9, a-f and hyphens, all of which sort before `g`.
            self.and("e.id < ?", Some(prefix + "g"));
        }
        self.and("e.created_at_ms >= ?", query.since_ms);
        self.and("e.id >= ?", query.since_ms.map(|at_ms| first_id(at_ms.saturating_sub(ID_SLACK_MS))));
        self.and("e.created_at_ms < ?", query.until_ms);
        self.and("e.id < ?", query.until_ms.map(|at_ms| first_id(at_ms.saturating_add(ID_SLACK_MS))));
        if query.recovered {
            let codes = LOSS_CODES.map(|code| format!("'{code}'")).join(", ");
            // Only an execution that was leased again, or whose result came in another way, can have lost an attempt.
            self.sql.push_str(AGAIN);
            self.sql.push_str(&format!(
                " AND e.state = 'completed' AND EXISTS (SELECT 1 FROM execution_events v WHERE v.execution_id = e.id \
                 AND (v.type = 'lost' OR v.type = 'retried' AND json_extract(v.body, '$.error.code') IN ({codes})))"
            ));
        }
    }

    fn states(&mut self, states: &[State]) {
        if !states.is_empty() {
            // The names are written out, since a partial index is found by its literal condition.
            let names: Vec<String> = states.iter().map(|state| format!("e.state = '{}'", state.as_str())).collect();
            self.sql.push_str(&format!(" AND ({})", names.join(" OR ")));
        }
    }

    fn run(mut self, read: Read<'_>, order: &str, limit: usize) -> Sql<Vec<Head>> {
        self.values.push((limit as i64).into());
        self.sql.push_str(&format!(" ORDER BY e.id {order} LIMIT ?{}", self.values.len()));
        let mut statement = read.connection.prepare(&self.sql)?;
        let mut rows = statement.query(params_from_iter(self.values))?;
        let mut heads = Vec::new();
        while let Some(row) = rows.next()? {
            heads.push(rows::head(read.connection, read.policies, row)?);
        }
        Ok(heads)
    }
}

impl Read<'_> {
    /// A page, newest first.
    pub(super) fn list(self, query: &ListQuery) -> Sql<Vec<Head>> {
        if query.is_of_rare() || query.states.is_empty() || query.states.contains(&State::Completed) {
            return self.page(query, "", &query.states);
        }
        // Each group of states has a small index of its own; the page is merged from them.
        let mut heads = Vec::new();
        for state in &query.states {
            let index = match state {
                state if RARE.contains(state) => "INDEXED BY executions_rare",
                State::Leased => "INDEXED BY executions_lease",
                _ => "INDEXED BY executions_queue",
            };
            heads.extend(self.page(query, index, std::slice::from_ref(state))?);
        }
        heads.sort_by_key(|head| std::cmp::Reverse(head.id()));
        heads.dedup_by_key(|head| head.id());
        heads.truncate(query.limit);
        Ok(heads)
    }

    fn page(self, query: &ListQuery, index: &str, states: &[State]) -> Sql<Vec<Head>> {
        page_of(query, index, states).run(self, "DESC", query.limit)
    }

    /// Executions that may have events in a span of time, in the order of their ids.
    pub(super) fn touched(self, query: &TouchedQuery) -> Sql<Vec<Head>> {
        let border = first_id(query.since_ms);
        let after = query.after.map(|id| id.to_string());
        let mut heads = Vec::new();
        // What was made before the span comes first, since ids grow with time.
        if after.as_ref().is_none_or(|after| *after < border) {
            for part in TOUCHED_LATER {
                let mut statement = Statement::select(part);
                statement.values.push(query.since_ms.into());
                statement.and("e.id < ?", Some(border.clone()));
                statement.and("e.id > ?", after.clone());
                statement.filter(&query.filter);
                statement.states(&query.filter.states);
                heads.extend(statement.run(self, "ASC", query.limit)?);
            }
            heads.sort_by_key(Head::id);
            heads.dedup_by_key(|head| head.id());
            heads.truncate(query.limit);
        }
        let rest = query.limit - heads.len();
        if rest > 0 {
            let mut statement = Statement::select("WHERE 1");
            statement.and("e.id >= ?", Some(border));
            statement.and("e.id < ?", Some(first_id(query.until_ms)));
            statement.and("e.id > ?", after);
            statement.filter(&query.filter);
            statement.states(&query.filter.states);
            heads.extend(statement.run(self, "ASC", rest)?);
        }
        Ok(heads)
    }
}

fn page_of(query: &ListQuery, index: &str, states: &[State]) -> Statement {
    let mut statement = Statement::select(&format!("{index} WHERE 1"));
    statement.filter(query);
    statement.and("e.id < ?", query.before.map(|id| id.to_string()));
    statement.states(states);
    if states == [State::Leased] {
        statement.sql.push_str(" AND e.lease_expires_at_ms IS NOT NULL");
    }
    statement
}

/// How a page is read that is not merged from several.
#[cfg(test)]
pub(super) fn plan(connection: &rusqlite::Connection, query: &ListQuery) -> Vec<String> {
    let statement = page_of(query, "", &query.states);
    let sql = format!("EXPLAIN QUERY PLAN {} ORDER BY e.id DESC LIMIT 50", statement.sql);
    let mut plan = connection.prepare(&sql).unwrap();
    let steps = plan.query_map(params_from_iter(statement.values), |row| row.get("detail")).unwrap();
    steps.collect::<rusqlite::Result<_>>().unwrap()
}

/// The lowest id that can be made at `at_ms`.
fn first_id(at_ms: i64) -> String {
    ExecutionId::first_at(at_ms).to_string()
}

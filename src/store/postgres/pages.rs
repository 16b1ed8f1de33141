//! Pages of rows for people: lists with their filters, newest first, and what may have new events, in the order of ids.
//! Each shard gives its part of a page, in order; the parts are merged.

use uuid::Uuid;

use super::bind::{count, int, text, uuid};
use super::db::{Db, Param, Reading};
use super::fault::Sql;
use super::lists::{self, shards};
use super::rows::head_columns;
use crate::model::event::LOSS_CODES;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::{ListQuery, Result, TouchedQuery};

/// An execution's id is made a moment before its row. Where a filter by time bounds the ids that are looked at, so much
/// is left for clocks that were set in between; the row's own time decides.
const ID_SLACK_MS: i64 = 3_600_000;

/// Where executions are that were made before some moment and may have had events after it. Each part has a small index,
/// or one that is ordered by the end. `$1` is the moment.
const TOUCHED_LATER: [&str; 7] = [
    "x.ended_at_ms IS NOT NULL AND x.state <> 'unknown' AND x.payloads_kept AND x.ended_at_ms >= $1",
    "x.ended_at_ms IS NOT NULL AND x.state <> 'unknown' AND NOT x.payloads_kept AND x.ended_at_ms >= $1",
    "x.lease_expires_at_ms IS NOT NULL AND x.updated_at_ms >= $1",
    "(x.state = 'ready' OR x.state = 'scheduled') AND x.updated_at_ms >= $1",
    "x.state = 'waiting' AND x.updated_at_ms >= $1",
    "x.state = 'unknown' AND x.updated_at_ms >= $1",
    "x.notes > 0 AND x.updated_at_ms >= $1",
];

/// The condition of a small index.
const AGAIN: &str = " AND (x.fencing_token > 1 OR x.source <> 'result')";

/// How many of the newest rows of a shard are looked at before all rows are.
const NEWEST: usize = 500;

/// The id so many rows before the newest of a shard.
const SAMPLE: &str = "SELECT id FROM executions WHERE shard = 0 AND id < $1 ORDER BY id DESC OFFSET $2 LIMIT 1";

/// A value that a statement keeps until it runs.
#[derive(Clone)]
enum Kept {
    Text(String),
    Int(i64),
    Id(Uuid),
}

impl Kept {
    fn value(&self) -> Param<'_> {
        match self {
            Kept::Text(value) => text(value),
            Kept::Int(value) => int(value),
            Kept::Id(value) => uuid(value),
        }
    }
}

impl From<&String> for Kept {
    fn from(value: &String) -> Kept {
        Kept::Text(value.clone())
    }
}

impl From<i64> for Kept {
    fn from(value: i64) -> Kept {
        Kept::Int(value)
    }
}

impl From<Uuid> for Kept {
    fn from(value: Uuid) -> Kept {
        Kept::Id(value)
    }
}

/// A statement in the making: what holds in each shard, and the values of its parameters.
#[derive(Default)]
struct Statement {
    conditions: String,
    values: Vec<Kept>,
}

impl Statement {
    fn of(part: &str, moment_ms: i64) -> Statement {
        Statement { conditions: format!(" AND {part}"), values: vec![moment_ms.into()] }
    }

    /// Adds a condition when there is a value for its one parameter.
    fn and(&mut self, condition: &str, value: Option<impl Into<Kept>>) {
        if let Some(value) = value {
            self.values.push(value.into());
            let place = format!("${}", self.values.len());
            self.conditions.push_str(&format!(" AND {}", condition.replace('?', &place)));
        }
    }

    /// Adds the filters that hold for a row whatever its place.
    fn filter(&mut self, query: &ListQuery) {
        self.and("x.namespace = ?", query.namespace.as_ref());
        self.and("x.principal = ?", query.principal.as_ref());
        self.and("x.caller = ?", query.caller.as_ref());
        self.and("x.upstream = ?", query.upstream.as_ref());
        self.and("x.tool = ?", query.tool.as_ref());
        self.and("x.key = ?", query.key.as_ref());
        self.and("x.attempt > ?", query.attempts_over.map(i64::from));
        if query.attempts_over.is_some_and(|attempts| attempts > 0) {
            // Each attempt has a lease of its own.
            self.conditions.push_str(AGAIN);
        }
        self.and("x.error_code = ?", query.error_code.as_ref());
        if let Some(prefix) = &query.id_prefix {
            match span_of(prefix) {
                Some((first, last)) => {
                    self.and("x.id >= ?", Some(first));
                    self.and("x.id <= ?", Some(last));
                }
                None => self.conditions.push_str(" AND FALSE"),
            }
        }
        self.and("x.created_at_ms >= ?", query.since_ms);
        self.and("x.id >= ?", query.since_ms.map(since));
        self.and("x.created_at_ms < ?", query.until_ms);
        self.and("x.id < ?", query.until_ms.map(|at_ms| first_id(at_ms.saturating_add(ID_SLACK_MS))));
        if query.recovered {
            // The body is as this program wrote it: the error of a retry begins with its code, and no text can hold an
            // unescaped quote.
            let lost = LOSS_CODES.map(|code| format!("position('\"error\":{{\"code\":\"{code}\"' IN v.body) > 0"));
            // Only an execution that was leased again, or whose result came in another way, can have lost an attempt.
            self.conditions.push_str(AGAIN);
            self.conditions.push_str(&format!(
                " AND x.state = 'completed' AND EXISTS (SELECT 1 FROM execution_events v WHERE v.shard = x.shard \
                 AND v.execution_id = x.id AND (v.type = 'lost' OR v.type = 'retried' AND ({})))",
                lost.join(" OR ")
            ));
        }
    }

    fn states(&mut self, states: &[State]) {
        if !states.is_empty() {
            // The names are written out, since a partial index is found by its literal condition.
            let names: Vec<String> = states.iter().map(|state| format!("x.state = '{}'", state.as_str())).collect();
            self.conditions.push_str(&format!(" AND ({})", names.join(" OR ")));
        }
    }

    /// The page when the newest rows of all fill it, or go back as far as is asked for. `None` where they do not, or there
    /// are few.
    async fn newest(&self, reading: &Reading<'_>, query: &ListQuery) -> Sql<Option<Vec<Head>>> {
        let (before, back) = (query.before.map_or(Uuid::max(), |id| *id.as_uuid()), count(NEWEST));
        // Ids end by chance, so each shard goes back about as far in as many rows.
        let Some(row) = reading.query_opt(SAMPLE, &[uuid(&before), int(&back)]).await? else { return Ok(None) };
        let oldest: Uuid = row.try_get(0)?;
        let mut statement = Statement { conditions: self.conditions.clone(), values: self.values.clone() };
        statement.and("x.id >= ?", Some(oldest));
        let heads = statement.run(reading, "DESC", query.limit).await?;
        let are_all = query.since_ms.is_some_and(|since_ms| oldest <= since(since_ms));
        Ok((are_all || heads.len() == query.limit).then_some(heads))
    }

    /// The page out of all rows in the order they lie in: to find few or none of very many that is several times as fast as
    /// walking each shard from its newest on.
    async fn of_all(mut self, reading: &Reading<'_>, limit: usize) -> Sql<Vec<Head>> {
        self.values.push(count(limit).into());
        let sql = format!(
            concat!(
                "SELECT ",
                head_columns!(),
                " FROM (SELECT x.* FROM executions x WHERE TRUE{} ORDER BY x.id DESC LIMIT ${}) e ORDER BY e.id DESC"
            ),
            self.conditions,
            self.values.len()
        );
        let values: Vec<Param<'_>> = self.values.iter().map(Kept::value).collect();
        lists::heads(reading, &sql, &values).await
    }

    async fn run(mut self, reading: &Reading<'_>, order: &str, limit: usize) -> Sql<Vec<Head>> {
        self.values.push(count(limit).into());
        let (conditions, last) = (&self.conditions, self.values.len());
        let sql = format!(
            concat!(
                "SELECT ",
                head_columns!(),
                " FROM ",
                shards!(),
                " CROSS JOIN LATERAL (SELECT x.* FROM executions x WHERE x.shard = s.shard{} \
                 ORDER BY x.id {} LIMIT ${}) e ORDER BY e.id {} LIMIT ${}"
            ),
            conditions, order, last, order, last
        );
        let values: Vec<Param<'_>> = self.values.iter().map(Kept::value).collect();
        lists::heads(reading, &sql, &values).await
    }
}

/// A page, newest first.
pub(super) async fn list(db: &Db, query: ListQuery) -> Result<Vec<Head>> {
    let query = &query;
    db.read(move |reading| Box::pin(pages(reading, query))).await
}

async fn pages(reading: &Reading<'_>, query: &ListQuery) -> Sql<Vec<Head>> {
    let wanted = |state: &State| query.states.is_empty() || query.states.contains(state);
    let parts: Vec<Vec<State>> = match (query.principal.is_some(), wanted(&State::Completed)) {
        // What somebody's calls came to is found by who called; what has not come to anything yet is little.
        (true, true) => {
            let (settled, live): (Vec<State>, Vec<State>) =
                State::ALL.into_iter().filter(wanted).partition(|state| state.is_settled());
            std::iter::once(settled).chain(live.into_iter().map(|state| vec![state])).collect()
        }
        (false, true) => return page(reading, query, &query.states).await,
        // Each of the other states has a small index of its own.
        (_, false) => query.states.iter().map(|state| vec![*state]).collect(),
    };
    // The page is merged from its parts.
    let mut heads = Vec::new();
    for states in &parts {
        heads.extend(page(reading, query, states).await?);
    }
    heads.sort_by_key(|head| std::cmp::Reverse(head.id()));
    // A row may have changed its state between two of the statements.
    heads.dedup_by_key(|head| head.id());
    heads.truncate(query.limit);
    Ok(heads)
}

async fn page(reading: &Reading<'_>, query: &ListQuery, states: &[State]) -> Sql<Vec<Head>> {
    let mut statement = Statement::default();
    statement.filter(query);
    statement.and("x.id < ?", query.before.map(|id| *id.as_uuid()));
    statement.states(states);
    if states == [State::Leased] {
        statement.conditions.push_str(" AND x.lease_expires_at_ms IS NOT NULL");
    }
    if query.principal.is_some() && states.contains(&State::Completed) {
        statement.conditions.push_str(" AND x.ended_at_ms IS NOT NULL");
    }
    let any_state = states.is_empty() || states.contains(&State::Completed);
    // A prefix is a span of the index of ids.
    if any_state && !query.is_of_rare() && query.id_prefix.is_none() {
        if let Some(heads) = statement.newest(reading, query).await? {
            return Ok(heads);
        }
        // What somebody called is found by who called, unless little of it is looked for.
        let narrow = [&query.key, &query.tool, &query.upstream, &query.caller].iter().any(|filter| filter.is_some());
        if narrow || (query.principal.is_none() && query.namespace.is_some()) {
            return statement.of_all(reading, query.limit).await;
        }
    }
    statement.run(reading, "DESC", query.limit).await
}

/// Executions that may have events in a span of time, in the order of their ids.
pub(super) async fn touched(db: &Db, query: TouchedQuery) -> Result<Vec<Head>> {
    let query = &query;
    db.read(move |reading| Box::pin(touched_by(reading, query))).await
}

async fn touched_by(reading: &Reading<'_>, query: &TouchedQuery) -> Sql<Vec<Head>> {
    let border = first_id(query.since_ms);
    let after = query.after.map(|id| *id.as_uuid());
    let mut heads = Vec::new();
    // What was made before the span comes first, since ids grow with time.
    if after.is_none_or(|after| after < border) {
        for part in TOUCHED_LATER {
            let mut statement = Statement::of(part, query.since_ms);
            statement.and("x.id < ?", Some(border));
            statement.and("x.id > ?", after);
            statement.filter(&query.filter);
            statement.states(&query.filter.states);
            heads.extend(statement.run(reading, "ASC", query.limit).await?);
        }
        heads.sort_by_key(Head::id);
        heads.dedup_by_key(|head| head.id());
        heads.truncate(query.limit);
    }
    let rest = query.limit - heads.len();
    if rest > 0 {
        let mut statement = Statement::default();
        statement.and("x.id >= ?", Some(border));
        statement.and("x.id < ?", Some(first_id(query.until_ms)));
        statement.and("x.id > ?", after);
        statement.filter(&query.filter);
        statement.states(&query.filter.states);
        heads.extend(statement.run(reading, "ASC", rest).await?);
    }
    Ok(heads)
}

/// The lowest id of an execution that was submitted at `at_ms` or later.
fn since(at_ms: i64) -> Uuid {
    first_id(at_ms.saturating_sub(ID_SLACK_MS))
}

/// The lowest id that can be made at `at_ms`.
fn first_id(at_ms: i64) -> Uuid {
    *ExecutionId::first_at(at_ms).as_uuid()
}

/// The first and the last id that begin with `prefix`; none when no id can.
fn span_of(prefix: &str) -> Option<(Uuid, Uuid)> {
    const LOWEST: &str = "00000000-0000-0000-0000-000000000000";
    const HIGHEST: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    let prefix = prefix.to_ascii_lowercase();
    let fits = |(index, byte): (usize, u8)| match LOWEST.as_bytes().get(index) {
        Some(b'-') => byte == b'-',
        Some(_) => byte.is_ascii_hexdigit(),
        None => false,
    };
    if !prefix.bytes().enumerate().all(fits) {
        return None;
    }
    let filled = |rest: &str| Uuid::try_parse(&format!("{prefix}{}", &rest[prefix.len()..])).ok();
    Some((filled(LOWEST)?, filled(HIGHEST)?))
}

#[cfg(test)]
mod tests {
    use super::span_of;

    #[test]
    fn a_prefix_is_a_span_of_ids() {
        let (first, last) = span_of("0199A").unwrap();
        assert_eq!(first.to_string(), "0199a000-0000-0000-0000-000000000000");
        assert_eq!(last.to_string(), "0199afff-ffff-ffff-ffff-ffffffffffff");
        let whole = "0199a000-0000-7000-8000-000000000001";
        assert_eq!(span_of(whole).map(|(first, last)| (first == last, first.to_string())), Some((true, whole.into())));
        for none in ["x", "0199a-", "0199a000-0000-7000-8000-0000000000011", "%"] {
            assert_eq!(span_of(none), None, "{none}");
        }
        assert!(span_of("").is_some());
    }
}

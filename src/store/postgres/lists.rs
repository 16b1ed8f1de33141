//! Reads of more than one row: work for workers, what is due for the scheduler, totals. Pages for people are in
//! `pages.rs`. Each statement looks at the shards one by one, so that an index serves each of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use uuid::Uuid;

use super::bind::{count, int, ints, texts, uuids};
use super::db::{Db, Param, Reading};
use super::fault::{Fault, Sql};
use super::rows::{self, SHARDS, head_columns};
use crate::model::execution::{Head, State};
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::{CandidateQuery, Due, Result};

/// A shard with so much work is a backlog: then a worker takes of one shard at a time, so that workers rarely meet.
const BACKLOG: usize = 16;

/// Which shard this process looks at next when there is a backlog. Each call moves on, so that none is forgotten.
#[derive(Default)]
pub(super) struct Rotation {
    next: AtomicU64,
    backlog: AtomicBool,
}

impl Rotation {
    /// Begins where the id of the process says: processes begin in different places.
    fn turn(&self, process: ProcessId) -> i64 {
        let start = process.as_uuid().as_u128() as u64;
        let turn = start.wrapping_add(self.next.fetch_add(1, Ordering::Relaxed));
        (turn % SHARDS.unsigned_abs()) as i64
    }
}

macro_rules! candidates {
    ($state:literal, $due:literal) => {
        concat!(
            "SELECT ",
            head_columns!(),
            " FROM unnest($1::BIGINT[]) AS s(shard) CROSS JOIN unnest($2::TEXT[]) AS u(upstream) \
             CROSS JOIN LATERAL (SELECT x.* FROM executions x WHERE x.shard = s.shard AND x.state = '",
            $state,
            "' AND x.upstream = u.upstream AND ",
            $due,
            " AND (x.bound_to IS NULL OR x.bound_to = ANY($3::UUID[])) AND x.deadline_at_ms > $4 \
             ORDER BY x.run_at_ms LIMIT $5) e ORDER BY e.run_at_ms, e.id LIMIT $5"
        )
    };
}

pub(super) const READY: &str = candidates!("ready", "x.run_at_ms IS NOT NULL");
pub(super) const SCHEDULED: &str = candidates!("scheduled", "x.run_at_ms <= $4");

/// Work for a worker, oldest first over all its upstreams; of one shard alone while there is more than everybody can take.
pub(super) async fn candidates(db: &Db, rotation: &Rotation, query: CandidateQuery) -> Result<Vec<Head>> {
    if rotation.backlog.load(Ordering::Relaxed) {
        let shard = rotation.turn(query.process);
        let heads = of_shards(db, vec![shard], query.limit.max(BACKLOG), &query).await?;
        if heads.len() >= BACKLOG {
            return Ok(heads.into_iter().take(query.limit).collect());
        }
    }
    let heads = of_shards(db, (0..SHARDS).collect(), query.limit.max(BACKLOG), &query).await?;
    // So much was found that one shard alone probably has enough.
    rotation.backlog.store(heads.len() >= BACKLOG, Ordering::Relaxed);
    Ok(heads.into_iter().take(query.limit).collect())
}

async fn of_shards(db: &Db, shards: Vec<i64>, limit: usize, query: &CandidateQuery) -> Result<Vec<Head>> {
    let own = query.dead.iter().chain([&query.process]);
    let bound: Vec<Uuid> = own.map(|process| *process.as_uuid()).collect();
    let most = count(limit);
    let (shards, bound, most) = (&shards, &bound, &most);
    let mut heads: Vec<Head> = db
        .read(move |reading| {
            Box::pin(async move {
                let values = [ints(shards), texts(&query.upstreams), uuids(bound), int(&query.now_ms), int(most)];
                let mut heads = self::heads(reading, READY, &values).await?;
                heads.extend(self::heads(reading, SCHEDULED, &values).await?);
                Ok(heads)
            })
        })
        .await?;
    heads.sort_by_key(|head| (head.run_at_ms, head.id()));
    heads.truncate(limit);
    Ok(heads)
}

/// Every shard, as a table `s`.
macro_rules! shards {
    () => {
        "unnest(ARRAY[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]::BIGINT[]) AS s(shard)"
    };
}
pub(super) use shards;

pub(super) const EXPIRED: &str = concat!(
    "SELECT ",
    head_columns!(),
    " FROM ",
    shards!(),
    " CROSS JOIN LATERAL (SELECT x.* FROM executions x WHERE x.shard = s.shard AND x.lease_expires_at_ms <= $1 \
     ORDER BY x.lease_expires_at_ms LIMIT $2) e ORDER BY e.lease_expires_at_ms LIMIT $2"
);

pub(super) const OF_DEAD: &str = concat!(
    "SELECT ",
    head_columns!(),
    " FROM ",
    shards!(),
    " CROSS JOIN LATERAL (SELECT x.* FROM executions x WHERE x.shard = s.shard AND x.lease_expires_at_ms > $1 \
     AND x.lease_process = ANY($3::UUID[]) ORDER BY x.lease_expires_at_ms LIMIT $2) e \
     ORDER BY e.lease_expires_at_ms LIMIT $2"
);

pub(super) const PROMOTABLE: &str = concat!(
    "SELECT e.id FROM ",
    shards!(),
    " CROSS JOIN LATERAL (SELECT x.id, x.run_at_ms FROM executions x WHERE x.shard = s.shard \
     AND x.state = 'scheduled' AND x.run_at_ms <= $1 ORDER BY x.run_at_ms LIMIT $2) e ORDER BY e.run_at_ms LIMIT $2"
);

pub(super) const TIMED_OUT: &str = concat!(
    "SELECT e.id FROM ",
    shards!(),
    " CROSS JOIN LATERAL (SELECT x.id, x.deadline_at_ms FROM executions x WHERE x.shard = s.shard \
     AND x.deadline_at_ms <= $1 ORDER BY x.deadline_at_ms LIMIT $2) e ORDER BY e.deadline_at_ms LIMIT $2"
);

pub(super) const NEXT: &str = concat!(
    "SELECT min(n.at_ms) FROM ",
    shards!(),
    " CROSS JOIN LATERAL (SELECT min(lease_expires_at_ms) AS at_ms FROM executions x \
     WHERE x.shard = s.shard AND x.lease_expires_at_ms > $1 \
     UNION ALL SELECT min(deadline_at_ms) FROM executions x WHERE x.shard = s.shard AND x.deadline_at_ms > $1 \
     UNION ALL SELECT min(run_at_ms) FROM executions x \
     WHERE x.shard = s.shard AND x.state = 'scheduled' AND x.run_at_ms > $1) n"
);

/// What has to be settled now.
pub(super) async fn due(db: &Db, dead: &[ProcessId], now_ms: i64, limit: usize) -> Result<Due> {
    let dead: Vec<Uuid> = dead.iter().map(|process| *process.as_uuid()).collect();
    let dead = &dead;
    db.read(move |reading| {
        Box::pin(async move {
            let most = count(limit);
            let mut expired = heads(reading, EXPIRED, &[int(&now_ms), int(&most)]).await?;
            if !dead.is_empty() && expired.len() < limit {
                let rest = count(limit - expired.len());
                expired.extend(heads(reading, OF_DEAD, &[int(&now_ms), int(&rest), uuids(dead)]).await?);
            }
            let promotable = ids(reading, PROMOTABLE, &[int(&now_ms), int(&most)]).await?;
            let timed_out = ids(reading, TIMED_OUT, &[int(&now_ms), int(&most)]).await?;
            let more_wait = [expired.len(), promotable.len(), timed_out.len()].contains(&limit);
            let next_at_ms = match more_wait {
                true => Some(now_ms),
                false => {
                    let row = reading.query_opt(NEXT, &[int(&now_ms)]).await?;
                    row.map(|row| row.try_get(0)).transpose()?.flatten()
                }
            };
            Ok(Due { expired, promotable, timed_out, next_at_ms })
        })
    })
    .await
}

/// For people and checks: it looks at every row.
const TOTALS: &str = "SELECT state, count(*) FROM executions GROUP BY state";

/// Executions per state.
pub(super) async fn totals(db: &Db) -> Result<BTreeMap<State, u64>> {
    db.read(|reading| Box::pin(async move { count_states(reading).await })).await
}

/// The same on a connection that is there.
pub(super) async fn count_states(reading: &Reading<'_>) -> Sql<BTreeMap<State, u64>> {
    let mut totals: BTreeMap<State, u64> = State::ALL.into_iter().map(|state| (state, 0)).collect();
    for row in reading.query(TOTALS, &[]).await? {
        let (name, number): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
        let state = State::parse(name).ok_or_else(|| Fault::damaged(format!("{name} is no state")))?;
        totals.insert(state, number.unsigned_abs());
    }
    Ok(totals)
}

/// The rows that a statement with the columns of a head selects.
pub(super) async fn heads(reading: &Reading<'_>, sql: &str, values: &[Param<'_>]) -> Sql<Vec<Head>> {
    rows::heads(reading, &reading.query(sql, values).await?).await
}

async fn ids(reading: &Reading<'_>, sql: &str, values: &[Param<'_>]) -> Sql<Vec<ExecutionId>> {
    reading.query(sql, values).await?.iter().map(|row| rows::execution(row, 0)).collect()
}

/// What the tests of query plans read, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[
    (READY, "bigint[], text[], uuid[], bigint, bigint"),
    (SCHEDULED, "bigint[], text[], uuid[], bigint, bigint"),
    (EXPIRED, "bigint, bigint"),
    (OF_DEAD, "bigint, bigint, uuid[]"),
    (PROMOTABLE, "bigint, bigint"),
    (TIMED_OUT, "bigint, bigint"),
    (NEXT, "bigint"),
];

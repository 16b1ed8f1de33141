//! Which processes live: each has a row that it renews, with a time that ends by the clock of the database. No process's
//! own clock says that another one is dead.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use uuid::Uuid;

use super::bind::{int, uuid, uuids};
use super::db::{Db, Tx};
use super::fault::Sql;
use super::registry::clock;
use super::workers;
use crate::model::id::ProcessId;
use crate::store::Result;

/// The processes announced here, and the task that renews them.
pub(super) struct Liveness {
    db: Arc<Db>,
    own: Arc<Mutex<Vec<ProcessId>>>,
    renewals: Arc<Mutex<Renewals>>,
    renewing: JoinHandle<()>,
}

impl Drop for Liveness {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

const ANNOUNCE: &str = concat!(
    "INSERT INTO processes (id, started_at_ms, expires_at_ms) VALUES ($1, $2, ",
    clock!(),
    " + $3) ON CONFLICT (id) DO NOTHING"
);

const RENEW: &str =
    concat!("UPDATE processes SET expires_at_ms = ", clock!(), " + $2 WHERE id = ANY($1::UUID[]) RETURNING id");

/// A process of ours whose row was buried, since it was silent for too long, lives again.
const ANNOUNCE_AGAIN: &str = concat!(
    "INSERT INTO processes (id, started_at_ms, expires_at_ms) VALUES ($1, ",
    clock!(),
    ", ",
    clock!(),
    " + $2) ON CONFLICT (id) DO NOTHING"
);

impl Liveness {
    /// Of the processes that announce themselves at `db` from here.
    pub(super) fn new(db: &Arc<Db>) -> Liveness {
        let own: Arc<Mutex<Vec<ProcessId>>> = Arc::default();
        let interval = Duration::from_millis((db.settings().process_ttl_ms / RENEWALS).max(1));
        let renewals = Arc::new(Mutex::new(Renewals::every(interval)));
        let renewing = tokio::spawn(renew_for_ever(Arc::clone(db), Arc::clone(&own), Arc::clone(&renewals)));
        Liveness { db: Arc::clone(db), own, renewals, renewing }
    }

    /// The processes announced here.
    pub(super) fn own(&self) -> Vec<ProcessId> {
        lock(&self.own).clone()
    }

    /// How long ago the processes announced here could at last not be renewed in time.
    pub(super) fn since_silence(&self) -> Option<Duration> {
        lock(&self.renewals).since_late(Instant::now())
    }

    /// True for a process announced here.
    pub(super) fn is_own(&self, process: ProcessId) -> bool {
        lock(&self.own).contains(&process)
    }

    /// Announces a process; it lives until [`Liveness::release`], or until nothing was heard of it for its time.
    pub(super) async fn register_process(&self, process: ProcessId, now_ms: i64) -> Result<()> {
        let ttl_ms = ttl_ms(&self.db);
        self.db
            .transaction(move |tx| {
                Box::pin(async move {
                    tx.execute(ANNOUNCE, &[uuid(process.as_uuid()), int(&now_ms), int(&ttl_ms)]).await?;
                    Ok(())
                })
            })
            .await?;
        lock(&self.renewals).went_well(Instant::now());
        let mut own = lock(&self.own);
        if !own.contains(&process) {
            own.push(process);
        }
        Ok(())
    }

    /// Processes that are announced, hold leases or wait, and of which nothing was heard for too long; remote workers
    /// that are silent, or gone and still hold leases.
    pub(super) async fn dead_processes(&self, now_ms: i64) -> Result<Vec<ProcessId>> {
        let own: Vec<Uuid> = lock(&self.own).iter().map(|process| *process.as_uuid()).collect();
        let own = &own;
        self.db
            .read(move |reading| {
                Box::pin(async move {
                    let rows = reading.query(DEAD, &[int(&now_ms), uuids(own)]).await?;
                    rows.iter().map(|row| Ok(ProcessId::from_uuid(row.try_get(0)?))).collect()
                })
            })
            .await
    }

    /// Forgets a dead process: it waits for nobody, and what only it could run may run anywhere.
    pub(super) async fn bury_process(&self, process: ProcessId) -> Result<()> {
        self.db.transaction(move |tx| Box::pin(bury(tx, process))).await
    }

    /// Takes back what was announced here: to all others these processes are dead at once.
    pub(super) async fn release(&self) {
        self.renewing.abort();
        let own: Vec<Uuid> = std::mem::take(&mut *lock(&self.own)).iter().map(|process| *process.as_uuid()).collect();
        if own.is_empty() {
            return;
        }
        let own = &own;
        let gone = self
            .db
            .transaction(move |tx| {
                Box::pin(async move {
                    tx.execute(EXPIRE, &[uuids(own)]).await?;
                    Ok(())
                })
            })
            .await;
        if let Err(error) = gone {
            // The rows end by themselves.
            tracing::debug!(%error, "could not take this process's row back");
        }
    }
}

const EXPIRE: &str = "UPDATE processes SET expires_at_ms = 0 WHERE id = ANY($1::UUID[])";

/// Renewals in the time a process lives without one.
const RENEWALS: u64 = 3;

fn ttl_ms(db: &Db) -> i64 {
    i64::try_from(db.settings().process_ttl_ms).unwrap_or(i64::MAX)
}

/// When this process could say that it lives, and when it could not.
struct Renewals {
    interval: Duration,
    last: Option<Instant>,
    /// When the last time without renewals was over.
    back: Option<Instant>,
}

impl Renewals {
    fn every(interval: Duration) -> Renewals {
        Renewals { interval, last: None, back: None }
    }

    fn went_well(&mut self, now: Instant) {
        if self.are_late(now) {
            self.back = Some(now);
        }
        self.last = Some(now);
    }

    /// How long ago they were late at last; no time at all while they are.
    fn since_late(&self, now: Instant) -> Option<Duration> {
        match self.are_late(now) {
            true => Some(Duration::ZERO),
            false => self.back.map(|back| now.saturating_duration_since(back)),
        }
    }

    /// By half an interval: before a neighbour's row that was renewed just before things stood still is over.
    fn are_late(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.saturating_duration_since(last) > self.interval * 3 / 2)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("no thread panics with this lock")
}

async fn renew_for_ever(db: Arc<Db>, own: Arc<Mutex<Vec<ProcessId>>>, renewals: Arc<Mutex<Renewals>>) {
    let interval = lock(&renewals).interval;
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let ids: Vec<Uuid> = lock(&own).iter().map(|process| *process.as_uuid()).collect();
        if ids.is_empty() {
            continue;
        }
        let (ids, ttl_ms) = (&ids, ttl_ms(&db));
        let renewed = db.transaction(move |tx| Box::pin(renew(tx, ids, ttl_ms))).await;
        match renewed {
            Ok(()) => lock(&renewals).went_well(Instant::now()),
            Err(error) => tracing::warn!(%error, "could not tell the others that this process lives"),
        }
    }
}

async fn renew(tx: &Tx<'_>, ids: &[Uuid], ttl_ms: i64) -> Sql<()> {
    let all = ids.to_vec();
    let rows = tx.query(RENEW, &[uuids(&all), int(&ttl_ms)]).await?;
    let mut renewed = Vec::with_capacity(rows.len());
    for row in &rows {
        renewed.push(row.try_get::<_, Uuid>(0)?);
    }
    for id in ids.iter().filter(|id| !renewed.contains(id)) {
        tx.execute(ANNOUNCE_AGAIN, &[uuid(id), int(&ttl_ms)]).await?;
    }
    Ok(())
}

/// A process whose time is over, and one that holds a lease or waits and has no row; of remote workers those of which
/// nothing was heard, while they are there or hold leases.
const DEAD: &str = concat!(
    "SELECT p.id FROM (SELECT id FROM processes \
     UNION SELECT lease_process FROM executions WHERE lease_expires_at_ms IS NOT NULL \
     UNION SELECT id FROM workers WHERE kind = 'remote' AND gone_at_ms IS NULL) AS p(id) \
     LEFT JOIN processes l ON l.id = p.id \
     LEFT JOIN workers w ON w.id = p.id AND w.kind = 'remote' \
     WHERE p.id <> ALL($2::UUID[]) AND CASE WHEN w.id IS NULL THEN (l.id IS NULL OR l.expires_at_ms <= ",
    clock!(),
    ") ELSE (w.gone_at_ms IS NOT NULL OR w.silent_at_ms <= $1) END ORDER BY p.id"
);

const FORGET_WAITING: &str = "UPDATE executions SET waiter = NULL, version = version + 1 \
    WHERE key IS NULL AND delivered_at_ms IS NULL AND waiter = $1";

/// What ended keeps the name of its process.
const UNBIND: &str = "UPDATE executions SET bound_to = NULL, version = version + 1 \
    WHERE (state = 'ready' OR state = 'scheduled' OR state = 'waiting' OR state = 'unknown') AND bound_to = $1";

const DELETE_PROCESS: &str = "DELETE FROM processes WHERE id = $1";

async fn bury(tx: &Tx<'_>, process: ProcessId) -> Sql<()> {
    for sql in [FORGET_WAITING, UNBIND, DELETE_PROCESS] {
        tx.execute(sql, &[uuid(process.as_uuid())]).await?;
    }
    workers::bury(tx, process).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_is_late_after_one_and_a_half_intervals_and_that_is_remembered() {
        let mut renewals = Renewals::every(Duration::from_millis(100));
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let ago = |ms| Some(Duration::from_millis(ms));
        assert_eq!(renewals.since_late(at(5_000)), None, "who has just come was never late");
        renewals.went_well(at(5_000));
        renewals.went_well(at(5_150));
        assert_eq!(renewals.since_late(at(5_300)), None);
        assert_eq!(renewals.since_late(at(5_301)), ago(0));
        renewals.went_well(at(5_400));
        assert_eq!(renewals.since_late(at(5_400)), ago(0), "although nobody looked while it was");
        renewals.went_well(at(5_500));
        assert_eq!(renewals.since_late(at(5_550)), ago(150));
    }
}

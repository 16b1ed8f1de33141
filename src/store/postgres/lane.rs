//! A connection that writes batches, one after the other: first what needs no reading, in one round trip, then the rest in
//! a transaction that reads. It opens its connection itself, and runs what has to run again (R1, R2) as long as somebody
//! waits for it. Which writes come together is decided in `writer.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{self, BoxFuture};
use tokio::sync::oneshot;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

use super::attached::Attached;
use super::batch::{self, Outcome, Write};
use super::db::{Db, Param, Tx};
use super::draft::Columns;
use super::fault::{Fault, Kind, Sql, repeat};
use super::liveness::Liveness;
use super::memory::Memory;
use super::pool::Connection;
use super::quick::Quick;
use super::retry::Retry;
use super::settings::Isolation;
use super::told::Uncertain;
use super::write::struck;
use crate::model::id::ExecutionId;
use crate::store::{Error, Result, crash};

/// A write, until when it makes sense, and who waits for its answer; nobody waits for a delivery mark.
pub(super) struct Item {
    pub(super) write: Write,
    pub(super) until: Instant,
    pub(super) answer: Option<oneshot::Sender<Result<Outcome>>>,
}

impl Item {
    pub(super) fn answer(self, outcome: Result<Outcome>) {
        match (self.answer, outcome) {
            // Whoever asked may have gone.
            (Some(answer), outcome) => drop(answer.send(outcome)),
            (None, Err(error)) => tracing::warn!(%error, "lost a delivery mark"),
            (None, Ok(_)) => {}
        }
    }
}

/// What every lane of a writer shares.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) db: Arc<Db>,
    pub(super) liveness: Arc<Liveness>,
    pub(super) memory: Arc<Memory>,
}

/// A connection of a lane.
struct Own {
    connection: Arc<Connection>,
    opened: Instant,
    used: Instant,
    /// Whether statements may be prepared, and those that are.
    named: bool,
    prepared: HashMap<&'static str, Statement>,
}

/// A lane, with or without a connection.
pub(super) struct Lane {
    shared: Shared,
    own: Option<Own>,
}

impl Lane {
    pub(super) fn new(shared: Shared) -> Lane {
        Lane { shared, own: None }
    }

    /// Closes a connection that was not used for so long.
    pub(super) fn tend(&mut self, idle: Duration) {
        self.own = self.own.take().filter(|own| own.used.elapsed() < idle);
    }

    /// Writes a batch and answers.
    pub(super) async fn run(&mut self, items: Vec<Item>) {
        let now = Instant::now();
        let (items, late): (Vec<Item>, Vec<Item>) = items.into_iter().partition(|item| item.until > now);
        for item in late {
            item.answer(Err(Error::Unavailable("PostgreSQL took too long with what came before; try again".into())));
        }
        let asked = items.iter().filter(|item| item.answer.is_some()).count();
        let mut uncertain = Uncertain::default();
        let (items, sent) = self.quickly(items, &mut uncertain).await;
        if !items.is_empty() {
            self.carefully(items, sent, &mut uncertain).await;
        }
        if let Some(observer) = self.shared.db.observed().get() {
            observer.transaction(asked, now.elapsed());
        }
    }

    /// Writes and answers what needs no reading; the rest in order, and whether some of it may have been written.
    async fn quickly(&mut self, items: Vec<Item>, uncertain: &mut Uncertain) -> (Vec<Item>, bool) {
        let Shared { db, liveness, memory } = self.shared.clone();
        let writes: Vec<&Write> = items.iter().map(|item| &item.write).collect();
        let policy_ids = batch::policy_ids(db.policies(), &writes);
        let quick = Quick::decide(&writes, &policy_ids, (db.settings(), &liveness, &memory));
        // Something in it that can not be stored is found by the batch that reads.
        let Ok(columns) = quick.columns() else { return (items, false) };
        let sends = !columns.expected.is_empty();
        let mut struck = HashSet::new();
        if sends {
            uncertain.remember(quick.committed());
            let limit = Duration::from_millis(db.settings().commit_deadline_ms);
            let sent = match tokio::time::timeout(limit, self.send(&columns)).await {
                Ok(sent) => sent,
                Err(_) => Err(Fault::lost("nothing was heard of a commit")),
            };
            match sent {
                Ok(ids) => {
                    struck = ids;
                    // Whoever is answered finds it counted.
                    db.tell(&uncertain.struck(&struck));
                    // What was not struck is known not to be stored by this; what is there of it was told before.
                    *uncertain = Uncertain::default();
                }
                Err(fault) => {
                    tracing::debug!(error = %fault.error, kind = ?fault.kind, "a batch has to be read for");
                    if fault.ends_connection() {
                        self.own = None;
                    }
                    if fault.kind != Kind::Lost {
                        // Nothing of it is stored; what is there of it was told before.
                        *uncertain = Uncertain::default();
                    }
                    return (items, true);
                }
            }
        }
        let expected = columns.expected;
        let outcomes = quick.stored(&writes, &expected, &struck);
        let mut left = Vec::new();
        for (item, outcome) in items.into_iter().zip(outcomes) {
            match outcome {
                Some(outcome) => item.answer(Ok(outcome)),
                None => left.push(item),
            }
        }
        (left, sends)
    }

    /// Sends all at once; which rows it struck. Each statement writes whole rows with all that belongs to them, and none
    /// depends on another: whatever of it is committed may stay.
    async fn send(&mut self, columns: &Columns<'_>) -> Sql<HashSet<ExecutionId>> {
        let begin = self.shared.db.connector().begin_at(Isolation::ReadCommitted);
        let pooled = self.shared.db.settings().pooled;
        let own = self.own().await?;
        let stored = Sending::new(own, columns.stored.statement()).await?;
        let changed = Sending::new(own, columns.changed.statement()).await?;
        let client: &Client = &own.connection;
        crash::point("before_commit");
        let mut all = HashSet::new();
        if !pooled && columns.stored.is_empty() {
            all.extend(changed.run(client).await?);
        } else if !pooled && columns.changed.is_empty() {
            all.extend(stored.run(client).await?);
        } else {
            let stores = async {
                match columns.stored.is_empty() {
                    true => Ok(Vec::new()),
                    false => stored.run(client).await,
                }
            };
            let changes = async {
                match columns.changed.is_empty() {
                    true => Ok(Vec::new()),
                    false => changed.run(client).await,
                }
            };
            let (begun, stores, changes, committed) =
                future::join4(client.batch_execute(&begin), stores, changes, client.batch_execute("COMMIT")).await;
            match begun {
                Ok(()) => {
                    all.extend(stores?);
                    all.extend(changes?);
                    committed?;
                }
                // Then each statement was a transaction of its own, and one that says what it struck has stored that.
                Err(error) => {
                    for told in [stores, changes] {
                        match told {
                            Ok(ids) => all.extend(ids),
                            Err(fault) if fault.kind == Kind::Lost => return Err(fault),
                            Err(_) => {}
                        }
                    }
                    if all.is_empty() {
                        return Err(error.into());
                    }
                }
            }
        }
        crash::point("after_commit");
        Ok(all)
    }

    /// Writes and answers what has to be read for. A fault of one write is looked for in halves, so that it fails alone.
    async fn carefully(&mut self, items: Vec<Item>, sent: bool, uncertain: &mut Uncertain) {
        let mut parts = vec![items];
        while let Some(mut items) = parts.pop() {
            match self.together(&items, sent, uncertain).await {
                Ok(outcomes) => {
                    for (item, outcome) in items.into_iter().zip(outcomes) {
                        item.answer(Ok(outcome));
                    }
                }
                Err(fault) if items.len() > 1 && matches!(fault.kind, Kind::Own | Kind::Unique(_)) => {
                    let half = items.split_off(items.len() / 2);
                    parts.push(half);
                    parts.push(items);
                }
                Err(fault) => {
                    for item in items {
                        item.answer(Err(repeat(&fault.error)));
                    }
                }
            }
        }
    }

    /// Runs as often as makes sense, and as long as somebody waits.
    async fn together(&mut self, items: &[Item], sent: bool, uncertain: &mut Uncertain) -> Sql<Vec<Outcome>> {
        let writes: Vec<&Write> = items.iter().map(|item| &item.write).collect();
        let until = items.iter().map(|item| item.until).max().unwrap_or_else(Instant::now);
        let longest = Duration::from_millis(self.shared.db.settings().commit_deadline_ms);
        let mut retry = Retry::until(until);
        let mut again = sent;
        let attached = Attached::default();
        loop {
            let limit = retry.left().min(longest).max(SHORTEST);
            let fault = match tokio::time::timeout(limit, self.once(&writes, (again, &attached), uncertain)).await {
                Ok(Ok(outcomes)) => return Ok(outcomes),
                Ok(Err(fault)) => fault,
                Err(_) => {
                    self.own = None;
                    Fault::lost("PostgreSQL did not answer in time; it is not known whether it wrote")
                }
            };
            // After a commit of which nothing was heard the same runs again, and may find its own rows.
            again = true;
            if !fault.may_run_again() || !retry.again().await {
                return Err(fault);
            }
        }
    }

    async fn once(
        &mut self,
        writes: &[&Write],
        (again, attached): (bool, &Attached),
        uncertain: &mut Uncertain,
    ) -> Sql<Vec<Outcome>> {
        let Shared { db, liveness, memory } = self.shared.clone();
        // Stored before the batch, so that one that runs again finds them.
        while let Some(policy) = batch::new_policy(db.policies(), writes) {
            let nothing = &mut Uncertain::default();
            let id = self.transaction(move |tx| Box::pin(tx.policies().insert(policy)), nothing).await?;
            db.policies().note_stored(policy, &id);
        }
        let policy_ids = batch::policy_ids(db.policies(), writes);
        let (policy_ids, liveness) = (&policy_ids[..], &*liveness);
        let run = self.transaction(
            move |tx| Box::pin(batch::run(tx, batch::Given { writes, policy_ids, liveness, again, attached })),
            uncertain,
        );
        let (outcomes, entries) = run.await?;
        memory.put(entries);
        Ok(outcomes)
    }

    async fn transaction<'env, T: Send>(
        &mut self,
        run: impl for<'a> Fn(&'a Tx<'env>) -> BoxFuture<'a, Sql<T>> + Send + Sync,
        uncertain: &mut Uncertain,
    ) -> Sql<T> {
        let connection = Arc::clone(&self.own().await?.connection);
        let (done, clean) = self.shared.db.transaction_on(&connection, &run, uncertain).await;
        if !clean {
            self.own = None;
        }
        done
    }

    /// The connection, opened where there is none that is any good.
    async fn own(&mut self) -> Sql<&mut Own> {
        let settings = Arc::clone(self.shared.db.settings());
        let oldest = Duration::from_millis(settings.lifetime_max_ms);
        let now = Instant::now();
        let mut own = match self.own.take() {
            Some(own) if !own.connection.is_closed() && own.opened.elapsed() < oldest => own,
            _ => {
                let connection = Arc::new(self.shared.db.connect().await?);
                if !settings.pooled {
                    // For single statements: what reads begins a transaction as the settings say.
                    connection.batch_execute(AT_READ_COMMITTED).await?;
                }
                // Databases that only speak like PostgreSQL plan in their own way, and are sent the text each time.
                let named = !settings.pooled && connection.batch_execute(PLANS).await.is_ok();
                Own { connection, opened: now, used: now, named, prepared: HashMap::new() }
            }
        };
        own.used = now;
        Ok(self.own.insert(own))
    }
}

/// A statement that strikes rows has no use for more: each row carries its version, and a wait for another transaction ends
/// in a look at that instead of an error.
const AT_READ_COMMITTED: &str = "SET default_transaction_isolation = 'read committed'";

/// What is prepared is planned once, perhaps on empty tables, and has to be right for large ones: rows are only ever looked
/// up by key here, so that nothing but that may be planned. Planning a batch anew each time takes as long as running it.
pub(super) const PLANS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off";

/// What a run gets at least.
const SHORTEST: Duration = Duration::from_millis(50);

/// A statement with its values.
struct Sending<'a> {
    sql: &'static str,
    /// Absent: it is sent with its text, and planned for these very values.
    statement: Option<Statement>,
    values: Vec<Param<'a>>,
}

impl<'a> Sending<'a> {
    async fn new(own: &mut Own, (sql, values): (&'static str, Vec<Param<'a>>)) -> Sql<Sending<'a>> {
        if !own.named {
            return Ok(Sending { sql, statement: None, values });
        }
        let statement = match own.prepared.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let types: Vec<Type> = values.iter().map(|(_, kind)| kind.clone()).collect();
                let statement = own.connection.prepare_typed(sql, &types).await?;
                own.prepared.insert(sql, statement.clone());
                statement
            }
        };
        Ok(Sending { sql, statement: Some(statement), values })
    }

    /// Sends it when it is first polled; the rows it struck.
    async fn run(&self, client: &Client) -> Sql<Vec<ExecutionId>> {
        let rows: Vec<Row> = match &self.statement {
            Some(statement) => {
                let values: Vec<&(dyn ToSql + Sync)> = self.values.iter().map(|(value, _)| *value).collect();
                client.query(statement, &values).await?
            }
            None => client.query_typed(self.sql, &self.values).await?,
        };
        struck(&rows)
    }
}

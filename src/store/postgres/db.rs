//! Reads and transactions, on the connections of the pool and on those of somebody's own: what runs again and what is asked
//! again is decided here for everybody but the writer (R1, R2). Knows no table.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::fault::{CLOSED, Fault, Kind, Sql};
use super::migrate::{self, Hand, Hands};
use super::policies::{Policies, PolicyReader};
use super::pool::{self, Connection, Connector};
use super::retry::Retry;
use super::settings::PostgresSettings;
use super::tls::Target;
use super::told::{Told, Uncertain};
use super::vendor::Vendor;
use crate::store::observer::{Committed, Connections, Observed};
use crate::store::{Result, crash};

/// A parameter and its type: statements are sent with their types, so that no type is looked up and nothing is prepared.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A database with its pool.
pub(super) struct Db {
    connector: Connector,
    pool: Pool,
    tender: JoinHandle<()>,
    policies: Arc<Policies>,
    settings: Arc<PostgresSettings>,
    observed: Observed,
    /// Transactions that met others run again one after the other: together they would meet each other again.
    turns: Mutex<()>,
}

impl Drop for Db {
    fn drop(&mut self) {
        self.tender.abort();
    }
}

/// A connection to read on. Its life is that of what the reading closure borrows.
pub(super) struct Reading<'env> {
    link: Link,
    policies: Arc<Policies>,
    settings: Arc<PostgresSettings>,
    failed: AtomicBool,
    env: PhantomData<&'env ()>,
}

/// What statements are sent on. The large variant is the common one of reads: a box would cost each an allocation.
#[allow(clippy::large_enum_variant)]
enum Link {
    /// A connection from the pool. Taken out of it, and so closed, unless what ran on it ended well.
    Pooled { object: Option<Object>, clean: bool },
    /// One of somebody's own, who closes it unless what ran on it ended well.
    Own(Arc<Connection>),
}

impl Drop for Link {
    fn drop(&mut self) {
        // A future that was dropped half-way may leave a transaction open; nobody may come into that.
        if let Link::Pooled { object, clean: false } = self {
            drop(object.take().map(Object::take));
        }
    }
}

/// An open transaction.
pub(super) struct Tx<'env> {
    reading: Reading<'env>,
    told: Told,
    /// The same ran before, and nothing was heard of its end: what it wrote may be there.
    pub(super) may_be_there: bool,
}

impl<'env> Deref for Tx<'env> {
    type Target = Reading<'env>;

    fn deref(&self) -> &Reading<'env> {
        &self.reading
    }
}

impl Reading<'_> {
    pub(super) fn client(&self) -> &Client {
        match &self.link {
            Link::Pooled { object, .. } => object.as_ref().expect("a pooled connection is there until it is dropped"),
            Link::Own(connection) => connection,
        }
    }

    /// Runs a statement for its rows.
    pub(super) async fn query(&self, sql: &str, params: &[Param<'_>]) -> Sql<Vec<Row>> {
        let rows = self.client().query_typed(sql, params).await;
        rows.map_err(|error| self.fault(error))
    }

    /// Runs a statement for its row; an error when there are two.
    pub(super) async fn query_opt(&self, sql: &str, params: &[Param<'_>]) -> Sql<Option<Row>> {
        let mut rows = self.query(sql, params).await?;
        match rows.len() {
            0 | 1 => Ok(rows.pop()),
            many => Err(Fault::internal(format!("a statement for one row gave {many}"))),
        }
    }

    /// Runs a statement for the number of rows it struck.
    pub(super) async fn execute(&self, sql: &str, params: &[Param<'_>]) -> Sql<u64> {
        let struck = self.client().execute_typed(sql, params).await;
        struck.map_err(|error| self.fault(error))
    }

    pub(super) fn policies(&self) -> PolicyReader<'_> {
        PolicyReader::new(&self.policies, self)
    }

    pub(super) fn settings(&self) -> &PostgresSettings {
        &self.settings
    }

    /// COMMIT of a transaction in which a statement failed rolls back and says nothing: it has to be remembered.
    fn fault(&self, error: tokio_postgres::Error) -> Fault {
        self.failed.store(true, Ordering::Relaxed);
        error.into()
    }

    async fn batch(&self, sql: &str) -> Sql<()> {
        self.client().batch_execute(sql).await.map_err(|error| self.fault(error))
    }

    /// The connection may be used by the next one.
    fn give_back(mut self) {
        if let Link::Pooled { clean, .. } = &mut self.link {
            *clean = true;
        }
    }
}

impl Db {
    /// A pool for the database at `url`. Opens no connection yet.
    pub(super) fn new(url: &str, settings: Arc<PostgresSettings>) -> Result<Db> {
        let target = Target::of(url, settings.root_certificates.as_deref())?;
        let connector = Connector::new(target, Arc::clone(&settings));
        let pool = connector.pool().map_err(|fault| fault.error)?;
        let tender = pool::tend(&pool, Duration::from_millis(settings.idle_timeout_ms));
        Ok(Db {
            connector,
            pool,
            tender,
            policies: Arc::default(),
            settings,
            observed: Observed::default(),
            turns: Mutex::default(),
        })
    }

    /// How transactions begin, and whether they have to be told.
    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// A connection of the caller's own, outside the pool: for the set-up, and for what stays.
    pub(super) async fn connect(&self) -> Sql<Connection> {
        self.connector.connect().await
    }

    /// Brings the schema up to date, or checks it, on connections of its own. Begins again where one breaks: every part
    /// of it may run twice.
    pub(super) async fn migrate(&self) -> Result<()> {
        let mut retry = self.patience();
        loop {
            let Err(fault) = self.migrate_once().await else { return Ok(()) };
            if !fault.may_run_again() || !retry.again().await {
                return Err(fault.error);
            }
        }
    }

    async fn migrate_once(&self) -> Sql<()> {
        let (work, sign) = (self.connect().await?, self.connect().await?);
        let version = work.query_typed(Vendor::QUESTION, &[]).await?;
        let version = version.first().ok_or_else(|| Fault::internal("the database does not say what it is"))?;
        let vendor = Vendor::of(version.try_get(0)?);
        let begin = self.connector.reads_in_transactions().then(|| self.connector.begin());
        let hand = |client| Hand { client, begin: begin.as_deref() };
        let hands = Hands { work: hand(&work), sign: hand(&sign) };
        migrate::run(hands, vendor, self.settings.migrates).await.map(drop)
    }

    pub(super) fn settings(&self) -> &Arc<PostgresSettings> {
        &self.settings
    }

    pub(super) fn policies(&self) -> &Arc<Policies> {
        &self.policies
    }

    /// Who is told of commits.
    pub(super) fn observed(&self) -> &Observed {
        &self.observed
    }

    /// Tells of commits.
    pub(super) fn tell(&self, committed: &[Committed]) {
        if let Some(observer) = self.observed.get().filter(|_| !committed.is_empty()) {
            observer.committed(committed);
        }
    }

    /// How the connections of the pool stand.
    pub(super) fn connections(&self) -> Connections {
        let status = self.pool.status();
        let (idle, waiting) = (status.available, status.waiting);
        Connections { busy: status.size.saturating_sub(idle), idle, waiting }
    }

    /// Closes the pool; what is under way ends, what comes later fails.
    pub(super) fn close(&self) {
        self.pool.close();
    }

    async fn reading(&self) -> Sql<Reading<'static>> {
        if self.pool.is_closed() {
            return Err(Fault::unavailable(CLOSED));
        }
        let object = pool::take(&self.pool, self.connector.place()).await?;
        Ok(self.reading_on(Link::Pooled { object: Some(object), clean: false }))
    }

    fn reading_on<'env>(&self, link: Link) -> Reading<'env> {
        Reading {
            link,
            policies: Arc::clone(&self.policies),
            settings: Arc::clone(&self.settings),
            failed: AtomicBool::new(false),
            env: PhantomData,
        }
    }

    /// Where one connection was lost, those that wait in the pool lead to the same that is gone.
    fn forget_idle(&self, fault: &Fault) {
        if fault.kind == Kind::Lost {
            let _ = self.pool.retain(|_, _| false);
        }
    }

    fn patience(&self) -> Retry {
        Retry::within(Duration::from_millis(self.settings.answer_deadline_ms))
    }

    /// Reads outside a transaction. Runs again on a connection that broke, as idle ones do, and on 40001.
    pub(super) async fn read<'env, T: Send>(
        &self,
        run: impl for<'a> Fn(&'a Reading<'env>) -> BoxFuture<'a, Sql<T>> + Send + Sync,
    ) -> Result<T> {
        let mut retry = self.patience();
        loop {
            let limit = retry.left().max(SHORTEST);
            let fault = match tokio::time::timeout(limit, self.read_once(&run)).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(fault)) => fault,
                Err(_) => Fault::lost("PostgreSQL did not answer in time; try again"),
            };
            self.forget_idle(&fault);
            if !fault.may_run_again() || !retry.again().await {
                return Err(fault.error);
            }
        }
    }

    async fn read_once<'env, T: Send>(
        &self,
        run: &(impl for<'a> Fn(&'a Reading<'env>) -> BoxFuture<'a, Sql<T>> + Send + Sync),
    ) -> Sql<T> {
        let reading: Reading<'env> = self.reading().await?;
        let in_transaction = self.connector.reads_in_transactions();
        if in_transaction {
            reading.batch(&self.connector.begin()).await?;
        }
        let value = run(&reading).await;
        match &value {
            Err(fault) if fault.ends_connection() => return value,
            _ if in_transaction => reading.batch("ROLLBACK").await?,
            _ => {}
        }
        reading.give_back();
        value
    }

    /// One transaction. `run` may run several times, and after a commit of which nothing was heard once more although
    /// it took effect: it has to write the same ids, versions and unique keys, or find what it wrote.
    pub(super) async fn transaction<'env, T: Send>(
        &self,
        run: impl for<'a> Fn(&'a Tx<'env>) -> BoxFuture<'a, Sql<T>> + Send + Sync,
    ) -> Result<T> {
        let mut retry = self.patience();
        let mut uncertain = Uncertain::default();
        let mut may_be_there = false;
        let mut turn = None;
        loop {
            let limit = retry.left().max(SHORTEST);
            let once = self.transaction_once(&run, &mut uncertain, may_be_there);
            let fault = match tokio::time::timeout(limit, once).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(fault)) => fault,
                Err(_) => Fault::lost("PostgreSQL did not answer in time; it is not known whether it wrote"),
            };
            self.forget_idle(&fault);
            if !fault.may_run_again() || !retry.again().await {
                return Err(fault.error);
            }
            may_be_there |= fault.kind == Kind::Lost;
            if fault.kind == Kind::Again && turn.is_none() {
                let Ok(own) = tokio::time::timeout(retry.left(), self.turns.lock()).await else {
                    return Err(fault.error);
                };
                turn = Some(own);
            }
        }
    }

    async fn transaction_once<'env, T: Send>(
        &self,
        run: &(impl for<'a> Fn(&'a Tx<'env>) -> BoxFuture<'a, Sql<T>> + Send + Sync),
        uncertain: &mut Uncertain,
        may_be_there: bool,
    ) -> Sql<T> {
        let tx = Tx { reading: self.reading().await?, told: Told::default(), may_be_there };
        let (done, clean) = self.within(&tx, run, uncertain).await;
        if clean {
            tx.reading.give_back();
        }
        done
    }

    /// One transaction on a connection of the caller's own, once; and whether the connection may be used on.
    pub(super) async fn transaction_on<'env, T: Send>(
        &self,
        own: &Arc<Connection>,
        run: &(impl for<'a> Fn(&'a Tx<'env>) -> BoxFuture<'a, Sql<T>> + Send + Sync),
        uncertain: &mut Uncertain,
    ) -> (Sql<T>, bool) {
        let reading = self.reading_on(Link::Own(Arc::clone(own)));
        // Whoever has a connection of its own knows by itself what it has sent.
        let tx = Tx { reading, told: Told::default(), may_be_there: false };
        self.within(&tx, run, uncertain).await
    }

    /// Begins, runs and commits; and whether the connection is without a transaction after that.
    async fn within<'env, T: Send>(
        &self,
        tx: &Tx<'env>,
        run: &(impl for<'a> Fn(&'a Tx<'env>) -> BoxFuture<'a, Sql<T>> + Send + Sync),
        uncertain: &mut Uncertain,
    ) -> (Sql<T>, bool) {
        if let Err(fault) = tx.batch(&self.connector.begin()).await {
            return (Err(fault), false);
        }
        let done = match run(tx).await {
            // Somebody swallowed an error; COMMIT would roll back without a word.
            Ok(_) if tx.failed.load(Ordering::Relaxed) => {
                Err(Fault::internal("a transaction went on after an error in it"))
            }
            done => done,
        };
        match done {
            Ok(value) => {
                crash::point("before_commit");
                let stored = tx.told.remember(uncertain);
                if let Err(fault) = tx.commit().await {
                    if fault.kind != Kind::Lost {
                        uncertain.forget(&stored);
                    }
                    return (Err(fault), false);
                }
                self.tell(&uncertain.stored(&stored));
                crash::point("after_commit");
                (Ok(value), true)
            }
            Err(fault) => {
                let clean = !fault.ends_connection() && tx.batch("ROLLBACK").await.is_ok();
                (Err(fault), clean)
            }
        }
    }
}

impl Tx<'_> {
    /// What is to be told of it after its commit.
    pub(super) fn told(&self) -> &Told {
        &self.told
    }

    /// The database bounds statements, but no commit: we do, by closing the socket and never by cancelling, which would
    /// make a commit that waits for its standby look like one that succeeded.
    async fn commit(&self) -> Sql<()> {
        let limit = Duration::from_millis(self.settings.commit_deadline_ms);
        match tokio::time::timeout(limit, self.batch("COMMIT")).await {
            Ok(done) => done,
            Err(_) => Err(Fault::lost("nothing was heard of a commit; it is not known whether PostgreSQL wrote")),
        }
    }
}

/// What a run gets at least: patience that is over may have been used up by waiting for a connection.
const SHORTEST: Duration = Duration::from_millis(50);

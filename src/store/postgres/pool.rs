//! Connections: how one is opened and prepared for its work, and the pool of those that reads and rare writes share.
//! What runs on them is not looked at.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Connect, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Timeouts,
};
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config};

use super::fault::{CLOSED, Fault, Sql};
use super::settings::{Isolation, PostgresSettings};
use super::tls::Target;

/// A connection of somebody's own. Dropping it closes the socket at once, whatever is under way: nothing is cancelled.
pub(super) struct Connection {
    client: Client,
    task: JoinHandle<()>,
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Opens connections, one like the other.
#[derive(Clone)]
pub(super) struct Connector {
    target: Arc<Target>,
    settings: Arc<PostgresSettings>,
}

impl Connector {
    pub(super) fn new(target: Target, settings: Arc<PostgresSettings>) -> Connector {
        Connector { target: Arc::new(target), settings }
    }

    /// Where it leads, for people.
    pub(super) fn place(&self) -> &str {
        &self.target.place
    }

    /// A connection of the caller's own, for the writer and for short work such as the set-up.
    pub(super) async fn connect(&self) -> Sql<Connection> {
        let limit = Duration::from_millis(self.settings.connect_timeout_ms);
        let opening = async {
            let (client, connection) = self
                .target
                .config
                .connect(self.target.tls.clone())
                .await
                .map_err(|error| Fault::connecting(self.place(), &error))?;
            // An error of the connection reaches whoever waits for an answer on it.
            let connection = Connection { client, task: tokio::spawn(async move { drop(connection.await) }) };
            let set_up = self.set_up();
            if !set_up.is_empty() {
                connection.batch_execute(&set_up).await?;
            }
            Ok(connection)
        };
        match tokio::time::timeout(limit, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(Fault::lost(format!(
                "PostgreSQL at {} did not answer within {} ms; see whether it lives and can be reached",
                self.place(),
                self.settings.connect_timeout_ms
            ))),
        }
    }

    /// What a session is told once. Through a pooler nothing would be kept: see [`Connector::begin`].
    fn set_up(&self) -> String {
        if self.settings.pooled {
            return String::new();
        }
        let mut sql = format!(
            "SET default_transaction_isolation = '{}'; SET statement_timeout = {}",
            self.settings.isolation.sql().to_lowercase(),
            self.settings.statement_timeout_ms
        );
        if let Some(schema) = &self.settings.schema {
            sql.push_str(&format!("; SET search_path = {}", quoted(schema)));
        }
        sql
    }

    /// The statement that begins a transaction, and through a pooler says in it what else a session would be told.
    pub(super) fn begin(&self) -> String {
        self.begin_at(self.settings.isolation)
    }

    /// The same for a transaction that needs another isolation than the usual one.
    pub(super) fn begin_at(&self, isolation: Isolation) -> String {
        let mut sql = format!("BEGIN ISOLATION LEVEL {}", isolation.sql());
        if self.settings.pooled {
            sql.push_str(&format!("; SET LOCAL statement_timeout = {}", self.settings.statement_timeout_ms));
            if let Some(schema) = &self.settings.schema {
                sql.push_str(&format!("; SET LOCAL search_path = {}", quoted(schema)));
            }
        }
        sql
    }

    /// True when even a read has to be in a transaction, since only there the schema is known.
    pub(super) fn reads_in_transactions(&self) -> bool {
        self.settings.pooled && self.settings.schema.is_some()
    }

    /// The pool of such connections.
    pub(super) fn pool(&self) -> Sql<Pool> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(self.target.config.clone(), self.clone(), config);
        let oldest = Duration::from_millis(self.settings.lifetime_max_ms);
        let timeouts = Timeouts {
            wait: Some(Duration::from_millis(self.settings.answer_deadline_ms)),
            create: Some(Duration::from_millis(self.settings.connect_timeout_ms)),
            recycle: Some(Duration::from_millis(self.settings.connect_timeout_ms)),
        };
        Pool::builder(manager)
            .max_size(self.settings.pool_max.max(1))
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .pre_recycle(Hook::sync_fn(move |_, metrics| match metrics.age() < oldest {
                true => Ok(()),
                false => Err(HookError::message("the connection is too old")),
            }))
            .build()
            .map_err(|error| Fault::internal(format!("the pool of connections: {error}")))
    }
}

impl Connect for Connector {
    fn connect(
        &self,
        _: &Config,
    ) -> BoxFuture<'_, std::result::Result<(Client, JoinHandle<()>), tokio_postgres::Error>> {
        Box::pin(async move {
            let (client, connection) = self.target.config.connect(self.target.tls.clone()).await?;
            let task = tokio::spawn(async move { drop(connection.await) });
            let set_up = self.set_up();
            if !set_up.is_empty()
                && let Err(error) = client.batch_execute(&set_up).await
            {
                task.abort();
                return Err(error);
            }
            Ok((client, task))
        })
    }
}

/// A free connection of `pool`.
pub(super) async fn take(pool: &Pool, place: &str) -> Sql<Object> {
    pool.get().await.map_err(|error| match error {
        PoolError::Backend(error) => Fault::connecting(place, &error),
        PoolError::Closed => Fault::unavailable(CLOSED),
        PoolError::Timeout(_) => Fault::lost(format!(
            "no connection to PostgreSQL at {place} within the time; see to its load, or raise the pool of the store"
        )),
        other => Fault::unavailable(format!("the pool of connections: {other}")),
    })
}

/// Closes what nobody used for long, until the pool is gone.
pub(super) fn tend(pool: &Pool, idle: Duration) -> JoinHandle<()> {
    let pool = pool.clone();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval((idle / 2).max(Duration::from_millis(100)));
        while !pool.is_closed() {
            ticks.tick().await;
            let _ = pool.retain(|_, metrics| metrics.last_used() < idle);
        }
    })
}

/// An identifier as SQL writes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

//! The conformance suite on a real PostgreSQL: a cluster of its own for each test, a schema for each case.

pub(crate) mod cluster;
mod failing;
mod numbers;
mod plans;
mod questions;
mod roles;
mod rules;
mod statements;
mod transfer;
mod wakeups;
mod writing;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;

use self::cluster::Cluster;
use super::{Isolation, PostgresSettings, PostgresStore};
use super::{
    events, heads, held, inputs, listen, lists, payloads, pieces, registry, sessions, tasks, totals, workers, write,
};
use crate::store::conformance::{Ground, cases};
use crate::store::{Result, Store};

/// A schema of its own in a cluster.
struct Schema {
    url: String,
    settings: PostgresSettings,
}

impl Schema {
    async fn new(cluster: &Cluster, isolation: Isolation) -> Schema {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("case_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let (client, connection) = tokio_postgres::connect(&cluster.url(), tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        let settings = PostgresSettings { schema: Some(name), isolation, ..PostgresSettings::for_tests() };
        Schema { url: cluster.url(), settings }
    }

    /// A connection of the test's own that knows the schema.
    async fn client(&self, cluster: &Cluster) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(&cluster.url(), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let name = self.settings.schema.as_deref().unwrap();
        client.batch_execute(&format!("SET search_path = {name}")).await.unwrap();
        client
    }
}

#[async_trait]
impl Ground for Schema {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(PostgresStore::open(&self.url, &self.settings).await?))
    }
}

async fn conforms(isolation: Isolation) {
    let Some(cluster) = Cluster::start().await else { return };
    let mut failures = Vec::new();
    let all = cases();
    for case in &all {
        if let Err(failure) = case.run(&Schema::new(&cluster, isolation).await).await {
            failures.push(format!("{}: {failure}", case.name));
        }
    }
    assert!(failures.is_empty(), "{} of {} cases failed:\n{}", failures.len(), all.len(), failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_at_serializable() {
    conforms(Isolation::Serializable).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_at_read_committed() {
    conforms(Isolation::ReadCommitted).await;
}

/// Every statement with the types it is sent with; without types where they follow from the statement.
fn statements() -> Vec<(&'static str, &'static str)> {
    let untyped = [events::STATEMENTS, heads::STATEMENTS, payloads::STATEMENTS, write::STATEMENTS].concat();
    let typed = [
        super::counting::STATEMENTS,
        held::STATEMENTS,
        inputs::STATEMENTS,
        listen::STATEMENTS,
        lists::STATEMENTS,
        registry::STATEMENTS,
        super::roles::STATEMENTS,
        sessions::STATEMENTS,
        tasks::STATEMENTS,
        totals::STATEMENTS,
        pieces::STATEMENTS,
        workers::STATEMENTS,
    ];
    untyped.into_iter().map(|sql| (sql, "")).chain(typed.concat()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_fits_the_schema_and_the_types_of_its_values() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.open().await.unwrap().close().await;
    let client = schema.client(&cluster).await;
    let all = statements();
    assert!(all.len() > 40, "{}", all.len());
    for (number, (sql, types)) in all.iter().enumerate() {
        let types = if types.is_empty() { String::new() } else { format!("({types})") };
        let prepared = client.batch_execute(&format!("PREPARE s{number}{types} AS {sql}")).await;
        prepared.unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
    }
}

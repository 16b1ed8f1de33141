//! The conformance suite of the stores on PostgreSQL as people have it: the newest version, through a pooler, behind what
//! looks like CockroachDB, and while transactions fail or nobody hears of their commits. Version 15 as it is comes
//! straight to the driver in its own tests. No case of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use durable_mcp::store::conformance::{Ground, cases};
use durable_mcp::store::postgres::{Isolation, PostgresSettings, PostgresStore};
use durable_mcp::store::{Result, Store};

use crate::skip_loudly;
use crate::support::cluster::{Cluster, Version, cluster_is_set_up};
use crate::support::pg_proxy::{AMBIGUOUS, Fault, PgProxy};
use crate::support::pgbouncer::{Pgbouncer, pgbouncer_is_set_up};

/// A schema of its own, and the way to it.
struct Place {
    url: String,
    settings: PostgresSettings,
}

#[async_trait]
impl Ground for Place {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(PostgresStore::open(&self.url, &self.settings).await?))
    }
}

/// Runs every case in a schema of its own, reached at `port`, which may be that of something in between.
async fn conforms(cluster: &Cluster, port: u16, settings: PostgresSettings) {
    conforms_from(cluster, (port, port), settings).await;
}

/// The same, with the schema set up by way of the first port and used by way of the second.
async fn conforms_from(cluster: &Cluster, (first, port): (u16, u16), settings: PostgresSettings) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let admin = cluster.connect().await;
    let (all, mut failures) = (cases(), Vec::new());
    for case in &all {
        let schema = format!("conforms_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        admin.batch_execute(&format!("CREATE SCHEMA {schema}")).await.unwrap();
        let settings = PostgresSettings { schema: Some(schema.clone()), ..settings.clone() };
        let url = |port| format!("{}?sslmode=disable", cluster.url_at(port));
        if first != port {
            PostgresStore::open(&url(first), &settings).await.unwrap().close().await;
        }
        let place = Place { url: url(port), settings };
        if let Err(failure) = case.run(&place).await {
            failures.push(format!("{}: {failure}", case.name));
        }
        admin.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
    }
    assert!(failures.is_empty(), "{} of {} cases failed:\n{}", failures.len(), all.len(), failures.join("\n"));
}

fn at(isolation: Isolation) -> PostgresSettings {
    PostgresSettings { isolation, ..PostgresSettings::for_tests() }
}

async fn version_18(isolation: Isolation) {
    let cluster = Cluster::start(Version::Wheel18).await;
    conforms(&cluster, cluster.port(), at(isolation)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_on_version_18_at_serializable() {
    skip_loudly!(cluster_is_set_up(Version::Wheel18));
    version_18(Isolation::Serializable).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_on_version_18_at_read_committed() {
    skip_loudly!(cluster_is_set_up(Version::Wheel18));
    version_18(Isolation::ReadCommitted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_through_a_pooler_in_transaction_mode() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    skip_loudly!(pgbouncer_is_set_up());
    let cluster = Cluster::start(Version::Debian15).await;
    // Fewer connections to the server than one store opens: they change hands all the time.
    let pooler = Pgbouncer::start(&cluster, 3).await;
    let settings = PostgresSettings { pooled: true, ..at(Isolation::Serializable) };
    conforms(&cluster, pooler.port(), settings).await;
}

/// Version 15 behind the proxy, with what the test makes of the proxy.
async fn behind(isolation: Isolation, change: impl FnOnce(&PgProxy)) -> PgProxy {
    let cluster = Cluster::start(Version::Debian15).await;
    let proxy = PgProxy::start(cluster.port()).await;
    change(&proxy);
    conforms(&cluster, proxy.port(), at(isolation)).await;
    proxy
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_where_cockroachdb_refuses_and_locks_lie() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    behind(Isolation::Serializable, PgProxy::be_cockroach).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_while_a_fifth_of_the_transactions_fails() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let proxy = behind(Isolation::Serializable, |proxy| proxy.fail_serialization(15, 20)).await;
    let failed = proxy.fired(Fault::Error("40001"));
    assert!(failed > 500, "{failed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_while_nobody_hears_what_became_of_a_third_of_the_commits() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let cluster = Cluster::start(Version::Debian15).await;
    let proxy = PgProxy::start(cluster.port()).await;
    proxy.make_commits_ambiguous(3);
    // Where the database keeps transactions apart the least. A file of the set-up begins anew with each connection that
    // breaks: it would not come to an end at this rate.
    conforms_from(&cluster, (cluster.port(), proxy.port()), at(Isolation::ReadCommitted)).await;
    for fault in AMBIGUOUS {
        let fired = proxy.fired(fault);
        assert!(fired > 50, "{fault:?} came {fired} times");
    }
    let commits = proxy.commits();
    // Every kind of transaction there is was struck, the rare ones once at least.
    eprintln!("{commits:#?}");
    assert!(commits.len() > 10, "{commits:#?}");
}

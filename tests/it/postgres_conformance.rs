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

/// Runs every case through what looks like CockroachDB, while a fifth of the transactions fails and a third of the commits
/// of each kind is ambiguous, the first one in the way with this number.
async fn conforms_with_all_faults(isolation: Isolation, first: u64) {
    let cluster = Cluster::start(Version::Debian15).await;
    // A file of the set-up begins anew with each connection that breaks, and would not come to an end at that rate: it
    // meets all the rest.
    let [setting_up, proxy] = [PgProxy::start(cluster.port()).await, PgProxy::start(cluster.port()).await];
    for proxy in [&setting_up, &proxy] {
        proxy.be_cockroach();
        proxy.fail_serialization(15 + first, 20);
    }
    proxy.make_commits_ambiguous_from(3, first);
    conforms_from(&cluster, (setting_up.port(), proxy.port()), at(isolation)).await;
    let failed = [&setting_up, &proxy].map(|proxy| proxy.fired(Fault::Error("40001")));
    assert!(failed[0] > 100 && failed[1] > 300, "{failed:?}");
    for fault in AMBIGUOUS {
        assert!(proxy.fired(fault) > 50, "{fault:?} came {} times", proxy.fired(fault));
    }
    // Every kind of transaction there is was struck in this way, the rare ones too.
    let (mut struck, way) = (proxy.struck(), AMBIGUOUS[first as usize]);
    // A kind whose every commit failed otherwise came again as another kind.
    struck.retain(|_, faults| AMBIGUOUS.iter().any(|fault| faults.contains(fault)));
    eprintln!("{failed:?} failed with 40001; {} kinds of commit: {struck:#?}", struck.len());
    let missed: Vec<_> = struck.iter().filter(|(_, faults)| !faults.contains(&way)).collect();
    assert!(missed.is_empty() && struck.len() > 20, "{way:?} did not come to {missed:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_among_all_faults_with_every_kind_of_commit_done_and_its_answer_dropped() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    conforms_with_all_faults(Isolation::Serializable, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_among_all_faults_with_every_kind_of_commit_dropped() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    // Where the database keeps transactions apart the least.
    conforms_with_all_faults(Isolation::ReadCommitted, 1).await;
}

//! The conformance suite of the stores on PostgreSQL as people have it: the newest version, through a pooler, behind what
//! looks like CockroachDB, and while transactions fail or nobody hears of their commits. Version 15 as it is comes
//! straight to the driver in its own tests. No case of its own.

use std::collections::{BTreeMap, BTreeSet};
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
/// of each kind is ambiguous, first in the way with this number; what struck which kind of commit.
async fn conforms_with_all_faults(cluster: &Cluster, isolation: Isolation, first: u64) -> PgProxy {
    // A file of the set-up begins anew with each connection that breaks, and would not come to an end at that rate: it
    // meets all the rest.
    let [setting_up, proxy] = [PgProxy::start(cluster.port()).await, PgProxy::start(cluster.port()).await];
    for proxy in [&setting_up, &proxy] {
        proxy.be_cockroach();
        proxy.fail_serialization(15 + first, 20);
    }
    proxy.make_commits_ambiguous_from(3, first);
    conforms_from(cluster, (setting_up.port(), proxy.port()), at(isolation)).await;
    let failed = proxy.fired(Fault::Error("40001"));
    assert!(failed > 300 && setting_up.fired(Fault::Error("40001")) > 100, "{failed}");
    for fault in AMBIGUOUS {
        assert!(proxy.fired(fault) > 50, "{fault:?} came {} times", proxy.fired(fault));
    }
    proxy
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_in_cockroachdb_mode_while_transactions_fail_and_every_kind_of_commit_is_ambiguous_in_turn() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let cluster = Cluster::start(Version::Debian15).await;
    // Done and its answer dropped, and dropped itself: the first two ways. Also where the database keeps transactions
    // apart the least.
    let ways = [(Isolation::Serializable, 0), (Isolation::ReadCommitted, 1)];
    let mut runs = Vec::new();
    for (isolation, first) in ways {
        runs.push(conforms_with_all_faults(&cluster, isolation, first).await);
    }
    let [one, other] = [&runs[0], &runs[1]].map(|proxy| {
        let mut struck = proxy.struck();
        // A kind whose every commit failed otherwise came again as another kind.
        struck.retain(|_, faults| AMBIGUOUS.iter().any(|fault| faults.contains(fault)));
        struck
    });
    // Which writes share a commit is a matter of chance, and so are kinds that one run met and the other did not; what
    // each part of a commit writes is not.
    let mut parts = BTreeMap::<&str, BTreeSet<Fault>>::new();
    let mut in_both = 0;
    for (kind, faults) in one.iter().chain(&other) {
        for part in kind.split(", ") {
            parts.entry(part).or_default().extend(faults);
        }
        if let (Some(first), Some(second)) = (one.get(kind), other.get(kind)) {
            let both = [first.contains(&AMBIGUOUS[0]), second.contains(&AMBIGUOUS[1])];
            assert_eq!(both, [true, true], "{kind}: {first:?}, {second:?}");
            in_both += 1;
        }
    }
    eprintln!("{} kinds of commit in one run, {} in the other; {parts:#?}", one.len(), other.len());
    assert!(in_both > 10, "{one:#?}\n{other:#?}");
    for (part, faults) in &parts {
        let missing: Vec<_> = AMBIGUOUS[..2].iter().filter(|fault| !faults.contains(fault)).collect();
        assert!(missing.is_empty(), "no commit with {part} met {missing:?}");
    }
}

//! The conformance suite of the stores on PostgreSQL as people have it: the newest version, through a pooler, behind what
//! looks like CockroachDB, and while transactions fail or nobody hears of their commits. Version 15 as it is comes
//! straight to the driver in its own tests. No case of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use durable_mcp::store::conformance::{Case, Ground, cases};
use durable_mcp::store::postgres::{Isolation, PostgresSettings, PostgresStore};
use durable_mcp::store::{Result, Store};
use futures_util::{StreamExt, future, stream};

use crate::skip_loudly;
use crate::support::cluster::{Cluster, Version, cluster_is_set_up};
use crate::support::pg_proxy::{AMBIGUOUS, Fault, PgProxy, Spot};
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
async fn conforms_from(cluster: &Cluster, ports: (u16, u16), settings: PostgresSettings) {
    let all = cases().into_iter().map(|case| (case, ports)).collect();
    conform(cluster, all, settings, 1).await;
}

/// Runs these cases, each in a schema of its own that is set up by way of the first port and used by way of the second, so
/// many at once. The schemas go with the cluster.
async fn conform(cluster: &Cluster, all: Vec<(Case, (u16, u16))>, settings: PostgresSettings, at_once: usize) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let (admin, number) = (&cluster.connect().await, all.len());
    let run = |(case, (first, port)): (Case, (u16, u16))| {
        let settings = settings.clone();
        async move {
            let schema = format!("conforms_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
            admin.batch_execute(&format!("CREATE SCHEMA {schema}")).await.unwrap();
            let settings = PostgresSettings { schema: Some(schema.clone()), ..settings };
            let url = |port| format!("{}?sslmode=disable", cluster.url_at(port));
            if first != port {
                PostgresStore::open(&url(first), &settings).await.unwrap().close().await;
            }
            let place = Place { url: url(port), settings };
            case.run(&place).await.err().map(|failure| format!("{}: {failure}", case.name))
        }
    };
    let failures: Vec<Option<String>> = stream::iter(all).map(run).buffer_unordered(at_once).collect().await;
    let failures: Vec<String> = failures.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{} of {number} cases failed:\n{}", failures.len(), failures.join("\n"));
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

/// Cases that run at once where each has a way of its own: most of their time they wait.
const SIDE_BY_SIDE: usize = 6;

/// A proxy of its own for each case, all before this cluster.
async fn with_proxies(cluster: &Cluster, all: Vec<Case>) -> Vec<(Case, PgProxy)> {
    let each = all.into_iter().map(async |case| (case, PgProxy::start(cluster.port()).await));
    future::join_all(each).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_in_cockroachdb_mode_while_a_fifth_fails_and_a_third_of_the_commits_is_ambiguous() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let cluster = Cluster::start(Version::Debian15).await;
    // A file of the set-up begins anew with each connection that breaks, and would not come to an end at that rate: it
    // meets all the rest.
    let setting_up = PgProxy::start(cluster.port()).await;
    let proxies = with_proxies(&cluster, cases()).await;
    for (seed, proxy) in std::iter::once(&setting_up).chain(proxies.iter().map(|(_, proxy)| proxy)).enumerate() {
        proxy.be_cockroach();
        proxy.fail_serialization(15 + seed as u64, 20);
    }
    proxies.iter().for_each(|(_, proxy)| proxy.make_commits_ambiguous(3));
    let all = proxies.iter().map(|(case, proxy)| (*case, (setting_up.port(), proxy.port()))).collect();
    conform(&cluster, all, at(Isolation::Serializable), SIDE_BY_SIDE).await;
    let came = |fault| proxies.iter().map(|(_, proxy)| proxy.fired(fault)).sum::<usize>();
    let (failed, ambiguous) = (came(Fault::Error("40001")), AMBIGUOUS.map(came));
    eprintln!("{failed} transactions failed, and so many commits were ambiguous in each way: {ambiguous:?}");
    assert!(failed > 300 && setting_up.fired(Fault::Error("40001")) > 100, "{failed}");
    assert!(ambiguous.iter().all(|came| *came > 50), "{ambiguous:?}");
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

/// Ways in which a commit is ambiguous: done and its answer dropped, or dropped itself.
const WAYS: [Fault; 2] = [Fault::DoneAndCut, Fault::Cut];

/// What commits, by what it writes, with the cases in which it does, each with how often and with all its commits.
async fn paths(cluster: &Cluster) -> BTreeMap<String, Vec<(Case, u64, u64)>> {
    let proxies = with_proxies(cluster, cases()).await;
    let all = proxies.iter().map(|(case, proxy)| (*case, (cluster.port(), proxy.port()))).collect();
    conform(cluster, all, at(Isolation::Serializable), SIDE_BY_SIDE).await;
    let mut paths = BTreeMap::<String, Vec<(Case, u64, u64)>>::new();
    for (case, proxy) in proxies {
        let commits = proxy.commits();
        let all = commits.values().sum();
        for (path, number) in commits {
            paths.entry(path).or_default().push((case, number, all));
        }
    }
    paths
}

/// How many cases of a path are tried, at most.
const CHOSEN: usize = 3;

/// Those with the fewest commits, and last the one in which this path commits most.
fn chosen(mut cases: Vec<(Case, u64, u64)>) -> Vec<Case> {
    let most = cases.iter().max_by_key(|(_, number, _)| *number).map(|(case, ..)| *case);
    cases.sort_by_key(|(_, _, all)| *all);
    let mut chosen: Vec<Case> = cases.into_iter().take(CHOSEN - 1).map(|(case, ..)| case).collect();
    chosen.extend(most);
    chosen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_path_of_a_commit_may_be_ambiguous_in_either_way() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let cluster = Cluster::start(Version::Debian15).await;
    let paths = paths(&cluster).await;
    assert!(paths.len() > 30, "{:#?}", paths.keys());
    let mut left: Vec<(String, Fault, Vec<Case>)> = Vec::new();
    for (path, cases) in paths {
        left.extend(WAYS.map(|way| (path.clone(), way, chosen(cases.clone()))));
    }
    let (all, mut runs, mut met) = (left.len(), 0, BTreeSet::new());
    // What commits may be a matter of time, as beats are, or of which writes share a batch: then another case meets it.
    for turn in 0..CHOSEN {
        let mut proxies = Vec::new();
        for (path, way, cases) in left.iter().filter(|(_, _, cases)| turn < cases.len()) {
            let proxy = PgProxy::start(cluster.port()).await;
            proxy.at(Spot::CommitOf(path.clone()), *way);
            proxies.push((path.clone(), *way, cases[turn], proxy));
        }
        let cases = proxies.iter().map(|(_, _, case, proxy)| (*case, (cluster.port(), proxy.port()))).collect();
        conform(&cluster, cases, at(Isolation::Serializable), SIDE_BY_SIDE).await;
        runs += proxies.len();
        met.extend(
            proxies.into_iter().filter_map(|(path, way, _, proxy)| (proxy.fired(way) > 0).then_some((path, way))),
        );
        left.retain(|(path, way, _)| !met.contains(&(path.clone(), *way)));
    }
    let left: Vec<(&str, Fault)> = left.iter().map(|(path, way, _)| (path.as_str(), *way)).collect();
    eprintln!("{} of {all} commits were ambiguous, each once in {runs} runs; not: {left:#?}", met.len());
    let parts = |path: &str| path.split(", ").map(str::to_owned).collect::<Vec<_>>();
    for (path, way) in &left {
        // It was chance that several writes shared that commit; what each does alone was met.
        let of_others: BTreeSet<String> =
            met.iter().filter(|(_, met)| met == way).flat_map(|(path, _)| parts(path)).collect();
        assert!(parts(path).iter().all(|part| of_others.contains(part)), "{way:?} did not come to {path}");
    }
    assert!(left.len() * 20 <= all, "{left:#?}");
}

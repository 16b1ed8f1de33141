//! Processes that reach their database through something: a pooler in transaction mode, what looks like CockroachDB,
//! transactions that fail, commits of which nobody hears. Calls, sessions and the death of a worker are what they are
//! without it. What the store itself does there is `postgres_conformance`.

use std::time::Duration;

use futures_util::future::join_all;

use crate::crash_scene::{Call, ClientLedger, Tally, call_in, pass};
use crate::replicas_scene::{Fleet, offers};
use crate::skip_loudly;
use crate::support::cluster::{Cluster, Version, cluster_is_set_up};
use crate::support::pg_proxy::{AMBIGUOUS, Fault, PgProxy};
use crate::support::pgbouncer::{Pgbouncer, pgbouncer_is_set_up};
use crate::support::raw_http::open_session;

const CLIENTS: usize = 8;
/// Calls of each client.
const CALLS: usize = 12;

/// Two servers, two workers and two schedulers in three processes by way of this port, with this much more in their
/// environment; a worker is killed while clients call.
async fn work_by_way_of(cluster: &Cluster, port: u16, more: &[(&str, &str)]) -> Tally {
    let head = "[defaults]\nretry = { initial_interval = \"100ms\" }\n";
    let mut fleet = Fleet::stored_at(&cluster.url(), head, "concurrency = 32");
    // The schema is there before anybody comes by the way to test, and the store is judged past it.
    let ran = fleet.setup.cli(&["db", "migrate"]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    let between = fleet.setup.clone().env("DURABLE_MCP_STORE_URL", &cluster.url_at(port));
    fleet.setup = more.iter().fold(between, |setup, (name, value)| setup.env(name, value));
    let mut doomed = fleet.start("worker").await;
    let mut servers = [fleet.start("mcp,scheduler").await, fleet.start("mcp,worker,scheduler").await];
    for server in &servers {
        offers(server, "slow").await;
    }
    let session = open_session(servers[0].url(), "2025-11-25").await.unwrap();
    let ledger = ClientLedger::default();
    let calling: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (ledger, url) = (ledger.clone(), servers[client % 2].url().to_owned());
            tokio::spawn(async move {
                for n in 0..CALLS {
                    let text = format!("{client}-{n}");
                    let wanted = match n % 3 {
                        0 => Call::new("append", &text),
                        1 => Call::new("append_idempotent", &text),
                        _ => Call::slow("slow_idempotent", &text, 0.05),
                    };
                    ledger.insist(&url, &wanted).await;
                }
            })
        })
        .collect();
    pass(Duration::from_millis(700)).await;
    doomed.kill_9().await;
    for client in join_all(calling).await {
        client.unwrap();
    }
    let told = call_in(servers[1].url(), &session, &Call::new("append", "in-a-session")).await.answer();
    assert_eq!(told.state, "completed", "{told:?}");
    for server in &mut servers {
        assert!(server.sigterm().await.success(), "{}", server.stderr());
    }
    let (tally, checked) = ledger.judge(&fleet.setup, &fleet.ledger).await;
    eprintln!("{tally}");
    assert_eq!(checked.executions.len(), CLIENTS * CALLS + 1, "an execution nobody asked for, or one that is lost");
    // Only what the killed worker ran, and may run once, is not known.
    assert!(tally.of("unknown") <= CLIENTS && tally.of("failed") == 0, "{tally}");
    tally
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_work_through_a_pooler_in_transaction_mode() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    skip_loudly!(pgbouncer_is_set_up());
    let cluster = Cluster::start(Version::Debian15).await;
    let pooler = Pgbouncer::start(&cluster, 4).await;
    work_by_way_of(&cluster, pooler.port(), &[("DURABLE_MCP_STORE_POOLED", "true")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_work_where_cockroachdb_refuses_and_locks_lie() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let cluster = Cluster::start(Version::Debian15).await;
    let proxy = PgProxy::start(cluster.port()).await;
    proxy.be_cockroach();
    work_by_way_of(&cluster, proxy.port(), &[]).await;
    assert!(proxy.connections() > 6, "they came by another way");
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_work_while_transactions_fail_and_nobody_hears_of_commits() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let cluster = Cluster::start(Version::Debian15).await;
    let proxy = PgProxy::start(cluster.port()).await;
    proxy.fail_serialization(7, 10);
    proxy.make_commits_ambiguous(8);
    work_by_way_of(&cluster, proxy.port(), &[]).await;
    let fired = |fault| proxy.fired(fault);
    assert!(fired(Fault::Error("40001")) > 20, "{}", fired(Fault::Error("40001")));
    for fault in AMBIGUOUS {
        assert!(fired(fault) > 1, "{fault:?} came {} times", fired(fault));
    }
}

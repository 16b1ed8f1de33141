//! The fault proxy before a real server, driven by the client library that the driver uses: each fault is seen on both
//! sides, by the client and in the database. A fault that did not happen would make every test of it pass.

use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};

use crate::skip_loudly;
use crate::support::DEADLINE;
use crate::support::cluster::{Cluster, Version, cluster_is_set_up};
use crate::support::pg_proxy::{AMBIGUOUS, COCKROACH_VERSION, Fault, PgProxy, Spot};

/// A proxy before the shared cluster, and a table of its own.
struct Scene {
    cluster: Cluster,
    proxy: PgProxy,
    schema: String,
}

impl Scene {
    async fn new() -> Scene {
        let cluster = Cluster::shared(Version::Debian15).await;
        let proxy = PgProxy::start(cluster.port()).await;
        let schema = cluster.schema().await;
        cluster.query(&format!("CREATE TABLE {schema}.kept (id BIGINT PRIMARY KEY)")).await;
        Scene { cluster, proxy, schema }
    }

    async fn connect(&self) -> Client {
        let (client, connection) =
            tokio_postgres::connect(&self.cluster.url_at(self.proxy.port()), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    fn insert(&self, id: i64) -> String {
        format!("INSERT INTO {}.kept (id) VALUES ({id})", self.schema)
    }

    async fn has(&self, id: i64) -> bool {
        self.cluster.value(&format!("SELECT count(*) FROM {}.kept WHERE id = {id}", self.schema)).await == "1"
    }

    async fn end(self) {
        self.cluster.drop_schema(&self.schema).await;
    }
}

fn code(error: &tokio_postgres::Error) -> Option<&str> {
    error.code().map(|state| state.code())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_faults_nothing_is_changed_even_byte_by_byte() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let scene = Scene::new().await;
    for drips in [false, true] {
        scene.proxy.one_byte_at_a_time(drips);
        let client = scene.connect().await;
        let long = "ä'$1;--".repeat(300);
        let row = client.query_one("SELECT $1::text || '!', $2::bigint", &[&long, &7_i64]).await.unwrap();
        assert_eq!((row.get::<_, String>(0), row.get::<_, i64>(1)), (format!("{long}!"), 7));
        let (first, second) =
            tokio::join!(client.query_one("SELECT 1::bigint", &[]), client.query_one("SELECT 2::bigint", &[]));
        assert_eq!((first.unwrap().get::<_, i64>(0), second.unwrap().get::<_, i64>(0)), (1, 2));
        let error = client.query("SELECT nothing", &[]).await.unwrap_err();
        assert_eq!(code(&error), Some("42703"));
        client.batch_execute("BEGIN; SELECT 1; COMMIT").await.unwrap();
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_are_delayed_stopped_and_cut() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let scene = Scene::new().await;
    let client = scene.connect().await;
    scene.proxy.delay(Duration::from_millis(100));
    let start = Instant::now();
    client.simple_query("SELECT 1").await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(200), "there and back: {:?}", start.elapsed());
    scene.proxy.delay(Duration::ZERO);
    scene.proxy.stop_reading(true);
    let mut asked = Box::pin(client.simple_query("SELECT 1"));
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut asked).await.is_err());
    scene.proxy.stop_reading(false);
    tokio::time::timeout(DEADLINE, asked).await.unwrap().unwrap();
    scene.proxy.refuse(true);
    scene.proxy.cut_all();
    assert!(client.simple_query("SELECT 1").await.is_err());
    assert!(tokio_postgres::connect(&scene.cluster.url_at(scene.proxy.port()), NoTls).await.is_err());
    scene.proxy.heal();
    scene.connect().await.simple_query("SELECT 1").await.unwrap();
    scene.end().await;
}

/// What the client is told of a commit with this fault, and whether it happened.
const COMMITS: [(Fault, Option<&str>, bool); 6] = [
    (Fault::DoneAndCut, None, true),
    (Fault::Cut, None, false),
    (Fault::DoneAndError("40003"), Some("40003"), true),
    (Fault::Error("40003"), Some("40003"), false),
    (Fault::Error("40001"), Some("40001"), false),
    (Fault::Error("40P01"), Some("40P01"), false),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_done_or_not_whatever_its_client_is_told() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let scene = Scene::new().await;
    let mut id = 0;
    for (fault, told, done) in COMMITS {
        for explicit in [true, false] {
            id += 1;
            let client = scene.connect().await;
            scene.proxy.at(Spot::CommitOf("INSERT KEPT".into()), fault);
            let answer = if explicit {
                // Reads commit nothing: the fault waits.
                client.batch_execute("BEGIN; SELECT 1; COMMIT").await.unwrap();
                client.batch_execute("BEGIN").await.unwrap();
                client.execute(&scene.insert(id), &[]).await.unwrap();
                client.batch_execute("COMMIT").await
            } else {
                client.execute(&scene.insert(id), &[]).await.map(drop)
            };
            let what = format!("{fault:?}, explicit: {explicit}");
            assert_eq!(code(&answer.expect_err(&what)), told, "{what}");
            assert_eq!(scene.has(id).await, done, "{what}");
            // Outside of a transaction again, the connection is as good as ever.
            assert_eq!(client.batch_execute("BEGIN; SELECT 1; COMMIT").await.is_ok(), told.is_some(), "{what}");
        }
        assert_eq!((scene.proxy.fired(fault), scene.proxy.pending()), (2, 0));
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_done_and_nothing_is_heard_of_it() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let scene = Scene::new().await;
    let client = scene.connect().await;
    scene.proxy.at(Spot::Commit, Fault::DoneAndSilent);
    let (insert, silence) = (scene.insert(1), Duration::from_millis(300));
    assert!(tokio::time::timeout(silence, client.simple_query(&insert)).await.is_err());
    assert!(scene.has(1).await);
    assert!(!client.is_closed());
    assert!(tokio::time::timeout(silence, client.simple_query("SELECT 1")).await.is_err());
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_fails_aborts_its_transaction() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let scene = Scene::new().await;
    let client = scene.connect().await;
    client.batch_execute("BEGIN").await.unwrap();
    client.execute(&scene.insert(1), &[]).await.unwrap();
    scene.proxy.at(Spot::Statement("VALUES (2)"), Fault::Error("40P01"));
    assert_eq!(code(&client.execute(&scene.insert(2), &[]).await.unwrap_err()), Some("40P01"));
    assert_eq!(code(&client.execute(&scene.insert(3), &[]).await.unwrap_err()), Some("25P02"));
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(!scene.has(1).await);
    client.execute(&scene.insert(2), &[]).await.unwrap();
    assert!(scene.has(2).await);
    scene.end().await;
}

/// Runs the transaction until it is committed; how often it was run.
async fn persistently(client: &Client, statements: &[String]) -> usize {
    for tries in 1..100 {
        let run = async {
            client.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
            for statement in statements {
                client.execute(statement.as_str(), &[]).await?;
            }
            client.batch_execute("COMMIT").await
        };
        match run.await {
            Ok(()) => return tries,
            Err(error) => assert_eq!(code(&error), Some("40001"), "{error:?}"),
        }
        // Refused when the transaction has ended with its COMMIT.
        let _ = client.batch_execute("ROLLBACK").await;
    }
    panic!("never committed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_of_the_transactions_fails_and_the_same_seed_fails_the_same_ones() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let scene = Scene::new().await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let proxy = PgProxy::start(scene.cluster.port()).await;
        proxy.fail_serialization(7, 20);
        let (client, connection) = tokio_postgres::connect(&scene.cluster.url_at(proxy.port()), NoTls).await.unwrap();
        tokio::spawn(connection);
        let mut tries = Vec::new();
        for id in 0..100 {
            tries.push(persistently(&client, &[scene.insert(id), scene.insert(1000 + id)]).await);
        }
        let kept = scene.cluster.value(&format!("SELECT count(*) FROM {}.kept", scene.schema)).await;
        assert_eq!(kept, "200");
        let failed = proxy.fired(Fault::Error("40001"));
        assert!((10..=45).contains(&failed), "{failed} of a hundred and as many as were repeated");
        assert_eq!(tries.iter().sum::<usize>(), 100 + failed);
        scene.cluster.query(&format!("DELETE FROM {}.kept", scene.schema)).await;
        runs.push(tries);
    }
    assert_eq!(runs[0], runs[1]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commits_of_each_kind_of_transaction_are_ambiguous_in_turn() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let scene = Scene::new().await;
    scene.proxy.make_commits_ambiguous(3);
    let (mut told, mut done) = (0, 0);
    for id in 0..24 {
        let client = scene.connect().await;
        let commit = match id % 2 {
            0 => client.execute(&scene.insert(id), &[]).await.map(drop),
            _ => client.batch_execute(&format!("DELETE FROM {}.kept WHERE id < 0", scene.schema)).await,
        };
        told += usize::from(commit.is_ok());
        done += usize::from(scene.has(id).await);
    }
    // Of each twelve, the 1st, 4th, 7th and 10th; of these, two were done.
    assert_eq!((told, done), (16, 10));
    AMBIGUOUS.iter().for_each(|fault| assert_eq!(scene.proxy.fired(*fault), 2, "{fault:?}"));
    let commits: Vec<_> = scene.proxy.commits().into_values().collect();
    assert_eq!(commits, [12, 12]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_can_pass_for_cockroachdb() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let scene = Scene::new().await;
    let honest = scene.connect().await;
    for statement in ["LISTEN a", "UNLISTEN *", "DISCARD ALL"] {
        honest.batch_execute(statement).await.unwrap();
    }
    scene.proxy.be_cockroach();
    let client = scene.connect().await;
    assert_eq!(client.query_one("SELECT version()", &[]).await.unwrap().get::<_, String>(0), COCKROACH_VERSION);
    for statement in ["LISTEN a", "UNLISTEN *", "NOTIFY a", "DISCARD ALL", "SELECT pg_notify('a', 'b')"] {
        let error = client.batch_execute(statement).await.unwrap_err();
        assert!(error.code().is_some(), "{statement}: {error:?}");
    }
    let other = scene.connect().await;
    for client in [&client, &other] {
        let row = client.query_one("SELECT pg_try_advisory_lock(1)", &[]).await.unwrap();
        assert!(row.get::<_, bool>(0), "both hold it");
    }
    client.execute(&scene.insert(1), &[]).await.unwrap();
    scene.end().await;
}

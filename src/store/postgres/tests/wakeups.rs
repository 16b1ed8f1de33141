//! Wake-ups between processes: by notification long before a look would be due, by looking where there are none, and how
//! long both take.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use futures_util::future::poll_fn;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client};

use uuid::Uuid;

use super::cluster::Cluster;
use super::{Isolation, Schema};
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::store::conformance::Scene;
use crate::store::postgres::listen::channel_of;
use crate::store::postgres::said::Said;
use crate::store::{News, WorkerChange};

/// Wake-ups of one measurement.
const WAKE_UPS: usize = 200;
/// A busy machine may spoil a measurement, not three of them.
const MEASUREMENTS: usize = 3;
/// No look is due within any test.
const NEVER_MS: u64 = 3_600_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// The times from a commit in one process to its being seen in another, shortest first.
async fn measure(waiter: &mut Scene, writer: &mut Scene, count: usize) -> Vec<Duration> {
    let mut times = Vec::with_capacity(count);
    for round in 0..count {
        let submit = writer.call("{}");
        let id = writer.new_execution(submit).await.unwrap().id();
        let token = writer.lease(id).await.unwrap().fencing_token;
        let seen = async {
            while waiter.head(id).await.unwrap().state != State::Completed {
                waiter.store.changed(NEVER_MS).await;
            }
            Instant::now()
        };
        let written = async {
            // Anywhere between two looks, and long after the last wake-up.
            tokio::time::sleep(Duration::from_millis(25 + (round as u64 * 7) % 50)).await;
            writer.complete(id, token, "1").await.unwrap();
            Instant::now()
        };
        let (seen, written) = tokio::join!(seen, written);
        times.push(seen.saturating_duration_since(written));
    }
    times.sort_unstable();
    times
}

/// Measures until the median and the 99th percentile are within their bounds.
async fn within(schema: &Schema, how: &str, bounds: (Duration, Duration)) {
    let mut waiter = Scene::open(schema, how).await.unwrap();
    let mut writer = waiter.another(schema).await.unwrap();
    let mut told = Vec::new();
    for _ in 0..MEASUREMENTS {
        let measured = tokio::time::timeout(PATIENCE, measure(&mut waiter, &mut writer, WAKE_UPS)).await;
        let times = measured.unwrap_or_else(|_| panic!("{how}: nobody was woken"));
        let (median, late) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        told.push(format!("{how}: p50 {median:?}, p99 {late:?} of {WAKE_UPS} wake-ups"));
        eprintln!("{}", told[told.len() - 1]);
        if median <= bounds.0 && late <= bounds.1 {
            return;
        }
    }
    panic!("over the bounds of {bounds:?}:\n{}", told.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_wakes_another_process_within_20_ms() {
    let Some(cluster) = Cluster::start().await else { return };
    let mut schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.settings.poll_interval_ms = NEVER_MS;
    within(&schema, "notified", (Duration::from_millis(20), PATIENCE)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polling_alone_wakes_another_process_within_150_ms() {
    let Some(cluster) = Cluster::start().await else { return };
    let mut schema = Schema::new(&cluster, Isolation::Serializable).await;
    // Nobody answers there: what is listened for is refused for as long as the test runs.
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    schema.settings.listen_url = Some(format!("postgres://postgres@{refusing}/postgres?sslmode=disable"));
    schema.settings.poll_interval_ms = 50;
    within(&schema, "polled", (Duration::from_millis(100), Duration::from_millis(150))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_listened_and_was_cut_listens_again() {
    let Some(cluster) = Cluster::start().await else { return };
    let mut schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.settings.poll_interval_ms = NEVER_MS;
    let mut waiter = Scene::open(&schema, "cut").await.unwrap();
    let mut writer = waiter.another(&schema).await.unwrap();
    let (client, _said) = listen(&cluster, &schema).await;
    for _ in 0..3 {
        let measured = tokio::time::timeout(PATIENCE, measure(&mut waiter, &mut writer, 3)).await;
        assert_eq!(measured.expect("nobody was woken").len(), 3);
        let cut = client
            .query_typed(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE application_name = 'durable-mcp' AND (query LIKE 'LISTEN%' OR query LIKE '%pg_notify%' \
                 OR query LIKE 'SELECT count(*) FROM processes WHERE%') AND pid <> pg_backend_pid()",
                &[],
            )
            .await
            .unwrap();
        assert_eq!(cut.len(), 2, "both processes listen");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_alone_says_nothing_and_one_in_company_says_much_in_few_words() {
    const WRITES: usize = 300;
    let Some(cluster) = Cluster::start().await else { return };
    let mut schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.settings.poll_interval_ms = NEVER_MS;
    let (client, mut said) = listen(&cluster, &schema).await;
    let mut alone = Scene::open(&schema, "alone").await.unwrap();
    let hello = next(&mut said).await;
    for _ in 0..20 {
        let submit = alone.call("{}");
        alone.new_execution(submit).await.unwrap();
    }
    // An answer comes after the notifications before it.
    client.query_typed("SELECT 1", &[]).await.unwrap();
    assert!(said.try_recv().is_err(), "nobody listens who would look");

    let other = alone.another(&schema).await.unwrap();
    let answer = next(&mut said).await;
    assert!(hello.1.begins && answer.1.begins, "{hello:?} {answer:?}");
    assert_ne!(answer.0, hello.0, "each process has a name of its own");
    let mut heard = BTreeMap::new();
    let began = Instant::now();
    let mut writes = 0;
    while writes < WRITES || heard.is_empty() {
        assert!(began.elapsed() < PATIENCE, "{writes} writes and nothing was said");
        let submit = alone.call("{}");
        alone.new_execution(submit).await.unwrap();
        writes += 1;
        while let Ok(text) = said.try_recv() {
            let (name, said) = read(&text);
            let work = BTreeSet::from(["files".to_owned()]);
            assert_eq!(said, Said { news: News { work, ..News::default() }, ..Said::default() });
            *heard.entry(name).or_insert(0_u128) += 1;
        }
    }
    // One at once, and one for each gap after it.
    let most = began.elapsed().as_millis() / 10 + 2;
    let by_writer = heard.remove(&hello.0).unwrap_or_default();
    assert!(heard.is_empty(), "only who writes says so: {heard:?}");
    assert!(by_writer >= 1 && by_writer <= most, "{by_writer} notifications for {writes} writes, at most {most}");
    other.store.close().await;
    alone.store.close().await;
}

/// Stores a call that its own process runs, and completes it.
async fn run_itself(scene: &mut Scene) -> ExecutionId {
    let mut submit = scene.call("{}");
    submit.submission.lease = Some(scene.lease_request());
    let head = scene.new_execution(submit).await.unwrap();
    assert_eq!(head.state, State::Leased);
    scene.complete(head.id(), head.fencing_token, "1").await.unwrap();
    head.id()
}

/// Says that workers changed, until it is heard.
async fn say_workers(writer: &Scene, said: &mut mpsc::UnboundedReceiver<String>) -> Said {
    loop {
        writer.store.change_workers(Vec::new(), WorkerChange::Gone, writer.now_ms).await.unwrap();
        // It is heard at once, or the writer does not know yet that anybody listens.
        if let Ok(Some(text)) = tokio::time::timeout(Duration::from_millis(200), said.recv()).await {
            let said = read(&text).1;
            if !said.begins {
                return said;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_a_call_ended_that_its_own_process_ran_is_told_only_while_somebody_waits_elsewhere() {
    let Some(cluster) = Cluster::start().await else { return };
    let mut schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.settings.poll_interval_ms = NEVER_MS;
    let (_client, mut said) = listen(&cluster, &schema).await;
    let mut writer = Scene::open(&schema, "writer").await.unwrap();
    let waiter = writer.another(&schema).await.unwrap();
    let only_workers = Said { news: News::of_workers(), ..Said::default() };
    assert_eq!(say_workers(&writer, &mut said).await, only_workers);
    while said.try_recv().is_ok() {}

    for _ in 0..20 {
        run_itself(&mut writer).await;
    }
    // What it says comes in order: before this it has said nothing.
    assert_eq!(say_workers(&writer, &mut said).await, only_workers);

    while said.try_recv().is_ok() {}
    waiter.store.attend();
    let attends = next(&mut said).await;
    assert_eq!(attends.1, Said { attends: true, ..Said::default() });
    let answer = next(&mut said).await;
    assert_ne!(answer.0, attends.0);
    assert!(answer.1.news.anything, "what happened before it was heard: {answer:?}");
    let id = run_itself(&mut writer).await;
    let end = next(&mut said).await;
    assert_eq!(end.1.news, News { executions: BTreeSet::from([id]), ..News::default() }, "{end:?}");
    // It costs nothing to wait on.
    waiter.store.attend();
    assert_eq!(say_workers(&writer, &mut said).await, only_workers);
    waiter.store.close().await;
    writer.store.close().await;
}

/// Who says it, and what.
fn read(text: &str) -> (String, Said) {
    let object: serde_json::Value = serde_json::from_str(text).unwrap();
    let from = object["from"].as_str().unwrap().to_owned();
    (from, Said::read(text, Uuid::nil()).unwrap())
}

async fn next(said: &mut mpsc::UnboundedReceiver<String>) -> (String, Said) {
    read(&tokio::time::timeout(PATIENCE, said.recv()).await.unwrap().unwrap())
}

/// A connection of the test's own that hears what is said about `schema`.
async fn listen(cluster: &Cluster, schema: &Schema) -> (Client, mpsc::UnboundedReceiver<String>) {
    let (client, mut connection) = tokio_postgres::connect(&cluster.url(), tokio_postgres::NoTls).await.unwrap();
    let (saying, said) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(said) = message
                && saying.send(said.payload().to_owned()).is_err()
            {
                return;
            }
        }
    });
    let channel = channel_of(schema.settings.schema.as_deref().unwrap());
    client.batch_execute(&format!("LISTEN {channel}")).await.unwrap();
    (client, said)
}

//! Numbers of a large store: what stands, and a day of minutes, are told at once.

use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::{Isolation, Schema};
use crate::model::execution::State;
use crate::model::tally::{MINUTE_MS, Tally};
use crate::store::ListQuery;
use crate::store::conformance::Scene;
use crate::store::series::{Counted, PutSeries, SeriesQuery, SeriesRow, Whose};

const STORED: i64 = 100_000;

/// Makes each execution into so many, with ids and times of their own.
const MULTIPLY: &str = "INSERT INTO executions SELECT (r).* FROM (SELECT jsonb_populate_record(e, jsonb_build_object( \
    'id', n.id, 'shard', strpos('0123456789abcdef', right(n.id::text, 1)) - 1, \
    'principal', CASE WHEN n.i % 1000 = 0 THEN 'rare' ELSE e.principal END, 'tool', 'tool-' || n.i % 7, \
    'created_at_ms', e.created_at_ms + n.i, 'ended_at_ms', e.ended_at_ms + n.i)) AS r \
    FROM executions e CROSS JOIN (SELECT i, ('01890000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid AS id FROM generate_series(1, STORED) AS i) n) x";

async fn p95<T: PartialEq + std::fmt::Debug>(expected: T, ask: impl AsyncFn() -> T) -> Duration {
    let mut times = Vec::new();
    for _ in 0..40 {
        let begun = Instant::now();
        let told = ask().await;
        times.push(begun.elapsed());
        assert_eq!(told, expected);
    }
    times.sort_unstable();
    times[times.len() * 95 / 100 - 1]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_a_hundred_thousand_stored_calls_are_told_at_once() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let mut scene = Scene::open(&schema, "numbers").await.unwrap();
    let submit = scene.call("{}");
    scene.completed(submit, "1").await.unwrap();
    let (client, connection) = tokio_postgres::connect(&cluster.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let name = schema.settings.schema.as_deref().unwrap();
    let multiply = MULTIPLY.replace("STORED", &STORED.to_string());
    client.batch_execute(&format!("SET search_path = {name}; {multiply}; ANALYZE executions")).await.unwrap();
    let first_ms = scene.now_ms - scene.now_ms % MINUTE_MS;
    let mut tally = Tally { submitted: 70, attempts: 70, completed: 70, ..Tally::default() };
    (0..70).for_each(|n| tally.latency.record(n * n * 11));
    let row = |minute: i64, principal: &str, counted| SeriesRow {
        minute_ms: first_ms + minute * MINUTE_MS,
        namespace: scene.namespace.clone(),
        principal: principal.into(),
        counted,
        tally: tally.clone(),
    };
    let of_minute = |minute| {
        [row(minute, "", Counted::LogOfAll), row(minute, "ann", Counted::Log), row(minute, "rare", Counted::Log)]
    };
    let rows = (0..1_440).flat_map(of_minute).collect();
    scene.store.put_series(PutSeries { rows, closed_until_ms: None, keep_since_ms: 0 }).await.unwrap();
    let whose = |principal: Option<&str>| Whose {
        namespace: Some(scene.namespace.clone()),
        principal: principal.map(str::to_owned),
    };
    let store = &scene.store;
    let completed = async |whose: Whose| store.standing(whose, scene.now_ms).await.unwrap().states[&State::Completed];
    let all = (STORED + 1) as u64;
    let minutes = async |whose: Whose| {
        let query = SeriesQuery { whose, since_ms: first_ms, until_ms: i64::MAX };
        store.series(query).await.unwrap().len()
    };
    let list = async || {
        let namespace = Some(scene.namespace.clone());
        store.list(ListQuery { namespace, limit: 50, ..ListQuery::default() }).await.unwrap().len()
    };
    let told = [
        ("what stands", p95(all, async || completed(whose(None)).await).await),
        ("what stands of one", p95((STORED / 1_000) as u64, async || completed(whose(Some("rare"))).await).await),
        ("a day of minutes", p95(1_440, async || minutes(whose(None)).await).await),
        ("a day of minutes of one", p95(1_440, async || minutes(whose(Some("rare"))).await).await),
        ("the list", p95(50, async || list().await).await),
    ];
    eprintln!("{told:?}");
    assert!(told.iter().all(|(_, took)| *took < Duration::from_millis(300)), "{told:?}");
}

//! What the planner makes of the driver's statements: with 100,000 executions stored none that runs all the time reads a
//! large table from end to end, neither by a generic plan nor as the driver really sends it (R7).

use std::collections::BTreeMap;

use tokio_postgres::Client;

use super::cluster::{Cluster, connections_end};
use super::statements::{Statement, sources, statements};
use super::{Isolation, Schema};
use crate::model::command::Command;
use crate::model::event::Order;
use crate::model::execution::State;
use crate::store::conformance::{Ground, Scene};
use crate::store::{CandidateQuery, KeyScope, ListQuery, PayloadKind, Retention, TouchedQuery};

const EXECUTIONS: i64 = 100_000;

/// Tables that grow with the calls.
const LARGE: [&str; 4] = ["executions", "execution_events", "payloads", "idempotency_keys"];

/// Statements that read a large table whole because that is what is asked of them, by people and seldom.
const WHOLE: [(&str, &str); 3] = [("lists.rs", "TOTALS"), ("prune.rs", "PREVIEW"), ("totals.rs", "STATES")];

/// Calls of a month: nearly all ended, some of each other state, every tenth with a key, every thousandth by somebody else.
const FILL: [&str; 5] = [
    "CREATE TABLE made AS SELECT i, md5(i::TEXT)::UUID AS id, CASE \
     WHEN i % 2000 = 0 THEN 'unknown' WHEN i % 2000 = 1 THEN 'leased' WHEN i % 2000 = 2 THEN 'ready' \
     WHEN i % 2000 = 3 THEN 'scheduled' WHEN i % 2000 = 4 THEN 'waiting' WHEN i % 100 = 5 THEN 'failed' \
     WHEN i % 1000 = 6 THEN 'cancelled' ELSE 'completed' END AS state FROM generate_series(1, $COUNT) AS i",
    "INSERT INTO executions (shard, id, namespace, upstream, tool, key, principal, caller, arguments_hash, policy_id, \
     state, attempt, attempts_allowed, fencing_token, lease_worker, lease_process, lease_expires_at_ms, \
     effect_possible, continues, run_at_ms, deadline_at_ms, created_at_ms, updated_at_ms, ended_at_ms, next_seq, \
     is_error, source, notes, version, waiter, delivered_at_ms, handle_given, payloads_kept) \
     SELECT (strpos('0123456789abcdef', right(m.id::TEXT, 1)) - 1)::BIGINT, m.id, 'n' || m.i % 5, 'u' || m.i % 20, \
     't' || m.i % 50, CASE WHEN m.i % 10 = 0 THEN 'k' || m.i END, \
     CASE WHEN m.i % 1000 = 500 THEN 'rare' ELSE 'ann' END, 'editor', md5(m.i::TEXT), p.id, m.state, 1, 1, \
     1, CASE WHEN m.state = 'leased' THEN 'w' END, CASE WHEN m.state = 'leased' THEN md5('w')::UUID END, \
     CASE WHEN m.state = 'leased' THEN 1800000000000 + m.i END, false, false, 1800000000000 + m.i, \
     CASE WHEN m.state = 'ready' OR m.state = 'scheduled' THEN 1800009000000 + m.i END, 1800000000000 + m.i, \
     1800000000000 + m.i, CASE WHEN m.state = 'completed' OR m.state = 'failed' OR m.state = 'cancelled' \
     OR m.state = 'unknown' THEN 1800000000000 + m.i END, 4, false, CASE WHEN m.state = 'completed' THEN 'result' END, \
     0, 3, CASE WHEN m.i % 50 = 7 THEN md5('w')::UUID END, CASE WHEN m.i % 7 <> 0 THEN 1800000000000 + m.i END, false, \
     m.i % 4 = 0 FROM made m, policies p",
    "INSERT INTO execution_events (shard, execution_id, seq, at_ms, type, body, operation) \
     SELECT e.shard, e.id, n, e.created_at_ms, 'leased', '{}', e.id FROM made m JOIN executions e ON e.id = m.id, generate_series(1, 3) AS n",
    "INSERT INTO payloads (shard, execution_id, kind, chunk, body) \
     SELECT e.shard, e.id, 'arguments', 0, '{\"n\":1}' FROM made m JOIN executions e ON e.id = m.id",
    "INSERT INTO idempotency_keys (namespace, upstream, tool, key, execution_id, ttl_ms) \
     SELECT e.namespace, e.upstream, e.tool, e.key, e.id, 86400000 FROM executions e WHERE e.key IS NOT NULL",
];

async fn filled(cluster: &Cluster) -> (Schema, Client) {
    let schema = Schema::new(cluster, Isolation::Serializable).await;
    // A call that leaves its policy behind for all the others.
    let mut scene = Scene::open(&schema, "first").await.unwrap();
    let call = scene.call("{}");
    scene.new_execution(call).await.unwrap();
    scene.store.close().await;
    let client = schema.client(cluster).await;
    for sql in FILL {
        client.batch_execute(&sql.replace("$COUNT", &EXECUTIONS.to_string())).await.unwrap();
    }
    client.batch_execute("DROP TABLE made; ANALYZE").await.unwrap();
    (schema, client)
}

/// The large tables that the generic plan of a statement reads from end to end; nothing where the types of its values do
/// not follow from it.
async fn read_whole(client: &Client, sql: &str, types: &str) -> Option<Vec<String>> {
    let types = if types.is_empty() { String::new() } else { format!("({types})") };
    client.batch_execute(&format!("PREPARE planned{types} AS {sql}")).await.ok()?;
    let values = (1..).take_while(|number| sql.contains(&format!("${number}"))).count();
    let values = if values == 0 { String::new() } else { format!("({})", vec!["NULL"; values].join(", ")) };
    let plan = client.simple_query(&format!("EXPLAIN EXECUTE planned{values}")).await.unwrap();
    client.batch_execute("DEALLOCATE planned").await.unwrap();
    let lines = plan.iter().filter_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let whole = lines.filter_map(|line| line.split("Seq Scan on ").nth(1)).map(|rest| rest.split(' ').next().unwrap());
    Some(whole.filter(|table| LARGE.contains(table)).map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_that_runs_all_the_time_reads_a_large_table_whole() {
    let Some(cluster) = Cluster::start().await else { return };
    let (schema, client) = filled(&cluster).await;
    client.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let types: BTreeMap<&str, &str> = super::statements().into_iter().collect();
    let (mut planned, mut broken) = (0, Vec::new());
    for Statement { file, name, sql } in statements(&sources()).iter().filter(|statement| statement.is_whole()) {
        if WHOLE.contains(&(file, name)) || file == "migrate.rs" {
            continue;
        }
        let Some(whole) = read_whole(&client, sql, types.get(sql.as_str()).copied().unwrap_or_default()).await else {
            continue;
        };
        planned += 1;
        if !whole.is_empty() {
            broken.push(format!("{file} {name} reads {} whole: {sql}", whole.join(", ")));
        }
    }
    assert!(planned > 90, "only {planned} statements were planned");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    // The test sees one that does.
    let bad = read_whole(&client, "SELECT e.id FROM executions e WHERE e.caller = $1", "").await;
    assert_eq!(bad.unwrap(), ["executions"]);
    as_it_is_sent(&schema, &client).await;
    rare_calls_are_found_by_their_caller(&schema, &client).await;
    what_is_seldom_is_not_looked_for_among_all(&schema, &client).await;
}

/// The real calls of a store, with the plans that the database makes for their values; it counts what it reads whole.
async fn as_it_is_sent(schema: &Schema, client: &Client) {
    let before = scans(client).await;
    let mut scene = Scene::open(schema, "plans").await.unwrap();
    let now_ms = scene.now_ms + 1_000_000;
    let nobody = scene.process_id();
    for n in 0..20 {
        let call = scene.keyed(&format!("key-{n}"), &format!("{{\"n\":{n}}}"));
        let head = scene.new_execution(call).await.unwrap();
        let token = scene.lease(head.id()).await.unwrap().fencing_token;
        let lease = crate::store::LeaseRef { id: head.id(), fencing_token: token };
        scene.store.heartbeat(vec![lease], 30_000, scene.now_ms).await.unwrap();
        scene.complete(head.id(), token, "1").await.unwrap();
        let unkeyed = scene.call(&format!("{{\"twin\":{}}}", n % 3));
        let id = scene.store.submit(unkeyed).await;
        if let Ok(crate::store::SubmitOutcome::New(head)) = id {
            scene
                .run(head.id(), Command::Cancel(Order { principal: "ann".into(), reason: "enough".into() }))
                .await
                .unwrap();
        }
        let scope = KeyScope {
            namespace: scene.namespace.clone(),
            upstream: "files".into(),
            tool: "echo".into(),
            key: format!("key-{n}"),
        };
        assert!(scene.store.by_key(scope).await.unwrap().is_some());
        assert_eq!(scene.store.heads(&[head.id()]).await.unwrap().len(), 1);
        scene.events(head.id()).await.unwrap();
        scene.store.payload(head.id(), PayloadKind::Result).await.unwrap();
        let query = CandidateQuery {
            upstreams: (0..20).map(|n| format!("u{n}")).collect(),
            process: scene.process,
            dead: Vec::new(),
            now_ms,
            limit: 10,
        };
        assert!(!scene.store.candidates(query).await.unwrap().is_empty());
        assert!(!scene.store.due(&[nobody], now_ms, 10).await.unwrap().expired.is_empty());
        assert!(!scene.store.dead_processes(now_ms).await.unwrap().is_empty());
    }
    let page = |states: Vec<State>| ListQuery { states, limit: 50, ..ListQuery::default() };
    let states = [vec![], vec![State::Unknown], vec![State::Failed, State::Cancelled], vec![State::Leased]];
    for query in states.into_iter().map(page) {
        assert!(!scene.store.list(query).await.unwrap().is_empty());
    }
    let span = TouchedQuery { since_ms: now_ms - 1_000, until_ms: now_ms, limit: 50, ..TouchedQuery::default() };
    scene.store.touched(span).await.unwrap();
    let retention = Retention { payloads_ms: now_ms - 1_800_000_000_100, executions_ms: i64::MAX, batch: 20 };
    assert!(scene.store.prune(retention, now_ms).await.unwrap().payloads > 0);
    scene.store.close().await;
    // What a connection counted is told when it ends.
    connections_end(client).await;
    let after = scans(client).await;
    for table in LARGE {
        assert_eq!(after[table].0, before[table].0, "{table} was read whole");
        assert!(after[table].1 > before[table].1, "nothing was counted of {table}");
    }
}

/// A page of somebody who called rarely looks at little but that, whichever states are asked for.
async fn rare_calls_are_found_by_their_caller(schema: &Schema, client: &Client) {
    let before = fetched(client).await;
    let scene = Scene::open(schema, "rare").await.unwrap();
    for states in [vec![], vec![State::Completed], vec![State::Completed, State::Waiting]] {
        let query = ListQuery { principal: Some("rare".into()), states, limit: 60, ..ListQuery::default() };
        let heads = scene.store.list(query).await.unwrap();
        assert_eq!(heads.len(), 60);
        assert!(heads.is_sorted_by_key(|head| std::cmp::Reverse(head.id())), "not newest first");
        assert!(heads.iter().all(|head| head.ident.principal == "rare"));
    }
    scene.store.close().await;
    connections_end(client).await;
    let read = fetched(client).await - before;
    assert!((180..3_000).contains(&read), "{read} rows were read for three pages of 60");
}

/// Errors and repeated attempts are looked for among those that have any.
async fn what_is_seldom_is_not_looked_for_among_all(schema: &Schema, client: &Client) {
    let before = fetched(client).await;
    let scene = Scene::open(schema, "seldom").await.unwrap();
    let all = || ListQuery { limit: 60, ..ListQuery::default() };
    for query in [
        ListQuery { error_code: Some("nothing".into()), ..all() },
        ListQuery { error_code: Some("nothing".into()), states: vec![State::Failed], ..all() },
        ListQuery { attempts_over: Some(7), ..all() },
        ListQuery { recovered: true, ..all() },
    ] {
        assert!(scene.store.list(query).await.unwrap().is_empty());
    }
    scene.store.close().await;
    connections_end(client).await;
    let read = fetched(client).await - before;
    assert!(read < 1_000, "{read} rows were read to find nothing");
}

/// Rows of executions that were read by an index.
async fn fetched(client: &Client) -> i64 {
    client.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    let read = "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE schemaname = current_schema() \
                AND relname = 'executions'";
    client.query_typed(read, &[]).await.unwrap()[0].get(0)
}

/// Reads from end to end and by an index, by table.
async fn scans(client: &Client) -> BTreeMap<String, (i64, i64)> {
    // What this connection itself has read is told once a second at most, or when it is asked to.
    client.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    let rows = client
        .query_typed(
            "SELECT relname::TEXT, seq_scan, coalesce(idx_scan, 0) FROM pg_stat_user_tables \
             WHERE schemaname = current_schema()",
            &[],
        )
        .await
        .unwrap();
    rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_made_before_the_first_row_finds_single_rows_by_their_key() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.open().await.unwrap().close().await;
    let client = schema.client(&cluster).await;
    client.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let types: BTreeMap<&str, &str> = super::statements().into_iter().collect();
    let read = statements(&sources());
    let single = [("heads.rs", "ENTRY"), ("heads.rs", "BY_KEY"), ("events.rs", "AFTER"), ("events.rs", "LAST_OF")];
    for (file, name) in single.into_iter().chain([("held.rs", "HOLD"), ("pieces.rs", "PIECE")]) {
        let found = read.iter().find(|statement| statement.file == file && statement.name == name);
        let sql = &found.unwrap_or_else(|| panic!("{file} has no {name}")).sql;
        let types = types.get(sql.as_str()).copied().unwrap_or_default();
        assert_eq!(read_whole(&client, sql, types).await, Some(Vec::new()), "{file} {name}");
    }
}

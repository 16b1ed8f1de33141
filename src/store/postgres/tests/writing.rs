//! Writes beside each other: what is decided without a read, what several connections write at once, and delivery marks.
//! What a driver may answer at all is the conformance suite's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cluster::{Cluster, connections_end};
use super::{Isolation, Schema};
use crate::model::decide::{Answer, Command};
use crate::model::execution::State;
use crate::store::conformance::{Ground, Scene};
use crate::store::{LeaseRef, Mark, PayloadKind, Store, SubmitOutcome};

/// A connection of the test's own to the schema.
pub(super) async fn look(cluster: &Cluster, schema: &Schema) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&cluster.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let name = schema.settings.schema.as_ref().unwrap();
    client.batch_execute(&format!("SET search_path = {name}")).await.unwrap();
    client
}

/// Counts the statements that read rows of executions or their keys, by a counter that no rollback takes back.
async fn reads(client: &tokio_postgres::Client) -> i64 {
    let sql = "SELECT coalesce(sum(seq_scan + idx_scan), 0)::bigint FROM pg_stat_user_tables \
        WHERE schemaname = current_schema() AND relname IN ('execution_events', 'policies')";
    // What the other connections count is flushed when they are idle for a while, or end.
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_a_free_key_is_stored_and_ended_without_a_read() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let mut scene = Scene::open(&schema, "quick").await.unwrap();
    // The first call stores the policy, in a transaction that reads.
    let first = scene.keyed("first", "{}");
    scene.completed(first, "1").await.unwrap();
    let counted = look(&cluster, &schema).await;
    scene.store.close().await;
    let before = reads(&counted).await;
    let mut ids = Vec::new();
    let mut scene = scene.another(&schema).await.unwrap();
    for key in 0..20 {
        let submit = scene.keyed(&format!("key-{key}"), "{}");
        ids.push(scene.completed(submit, "2").await.unwrap().id());
    }
    // Counters reach the others at the latest when a connection ends.
    scene.store.close().await;
    connections_end(&counted).await;
    let read = reads(&counted).await - before;
    // The first of them read for its policy; twenty that read would have looked for the operations of twenty rows.
    assert!(read < 10, "{read} scans of events and policies for {} calls", ids.len());
    let scene = scene.another(&schema).await.unwrap();
    for id in ids {
        assert_eq!(scene.head(id).await.unwrap().state, State::Completed);
        scene.check_row(id).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_changed_is_never_answered_from_memory() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let mut ours = Scene::open(&schema, "stale").await.unwrap();
    let mut other = ours.another(&schema).await.unwrap();
    let submit = ours.keyed("k", "{}");
    let id = ours.new_execution(submit).await.unwrap().id();
    let token = ours.lease(id).await.unwrap().fencing_token;
    // Ours remembers a row that is leased to it. The other one gives it back and takes it under the next token.
    other.run(id, Command::Release { fencing_token: token }).await.unwrap();
    let next = other.lease(id).await.unwrap().fencing_token;
    assert!(next > token);
    let late = ours.complete(id, token, "late").await.unwrap();
    assert_eq!(late.answer, Answer::Stale);
    let beats = ours.store.heartbeat(vec![LeaseRef { id, fencing_token: token }], 30_000, ours.now_ms).await.unwrap();
    assert_eq!(beats, [Answer::Stale]);
    // A command that a stale memory would refuse: the lease under the other's token, sent by ours.
    other.run(id, Command::Release { fencing_token: next }).await.unwrap();
    let third = other.lease(id).await.unwrap().fencing_token;
    assert_eq!(ours.complete(id, third, "done").await.unwrap().answer, Answer::Accepted);
    assert_eq!(other.complete(id, third, "again").await.unwrap().answer, Answer::AlreadyDone);
    ours.check_row(id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_of_the_same_few_keys_and_rows_lose_nothing() {
    let Some(cluster) = Cluster::start().await else { return };
    for isolation in [Isolation::Serializable, Isolation::ReadCommitted] {
        let mut schema = Schema::new(&cluster, isolation).await;
        schema.settings.writers = 4;
        let mut scene = Scene::open(&schema, "many").await.unwrap();
        let second = scene.another(&schema).await.unwrap();
        let mut submits = Vec::new();
        for round in 0..12 {
            for key in 0..10 {
                let submit = scene.keyed(&format!("key-{key}"), "{}");
                let store = if round % 3 == 0 { &second.store } else { &scene.store };
                submits.push((Arc::clone(store), submit));
            }
        }
        let (tasks, mut news, mut olds) = (spawn_all(submits), Vec::new(), Vec::new());
        for task in tasks {
            match task.await.unwrap() {
                SubmitOutcome::New(head) => news.push(head.id()),
                SubmitOutcome::Existing(head) => olds.push(head.id()),
                other => panic!("{other:?}"),
            }
        }
        news.sort_unstable();
        news.dedup();
        assert_eq!((news.len(), olds.len()), (10, 110));
        assert!(olds.iter().all(|id| news.contains(id)));
        for id in news {
            scene.check_row(id).await.unwrap();
        }
    }
}

fn spawn_all(submits: Vec<(Arc<dyn Store>, crate::store::Submit)>) -> Vec<tokio::task::JoinHandle<SubmitOutcome>> {
    let submit =
        |(store, submit): (Arc<dyn Store>, _)| tokio::spawn(async move { store.submit(submit).await.unwrap() });
    submits.into_iter().map(submit).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_takes_long_holds_up_no_other_call() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let mut scene = Scene::open(&schema, "held").await.unwrap();
    let first = scene.keyed("first", "{}");
    scene.completed(first, "1").await.unwrap();
    // Somebody is about to take two keys: whoever wants one of them waits for the end of that.
    let client = look(&cluster, &schema).await;
    let take = format!(
        "BEGIN; INSERT INTO idempotency_keys (namespace, upstream, tool, key, execution_id, ttl_ms) \
         SELECT k.namespace, k.upstream, k.tool, 'held-' || n, k.execution_id, k.ttl_ms FROM idempotency_keys k, \
         generate_series(0, 1) AS n WHERE k.namespace = '{}'",
        scene.namespace
    );
    client.batch_execute(&take).await.unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    // What a transaction sees of the others stands still.
    let watch = look(&cluster, &schema).await;
    let (mut tasks, began) = (Vec::new(), Instant::now());
    for n in 0..2 {
        let held = scene.keyed(&format!("held-{n}"), "{}");
        tasks.extend(spawn_all(vec![(Arc::clone(&scene.store), held)]));
        while watch.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) <= n {
            assert!(began.elapsed() < Duration::from_secs(30), "nobody waits for the key");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    // One is less than what is under way, and is on its way after a moment.
    for n in 0..3 {
        let free = scene.keyed(&format!("free-{n}"), "{}");
        let stored = tokio::time::timeout(Duration::from_secs(5), scene.store.submit(free)).await;
        assert!(matches!(stored.expect("held up by others").unwrap(), SubmitOutcome::New(_)));
    }
    assert!(tasks.iter().all(|task| !task.is_finished()));
    client.batch_execute("ROLLBACK").await.unwrap();
    for task in tasks {
        assert!(matches!(task.await.unwrap(), SubmitOutcome::New(_)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_waits_for_company_however_long_nothing_came_before_it() {
    let Some(cluster) = Cluster::start().await else { return };
    let mut schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.settings.mark_flush_ms = 1_000;
    let mut scene = Scene::open(&schema, "mark-alone").await.unwrap();
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await.unwrap().id();
    // Longer than marks wait: the time before a mark came is not part of its wait.
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    let queued = Instant::now();
    scene.store.mark(id, Mark::HandleGiven(scene.process), scene.now_ms);
    let written = loop {
        if scene.head(id).await.unwrap().handle_given {
            break queued.elapsed();
        }
        assert!(queued.elapsed() < Duration::from_secs(30), "the mark was never written");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(written >= Duration::from_millis(950), "written alone after {written:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_no_database_takes_is_refused_alone() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let mut scene = Scene::open(&schema, "nul").await.unwrap();
    let (before, bad, after) = (scene.keyed("a", "{}"), scene.keyed("b\0c", "{}"), scene.keyed("d", "{}"));
    let store = &scene.store;
    let (before, bad, after) = tokio::join!(store.submit(before), store.submit(bad), store.submit(after));
    assert!(matches!(before.unwrap(), SubmitOutcome::New(_)) && matches!(after.unwrap(), SubmitOutcome::New(_)));
    let refused = bad.unwrap_err();
    assert_eq!(refused.code(), "store_unstorable");
    assert!(refused.to_string().contains("the idempotency key"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_a_tool_is_recorded_whatever_its_text_holds() {
    use crate::model::decide::{Failure, FailureKind};
    use crate::model::execution::ErrorInfo;

    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let mut scene = Scene::open(&schema, "nul-error").await.unwrap();
    let submit = scene.keyed("a", "{}");
    let id = scene.new_execution(submit).await.unwrap().id();
    let fencing_token = scene.lease(id).await.unwrap().fencing_token;
    let error = ErrorInfo { code: "rpc".into(), message: "half \0 a message".into() };
    let failure = Failure { kind: FailureKind::RpcError, error, retry_after_ms: None };
    scene.run(id, Command::Fail { fencing_token, failure }).await.unwrap();
    let head = scene.head(id).await.unwrap();
    assert_eq!(head.error.as_ref().unwrap().message, "half \u{fffd} a message");
    scene.check_row(id).await.unwrap();
}

/// R7: a plan made on an empty table that nobody has analysed is the one that a connection keeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_prepared_looks_rows_up_by_their_keys_whatever_it_was_planned_on() {
    use crate::store::postgres::lane::PLANS;
    use crate::store::postgres::write::{CHANGE, CHANGE_PLAIN, STORE, STORE_PLAIN};

    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.open().await.unwrap().close().await;
    let client = look(&cluster, &schema).await;
    let plan = async |name: &str, values: usize| {
        let nothing = vec!["NULL"; values].join(", ");
        let rows = client.query(&format!("EXPLAIN EXECUTE {name}({nothing})"), &[]).await.unwrap();
        rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
    };
    // Without the settings this very check finds what it is for.
    client.batch_execute(&format!("SET plan_cache_mode = force_generic_plan; PREPARE bare AS {CHANGE}")).await.unwrap();
    let bare = plan("bare", 41).await;
    assert!(bare.contains("Seq Scan on executions"), "{bare}");
    client.batch_execute(PLANS).await.unwrap();
    let all = [("change", CHANGE, 41), ("change_plain", CHANGE_PLAIN, 27), ("store", STORE, 55)];
    for (name, sql, values) in all.into_iter().chain([("store_plain", STORE_PLAIN, 37)]) {
        client.batch_execute(&format!("PREPARE {name} AS {sql}")).await.unwrap();
        let plan = plan(name, values).await;
        assert!(!plan.contains("Seq Scan") && !plan.contains("Bitmap"), "{plan}");
        // No row is compared with each event.
        assert!(!plan.contains("Join") && plan.contains("hashed SubPlan"), "{plan}");
        let looked_up = plan.contains("Index Scan using executions_pkey on executions");
        assert!(looked_up || !name.starts_with("change"), "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_counts_the_rows_that_it_stores() {
    use crate::store::postgres::batch::Write;

    let Some(cluster) = Cluster::start().await else { return };
    let mut schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.settings.payload_chunk_bytes = 16;
    let mut scene = Scene::open(&schema, "rows").await.unwrap();
    let mut submit = scene.keyed("k", "{\"a\": \"as long as three pieces of it are\"}");
    submit.submission.lease = Some(scene.lease_request());
    submit.meta = Some("{}".into());
    let counted = Write::Submit(Box::new(submit.clone())).rows(16);
    scene.new_execution(submit).await.unwrap();
    let client = look(&cluster, &schema).await;
    let mut stored = 0;
    for table in ["executions", "execution_events", "payloads", "idempotency_keys"] {
        let count = client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap();
        stored += count.get::<_, i64>(0);
    }
    assert_eq!((counted as i64, stored), (8, 8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_with_a_piece_missing_is_damaged_and_one_that_is_gone_is_not() {
    let Some(cluster) = Cluster::start().await else { return };
    let mut schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.settings.payload_chunk_bytes = 16;
    let mut scene = Scene::open(&schema, "pieces").await.unwrap();
    let client = look(&cluster, &schema).await;
    let text = "{\"a\": \"as long as three pieces of it are\"}";
    for chunk in [0_i64, 1] {
        let submit = scene.keyed(&format!("k{chunk}"), text);
        let id = scene.new_execution(submit).await.unwrap().id();
        let read = || scene.store.payload(id, PayloadKind::Arguments);
        assert_eq!(read().await.unwrap().as_deref(), Some(text));
        client
            .execute("DELETE FROM payloads WHERE execution_id = $1 AND chunk = $2", &[id.as_uuid(), &chunk])
            .await
            .unwrap();
        let error = read().await.unwrap_err().to_string();
        assert!(error.contains(&format!("piece {chunk} of the arguments of execution {id}")), "{error}");
        client.execute("DELETE FROM payloads WHERE execution_id = $1", &[id.as_uuid()]).await.unwrap();
        assert_eq!(read().await.unwrap(), None);
    }
}

//! A database that is stuck, away, read-only or without room: how long a write waits, whom an error strikes, and how soon
//! everything works again. Errors that no test can cause come from a trigger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::writing::look;
use super::{Isolation, Schema};
use crate::store::conformance::Scene;
use crate::store::{Error, Store, Submit, SubmitOutcome};

type Answers = Vec<(crate::store::Result<SubmitOutcome>, Duration)>;

/// Submits each on a task of its own; the answers, with how long each took.
async fn submit_all(store: &Arc<dyn Store>, submits: &[Submit]) -> Answers {
    let submit = |submit: &Submit| {
        let (store, submit, began) = (Arc::clone(store), submit.clone(), Instant::now());
        tokio::spawn(async move { (store.submit(submit).await, began.elapsed()) })
    };
    let tasks: Vec<_> = submits.iter().map(submit).collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_behind_a_stuck_one_is_answered_as_early_as_if_it_were_first() {
    let Some(cluster) = Cluster::start().await else { return };
    let mut schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.settings.answer_deadline_ms = 3_000;
    schema.settings.commit_deadline_ms = 2_000;
    // So that there is a queue.
    schema.settings.batch_max = 2;
    let mut scene = Scene::open(&schema, "stuck").await.unwrap();
    let first = scene.keyed("first", "{}");
    scene.new_execution(first).await.unwrap();
    let locking = look(&cluster, &schema).await;
    locking.batch_execute("BEGIN; LOCK TABLE executions IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let submits: Vec<Submit> = (0..24).map(|key| scene.keyed(&format!("key-{key}"), "{}")).collect();
    for (answer, took) in submit_all(&scene.store, &submits).await {
        assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
        assert!(took < Duration::from_millis(4_500), "answered after {took:?}");
    }
    locking.batch_execute("COMMIT").await.unwrap();
    // What was left in the queue is not written behind anybody's back; what had been sent may be, and is found.
    for (answer, _) in submit_all(&scene.store, &submits).await {
        let head = match answer.unwrap() {
            SubmitOutcome::New(head) => head,
            other => panic!("{other:?}"),
        };
        assert_eq!(scene.event_names(head.id()).await.unwrap(), ["submitted"]);
    }
    let count = "SELECT count(*) FROM executions";
    assert_eq!(locking.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 25);
}

/// Makes the next statements that store executions fail with `code`, `times` times; counts them all.
async fn fail_with(client: &tokio_postgres::Client, code: &str, times: i64) {
    let sql = format!(
        "CREATE SEQUENCE tries; \
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF nextval('tries') <= {times} THEN RAISE EXCEPTION 'planted' USING ERRCODE = '{code}'; END IF; \
         RETURN NULL; END $$; \
         CREATE TRIGGER planted BEFORE INSERT ON executions FOR EACH STATEMENT EXECUTE FUNCTION fail()"
    );
    client.batch_execute(&sql).await.unwrap();
}

async fn tries(client: &tokio_postgres::Client) -> i64 {
    client.query_one("SELECT last_value FROM tries", &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_everybodys_and_not_looked_for_in_halves() {
    let Some(cluster) = Cluster::start().await else { return };
    for code in ["53100", "53200", "57014", "42501"] {
        let schema = Schema::new(&cluster, Isolation::Serializable).await;
        let mut scene = Scene::open(&schema, "full").await.unwrap();
        let first = scene.keyed("first", "{}");
        scene.new_execution(first).await.unwrap();
        let client = look(&cluster, &schema).await;
        // Every batch that comes in while the first one is under way shares one transaction.
        client.batch_execute("BEGIN; LOCK TABLE executions IN ACCESS EXCLUSIVE MODE").await.unwrap();
        let submits: Vec<Submit> = (0..32).map(|key| scene.keyed(&format!("key-{key}"), "{}")).collect();
        let store = Arc::clone(&scene.store);
        let answers = tokio::spawn(async move { submit_all(&store, &submits).await });
        fail_with(&client, code, 1_000).await;
        client.batch_execute("COMMIT").await.unwrap();
        for (answer, _) in answers.await.unwrap() {
            let error = answer.unwrap_err();
            assert!(matches!(error, Error::CannotWrite(_) | Error::Unavailable(_)), "{code}: {error:?}");
        }
        // Up to three batches with two statements each, however many writes they held.
        let tries = tries(&client).await;
        assert!(tries <= 12, "{code}: {tries} statements");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_can_not_be_stored_strikes_its_own_write_only() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let mut scene = Scene::open(&schema, "own").await.unwrap();
    let first = scene.keyed("first", "{}");
    scene.new_execution(first).await.unwrap();
    let client = look(&cluster, &schema).await;
    client.batch_execute("ALTER TABLE executions ADD CONSTRAINT planted CHECK (key <> 'bad')").await.unwrap();
    client.batch_execute("BEGIN; LOCK TABLE executions IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let keys: Vec<String> = (0..16).map(|key| if key == 7 { "bad".into() } else { format!("key-{key}") }).collect();
    let submits: Vec<Submit> = keys.iter().map(|key| scene.keyed(key, "{}")).collect();
    let store = Arc::clone(&scene.store);
    let answers = tokio::spawn(async move { submit_all(&store, &submits).await });
    client.batch_execute("COMMIT").await.unwrap();
    for (key, (answer, _)) in keys.iter().zip(answers.await.unwrap()) {
        assert_eq!(answer.is_ok(), key != "bad", "{key}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_became_a_standby_is_left_for_the_primary() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let mut scene = Scene::open(&schema, "standby").await.unwrap();
    let first = scene.keyed("first", "{}");
    scene.new_execution(first).await.unwrap();
    let client = look(&cluster, &schema).await;
    let pids = "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity WHERE application_name = 'durable-mcp'";
    let before: Vec<i32> = client.query_one(pids, &[]).await.unwrap().get(0);
    fail_with(&client, "25006", 3).await;
    let submit = scene.keyed("second", "{}");
    scene.new_execution(submit).await.unwrap();
    let after: Vec<i32> = client.query_one(pids, &[]).await.unwrap().get(0);
    assert!(after.iter().any(|pid| !before.contains(pid)), "no new connection: {before:?} and {after:?}");
    assert_eq!(tries(&client).await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_works_again_soon_after_the_database_is_back() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let mut schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.settings.answer_deadline_ms = 4_500;
    let mut scene = Scene::open(&schema, "back").await.unwrap();
    let first = scene.keyed("first", "{}");
    let id = scene.new_execution(first).await.unwrap().id();
    cluster.kill().await;
    let submits: Vec<Submit> = (0..8).map(|key| scene.keyed(&format!("key-{key}"), "{}")).collect();
    for (answer, took) in submit_all(&scene.store, &submits).await {
        assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
        assert!(took < Duration::from_secs(6), "answered after {took:?}");
    }
    assert!(matches!(scene.store.heads(&[id]).await, Err(Error::Unavailable(_))));
    cluster.start_again().await;
    let began = Instant::now();
    // The same operations again, as whoever heard nothing sends them.
    for (answer, _) in submit_all(&scene.store, &submits).await {
        assert!(matches!(answer.unwrap(), SubmitOutcome::New(_)));
    }
    assert_eq!(scene.head(id).await.unwrap().id(), id);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    for submit in &submits {
        scene.check_row(submit.submission.ident.id).await.unwrap();
    }
}

//! The role that serves: everything works under it, and the log is out of its reach.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::cluster::Cluster;
use super::{Isolation, PostgresStore, Schema};
use crate::model::execution::State;
use crate::store::conformance::{Ground, Scene, cases};
use crate::store::postgres::roles::{grant, granted};
use crate::store::{Error, Result, Retention, Store};

const ROLE: &str = "serves \"calls\"";

/// A schema that was made by its owner, used by the role.
struct Served {
    schema: Schema,
    url: String,
}

impl Served {
    async fn new(cluster: &Cluster) -> Served {
        let schema = Schema::new(cluster, Isolation::Serializable).await;
        schema.open().await.unwrap().close().await;
        grant(&schema.url, &schema.settings, ROLE).await.unwrap();
        let sql = "ALTER ROLE \"serves \"\"calls\"\"\" PASSWORD 'secret'";
        schema.client(cluster).await.batch_execute(sql).await.unwrap();
        let url = logged_in(&schema.url, "serves%20%22calls%22");
        Served { schema, url }
    }
}

/// The same database for another role.
fn logged_in(url: &str, role: &str) -> String {
    format!("postgres://{role}:secret@{}", url.split_once('@').unwrap().1)
}

#[async_trait]
impl Ground for Served {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(PostgresStore::open(&self.url, &self.schema.settings).await?))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_for_the_role_that_serves() {
    let Some(cluster) = Cluster::start().await else { return };
    let mut failures = Vec::new();
    for case in &cases() {
        if let Err(failure) = case.run(&Served::new(&cluster).await).await {
            failures.push(format!("{}: {failure}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_role_that_serves_can_not_touch_the_log_but_for_retention() {
    let Some(cluster) = Cluster::start().await else { return };
    let served = Served::new(&cluster).await;
    let mut scene = Scene::open(&served, "log").await.unwrap();
    let (first, second) = (scene.call("{\"n\":1}"), scene.call("{\"n\":2}"));
    let ended = scene.completed(first, "1").await.unwrap();
    let runs = scene.new_execution(second).await.unwrap().id();

    let (client, connection) = tokio_postgres::connect(&served.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let name = served.schema.settings.schema.clone().unwrap();
    client.batch_execute(&format!("SET search_path = {name}")).await.unwrap();
    for (sql, code) in [
        ("DELETE FROM execution_events", "42501"),
        ("UPDATE execution_events SET body = '{}'", "42501"),
        ("TRUNCATE execution_events", "42501"),
        ("UPDATE payloads SET body = '{}'", "42501"),
        ("TRUNCATE executions", "42501"),
        ("DROP TABLE execution_events", "42501"),
        ("ALTER TABLE execution_events DISABLE TRIGGER ALL", "42501"),
        ("DELETE FROM schema_history", "42501"),
        ("UPDATE schema_history SET checksum = ''", "42501"),
        ("CREATE TABLE mine (a BIGINT)", "42501"),
        ("CREATE FUNCTION mine() RETURNS BIGINT LANGUAGE sql AS 'SELECT 1'", "42501"),
        // The trigger: it has not ended.
        ("DELETE FROM executions WHERE state = 'ready'", "23001"),
    ] {
        let refused = client.batch_execute(sql).await.expect_err(sql);
        assert_eq!(refused.code().map(|code| code.code()), Some(code), "{sql}: {refused}");
    }
    // The owner's function leaves the events of what is there alone, also under names that the caller chose.
    let count = "SELECT count(*) FROM execution_events";
    let before: i64 = client.query_typed(count, &[]).await.unwrap()[0].get(0);
    client
        .batch_execute(&format!(
            "CREATE TEMP TABLE executions (shard BIGINT, id UUID); SELECT {name}.delete_events_of_deleted(\
             ARRAY(SELECT shard FROM {name}.executions), ARRAY(SELECT id FROM {name}.executions)); DROP TABLE \
             pg_temp.executions"
        ))
        .await
        .unwrap();
    assert_eq!(client.query_typed(count, &[]).await.unwrap()[0].get::<_, i64>(0), before);

    let retention = Retention { payloads_ms: 0, executions_ms: 0, batch: 10 };
    let pruned = scene.store.prune(retention, scene.now_ms + 1).await.unwrap();
    assert_eq!(pruned.executions, 1);
    assert!(scene.store.heads(&[ended.id()]).await.unwrap().is_empty());
    assert!(scene.events(ended.id()).await.unwrap().is_empty());
    assert_eq!(scene.head(runs).await.unwrap().state, State::Ready);
    assert!(!scene.events(runs).await.unwrap().is_empty());
    scene.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_is_made_once_and_one_that_no_grant_binds_is_refused() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.open().await.unwrap().close().await;
    let first = grant(&schema.url, &schema.settings, "server").await.unwrap();
    assert!(first.created && first.prunes);
    assert_eq!(Some(&first.schema), schema.settings.schema.as_ref());
    assert!(!grant(&schema.url, &schema.settings, "server").await.unwrap().created);
    let client = schema.client(&cluster).await;
    // A right that came from elsewhere is taken back.
    client.batch_execute("GRANT DELETE, UPDATE ON execution_events TO server").await.unwrap();
    grant(&schema.url, &schema.settings, "server").await.unwrap();
    let may = "SELECT has_table_privilege('server', 'execution_events', 'DELETE') \
        OR has_table_privilege('server', 'execution_events', 'UPDATE')";
    assert!(!client.query_typed(may, &[]).await.unwrap()[0].get::<_, bool>(0));

    let refused = grant(&schema.url, &schema.settings, "postgres").await.unwrap_err();
    assert!(matches!(&refused, Error::CannotWrite(told) if told.contains("superuser")), "{refused}");
    client.batch_execute("CREATE ROLE plain LOGIN PASSWORD 'secret'").await.unwrap();
    let plain = logged_in(&schema.url, "plain");
    let refused = grant(&plain, &schema.settings, "another").await.unwrap_err();
    assert!(refused.to_string().contains("CREATE ROLE \"another\" LOGIN"), "{refused}");

    let rows = client
        .query_typed(
            "SELECT table_name::TEXT FROM information_schema.tables WHERE table_schema = current_schema()",
            &[],
        )
        .await
        .unwrap();
    let there: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    let known: BTreeSet<String> = granted().into_iter().map(str::to_owned).collect();
    assert_eq!(known, there, "every table is granted");
}

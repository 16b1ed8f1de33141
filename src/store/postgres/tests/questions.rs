//! What auditors ask: every file of `examples/sql/postgres`, on a store with an answer.

use tokio_postgres::SimpleQueryMessage;

use super::cluster::Cluster;
use super::{Isolation, Schema};
use crate::store::conformance::{Scene, story};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_question_of_the_examples_finds_its_answer() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let mut scene = Scene::open(&schema, "questions").await.unwrap();
    story::play(&mut scene).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&cluster.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let name = schema.settings.schema.as_deref().unwrap();
    client.batch_execute(&format!("SET search_path = {name}; SET default_transaction_read_only = on")).await.unwrap();
    for (name, sql) in story::questions("postgres") {
        let messages = client.simple_query(&sql).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let cells = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).unwrap_or_default().to_owned()).collect())
            }
            _ => None,
        };
        let rows: Vec<Vec<String>> = messages.iter().filter_map(cells).collect();
        story::check(&name, &rows);
    }
}

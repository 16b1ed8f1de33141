//! The pooler of the tests itself: it is in transaction mode, which is what takes named statements and settings of a
//! session away. One that kept them would make every test through it pass.

use tokio_postgres::{Client, NoTls};

use crate::skip_loudly;
use crate::support::cluster::{Cluster, Version, cluster_is_set_up};
use crate::support::pgbouncer::{Pgbouncer, pgbouncer_is_set_up};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_the_server_are_lent_for_a_transaction() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    skip_loudly!(pgbouncer_is_set_up());
    let cluster = Cluster::start(Version::Debian15).await;
    let pooler = Pgbouncer::start(&cluster, 1).await;
    let (one, other) = (connect(&cluster, &pooler).await, connect(&cluster, &pooler).await);
    let backend =
        async |client: &Client| client.query_typed("SELECT pg_backend_pid()", &[]).await.unwrap()[0].get::<_, i32>(0);
    assert_eq!(backend(&one).await, backend(&other).await, "{}", pooler.log());
    // What one sets, the other has: nothing of a session may be relied upon.
    one.batch_execute("SET lock_timeout = 1234").await.unwrap();
    let seen = other.query_typed("SHOW lock_timeout", &[]).await.unwrap();
    assert_eq!(seen[0].get::<_, String>(0), "1234ms");
    // SET LOCAL holds where it was said.
    one.batch_execute("BEGIN; SET LOCAL lock_timeout = 4321").await.unwrap();
    let seen = one.query_typed("SHOW lock_timeout", &[]).await.unwrap();
    assert_eq!(seen[0].get::<_, String>(0), "4321ms");
    one.batch_execute("COMMIT").await.unwrap();
    // A named statement belongs to the server's connection.
    one.batch_execute("PREPARE same AS SELECT 1").await.unwrap();
    let error = other.batch_execute("PREPARE same AS SELECT 2").await.unwrap_err();
    assert_eq!(error.code().map(|state| state.code()), Some("42P05"), "{error:?}");
}

async fn connect(cluster: &Cluster, pooler: &Pgbouncer) -> Client {
    let (client, connection) = tokio_postgres::connect(&cluster.url_at(pooler.port()), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

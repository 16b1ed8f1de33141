//! The clusters of the tests themselves: what `support::cluster` promises, on each version. A fault that did not happen
//! would make every test of it pass.

use std::time::Duration;

use crate::skip_loudly;
use crate::support::cluster::{Cluster, Version, cluster_is_set_up};
use crate::support::{DEADLINE, eventually};

macro_rules! on_each_version {
    ($($name:ident;)*) => {
        mod debian_15 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::skip_loudly!(super::cluster_is_set_up(super::Version::Debian15));
                super::$name(super::Version::Debian15).await;
            })*
        }
        mod wheel_18 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::skip_loudly!(super::cluster_is_set_up(super::Version::Wheel18));
                super::$name(super::Version::Wheel18).await;
            })*
        }
    };
}

on_each_version! {
    a_cluster_is_killed_and_comes_back_with_what_was_committed;
    a_frozen_cluster_answers_nothing_until_it_thaws;
    a_promoted_standby_has_everything_that_was_acknowledged;
}

async fn a_cluster_is_killed_and_comes_back_with_what_was_committed(version: Version) {
    let mut cluster = Cluster::start_with(version, &[("fsync", "on")]).await;
    let number = if version == Version::Debian15 { "15" } else { "18" };
    assert!(cluster.value("SHOW server_version").await.starts_with(number));
    assert_eq!(cluster.value("SHOW fsync").await, "on");
    cluster.query("CREATE TABLE kept (id BIGINT PRIMARY KEY); INSERT INTO kept VALUES (1)").await;
    let open = cluster.connect().await;
    cluster.kill().await;
    assert!(open.simple_query("SELECT 1").await.is_err());
    assert!(cluster.try_connect().await.is_err());
    cluster.start_again().await;
    assert_eq!(cluster.value("SELECT count(*) FROM kept").await, "1");
    cluster.stop_immediately().await;
    cluster.start_again().await;
    assert_eq!(cluster.value("SELECT count(*) FROM kept").await, "1");
}

async fn a_frozen_cluster_answers_nothing_until_it_thaws(version: Version) {
    let cluster = Cluster::start(version).await;
    let client = cluster.connect().await;
    cluster.freeze();
    let mut asked = Box::pin(client.simple_query("SELECT 1"));
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut asked).await.is_err());
    cluster.thaw();
    tokio::time::timeout(DEADLINE, asked).await.unwrap().unwrap();
}

async fn a_promoted_standby_has_everything_that_was_acknowledged(version: Version) {
    let mut first = Cluster::start(version).await;
    first.query("CREATE TABLE kept (id BIGINT PRIMARY KEY)").await;
    let second = first.standby().await;
    first.query("INSERT INTO kept SELECT * FROM generate_series(1, 1000)").await;
    // While the standby stands, nothing is acknowledged.
    second.freeze();
    let client = first.connect().await;
    let mut written = Box::pin(client.simple_query("INSERT INTO kept VALUES (1001)"));
    assert!(tokio::time::timeout(Duration::from_millis(500), &mut written).await.is_err());
    second.thaw();
    tokio::time::timeout(DEADLINE, written).await.unwrap().unwrap();
    first.kill().await;
    second.promote().await;
    assert_eq!(second.value("SELECT count(*) FROM kept").await, "1001");
    second.query("INSERT INTO kept VALUES (1002)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_of_one_run_share_a_cluster_and_have_schemas_of_their_own() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let (first, second) = (Cluster::shared(Version::Debian15).await, Cluster::shared(Version::Debian15).await);
    assert_eq!(first.url(), second.url());
    let (one, other) = (first.schema().await, second.schema().await);
    first.query(&format!("CREATE TABLE {one}.a (id BIGINT); CREATE TABLE {other}.a (id BIGINT)")).await;
    first.drop_schema(&one).await;
    assert!(first.connect().await.simple_query(&format!("SELECT * FROM {one}.a")).await.is_err());
    assert_eq!(second.query(&format!("SELECT * FROM {other}.a")).await.len(), 0);
    first.drop_schema(&other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_ends_with_whoever_started_it() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let cluster = Cluster::start(Version::Debian15).await;
    let (port, folder) = (cluster.port(), cluster.folder().to_owned());
    // Even one that could not end by itself.
    cluster.freeze();
    drop(cluster);
    eventually("its folder is gone", DEADLINE, || !folder.exists()).await;
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

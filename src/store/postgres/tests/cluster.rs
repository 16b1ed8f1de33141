//! The clusters of the integration tests, for the tests beside the code: one of its own for each that asks.
//! Starts nothing in a way of its own.

// Each of the two needs some of it.
#![allow(dead_code, unused_imports)]

#[path = "../../../../tests/it/support/cluster/mod.rs"]
mod clusters;
#[path = "../../../../tests/it/support/process_tree.rs"]
mod process_tree;

use self::clusters::{Version, cluster_is_set_up};

/// A running cluster. Dropped: stopped at once, and gone.
pub(crate) struct Cluster(clusters::Cluster);

impl Cluster {
    /// Starts one; `None`, with a loud line, where PostgreSQL is not installed. In CI that is a failure.
    pub(crate) async fn start() -> Option<Cluster> {
        match cluster_is_set_up(Version::Debian15) {
            Ok(()) => Some(Cluster(clusters::Cluster::start(Version::Debian15).await)),
            Err(reason) => {
                let ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
                assert!(!ci, "{reason}");
                eprintln!("\n=== SKIPPED: {reason} ===\n");
                None
            }
        }
    }

    /// For its superuser, with the password.
    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    /// What nothing may show.
    pub(crate) fn password(&self) -> String {
        self.0.password().to_owned()
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port()
    }

    /// Ends as on a power cut.
    pub(super) async fn kill(&mut self) {
        self.0.kill().await;
    }

    /// Starts it again on what it had stored.
    pub(super) async fn start_again(&mut self) {
        self.0.start_again().await;
    }
}

/// Waits until every connection of the program's stores has ended: what each has counted is told by then.
pub(super) async fn connections_end(client: &tokio_postgres::Client) {
    const OPEN: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'durable-mcp'";
    let began = std::time::Instant::now();
    while client.query_typed(OPEN, &[]).await.unwrap()[0].get::<_, i64>(0) > 0 {
        assert!(began.elapsed().as_secs() < 60, "connections of a closed store stay");
        tokio::task::yield_now().await;
    }
}

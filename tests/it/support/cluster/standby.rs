//! A second server that follows the first, and takes its place. Which clients go where is their business.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Cluster, DEADLINE, STARTED, Until, run, watch};

impl Cluster {
    /// A synchronous standby of this cluster, caught up: from now on nothing is committed here that is not there.
    pub async fn standby(&self) -> Cluster {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = self.home.folder(&format!("cluster-{}-{number}-standby", std::process::id()));
        let folder = folder.unwrap_or_else(|error| panic!("{error}"));
        let watcher = watch(&folder, Until::Dropped);
        let mut copy = self.home.command("pg_basebackup");
        copy.args(["--host=127.0.0.1", &format!("--port={}", self.port), "--username=postgres", "--no-password"]);
        copy.args(["--wal-method=stream", "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]);
        copy.arg("--pgdata").arg(folder.join("data")).env("PGPASSWORD", &self.password);
        tokio::task::spawn_blocking(move || run(&mut copy)).await.unwrap().unwrap_or_else(|error| panic!("{error}"));
        let mut standby = Cluster {
            home: self.home.clone(),
            folder,
            port: 0,
            password: self.password.clone(),
            settings: self.settings.clone(),
            server: None,
            watcher: Some(watcher),
        };
        standby.start_on_a_free_port().await;
        self.query("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
        self.query("SELECT pg_reload_conf()").await;
        let synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'";
        self.wait_for(synchronous, "1").await;
        standby
    }

    /// Takes writes from now on, waiting for nobody.
    pub async fn promote(&self) {
        // What the first server said of its standby came with its files.
        let own = fs::read_to_string(self.data().join("postgresql.auto.conf")).unwrap_or_default();
        if own.contains("synchronous_standby_names") {
            self.query("ALTER SYSTEM RESET synchronous_standby_names").await;
            self.query("SELECT pg_reload_conf()").await;
        }
        self.query("SELECT pg_promote(true, 30)").await;
        self.wait_for("SELECT pg_is_in_recovery()", "f").await;
    }

    /// Asks until the server answers so.
    pub async fn wait_for(&self, sql: &str, answer: &str) {
        let end = Instant::now() + DEADLINE;
        while self.value(sql).await != answer {
            assert!(Instant::now() < end, "{sql} is not {answer}:\n{}", self.log());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

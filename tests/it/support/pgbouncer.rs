//! A pooler in transaction mode before a cluster: `pgbouncer` of the system, as the user that clusters run as. Ends with its
//! test. Says what is missing; installs nothing.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::cluster::{Cluster, Until, Watcher, free_port, run, watch};
use super::{DEADLINE, eventually_async};

static STARTED: AtomicU32 = AtomicU32::new(0);

/// The pooler of the system, or what is missing.
pub fn pgbouncer_is_set_up() -> Result<PathBuf, String> {
    let places =
        ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"];
    let found = places.iter().map(Path::new).find(|place| place.exists()).map(Path::to_owned);
    found.ok_or_else(|| "pgbouncer is missing: run tests/setup.sh as root, or install it".to_owned())
}

/// A running pooler.
pub struct Pgbouncer {
    port: u16,
    folder: PathBuf,
    _watcher: Watcher,
}

impl Pgbouncer {
    /// Before this cluster, for its superuser; `size` connections to the server.
    pub async fn start(cluster: &Cluster, size: usize) -> Pgbouncer {
        let program = pgbouncer_is_set_up().unwrap_or_else(|error| panic!("{error}"));
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let home = cluster.home();
        let folder = home.folder(&format!("pooler-{}-{number}", std::process::id()));
        let folder = folder.unwrap_or_else(|error| panic!("{error}"));
        let watcher = watch(&folder, Until::Dropped);
        let port = free_port();
        let (users, log, file) = (folder.join("users"), folder.join("log"), folder.join("pgbouncer.ini"));
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = plain\nauth_file = {}\npool_mode = transaction\nmax_client_conn = 400\n\
             default_pool_size = {size}\nlogfile = {}\nquery_wait_timeout = 30\n",
            cluster.port(),
            users.display(),
            log.display(),
        );
        fs::write(&users, format!("\"postgres\" \"{}\"\n", cluster.password())).unwrap();
        fs::write(&file, settings).unwrap();
        // The folder is for the servers' user only; what root wrote into it has to be readable there.
        run(Command::new("chmod").arg("0644").args([&users, &file])).unwrap();
        let mut pooler = home.foreign_command(&program);
        pooler.arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = pooler.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        fs::write(folder.join("pid"), child.id().to_string()).unwrap();
        std::thread::spawn(move || child.wait());
        let pooler = Pgbouncer { port, folder, _watcher: watcher };
        eventually_async("the pooler takes connections", DEADLINE, async || {
            let url = cluster.url_at(port);
            match tokio_postgres::connect(&url, tokio_postgres::NoTls).await {
                Ok((client, connection)) => {
                    tokio::spawn(connection);
                    client.simple_query("SELECT 1").await.is_ok()
                }
                Err(_) => false,
            }
        })
        .await;
        pooler
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it has said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

//! PostgreSQL clusters for tests, of Debian's version and of the newest one: on loopback, on a free port, each a copy of a
//! fresh data folder. A cluster ends with its test, whatever ends the test. Knows nothing of the program; needs nothing
//! else of `support` but `process_tree`, so that unit tests can use it too.

// Unit tests and integration tests use different parts.
#![allow(dead_code)]

mod home;
mod ports;
mod standby;
mod watcher;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

pub use self::home::{Home, run};
pub use self::ports::free_port;
pub use self::watcher::{Until, Watcher, watch};

/// How long a server may take to come up or to end.
const DEADLINE: Duration = Duration::from_secs(30);

/// Numbers the clusters of this process.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// Which PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// Debian's package; it sorts texts by language.
    Debian15,
    /// The wheel that `tests/setup.sh` installs.
    Wheel18,
}

/// Says what is missing before clusters of this version can be started.
pub fn cluster_is_set_up(version: Version) -> Result<(), String> {
    Home::find(version).map(drop)
}

/// A running (or stopped) server with its data.
pub struct Cluster {
    home: Home,
    folder: PathBuf,
    port: u16,
    password: String,
    settings: Vec<(String, String)>,
    /// The server's process; of a shared cluster only the port is known.
    server: Option<Server>,
    watcher: Option<Watcher>,
}

struct Server {
    pid: Pid,
    /// Turns true when the process has ended.
    ended: watch::Receiver<bool>,
}

/// Settings of every cluster: nothing survives a power cut, and nothing has to.
const QUICK: [(&str, &str); 9] = [
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("max_connections", "250"),
    ("shared_buffers", "64MB"),
    ("max_wal_size", "256MB"),
    ("log_line_prefix", "%m %p %a "),
    ("lc_messages", "C"),
];

impl Cluster {
    /// A cluster of its own.
    pub async fn start(version: Version) -> Cluster {
        Cluster::start_with(version, &[]).await
    }

    /// A cluster of its own with these settings of `postgresql.conf`, such as `("fsync", "on")`.
    pub async fn start_with(version: Version, settings: &[(&str, &str)]) -> Cluster {
        let home = Home::find(version).unwrap_or_else(|error| panic!("{error}"));
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = home.folder(&format!("cluster-{}-{number}-{:?}", std::process::id(), version));
        let folder = folder.unwrap_or_else(|error| panic!("{error}"));
        let watcher = watch(&folder, Until::Dropped);
        let password = home.copy_fresh(&folder.join("data")).unwrap_or_else(|error| panic!("{error}"));
        let mut cluster = Cluster {
            home,
            folder,
            port: 0,
            password,
            settings: owned(settings),
            server: None,
            watcher: Some(watcher),
        };
        cluster.start_on_a_free_port().await;
        cluster
    }

    /// The cluster that all tests of one run share, started by the first of them and ended with the run. It can not be
    /// stopped. Use a [`Cluster::schema`] of your own in it.
    pub async fn shared(version: Version) -> Cluster {
        let home = Home::find(version).unwrap_or_else(|error| panic!("{error}"));
        let (run, runner) = run_of_this_process();
        let name = format!("shared-{run}-{version:?}");
        // Others wait here until it is up.
        let _starting = {
            let (home, name) = (home.clone(), name.clone());
            tokio::task::spawn_blocking(move || home.lock(&name))
                .await
                .unwrap()
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let folder = home.root().join(&name);
        let known = fs::read_to_string(folder.join("address")).ok();
        if let Some((port, password)) = known.as_deref().and_then(|text| text.split_once(' ')) {
            let (port, password) = (port.parse().expect("a port"), password.to_owned());
            return Cluster { home, folder, port, password, settings: Vec::new(), server: None, watcher: None };
        }
        let _ = fs::remove_dir_all(&folder);
        let folder = home.folder(&name).unwrap_or_else(|error| panic!("{error}"));
        let watcher = watch(&folder, Until::Gone(runner));
        let password = home.copy_fresh(&folder.join("data")).unwrap_or_else(|error| panic!("{error}"));
        let mut cluster =
            Cluster { home, folder, port: 0, password, settings: Vec::new(), server: None, watcher: Some(watcher) };
        cluster.start_on_a_free_port().await;
        let address = format!("{} {}", cluster.port, cluster.password);
        fs::write(cluster.folder.join("address"), address).unwrap();
        cluster
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The password of the superuser `postgres`.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// What a client is told: superuser and database `postgres`.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The same by way of another port, such as that of a proxy.
    pub fn url_at(&self, port: u16) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{port}/postgres", self.password)
    }

    /// Its data, log and notes; removed when it ends.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// What the server has said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// A connection.
    pub async fn connect(&self) -> Client {
        self.try_connect().await.unwrap_or_else(|error| panic!("{error:?}\n{}", self.log()))
    }

    pub async fn try_connect(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Runs statements on a connection of their own; the rows of all of them as texts.
    pub async fn query(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let messages = self.connect().await.simple_query(sql).await;
        let messages = messages.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        rows.map(|row| (0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect()).collect()
    }

    /// The one value that a statement answers.
    pub async fn value(&self, sql: &str) -> String {
        let rows = self.query(sql).await;
        rows.first().and_then(|row| row.first()).cloned().flatten().unwrap_or_else(|| panic!("{sql}: {rows:?}"))
    }

    /// Makes a schema that no other test knows.
    pub async fn schema(&self) -> String {
        let name = format!("test_{}_{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        self.query(&format!("CREATE SCHEMA {name}")).await;
        name
    }

    /// Makes a database that no other test knows; its URL. It goes with the cluster.
    pub async fn database(&self) -> String {
        let name = format!("test_{}_{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        self.query(&format!("CREATE DATABASE {name}")).await;
        format!("postgres://postgres:{}@127.0.0.1:{}/{name}", self.password, self.port)
    }

    /// Ends a schema with everything in it.
    pub async fn drop_schema(&self, name: &str) {
        self.query(&format!("DROP SCHEMA {name} CASCADE")).await;
    }

    /// Ends as on a power cut of the machine: every process at once, by `kill -9`.
    pub async fn kill(&mut self) {
        let server = self.server.take().expect("a cluster of its own that runs");
        let pid = server.pid.as_raw_nonzero().get() as u32;
        // Backends would see a dead postmaster only after a while.
        let mut pids = super::process_tree::descendants(pid);
        pids.insert(0, pid);
        signal_all(&pids, Signal::KILL);
        server.wait().await;
        super::process_tree::wait_gone(&pids, DEADLINE).await;
        let _ = fs::remove_file(self.folder.join("frozen"));
    }

    /// Ends without a checkpoint; every connection is told.
    pub async fn stop_immediately(&mut self) {
        self.stop_by(Signal::QUIT).await;
    }

    /// Ends in order, without waiting for clients.
    pub async fn stop(&mut self) {
        self.stop_by(Signal::INT).await;
    }

    async fn stop_by(&mut self, signal: Signal) {
        let server = self.server.take().expect("a cluster of its own that runs");
        kill_process(server.pid, signal).unwrap();
        server.wait().await;
    }

    /// Starts it again after `kill` or `stop`, on the same port and data.
    pub async fn start_again(&mut self) {
        assert!(self.server.is_none(), "it runs");
        self.launch().await.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Stands still: connections stay open, and nothing is answered (SIGSTOP to all its processes).
    pub fn freeze(&self) {
        let server = self.server.as_ref().expect("a cluster of its own that runs");
        let pid = server.pid.as_raw_nonzero().get() as u32;
        // The parent first: it starts no more.
        signal_all(&[pid], Signal::STOP);
        let mut pids = super::process_tree::descendants(pid);
        signal_all(&pids, Signal::STOP);
        pids.insert(0, pid);
        let text = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        fs::write(self.folder.join("frozen"), text).unwrap();
    }

    /// Goes on after `freeze`.
    pub fn thaw(&self) {
        let path = self.folder.join("frozen");
        let text = fs::read_to_string(&path).expect("it is frozen");
        let pids: Vec<u32> = text.split(' ').map(|pid| pid.parse().unwrap()).collect();
        signal_all(&pids, Signal::CONT);
        fs::remove_file(path).unwrap();
    }

    async fn start_on_a_free_port(&mut self) {
        self.port = free_port();
        self.launch().await.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Starts the process and waits until it takes connections.
    async fn launch(&mut self) -> Result<(), String> {
        let mut postgres = self.home.command("postgres");
        postgres.arg("-D").arg(self.folder.join("data")).args(["-p", &self.port.to_string()]);
        let settings = QUICK.iter().map(|(name, value)| (*name, *value));
        for (name, value) in settings.chain(self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()))) {
            postgres.arg("-c").arg(format!("{name}={value}"));
        }
        let log = fs::File::create(self.folder.join("log")).map_err(|error| error.to_string())?;
        postgres.stdout(log.try_clone().unwrap()).stderr(log).process_group(0);
        let server = Server::start(postgres, &self.folder)?;
        let end = Instant::now() + DEADLINE;
        loop {
            if *server.ended.borrow() {
                return Err(self.log());
            }
            if self.takes_connections().await {
                self.server = Some(server);
                return Ok(());
            }
            assert!(Instant::now() < end, "it takes no connections:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn takes_connections(&self) -> bool {
        match self.try_connect().await {
            Ok(client) => client.simple_query("SELECT 1").await.is_ok(),
            Err(_) => false,
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

impl Server {
    /// Starts a process whose number stands in `folder` while it lives, for the watcher.
    fn start(mut command: std::process::Command, folder: &Path) -> Result<Server, String> {
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let number = child.id();
        let note = folder.join("pid");
        fs::write(&note, number.to_string()).map_err(|error| error.to_string())?;
        let (tell, ended) = watch::channel(false);
        // Waits in a thread, so that it never stays as a zombie that looks alive.
        std::thread::spawn(move || {
            let _ = child.wait();
            let _ = fs::remove_file(note);
            let _ = tell.send(true);
        });
        Ok(Server { pid: Pid::from_raw(number as i32).expect("a pid is not 0"), ended })
    }

    async fn wait(mut self) {
        let ended = tokio::time::timeout(DEADLINE, self.ended.wait_for(|ended| *ended)).await;
        drop(ended.expect("the server ends"));
    }
}

/// The run that this process belongs to, and the process that lives as long as the run.
fn run_of_this_process() -> (String, u32) {
    match (std::env::var("NEXTEST_RUN_ID"), rustix::process::getppid()) {
        (Ok(run), Some(parent)) => (run, parent.as_raw_nonzero().get() as u32),
        // `cargo test` runs all tests of a binary in one process.
        _ => (std::process::id().to_string(), std::process::id()),
    }
}

/// A loopback port that nobody listens on.
fn owned(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn signal_all(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid as i32)) {
        // Gone already is as good.
        let _ = kill_process(pid, signal);
    }
}

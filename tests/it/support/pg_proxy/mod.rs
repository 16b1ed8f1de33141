//! A proxy between a PostgreSQL client and its server that understands their messages: it delays, cuts, stops, drips, fails
//! statements, drops commits or their answers, and can refuse what CockroachDB refuses. Without a fault it changes no
//! byte. Speaks no TLS.

mod cockroach;
mod frames;
mod link;
mod plan;
mod statements;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::cockroach::VERSION as COCKROACH_VERSION;
pub use self::plan::{AMBIGUOUS, Fault, Spot};

/// The running proxy; clones are the same one. Ends with the test's runtime.
#[derive(Clone)]
pub struct PgProxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    plan: Mutex<plan::Plan>,
    /// How the bytes flow; changes are seen by open connections.
    flow: watch::Sender<Flow>,
    /// Cuts every connection that is open.
    cut: Mutex<CancellationToken>,
    connections: AtomicU64,
    seed: AtomicU64,
}

/// How bytes flow.
#[derive(Clone, Debug)]
struct Flow {
    server_port: u16,
    delay: Duration,
    drips: bool,
    stands: bool,
    refuses: bool,
    is_cockroach: bool,
}

impl PgProxy {
    /// Listens on a free port, in front of the server at this one.
    pub async fn start(server_port: u16) -> PgProxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let flow = Flow {
            server_port,
            delay: Duration::ZERO,
            drips: false,
            stands: false,
            refuses: false,
            is_cockroach: false,
        };
        let shared = Arc::new(Shared {
            plan: Mutex::default(),
            flow: watch::Sender::new(flow),
            cut: Mutex::default(),
            connections: AtomicU64::new(0),
            seed: AtomicU64::new(1),
        });
        let proxy = PgProxy { port, shared: shared.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = shared.connections.fetch_add(1, Ordering::Relaxed);
                if shared.flow.borrow().refuses {
                    continue;
                }
                let (shared, cut) = (shared.clone(), shared.cut.lock().unwrap().child_token());
                tokio::spawn(async move {
                    let server_port = shared.flow.borrow().server_port;
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await {
                        link::run(client, server, number, shared, cut).await;
                    }
                });
            }
        });
        proxy
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connections so far, refused ones included.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Where new connections go from now on.
    pub fn point_to(&self, server_port: u16) {
        self.flow(|flow| flow.server_port = server_port);
    }

    /// Each message of either side comes so much later.
    pub fn delay(&self, delay: Duration) {
        self.flow(|flow| flow.delay = delay);
    }

    /// Every byte in a packet of its own.
    pub fn one_byte_at_a_time(&self, drips: bool) {
        self.flow(|flow| flow.drips = drips);
    }

    /// Reads nothing more from either side until told otherwise; connections stay open.
    pub fn stop_reading(&self, stands: bool) {
        self.flow(|flow| flow.stands = stands);
    }

    /// New connections are closed at once.
    pub fn refuse(&self, refuses: bool) {
        self.flow(|flow| flow.refuses = refuses);
    }

    /// Cuts every open connection.
    pub fn cut_all(&self) {
        std::mem::take(&mut *self.shared.cut.lock().unwrap()).cancel();
    }

    /// From now on it looks like CockroachDB: no LISTEN, no DISCARD ALL, locks that lie, another `version()`.
    pub fn be_cockroach(&self) {
        self.flow(|flow| flow.is_cockroach = true);
    }

    /// This fault at the next such spot.
    pub fn at(&self, spot: Spot, fault: Fault) {
        self.at_times(spot, fault, 1);
    }

    /// This fault at the next so many such spots.
    pub fn at_times(&self, spot: Spot, fault: Fault, times: usize) {
        self.plan().choose(spot, fault, times);
    }

    /// Of 100 transactions of new connections, so many fail once with 40001, at a statement or at their COMMIT.
    pub fn fail_serialization(&self, seed: u64, percent: u64) {
        self.shared.seed.store(seed, Ordering::Relaxed);
        self.plan().randomly(percent);
    }

    /// The first commit of each kind of transaction and every so-manieth after it are ambiguous, in each way in turn.
    pub fn make_commits_ambiguous(&self, every: u64) {
        self.plan().ambiguously(every);
    }

    /// No fault of a statement any more, and bytes flow.
    pub fn heal(&self) {
        self.plan().heal();
        self.flow(|flow| {
            (flow.delay, flow.drips, flow.stands, flow.refuses) = (Duration::ZERO, false, false, false);
        });
    }

    /// How often this fault came.
    pub fn fired(&self, fault: Fault) -> usize {
        self.plan().fired(fault)
    }

    /// Chosen faults that have not come yet.
    pub fn pending(&self) -> usize {
        self.plan().pending()
    }

    /// Commits by what they wrote, such as `INSERT EXECUTIONS, UPDATE EXECUTIONS`.
    pub fn commits(&self) -> BTreeMap<String, u64> {
        self.plan().commits().clone()
    }

    fn plan(&self) -> std::sync::MutexGuard<'_, plan::Plan> {
        self.shared.plan.lock().unwrap()
    }

    fn flow(&self, change: impl FnOnce(&mut Flow)) {
        self.shared.flow.send_modify(change);
    }
}

//! The places that the cells of the matrix need: one server of a revision, `serve` in front of it, or two on one database,
//! and for each client of each revision its seat, with what the server's ledger says. Asserts nothing about the program.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::process::Child;
use tokio::sync::watch;

use crate::matrix_client::Client;
use crate::support::client::Target;
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup, server_table};
use crate::support::servers::{Server, kit_http, kit_stdio};
use crate::support::stores::{self, On};
use crate::support::{DEADLINE, eventually, eventually_async, program_binary};

/// One tool stops when its caller has gone; the others keep the default.
const POLICY: &str = "on_disconnect = \"cancel\"\n";
const HEAD: &str = "[server]\njson_within = \"50ms\"\nsse_path = \"/sse\"\n[worker]\nslots = 256\n";

/// One server, and `serve` in front of it.
pub struct Scene {
    kit: Target,
    /// Keeps a server over HTTP alive.
    _running: Option<Server>,
    serve: Program,
    /// Another one on the same store: whoever returns comes here.
    other: Option<Program>,
    runs: Runs,
    folder: Setup,
}

impl Scene {
    /// With one `serve` on a file, or two on a database.
    pub async fn start(upstream: &str, over: &str, on: On) -> Scene {
        let folder = Setup::new("").on(on).await;
        let ledger = Ledger::in_folder(folder.folder());
        let flags = match upstream {
            "2026-07-28" => vec!["--era", "modern", "--ledger", ledger.path()],
            revision => vec!["--era", "legacy", "--revision", revision, "--ledger", ledger.path()],
        };
        let (kit, running) = match over {
            "stdio" => (kit_stdio(&flags), None),
            "http" => {
                let running = kit_http(&flags).await;
                (running.target.clone(), Some(running))
            }
            other => panic!("no transport {other}"),
        };
        let shared =
            server_table("kit", &kit, &format!("concurrency = 256\n[servers.kit.tools.slow_structured]\n{POLICY}"));
        let own = server_table("own", &kit, "isolation = \"session\"\n").replace("prefix = \"\"\n", "");
        // How long a database may take is no matter of the matrix.
        let patience = match on {
            On::Sqlite => "",
            On::Postgres => "[store]\nanswer_deadline = \"20s\"\ncommit_deadline = \"10s\"\n",
        };
        let setup = folder.clone().config(&format!("{patience}{HEAD}{shared}{own}"));
        let serve = setup.serve().await;
        let other = match on {
            On::Sqlite => None,
            On::Postgres => Some(setup.serve().await),
        };
        let runs = Runs::watch(ledger.path());
        Scene { kit, _running: running, serve, other, runs, folder }
    }

    /// A client of this revision, on its way to the program.
    pub async fn seat(&self, revision: &'static str, by: &'static str) -> Seat<'_> {
        let wrapped = (by == "wrap").then(|| {
            let table = format!("concurrency = 256\n[servers.wrapped.tools.slow_structured]\n{POLICY}");
            Setup::new(&format!("[worker]\nslots = 256\n{}", server_table("wrapped", &self.kit, &table)))
        });
        let client = self.client(revision, by, (&self.serve, wrapped.as_ref())).await;
        let returned = match (&self.other, by) {
            (Some(other), "serve") => Some(client.elsewhere(other.url())),
            _ => None,
        };
        Seat { scene: self, client, returned, by, wrapped }
    }

    async fn client(&self, revision: &'static str, by: &str, (serve, wrapped): (&Program, Option<&Setup>)) -> Client {
        match (by, wrapped) {
            ("serve", _) => Client::http(serve.url(), revision).await,
            ("sse", _) => Client::pair(&serve.at("/sse"), revision).await,
            ("wrap", Some(setup)) => Client::pipe(&setup.wrap(&self.kit), revision).await,
            ("connect", _) => {
                let argv = [program_binary().to_str().unwrap(), "connect", "--url", serve.url()].map(str::to_owned);
                Client::pipe(&Target::command(argv), revision).await
            }
            (other, _) => panic!("no way {other}"),
        }
    }

    /// Checks every execution of the store of `serve`.
    pub async fn check_store(&self) {
        self.serve.check_store().await;
    }
}

/// A client and what it can find out.
pub struct Seat<'s> {
    scene: &'s Scene,
    pub client: Client,
    /// The same client at the other server.
    returned: Option<Client>,
    by: &'static str,
    /// The folder and store of its `wrap`.
    wrapped: Option<Setup>,
}

impl Seat<'_> {
    /// A second client of the same kind, on the same store, at the other server where there is one.
    pub async fn another(&self) -> Client {
        let serve = self.scene.other.as_ref().unwrap_or(&self.scene.serve);
        self.scene.client(self.client.revision, self.by, (serve, self.wrapped.as_ref())).await
    }

    /// The client where it comes back: at the other server, where there is one.
    pub fn returned(&self) -> &Client {
        self.returned.as_ref().unwrap_or(&self.client)
    }

    /// The file that lets a run end.
    pub fn gate(&self, name: &str) -> PathBuf {
        self.scene.folder.folder().join(format!("gate {name}"))
    }

    pub fn open_gate(&self, name: &str) {
        std::fs::write(self.gate(name), "").unwrap();
    }

    /// Waits until the run has started; the id of its execution.
    pub async fn started(&self, name: &str) -> String {
        let start = self.scene.runs.until(&format!("start {name} key=")).await;
        let key = start.split(" key=").nth(1).and_then(|rest| rest.split(' ').next());
        key.expect("a start has a key").to_owned()
    }

    /// Waits until the tool was told to stop.
    pub async fn cancelled(&self, name: &str) {
        self.scene.runs.until(&format!("cancelled {name}")).await;
    }

    pub fn starts(&self, name: &str) -> usize {
        self.scene.runs.count(&format!("start {name} key="))
    }

    pub fn ends(&self, how: &str, name: &str) -> usize {
        self.scene.runs.count(&format!("{how} {name}"))
    }

    /// Waits until the store says that nobody waits for the execution any more.
    pub async fn nobody_waits(&self, execution: &str) {
        let url = self.wrapped.as_ref().unwrap_or(&self.scene.serve.setup).store_url();
        eventually_async(&format!("nobody waits for {execution}"), DEADLINE, async || {
            waiters(&url, execution).await == Some(0)
        })
        .await;
    }

    /// Ends the client; a `wrap` leaves a store that is whole.
    pub async fn leave(self) {
        let dying: Option<Child> = self.client.die();
        drop(dying);
        if let Some(setup) = self.wrapped {
            setup.check_store().await;
        }
    }
}

async fn waiters(url: &str, execution: &str) -> Option<i64> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let connection = rusqlite::Connection::open(path).ok()?;
        let waits = "SELECT waiter IS NOT NULL FROM executions WHERE id = ?1";
        // A store that is being written says so, and is asked again.
        return connection.query_row(waits, [execution], |row| row.get(0)).ok();
    }
    let waits = format!("SELECT (waiter IS NOT NULL)::INT::BIGINT FROM executions WHERE id = '{execution}'");
    stores::number(url, &waits).await
}

/// What the ledger says, read by one reader for all who wait for a line.
struct Runs {
    path: PathBuf,
    lines: Arc<Mutex<Vec<String>>>,
    news: watch::Receiver<usize>,
    reader: tokio::task::JoinHandle<()>,
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Runs {
    fn watch(path: &str) -> Runs {
        let path = PathBuf::from(path);
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (told, news) = watch::channel(0);
        let (file, known) = (path.clone(), lines.clone());
        let reader = tokio::spawn(async move {
            let mut read = 0;
            loop {
                // The scene ends it; a minute without any line is a test that hangs elsewhere.
                eventually("another line in the ledger", DEADLINE * 10, || length(&file) > read).await;
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                let whole = text.rfind('\n').map_or(0, |end| end + 1);
                let mut known = known.lock().unwrap();
                *known = text[..whole].lines().map(str::to_owned).collect();
                read = whole as u64;
                told.send_replace(known.len());
            }
        });
        Runs { path, lines, news, reader }
    }

    /// Waits for a line that begins so.
    async fn until(&self, head: &str) -> String {
        let mut news = self.news.clone();
        let found = async {
            loop {
                news.borrow_and_update();
                if let Some(line) = self.lines.lock().unwrap().iter().find(|line| line.starts_with(head)) {
                    return line.clone();
                }
                news.changed().await.expect("the reader of the ledger goes on");
            }
        };
        let found = tokio::time::timeout(DEADLINE, found).await;
        found.unwrap_or_else(|_| panic!("no line {head:?} in the ledger for {DEADLINE:?}"))
    }

    /// Lines that begin so, now.
    fn count(&self, head: &str) -> usize {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(head)).count()
    }
}

fn length(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |found| found.len())
}

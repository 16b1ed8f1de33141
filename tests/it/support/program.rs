//! The program itself: `serve` as a running process on a port of its own, `wrap` as the command line that a client
//! starts, both with a configuration text and a data folder that survive a kill and a restart. Ends only the process it
//! started; what the store says about it is in `store_check`.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use super::client::{Place, Target};
use super::cluster::free_port;
use super::process::Process;
use super::raw_http::Request;
use super::stores::On;
use super::{DEADLINE, eventually_async, program_binary, scratch, store_check};

/// The name of the store of every `wrap` here.
const WRAP_NAME: &str = "wrapped";

/// How the program is started: its configuration, flags, environment and folder. Clones share the folder.
#[derive(Clone)]
pub struct Setup {
    config: String,
    flags: Vec<String>,
    env: Vec<(String, String)>,
    folder: Arc<TempDir>,
    /// Where the store is, unless it is a file in the data folder.
    database: Option<String>,
}

impl Setup {
    /// This configuration (TOML), in a folder of its own.
    pub fn new(config: &str) -> Setup {
        Setup {
            config: config.to_owned(),
            flags: Vec::new(),
            env: Vec::new(),
            folder: Arc::new(scratch()),
            database: None,
        }
    }

    /// With this configuration instead; folder and store stay.
    pub fn config(self, config: &str) -> Setup {
        Setup { config: config.to_owned(), ..self }
    }

    /// With one more flag of `serve` or `wrap`, such as `--demo`.
    pub fn flag(mut self, flag: &str) -> Setup {
        self.flags.push(flag.to_owned());
        self
    }

    /// With a variable set, whatever it was before; an empty value takes it away.
    pub fn env(mut self, name: &str, value: &str) -> Setup {
        self.env.retain(|(set, _)| set != name);
        if !value.is_empty() {
            self.env.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// With this kind of store, new and of its own.
    pub async fn on(self, on: On) -> Setup {
        match on.new_database().await {
            Some(url) => self.stored_at(&url),
            None => self,
        }
    }

    /// With the store at this URL.
    pub fn stored_at(self, url: &str) -> Setup {
        Setup { database: Some(url.to_owned()), ..self.env("DURABLE_MCP_STORE_URL", url) }
    }

    /// The process kills itself at this crash point (`name` or `name:n`); empty: nowhere.
    pub fn crash_at(self, point: &str) -> Setup {
        self.env("DURABLE_MCP_CRASH_AT", point)
    }

    /// Holds configuration, data and whatever else a test puts there; removed with the last clone.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// The database of `serve`.
    pub fn serve_db(&self) -> PathBuf {
        self.data_dir().join("durable-mcp.db")
    }

    /// The database of `wrap`.
    pub fn wrap_db(&self) -> PathBuf {
        self.data_dir().join("wrap").join(format!("{WRAP_NAME}.db"))
    }

    /// The URL of the store that this setup has used so far: that of `serve`, else that of `wrap`.
    pub fn store_url(&self) -> String {
        if let Some(url) = &self.database {
            return url.clone();
        }
        let path = if self.serve_db().exists() { self.serve_db() } else { self.wrap_db() };
        format!("sqlite:{}", path.display())
    }

    /// `serve` on a free port, ready: it said its address and `/readyz` answers 200.
    pub async fn serve(&self) -> Program {
        let program = self.serve_on(0).await;
        program.ready().await;
        program
    }

    /// `serve` on this port (0: one that stays this test's own), listening, perhaps not ready.
    pub async fn serve_on(&self, port: u16) -> Program {
        let process = self.start_serve(if port == 0 { free_port() } else { port });
        let line = process.line_with("listens on ").await;
        let url = line.split("listens on ").last().unwrap_or_default().trim().to_owned();
        let authority = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let port = authority.rsplit(':').next().and_then(|port| port.parse().ok()).expect("an address with a port");
        Program { setup: self.clone(), process, url, port }
    }

    /// `serve` as a bare process, for starts that fail.
    pub fn start_serve(&self, port: u16) -> Process {
        let mut command = self.command(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
        command.args(&self.flags);
        Process::start_command(command)
    }

    /// The command line `wrap -- SERVER`, or `wrap --url SERVER`, for a client (or `RawStdio`) to start.
    pub fn wrap(&self, server: &Target) -> Target {
        let config = self.write_config();
        let program = program_binary();
        let mut argv = vec![program.to_str().unwrap().to_owned()];
        argv.extend(["wrap", "--name", WRAP_NAME, "--config", &config].map(str::to_owned));
        argv.extend(self.flags.iter().cloned());
        match &server.place {
            Place::Url(url) => {
                argv.extend(["--url".to_owned(), url.clone()]);
                argv.extend(
                    server.headers.iter().flat_map(|(name, value)| ["--header".to_owned(), format!("{name}: {value}")]),
                );
            }
            Place::Command(command) => argv.extend(std::iter::once("--".to_owned()).chain(command.iter().cloned())),
        }
        let env = self.all_env().chain(server.env.clone());
        env.fold(Target::command(argv), |target, (name, value)| target.env(&name, &value))
    }

    /// A short command (`executions list`, `config show`, …) with the same configuration, data folder and environment.
    pub async fn cli(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Ran { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// A command that goes on until it is stopped, as a process.
    pub fn start(&self, arguments: &[&str]) -> Process {
        Process::start_command(self.command(arguments))
    }

    /// The program with this command, told where everything is. Nothing of this process's own `DURABLE_MCP_…` reaches it.
    fn command(&self, arguments: &[&str]) -> Command {
        let config = self.write_config();
        let mut command = Command::new(program_binary());
        command.args(arguments).kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("DURABLE_MCP_")) {
                command.env_remove(name);
            }
        }
        command.env("DURABLE_MCP_CONFIG", config).envs(self.all_env());
        command
    }

    fn all_env(&self) -> impl Iterator<Item = (String, String)> {
        let data_dir = ("DURABLE_MCP_DATA_DIR".to_owned(), self.data_dir().to_str().unwrap().to_owned());
        std::iter::once(data_dir).chain(self.env.clone())
    }

    fn write_config(&self) -> String {
        let path = self.folder().join("durable-mcp.toml");
        // Another process of the same setup may be reading it: it must never be seen half written.
        let fresh = tempfile::NamedTempFile::new_in(self.folder()).unwrap();
        std::fs::write(fresh.path(), &self.config).unwrap();
        fresh.persist(&path).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// All executions as `executions list --json` shows them, newest first.
    pub async fn executions(&self) -> Vec<Value> {
        self.json_lines(&["executions", "list", "--json", "--store", &self.store_url()]).await
    }

    /// The events of an execution as `executions events --json` shows them, in order.
    pub async fn events(&self, id: &str) -> Vec<Value> {
        self.json_lines(&["executions", "events", id, "--json", "--store", &self.store_url()]).await
    }

    async fn json_lines(&self, arguments: &[&str]) -> Vec<Value> {
        let ran = self.cli(arguments).await;
        assert!(ran.status.success(), "{arguments:?}: {}", ran.stderr);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Checks every execution of the store: see `store_check`. Works whether or not a process has it open.
    pub async fn check_store(&self) -> store_check::Checked {
        store_check::check(&self.store_url()).await
    }
}

/// What a short command said.
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// A running `serve`. Dropped: killed.
pub struct Program {
    pub setup: Setup,
    pub process: Process,
    url: String,
    port: u16,
}

impl Program {
    /// The MCP endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Another path of the same listener, such as `/readyz`.
    pub fn at(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn target(&self) -> Target {
        Target::url(self.url.clone())
    }

    pub fn stderr(&self) -> String {
        self.process.stderr()
    }

    /// The status of `/readyz`.
    pub async fn readyz(&self) -> u16 {
        let url = self.at("/readyz");
        Request::new("GET", &url).exchange(&url).await.status
    }

    /// Waits for `/readyz` to say 200.
    pub async fn ready(&self) {
        eventually_async("/readyz says 200", DEADLINE, async || self.readyz().await == 200).await;
    }

    /// Stops it (SIGSTOP) while it holds no lock on its database: a process that stands in the middle of a commit would
    /// hold up all others that share the file. Who has the write lock meanwhile is the test.
    pub async fn stop_outside_of_transactions(&self) {
        let database = rusqlite::Connection::open(self.setup.serve_db()).unwrap();
        database.busy_timeout(DEADLINE).unwrap();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        self.process.stop().await;
        database.execute_batch("ROLLBACK").unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Memory in use by the process itself, in KiB.
    pub fn resident_kib(&self) -> i64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub async fn kill_9(&mut self) {
        self.process.kill().await;
    }

    /// Asks it to end and waits until it has.
    pub async fn sigterm(&mut self) -> ExitStatus {
        self.process.signal(Signal::TERM);
        self.process.exit(DEADLINE).await
    }

    /// Waits until it died by itself, as at a crash point.
    pub async fn died(&mut self) -> ExitStatus {
        self.process.exit(DEADLINE).await
    }

    /// Kills it if it still runs, and starts it again on the same store and port, ready.
    pub async fn restart(self) -> Program {
        let setup = self.setup.clone();
        self.restart_as(&setup).await
    }

    /// As `restart`, with a setup that differs in flags, environment or configuration.
    pub async fn restart_as(mut self, setup: &Setup) -> Program {
        if self.process.is_running() {
            self.kill_9().await;
        }
        let program = setup.serve_on(self.port).await;
        program.ready().await;
        program
    }

    pub async fn executions(&self) -> Vec<Value> {
        self.setup.executions().await
    }

    pub async fn events(&self, id: &str) -> Vec<Value> {
        self.setup.events(id).await
    }

    pub async fn check_store(&self) -> store_check::Checked {
        self.setup.check_store().await
    }
}

/// The `[servers.NAME]` table for a stdio or HTTP server, tools under their own names; `more` are further lines of it.
pub fn server_table(name: &str, server: &Target, more: &str) -> String {
    // A TOML basic string of plain text is written as a JSON string is.
    let text = |text: &str| serde_json::to_string(text).unwrap();
    let list = |words: &[String]| words.iter().map(|word| text(word)).collect::<Vec<_>>().join(", ");
    let pairs = |pairs: &[(String, String)]| {
        pairs.iter().map(|(name, value)| format!("{} = {}", text(name), text(value))).collect::<Vec<_>>().join(", ")
    };
    let reach = match &server.place {
        Place::Url(url) => format!("url = {}\nheaders = {{ {} }}", text(url), pairs(&server.headers)),
        Place::Command(argv) => {
            format!("command = {}\nargs = [{}]\nenv = {{ {} }}", text(&argv[0]), list(&argv[1..]), pairs(&server.env))
        }
    };
    format!("[servers.{name}]\nprefix = \"\"\n{reach}\n{more}\n")
}

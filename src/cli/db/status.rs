//! `db status`: one look at each store. Migrates and changes nothing, and works beside a running server.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::database::DatabaseView;
use super::place::{self, Place, StoreFile};
use super::{blocking, json, size};
use crate::cli::args::DbReadArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Output, printable};
use crate::engine::clock::Clock;
use crate::engine::view::Time;
use crate::model::execution::State;
use crate::store::postgres;
use crate::store::sqlite::{self, FileStatus};
use crate::store::{Result as StoreResult, SqliteSettings};

/// A line of `db status --json`: a file has a `file_bytes`, a database a `vendor`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StatusLine {
    /// Of an SQLite file.
    File(StatusView),
    /// Of a PostgreSQL database.
    Database(DatabaseView),
}

impl StatusLine {
    fn lines(&self) -> Vec<(&'static str, String)> {
        match self {
            StatusLine::File(view) => view.lines(),
            StatusLine::Database(view) => view.lines(),
        }
    }
}

/// A store's file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StatusView {
    /// `default`, or the name of a `wrap`.
    pub store: String,
    /// Its file.
    pub path: String,
    /// The schema it has; older ones are brought up at the next start.
    pub schema_version: i64,
    /// The newest schema that this program knows.
    pub schema_known: i64,
    /// All executions.
    pub executions: u64,
    /// Executions per state; every state is there.
    pub states: BTreeMap<String, u64>,
    /// When the oldest execution was submitted.
    pub oldest_at: Option<Time>,
    /// When something happened last to one of the newest executions.
    pub newest_at: Option<Time>,
    /// The database file.
    pub file_bytes: u64,
    /// Of these, what is free for new rows.
    pub free_bytes: u64,
    /// All payloads together.
    pub payload_bytes: u64,
    /// The write-ahead log beside it.
    pub wal_bytes: u64,
    /// Pages of the log that wait to be copied into the database; null while a process copies them.
    pub wal_pages_waiting: Option<u64>,
    /// More waits in the log than a running server lets wait.
    pub checkpoint_needed: bool,
    /// Processes of durable-mcp that use the store and live.
    pub processes_alive: u64,
    /// Processes that died and whose work is not settled yet.
    pub processes_dead: u64,
    /// Remote workers that live.
    pub remote_workers: u64,
    /// What the disk has left for this user.
    pub disk_free_bytes: Option<u64>,
}

impl StatusView {
    fn of(file: &StoreFile, status: &FileStatus) -> StatusView {
        let count = |state: &State| (state.as_str().to_owned(), status.states.get(state).copied().unwrap_or(0));
        let needed = u64::from(SqliteSettings::default().checkpoint_pages) * 2;
        StatusView {
            store: file.name.clone(),
            path: file.path.display().to_string(),
            schema_version: status.schema_version,
            schema_known: status.schema_known,
            executions: status.states.values().sum(),
            states: State::ALL.iter().map(count).collect(),
            oldest_at: status.oldest_created_at_ms.map(Time),
            newest_at: status.newest_event_at_ms.map(Time),
            file_bytes: status.file_bytes,
            free_bytes: status.free_bytes,
            payload_bytes: status.payload_bytes,
            wal_bytes: status.wal_bytes,
            wal_pages_waiting: status.wal_pages_waiting,
            checkpoint_needed: status.wal_pages_waiting.is_some_and(|pages| pages > needed),
            processes_alive: status.processes_alive,
            processes_dead: status.processes_dead,
            remote_workers: status.remote_workers,
            disk_free_bytes: disk_free(&file.path),
        }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let states: Vec<String> = self
            .states
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(state, count)| format!("{count} {state}"))
            .collect();
        let schema = match self.schema_version < self.schema_known {
            true => format!("{} (the next start brings it to {})", self.schema_version, self.schema_known),
            false => self.schema_version.to_string(),
        };
        let executions = match self.executions {
            0 => "none".to_owned(),
            all => format!("{all}: {}", states.join(", ")),
        };
        let span = match (self.oldest_at, self.newest_at) {
            (Some(oldest), Some(newest)) => format!("{oldest} to {newest}"),
            _ => "-".to_owned(),
        };
        let waiting = self.wal_pages_waiting.map_or("a copy is going on".into(), |pages| format!("{pages} pages wait"));
        let advice = if self.checkpoint_needed { "; a checkpoint is needed: stop and start the server" } else { "" };
        let processes = match (self.processes_alive, self.processes_dead) {
            (alive, 0) => format!("{alive} alive"),
            (alive, dead) => format!("{alive} alive, {dead} dead (the next start settles what they held)"),
        };
        vec![
            ("store", self.store.clone()),
            ("path", self.path.clone()),
            ("schema", schema),
            ("executions", executions),
            ("from", span),
            ("file", format!("{}, {} of it free", size(self.file_bytes), size(self.free_bytes))),
            ("payloads", size(self.payload_bytes)),
            ("log", format!("{}, {waiting}{advice}", size(self.wal_bytes))),
            ("processes", processes),
            ("workers", format!("{} remote", self.remote_workers)),
            ("disk", self.disk_free_bytes.map_or("-".to_owned(), |bytes| format!("{} free", size(bytes)))),
        ]
    }
}

/// Runs the command.
pub async fn run(args: DbReadArgs, out: Output) -> Result<Exit, Failure> {
    let loaded = args.place.configuration.load(|_| {})?;
    let places = place::all(&args.place, &loaded)?;
    if places.is_empty() {
        eprintln!("there is no store yet; the first start of `durable-mcp serve` or `wrap` makes it");
    }
    let (mut first, mut failed) = (true, None);
    for place in places {
        let view = match look(&place).await {
            Ok(view) => view,
            // One that can not be read must not hide the others.
            Err(failure) => {
                failure.print();
                failed = Some(Exit::Failure);
                continue;
            }
        };
        if args.json {
            out.line(&json(&view)?)?;
            continue;
        }
        if !first {
            out.line("")?;
        }
        first = false;
        let lines = view.lines();
        let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (name, value) in lines {
            out.line(&format!("{name:width$}  {}", printable(&value)))?;
        }
    }
    Ok(failed.unwrap_or(Exit::Ok))
}

async fn look(place: &Place) -> Result<StatusLine, Failure> {
    let now_ms = Clock::System.now_ms();
    match place {
        Place::File(file) => {
            let path = file.path.clone();
            let status = blocking(move || -> StoreResult<FileStatus> { sqlite::status(&path, now_ms) }).await?;
            Ok(StatusLine::File(StatusView::of(file, &status)))
        }
        Place::Database(database) => {
            let status = postgres::status(&database.url, &database.settings, now_ms).await?;
            Ok(StatusLine::Database(DatabaseView::of(database, &status)))
        }
    }
}

/// Bytes that this user may still write to the disk of `path`.
pub fn disk_free(path: &Path) -> Option<u64> {
    let place = path.ancestors().find(|place| place.exists()).unwrap_or(Path::new("."));
    let stat = rustix::fs::statvfs(place).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

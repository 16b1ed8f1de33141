//! `workers list|drain`: of a running server, or of the stores of this user. Draining tells the worker through its row.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::args::{WorkersArgs, WorkersCommand, WorkersDrainArgs};
use super::failure::{Exit, Failure};
use super::output::Output;
use super::source::Source;
use crate::engine::clock::now_of;
use crate::engine::remote::{DrainRefused, drain, listing};
use crate::model::id::ProcessId;

/// Runs the command.
pub async fn run(args: WorkersArgs, out: Output) -> Result<Exit, Failure> {
    let flags = match &args.command {
        WorkersCommand::List(args) => &args.source,
        WorkersCommand::Drain(args) => &args.source,
    };
    let source = Source::open(flags).await?;
    let ended = match &args.command {
        WorkersCommand::List(args) => list(&source, args.source.json, &out).await,
        WorkersCommand::Drain(args) => drain_one(args, &source, &out).await,
    };
    source.close().await;
    ended
}

#[derive(Deserialize)]
struct Page {
    workers: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    name: String,
    kind: String,
    state: String,
    slots: u32,
    leased: usize,
    tools: Vec<String>,
    #[serde(default)]
    roles: Option<Vec<String>>,
    #[serde(default)]
    upstreams: Option<Vec<String>>,
    last_seen_at: Option<String>,
}

/// Every worker as JSON.
async fn rows(source: &Source) -> Result<Vec<String>, Failure> {
    match source {
        Source::Server(client) => {
            let body = client.get("/api/v1/workers", &[]).await?;
            let page: Page = serde_json::from_str(&body).map_err(|_| unreadable())?;
            Ok(page.workers.iter().map(|row| row.get().to_owned()).collect())
        }
        Source::Stores(stores) => {
            let mut rows = Vec::new();
            for named in stores {
                for view in listing::workers(&*named.store, None).await? {
                    rows.push(serde_json::to_string(&view).map_err(|_| unreadable())?);
                }
            }
            Ok(rows)
        }
    }
}

async fn list(source: &Source, json: bool, out: &Output) -> Result<Exit, Failure> {
    let rows = rows(source).await?;
    if json {
        for row in rows {
            out.line(&row)?;
        }
        return Ok(Exit::Ok);
    }
    let cells = |row: &String| {
        let row: Row = serde_json::from_str(row).map_err(|_| unreadable())?;
        let busy = format!("{}/{}", row.leased, row.slots);
        let seen = row.last_seen_at.unwrap_or_else(|| "-".to_owned());
        let does = row.roles.map_or_else(|| row.kind, |roles| roles.join(","));
        let runs = row.upstreams.unwrap_or(row.tools).join(" ");
        Ok(vec![row.id, row.name, does, row.state, busy, seen, runs])
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect::<Result<_, Failure>>()?;
    out.table(&["ID", "NAME", "ROLES", "STATE", "BUSY", "SEEN", "RUNS"], &cells)?;
    Ok(Exit::Ok)
}

async fn drain_one(args: &WorkersDrainArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let id = find(source, &args.id).await?;
    let view = match source {
        Source::Server(client) => client.post_json(&format!("/api/v1/workers/{id}/drain"), String::new()).await?,
        Source::Stores(stores) => {
            let mut drained = Err(DrainRefused::Missing);
            for named in stores {
                drained = drain(&*named.store, (id, None), now_of(&*named.store).await?).await;
                if !matches!(drained, Err(DrainRefused::Missing)) {
                    break;
                }
            }
            let view = drained.map_err(refused)?;
            serde_json::to_string(&view).map_err(|_| unreadable())?
        }
    };
    match args.source.json {
        true => out.line(&view)?,
        false => eprintln!("worker {id} is asked to finish what it has and to take nothing more"),
    }
    Ok(Exit::Ok)
}

/// The one worker whose id starts with this text.
async fn find(source: &Source, start: &str) -> Result<ProcessId, Failure> {
    let start = start.to_ascii_lowercase();
    let mut found = Vec::new();
    for row in rows(source).await? {
        let row: Row = serde_json::from_str(&row).map_err(|_| unreadable())?;
        if !start.is_empty() && row.id.starts_with(&start) {
            found.push(row.id);
        }
    }
    match found.as_slice() {
        [id] => id.parse().map_err(|_| unreadable()),
        [] => Err(Failure::new(Exit::NotFound, format!("there is no worker {start}"))
            .next("`durable-mcp workers list` shows those that you may see")),
        [one, two, ..] => {
            let error = format!("more than one worker starts with {start}: {one}, {two}, …");
            Err(Failure::usage(error).next("give more of the id"))
        }
    }
}

fn refused(refused: DrainRefused) -> Failure {
    match refused {
        DrainRefused::Missing => Failure::new(Exit::NotFound, refused.to_string()),
        DrainRefused::Bound => {
            Failure::new(Exit::Conflict, refused.to_string()).next("end its client: it lets what runs end")
        }
        DrainRefused::Gone => Failure::new(Exit::Conflict, refused.to_string()),
        DrainRefused::Store(error) => error.into(),
    }
}

fn unreadable() -> Failure {
    Failure::new(Exit::Failure, "the answer is not that of a durable-mcp server")
        .next("check the address given with --url")
}

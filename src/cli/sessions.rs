//! `sessions list|close`: of a running server, or of the stores of this user. A server learns of an end from its store.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::args::{SessionsArgs, SessionsCloseArgs, SessionsCommand, SessionsListArgs};
use super::failure::{Exit, Failure};
use super::output::Output;
use super::source::Source;
use crate::engine::clock::now_of;
use crate::engine::sessions::{CloseRefused, SessionView, close, view};
use crate::store::SessionQuery;

/// Rows asked for at once.
const PAGE: usize = 1_000;

/// Runs the command.
pub async fn run(args: SessionsArgs, out: Output) -> Result<Exit, Failure> {
    let flags = match &args.command {
        SessionsCommand::List(args) => &args.source,
        SessionsCommand::Close(args) => &args.source,
    };
    let source = Source::open(flags).await?;
    let ended = match &args.command {
        SessionsCommand::List(args) => list(args, &source, &out).await,
        SessionsCommand::Close(args) => close_one(args, &source, &out).await,
    };
    source.close().await;
    ended
}

#[derive(Deserialize)]
struct Page {
    sessions: Vec<Box<RawValue>>,
    next_after: Option<String>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    state: String,
    principal: String,
    client_name: Option<String>,
    revision: String,
    created_at: String,
    last_seen_at: String,
}

/// Every session as JSON.
async fn rows(source: &Source, closed: bool) -> Result<Vec<String>, Failure> {
    let mut rows = Vec::new();
    match source {
        Source::Server(client) => {
            let mut after: Option<String> = None;
            loop {
                let mut query = vec![("closed", closed.to_string())];
                query.extend(after.take().map(|after| ("after", after)));
                let body = client.get("/api/v1/sessions", &query).await?;
                let page: Page = serde_json::from_str(&body).map_err(|_| unreadable())?;
                rows.extend(page.sessions.iter().map(|row| row.get().to_owned()));
                match page.next_after {
                    Some(next) => after = Some(next),
                    None => return Ok(rows),
                }
            }
        }
        Source::Stores(stores) => {
            for named in stores {
                let mut query = SessionQuery { closed, limit: PAGE, ..SessionQuery::default() };
                loop {
                    let page = named.store.sessions(query.clone()).await?;
                    for row in &page {
                        rows.push(written(&view(row))?);
                    }
                    match page.last() {
                        Some(last) if page.len() == PAGE => query.after = Some(last.key),
                        _ => break,
                    }
                }
            }
            Ok(rows)
        }
    }
}

async fn list(args: &SessionsListArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let rows = rows(source, args.closed).await?;
    if args.source.json {
        for row in rows {
            out.line(&row)?;
        }
        return Ok(Exit::Ok);
    }
    let cells = |row: &String| {
        let row: Row = serde_json::from_str(row).map_err(|_| unreadable())?;
        let id = row.id.chars().take(16).collect();
        let client = row.client_name.unwrap_or_else(|| "-".to_owned());
        Ok(vec![id, row.state, row.principal, client, row.revision, row.created_at, row.last_seen_at])
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect::<Result<_, Failure>>()?;
    out.table(&["ID", "STATE", "PRINCIPAL", "CLIENT", "REVISION", "OPENED", "SEEN"], &cells)?;
    Ok(Exit::Ok)
}

async fn close_one(args: &SessionsCloseArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let start = &args.id;
    let is_hex = !start.is_empty() && start.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex {
        return Err(Failure::usage(format!("{start} is no start of a session's id"))
            .next("`durable-mcp sessions list` shows the ids"));
    }
    let closed = match source {
        Source::Server(client) => client.post_json(&format!("/api/v1/sessions/{start}/close"), String::new()).await?,
        Source::Stores(stores) => {
            let mut closed = Err(CloseRefused::Missing);
            for named in stores {
                closed = close(&*named.store, start, (None, None), now_of(&*named.store).await?).await;
                if !matches!(closed, Err(CloseRefused::Missing)) {
                    break;
                }
            }
            written(&closed.map_err(refused)?)?
        }
    };
    match args.source.json {
        true => out.line(&closed)?,
        false => eprintln!("session {start} is closed; its client has to initialize again"),
    }
    Ok(Exit::Ok)
}

fn refused(refused: CloseRefused) -> Failure {
    let words = refused.to_string();
    match refused {
        CloseRefused::Missing => {
            Failure::new(Exit::NotFound, words).next("`durable-mcp sessions list --closed` shows them all")
        }
        CloseRefused::Ambiguous => Failure::new(Exit::Conflict, words).next("give more of the id"),
        CloseRefused::Store(error) => error.into(),
    }
}

fn written(view: &SessionView) -> Result<String, Failure> {
    serde_json::to_string(view).map_err(|_| unreadable())
}

fn unreadable() -> Failure {
    Failure::new(Exit::Failure, "the answer is not that of a durable-mcp server")
        .next("check the address given with --url")
}

//! Reading that goes on: the stream of events, the wait for an end, and the export. From a server over its API, from the
//! stores by looking.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{PAGE, Source, Wanted, filters, foreign, head_of, list_store, text};
use crate::cli::client::Client;
use crate::cli::failure::{Exit, Failure};
use crate::engine::changes::{self, Cursor};
use crate::engine::clock::now_of;
use crate::engine::export;
use crate::engine::view::{ChangeView, ExecutionView, Time};
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::store::ListQuery;

/// Events asked for at once.
const EVENTS: usize = 500;
/// How long a server keeps an unanswered request, in milliseconds.
const WAIT_MS: u64 = 20_000;
/// A server that says nothing for so much longer is gone.
const SILENCE: Duration = Duration::from_secs(15);
/// How often stores are looked at.
const POLL_MS: u64 = 300;

/// Where a tail stands in each source.
pub struct Tail {
    filter: ListQuery,
    positions: Vec<Position>,
}

/// Where a tail stands.
#[derive(Clone, Debug)]
pub enum Position {
    /// Nothing was read yet.
    From(i64),
    /// After an event.
    After(String),
}

#[derive(Deserialize)]
struct StreamPage {
    events: Vec<Box<RawValue>>,
    next_after: String,
    more: bool,
}

/// A piece of a tail.
pub struct Piece {
    /// The events as JSON.
    pub events: Vec<String>,
    /// True when there is more already.
    pub more: bool,
}

impl Source {
    /// A tail that begins at a position.
    pub fn tail(&self, filter: ListQuery, begin: Position) -> Tail {
        let sources = match self {
            Source::Server(_) => 1,
            Source::Stores(stores) => stores.len(),
        };
        Tail { filter, positions: vec![begin; sources] }
    }

    /// What comes next; with `follow` waits for a while until something comes.
    pub async fn tail_next(&self, tail: &mut Tail, follow: bool) -> Result<Piece, Failure> {
        match self {
            Source::Server(client) => {
                let wait_ms = if follow { WAIT_MS } else { 0 };
                let mut query = filters(&tail.filter);
                query.push(("limit", EVENTS.to_string()));
                query.push(("wait_ms", wait_ms.to_string()));
                query.push(match &tail.positions[0] {
                    Position::From(at_ms) => ("from", Time(*at_ms).to_string()),
                    Position::After(cursor) => ("after", cursor.clone()),
                });
                let body = patient(client.get("/api/v1/events", &query), wait_ms).await?;
                let page: StreamPage = serde_json::from_str(&body).map_err(|_| foreign())?;
                tail.positions[0] = Position::After(page.next_after);
                Ok(Piece { events: page.events.iter().map(|event| event.get().to_owned()).collect(), more: page.more })
            }
            Source::Stores(stores) => {
                let mut found = Vec::new();
                let mut more = false;
                for (named, position) in stores.iter().zip(&mut tail.positions) {
                    let cursor = match position {
                        Position::From(at_ms) => Cursor::at(*at_ms),
                        Position::After(cursor) => cursor.parse().map_err(|()| foreign())?,
                    };
                    let until_ms = changes::settled_before(now_of(&*named.store).await?);
                    let wanted = changes::Wanted { filter: tail.filter.clone(), cursor, until_ms, limit: EVENTS };
                    let page = changes::read(&*named.store, &wanted).await?;
                    *position = Position::After(page.next.to_string());
                    more |= page.more;
                    for change in &page.changes {
                        found.push((change.record.at_ms, text(&ChangeView::of(change))?));
                    }
                }
                // The events of several stores meet by their time; those of one are in order already.
                if stores.len() > 1 {
                    found.sort_by_key(|(at_ms, _)| *at_ms);
                }
                if follow && found.is_empty() && !more {
                    tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
                }
                Ok(Piece { events: found.into_iter().map(|(_, event)| event).collect(), more })
            }
        }
    }

    /// The execution as JSON once it has ended or is unknown, or as it stands when the time is up.
    pub async fn wait(&self, id: ExecutionId, end: Option<Instant>) -> Result<String, Failure> {
        loop {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            let (row, settled) = match self {
                Source::Server(client) => {
                    let wait_ms = WAIT_MS.min(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
                    let row = wait_at_server(client, id, wait_ms).await?;
                    let state: State = serde_json::from_str(&row).map_err(|_| foreign())?;
                    let settled = crate::model::execution::State::parse(&state.state).is_none_or(|it| it.is_settled());
                    (row, settled)
                }
                Source::Stores(stores) => {
                    let (named, head) = head_of(stores, id).await?;
                    let settled = head.state.is_settled();
                    if !settled && !left.is_zero() {
                        let pause_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).min(POLL_MS);
                        named.store.changed(pause_ms.max(1)).await;
                    }
                    (text(&ExecutionView::of(&head))?, settled)
                }
            };
            if settled || left.is_zero() {
                return Ok(row);
            }
        }
    }

    /// Writes executions whole, a line each, newest first; `line` takes each.
    pub async fn export(
        &self,
        filter: &ListQuery,
        line: &mut dyn FnMut(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self {
            Source::Server(client) => export_server(client, filter, line).await,
            Source::Stores(stores) => {
                let mut rows: Vec<(ExecutionId, usize)> = Vec::new();
                for (index, named) in stores.iter().enumerate() {
                    let wanted = Wanted { query: filter.clone(), limit: None };
                    rows.extend(list_store(named, &wanted).await?.iter().map(|head| (head.id(), index)));
                }
                rows.sort_by(|left, right| right.cmp(left));
                for page in rows.chunks(PAGE) {
                    for (id, index) in page {
                        let store = &*stores[*index].store;
                        // Retention may have taken one meanwhile.
                        let heads: Vec<Head> = store.heads(&[*id]).await?;
                        for head in heads {
                            line(&export::line(store, &head).await?)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

#[derive(Deserialize)]
struct State {
    state: String,
}

/// A server that goes away while somebody waits may come back.
async fn wait_at_server(client: &Client, id: ExecutionId, wait_ms: u64) -> Result<String, Failure> {
    let path = format!("/api/v1/executions/{id}/wait");
    patient(client.get(&path, &[("wait_ms", wait_ms.to_string())]), wait_ms).await
}

async fn patient<T>(answer: impl Future<Output = Result<T, Failure>>, wait_ms: u64) -> Result<T, Failure> {
    let limit = Duration::from_millis(wait_ms) + SILENCE;
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::new(Exit::Unreachable, "the server does not answer").next("see its log")),
    }
}

async fn export_server(
    client: &Client,
    filter: &ListQuery,
    line: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut response = client.open("/api/v1/executions/export", &filters(filter)).await?;
    let mut rest: Vec<u8> = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| client.unreachable(&error))? {
        rest.extend_from_slice(&chunk);
        let mut begin = 0;
        while let Some(length) = rest[begin..].iter().position(|byte| *byte == b'\n') {
            line(std::str::from_utf8(&rest[begin..begin + length]).map_err(|_| foreign())?)?;
            begin += length + 1;
        }
        rest.drain(..begin);
    }
    // A line without its end is no line.
    if rest.is_empty() { Ok(()) } else { Err(foreign()) }
}

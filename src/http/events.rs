//! The events of everything that the caller may see: as a stream of server-sent events that goes on where it was left, or
//! as pages. Each reader reads the store for itself, as fast as it takes what it gets: a slow one makes nobody wait and
//! holds one page.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::auth::Access;
use super::executions::filters::{Filter, FilterParams, number, time, unknown_parameter, wrong};
use super::openapi::Refused;
use super::refusal::{Refusal, json};
use crate::engine::Engine;
use crate::engine::changes::{self, Changes, Cursor, Wanted};
use crate::engine::view::ChangeView;
use crate::model::principal::Scope;
use crate::store::ListQuery;

/// Events of a page at most; also what is held for one stream.
const LIMIT_MAX: usize = 500;
/// How often the store is looked at while somebody watches.
const POLL: Duration = Duration::from_millis(200);
/// A look that takes long is paid for by a longer pause.
const PAUSE_FACTOR: u32 = 4;
/// A silent stream says so often that it is alive, and where it stands.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long a page waits for its first event at most, in milliseconds.
const WAIT_MAX_MS: i64 = 55_000;

/// The bounds of streams.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Streams at once in this process.
    pub streams: usize,
    /// A stream ends after so long and is taken up again by its client, which proves anew who it is.
    pub life: Duration,
}

/// The route of events.
pub fn routes(engine: Arc<Engine>, limits: Limits) -> Router {
    let events = Events { engine, streams: Arc::new(Semaphore::new(limits.streams)), limits };
    Router::new().route("/api/v1/events", get(follow)).with_state(events)
}

/// What the route works with.
#[derive(Clone)]
pub(super) struct Events {
    engine: Arc<Engine>,
    streams: Arc<Semaphore>,
    limits: Limits,
}

/// A page of the stream of events.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamPage)]
pub struct Page<'a> {
    /// In the order of time, or execution by execution when there is much to catch up with.
    events: Vec<ChangeView<'a>>,
    /// The `after` of the next page.
    next_after: String,
    /// True when there is more already.
    more: bool,
}

/// Follows the events of all executions that the caller may see.
///
/// With `Accept: text/event-stream` a stream of server-sent events: each has a cursor as its `id`, and a client that comes
/// back with it in `Last-Event-ID` gets what it missed, and nothing twice. Else a page. Without a cursor and without
/// `from` it begins now. The filters are held against the execution as it stands when the event is read.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    tag = "events",
    params(
        FilterParams,
        ("after" = Option<String>, Query, description = "A cursor: `next_after` of the page before, or an event's `cursor`."),
        ("from" = Option<String>, Query, description = "Without a cursor: begins then (RFC 3339)."),
        ("limit" = Option<u32>, Query, description = "Events of a page at most.", minimum = 1, maximum = 500),
        ("wait_ms" = Option<i64>, Query, description = "How long a page waits for its first event.", minimum = 0, maximum = 55000),
        ("Last-Event-ID" = Option<String>, Header, description = "A cursor; comes before `after`."),
    ),
    responses(
        Refused,
        (status = 200, description = "A page, or a stream.", content((Page = "application/json"), (ChangeView = "text/event-stream"))),
    ),
)]
pub(super) async fn follow(
    State(events): State<Events>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    access.require(Scope::Read)?;
    let streams = headers.get(ACCEPT).and_then(|kinds| kinds.to_str().ok()).is_some_and(|kinds| {
        kinds.split(',').any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/event-stream")
    });
    let mut filter = Filter::default();
    let (mut after, mut from_ms, mut limit, mut wait_ms) = (None, None, LIMIT_MAX, 0);
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "after" => after = Some(cursor(&value, "after")?),
            "from" => from_ms = Some(time(&value, "from")?),
            "limit" => limit = number(&value, "limit", 1..=LIMIT_MAX as i64)? as usize,
            "wait_ms" => wait_ms = number(&value, "wait_ms", 0..=WAIT_MAX_MS)?,
            _ if filter.take(&name, &value)? => {}
            _ => return Err(unknown_parameter("after, from, limit, wait_ms")),
        }
    }
    if let Some(id) = headers.get("last-event-id").filter(|id| !id.is_empty()) {
        after = Some(cursor(id.to_str().unwrap_or_default(), "Last-Event-ID")?);
    }
    let Events { engine, streams: places, limits } = events;
    let begin = || Cursor::at(from_ms.unwrap_or_else(|| engine.events_settled_before()));
    let cursor = after.unwrap_or_else(begin);
    let follower = Follower { filter: filter.bounded(&access), cursor, engine };
    if streams {
        let permit = places.try_acquire_owned().map_err(|_| {
            Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too_many_streams",
                format!("{} streams of events are open already", limits.streams),
                "close one, ask for pages, or raise server.max_event_streams",
            )
        })?;
        return Ok(stream_of(Streaming { follower, end: Instant::now() + limits.life, _permit: permit }));
    }
    let mut follower = follower;
    let changes = follower.next(limit, Duration::from_millis(wait_ms.unsigned_abs())).await?;
    let page = Page {
        events: changes.changes.iter().map(ChangeView::of).collect(),
        next_after: changes.next.to_string(),
        more: changes.more,
    };
    Ok(json(StatusCode::OK, &page))
}

fn cursor(text: &str, name: &str) -> Result<Cursor, Refusal> {
    text.parse().map_err(|()| wrong(name, "the cursor of an event or a page"))
}

struct Follower {
    engine: Arc<Engine>,
    /// Absent: the caller asks for what it may not see, and nothing ever comes.
    filter: Option<ListQuery>,
    cursor: Cursor,
}

impl Follower {
    /// What comes next; empty when nothing came within `wait`.
    async fn next(&mut self, limit: usize, wait: Duration) -> Result<Changes, Refusal> {
        let end = Instant::now() + wait;
        loop {
            let began = Instant::now();
            let changes = self.look(limit).await?;
            if !changes.changes.is_empty() || changes.more {
                return Ok(changes);
            }
            let now = Instant::now();
            if now >= end || self.engine.draining().is_cancelled() {
                return Ok(changes);
            }
            let pause = POLL.max((now - began) * PAUSE_FACTOR);
            tokio::select! {
                () = tokio::time::sleep_until((now + pause).min(end)) => {}
                () = self.engine.draining().cancelled() => {}
            }
        }
    }

    async fn look(&mut self, limit: usize) -> Result<Changes, Refusal> {
        let until_ms = self.engine.events_settled_before();
        let Some(filter) = &self.filter else {
            return Ok(Changes { changes: Vec::new(), next: self.cursor, more: false });
        };
        let wanted = Wanted { filter: filter.clone(), cursor: self.cursor, until_ms, limit };
        let changes = changes::read(&**self.engine.store(), &wanted).await.map_err(|error| Refusal::store(&error))?;
        self.cursor = changes.next;
        Ok(changes)
    }
}

struct Streaming {
    follower: Follower,
    end: Instant,
    _permit: OwnedSemaphorePermit,
}

fn stream_of(streaming: Streaming) -> Response {
    // The head of the answer goes out at once, and says how soon to come back.
    let first = stream::iter([Ok(Bytes::from_static(b"retry: 1000\n\n"))]);
    let rest = stream::unfold(streaming, |mut streaming| async move {
        let text = streaming.piece().await?;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(text)), streaming))
    });
    let mut response = Response::new(Body::from_stream(futures_util::StreamExt::chain(first, rest)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that buffers would hold the events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Streaming {
    /// The next text of the stream; `None` at its end.
    async fn piece(&mut self) -> Option<String> {
        if Instant::now() >= self.end || self.follower.engine.draining().is_cancelled() {
            return None;
        }
        // After a fault of the store the client comes back, to where it was.
        let changes = self.follower.next(LIMIT_MAX, KEEP_ALIVE).await.ok()?;
        let mut text = String::new();
        for change in &changes.changes {
            let data = serde_json::to_string(&ChangeView::of(change)).ok()?;
            text.push_str(&format!("id: {}\ndata: {data}\n\n", change.cursor));
        }
        if changes.changes.is_empty() {
            // Without data it is no event; it only moves the place to go on from.
            text = format!(": still here\nid: {}\n\n", changes.next);
        }
        Some(text)
    }
}

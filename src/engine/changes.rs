//! The events of many executions as one stream that can be left and taken up again: a [`Cursor`] says exactly what was
//! delivered. Finds executions by the indexes that are there and reads their logs by key; the log itself has no index
//! that each call would have to pay for. Promises an order within each execution, and none over all of them.

use std::fmt;
use std::str::FromStr;

use crate::model::event::EventRecord;
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::store::{self, ListQuery, Store, TouchedQuery};

use super::Engine;

#[cfg(test)]
mod tests;

/// Executions looked at at once. A span of time with no more is delivered in the order of time.
const HEADS: usize = 500;
/// Events of one execution read at once.
const EVENTS: usize = 1_000;
/// Another process may have decided on an event so long before it is to be seen, in milliseconds.
pub const SETTLE_MS: i64 = 500;

/// After every event of an execution.
const SEQ_MAX: i64 = 999_999_999_999_999;

/// An event's place within one millisecond, or within a span: its execution, then its number there.
type Place = (ExecutionId, i64);

/// What was delivered: every event before `at_ms`, those at `at_ms` up to `done`, and of a span that is under way those
/// of the executions up to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Milliseconds since the epoch.
    at_ms: i64,
    done: Option<Place>,
    span: Option<Span>,
}

/// A span of time with more in it than fits a page: delivered execution by execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    /// The first moment after it.
    until_ms: i64,
    after: Option<Place>,
}

/// An event, the row of its execution as it stands, and where a stream that delivered it goes on.
#[derive(Clone, Debug)]
pub struct Change {
    /// The execution.
    pub head: Head,
    /// The event.
    pub record: EventRecord,
    /// Goes on after this event.
    pub cursor: Cursor,
}

/// A piece of the stream.
#[derive(Debug)]
pub struct Changes {
    /// The events.
    pub changes: Vec<Change>,
    /// Goes on after all of them.
    pub next: Cursor,
    /// True when there is more already.
    pub more: bool,
}

/// Which piece of the stream.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What must hold for the execution as it stands now.
    pub filter: ListQuery,
    /// What was delivered.
    pub cursor: Cursor,
    /// Only events before this moment, in milliseconds since the epoch: from there on some may not be there yet.
    pub until_ms: i64,
    /// Events at most.
    pub limit: usize,
}

impl Cursor {
    /// Everything before this moment counts as delivered.
    pub fn at(at_ms: i64) -> Cursor {
        Cursor { at_ms, done: None, span: None }
    }

    fn delivered(&self, id: ExecutionId, record: &EventRecord) -> bool {
        let place = Some((id, record.seq));
        let before = record.at_ms < self.at_ms || record.at_ms == self.at_ms && place <= self.done;
        before || self.span.is_some_and(|span| record.at_ms < span.until_ms && place <= span.after)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = |f: &mut fmt::Formatter<'_>, at_ms: i64, place: Option<Place>| match place {
            Some((id, seq)) => write!(f, "{at_ms}.{id}.{seq}"),
            None => write!(f, "{at_ms}"),
        };
        moment(f, self.at_ms, self.done)?;
        match self.span {
            Some(span) => {
                f.write_str("~")?;
                moment(f, span.until_ms, span.after)
            }
            None => Ok(()),
        }
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Cursor, ()> {
        fn number(text: &str) -> Result<i64, ()> {
            let digits = (1..=15).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            if digits { text.parse().map_err(|_| ()) } else { Err(()) }
        }
        fn moment(text: &str) -> Result<(i64, Option<Place>), ()> {
            let Some((at_ms, place)) = text.split_once('.') else { return Ok((number(text)?, None)) };
            let (id, seq) = place.split_once('.').ok_or(())?;
            Ok((number(at_ms)?, Some((id.parse().map_err(|_| ())?, number(seq)?))))
        }
        let (first, span) = match text.split_once('~') {
            Some((first, span)) => (first, Some(moment(span)?)),
            None => (text, None),
        };
        let (at_ms, done) = moment(first)?;
        Ok(Cursor { at_ms, done, span: span.map(|(until_ms, after)| Span { until_ms, after }) })
    }
}

/// The events after the cursor.
pub async fn read(store: &dyn Store, wanted: &Wanted) -> store::Result<Changes> {
    match wanted.cursor.span {
        Some(span) => read_span(store, wanted, span).await,
        None => read_all(store, wanted).await,
    }
}

/// In the order of time, when no more executions changed than can be looked at at once.
async fn read_all(store: &dyn Store, wanted: &Wanted) -> store::Result<Changes> {
    let (cursor, until_ms) = (wanted.cursor, wanted.until_ms);
    if until_ms <= cursor.at_ms {
        return Ok(Changes { changes: Vec::new(), next: cursor, more: false });
    }
    let heads = touched(store, wanted, (until_ms, None), HEADS + 1).await?;
    if heads.len() > HEADS {
        let span = Span { until_ms, after: None };
        let wanted = Wanted { cursor: Cursor { span: Some(span), ..cursor }, ..wanted.clone() };
        return read_span(store, &wanted, span).await;
    }
    let mut changes = Vec::new();
    for head in heads {
        for record in events(store, head.id(), 0).await? {
            let id = head.id();
            if record.at_ms < until_ms && !cursor.delivered(id, &record) {
                let cursor = Cursor { at_ms: record.at_ms, done: Some((id, record.seq)), span: None };
                changes.push(Change { head: head.clone(), record, cursor });
            }
        }
    }
    changes.sort_by_key(|change| (change.record.at_ms, change.head.id(), change.record.seq));
    let more = changes.len() > wanted.limit;
    changes.truncate(wanted.limit);
    let next = match changes.last() {
        Some(last) if more => last.cursor,
        _ => Cursor::at(until_ms),
    };
    Ok(Changes { changes, next, more })
}

/// Execution by execution: what was away for long reads each of them once, however many there are.
async fn read_span(store: &dyn Store, wanted: &Wanted, span: Span) -> store::Result<Changes> {
    let cursor = wanted.cursor;
    let mut changes = Vec::new();
    // The execution that the last page broke off in comes first.
    let mut heads = match span.after {
        Some((id, _)) => store.heads(&[id]).await?,
        None => Vec::new(),
    };
    let found = touched(store, wanted, (span.until_ms, span.after.map(|(id, _)| id)), HEADS).await?;
    let whole = found.len() < HEADS;
    heads.extend(found);
    let last_id = heads.last().map(Head::id);
    for head in heads {
        let id = head.id();
        let after = span.after.filter(|(last, _)| *last == id).map_or(0, |(_, seq)| seq);
        for record in events(store, id, after).await? {
            if record.at_ms >= span.until_ms || cursor.delivered(id, &record) {
                continue;
            }
            let span = Span { after: Some((id, record.seq)), ..span };
            changes.push(Change { head: head.clone(), record, cursor: Cursor { span: Some(span), ..cursor } });
        }
        if changes.len() > wanted.limit {
            changes.truncate(wanted.limit);
            let next = changes.last().map_or(cursor, |last| last.cursor);
            return Ok(Changes { changes, next, more: true });
        }
    }
    let next = match last_id {
        _ if whole => Cursor::at(span.until_ms),
        // Every event of it that lies in the span was delivered.
        Some(id) => Cursor { span: Some(Span { after: Some((id, SEQ_MAX)), ..span }), ..cursor },
        None => cursor,
    };
    Ok(Changes { changes, next, more: true })
}

async fn touched(
    store: &dyn Store,
    wanted: &Wanted,
    (until_ms, after): (i64, Option<ExecutionId>),
    limit: usize,
) -> store::Result<Vec<Head>> {
    let query = TouchedQuery { filter: wanted.filter.clone(), since_ms: wanted.cursor.at_ms, until_ms, after, limit };
    store.touched(query).await
}

/// The whole log of an execution after an event, or from its beginning.
pub async fn events(store: &dyn Store, id: ExecutionId, after: i64) -> store::Result<Vec<EventRecord>> {
    let mut all = Vec::new();
    let mut last = after;
    loop {
        let page = store.events(id, last, EVENTS).await?;
        let full = page.len() >= EVENTS;
        last = page.last().map_or(last, |record| record.seq);
        all.extend(page);
        if !full {
            return Ok(all);
        }
    }
}

/// Events from here on may not be there yet, in milliseconds since the epoch, for a reader without an engine.
pub fn settled_before(now_ms: i64) -> i64 {
    now_ms.saturating_sub(SETTLE_MS)
}

impl Engine {
    /// Events from here on may not be there yet, in milliseconds since the epoch.
    pub fn events_settled_before(&self) -> i64 {
        let own = self.in_flight.settled_before(&self.clock);
        own.min(settled_before(self.now_ms()))
    }
}

//! Reads a store through the library and holds every execution against G4–G6: events gapless 1..n, the row is their
//! fold, one final event, no run that must not be. Changes nothing; the programs that own the store may be running.

use std::collections::BTreeSet;

use durable_mcp::model::event::{Event, EventRecord};
use durable_mcp::model::execution::{Head, State};
use durable_mcp::model::id::ExecutionId;
use durable_mcp::model::policy::Delivery;
use durable_mcp::store::{self, ListQuery, PayloadKind, SqliteSettings, Store};

/// Rows and events read at once.
const PAGE: usize = 500;

/// Rereads of an execution that a running process keeps changing.
const TRIES: usize = 100;

/// Every execution with its events, oldest first; each has passed.
pub struct Checked {
    pub executions: Vec<Execution>,
}

pub struct Execution {
    pub head: Head,
    pub events: Vec<EventRecord>,
}

impl Checked {
    pub fn count(&self, state: State) -> usize {
        self.executions.iter().filter(|execution| execution.head.state == state).count()
    }
}

impl Execution {
    /// The attempts that may have reached the tool: leased, and neither given back nor known not to have run.
    pub fn possible_runs(&self) -> BTreeSet<u32> {
        let (mut runs, mut current) = (BTreeSet::new(), 0);
        for record in &self.events {
            match &record.event {
                Event::Leased { attempt, .. } => {
                    current = *attempt;
                    runs.insert(current);
                }
                Event::Released { .. } => {
                    runs.remove(&current);
                }
                Event::Retried { attempt, ran: false, .. } => {
                    runs.remove(attempt);
                }
                _ => {}
            }
        }
        runs
    }

    /// The attempts that a person or a reconcile rule ordered.
    pub fn orders(&self) -> usize {
        self.events.iter().filter(|record| matches!(record.event, Event::Retried { by: Some(_), .. })).count()
    }
}

/// Opens the store and checks every execution; panics with what does not hold.
pub async fn check(url: &str) -> Checked {
    let store = store::open(url, &SqliteSettings::default()).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    let mut executions = Vec::new();
    for id in ids(&*store).await {
        let execution = read(&*store, id).await;
        hold(&execution);
        hold_payload(&*store, &execution).await;
        executions.push(execution);
    }
    executions.reverse();
    store.close().await;
    Checked { executions }
}

async fn ids(store: &dyn Store) -> Vec<ExecutionId> {
    let mut ids = Vec::new();
    loop {
        let query = ListQuery { before: ids.last().copied(), limit: PAGE, ..ListQuery::default() };
        let page = store.list(query).await.unwrap();
        ids.extend(page.iter().map(Head::id));
        if page.len() < PAGE {
            return ids;
        }
    }
}

/// Row and events of one moment: read again until the row did not change in between.
async fn read(store: &dyn Store, id: ExecutionId) -> Execution {
    for _ in 0..TRIES {
        let before = row(store, id).await;
        let mut events = Vec::new();
        loop {
            let after = events.last().map_or(0, |last: &EventRecord| last.seq);
            let page = store.events(id, after, PAGE).await.unwrap();
            let full = page.len() == PAGE;
            events.extend(page);
            if !full {
                break;
            }
        }
        let head = row(store, id).await;
        if head.version == before.version {
            return Execution { head, events };
        }
    }
    panic!("{id} changed all the time");
}

async fn row(store: &dyn Store, id: ExecutionId) -> Head {
    store.heads(&[id]).await.unwrap().pop().unwrap_or_else(|| panic!("{id} is listed and not there"))
}

fn hold(execution: &Execution) {
    let Execution { head, events } = execution;
    let (id, told) = (head.id(), || format!("{head:#?}\n{events:#?}"));
    let numbers: Vec<i64> = events.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..head.next_seq).collect::<Vec<_>>(), "the events of {id} have gaps:\n{}", told());
    assert_eq!(comparable(folded(head, events)), comparable(head.clone()), "the row of {id} is not its events' fold");

    let finals = events.iter().filter(|record| record.event.is_final()).count();
    let expected = usize::from(head.state.is_ended());
    assert_eq!(finals, expected, "final events of {id}, which is {}:\n{}", head.state.as_str(), told());

    let runs = execution.possible_runs().len();
    let allowed = match head.ident.policy.delivery {
        Delivery::AtMostOnce => 1 + execution.orders(),
        Delivery::AtLeastOnce => head.ident.policy.retry.max_attempts as usize + execution.orders(),
    };
    assert!(runs <= allowed, "{id} may have run {runs} times, {allowed} are allowed:\n{}", told());
}

/// The stored result is the one that the final event speaks of; retention may have taken it.
async fn hold_payload(store: &dyn Store, execution: &Execution) {
    let digest = execution.events.iter().find_map(|record| match &record.event {
        Event::Completed { result, .. } => Some(result.clone()),
        _ => None,
    });
    let Some(digest) = digest else { return };
    if let Some(result) = store.payload(execution.head.id(), PayloadKind::Result).await.unwrap() {
        assert_eq!(durable_mcp::model::event::Digest::of(&result), digest, "the result of {}", execution.head.id());
    }
}

fn folded(head: &Head, events: &[EventRecord]) -> Head {
    let first_ms = events.first().map_or(head.created_at_ms, |first| first.at_ms);
    let mut row = Head::new(head.ident.clone(), first_ms);
    for record in events {
        row.apply(&record.event, record.at_ms);
    }
    row
}

/// Without what is no fold: lease expiry, version, delivery marks.
fn comparable(mut head: Head) -> Head {
    if let Some(lease) = &mut head.lease {
        lease.expires_at_ms = 0;
    }
    Head { version: 0, waiter: None, delivered_at_ms: None, handle_given: false, ..head }
}

//! Reads a store through the library and holds every execution and the file itself against the rules of `db verify`
//! (G4–G6). Changes nothing; the programs that own the store may be running.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use durable_mcp::model::event::EventRecord;
use durable_mcp::model::execution::{Head, State};
use durable_mcp::model::id::ExecutionId;
use durable_mcp::store::sqlite::{self, Told};
use durable_mcp::store::verify::{Audit, Runs};
use durable_mcp::store::{self, ListQuery, Store, StoreSettings};

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
        Runs::of(&self.events).possible
    }
}

/// Opens the store and checks every execution; panics with what does not hold.
pub async fn check(url: &str) -> Checked {
    let store = store::open(url, &StoreSettings::default()).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    let mut executions = Vec::new();
    for id in ids(&*store).await {
        let execution = read(&*store, id).await;
        hold(&execution);
        executions.push(execution);
    }
    executions.reverse();
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = Path::new(path).to_owned();
        tokio::task::spawn_blocking(move || hold_file(&path)).await.unwrap();
    }
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
    let mut audit = Audit::of(head);
    events.iter().for_each(|record| audit.event(record));
    let findings = audit.end();
    assert!(findings.is_empty(), "{findings:#?}\n{head:#?}\n{events:#?}");
}

/// Pages, schema, payloads, keys and leftovers, which the store's trait does not show.
fn hold_file(path: &Path) {
    let mut findings = Vec::new();
    let verified = sqlite::verify(path, &mut |told| {
        if let Told::Found(finding) = told {
            findings.push(finding);
        }
        ControlFlow::Continue(())
    });
    assert!(findings.is_empty(), "{findings:#?}");
    verified.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

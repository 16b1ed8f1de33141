//! Where executions are read from: a running server, or the stores of this user. Both give the same JSON, row by row.
//! Orders and streams are in files of their own.

mod orders;
mod stream;

pub use orders::{Done, Found};
pub use stream::{Position, Tail};

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::address::Address;
use super::args::{ListArgs, SourceFlags};
use super::client::{Client, TOKEN_VARIABLE};
use super::failure::{Exit, Failure};
use super::stores::{self, NamedStore};
use crate::engine::changes;
use crate::engine::view::{EventView, ExecutionView, ResultView, Time};
use crate::engine::why::why;
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::store::ListQuery;

/// Rows asked for at once.
const PAGE: usize = 500;

/// Where executions are read from.
pub enum Source {
    /// A running server.
    Server(Client),
    /// Stores of this user.
    Stores(Vec<NamedStore>),
}

/// Which executions.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The filters; their limit and page are set here.
    pub query: ListQuery,
    /// At most so many; absent: all.
    pub limit: Option<usize>,
}

impl Wanted {
    /// What a command line asks for.
    pub fn of(args: &ListArgs) -> Wanted {
        Wanted { query: args.filter.query(), limit: args.limit.map(|limit| limit as usize) }
    }
}

#[derive(Deserialize)]
struct Page {
    executions: Vec<Box<RawValue>>,
    next_before: Option<String>,
}

#[derive(Deserialize)]
struct EventPage {
    events: Vec<Box<RawValue>>,
    next_after: Option<i64>,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

impl Source {
    /// The server if one is named, else the stores.
    pub async fn open(flags: &SourceFlags) -> Result<Source, Failure> {
        match &flags.server.url {
            Some(url) => {
                let address = Address::parse(url)?;
                let own = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
                let bearer = match own {
                    Some(token) => Some(token),
                    None => address.local_token(&flags.configuration.load(|_| {})?.data_dir),
                };
                Ok(Source::Server(Client::new(address, bearer)?))
            }
            None => Ok(Source::Stores(stores::for_reading(&flags.configuration).await?)),
        }
    }

    /// Closes what was opened.
    pub async fn close(self) {
        if let Source::Stores(stores) = self {
            for named in stores {
                named.store.close().await;
            }
        }
    }

    /// Executions as JSON, newest first.
    pub async fn list(&self, wanted: &Wanted) -> Result<Vec<String>, Failure> {
        match self {
            Source::Server(client) => list_server(client, wanted).await,
            Source::Stores(stores) => {
                let mut rows: Vec<(ExecutionId, String)> = Vec::new();
                for named in stores {
                    for head in list_store(named, wanted).await? {
                        rows.push((head.id(), text(&ExecutionView::of(&head))?));
                    }
                }
                // Ids grow with time; one store is in order already.
                rows.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
                rows.truncate(wanted.limit.unwrap_or(usize::MAX));
                Ok(rows.into_iter().map(|(_, row)| row).collect())
            }
        }
    }

    /// The one execution whose id starts with this text. Errors: none, or more than one.
    pub async fn find(&self, start: &str) -> Result<ExecutionId, Failure> {
        let start = start.to_ascii_lowercase();
        if start.is_empty() || !start.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
            return Err(Failure::usage("this is no execution id").next("`durable-mcp executions list` shows the ids"));
        }
        let query = ListQuery { id_prefix: Some(start.clone()), ..ListQuery::default() };
        let rows = self.list(&Wanted { query, limit: Some(5) }).await?;
        let ids: BTreeSet<String> =
            rows.iter().filter_map(|row| serde_json::from_str::<Id>(row).ok()).map(|row| row.id).collect();
        let mut ids = ids.into_iter();
        match (ids.next(), ids.next()) {
            (Some(id), None) => id.parse().map_err(|_| Failure::new(Exit::Failure, "the server sent no execution id")),
            (Some(one), Some(two)) => {
                let error = format!("more than one execution starts with {start}: {one}, {two}, …");
                Err(Failure::usage(error).next("give more of the id"))
            }
            (None, _) => Err(Failure::new(Exit::NotFound, format!("there is no execution {start}"))
                .next("`durable-mcp executions list` shows those that you may see")),
        }
    }

    /// One execution as JSON.
    pub async fn show(&self, id: ExecutionId) -> Result<String, Failure> {
        match self {
            Source::Server(client) => client.get(&format!("/api/v1/executions/{id}"), &[]).await,
            Source::Stores(stores) => text(&ExecutionView::of(&head_of(stores, id).await?.1)),
        }
    }

    /// Every event of an execution as JSON, in order.
    pub async fn events(&self, id: ExecutionId) -> Result<Vec<String>, Failure> {
        let mut events = Vec::new();
        let mut after = 0;
        match self {
            Source::Server(client) => loop {
                let body =
                    client.get(&format!("/api/v1/executions/{id}/events"), &[("after", after.to_string())]).await?;
                let page: EventPage = serde_json::from_str(&body).map_err(|_| foreign())?;
                events.extend(page.events.iter().map(|event| event.get().to_owned()));
                match page.next_after.filter(|next| *next > after) {
                    Some(next) => after = next,
                    None => return Ok(events),
                }
            },
            Source::Stores(stores) => {
                let (named, _) = head_of(stores, id).await?;
                loop {
                    let page = named.store.events(id, after, PAGE).await?;
                    for record in &page {
                        events.push(text(&EventView::of(record))?);
                        after = record.seq;
                    }
                    if page.len() < PAGE {
                        return Ok(events);
                    }
                }
            }
        }
    }

    /// Why an execution stands where it stands, as JSON.
    pub async fn why(&self, id: ExecutionId) -> Result<String, Failure> {
        match self {
            Source::Server(client) => client.get(&format!("/api/v1/executions/{id}/why"), &[]).await,
            Source::Stores(stores) => {
                let (named, head) = head_of(stores, id).await?;
                text(&why(&head, &changes::events(&*named.store, id, 0).await?))
            }
        }
    }

    /// What became of an execution, as JSON.
    pub async fn result(&self, id: ExecutionId) -> Result<String, Failure> {
        match self {
            Source::Server(client) => client.get(&format!("/api/v1/executions/{id}/result"), &[]).await,
            Source::Stores(stores) => {
                let (named, head) = head_of(stores, id).await?;
                let payload = match ResultView::payload_kind(head.state) {
                    Some(kind) => named.store.payload(id, kind).await?,
                    None => None,
                };
                let view = ResultView::of(&head, payload.as_ref())
                    .map_err(|_| Failure::new(Exit::Failure, format!("the stored result of {id} is no JSON")))?;
                text(&view)
            }
        }
    }
}

async fn list_server(client: &Client, wanted: &Wanted) -> Result<Vec<String>, Failure> {
    let filters = filters(&wanted.query);
    let limit = wanted.limit.unwrap_or(usize::MAX);
    let (mut rows, mut before) = (Vec::new(), None);
    while rows.len() < limit {
        let mut page = filters.clone();
        page.push(("limit", PAGE.min(limit - rows.len()).to_string()));
        page.extend(before.map(|id| ("before", id)));
        let body = client.get("/api/v1/executions", &page).await?;
        let page: Page = serde_json::from_str(&body).map_err(|_| foreign())?;
        rows.extend(page.executions.iter().map(|row| row.get().to_owned()));
        before = page.next_before.filter(|_| !page.executions.is_empty());
        if before.is_none() {
            break;
        }
    }
    Ok(rows)
}

/// The filters as parameters.
fn filters(query: &ListQuery) -> Vec<(&'static str, String)> {
    let mut filters: Vec<(&str, String)> = Vec::new();
    filters.extend(query.states.iter().map(|state| ("state", state.as_str().to_owned())));
    let given = [
        ("tool", query.tool.clone()),
        ("upstream", query.upstream.clone()),
        ("namespace", query.namespace.clone()),
        ("principal", query.principal.clone()),
        ("key", query.key.clone()),
        ("id_prefix", query.id_prefix.clone()),
        ("error_code", query.error_code.clone()),
        ("attempts_over", query.attempts_over.map(|number| number.to_string())),
        ("since", query.since_ms.map(|at_ms| Time(at_ms).to_string())),
        ("until", query.until_ms.map(|at_ms| Time(at_ms).to_string())),
        ("recovered", query.recovered.then(|| "true".to_owned())),
    ];
    filters.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
    filters
}

async fn list_store(named: &NamedStore, wanted: &Wanted) -> Result<Vec<Head>, Failure> {
    let limit = wanted.limit.unwrap_or(usize::MAX);
    let (mut heads, mut before) = (Vec::<Head>::new(), None);
    loop {
        let page = PAGE.min(limit - heads.len());
        let query = ListQuery { before, limit: page, ..wanted.query.clone() };
        let found = named.store.list(query).await?;
        let full = found.len() >= page;
        heads.extend(found);
        before = heads.last().map(Head::id);
        if !full || heads.len() >= limit {
            return Ok(heads);
        }
    }
}

async fn head_of(stores: &[NamedStore], id: ExecutionId) -> Result<(&NamedStore, Head), Failure> {
    for named in stores {
        if let Some(head) = named.store.heads(&[id]).await?.pop() {
            return Ok((named, head));
        }
    }
    Err(Failure::new(Exit::NotFound, format!("there is no execution {id}")))
}

fn text(view: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(view).map_err(|error| Failure::new(Exit::Failure, error.to_string()))
}

fn foreign() -> Failure {
    Failure::new(Exit::Failure, "the server's answer is not that of a durable-mcp server")
        .next("check the address given with --url")
}

//! Orders of operators, given to a running server or carried out on the stores: there through an engine of this process,
//! whose writes the processes that run notice by looking.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Source, filters, foreign, head_of};
use crate::cli::client::Client;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stores::NamedStore;
use crate::engine::bulk::{self, MATCHING_MAX, Outcome};
use crate::engine::clock::Clock;
use crate::engine::operate::{Action, Resolution};
use crate::engine::{self, Engine, Settings};
use crate::http::auth::OPERATOR;
use crate::model::event::Order;
use crate::model::id::ExecutionId;
use crate::store::ListQuery;

/// What became of an order for one execution.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OrderDone")]
pub struct Done {
    /// Which.
    pub id: String,
    /// It was carried out, now or before.
    pub ok: bool,
    /// Where it stands; for a retry of one that had ended, the new one.
    pub state: Option<String>,
    /// The execution that runs in its place.
    pub retried_as: Option<String>,
    /// Why not: the stable name.
    pub code: Option<String>,
    /// Why not: one sentence.
    pub detail: Option<String>,
}

impl Done {
    fn of(outcome: Outcome) -> Done {
        let Outcome { id, ok, state, retried_as, code, detail } = outcome;
        Done { id, ok, state: state.map(str::to_owned), retried_as, code: code.map(str::to_owned), detail }
    }
}

/// What filters find.
#[derive(Debug)]
pub struct Found {
    /// How many.
    pub matching: usize,
    /// There are more than one order may concern.
    pub more: bool,
    /// The first of them, newest first.
    pub ids: Vec<String>,
}

/// Ids of a preview.
const SHOWN: usize = 20;

#[derive(Deserialize)]
struct Answer {
    execution: Execution,
}

#[derive(Deserialize)]
struct Execution {
    id: String,
    state: String,
}

#[derive(Deserialize)]
struct BulkDone {
    matching: usize,
    more: bool,
    #[serde(default)]
    ids: Vec<String>,
    #[serde(default)]
    outcomes: Vec<Done>,
}

impl Source {
    /// Gives an order for one execution.
    pub async fn act(&self, id: ExecutionId, action: &Action, reason: &str) -> Result<Done, Failure> {
        match self {
            Source::Server(client) => {
                let path = format!("/api/v1/executions/{id}/{}", action.verb());
                let answer = client.post_json(&path, json_text(&order(action, reason))?).await?;
                let answer: Answer = serde_json::from_str(&answer).map_err(|_| foreign())?;
                let retried_as = Some(answer.execution.id).filter(|new| *new != id.to_string());
                let state = Some(answer.execution.state);
                Ok(Done { id: id.to_string(), ok: true, state, retried_as, code: None, detail: None })
            }
            Source::Stores(stores) => {
                let (named, _) = head_of(stores, id).await?;
                let engine = open(named).await?;
                let acted = engine.act(id, action, by(reason)).await;
                engine.close(Duration::ZERO).await;
                Ok(Done::of(Outcome::of(id, Ok(acted.map_err(refused)?))))
            }
        }
    }

    /// Counts what the filters find and the action can do something with.
    pub async fn preview(&self, filter: &ListQuery, action: &Action) -> Result<Found, Failure> {
        match self {
            Source::Server(client) => {
                let body = Body { preview: true, ..order(action, "") };
                let done = bulk_order(client, body, (filter, action)).await?;
                Ok(Found { matching: done.matching, more: done.more, ids: done.ids })
            }
            Source::Stores(stores) => {
                let (mut ids, mut more) = (Vec::new(), false);
                for named in stores {
                    let found = bulk::matching(&*named.store, action, filter.clone()).await?;
                    ids.extend(found.ids);
                    more |= found.more;
                }
                ids.sort_by(|left, right| right.cmp(left));
                let matching = ids.len();
                let ids = ids.iter().take(SHOWN).map(ToString::to_string).collect();
                Ok(Found { matching, more: more || matching > MATCHING_MAX, ids })
            }
        }
    }

    /// Gives an order for everything the filters find, if that are as many as a preview found.
    pub async fn act_on_all(
        &self,
        filter: &ListQuery,
        action: &Action,
        (reason, expected): (&str, usize),
    ) -> Result<Vec<Done>, Failure> {
        match self {
            Source::Server(client) => {
                let body = Body { expected: Some(expected), ..order(action, reason) };
                Ok(bulk_order(client, body, (filter, action)).await?.outcomes)
            }
            Source::Stores(stores) => {
                let mut found = Vec::new();
                for named in stores {
                    found.push((named, bulk::matching(&*named.store, action, filter.clone()).await?.ids));
                }
                let now: usize = found.iter().map(|(_, ids)| ids.len()).sum();
                if now != expected {
                    let error = format!("the filters find {now} executions now, not {expected}");
                    return Err(Failure::new(Exit::Conflict, error).next("look again"));
                }
                let mut outcomes = Vec::new();
                for (named, ids) in found.into_iter().filter(|(_, ids)| !ids.is_empty()) {
                    let engine = open(named).await?;
                    let done = bulk::act(&engine, ids, action.clone(), by(reason)).await;
                    engine.close(Duration::ZERO).await;
                    outcomes.extend(done.into_iter().map(Done::of));
                }
                Ok(outcomes)
            }
        }
    }
}

async fn bulk_order(
    client: &Client,
    body: Body<'_>,
    (filter, action): (&ListQuery, &Action),
) -> Result<BulkDone, Failure> {
    let body = Body { action: Some(action.verb()), filter: Some(filter_body(filter)), ..body };
    let answer = client.post_json("/api/v1/executions/actions", json_text(&body)?).await?;
    serde_json::from_str(&answer).map_err(|_| foreign())
}

/// The filters as a body has them.
fn filter_body(query: &ListQuery) -> Value {
    let mut body = json!({});
    for (name, value) in filters(query).into_iter().filter(|(name, _)| *name != "state") {
        body[name] = match name {
            "attempts_over" => json!(query.attempts_over),
            "recovered" => json!(true),
            _ => json!(value),
        };
    }
    if !query.states.is_empty() {
        body["state"] = query.states.iter().map(|state| state.as_str()).collect();
    }
    body
}

/// The body of an order. A result stays as it was typed.
#[derive(Default, Serialize)]
struct Body<'a> {
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    preview: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<usize>,
}

fn order<'a>(action: &Action, reason: &'a str) -> Body<'a> {
    let (outcome, result) = match action {
        // It was JSON when the command line was read.
        Action::Resolve(Resolution::Completed { result, .. }) => {
            (Some("completed"), RawValue::from_string(result.to_string()).ok())
        }
        Action::Resolve(Resolution::Failed) => (Some("failed"), None),
        Action::Cancel | Action::Retry => (None, None),
    };
    Body { reason, outcome, result, ..Body::default() }
}

fn json_text(body: &Body<'_>) -> Result<String, Failure> {
    serde_json::to_string(body).map_err(|error| Failure::new(Exit::Failure, error.to_string()))
}

fn by(reason: &str) -> Order {
    Order { principal: OPERATOR.to_owned(), reason: reason.trim().to_owned() }
}

/// An engine that runs nothing and settles nothing: it only writes what is ordered.
async fn open(named: &NamedStore) -> Result<Arc<Engine>, Failure> {
    Engine::open(named.store.clone(), Clock::System, Settings::default(), &[]).await.map_err(refused)
}

fn refused(error: engine::Error) -> Failure {
    match &error {
        engine::Error::NotFound(_) => Failure::new(Exit::NotFound, error.to_string()),
        engine::Error::Store(_) => Failure::new(Exit::Failure, error.to_string()),
        _ => Failure::new(Exit::Conflict, error.to_string())
            .next("`durable-mcp executions why ID` says what can be done"),
    }
}

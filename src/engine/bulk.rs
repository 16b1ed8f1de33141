//! One order for many executions: which ones a filter finds that the order can do something with, and what became of each.
//! Knows no caller; the filter comes bounded.

use std::sync::Arc;

use futures_util::StreamExt;
use serde::Serialize;
use utoipa::ToSchema;

use super::operate::{Acted, Action};
use super::{Engine, Result};
use crate::model::event::Order;
use crate::model::id::ExecutionId;
use crate::store::{self, ListQuery, Store};

/// Executions that one order may concern.
pub const MATCHING_MAX: usize = 1_000;
/// Orders on their way into the store at once.
const AT_ONCE: usize = 32;

/// What a filter finds, newest first.
#[derive(Debug, Default)]
pub struct Matching {
    /// At most [`MATCHING_MAX`].
    pub ids: Vec<ExecutionId>,
    /// There are more.
    pub more: bool,
}

/// What became of one execution of many.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = BulkOutcome)]
pub struct Outcome {
    /// Which.
    pub id: String,
    /// The order was carried out, now or before.
    pub ok: bool,
    /// Where it stands; for a retry of one that had ended, the new one.
    pub state: Option<&'static str>,
    /// The execution that runs in its place.
    pub retried_as: Option<String>,
    /// Why not: the stable name.
    pub code: Option<&'static str>,
    /// Why not: one sentence.
    pub detail: Option<String>,
}

/// The executions that a filter finds and the action can do something with.
pub async fn matching(store: &dyn Store, action: &Action, filter: ListQuery) -> store::Result<Matching> {
    let wanted = |state| filter.states.is_empty() || filter.states.contains(state);
    let states: Vec<_> = action.states().iter().filter(|state| wanted(state)).copied().collect();
    if states.is_empty() {
        return Ok(Matching::default());
    }
    let heads = store.list(ListQuery { states, before: None, limit: MATCHING_MAX + 1, ..filter }).await?;
    let more = heads.len() > MATCHING_MAX;
    Ok(Matching { ids: heads.iter().take(MATCHING_MAX).map(|head| head.id()).collect(), more })
}

/// Gives the order for each, in the order of `ids`.
pub async fn act(engine: &Arc<Engine>, ids: Vec<ExecutionId>, action: Action, by: Order) -> Vec<Outcome> {
    let acting = |id| {
        let (engine, action, by) = (engine.clone(), action.clone(), by.clone());
        async move { Outcome::of(id, engine.act(id, &action, by).await) }
    };
    let all = futures_util::stream::iter(ids).map(acting).buffered(AT_ONCE).collect::<Vec<_>>();
    all.await
}

impl Outcome {
    /// What a verb answered about `id`.
    pub fn of(id: ExecutionId, acted: Result<Acted>) -> Outcome {
        let mut outcome =
            Outcome { id: id.to_string(), ok: acted.is_ok(), state: None, retried_as: None, code: None, detail: None };
        match acted {
            Ok(Acted { head, .. }) => {
                outcome.state = Some(head.state.as_str());
                outcome.retried_as = (head.id() != id).then(|| head.id().to_string());
            }
            Err(error) => {
                outcome.code = Some(error.code());
                // What the store says may name files of ours.
                outcome.detail = Some(match &error {
                    super::Error::Store(_) => "the store can not answer now".to_owned(),
                    error => error.to_string(),
                });
            }
        }
        outcome
    }
}

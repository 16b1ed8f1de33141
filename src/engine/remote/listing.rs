//! Workers as people and programs see them, local and remote, from the store alone. Changes nothing.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::peers::Offered;
use crate::engine::view::Time;
use crate::model::execution::State;
use crate::model::id::ProcessId;
use crate::store::{ListQuery, Result, Store, WorkerRow};

/// A worker. Every member is always there; `null` says that it does not apply.
#[derive(Clone, Debug, Serialize, ToSchema, JsonSchema)]
#[schemars(rename = "Worker")]
pub struct WorkerView {
    /// The id; leases carry it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `local`: inside a process of ours; `remote`: it speaks the worker protocol.
    pub kind: &'static str,
    /// `running`, `draining` or `gone`.
    pub state: &'static str,
    /// The tenant border it serves; a local worker serves every one.
    pub namespace: Option<String>,
    /// Who registered it.
    pub principal: Option<String>,
    /// Calls it runs at once.
    pub slots: u32,
    /// Calls it has now.
    pub leased: usize,
    /// The names of a remote worker's tools.
    pub tools: Vec<String>,
    /// What a process of ours does: `mcp`, `worker`, `scheduler`.
    pub roles: Option<Vec<String>>,
    /// The upstreams that a process of ours runs.
    pub upstreams: Option<Vec<String>>,
    /// What it is made with.
    pub sdk: Option<String>,
    /// When it registered last.
    pub registered_at: Time,
    /// When something was heard of it; some seconds behind.
    pub last_seen_at: Option<Time>,
    /// When it ended, or was found dead.
    pub gone_at: Option<Time>,
    /// It is that of a `wrap`.
    #[serde(skip)]
    pub(super) bound: bool,
}

/// Leases that are counted at most.
const COUNTED_MAX: usize = 100_000;

/// Workers whose rows are there, with what they have now: living ones first, then by name. `namespace` bounds remote
/// ones.
pub async fn workers(store: &dyn Store, namespace: Option<&str>) -> Result<Vec<WorkerView>> {
    let rows = store.workers(None).await?.map(|seen| seen.rows).unwrap_or_default();
    let query = ListQuery { states: vec![State::Leased], limit: COUNTED_MAX, ..ListQuery::default() };
    let mut leased: HashMap<ProcessId, usize> = HashMap::new();
    for head in store.list(query).await? {
        if let Some(lease) = head.lease {
            *leased.entry(lease.process).or_default() += 1;
        }
    }
    let visible = |row: &WorkerRow| is_local(row) || namespace.is_none_or(|namespace| row.namespace == namespace);
    let mut views: Vec<WorkerView> = rows
        .iter()
        .filter(|row| visible(row))
        .map(|row| view(row, leased.get(&row.id).copied().unwrap_or_default()))
        .collect();
    views.sort_by(|one, two| {
        (one.gone_at.is_some(), &one.name, &one.id).cmp(&(two.gone_at.is_some(), &two.name, &two.id))
    });
    Ok(views)
}

/// The view of a row.
pub fn view(row: &WorkerRow, leased: usize) -> WorkerView {
    let remote = !is_local(row);
    let tools: Vec<super::Registered> = match remote {
        true => serde_json::from_str(&row.tools).unwrap_or_default(),
        false => Vec::new(),
    };
    let offered = if remote { None } else { Offered::read(row) };
    let bound = offered.as_ref().is_some_and(|offered| offered.bound);
    WorkerView {
        id: row.id.to_string(),
        name: row.name.clone(),
        kind: row.kind.as_str(),
        state: match (row.gone_at_ms, row.draining) {
            (Some(_), _) => "gone",
            (None, true) => "draining",
            (None, false) => "running",
        },
        namespace: remote.then(|| row.namespace.clone()),
        principal: remote.then(|| row.principal.clone()),
        slots: row.slots,
        leased,
        tools: tools.into_iter().map(|tool| tool.name).collect(),
        roles: offered.as_ref().map(|offered| offered.roles.clone()),
        upstreams: offered.map(|offered| offered.upstreams),
        sdk: row.sdk.clone(),
        registered_at: Time(row.registered_at_ms),
        last_seen_at: (!bound).then_some(Time(row.last_seen_at_ms)),
        gone_at: row.gone_at_ms.map(Time),
        bound,
    }
}

fn is_local(row: &WorkerRow) -> bool {
    row.kind == crate::store::WorkerKind::Local
}

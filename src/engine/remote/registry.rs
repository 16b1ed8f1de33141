//! The remote workers that this process knows, as the store has them, and the tools they offer. Reads the table only
//! when it changed; a sign of life is written at most once in a part of the lease's time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::engine::slots::UpstreamLimits;
use crate::engine::{Engine, entropy};
use crate::model::execution::State;
use crate::model::id::ProcessId;
use crate::model::policy::Delivery;
use crate::model::principal::{DEFAULT_NAMESPACE, Principal};
use crate::store::{LeaseKey, ListQuery, WorkerChange, WorkerKind, WorkerRow};

use super::Refused;

/// A tool as a worker registered it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Registered {
    /// Its name.
    pub name: String,
    /// The MCP tool object, without what is ours.
    pub definition: Box<RawValue>,
    /// The worker's word on delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// The longest attempt, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// Attempts in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
}

/// A registration.
#[derive(Clone, Debug)]
pub struct Registration {
    /// The id that the worker made for itself.
    pub id: ProcessId,
    /// Its name, for people.
    pub name: String,
    /// Calls it runs at once.
    pub slots: u32,
    /// What it is made with.
    pub sdk: Option<String>,
    /// Its tools.
    pub tools: Vec<Registered>,
}

/// A registered worker.
#[derive(Debug)]
pub struct RemoteWorker {
    /// Its row.
    pub row: WorkerRow,
    /// Its tools.
    pub tools: Vec<Registered>,
}

impl RemoteWorker {
    /// The lanes of its tools, or of those of them that are named.
    pub fn lanes(&self, named: Option<&[String]>) -> Vec<String> {
        let wanted = |tool: &&Registered| named.is_none_or(|names| names.contains(&tool.name));
        self.tools.iter().filter(wanted).map(|tool| lane(&self.row.namespace, &tool.name)).collect()
    }
}

/// A tool of remote workers as it is to be offered.
#[derive(Clone, Debug)]
pub struct RemoteTool {
    /// Whose callers may call it.
    pub namespace: String,
    /// What stands for it as an upstream.
    pub lane: String,
    /// The newest registration.
    pub tool: Registered,
}

/// Brings the tools of remote workers to the catalog. The worker floor implements it.
pub trait ToolOffers: Send + Sync {
    /// Offers these, and no others any more.
    fn offer(&self, tools: &[RemoteTool]);
}

/// The upstream name of a tool of remote workers. No namespace has a dot, so a name stands for one tool only.
pub fn lane(namespace: &str, tool: &str) -> String {
    match namespace {
        DEFAULT_NAMESPACE => format!("workers.{tool}"),
        namespace => format!("workers/{namespace}.{tool}"),
    }
}

/// True for the upstream name of a tool of remote workers.
pub fn is_lane(upstream: &str) -> bool {
    upstream.starts_with("workers.") || upstream.starts_with("workers/")
}

/// How busy a tool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Calls that wait, for a worker or for their time.
    pub queued: usize,
    /// Calls that a worker has.
    pub leased: usize,
    /// Living workers that registered it.
    pub workers: usize,
}

/// Calls that are counted at most.
const COUNTED_MAX: usize = 100_000;

/// How the engine works with remote workers. Durations in milliseconds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Workers that may be registered at once.
    pub workers_max: usize,
    /// Calls that one claim gets at most.
    pub claim_max: usize,
    /// How long a claim waits at most; a short lease bounds it further.
    pub claim_wait_max_ms: i64,
    /// How long a call waits for the next claim of a worker that is at work: less than a commit takes on most disks, and
    /// it saves one.
    pub claim_moment_ms: u64,
    /// Steps that an execution may have.
    pub steps_max: usize,
    /// How many calls of a tool wait, and for how long.
    pub queue: UpstreamLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers_max: 1_000,
            claim_max: 64,
            claim_wait_max_ms: 30_000,
            claim_moment_ms: 3,
            steps_max: 1_000,
            queue: UpstreamLimits::default(),
        }
    }
}

/// What this process knows.
#[derive(Default)]
pub struct Registry {
    picture: RwLock<Picture>,
    reading: tokio::sync::Mutex<()>,
    /// When a sign of life was written last.
    seen: Mutex<HashMap<ProcessId, i64>>,
    offered: Mutex<Vec<(String, u64)>>,
    offers: OnceLock<Arc<dyn ToolOffers>>,
    /// Told when the picture changed.
    pub(super) changed: Notify,
    /// Told when another process changed something of workers, or for them.
    pub(in crate::engine) heard: Notify,
}

#[derive(Default)]
struct Picture {
    change: Option<i64>,
    workers: HashMap<ProcessId, Arc<RemoteWorker>>,
}

impl Registry {
    fn find(&self, id: ProcessId) -> Option<Arc<RemoteWorker>> {
        self.picture.read().unwrap_or_else(PoisonError::into_inner).workers.get(&id).cloned()
    }

    fn all(&self) -> Vec<Arc<RemoteWorker>> {
        self.picture.read().unwrap_or_else(PoisonError::into_inner).workers.values().cloned().collect()
    }

    /// True when a living worker registered the tool of this lane.
    pub(in crate::engine) fn runs(&self, upstream: &str) -> bool {
        let living = self.all().into_iter().filter(|worker| worker.row.gone_at_ms.is_none());
        living.into_iter().any(|worker| worker.lanes(None).iter().any(|lane| lane == upstream))
    }

    fn known_change(&self) -> Option<i64> {
        self.picture.read().unwrap_or_else(PoisonError::into_inner).change
    }

    /// True when a sign of life is due to be written; then it counts as written.
    fn note_seen(&self, id: ProcessId, now_ms: i64, gap_ms: i64) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let due = seen.get(&id).is_none_or(|at_ms| now_ms - at_ms >= gap_ms || now_ms < *at_ms);
        if due {
            seen.insert(id, now_ms);
        }
        due
    }
}

impl Engine {
    /// Names who offers the tools of remote workers. Once.
    pub fn attach_offers(&self, offers: Arc<dyn ToolOffers>) {
        // A second one in one process would be a wiring fault; the first one stays.
        let _ = self.remote.offers.set(offers);
    }

    /// A worker registers, again or for the first time. Its tools can be called when this returns.
    pub async fn register_worker(
        self: &Arc<Self>,
        principal: &Principal,
        registration: Registration,
    ) -> Result<Arc<RemoteWorker>, Refused> {
        if self.draining.is_cancelled() {
            return Err(Refused::Draining);
        }
        self.refresh_workers().await?;
        let known = self.remote.find(registration.id);
        let living = self.remote.all().iter().filter(|worker| worker.row.gone_at_ms.is_none()).count();
        let max = self.settings.remote.workers_max;
        if known.is_none_or(|worker| worker.row.gone_at_ms.is_some()) && living >= max {
            return Err(Refused::TooManyWorkers(max));
        }
        let listing = self.catalog.listing();
        for tool in &registration.tools {
            let holder = listing.find(&tool.name, &principal.namespace);
            if tool.name.starts_with("durable_") || holder.is_some_and(|tool| !is_lane(&tool.upstream)) {
                return Err(Refused::ToolNameTaken(tool.name.clone()));
            }
        }
        let now_ms = self.now_ms();
        let tools = serde_json::to_string(&registration.tools)
            .map_err(|error| crate::store::Error::Internal(format!("a registration has no JSON: {error}")))?;
        let row = WorkerRow {
            id: registration.id,
            name: registration.name,
            namespace: principal.namespace.clone(),
            principal: principal.subject.clone(),
            kind: WorkerKind::Remote,
            slots: registration.slots,
            sdk: registration.sdk,
            tools: tools.into(),
            lease_key: new_key(),
            registered_at_ms: now_ms,
            last_seen_at_ms: now_ms,
            silent_at_ms: self.silent_at_ms(now_ms),
            draining: false,
            gone_at_ms: None,
        };
        self.remote.note_seen(row.id, now_ms, 0);
        let id = row.id;
        self.store.put_worker(row).await?.ok_or(Refused::WorkerForeign)?;
        self.refresh_workers().await?;
        self.remote.find(id).ok_or(Refused::WorkerUnknown)
    }

    /// The living worker of this id, if it is this principal's. Counts as a sign of life.
    pub async fn remote_worker(
        self: &Arc<Self>,
        id: ProcessId,
        principal: &Principal,
    ) -> Result<Arc<RemoteWorker>, Refused> {
        let worker = self.remote_worker_or_late(id, principal).await?;
        if worker.row.gone_at_ms.is_some() {
            return Err(Refused::WorkerUnknown);
        }
        self.saw_worker(id);
        Ok(worker)
    }

    /// The same, also when it is gone: evidence of a lease that nobody had after it still counts.
    pub async fn remote_worker_or_late(
        self: &Arc<Self>,
        id: ProcessId,
        principal: &Principal,
    ) -> Result<Arc<RemoteWorker>, Refused> {
        let known = self.remote.find(id).filter(|worker| worker.row.gone_at_ms.is_none());
        let worker = match known {
            Some(worker) => worker,
            None => {
                // It may have registered at another process a moment ago.
                self.refresh_workers().await?;
                self.remote.find(id).ok_or(Refused::WorkerUnknown)?
            }
        };
        if worker.row.principal != principal.subject || worker.row.namespace != principal.namespace {
            return Err(Refused::WorkerForeign);
        }
        Ok(worker)
    }

    /// Something was heard of a worker. Written beside the request, and not each time.
    pub(super) fn saw_worker(self: &Arc<Self>, id: ProcessId) {
        let now_ms = self.now_ms();
        if !self.remote.note_seen(id, now_ms, self.seen_gap_ms()) {
            return;
        }
        let engine = self.clone();
        self.spawn(async move { engine.note_alive(id).await });
    }

    /// Writes that something was heard of a worker.
    pub(in crate::engine) async fn note_alive(&self, id: ProcessId) {
        let now_ms = self.now_ms();
        let change = WorkerChange::Seen { silent_at_ms: self.silent_at_ms(now_ms) };
        if let Err(error) = self.store.change_workers(vec![id], change, now_ms).await {
            tracing::warn!(worker = %id, code = error.code(), "a sign of life could not be stored: {error}");
        }
    }

    /// Signs of life are written at most so often.
    pub(super) fn seen_gap_ms(&self) -> i64 {
        self.settings.lease_ttl_ms / 6
    }

    /// When a worker heard of now counts as dead: after the lease's time, and what the writing may be behind.
    fn silent_at_ms(&self, now_ms: i64) -> i64 {
        now_ms + self.settings.lease_ttl_ms + self.seen_gap_ms()
    }

    /// True when the worker was asked to finish what it has and to end, or ended.
    pub fn is_drained(&self, worker: &RemoteWorker) -> bool {
        self.remote.find(worker.row.id).is_none_or(|now| now.row.draining || now.row.gone_at_ms.is_some())
    }

    /// False once the worker registered again, was drained, or is gone: its claims begin anew.
    pub(super) fn is_current(&self, worker: &RemoteWorker) -> bool {
        let now = self.remote.find(worker.row.id).filter(|now| now.row.registered_at_ms == worker.row.registered_at_ms);
        now.is_some_and(|now| !now.row.draining && now.row.gone_at_ms.is_none())
    }

    /// How busy a tool of remote workers is.
    pub async fn remote_counts(&self, namespace: &str, tool: &str) -> Result<Counts, Refused> {
        let upstream = Some(lane(namespace, tool));
        let states = vec![State::Ready, State::Scheduled, State::Leased];
        let query = ListQuery { upstream, states, limit: COUNTED_MAX, ..ListQuery::default() };
        let heads = self.store.list(query).await?;
        let leased = heads.iter().filter(|head| head.state == State::Leased).count();
        let has = |worker: &&Arc<RemoteWorker>| {
            worker.row.gone_at_ms.is_none()
                && worker.row.namespace == namespace
                && worker.tools.iter().any(|registered| registered.name == tool)
        };
        let workers = self.remote.all().iter().filter(has).count();
        Ok(Counts { queued: heads.len() - leased, leased, workers })
    }

    /// A worker ends: its tools go, and what it holds is settled as lost.
    pub async fn deregister_worker(self: &Arc<Self>, worker: &RemoteWorker) -> Result<(), Refused> {
        self.store.change_workers(vec![worker.row.id], WorkerChange::Gone, self.now_ms()).await?;
        self.refresh_workers().await?;
        self.scheduler_due.notify_one();
        Ok(())
    }

    /// Reads the workers again when something changed, and offers their tools.
    pub async fn refresh_workers(&self) -> crate::engine::Result<()> {
        let _one = self.remote.reading.lock().await;
        if let Some(seen) = self.store.workers(self.remote.known_change()).await? {
            self.know_peers(&seen.rows).await?;
            let remote = seen.rows.into_iter().filter(|row| row.kind == WorkerKind::Remote);
            let workers = remote.map(|row| (row.id, Arc::new(read(row)))).collect();
            let picture = Picture { change: Some(seen.change), workers };
            *self.remote.picture.write().unwrap_or_else(PoisonError::into_inner) = picture;
            self.remote.changed.notify_waiters();
        }
        self.offer_remote_tools();
        Ok(())
    }

    /// Offers the tools of living workers, and of those that died less than a lease's time ago.
    fn offer_remote_tools(&self) {
        let now_ms = self.now_ms();
        let mut newest: BTreeMap<String, (i64, ProcessId, RemoteTool)> = BTreeMap::new();
        for worker in self.remote.all() {
            let row = &worker.row;
            if row.gone_at_ms.is_some_and(|at_ms| at_ms + self.settings.lease_ttl_ms <= now_ms) {
                continue;
            }
            for tool in &worker.tools {
                let lane = lane(&row.namespace, &tool.name);
                let offer = RemoteTool { namespace: row.namespace.clone(), lane: lane.clone(), tool: tool.clone() };
                let entry = (row.registered_at_ms, row.id, offer);
                match newest.get(&lane) {
                    Some((at_ms, id, _)) if (*at_ms, *id) >= (entry.0, entry.1) => {}
                    _ => drop(newest.insert(lane, entry)),
                }
            }
        }
        let picture: Vec<(String, u64)> =
            newest.iter().map(|(lane, (_, _, offer))| (lane.clone(), fingerprint(&offer.tool))).collect();
        let mut offered = self.remote.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if *offered == picture {
            return;
        }
        *offered = picture;
        let tools: Vec<RemoteTool> = newest.into_values().map(|(_, _, offer)| offer).collect();
        for offer in &tools {
            self.slots.open_claims(&offer.lane, self.settings.remote.queue);
        }
        if let Some(offers) = self.remote.offers.get() {
            offers.offer(&tools);
        }
    }
}

fn read(row: WorkerRow) -> RemoteWorker {
    let tools = serde_json::from_str(&row.tools).unwrap_or_else(|error| {
        tracing::warn!(worker = %row.id, "the tools of a worker can not be read: {error}");
        Vec::new()
    });
    RemoteWorker { row, tools }
}

/// Tells one registration of a tool from another.
fn fingerprint(tool: &Registered) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (&tool.name, tool.definition.get(), tool.delivery, tool.timeout_ms, tool.max_attempts).hash(&mut hasher);
    hasher.finish()
}

fn new_key() -> LeaseKey {
    let mut key = [0; 32];
    for chunk in key.chunks_mut(8) {
        chunk.copy_from_slice(&entropy()[..8]);
    }
    LeaseKey(key)
}

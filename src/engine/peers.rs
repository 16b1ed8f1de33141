//! The processes of ours that share the store: what each says of itself in its row, and what follows from the rows: which
//! upstreams are run anywhere, who else settles what is due, and whether this process was asked to rest. Knows them as the
//! store has them, a moment behind; decides nothing that a compare-and-set would not decide again.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::remote::is_lane;
use super::{Engine, Result, Roles};
use crate::model::execution::State;
use crate::model::id::{ExecutionId, ProcessId};
use crate::model::principal::DEFAULT_NAMESPACE;
use crate::store::{LeaseKey, ListQuery, WorkerChange, WorkerKind, WorkerRow};

/// Executions found `unknown` elsewhere that are looked at in one go.
const UNKNOWN_MAX: usize = 200;
/// The pause between two schedulers that woke for the same row, in milliseconds: the second one finds it settled.
const SPREAD_MS: i64 = 40;
/// The longest such pause.
const SPREAD_MAX_MS: i64 = 400;

/// What a process says of itself: the one object in the list of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Offered {
    /// What it does, by name.
    pub roles: Vec<String>,
    /// The upstreams that it runs.
    pub upstreams: Vec<String>,
    /// It fronts one server for one client and runs only what came to itself.
    #[serde(default)]
    pub bound: bool,
}

impl Offered {
    /// What a row says; `None` of a release that said nothing.
    pub fn read(row: &WorkerRow) -> Option<Offered> {
        let mut all: Vec<Offered> = serde_json::from_str(&row.tools).ok()?;
        all.pop()
    }
}

/// Another process, or this one.
#[derive(Clone, Debug)]
struct Peer {
    id: ProcessId,
    offered: Option<Offered>,
}

impl Peer {
    fn runs(&self, upstream: &str) -> bool {
        // Of a release that said nothing anything may be true.
        self.offered
            .as_ref()
            .is_none_or(|offered| !offered.bound && offered.upstreams.iter().any(|running| running == upstream))
    }

    fn schedules(&self) -> bool {
        self.offered.as_ref().is_none_or(|offered| offered.roles.iter().any(|role| role == SCHEDULER))
    }
}

const MCP: &str = "mcp";
const WORKER: &str = "worker";
const SCHEDULER: &str = "scheduler";

/// What this process knows of the others.
#[derive(Debug)]
pub struct Peers {
    own: OnceLock<Offered>,
    living: RwLock<Vec<Peer>>,
    /// Grows when the rows were read anew.
    read: watch::Sender<u64>,
    unknown_seen: std::sync::Mutex<HashSet<(ExecutionId, i64)>>,
}

impl Default for Peers {
    fn default() -> Peers {
        Peers {
            own: OnceLock::new(),
            living: RwLock::default(),
            read: watch::channel(0).0,
            unknown_seen: std::sync::Mutex::default(),
        }
    }
}

impl Peers {
    fn living(&self) -> Vec<Peer> {
        self.living.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Engine {
    /// Lists this process among the workers, with its roles and what it runs, until it ends. Once.
    pub async fn announce_process(self: Arc<Self>, roles: Roles, upstreams: Vec<String>) {
        let named = [(roles.mcp, MCP), (roles.worker, WORKER), (roles.scheduler, SCHEDULER)];
        let roles = named.into_iter().filter(|(has, _)| *has).map(|(_, name)| name.to_owned()).collect();
        // A second announcement would be a wiring fault; the first one stays.
        let _ = self.peers.own.set(Offered { roles, upstreams, bound: self.settings.bound });
        if let Err(error) = self.put_own_row().await {
            tracing::warn!(code = error.code(), "this process could not be listed among the workers: {error}");
        }
    }

    async fn put_own_row(&self) -> Result<()> {
        let Some(offered) = self.peers.own.get() else { return Ok(()) };
        let now_ms = self.now_ms();
        // Plain words always serialise.
        let tools = serde_json::to_string(&[offered]).unwrap_or_else(|_| "[]".to_owned());
        let row = WorkerRow {
            id: self.process,
            name: self.worker_name.clone(),
            namespace: DEFAULT_NAMESPACE.to_owned(),
            principal: String::new(),
            kind: WorkerKind::Local,
            slots: u32::try_from(self.settings.slots).unwrap_or(u32::MAX),
            sdk: Some(concat!("durable-mcp/", env!("CARGO_PKG_VERSION")).to_owned()),
            tools: tools.into(),
            // Its leases have no tokens that leave the process.
            lease_key: LeaseKey([0; 32]),
            registered_at_ms: now_ms,
            last_seen_at_ms: now_ms,
            silent_at_ms: 0,
            draining: self.slots.is_closed(),
            gone_at_ms: None,
        };
        self.store.put_worker(row).await?;
        Ok(())
    }

    /// Notes in the own row that this process lives: for people, who see when it was heard of last.
    pub(super) async fn note_own_life(&self) -> Result<()> {
        if self.settings.bound || self.peers.own.get().is_none() {
            return Ok(());
        }
        let change = WorkerChange::Seen { silent_at_ms: 0 };
        self.store.change_workers(vec![self.process], change, self.now_ms()).await?;
        Ok(())
    }

    /// Takes over what the rows say of the processes of ours.
    pub(super) async fn know_peers(&self, rows: &[WorkerRow]) -> Result<()> {
        let local = rows.iter().filter(|row| row.kind == WorkerKind::Local && row.gone_at_ms.is_none());
        let living = local.map(|row| Peer { id: row.id, offered: Offered::read(row) }).collect();
        *self.peers.living.write().unwrap_or_else(PoisonError::into_inner) = living;
        self.peers.read.send_modify(|read| *read += 1);
        // With others there is something to hear.
        self.waiters.look_again();
        if self.settings.bound || self.peers.own.get().is_none() || self.draining.is_cancelled() {
            return Ok(());
        }
        match rows.iter().find(|row| row.id == self.process) {
            Some(row) if row.gone_at_ms.is_none() => {
                if row.draining && !self.slots.is_closed() {
                    tracing::info!("this worker was asked to rest: it finishes what it has and leases nothing more");
                    self.slots.close();
                }
                Ok(())
            }
            // It stood still for so long that it was taken for dead, and goes on.
            _ => self.put_own_row().await,
        }
    }

    /// Follows what is known of the other processes: tells when their rows were read anew.
    pub fn peers_read(&self) -> watch::Receiver<u64> {
        self.peers.read.subscribe()
    }

    /// True while other processes of ours are known to live: what is stored here may be taken there, and the other way.
    pub fn has_peers(&self) -> bool {
        self.peers.living.read().unwrap_or_else(PoisonError::into_inner).iter().any(|peer| peer.id != self.process)
    }

    /// True when some living worker, in a process of ours or remote, runs this upstream.
    pub fn is_run_anywhere(&self, upstream: &str) -> bool {
        match is_lane(upstream) {
            true => self.remote.runs(upstream),
            false => self.peers.living().iter().any(|peer| peer.runs(upstream)),
        }
    }

    /// How long this scheduler leaves to the others what is due, in milliseconds. No leader: whoever is first in the order
    /// of ids acts at once, each next one a moment later, and finds it settled unless the one before did not act.
    pub(super) fn spread_ms(&self) -> i64 {
        let before = self.peers.living().iter().filter(|peer| peer.id < self.process && peer.schedules()).count();
        (before as i64).saturating_mul(SPREAD_MS).min(SPREAD_MAX_MS).min(self.settings.scheduler_interval_ms / 2)
    }

    /// Tells the followers in this process of executions that other processes found `unknown`: each lost attempt once.
    pub(super) async fn look_for_unknown(&self) -> Result<()> {
        if self.unknown.receiver_count() == 0 || !self.has_peers() {
            return Ok(());
        }
        let query = ListQuery { states: vec![State::Unknown], limit: UNKNOWN_MAX, ..ListQuery::default() };
        let heads = self.store.list(query).await?;
        let mut seen = self.peers.unknown_seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now: HashSet<_> = heads.iter().map(|head| (head.id(), head.fencing_token)).collect();
        for (id, _) in now.iter().filter(|lost| !seen.contains(*lost)) {
            // Nobody has to follow.
            let _ = self.unknown.send(*id);
        }
        *seen = now;
        Ok(())
    }
}

//! Floor 2: the verbs. The only writer of executions, and the only floor that reads the clock. Knows no protocol and no
//! SQL: it asks the store to decide by the rules of `model`, and tells whoever waits.

mod again;
pub mod asking;
pub mod bulk;
pub mod catalog;
pub mod changes;
pub mod client;
pub mod clock;
mod doubts;
pub mod error;
pub mod export;
mod finishing;
mod foreign;
pub mod forward;
pub mod in_flight;
pub mod inputs;
mod known_keys;
mod messages;
pub mod meter;
pub mod notices;
mod observers;
pub mod operate;
pub mod parking;
pub mod peers;
pub mod redaction;
pub mod remote;
pub mod rests;
pub mod running;
pub mod scheduler;
pub mod series;
mod served_tasks;
pub mod sessions;
pub mod slots;
pub mod spans;
pub mod submit;
pub mod task;
pub mod ticket;
pub mod view;
pub mod waiters;
pub mod watchers;
pub mod why;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use error::{Error, Result};

use crate::model::id::{Entropy, ExecutionId, OperationId, ProcessId};
use crate::store::{Retention, Slice, Store, WorkerChange};
use crate::telemetry::Traces;
use catalog::Catalog;
use clock::Clock;
use in_flight::InFlight;
use known_keys::KnownKeys;
use observers::Observers;
use running::{Running, Work};
use slots::Slots;
use waiters::Waiters;
use watchers::Watchers;

/// How the engine works. Durations in milliseconds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A lease lasts so long without a heartbeat.
    pub lease_ttl_ms: i64,
    /// Leases are extended so often.
    pub heartbeat_ms: i64,
    /// The scheduler looks at least so often.
    pub scheduler_interval_ms: i64,
    /// Rows of each kind the scheduler settles in one look.
    pub scheduler_batch: usize,
    /// What is kept of whom no rule speaks, and of the messages of sessions.
    pub retention: Retention,
    /// Rules for those who are told apart; each execution belongs to one slice.
    pub retention_rules: Vec<(Slice, Retention)>,
    /// The part of the time that deleting may take, in percent.
    pub retention_share: u32,
    /// How often retention is applied.
    pub retention_interval_ms: i64,
    /// Calls at once in this process.
    pub slots: usize,
    /// Callers that may wait in this process.
    pub waiters_max: usize,
    /// Executions submitted here belong to this process until it is dead (`wrap`).
    pub bound: bool,
    /// Bytes of a result that is stored and answered; a larger one is replaced by an error.
    pub result_bytes_max: usize,
    /// How long a submission looks whether the caller of an equal unkeyed call is just leaving.
    pub departure_grace_ms: u64,
    /// How long running work may take to stop once it was told to.
    pub stop_grace_ms: u64,
    /// How often a worker looks for work that nobody announced.
    pub worker_poll_ms: u64,
    /// Keys remembered as seen, so that a repeat is answered from a reader.
    pub known_keys_max: usize,
    /// Tools whose calls are counted under their own name.
    pub metric_tools_max: usize,
    /// How long a question to the client waits for its answer.
    pub input_timeout_ms: i64,
    /// What is struck out of calls before they are kept.
    pub redaction: redaction::Settings,
    /// Where spans go.
    pub traces: Traces,
    /// Remote workers.
    pub remote: remote::Settings,
    /// Sessions of legacy clients.
    pub sessions: sessions::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_ttl_ms: 30_000,
            heartbeat_ms: 10_000,
            scheduler_interval_ms: 1_000,
            scheduler_batch: 500,
            retention: Retention { payloads_ms: 7 * 86_400_000, executions_ms: 30 * 86_400_000, batch: 20 },
            retention_rules: Vec::new(),
            retention_share: 20,
            retention_interval_ms: 60_000,
            slots: 64,
            waiters_max: 10_000,
            bound: false,
            result_bytes_max: 64 << 20,
            departure_grace_ms: 50,
            stop_grace_ms: 2_000,
            worker_poll_ms: 1_000,
            known_keys_max: 16_384,
            metric_tools_max: 100,
            input_timeout_ms: 3_600_000,
            redaction: redaction::Settings::default(),
            traces: Traces::default(),
            remote: remote::Settings::default(),
            sessions: sessions::Settings::default(),
        }
    }
}

impl Settings {
    /// How long what is kept, of whom.
    pub fn retention_rules(&self) -> Vec<(Slice, Retention)> {
        match self.retention_rules.is_empty() {
            true => vec![(Slice::default(), self.retention)],
            false => self.retention_rules.clone(),
        }
    }

    /// How long the result of any execution is kept at least, in milliseconds after its end.
    pub fn result_kept_ms(&self) -> i64 {
        let spans = self.retention_rules();
        spans.iter().map(|(_, spans)| spans.payloads_ms.min(spans.executions_ms)).min().unwrap_or_default()
    }

    /// How long a claim of a remote worker waits at most, in milliseconds. A connection that is open does not prove that
    /// its worker runs: it has to ask again in time, or counts as silent and is given no more calls.
    pub fn claim_wait_max_ms(&self) -> i64 {
        self.remote.claim_wait_max_ms.min(self.lease_ttl_ms * 2 / 3)
    }
}

/// Executions that became `unknown` and are not yet looked at by a follower.
const UNKNOWN_QUEUE: usize = 1_024;
/// How long closing waits for what only has to write.
const RECORD_GRACE: Duration = Duration::from_secs(1);

/// What a process does; any combination is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Serves MCP clients.
    pub mcp: bool,
    /// Runs tools.
    pub worker: bool,
    /// Settles what is due.
    pub scheduler: bool,
}

/// Runs what the engine leased to this process at submission. The worker floor implements it.
pub trait LocalWorker: Send + Sync {
    /// Starts the work on a task of its own and returns at once.
    fn run(&self, work: Work);
}

/// The verbs, shared by everything in this process.
pub struct Engine {
    store: Arc<dyn Store>,
    clock: Clock,
    settings: Settings,
    process: ProcessId,
    worker_name: String,
    slots: Slots,
    catalog: Catalog,
    waiters: Waiters,
    asking: inputs::Asking,
    running: Arc<Running>,
    unredacted: redaction::Held,
    known_keys: KnownKeys,
    meter: Arc<meter::Meter>,
    observers: Observers,
    watchers: Watchers,
    in_flight: InFlight,
    clients: client::Clients,
    forwarders: forward::Forwarders,
    notices: notices::Notices,
    local: OnceLock<Arc<dyn LocalWorker>>,
    remote: remote::registry::Registry,
    peers: peers::Peers,
    held: remote::held::Held,
    pulling: tokio::sync::Mutex<()>,
    unknown: broadcast::Sender<ExecutionId>,
    scheduler_due: Notify,
    settling: scheduler::Settling,
    doubts: doubts::Doubts,
    repeats: series::Repeats,
    recent: series::Recent,
    draining: CancellationToken,
    halting: CancellationToken,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Engine {
    /// Announces this process in the store and starts nothing yet.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Clock,
        settings: Settings,
        upstreams: &[String],
    ) -> Result<Arc<Self>> {
        let clock = match clock {
            Clock::System => Clock::aligned(&clock::asks(store.clone())).await?,
            other => other,
        };
        let process = ProcessId::new(clock.now_ms(), &entropy());
        store.register_process(process, clock.now_ms()).await?;
        let meter = Arc::new(meter::Meter::new(settings.metric_tools_max));
        store.observe(meter.clone());
        let worker_name = format!("{}.{}", hostname(), std::process::id());
        Ok(Arc::new(Engine {
            slots: Slots::new(settings.slots),
            catalog: Catalog::new(upstreams),
            waiters: Waiters::new(settings.waiters_max),
            asking: inputs::Asking::default(),
            running: Arc::default(),
            unredacted: redaction::Held::default(),
            known_keys: KnownKeys::new(settings.known_keys_max),
            observers: Observers::default(),
            watchers: Watchers::default(),
            in_flight: InFlight::default(),
            clients: client::Clients::default(),
            forwarders: forward::Forwarders::default(),
            notices: notices::Notices::default(),
            local: OnceLock::new(),
            remote: remote::registry::Registry::default(),
            peers: peers::Peers::default(),
            held: remote::held::Held::default(),
            pulling: tokio::sync::Mutex::default(),
            unknown: broadcast::channel(UNKNOWN_QUEUE).0,
            scheduler_due: Notify::new(),
            settling: scheduler::Settling::default(),
            doubts: doubts::Doubts::default(),
            repeats: series::Repeats::default(),
            recent: series::Recent::default(),
            draining: CancellationToken::new(),
            halting: CancellationToken::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            meter,
            store,
            clock,
            settings,
            process,
            worker_name,
        }))
    }

    /// Names who runs what is leased here. Once.
    pub fn attach_worker(&self, worker: Arc<dyn LocalWorker>) {
        // A second worker in one process would be a wiring fault; the first one stays.
        let _ = self.local.set(worker);
    }

    /// The tools that can be called.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The slots of this process.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// What is counted here.
    pub fn meter(&self) -> &Arc<meter::Meter> {
        &self.meter
    }

    /// Callers that wait in this process.
    pub fn waiting_callers(&self) -> usize {
        self.waiters.callers()
    }

    /// The store, for reading.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The one clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How the engine works.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// This process.
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// What this process's scheduler settled.
    pub fn settling(&self) -> &scheduler::Settling {
        &self.settling
    }

    /// Follows executions that this process found `unknown`. A follower that lags reads the store.
    pub fn unknown(&self) -> broadcast::Receiver<ExecutionId> {
        self.unknown.subscribe()
    }

    /// Ends when nothing new may be leased here.
    pub fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    /// Ends when what still runs has to be given up.
    pub fn halting(&self) -> &CancellationToken {
        &self.halting
    }

    /// Ends when the engine stops.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    /// Runs `future` as a task that [`Engine::close`] waits for, for a moment.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(future);
    }

    /// Runs `future` as such a task, until the engine stops at the latest.
    pub fn spawn_until_stopped(&self, future: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.spawn(async move {
            let _ = stop.run_until_cancelled(future).await;
        });
    }

    /// From here on nothing new is leased here; what is submitted waits for another process. The first step of
    /// [`Engine::close`], for whoever has to end something between the two.
    pub fn drain(&self) {
        self.draining.cancel();
        self.slots.close();
    }

    /// Leases nothing more; gives what runs `grace` to end, its heartbeats going on; tells what still runs then to stop
    /// and records what becomes of it; ends the loops and closes the store. Bounded: `grace`, the stop grace, and a
    /// moment for the records. What is not recorded even then is settled as of a dead process by whoever comes next.
    pub async fn close(&self, grace: Duration) {
        // Both ends of each wait are fine: the next step is the harder one.
        self.drain();
        let _ = tokio::time::timeout(grace, self.running.idle()).await;
        self.halting.cancel();
        let stop_grace = Duration::from_millis(self.settings.stop_grace_ms) + RECORD_GRACE;
        let _ = tokio::time::timeout(stop_grace, self.running.idle()).await;
        let _ = tokio::time::timeout(spans::MADE_WITHIN, self.meter.all_spans_made()).await;
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(RECORD_GRACE, self.tasks.wait()).await;
        // Whoever comes next finds it dead otherwise, and says the same.
        let _ = self.store.change_workers(vec![self.process], WorkerChange::Gone, self.now_ms()).await;
        self.store.close().await;
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    pub(crate) fn new_execution_id(&self) -> ExecutionId {
        ExecutionId::new(self.now_ms(), &entropy())
    }

    pub(crate) fn new_operation(&self) -> OperationId {
        OperationId::new(self.now_ms(), &entropy())
    }
}

/// Random bits from a generator that is safe for secrets (ChaCha, seeded by the system's): each call needs several ids, and
/// asking the system is a call into the kernel.
pub fn entropy() -> Entropy {
    rand::random()
}

fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

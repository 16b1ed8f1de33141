//! What `/metrics` shows: each family once, with its name, its help and its labels. docs/metrics.md is compared with this.
//! Counts nothing itself.

use std::fmt::Write;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::Figures;

/// Labels of a tool.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ToolLabels {
    pub(super) upstream: String,
    pub(super) tool: String,
}

/// Labels of a tool, and of what became of its calls.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OutcomeLabels {
    pub(super) upstream: String,
    pub(super) tool: String,
    pub(super) outcome: &'static str,
}

/// Labels of a tool, and of a part of the life of its calls.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct PhaseLabels {
    pub(super) upstream: String,
    pub(super) tool: String,
    pub(super) phase: &'static str,
}

macro_rules! label {
    ($($(#[$doc:meta])* $name:ident($field:ident: $kind:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
        pub(super) struct $name {
            pub(super) $field: $kind,
        }
    )*};
}

label! {
    /// The wire name of an event.
    Type(r#type: &'static str);
    /// Why an attempt or a lease was lost.
    Cause(cause: &'static str);
    /// Why a result was not taken.
    Reason(reason: &'static str);
    /// Who ordered it, or by what a call was recognised.
    By(by: &'static str);
    /// A stable error code.
    Code(code: &'static str);
    /// Where something stands.
    State(state: &'static str);
    /// What became of something.
    Outcome(outcome: &'static str);
    /// The name of an upstream.
    Upstream(upstream: String);
    /// The version of the program.
    Version(version: &'static str);
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Every family, and the registry that writes them out.
#[derive(Debug)]
pub(super) struct Families {
    registry: Registry,
    pub(super) events: Family<Type, Counter>,
    pub(super) calls: Family<OutcomeLabels, Counter>,
    pub(super) submitted: Family<ToolLabels, Counter>,
    pub(super) attempts: Family<ToolLabels, Counter>,
    pub(super) retries: Family<By, Counter>,
    pub(super) attempts_lost: Family<Cause, Counter>,
    pub(super) leases_lost: Family<Cause, Counter>,
    pub(super) stale: Family<Reason, Counter>,
    pub(super) conflicts: Counter,
    pub(super) unknown: Counter,
    pub(super) duplicates: Family<By, Counter>,
    pub(super) refused: Family<Code, Counter>,
    pub(super) phases: Histograms<PhaseLabels>,
    pub(super) commit_seconds: Histogram,
    pub(super) commit_writes: Histogram,
    pub(super) restarts: Family<Upstream, Counter>,
    scrape: Scrape,
}

/// Gauges that are set when somebody asks.
#[derive(Debug, Default)]
struct Scrape {
    executions: Family<State, Gauge>,
    queue_depth: Gauge,
    queue_oldest: Gauge<f64, std::sync::atomic::AtomicU64>,
    connections: Family<State, Gauge>,
    store_waiting: Gauge,
    slots: Family<State, Gauge>,
    running: Gauge,
    waiters: Gauge,
    sessions: Gauge,
    up: Family<Upstream, Gauge>,
    spans: Family<Outcome, Counter>,
}

/// Bounds of the parts of a call's life, in seconds.
const PHASES: [f64; 16] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0];
/// Bounds of a commit, in seconds.
const COMMITS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0];
/// Bounds of the writes in a commit.
const WRITES: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

fn phase() -> Histogram {
    Histogram::new(PHASES)
}

impl Families {
    pub(super) fn new() -> Families {
        let mut registry = Registry::with_prefix("durable_mcp");
        let scrape = Scrape::new(&mut registry);
        let mut families = Families {
            events: Family::default(),
            calls: Family::default(),
            submitted: Family::default(),
            attempts: Family::default(),
            retries: Family::default(),
            attempts_lost: Family::default(),
            leases_lost: Family::default(),
            stale: Family::default(),
            conflicts: Counter::default(),
            unknown: Counter::default(),
            duplicates: Family::default(),
            refused: Family::default(),
            phases: Family::new_with_constructor(phase as fn() -> Histogram),
            commit_seconds: Histogram::new(COMMITS),
            commit_writes: Histogram::new(WRITES),
            restarts: Family::default(),
            registry,
            scrape,
        };
        families.register();
        families
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("events", "Events committed by this process, by type", self.events.clone());
        registry.register("submitted", "Calls stored as new executions", self.submitted.clone());
        registry.register("calls", "Executions that ended, or became `unknown`", self.calls.clone());
        registry.register("attempts", "Leases that began an attempt", self.attempts.clone());
        registry.register("retries", "Further attempts ordered, by the policy or by a person", self.retries.clone());
        let help = "Attempts that were started and of which nobody learnt how they went, by error code";
        registry.register("attempts_lost", help, self.attempts_lost.clone());
        let help = "Leases that ended without a word of their holder: expired, or its process died";
        registry.register("leases_lost", help, self.leases_lost.clone());
        let help = "Results that changed nothing: under an older fencing token, or after the end";
        registry.register("stale_writes_rejected", help, self.stale.clone());
        let help = "Calls under a key that stands for another call, as noted in the log of its execution";
        registry.register("conflicts", help, self.conflicts.clone());
        registry.register("unknown", "Executions that became `unknown`", self.unknown.clone());
        let help = "Calls that an earlier execution took: by their key, or as the same call again";
        registry.register("duplicates_answered", help, self.duplicates.clone());
        registry.register("calls_refused", "Calls that were not stored, by error code", self.refused.clone());
        let help = "Parts of the life of a call: from due to leased (queued), under its last lease (run), from \
                    submitted to ended (total)";
        registry.register_with_unit("phase", help, Unit::Seconds, self.phases.clone());
        let help = "Time of a transaction of the store, the wait for its turn included";
        registry.register_with_unit("store_commit", help, Unit::Seconds, self.commit_seconds.clone());
        registry.register("store_commit_writes", "Writes that shared a transaction", self.commit_writes.clone());
        let help = "Times a server was started or connected again after it was lost";
        registry.register("upstream_restarts", help, self.restarts.clone());
        let version = Info::new(Version { version: env!("CARGO_PKG_VERSION") });
        registry.register("build", "The program", version);
    }

    /// All of it as text (OpenMetrics 1.0).
    pub(super) fn encode(&self, figures: &Figures) -> String {
        self.scrape.set(figures);
        let mut out = String::new();
        if text::encode(&mut out, &self.registry).is_err() {
            // Writing into a string does not fail; half a page would be worse than none.
            out.clear();
            let _ = out.write_str("# EOF\n");
        }
        out
    }
}

impl Scrape {
    fn new(registry: &mut Registry) -> Scrape {
        let scrape = Scrape::default();
        registry.register("executions", "Stored executions, by state; of the whole store", scrape.executions.clone());
        let help = "Executions that wait for a worker now; of the whole store";
        registry.register("queue_depth", help, scrape.queue_depth.clone());
        let help = "How long the execution that waits longest for a worker has waited; of the whole store";
        registry.register_with_unit("queue_oldest", help, Unit::Seconds, scrape.queue_oldest.clone());
        registry.register("store_connections", "Connections to the store", scrape.connections.clone());
        let help = "Reads that wait for a connection and writes that wait for a commit";
        registry.register("store_waiting", help, scrape.store_waiting.clone());
        registry.register("slots", "Calls that this process can run at once", scrape.slots.clone());
        registry.register("running", "Leases that this process works on", scrape.running.clone());
        registry.register("waiters", "Callers that wait in this process", scrape.waiters.clone());
        registry.register("sessions", "MCP sessions in the memory of this process", scrape.sessions.clone());
        registry.register("upstream_up", "Whether a server or tool can be used here", scrape.up.clone());
        let help = "Spans of traces: taken by the collector, dropped since too many waited, or not taken";
        registry.register("spans", help, scrape.spans.clone());
        scrape
    }

    fn set(&self, figures: &Figures) {
        for (state, count) in &figures.executions {
            self.executions.get_or_create(&State { state: state.as_str() }).set(signed(*count as usize));
        }
        self.queue_depth.set(signed(figures.queue_depth));
        self.queue_oldest.set(figures.queue_oldest_ms as f64 / 1_000.0);
        for (state, count) in [("busy", figures.connections.busy), ("idle", figures.connections.idle)] {
            self.connections.get_or_create(&State { state }).set(signed(count));
        }
        self.store_waiting.set(signed(figures.connections.waiting));
        for (state, count) in [("busy", figures.slots.0), ("free", figures.slots.1)] {
            self.slots.get_or_create(&State { state }).set(signed(count));
        }
        self.running.set(signed(figures.running));
        self.waiters.set(signed(figures.waiters));
        self.sessions.set(signed(figures.sessions));
        let spans = &figures.spans;
        for (outcome, count) in [("exported", spans.exported), ("dropped", spans.dropped), ("failed", spans.failed)] {
            let counter = self.spans.get_or_create(&Outcome { outcome });
            counter.inner().fetch_max(count, std::sync::atomic::Ordering::Relaxed);
        }
        for (upstream, up) in &figures.upstreams {
            self.up.get_or_create(&Upstream { upstream: upstream.clone() }).set(i64::from(*up));
        }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

//! What the tests of the engine and of the worker loop stand on: a store file, a clock that stands still, engines, tools
//! and calls. Asserts nothing.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::engine::catalog::{Service, Tool};
use crate::engine::clock::{Clock, Manual};
use crate::engine::running::Work;
use crate::engine::slots::UpstreamLimits;
use crate::engine::submit::Call;
use crate::engine::{Engine, LocalWorker, Settings};
use crate::model::decide::{Failure, FailureKind};
use crate::model::event::{Event, EventRecord, Order};
use crate::model::execution::{ErrorInfo, Head};
use crate::model::id::ExecutionId;
use crate::model::policy::{Delivery, Identity, Policy, Unkeyed};
use crate::model::principal::Principal;
use crate::store::sqlite::{SqliteSettings, SqliteStore};
use crate::store::{CandidateQuery, Payload, Store};

pub(crate) const UPSTREAM: &str = "crm";
pub(crate) const START_MS: i64 = 1_800_000_000_000;

/// A store file and a clock.
pub(crate) struct Rig {
    folder: tempfile::TempDir,
    pub(crate) clock: Clock,
    pub(crate) time: Arc<Manual>,
}

impl Rig {
    pub(crate) fn new() -> Rig {
        let (clock, time) = Clock::manual(START_MS);
        Rig { folder: tempfile::tempdir().unwrap(), clock, time }
    }

    /// The file, opened as by another process.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        let settings = SqliteSettings::for_tests();
        Arc::new(SqliteStore::open(&self.folder.path().join("test.db"), &settings).await.unwrap())
    }

    /// Another program that holds the file: until it is dropped, nothing is written.
    pub(crate) fn held(&self) -> rusqlite::Connection {
        let other = rusqlite::Connection::open(self.folder.path().join("test.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        other
    }

    /// An engine with a lane for [`UPSTREAM`], and what it leases to itself.
    pub(crate) async fn engine(&self, limits: UpstreamLimits) -> (Arc<Engine>, Hands) {
        self.engine_with(Settings::default(), Some(limits)).await
    }

    pub(crate) async fn engine_with(&self, settings: Settings, limits: Option<UpstreamLimits>) -> (Arc<Engine>, Hands) {
        self.engine_on(self.store().await, settings, limits).await
    }

    pub(crate) async fn engine_on(
        &self,
        store: Arc<dyn Store>,
        settings: Settings,
        limits: Option<UpstreamLimits>,
    ) -> (Arc<Engine>, Hands) {
        let engine = self.bare_engine(store, settings, limits).await;
        let (sender, works) = mpsc::unbounded_channel();
        engine.attach_worker(Arc::new(Sender(sender)));
        (engine, Hands(works))
    }
}

impl Rig {
    /// An engine without a worker.
    pub(crate) async fn bare_engine(
        &self,
        store: Arc<dyn Store>,
        settings: Settings,
        limits: Option<UpstreamLimits>,
    ) -> Arc<Engine> {
        let engine = Engine::open(store, self.clock.clone(), settings, &[UPSTREAM.into()]).await.unwrap();
        if let Some(limits) = limits {
            engine.slots().open(UPSTREAM, limits);
        }
        engine
    }
}

struct Sender(mpsc::UnboundedSender<Work>);

impl LocalWorker for Sender {
    fn run(&self, work: Work) {
        // A test that has ended needs no work.
        let _ = self.0.send(work);
    }
}

/// The work that an engine hands to its worker.
pub(crate) struct Hands(mpsc::UnboundedReceiver<Work>);

impl Hands {
    pub(crate) async fn next(&mut self) -> Work {
        soon(self.0.recv()).await.unwrap()
    }

    /// Work that is there already.
    pub(crate) fn ready(&mut self) -> Option<Work> {
        self.0.try_recv().ok()
    }
}

/// Limits with so many calls at once.
pub(crate) fn at_once(concurrency: usize) -> UpstreamLimits {
    UpstreamLimits { concurrency, ..UpstreamLimits::default() }
}

/// Fails a test that would hang. No test waits that long when it passes.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it happens within 20 s")
}

/// A tool of [`UPSTREAM`] with its rules.
pub(crate) fn tool(policy: Policy, identity: Identity) -> Arc<Tool> {
    let definition = serde_json::value::RawValue::from_string(r#"{"name":"add_note"}"#.into()).unwrap();
    Arc::new(Tool {
        redact: Arc::default(),
        exposed: "crm__add_note".into(),
        upstream: UPSTREAM.into(),
        name: "add_note".into(),
        definition,
        has_output_schema: false,
        wants_client: false,
        policy,
        identity,
        service: Service::default(),
    })
}

pub(crate) fn at_least_once() -> Policy {
    Policy { delivery: Delivery::AtLeastOnce, ..Policy::default() }
}

/// A call under a policy that nobody ever attaches to by its arguments.
pub(crate) fn call(policy: Policy) -> Call {
    unkeyed(policy, Identity { unkeyed: Unkeyed::None, ..Identity::default() })
}

pub(crate) fn unkeyed(policy: Policy, identity: Identity) -> Call {
    Call {
        tool: tool(policy, identity),
        principal: Principal::anonymous(),
        caller: "session-1".into(),
        key: None,
        arguments: r#"{"text":"hello"}"#.into(),
        meta: None,
    }
}

pub(crate) fn keyed(key: &str) -> Call {
    Call { key: Some(key.into()), ..call(Policy::default()) }
}

pub(crate) fn result(text: &str) -> Payload {
    format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#).into()
}

pub(crate) fn order() -> Order {
    Order { principal: "anonymous".into(), reason: "test".into() }
}

pub(crate) fn lost() -> Failure {
    let error = ErrorInfo { code: "child_died".into(), message: "the child died".into() };
    Failure { kind: FailureKind::Lost, error, retry_after_ms: None }
}

pub(crate) async fn head(engine: &Engine, id: ExecutionId) -> Head {
    engine.store().heads(&[id]).await.unwrap().pop().expect("the execution is there")
}

pub(crate) async fn events(engine: &Engine, id: ExecutionId) -> Vec<EventRecord> {
    engine.store().events(id, 0, 1_000).await.unwrap()
}

pub(crate) async fn names(engine: &Engine, id: ExecutionId) -> Vec<&'static str> {
    events(engine, id).await.iter().map(|record| record.event.name()).collect()
}

/// How often an event of this name is in the log.
pub(crate) async fn count(engine: &Engine, id: ExecutionId, name: &str) -> usize {
    names(engine, id).await.into_iter().filter(|found| *found == name).count()
}

/// Why the newest rejected result was rejected.
pub(crate) async fn rejected(engine: &Engine, id: ExecutionId) -> Option<String> {
    events(engine, id).await.into_iter().rev().find_map(|record| match record.event {
        Event::Rejected { reason, .. } => Some(reason),
        _ => None,
    })
}

/// Work that `engine` may claim now.
pub(crate) async fn candidates(engine: &Engine) -> Vec<Head> {
    let query = CandidateQuery {
        upstreams: vec![UPSTREAM.into()],
        process: engine.process(),
        dead: Vec::new(),
        now_ms: engine.clock().now_ms(),
        limit: 100,
    };
    engine.store().candidates(query).await.unwrap()
}

/// Claims the oldest candidate; the work is then in the engine's [`Hands`].
pub(crate) async fn claim_oldest(engine: &Arc<Engine>) -> bool {
    let Some(candidate) = candidates(engine).await.into_iter().next() else { return false };
    let Some(slot) = engine.slots().try_take(UPSTREAM) else { return false };
    engine.claim(&candidate, slot).await.unwrap()
}

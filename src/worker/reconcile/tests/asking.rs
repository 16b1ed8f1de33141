//! The loop: a store in a temporary folder, a manual clock, and a server whose answers are scripted.

use std::collections::VecDeque;

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::*;
use crate::engine::catalog::{Offer, Service};
use crate::engine::clock::{Clock, Manual};
use crate::engine::slots::UpstreamLimits;
use crate::engine::submit::Call;
use crate::model::event::Order;
use crate::model::policy::Identity;
use crate::model::principal::Principal;
use crate::store::sqlite::SqliteStore;
use crate::store::{SqliteSettings, Store};
use crate::worker::Worker;
use crate::worker::executor::Report;

const TAKEN: &str = r#"{"content":[],"structuredContent":{"found":true}}"#;
const MISSING: &str = r#"{"content":[],"structuredContent":{"found":false}}"#;
const BROKEN: &str = r#"{"content":[],"isError":true}"#;

/// A server with a tool `write`, which loses every call, and a tool `find`, which answers what it was told.
struct Server {
    answers: Mutex<VecDeque<&'static str>>,
    calls: mpsc::UnboundedSender<Job>,
}

#[async_trait]
impl Executor for Server {
    async fn run(&self, job: Job, _report: Report<'_>) -> Outcome {
        let lost = job.tool == "write";
        self.calls.send(job).unwrap();
        match lost {
            true => Outcome::lost("child_died", "the server died"),
            false => Outcome::Result(self.answers.lock().unwrap().pop_front().unwrap_or(BROKEN).into()),
        }
    }
}

struct Bench {
    _folder: tempfile::TempDir,
    engine: Arc<Engine>,
    executors: HashMap<String, Arc<dyn Executor>>,
    calls: mpsc::UnboundedReceiver<Job>,
    clock: Arc<Manual>,
}

impl Bench {
    async fn new(answers: &[&'static str]) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("t.db"), &SqliteSettings::for_tests()).await.unwrap();
        let (clock, manual) = Clock::manual(1_700_000_000_000);
        let engine = Engine::open(Arc::new(store) as Arc<dyn Store>, clock, Default::default(), &["s".into()]).await;
        let engine = engine.unwrap();
        let (sender, calls) = mpsc::unbounded_channel();
        let server = Server { answers: Mutex::new(answers.iter().copied().collect()), calls: sender };
        let executors = HashMap::from([("s".to_owned(), Arc::new(server) as Arc<dyn Executor>)]);
        engine.slots().open("s", UpstreamLimits::default());
        Worker::new(engine.clone(), executors.clone()).start();
        engine.start_loops(true);
        let tool = RawValue::from_string(r#"{"name":"write","inputSchema":{"type":"object"}}"#.into()).unwrap();
        let tool = crate::worker::rules::offered(&tool, "s", "write".into(), &Default::default()).unwrap();
        assert_eq!((tool.service.clone(), tool.identity), (Service::default(), Identity::default()));
        engine.catalog().publish("s", Offer { tools: vec![Arc::new(tool)], ..Offer::default() });
        Bench { _folder: folder, engine, executors, calls, clock: manual }
    }

    fn start(&self) {
        let rule = rule(r#"{"id":"{{arguments.id}}","key":"{{effect_key}}"}"#, "/found == true").unwrap();
        let rules = Rules::from([(("s".to_owned(), "write".to_owned()), rule)]);
        Reconciler::new(self.engine.clone(), self.executors.clone(), rules, Settings::default()).start();
    }

    /// Calls `write`, which is lost.
    async fn lose(&mut self) -> ExecutionId {
        let listing = self.engine.catalog().listing();
        let call = Call {
            tool: listing.find("write", "default").unwrap().clone(),
            principal: Principal::anonymous(),
            caller: "c".into(),
            key: None,
            arguments: r#"{"id":7.0}"#.into(),
            meta: None,
        };
        let ticket = self.engine.submit(call).await.unwrap();
        let id = ticket.id();
        assert_eq!(self.next_call().await.tool, "write");
        // It may have been asked about, and completed, before anybody looked.
        self.until(id, |state| state.is_settled()).await;
        id
    }

    async fn next_call(&mut self) -> Job {
        self.calls.recv().await.unwrap()
    }

    /// Waits for a state; the store is polled as other processes do it.
    async fn state(&self, id: ExecutionId, state: State) -> Head {
        self.until(id, |now| now == state).await
    }

    async fn until(&self, id: ExecutionId, holds: impl Fn(State) -> bool) -> Head {
        loop {
            let head = self.engine.store().heads(&[id]).await.unwrap().remove(0);
            if holds(head.state) {
                return head;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Moves the clock until the next call comes.
    async fn call_after_a_while(&mut self) -> Job {
        loop {
            if let Some(job) = self.call_soon().await {
                return job;
            }
        }
    }

    /// Moves the clock far on; nothing may be called.
    async fn nothing_more(&mut self) {
        for _ in 0..20 {
            assert!(self.call_soon().await.is_none());
            self.clock.advance(60_000);
        }
    }

    /// The calls come from other threads, so the clock is moved in steps that give them a chance; a call that takes
    /// longer only moves the clock further.
    async fn call_soon(&mut self) -> Option<Job> {
        let job = tokio::time::timeout(Duration::from_millis(5), self.calls.recv()).await.ok().flatten();
        self.clock.advance(if job.is_none() { 1_000 } else { 0 });
        job
    }
}

#[tokio::test]
async fn a_lost_call_that_took_effect_is_completed() {
    let mut bench = Bench::new(&[TAKEN]).await;
    bench.start();
    let id = bench.lose().await;
    let question = bench.next_call().await;
    assert_eq!(question.tool, "find");
    assert_eq!(&*question.arguments, format!(r#"{{"id":7.0,"key":"{id}"}}"#));
    assert_ne!(question.effect_key, id);
    let head = bench.state(id, State::Completed).await;
    assert_eq!(head.source, Some(crate::model::execution::ResultSource::Reconcile));
    let result = bench.engine.store().payload(id, PayloadKind::Result).await.unwrap().unwrap();
    assert!(result.contains("Reconciled: "), "{result}");
}

#[tokio::test]
async fn a_lost_call_is_run_again_only_when_its_absence_was_confirmed() {
    let mut bench = Bench::new(&[MISSING, BROKEN, MISSING, MISSING, TAKEN]).await;
    bench.start();
    let id = bench.lose().await;
    for _ in 0..4 {
        assert_eq!(bench.call_after_a_while().await.tool, "find");
    }
    let again = bench.call_after_a_while().await;
    assert_eq!((again.tool.as_str(), again.attempt, again.effect_key), ("write", 2, id));
    // Lost once more: another matter, asked about anew.
    assert_eq!(bench.call_after_a_while().await.tool, "find");
    bench.state(id, State::Completed).await;
}

#[tokio::test]
async fn without_an_attempt_left_it_stays_unknown() {
    let mut bench = Bench::new(&[MISSING; 20]).await;
    bench.start();
    let id = bench.lose().await;
    for tool in ["find", "find", "write", "find", "find", "write", "find", "find"] {
        assert_eq!(bench.call_after_a_while().await.tool, tool);
    }
    bench.nothing_more().await;
    assert_eq!(bench.state(id, State::Unknown).await.attempt, 3);
}

#[tokio::test]
async fn unclear_answers_are_asked_for_again_and_not_for_ever() {
    let mut bench = Bench::new(&[]).await;
    bench.start();
    let id = bench.lose().await;
    for _ in 0..8 {
        assert_eq!(bench.call_after_a_while().await.tool, "find");
    }
    bench.nothing_more().await;
    bench.state(id, State::Unknown).await;
}

#[tokio::test]
async fn what_was_unknown_before_the_start_is_asked_about() {
    let mut bench = Bench::new(&[TAKEN]).await;
    let id = bench.lose().await;
    bench.start();
    assert_eq!(bench.next_call().await.tool, "find");
    bench.state(id, State::Completed).await;
}

#[tokio::test]
async fn a_person_who_decides_first_is_not_overruled() {
    let mut bench = Bench::new(&[MISSING, MISSING]).await;
    bench.start();
    let id = bench.lose().await;
    assert_eq!(bench.next_call().await.tool, "find");
    let by = Order { principal: "p".into(), reason: "seen".into() };
    bench.engine.resolve(id, by, Some((r#"{"content":[]}"#.into(), false))).await.unwrap();
    bench.nothing_more().await;
    bench.state(id, State::Completed).await;
}

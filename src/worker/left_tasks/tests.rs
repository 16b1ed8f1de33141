//! A lost attempt that left a task with its server is completed by that task, and by nothing else.

use std::sync::OnceLock;

use async_trait::async_trait;
use serde_json::value::RawValue;

use super::*;
use crate::engine::catalog::Offer;
use crate::engine::clock::Clock;
use crate::engine::slots::UpstreamLimits;
use crate::engine::submit::Call;
use crate::model::principal::Principal;
use crate::store::sqlite::SqliteStore;
use crate::store::{Keep, Kept, SqliteSettings, Store};
use crate::worker::Worker;
use crate::worker::executor::Report;

const TASK: &str = r#"{"durable-mcp/task":{"id":"t-1","poll_ms":5,"answered":[]}}"#;

/// A server that loses each call after it kept what the test says, and knows how its task ended.
#[derive(Default)]
struct Server {
    engine: OnceLock<Arc<Engine>>,
    checkpoint: &'static str,
    followed: Mutex<Vec<Job>>,
}

#[async_trait]
impl Executor for Server {
    async fn run(&self, job: Job, _report: Report<'_>) -> Outcome {
        if job.continuation.is_some() {
            self.followed.lock().unwrap().push(job);
            return Outcome::Result(r#"{"content":[],"n":1.0}"#.into());
        }
        let engine = self.engine.get().unwrap();
        let lease = LeaseRef { id: job.id, fencing_token: job.fencing_token };
        let what = Kept::Checkpoint(self.checkpoint.into());
        engine.store().keep(Keep { lease, what, now_ms: engine.clock().now_ms() }).await.unwrap();
        Outcome::lost("connection_lost", "gone")
    }
}

async fn lose(checkpoint: &'static str) -> (tempfile::TempDir, Arc<Engine>, Arc<Server>, ExecutionId) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("t.db"), &SqliteSettings::for_tests()).await.unwrap();
    let (clock, _) = Clock::manual(1_700_000_000_000);
    let engine = Engine::open(Arc::new(store) as Arc<dyn Store>, clock, Default::default(), &["s".into()]).await;
    let engine = engine.unwrap();
    let server = Arc::new(Server { checkpoint, ..Server::default() });
    assert!(server.engine.set(engine.clone()).is_ok());
    let executors = HashMap::from([("s".to_owned(), server.clone() as Arc<dyn Executor>)]);
    engine.slots().open("s", UpstreamLimits::default());
    Worker::new(engine.clone(), executors.clone()).start();
    let tool = RawValue::from_string(r#"{"name":"write","inputSchema":{"type":"object"}}"#.into()).unwrap();
    let tool = crate::worker::rules::offered(&tool, "s", "write".into(), &Default::default()).unwrap();
    engine.catalog().publish("s", Offer { tools: vec![Arc::new(tool)], ..Offer::default() });
    let call = Call {
        tool: engine.catalog().listing().find("write", "default").unwrap().clone(),
        principal: Principal::anonymous(),
        caller: "c".into(),
        key: None,
        arguments: "{}".into(),
        meta: None,
    };
    let id = engine.submit(call).await.unwrap().id();
    state(&engine, id, State::Unknown).await;
    LeftTasks::new(engine.clone(), executors).start();
    (folder, engine, server, id)
}

/// Waits for a state; the store is polled as other processes do it.
async fn state(engine: &Engine, id: ExecutionId, state: State) {
    let waiting = async {
        while engine.store().heads(&[id]).await.unwrap()[0].state != state {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), waiting).await.expect("another state");
}

#[tokio::test]
async fn an_unknown_execution_is_completed_by_the_task_it_left() {
    let (_folder, engine, server, id) = lose(TASK).await;
    state(&engine, id, State::Completed).await;
    let result = engine.store().payload(id, PayloadKind::Result).await.unwrap().unwrap();
    assert_eq!(&*result, r#"{"content":[],"n":1.0}"#);
    let followed = server.followed.lock().unwrap();
    assert_eq!(followed.len(), 1);
    assert_eq!(followed[0].continuation.as_ref().unwrap().state.as_deref(), Some(TASK));
}

#[tokio::test]
async fn one_that_left_no_task_stays_unknown() {
    let (_folder, engine, server, _) = lose(r#"{"step":1}"#).await;
    engine.close(std::time::Duration::ZERO).await;
    assert!(server.followed.lock().unwrap().is_empty());
}
